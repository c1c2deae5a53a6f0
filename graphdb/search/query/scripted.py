"""Queries that run scripts: `script` as a filter, `script_score`; the script of `function_score`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from graphdb.search.errors import illegal_argument, illegal_request
from graphdb.search.leaf_reader import Bools, Doubles, Floats, Ints, Leaf, Longs
from graphdb.search.mapping.lookup import FieldLookup
from graphdb.search.query.clause import Clause, ClauseParser, Parse, QueryContext, malformed
from graphdb.search.query.explanation import Explanation, explained, no_match
from graphdb.search.query.searcher import Searcher
from graphdb.search.query.tree import SCORE_MAX, Matches, Query
from graphdb.search.scripts.script import FILTER, SCORE, Purpose, Script, parse_script

__all__ = ["PARSERS", "BoundScript", "ScriptFunction", "ScriptQuery", "ScriptScoreQuery", "script_function"]


@dataclass(frozen=True, slots=True)
class BoundScript:
    """A script and the index whose fields it reads."""

    script: Script
    mapping: FieldLookup = field(hash=False, compare=False)
    index_name: str

    @classmethod
    def parse(cls, body: Any, purpose: Purpose, context: QueryContext) -> "BoundScript":
        return cls(parse_script(body, purpose), context.mapping, context.index_name)

    def scores(self, leaf: Leaf, docs: Longs, scores: Floats | None) -> Doubles:
        """For documents of a leaf. Errors: illegal_argument_exception for what is not a score."""
        found = self.script.on(leaf, self.mapping, self.index_name).numbers(docs, scores)
        bad = np.flatnonzero(~(found >= 0))
        if len(bad):
            raise illegal_argument(
                f"script_score script returned an invalid score [{found[bad[0]]}] for doc [{docs[bad[0]]}]. "
                "Must be a non-negative score!"
            )
        return np.minimum(found, SCORE_MAX)


@dataclass(frozen=True, kw_only=True)
class ScriptQuery(Query):
    """The documents for which a script returns true. Those of the top level, or nested objects at a path."""

    is_late = True

    bound: BoundScript
    nested_path: str | None = None

    def matches(self, leaf: Leaf, searcher: Searcher, boost: float = 1.0) -> Matches:
        return Matches(self.mask(leaf, searcher), None, boost * self.boost)

    def mask(self, leaf: Leaf, searcher: Searcher) -> Bools:
        return self.mask_among(leaf, searcher, leaf.live)

    def mask_among(self, leaf: Leaf, searcher: Searcher, among: Bools) -> Bools:
        asked = np.flatnonzero(among & leaf.live & _at_path(leaf, self.nested_path))
        mask = np.zeros(leaf.segment.size, np.bool_)
        bound = self.bound
        mask[asked] = bound.script.on(leaf, bound.mapping, bound.index_name).truths(asked)
        return mask

    def accumulate_among(
        self, leaf: Leaf, searcher: Searcher, boost: float, scores: Doubles, counts: Ints, among: Bools
    ) -> None:
        found = self.mask_among(leaf, searcher, among)
        scores[found] += np.float32(boost * self.boost)
        counts += found

    def text(self) -> str:
        return f"ScriptQuery({self.bound.script})"


def _at_path(leaf: Leaf, path: str | None) -> Bools:
    segment = leaf.segment
    if segment.parents is None or segment.nested_path is None:
        return np.full(segment.size, path is None)
    if path is None:
        return np.asarray(segment.parents < 0)
    paths = list(segment.nested_paths)
    number = paths.index(path) if path in paths else -2
    return np.asarray(segment.nested_path == number)


@dataclass(frozen=True, kw_only=True)
class ScriptScoreQuery(Query):
    """What a query matches, scored by a script; those that score less than min_score do not match.

    It runs for documents of the top level, or nested objects at a path: others, which a query as `match_all`
    matches too, are no hits and lack the fields that it reads.
    """

    is_late = True

    query: Query
    bound: BoundScript
    min_score: float | None = None
    nested_path: str | None = None

    def matches(self, leaf: Leaf, searcher: Searcher, boost: float = 1.0) -> Matches:
        found = self.query.matches(leaf, searcher)
        docs = np.flatnonzero(found.mask & leaf.live & _at_path(leaf, self.nested_path))
        dense = found.dense() if self.bound.script.needs_scores else None
        own = (self.bound.scores(leaf, docs, dense) * (boost * self.boost)).astype(np.float32)
        mask, scores = found.mask & leaf.live, np.zeros(leaf.segment.size, np.float32)
        scores[docs] = own
        if self.min_score is not None:
            mask = mask & (scores >= np.float32(self.min_score))
        return Matches(mask, np.where(mask, scores, np.float32(0)))

    def mask(self, leaf: Leaf, searcher: Searcher) -> Bools:
        if self.min_score is None:
            return self.query.mask(leaf, searcher)
        return self.matches(leaf, searcher).mask

    def children(self) -> tuple[Query, ...]:
        return (self.query,)

    def explain(self, leaf: Leaf, doc: int, searcher: Searcher, boost: float = 1.0) -> Explanation:
        part = self.query.explain(leaf, doc, searcher)
        found = self.matches(leaf, searcher, boost)
        if not found.mask[doc]:
            return part if "no_match" in part else no_match("Score value is too low", [part])
        details = [explained(part["value"], "_score: ", [part])]
        text = f'script score function, computed with script:"{self.bound.script}"'
        return explained(float(found.dense()[doc]), text, details)

    def text(self) -> str:
        return f"script_score ({self.query}, {self.bound.script})"


@dataclass(frozen=True, slots=True)
class ScriptFunction:
    """A `ScoreFunction`."""

    bound: BoundScript
    nested_path: str | None = None

    def values(self, leaf: Leaf, wanted: Bools, scores: Doubles) -> Doubles:
        docs = np.flatnonzero(wanted & leaf.live & _at_path(leaf, self.nested_path))
        values = np.zeros(leaf.segment.size)
        values[docs] = self.bound.scores(leaf, docs, scores.astype(np.float32))
        return values

    def __str__(self) -> str:
        return f'script score function, computed with script:"{self.bound.script}"'


def script_function(body: Mapping[str, Any], context: QueryContext) -> ScriptFunction:
    """The object under `script_score` in `function_score`."""
    clause = Clause("script_score", body)
    script = clause.needed("script")
    clause.done()
    return ScriptFunction(BoundScript.parse(script, SCORE, context), context.nested_path)


def _script(body: Mapping[str, Any], context: QueryContext, parse: Parse) -> Query:
    clause = Clause("script", body)
    script = clause.take("script")
    clause.done()
    if script is None:
        raise malformed("script must be provided with a [script] query")
    context.check_expensive("[script] queries")
    bound = BoundScript.parse(script, FILTER, context)
    return ScriptQuery(bound=bound, nested_path=context.nested_path, boost=clause.boost, name=clause.name)


def _script_score(body: Mapping[str, Any], context: QueryContext, parse: Parse) -> Query:
    clause = Clause("script_score", body)
    query, script = clause.take("query"), clause.take("script")
    min_score = clause.number("min_score", 0.0) if "min_score" in clause else None
    clause.done()
    if query is None or script is None:
        raise illegal_request(f"Required [{'query' if query is None else 'script'}]")
    context.check_expensive("[script score] queries")
    return ScriptScoreQuery(
        query=parse(query, context),
        bound=BoundScript.parse(script, SCORE, context),
        min_score=min_score,
        nested_path=context.nested_path,
        boost=clause.boost,
        name=clause.name,
    )


PARSERS: dict[str, ClauseParser] = {"script": _script, "script_score": _script_score}
