"""`combined_fields`: words in several text fields, scored as though the fields were one (BM25F).

The frequency of a word is the sum over the fields of weight times frequency, and so is the length of a
document. A word is as frequent in the index as in the field where most documents have it.

Sources: Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", section 3.6;
Lucene's CombinedFieldQuery.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphdb.search.errors import illegal_argument
from graphdb.search.fields import FieldSpec, Storage
from graphdb.search.leaf_reader import Floats, Leaf
from graphdb.search.query.clause import Clause, ClauseParser, Parse, QueryContext, malformed
from graphdb.search.query.compound import BoolQuery
from graphdb.search.query.explanation import Explanation, explained, no_match
from graphdb.search.query.full_text import expand_fields
from graphdb.search.query.searcher import (
    LENGTHS,
    FieldStatistics,
    Searcher,
    idf,
    idf_explained,
    score_explained,
)
from graphdb.search.query.term_queries import SynonymQuery
from graphdb.search.query.text_queries import (
    Leaves,
    MatchOptions,
    Places,
    combined,
    graph_of,
    graph_words,
    phrase_query,
    places_of,
)
from graphdb.search.query.tree import MatchAllQuery, Matches, MatchNoneQuery, Query, boosted
from graphdb.search.segments.field_builders import encode_lengths
from graphdb.search.similarity import Similarity

__all__ = ["PARSERS", "CombinedFieldsQuery"]


@dataclass(frozen=True, kw_only=True)
class CombinedFieldsQuery(Query):
    """One word, or several that stand for one another. fields are (path, weight); a weight is at least 1."""

    fields: tuple[tuple[str, float], ...]
    terms: tuple[str, ...]

    def scored_by(self) -> Iterable[tuple[str, str]]:
        return [(path, term) for path, _ in self.fields for term in self.terms]

    def by_field(self) -> tuple[SynonymQuery, ...]:
        """What it looks for in each field."""
        return tuple(SynonymQuery(path=path, terms=self.terms) for path, _ in self.fields)

    def _statistics(self, searcher: Searcher) -> FieldStatistics:
        """Of the fields as one. The similarity is that of the first, as in Lucene."""
        each = [(searcher.statistics(path), weight) for path, weight in self.fields]
        total = int(sum(weight * one.total_terms for one, weight in each))
        return FieldStatistics(max(one.doc_count for one, _ in each), total, each[0][0].similarity)

    def _doc_freq(self, searcher: Searcher) -> int:
        return max(searcher.doc_freq(path, term) for path, term in self.scored_by())

    def _frequencies(self, leaf: Leaf) -> Floats:
        freqs = np.zeros(leaf.segment.size, np.float32)
        for (_, weight), query in zip(self.fields, self.by_field(), strict=True):
            freqs += np.float32(weight) * query.frequencies(leaf)
        return freqs

    def _norms(self, leaf: Leaf) -> "np.typing.NDArray[np.uint8]":
        """By document the byte of the length that all fields have together."""
        lengths = np.zeros(leaf.segment.size, np.float32)
        for path, weight in self.fields:
            index = leaf.segment.text(path)
            if index is not None:
                lengths += np.float32(weight) * LENGTHS[index.norms]
        return encode_lengths(np.floor(lengths + 0.5).astype(np.int64))

    def matches(self, leaf: Leaf, searcher: Searcher, boost: float = 1.0) -> Matches:
        freqs = self._frequencies(leaf)
        docs = np.flatnonzero(freqs)
        scores = np.zeros(leaf.segment.size, np.float32)
        if len(docs):
            statistics = self._statistics(searcher)
            weight = statistics.weight(
                boost * self.boost, idf(self._doc_freq(searcher), statistics.doc_count)
            )
            norms = searcher.keep_of(leaf, ("norms", self.fields), lambda: self._norms(leaf))
            saturation = np.float32(1) + freqs[docs] * statistics.inverse_norms()[norms[docs]]
            scores[docs] = weight - weight / saturation
        return Matches(freqs > 0, scores)

    def explain(self, leaf: Leaf, doc: int, searcher: Searcher, boost: float = 1.0) -> Explanation:
        freq = float(self._frequencies(leaf)[doc])
        if not freq:
            return no_match()
        statistics = self._statistics(searcher)
        inner = score_explained(
            boost * self.boost,
            idf_explained(self._doc_freq(searcher), statistics.doc_count),
            explained(freq, "freq, occurrences of term within document"),
            int(self._norms(leaf)[doc]),
            statistics,
        )
        what = f"weight({self.text()} in {leaf.shown_number(doc)}), result of:"
        return explained(inner["value"], what, [inner])

    def text(self) -> str:
        fields = " ".join(path if weight == 1 else f"{path}^{weight}" for path, weight in self.fields)
        return f"CombinedFieldQuery(({fields})({' '.join(self.terms)}))"


def _combined_fields(body: Mapping[str, Any], context: QueryContext, parse: Parse) -> Query:
    clause = Clause("combined_fields", body, "[{}] unknown field [{}]")
    value, fields = clause.take("query"), clause.take("fields")
    options = MatchOptions(
        operator=clause.choice("operator", "or", ("or", "and")),
        minimum=clause.string("minimum_should_match"),
        zero_terms=clause.choice("zero_terms_query", "none", ("none", "all")),
        synonyms_as_phrases=clause.flag("auto_generate_synonyms_phrase_query", True),
    )
    clause.done()
    if value is None or fields is None:
        raise illegal_argument("Required [query, fields]" if value is None else "Required [fields]")
    if isinstance(value, dict | list):
        clause.refuse("query", value)
    if not isinstance(fields, list) or not all(isinstance(field, str) for field in fields):
        raise malformed("[combined_fields] failed to parse field [fields]")
    weighted = _weighted(fields, context)
    if not weighted:
        return MatchNoneQuery(reason="unmapped fields", boost=clause.boost, name=clause.name)
    text = str(value).lower() if isinstance(value, bool) else str(value)
    paths = tuple((spec.path, weight) for spec, weight in weighted)
    analyzer = context.analyzers.analyzer(weighted[0][0].search_analyzer)
    leaves = _CombinedLeaves(paths, options)
    graph = graph_of(analyzer, text)
    if graph is not None:
        made = Leaves(leaves.word, leaves.phrase)
        found = graph_words(graph, options, context.max_clause_count, made)
        return boosted(found, clause.boost, clause.name)
    words = [leaves.word(terms) for _, terms in places_of(text, weighted[0][0], context, None)]
    if not words:
        nothing: Query = MatchAllQuery() if options.zero_terms == "all" else MatchNoneQuery()
        return boosted(nothing, clause.boost, clause.name)
    return boosted(combined(words, options), clause.boost, clause.name)


@dataclass(frozen=True, slots=True)
class _CombinedLeaves:
    """What a place and a phrase become: a phrase is looked for in each field by itself."""

    fields: tuple[tuple[str, float], ...]
    options: MatchOptions

    def word(self, terms: tuple[str, ...]) -> Query:
        return CombinedFieldsQuery(fields=self.fields, terms=terms)

    def phrase(self, places: Places) -> Query:
        if len(places) == 1:
            return self.word(places[0][1])
        found = (boosted(phrase_query(path, places, self.options), weight) for path, weight in self.fields)
        return BoolQuery(should=tuple(found))


def _weighted(fields: list[str], context: QueryContext) -> list[tuple[FieldSpec, float]]:
    """The text fields that are meant, with their weights."""
    boosts, _ = expand_fields(fields, context)
    found: dict[str, tuple[FieldSpec, float]] = {}
    for path, weight in boosts.items():
        spec = context.mapping.field(path)
        if spec is None:
            continue
        if spec.storage is not Storage.TEXT:
            raise context.failed(
                f"Field [{path}] of type [{spec.type}] does not support [combined_fields] queries"
            )
        if not isinstance(spec.options["scores_by"], Similarity):
            raise context.failed("[combined_fields] queries can only be used with the similarity BM25")
        if weight < 1:
            raise context.failed("[combined_fields] requires each field's weight to be at least 1")
        found[spec.path] = spec, weight
    if len({spec.search_analyzer for spec, _ in found.values()}) > 1:
        raise context.failed("All fields in [combined_fields] query must have the same search analyzer")
    return list(found.values())


PARSERS: dict[str, ClauseParser] = {"combined_fields": _combined_fields}
