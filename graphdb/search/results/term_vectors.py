"""The terms of one document by field, with their places and statistics: what `_termvectors` shows.

They are made anew from the source, by the analyzers that indexed it.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from graphdb.search.deadline import checkpoint
from graphdb.search.errors import illegal_argument
from graphdb.search.fields import FieldSpec, Storage
from graphdb.search.mapping.value_formats import term_of
from graphdb.search.query import QueryContext, Searcher
from graphdb.search.results.field_values import values_at

__all__ = ["TermChoice", "VectorsAsked", "term_vectors"]

_TEXT_MAX = 1_000_000  # characters of one document
_BATCH = 1_000  # terms between two looks at the clock


@dataclass(frozen=True, slots=True)
class TermChoice:
    """Which terms are shown: those with the highest frequency * idf, of those within the bounds."""

    max_num_terms: int = 25
    min_term_freq: int = 1
    max_term_freq: int = 2**31 - 1
    min_doc_freq: int = 1
    max_doc_freq: int = 2**31 - 1
    min_word_length: int = 0
    max_word_length: int = 0  # 0: any

    def allows(self, term: str, freq: int, doc_freq: int) -> bool:
        return (
            self.min_term_freq <= freq <= self.max_term_freq
            and self.min_doc_freq <= doc_freq <= self.max_doc_freq
            and len(term) >= self.min_word_length
            and (not self.max_word_length or len(term) <= self.max_word_length)
        )


@dataclass(frozen=True, slots=True)
class VectorsAsked:
    """fields: names or patterns, None: every text field. analyzers: by field, in the place of its own."""

    fields: tuple[str, ...] | None = None
    offsets: bool = True
    positions: bool = True
    field_statistics: bool = True
    term_statistics: bool = False
    analyzers: Mapping[str, str] = field(default_factory=dict)
    choice: TermChoice | None = None


Place = tuple[int, int, int]
"""Position, start and end; offsets count UTF-16 units."""


def term_vectors(
    source: Mapping[str, Any], context: QueryContext, searcher: Searcher, asked: VectorsAsked
) -> dict[str, Any]:
    """`term_vectors` of an answer: by path, those without terms left out. searcher: for the statistics.

    Errors: illegal_argument_exception.
    """
    shown: dict[str, Any] = {}
    left = _TEXT_MAX
    for spec in _fields(context, asked):
        values = [str(value) for value in _values(source, spec)]
        left -= sum(map(len, values))
        if left < 0:
            raise illegal_argument(f"term vectors are made of at most [{_TEXT_MAX}] characters of a document")
        places = _places(values, spec, context, asked.analyzers.get(spec.path))
        if places:
            shown[spec.path] = _vector(spec.path, places, searcher, asked)
    return shown


def _fields(context: QueryContext, asked: VectorsAsked) -> list[FieldSpec]:
    names = ("*",) if asked.fields is None else asked.fields
    kinds = ("text",) if asked.fields is None else ("text", "keyword")
    found = {spec.path: spec for name in names for spec in context.mapping.match(name)}
    return [spec for _, spec in sorted(found.items()) if spec.type in kinds and spec.indexed]


def _values(source: Mapping[str, Any], spec: FieldSpec) -> Iterator[Any]:
    found = (value for path in spec.value_paths for value in values_at(source, path))
    return (value for value in found if value is not None and not isinstance(value, dict | list))


def _places(
    values: Sequence[str], spec: FieldSpec, context: QueryContext, analyzer_name: str | None
) -> dict[str, list[Place]]:
    """By term, in the order of the document."""
    places: dict[str, list[Place]] = {}
    position = offset = 0
    for value in values:
        units = list(accumulate((1 + (ord(one) > 0xFFFF) for one in value), initial=offset))
        if spec.storage is not Storage.TEXT and analyzer_name is None:
            term = str(term_of(spec, value))
            places.setdefault(term, []).append((position, units[0], units[-1]))
            position, offset = position + 1, units[-1] + 1
            continue
        analyzer = context.analyzers.analyzer(analyzer_name or spec.analyzer)
        tokens, end = analyzer.with_end(value)
        for token in tokens:
            place = (position + token.position, units[token.start_offset], units[token.end_offset])
            places.setdefault(token.term, []).append(place)
        position, offset = position + end + analyzer.position_gap, units[-1] + 1
    return places


def _vector(
    path: str, places: Mapping[str, list[Place]], searcher: Searcher, asked: VectorsAsked
) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    if asked.field_statistics:
        counts = searcher.statistics(path)
        shown["field_statistics"] = {
            "sum_doc_freq": _postings(searcher, path),
            "doc_count": counts.doc_count,
            "sum_ttf": counts.total_terms,
        }
    scores = None if asked.choice is None else _chosen(path, places, searcher, asked.choice)
    terms: dict[str, Any] = {}
    for number, term in enumerate(sorted(places)):
        if number % _BATCH == 0:
            checkpoint()
        if scores is None or term in scores:
            terms[term] = _term(path, term, places[term], searcher, asked)
            if scores is not None:
                terms[term]["score"] = scores[term]
    return {**shown, "terms": terms}


def _term(
    path: str, term: str, places: Sequence[Place], searcher: Searcher, asked: VectorsAsked
) -> dict[str, Any]:
    told: dict[str, Any] = {}
    if asked.term_statistics:
        doc_freq, total = _frequencies(searcher, path, term)
        if doc_freq:
            told |= {"doc_freq": doc_freq, "ttf": total}
    told["term_freq"] = len(places)
    if asked.positions or asked.offsets:
        told["tokens"] = [
            ({"position": position} if asked.positions else {})
            | ({"start_offset": start, "end_offset": end} if asked.offsets else {})
            for position, start, end in places
        ]
    return told


def _chosen(
    path: str, places: Mapping[str, list[Place]], searcher: Searcher, choice: TermChoice
) -> dict[str, float]:
    """The scores of the best terms."""
    doc_count = searcher.statistics(path).doc_count
    scored = []
    for number, (term, found) in enumerate(places.items()):
        if number % _BATCH == 0:
            checkpoint()
        doc_freq = _frequencies(searcher, path, term)[0]
        if doc_freq and choice.allows(term, len(found), doc_freq):
            idf = math.log((doc_count + 1) / (doc_freq + 1)) + 1
            scored.append((-len(found) * idf, term))
    return {term: -score for score, term in sorted(scored)[: choice.max_num_terms]}


def _frequencies(searcher: Searcher, path: str, term: str) -> tuple[int, int]:
    """Documents that have it, and how often it is in all of them; deleted ones count, as in Lucene."""
    doc_freq = total = 0
    for leaf in searcher.leaves:
        if (text := leaf.segment.text(path)) is not None:
            if (number := text.dictionary.find(term)) >= 0:
                docs, freqs = text.postings(number)
                doc_freq, total = doc_freq + len(docs), total + int(freqs.sum())
            continue
        terms = leaf.segment.terms(path)
        number = -1 if terms is None else terms.dictionary.find(term)
        if terms is not None and number >= 0:
            count = len(terms.postings(number))
            doc_freq, total = doc_freq + count, total + count
    return doc_freq, total


def _postings(searcher: Searcher, path: str) -> int:
    """The documents of all terms of a field."""
    count = 0
    for leaf in searcher.leaves:
        if (text := leaf.segment.text(path)) is not None:
            arrays = text.arrays()
            if arrays is not None:
                count += len(arrays.docs)
                continue
            for number in range(len(text.dictionary)):
                if number % _BATCH == 0:
                    checkpoint()
                count += len(text.postings(number)[0])
        elif (terms := leaf.segment.terms(path)) is not None:
            count += len(terms.ordinals.terms)
    return count
