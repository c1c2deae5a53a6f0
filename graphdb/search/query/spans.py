"""Span queries: terms near to each other, in or outside of others, scored by how often and how closely.

Source: Lucene's package `queries.spans`. A span query below another has no score of its own.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphdb.search.deadline import checkpoint
from graphdb.search.errors import illegal_argument, illegal_request
from graphdb.search.fields import Storage
from graphdb.search.leaf_reader import Bools, Floats, Leaf
from graphdb.search.query.clause import Clause, ClauseParser, Parse, QueryContext, field_clause, malformed
from graphdb.search.query.dictionary_queries import DictionaryQuery, FuzzyQuery
from graphdb.search.query.explanation import Explanation, explained, no_match
from graphdb.search.query.near_terms import TermsNear
from graphdb.search.query.other_scores import otherwise_explained
from graphdb.search.query.positions import (
    AnyOf,
    ManyTerms,
    OfPart,
    OfParts,
    PositionLists,
    PositionSource,
    Span,
    Spans,
    Term,
    check_size,
    has_end_after,
    has_inside,
    smallest_windows,
    terms_near,
    terms_of,
)
from graphdb.search.query.rewrites import ExpandedQuery
from graphdb.search.query.searcher import Searcher, idf, idf_explained, score_explained
from graphdb.search.query.term_queries import field_scores, of_terms
from graphdb.search.query.tree import Matches, MatchNoneQuery, Query

__all__ = ["PARSERS", "AfterGap", "Gap", "Near", "SpanQuery", "frequencies"]

_BATCH = 256  # documents between two looks at the clock


def frequencies(source: PositionSource, leaf: Leaf, searcher: Searcher, base: int) -> Floats:
    """By document the sum over its spans of 1 / (1 + slack - base), 0 where there are none."""
    docs = np.flatnonzero(source.mask(leaf, searcher) & leaf.live).astype(np.int32)
    lists = PositionLists(leaf, searcher, docs)
    freqs = np.zeros(leaf.segment.size, np.float32)
    if (near := source.near()) is not None:
        freqs[docs] = near.frequencies(lists, base)
        return freqs
    for row, doc in enumerate(docs.tolist()):
        if row % _BATCH == 0:
            checkpoint()
        freqs[doc] = sum(1.0 / (1 + max(slack - base, 0)) for _, _, slack in source.spans(lists, row))
    return freqs


# The kinds of spans.


@dataclass(frozen=True, slots=True)
class Gap(PositionSource):
    """Stands in an ordered Near for so many positions of whatever."""

    size: int

    def mask(self, leaf: Leaf, searcher: Searcher) -> Bools:
        return np.ones(leaf.segment.size, np.bool_)

    def spans(self, lists: PositionLists, row: int) -> Spans:
        return []

    @property
    def least(self) -> int:
        return self.size

    def text(self) -> str:
        return f"SpanGap({self.size})"


@dataclass(frozen=True, slots=True)
class AfterGap(OfPart):
    """The spans with so many positions of whatever before them."""

    size: int

    def spans(self, lists: PositionLists, row: int) -> Spans:
        found = self.part.spans(lists, row)
        return [(start - self.size, end, slack) for start, end, slack in found if start >= self.size]

    @property
    def least(self) -> int:
        return self.part.least + self.size

    def text(self) -> str:
        return f"spanNear([SpanGap({self.size}), {self.part.text()}], 0, true)"


@dataclass(frozen=True, slots=True)
class Near(OfParts):
    """One span of each part, at most slop positions apart in all. slack: if ordered the positions between
    them, else the length.
    """

    slop: int
    in_order: bool

    def near(self) -> TermsNear | None:
        between_max = min(self.slop, 2**31 - 1)
        return terms_near(
            self.parts, in_order=self.in_order, between_max=between_max, by_length=not self.in_order
        )

    def spans(self, lists: PositionLists, row: int) -> Spans:
        found = [part.spans(lists, row) for part in self.parts]
        if not all(own or isinstance(part, Gap) for own, part in zip(found, self.parts, strict=True)):
            return []
        return sorted(self._ordered(found) if self.in_order else self._unordered(found))

    def _ordered(self, found: list[Spans]) -> Iterator[Span]:
        """From each span of the first part the next one of each other part; none goes back."""
        at = [0] * len(found)
        for start, end, _ in found[0]:
            last, between = end, 0
            for number, part in enumerate(self.parts[1:], 1):
                if isinstance(part, Gap):
                    last += part.size
                    continue
                own = found[number]
                while at[number] < len(own) and own[at[number]][0] < last:
                    at[number] += 1
                if at[number] == len(own):
                    return
                between += own[at[number]][0] - last
                last = own[at[number]][1]
            if between <= self.slop:
                yield start, last, between

    def _unordered(self, found: list[Spans]) -> Iterator[Span]:
        """The part whose span starts first goes on."""
        widths = [[(start, end, end - start) for start, end, _ in spans] for spans in found]
        for start, end, taken in smallest_windows(widths):
            if end - start - taken <= self.slop:
                yield start, end, end - start

    def text(self) -> str:
        inner = ", ".join(part.text() for part in self.parts)
        return f"spanNear([{inner}], {self.slop}, {str(self.in_order).lower()})"


@dataclass(frozen=True, slots=True)
class First(OfPart):
    """The spans that end at a position or before."""

    end: int

    def spans(self, lists: PositionLists, row: int) -> Spans:
        return [span for span in self.part.spans(lists, row) if span[1] <= self.end]

    def text(self) -> str:
        return f"spanFirst({self.part.text()}, {self.end})"


@dataclass(frozen=True, slots=True)
class Not(OfPart):
    """The spans of one source that are not near to a span of the other: not within so many positions."""

    exclude: PositionSource
    before: int = 0
    after: int = 0

    def spans(self, lists: PositionLists, row: int) -> Spans:
        found = self.part.spans(lists, row)
        reaches = ((end + self.after, start - self.before) for start, end, _ in found)
        near = has_end_after(self.exclude.spans(lists, row), reaches)
        return [span for span, excluded in zip(found, near, strict=True) if not excluded]

    def sources(self) -> tuple[PositionSource, ...]:
        return self.part, self.exclude

    def sought(self) -> tuple[PositionSource, ...]:
        return (self.part,)

    def text(self) -> str:
        return f"spanNot({self.part.text()}, {self.exclude.text()}, {self.before}, {self.after})"


@dataclass(frozen=True, slots=True)
class Enclosing(PositionSource):
    """The spans of big that one of little is in (inner False), or those of little that are in one of big."""

    big: PositionSource
    little: PositionSource
    inner: bool

    def mask(self, leaf: Leaf, searcher: Searcher) -> Bools:
        return self.big.mask(leaf, searcher) & self.little.mask(leaf, searcher)

    def spans(self, lists: PositionLists, row: int) -> Spans:
        big, little = self.big.spans(lists, row), self.little.spans(lists, row)
        found = little if self.inner else big
        if self.inner:
            kept = has_end_after(big, ((start + 1, end - 1) for start, end, _ in little))
        else:
            kept = has_inside(little, ((start, end) for start, end, _ in big))
        return [span for span, good in zip(found, kept, strict=True) if good]

    @property
    def least(self) -> int:
        return (self.little if self.inner else self.big).least

    def sources(self) -> tuple[PositionSource, ...]:
        return self.big, self.little

    def text(self) -> str:
        name = "SpanWithin" if self.inner else "SpanContain"
        return f"{name}({self.big.text()}, {self.little.text()})"


# The query, scored as a term whose frequency is the sum over its spans of 1 / (1 + slack).


@dataclass(frozen=True, kw_only=True)
class SpanQuery(Query):
    """path: the field whose lengths and statistics count. A pattern stands for its terms."""

    path: str
    source: PositionSource

    def __post_init__(self) -> None:
        check_size(self.source)

    def scored_by(self) -> Iterable[tuple[str, str]]:
        return [(term.path, term.term) for term in self._terms()]

    def _terms(self) -> list[Term]:
        return list(dict.fromkeys(one for one in terms_of(self.source) if isinstance(one, Term)))

    def _every(self, searcher: Searcher) -> list[tuple[str, str]]:
        """Its terms that there may be, those of patterns too."""
        every = dict.fromkeys((term.path, term.term) for term in self._terms())
        for pattern in (one for one in terms_of(self.source) if isinstance(one, ManyTerms)):
            terms = {term for part in searcher.ask(_TermsOf(pattern)) for term in part}
            every |= dict.fromkeys((pattern.query.path, term) for term in sorted(terms))
        return list(every)

    def _known(self, searcher: Searcher) -> list[int]:
        """How many documents have each of its terms that there are."""
        return [count for count in (searcher.doc_freq(*one) for one in self._every(searcher)) if count]

    def _idf(self, searcher: Searcher) -> np.float32:
        count = searcher.statistics(self.path).doc_count
        return np.float32(sum(float(idf(n, count)) for n in self._known(searcher)))

    def matches(self, leaf: Leaf, searcher: Searcher, boost: float = 1.0) -> Matches:
        freqs = frequencies(self.source, leaf, searcher, 0)
        terms = self._every(searcher)
        scorer = of_terms(searcher, self.path, terms, boost * self.boost, lambda: self._idf(searcher))
        return field_scores(leaf, self.path, freqs, scorer)

    def explain(self, leaf: Leaf, doc: int, searcher: Searcher, boost: float = 1.0) -> Explanation:
        freq, index = float(frequencies(self.source, leaf, searcher, 0)[doc]), leaf.segment.text(self.path)
        if not freq or index is None:
            return no_match("no matching spans")
        if searcher.other_similarity(self.path) is not None:
            value, norm = float(self.matches(leaf, searcher, boost).dense()[doc]), int(index.norms[doc])
            return otherwise_explained(searcher, self.path, value, freq, norm, boost * self.boost)
        statistics = searcher.statistics(self.path)
        parts = [idf_explained(count, statistics.doc_count) for count in self._known(searcher)]
        inner = score_explained(
            boost * self.boost,
            explained(float(self._idf(searcher)), "idf, sum of:", parts),
            explained(freq, f"phraseFreq={freq}"),
            int(index.norms[doc]),
            statistics,
        )
        text = f"weight({self.text()} in {leaf.shown_number(doc)}) [PerFieldSimilarity], result of:"
        return explained(inner["value"], text, [inner])

    def text(self) -> str:
        return self.source.text()


@dataclass(frozen=True, slots=True)
class _TermsOf:
    """The terms of a shard that a pattern stands for."""

    pattern: ManyTerms

    def answered(self, searcher: Searcher) -> set[str]:
        return {term for leaf in searcher.leaves for term in self.pattern.terms(leaf, searcher)}


# From the JSON to the tree.


def _inner(given: Any, context: QueryContext, parse: Parse, owner: str, member: str) -> SpanQuery:
    """A span query within another."""
    query = parse(given, context)
    if not isinstance(query, SpanQuery):
        raise malformed(f"{owner} [{member}] must be of type span query")
    if query.boost != 1.0:
        raise malformed(
            f"{owner} [{member}] as a nested span clause can't have non-default boost value [{query.boost}]"
        )
    return query


def _one_field(parts: Iterable[SpanQuery]) -> str:
    paths = {part.path for part in parts if part.path}
    if len(paths) > 1:
        raise illegal_argument("Clauses must have same field.")
    return next(iter(paths), "")


def _span_term(body: Mapping[str, Any], context: QueryContext, parse: Parse) -> Query:
    path, clause = field_clause("span_term", body, "value")
    value = clause.take("value", clause.take("term"))
    clause.done()
    if value is None:
        raise illegal_request("value cannot be null")
    if isinstance(value, dict | list):
        clause.refuse("value", value)
    spec = context.mapping.field(path)
    path = path if spec is None else spec.path
    source = Term(path, str(value).lower() if isinstance(value, bool) else str(value))
    return SpanQuery(path=path, source=source, boost=clause.boost, name=clause.name)


def _clauses(clause: Clause, context: QueryContext, parse: Parse, gaps: bool) -> list[SpanQuery]:
    given = clause.take("clauses", [])
    bodies = given if isinstance(given, list) else [given]
    if not bodies:
        raise malformed(f"{clause.kind} must include [clauses]")
    parts: list[SpanQuery] = []
    for number, body in enumerate(bodies):
        if number & (number - 1) == 0:  # as often as their number has doubled
            check_size(*(part.source for part in parts))
        if gaps and isinstance(body, Mapping) and list(body) == ["span_gap"]:
            parts.append(_gap(body["span_gap"]))
        else:
            parts.append(_inner(body, context, parse, clause.kind, "clauses"))
    return parts


def _gap(body: Any) -> SpanQuery:
    """Its field says nothing that its neighbours do not."""
    if not isinstance(body, Mapping) or len(body) != 1:
        raise malformed("[span_gap] requires a field with the width of the gap")
    (width,) = body.values()
    if isinstance(width, bool) or not isinstance(width, int) or width < 0:
        raise malformed("[span_gap] requires a width that is a whole number, not negative")
    return SpanQuery(path="", source=Gap(width))


def _span_near(body: Mapping[str, Any], context: QueryContext, parse: Parse) -> Query:
    clause = Clause("span_near", body)
    slop, in_order = clause.integer("slop", 0), clause.flag("in_order", True)
    parts = _clauses(clause, context, parse, gaps=True)
    clause.done()
    gaps = [isinstance(part.source, Gap) for part in parts]
    if gaps[0] or gaps[-1] or (any(gaps) and not in_order):
        raise illegal_argument("[span_gap] must stand between two clauses of an ordered [span_near]")
    path = _one_field(parts)
    source = parts[0].source
    if len(parts) > 1:
        source = Near(tuple(part.source for part in parts), slop, in_order)
    return SpanQuery(path=path, source=source, boost=clause.boost, name=clause.name)


def _span_or(body: Mapping[str, Any], context: QueryContext, parse: Parse) -> Query:
    clause = Clause("span_or", body)
    parts = _clauses(clause, context, parse, gaps=False)
    clause.done()
    source = AnyOf(tuple(part.source for part in parts))
    return SpanQuery(path=_one_field(parts), source=source, boost=clause.boost, name=clause.name)


def _span_first(body: Mapping[str, Any], context: QueryContext, parse: Parse) -> Query:
    clause = Clause("span_first", body)
    if "match" not in clause:
        raise malformed("spanFirst must have [match] span query clause")
    part = _inner(clause.take("match"), context, parse, "spanFirst", "match")
    if "end" not in clause:
        raise malformed("spanFirst must have [end] set for it")
    end = clause.integer("end", 0)
    clause.done()
    if end < 0:
        raise illegal_argument("parameter [end] needs to be positive.")
    return SpanQuery(path=part.path, source=First(part.source, end), boost=clause.boost, name=clause.name)


def _span_not(body: Mapping[str, Any], context: QueryContext, parse: Parse) -> Query:
    clause = Clause("span_not", body)
    parts = []
    for member in ("include", "exclude"):
        if member not in clause:
            raise malformed(f"span_not must have [{member}] span query clause")
        parts.append(_inner(clause.take(member), context, parse, "span_not", member))
    around = "dist" in clause
    if around and ("pre" in clause or "post" in clause):
        raise malformed("span_not can either use [dist] or [pre] & [post] (or none)")
    distance = clause.integer("dist", 0)
    before, after = clause.integer("pre", distance), clause.integer("post", distance)
    clause.done()
    path, (part, exclude) = _one_field(parts), (one.source for one in parts)
    source = Not(part, exclude, max(before, 0), max(after, 0))
    return SpanQuery(path=path, source=source, boost=clause.boost, name=clause.name)


def _enclosing(kind: str, inner: bool) -> ClauseParser:
    def parse_it(body: Mapping[str, Any], context: QueryContext, parse: Parse) -> Query:
        clause = Clause(kind, body)
        parts = []
        for member in ("big", "little"):
            if member not in clause:
                raise illegal_argument(f"inner clause [{member}] cannot be null.")
            parts.append(_inner(clause.take(member), context, parse, kind, member))
        clause.done()
        source = Enclosing(parts[0].source, parts[1].source, inner)
        return SpanQuery(path=_one_field(parts), source=source, boost=clause.boost, name=clause.name)

    return parse_it


def _span_multi(body: Mapping[str, Any], context: QueryContext, parse: Parse) -> Query:
    clause = Clause("span_multi", body)
    if "match" not in clause:
        raise malformed("[span_multi] must have [match] multi term query clause")
    query = parse(clause.take("match"), context)
    clause.done()
    if isinstance(query, ExpandedQuery):  # a span scores by itself
        query = query.terms
    if isinstance(query, MatchNoneQuery):
        return SpanQuery(path="", source=AnyOf(()), boost=clause.boost, name=clause.name)
    spec = context.mapping.field(getattr(query, "path", ""))
    is_text = spec is not None and spec.storage is Storage.TEXT
    if not isinstance(query, DictionaryQuery | FuzzyQuery) or not is_text:
        raise malformed("[span_multi] [match] must be of type multi term query, on a text field")
    return SpanQuery(path=query.path, source=ManyTerms(query), boost=clause.boost, name=clause.name)


def _field_masking(body: Mapping[str, Any], context: QueryContext, parse: Parse) -> Query:
    clause = Clause("span_field_masking", body)
    if "query" not in clause:
        raise malformed("[span_field_masking] must have [query] span query clause")
    part = _inner(clause.take("query"), context, parse, "span_field_masking", "query")
    path = clause.string("field")
    clause.done()
    if path is None:
        raise malformed("[span_field_masking] must have [field] set")
    spec = context.mapping.field(path)
    shown = path if spec is None else spec.path
    return SpanQuery(path=shown, source=part.source, boost=clause.boost, name=clause.name)


PARSERS: dict[str, ClauseParser] = {
    "field_masking_span": _field_masking,
    "span_containing": _enclosing("span_containing", inner=False),
    "span_field_masking": _field_masking,
    "span_first": _span_first,
    "span_multi": _span_multi,
    "span_near": _span_near,
    "span_not": _span_not,
    "span_or": _span_or,
    "span_term": _span_term,
    "span_within": _enclosing("span_within", inner=True),
}
