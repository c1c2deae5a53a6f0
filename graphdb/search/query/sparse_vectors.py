"""`sparse_vector` and `weighted_tokens`: documents by the product of their features with those of a query."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphdb.search.errors import illegal_argument, illegal_request
from graphdb.search.leaf_reader import Doubles, Ints, Leaf
from graphdb.search.mapping.weighted_features import feature_weights
from graphdb.search.query.clause import Clause, ClauseParser, Parse, QueryContext, malformed
from graphdb.search.query.explanation import Explanation, explained, no_match
from graphdb.search.query.searcher import Searcher
from graphdb.search.query.term_level import unmapped
from graphdb.search.query.tree import SCORE_MAX, Matches, MatchNoneQuery, Query, RewrittenQuery, boosted

__all__ = ["PARSERS", "SparseVectorQuery"]

TOKENS_MAX = 4_096
"""Of a query, as `max_clause_count` is of others."""


@dataclass(frozen=True, kw_only=True)
class SparseVectorQuery(Query):
    """The sum, over the tokens that a document has too, of weight times weight.

    Source: Lucene's FeatureField.newLinearQuery.
    """

    path: str
    tokens: tuple[tuple[str, float], ...]

    def matches(self, leaf: Leaf, searcher: Searcher, boost: float = 1.0) -> Matches:
        sums, counts = np.zeros(leaf.segment.size), np.zeros(leaf.segment.size, np.int32)
        self.accumulate(leaf, searcher, boost, sums, counts)
        return Matches(counts > 0, sums.astype(np.float32))

    def accumulate(self, leaf: Leaf, searcher: Searcher, boost: float, scores: Doubles, counts: Ints) -> None:
        sums, found = np.zeros(leaf.segment.size), np.zeros(leaf.segment.size, np.bool_)
        for token, weight in self.tokens:
            docs, weights = feature_weights(leaf.segment, self.path, token)
            sums[docs] += (np.float32(boost * self.boost * weight) * weights.astype(np.float32)).astype(float)
            found[docs] = True
        scores += sums
        counts += found

    def explain(self, leaf: Leaf, doc: int, searcher: Searcher, boost: float = 1.0) -> Explanation:
        parts = []
        for token, weight in self.tokens:
            docs, weights = feature_weights(leaf.segment, self.path, token)
            place = int(np.searchsorted(docs, doc))
            if place < len(docs) and docs[place] == doc:
                factor, own = float(boost * self.boost * weight), float(weights[place])
                what = f"Linear function on the {self.path} field for the {token} feature, computed as w * S"
                details = [
                    explained(factor, "w, weight of this function"),
                    explained(own, "S, feature value"),
                ]
                parts.append(explained(factor * own, f"{what} from:", details))
        if not parts:
            return no_match()
        return explained(float(self.matches(leaf, searcher, boost).dense()[doc]), "sum of:", parts)

    def text(self) -> str:
        return f"{self.path}:{{{' '.join(f'{token}^{weight}' for token, weight in self.tokens)}}}"


def _sparse_vector(body: Mapping[str, Any], context: QueryContext, parse: Parse) -> Query:
    clause = Clause("sparse_vector", body, "[{}] unknown field [{}]")
    path, vector = clause.string("field"), clause.take("query_vector")
    if "inference_id" in clause or "query" in clause:
        raise illegal_request(
            "[sparse_vector] runs no model here: give the [query_vector] that yours has made"
        )
    prune, pruning = clause.flag("prune", False), clause.take("pruning_config")
    clause.done()
    if path is None:
        raise illegal_request("Required [field]")
    if vector is None:
        raise illegal_request("[sparse_vector] requires one of [query_vector] or [inference_id]")
    if pruning is not None and not prune:
        raise illegal_argument(
            "[sparse_vector] field [pruning_config] should only be set if [prune] is set to true"
        )
    return boosted(
        _on_field("sparse_vector", path, vector, prune, pruning, context), clause.boost, clause.name
    )


def _weighted_tokens(body: Mapping[str, Any], context: QueryContext, parse: Parse) -> Query:
    fields = [name for name in body if name not in ("boost", "_name")]
    if len(fields) != 1 or not isinstance(body[fields[0]], Mapping):
        raise malformed("[weighted_tokens] takes one field, with [tokens]")
    own = {name: value for name, value in body.items() if name != fields[0]}
    clause = Clause("weighted_tokens", {**own, **body[fields[0]]})
    vector, pruning = clause.needed("tokens"), clause.take("pruning_config")
    clause.done()
    query = _on_field("weighted_tokens", fields[0], vector, pruning is not None, pruning, context)
    return boosted(query, clause.boost, clause.name)


def _on_field(kind: str, path: str, vector: Any, prune: bool, pruning: Any, context: QueryContext) -> Query:
    tokens = _tokens(kind, vector)
    spec = context.mapping.field(path)
    if spec is None:
        return unmapped(path)
    if spec.type not in ("sparse_vector", "rank_features"):
        raise illegal_argument(f"field [{path}] must be type [sparse_vector] but is type [{spec.type}]")
    if not prune:
        return SparseVectorQuery(path=spec.path, tokens=tokens)
    return PrunedVectorQuery(path=spec.path, tokens=tokens, **_pruning(pruning or {}))


def _tokens(kind: str, vector: Any) -> tuple[tuple[str, float], ...]:
    if isinstance(vector, list):  # as `weighted_tokens` takes it, too
        vector = {name: weight for one in vector if isinstance(one, dict) for name, weight in one.items()}
    if not isinstance(vector, Mapping) or not vector:
        raise illegal_request(f"[{kind}] takes a vector of weights by token")
    if len(vector) > TOKENS_MAX:
        raise illegal_argument(f"[{kind}] takes at most {TOKENS_MAX} tokens, got [{len(vector)}]")
    for token, weight in vector.items():
        if (
            isinstance(weight, bool)
            or not isinstance(weight, int | float)
            or not 0 < weight <= SCORE_MAX**0.5
        ):
            raise illegal_argument(
                f"weight must be a positive number, got: [{str(weight)[:50]}] of [{token[:50]}]"
            )
    return tuple((token, float(weight)) for token, weight in vector.items())


# `prune`: without the tokens that are frequent in the index and light in the query.


@dataclass(frozen=True, kw_only=True)
class PrunedVectorQuery(RewrittenQuery):
    """The tokens that are worth their postings, or (others) those that are not.

    A token is kept where fewer documents have it than freq_ratio times the mean, or where its weight is more
    than weight_ratio of the greatest. The mean counts a token once for each segment that has it, as there.
    Source: Elasticsearch's TokenPruningConfig and WeightedTokensUtils.
    """

    path: str
    tokens: tuple[tuple[str, float], ...]
    freq_ratio: float
    weight_ratio: float
    others: bool

    def scored_by(self) -> Iterable[tuple[str, str]]:
        return [(self.path, token) for token, _ in self.tokens]

    def rewritten(self, searcher: Searcher) -> Query:
        """What is left of it in this searcher."""
        return searcher.keep(("pruned", self), lambda: self._pruned(searcher))

    def _pruned(self, searcher: Searcher) -> Query:
        statistics, distinct = searcher.statistics(self.path), sum(searcher.ask(_Distinct(self.path)))
        if not statistics.doc_count or not distinct:
            return MatchNoneQuery(reason="no document has the field")
        mean = statistics.total_terms / statistics.doc_count / distinct
        heaviest = max(weight for _, weight in self.tokens)
        kept = []
        for token, weight in self.tokens:
            count = searcher.doc_freq(self.path, token)
            is_rare = count / statistics.doc_count < self.freq_ratio * mean
            is_kept = count > 0 and (is_rare or weight > self.weight_ratio * heaviest)
            if is_kept != self.others:
                kept.append((token, weight))
        return SparseVectorQuery(path=self.path, tokens=tuple(kept))

    def text(self) -> str:
        return SparseVectorQuery(path=self.path, tokens=self.tokens).text()


@dataclass(frozen=True, slots=True)
class _Distinct:
    """How many tokens the segments of a shard have, each counted once in a segment."""

    path: str

    def answered(self, searcher: Searcher) -> int:
        return sum(len(dictionary) for _, dictionary in searcher.dictionaries(self.path))


def _pruning(config: Any) -> dict[str, Any]:
    if not isinstance(config, Mapping):
        raise malformed("[pruning_config] must be an object")
    clause = Clause("pruning_config", config, "[{}] unknown field [{}]")
    freq_ratio = clause.number("tokens_freq_ratio_threshold", 5.0)
    weight_ratio = clause.number("tokens_weight_threshold", 0.4)
    others = clause.flag("only_score_pruned_tokens", False)
    clause.done()
    if not 1 <= freq_ratio <= 100:
        raise illegal_argument(
            f"[tokens_freq_ratio_threshold] must be between [1] and [100], got [{freq_ratio}]"
        )
    if not 0 <= weight_ratio <= 1:
        raise illegal_argument("[tokens_weight_threshold] must be between 0 and 1")
    return {"freq_ratio": freq_ratio, "weight_ratio": weight_ratio, "others": others}


PARSERS: dict[str, ClauseParser] = {"sparse_vector": _sparse_vector, "weighted_tokens": _weighted_tokens}
