"""`intervals`: rules for where words stand in a text, and filters on how their places relate to others.

Source: Elasticsearch's reference, "Intervals query". An interval that contains another of the same rule does
not count (minimal intervals).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from graphdb.search.analysis.token_graph import TokenGraph
from graphdb.search.errors import illegal_argument, illegal_request
from graphdb.search.fields import FieldSpec, Storage
from graphdb.search.leaf_reader import Floats, Leaf
from graphdb.search.query.clause import Clause, ClauseParser, Parse, QueryContext, field_clause, malformed
from graphdb.search.query.dictionary_queries import (
    FuzzyQuery,
    PrefixQuery,
    RegexpQuery,
    TermRangeQuery,
    WildcardQuery,
    edits_of,
)
from graphdb.search.query.explanation import Explanation, explained, no_match
from graphdb.search.query.interval_sources import RELATIONS, Extended, any_of, filtered, scripted, together
from graphdb.search.query.near_terms import TermsNear
from graphdb.search.query.positions import (
    AnyOf,
    ManyTerms,
    OfPart,
    PositionLists,
    PositionSource,
    Spans,
    Term,
)
from graphdb.search.query.regexp import Regexp
from graphdb.search.query.searcher import Searcher
from graphdb.search.query.spans import frequencies
from graphdb.search.query.text_queries import graph_of, paths_of, places_of
from graphdb.search.query.tree import Matches, MatchNoneQuery, Query

__all__ = ["PARSERS", "IntervalsQuery"]

_EXPANSIONS_MAX = 128  # terms that one pattern may stand for
_RULES_MAX = 1_024

# The query: its score grows with the number of intervals, and with how short they are.


@dataclass(frozen=True, slots=True)
class _Lengths(OfPart):
    """The same intervals with their lengths as slack."""

    def near(self) -> TermsNear | None:
        inner = self.part.near()
        return None if inner is None else replace(inner, by_length=True)

    def spans(self, lists: PositionLists, row: int) -> Spans:
        return [(start, end, end - start) for start, end, _ in self.part.spans(lists, row)]

    def text(self) -> str:
        return self.part.text()


@dataclass(frozen=True, kw_only=True)
class IntervalsQuery(Query):
    """A document scores boost * f / (1 + f); f is the sum over its intervals of 1 / (1 + positions beyond the
    least that there can be).
    """

    path: str
    source: PositionSource

    def _frequencies(self, leaf: Leaf, searcher: Searcher) -> Floats:
        return frequencies(_Lengths(self.source), leaf, searcher, self.source.least)

    def _scored(self, freqs: Floats, boost: float) -> Matches:
        one = np.float32(1)
        return Matches(freqs > 0, np.float32(boost * self.boost) * (one - one / (one + freqs)))

    def matches(self, leaf: Leaf, searcher: Searcher, boost: float = 1.0) -> Matches:
        return self._scored(self._frequencies(leaf, searcher), boost)

    def explain(self, leaf: Leaf, doc: int, searcher: Searcher, boost: float = 1.0) -> Explanation:
        freqs = self._frequencies(leaf, searcher)
        found = self._scored(freqs, boost)
        if not found.mask[doc]:
            return no_match("no matching intervals")
        value, weight, freq = float(found.dense()[doc]), boost * self.boost, float(freqs[doc])
        parts = [
            explained(weight, "w, weight of this function"),
            explained(1.0, "k, pivot feature value that would give a score contribution equal to w/2"),
            explained(freq, "S, feature value"),
        ]
        text = "Saturation function on interval frequency, computed as w * S / (S + k) from:"
        return explained(value, text, parts)

    def text(self) -> str:
        return f"{self.path}:{self.source.text()}"


# From the JSON to the tree.


@dataclass(slots=True)
class _Rules:
    """Parses the rules for one field. left: how many more may come. analyzed: whose analyzer reads words,
    which in the filter of a rule with `use_field` is that field's, as in Elasticsearch.
    """

    spec: FieldSpec
    context: QueryContext
    analyzed: FieldSpec
    left: int = _RULES_MAX

    def words(self, count: int) -> None:
        """So many are looked for. Errors: SearchError."""
        self.left -= count
        if self.left < 0:
            raise illegal_request(f"[intervals] takes at most {_RULES_MAX} words")

    def rule(self, body: Any, depth: int = 0) -> PositionSource:
        """One rule, {"match": {...}}. Errors: SearchError."""
        self.left -= 1
        if depth > self.context.max_depth or self.left < 0:
            deepest = self.context.max_depth
            raise illegal_request(f"[intervals] takes at most {_RULES_MAX} rules, {deepest} deep")
        if not isinstance(body, Mapping) or len(body) != 1:
            raise malformed("[intervals] expects one rule: an object with one member")
        ((kind, inner),) = body.items()
        reader = _READERS.get(kind)
        if reader is None:
            raise malformed(f"Unknown interval type [{kind}], expecting one of [{', '.join(_READERS)}]")
        if not isinstance(inner, Mapping):
            raise malformed(f"[{kind}] malformed, expected an object")
        clause = Clause(kind, inner, "[{}] unknown field [{}]")
        given = clause.take("filter") if kind in ("match", "all_of", "any_of") else None
        named = inner.get("use_field") if kind == "match" else None
        analyzed = self._named(named) if isinstance(named, str) else None
        source = reader(self, clause, depth)
        clause.done()
        return source if given is None else self._filtered(source, given, analyzed or self.analyzed, depth)

    def _filtered(self, source: PositionSource, body: Any, analyzed: FieldSpec, depth: int) -> PositionSource:
        if not isinstance(body, Mapping) or len(body) != 1:
            raise malformed("[intervals] [filter] expects an object with one member")
        ((relation, inner),) = body.items()
        if relation == "script":
            if not isinstance(inner, Mapping):
                raise malformed("[script] of [filter] expects an object")
            return scripted(source, inner)
        if relation not in RELATIONS:
            raise illegal_request(f"Unknown filter type [{str(relation)[:100]}]")
        inside = _Rules(self.spec, self.context, analyzed, self.left)
        other = inside.rule(inner, depth + 1)
        self.left = inside.left
        return filtered(source, other, str(relation))

    def field(self, clause: Clause) -> tuple[str, FieldSpec]:
        """(path, the field whose analyzer reads words): those of `use_field`, or of the query."""
        named = self._named(clause.string("use_field"))
        return (self.spec.path, self.analyzed) if named is None else (named.path, named)

    def _named(self, path: str | None) -> FieldSpec | None:
        return None if path is None else _text_field(path, self.context)

    def rules(self, clause: Clause, depth: int) -> tuple[PositionSource, ...]:
        bodies = _required(clause, "intervals")
        if not isinstance(bodies, list):
            raise malformed(f"[{clause.kind}] [intervals] must be an array of rules")
        return tuple(self.rule(body, depth + 1) for body in bodies)


def _required(clause: Clause, member: str) -> Any:
    value = clause.take(member)
    if value is None:
        raise illegal_request(f"Required [{member}]")
    return value


def _text_field(path: str, context: QueryContext) -> FieldSpec:
    spec = context.mapping.field(path)
    if spec is None or spec.storage is not Storage.TEXT:
        kind = "unmapped" if spec is None else spec.type
        reason = f"Can only use interval queries on text fields - not on [{path}] which is of type [{kind}]"
        raise context.failed(reason, illegal_argument(reason))
    return spec


def _match(rules: _Rules, clause: Clause, depth: int) -> PositionSource:
    text, (path, spec) = _required(clause, "query"), rules.field(clause)
    if isinstance(text, dict | list):
        clause.refuse("query", text)
    in_order, max_gaps = clause.flag("ordered", False), clause.integer("max_gaps", -1)
    analyzer = clause.string("analyzer")
    graph = graph_of(rules.context.analyzers.analyzer(analyzer or spec.search_analyzer), str(text))
    if graph is not None:
        return together(_sections(rules, path, graph), in_order, max_gaps)
    places = places_of(str(text), spec, rules.context, analyzer)
    rules.words(len(places))
    if sum(len(terms) for _, terms in places) == 1:
        return Term(path, places[0][1][0])
    positions = [-1, *(position for position, _ in places)]
    parts = [
        _place(path, terms, position - before - 1)
        for (position, terms), before in zip(places, positions, strict=False)
    ]
    return together(parts, in_order, max_gaps) if parts else AnyOf(())


def _place(path: str, terms: Sequence[str], left_out: int) -> PositionSource:
    part = any_of([Term(path, term) for term in terms])
    return Extended(part, left_out) if left_out else part


def _sections(rules: _Rules, path: str, graph: TokenGraph) -> tuple[PositionSource, ...]:
    """Where each section of a graph stands: a place, or the words of one of its paths, side by side."""
    parts: list[PositionSource] = []
    for section in graph.sections():
        if section.terms:
            rules.words(1)
            parts.append(_place(path, section.terms, section.gap if parts else 0))
            continue
        found = []
        for steps in paths_of(section, rules.left):
            rules.words(len(steps))
            found.append(together(tuple(_place(path, (step.term,), step.gap) for step in steps), True, 0))
        parts.append(any_of(found))
    return tuple(parts)


def _all_of(rules: _Rules, clause: Clause, depth: int) -> PositionSource:
    ordered, max_gaps = clause.flag("ordered", False), clause.integer("max_gaps", -1)
    return together(rules.rules(clause, depth), ordered, max_gaps)


def _any_of(rules: _Rules, clause: Clause, depth: int) -> PositionSource:
    return any_of(rules.rules(clause, depth))


def _word(rules: _Rules, clause: Clause, member: str, is_pattern: bool = False) -> tuple[str, str]:
    """(path, the text as the field's analyzer writes words)."""
    text = str(_required(clause, member))
    (path, spec), analyzer = rules.field(clause), clause.string("analyzer")
    if is_pattern:
        return path, text
    return path, rules.context.analyzers.analyzer(analyzer or spec.search_analyzer).normalize(text)


def _prefix(rules: _Rules, clause: Clause, depth: int) -> PositionSource:
    path, text = _word(rules, clause, "prefix")
    return ManyTerms(PrefixQuery(path=path, prefix=text), _EXPANSIONS_MAX)


def _wildcard(rules: _Rules, clause: Clause, depth: int) -> PositionSource:
    path, text = _word(rules, clause, "pattern")
    return ManyTerms(WildcardQuery.of(path, text), _EXPANSIONS_MAX)


def _regexp(rules: _Rules, clause: Clause, depth: int) -> PositionSource:
    path, text = _word(rules, clause, "pattern", is_pattern=True)
    if len(text) > rules.context.max_regex_length:
        raise illegal_argument(f"The length of regex [{len(text)}] exceeds [index.max_regex_length]")
    fold = clause.flag("case_insensitive", False)
    clause.ignore("flags", "flags_value", "max_determinized_states")
    Regexp(text, fold, True)
    return ManyTerms(RegexpQuery(path=path, pattern=text, case_insensitive=fold), _EXPANSIONS_MAX)


def _fuzzy(rules: _Rules, clause: Clause, depth: int) -> PositionSource:
    path, text = _word(rules, clause, "term")
    edits = edits_of(clause.word("fuzziness", "AUTO"), text)
    length, swaps = clause.integer("prefix_length", 0), clause.flag("transpositions", True)
    query = FuzzyQuery(
        path=path, term=text, edits=edits, prefix_length=max(length, 0), max_expansions=_EXPANSIONS_MAX,
        transpositions=swaps,
    )  # fmt: skip
    return ManyTerms(query, _EXPANSIONS_MAX)


def _range(rules: _Rules, clause: Clause, depth: int) -> PositionSource:
    path, _ = rules.field(clause)
    low, high = clause.string("gte"), clause.string("lte")
    above, below = clause.string("gt"), clause.string("lt")
    clause.ignore("analyzer")
    for first, second, names in ((low, above, "Either [gte] or [gt]"), (high, below, "Either [lte] or [lt]")):
        if (first is None) == (second is None):
            raise illegal_request(f"{names}, one of them must be provided")
    query = TermRangeQuery(
        path=path,
        low=above if low is None else low,
        high=below if high is None else high,
        with_low=low is not None,
        with_high=high is not None,
    )
    return ManyTerms(query, _EXPANSIONS_MAX)


_READERS: dict[str, Callable[[_Rules, Clause, int], PositionSource]] = {
    "match": _match,
    "any_of": _any_of,
    "all_of": _all_of,
    "prefix": _prefix,
    "wildcard": _wildcard,
    "regexp": _regexp,
    "fuzzy": _fuzzy,
    "range": _range,
}


def _intervals(body: Mapping[str, Any], context: QueryContext, parse: Parse) -> Query:
    path, clause = field_clause("intervals", body, "match")
    rules = {name: clause.take(name) for name in _READERS if name in clause}
    clause.done()
    if len(rules) != 1:
        found = " and ".join(f"[{name}]" for name in rules) or "none"
        raise malformed(f"Only one interval rule can be specified, found {found}")
    if context.mapping.field(path) is None:
        return MatchNoneQuery(reason=f"unmapped field [{path}]", boost=clause.boost, name=clause.name)
    spec = _text_field(path, context)
    source = _Rules(spec, context, spec).rule(rules)
    return IntervalsQuery(path=spec.path, source=source, boost=clause.boost, name=clause.name)


PARSERS: dict[str, ClauseParser] = {"intervals": _intervals}
