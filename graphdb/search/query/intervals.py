"""`intervals`: rules for where words stand in a text, and filters on how their places relate to others.

Source: Lucene's package `queries.intervals`, and Elasticsearch's reference, "Intervals query". An interval
that contains another of the same rule does not count (minimal intervals).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from graphdb.search.analysis.token_graph import TokenGraph
from graphdb.search.errors import illegal_argument, illegal_request
from graphdb.search.fields import FieldSpec, Storage
from graphdb.search.leaf_reader import Bools, Floats, Leaf
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
from graphdb.search.query.near_terms import TermsNear
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
    has_end_after,
    has_inside,
    smallest_windows,
    terms_near,
    without_containing,
)
from graphdb.search.query.regexp import Regexp
from graphdb.search.query.searcher import Searcher
from graphdb.search.query.spans import frequencies
from graphdb.search.query.text_queries import graph_of, paths_of, places_of
from graphdb.search.query.tree import Matches, MatchNoneQuery, Query

__all__ = ["PARSERS", "IntervalsQuery"]

_EXPANSIONS_MAX = 128  # terms that one pattern may stand for
_RULES_MAX = 1_024

# The kinds of sources. The slack of an interval is its gaps: the positions that none of its parts takes.


@dataclass(frozen=True, slots=True)
class Together(OfParts):
    """An interval of each part: one after the other (ordered; adjacent: without gaps), or in any order.

    Equal parts that are not ordered stand at different places.
    """

    ordered: bool
    adjacent: bool = False

    def near(self) -> TermsNear | None:
        if not self.ordered and len(set(self.parts)) < len(self.parts):
            return None
        return terms_near(self.parts, in_order=self.ordered, adjacent=self.adjacent, minimal=True)

    def spans(self, lists: PositionLists, row: int) -> Spans:
        if self.ordered:
            found = [part.spans(lists, row) for part in self.parts]
            every = self._following(found) if all(found) else iter(())
        else:
            counts: dict[PositionSource, int] = {}
            for part in self.parts:
                counts[part] = counts.get(part, 0) + 1
            found = [_repeated(part.spans(lists, row), times) for part, times in counts.items()]
            every = (
                ((s, e, e - s - taken) for s, e, taken in smallest_windows(found)) if all(found) else iter(())
            )
        return without_containing(list(every))

    def _following(self, found: list[Spans]) -> Iterator[Span]:
        """From each interval of the first part the next one of each other part. As the starts and ends of
        intervals ascend, no part ever goes back.
        """
        at = [0] * len(found)
        for start, end, _ in found[0]:
            last, taken, met = end, end - start, True
            for number in range(1, len(found)):
                own = found[number]
                while at[number] < len(own) and own[at[number]][0] < last:
                    at[number] += 1
                if at[number] == len(own):
                    return
                following = own[at[number]]
                met = met and not (self.adjacent and following[0] != last)
                last, taken = following[1], taken + following[1] - following[0]
            if met:
                yield start, last, last - start - taken

    def text(self) -> str:
        name = "BLOCK" if self.adjacent else "ORDERED" if self.ordered else "UNORDERED"
        return f"{name}({','.join(part.text() for part in self.parts)})"


def _repeated(spans: Spans, times: int) -> Spans:
    """So many intervals of one part, one after another."""
    if times == 1:
        return spans
    runs = (spans[place : place + times] for place in range(len(spans) - times + 1))
    return [(run[0][0], run[-1][1], run[-1][1] - run[0][0] - sum(s[1] - s[0] for s in run)) for run in runs]


@dataclass(frozen=True, slots=True)
class MaxGaps(OfPart):
    """The intervals with at most so many gaps."""

    gaps: int

    def near(self) -> TermsNear | None:
        inner = self.part.near()
        return None if inner is None else inner.at_most(min(self.gaps, 2**31 - 1))

    def spans(self, lists: PositionLists, row: int) -> Spans:
        return [span for span in self.part.spans(lists, row) if span[2] <= self.gaps]

    def text(self) -> str:
        return f"MAXGAPS/{self.gaps}({self.part.text()})"


@dataclass(frozen=True, slots=True)
class Extended(OfPart):
    """Intervals that begin so many positions before: where words were left out of a text."""

    before: int

    def spans(self, lists: PositionLists, row: int) -> Spans:
        found = ((max(0, start - self.before), end, gaps) for start, end, gaps in self.part.spans(lists, row))
        return without_containing(list(found))

    @property
    def least(self) -> int:
        return self.part.least + self.before

    def text(self) -> str:
        return f"EXTEND({self.part.text()},{self.before},0)"


Test = Callable[[Spans, Spans], Iterable[bool]]
"""Which of the first intervals relate to one of the second."""


def _before(spans: Spans, others: Spans) -> Iterable[bool]:
    last = max((start for start, _, _ in others), default=-1)
    return (end <= last for _, end, _ in spans)


def _after(spans: Spans, others: Spans) -> Iterable[bool]:
    first = min((end for _, end, _ in others), default=None)
    return (first is not None and start >= first for start, _, _ in spans)


def _containing(spans: Spans, others: Spans) -> Iterable[bool]:
    return has_inside(others, ((start, end) for start, end, _ in spans))


def _contained(spans: Spans, others: Spans) -> Iterable[bool]:
    return has_end_after(others, ((start + 1, end - 1) for start, end, _ in spans))


def _overlapping(spans: Spans, others: Spans) -> Iterable[bool]:
    return has_end_after(others, ((end, start) for start, end, _ in spans))


_FILTERS: dict[str, tuple[Test, bool]] = {  # and whether those that relate are kept
    "after": (_after, True),
    "before": (_before, True),
    "contained_by": (_contained, True),
    "containing": (_containing, True),
    "not_contained_by": (_contained, False),
    "not_containing": (_containing, False),
    "not_overlapping": (_overlapping, False),
    "overlapping": (_overlapping, True),
}


@dataclass(frozen=True, slots=True)
class Filtered(OfPart):
    """The intervals of a source that stand to those of another as a filter says."""

    other: PositionSource
    relation: str

    def mask(self, leaf: Leaf, searcher: Searcher) -> Bools:
        mask = self.part.mask(leaf, searcher)
        return mask & self.other.mask(leaf, searcher) if _FILTERS[self.relation][1] else mask

    def spans(self, lists: PositionLists, row: int) -> Spans:
        test, kept = _FILTERS[self.relation]
        found = self.part.spans(lists, row)
        related = test(found, self.other.spans(lists, row))
        return [span for span, is_related in zip(found, related, strict=True) if is_related == kept]

    def sources(self) -> tuple[PositionSource, ...]:
        return self.part, self.other

    def sought(self) -> tuple[PositionSource, ...]:
        return (self.part,)

    def text(self) -> str:
        return f"{self.relation.upper()}({self.part.text()},{self.other.text()})"


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
    """Parses the rules for one field. left: how many more may come."""

    spec: FieldSpec
    context: QueryContext
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
        source = reader(self, clause, depth)
        clause.done()
        return source if given is None else self._filtered(source, given, depth)

    def _filtered(self, source: PositionSource, body: Any, depth: int) -> PositionSource:
        if not isinstance(body, Mapping) or len(body) != 1:
            raise malformed("[intervals] [filter] expects an object with one member")
        ((relation, inner),) = body.items()
        if relation == "script":
            known = ", ".join(_FILTERS)
            raise illegal_request(f"[script] filters of [intervals] are not supported: use one of {known}")
        if relation not in _FILTERS:
            raise illegal_request(f"Unknown filter type [{str(relation)[:100]}]")
        return Filtered(source, self.rule(inner, depth + 1), str(relation))

    def field(self, clause: Clause) -> FieldSpec:
        """The field of `use_field`, or the one of the query."""
        path = clause.string("use_field")
        return self.spec if path is None else _text_field(path, self.context)

    def rules(self, clause: Clause, depth: int) -> tuple[PositionSource, ...]:
        bodies = clause.needed("intervals")
        if not isinstance(bodies, list) or not bodies:
            raise malformed(f"[{clause.kind}] [intervals] must be an array with at least one rule")
        return tuple(self.rule(body, depth + 1) for body in bodies)


def _text_field(path: str, context: QueryContext) -> FieldSpec:
    spec = context.mapping.field(path)
    if spec is None or spec.storage is not Storage.TEXT:
        kind = "unmapped" if spec is None else spec.type
        raise illegal_argument(
            f"Can only use interval queries on text fields - not on [{path}] which is of type [{kind}]"
        )
    return spec


def _together(parts: tuple[PositionSource, ...], ordered: bool, max_gaps: int) -> PositionSource:
    if len(parts) == 1:
        return parts[0]
    if ordered and max_gaps == 0:
        return Together(parts, ordered=True, adjacent=True)
    source = Together(parts, ordered)
    return source if max_gaps < 0 else MaxGaps(source, max_gaps)


def _match(rules: _Rules, clause: Clause, depth: int) -> PositionSource:
    text, spec = clause.needed("query"), rules.field(clause)
    if isinstance(text, dict | list):
        clause.refuse("query", text)
    ordered, mode = clause.flag("ordered", False), clause.string("mode")
    max_gaps, analyzer = clause.integer("max_gaps", -1), clause.string("analyzer")
    if mode is not None and mode not in ("ordered", "unordered"):
        raise illegal_request(f"[mode] must be [ordered] or [unordered], not [{mode[:100]}]")
    in_order = ordered or mode == "ordered"
    graph = graph_of(rules.context.analyzers.analyzer(analyzer or spec.search_analyzer), str(text))
    if graph is not None:
        return _together(_sections(rules, spec.path, graph), in_order, max_gaps)
    places = places_of(str(text), spec, rules.context, analyzer)
    rules.words(len(places))
    parts: list[PositionSource] = []
    last = -1
    for position, terms in places:
        left_out = position - last - 1
        parts.append(_place(spec.path, terms, left_out if parts else 0))
        last = position
    return _together(tuple(parts), in_order, max_gaps) if parts else AnyOf(())


def _place(path: str, terms: Sequence[str], left_out: int) -> PositionSource:
    part: PositionSource = AnyOf(tuple(Term(path, term) for term in terms), minimal=True)
    part = Term(path, terms[0]) if len(terms) == 1 else part
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
            found.append(_together(tuple(_place(path, (step.term,), step.gap) for step in steps), True, 0))
        parts.append(AnyOf(tuple(found), minimal=True))
    return tuple(parts)


def _all_of(rules: _Rules, clause: Clause, depth: int) -> PositionSource:
    ordered, mode = clause.flag("ordered", False), clause.string("mode")
    max_gaps = clause.integer("max_gaps", -1)
    return _together(rules.rules(clause, depth), ordered or mode == "ordered", max_gaps)


def _any_of(rules: _Rules, clause: Clause, depth: int) -> PositionSource:
    parts = rules.rules(clause, depth)
    return parts[0] if len(parts) == 1 else AnyOf(parts, minimal=True)


def _word(rules: _Rules, clause: Clause, member: str, is_pattern: bool = False) -> tuple[str, str]:
    """(path, the text as the field's analyzer writes words)."""
    text = str(clause.needed(member))
    spec, analyzer = rules.field(clause), clause.string("analyzer")
    if is_pattern:
        return spec.path, text
    return spec.path, rules.context.analyzers.analyzer(analyzer or spec.search_analyzer).normalize(text)


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
    spec = rules.field(clause)
    low, high = clause.string("gte"), clause.string("lte")
    above, below = clause.string("gt"), clause.string("lt")
    clause.ignore("analyzer")
    if (low is None) == (above is None) or (high is None) == (below is None):
        raise illegal_request("[range] of [intervals] needs one of [gte] and [gt], and one of [lte] and [lt]")
    query = TermRangeQuery(
        path=spec.path,
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
    source = _Rules(spec, context).rule(rules)
    return IntervalsQuery(path=spec.path, source=source, boost=clause.boost, name=clause.name)


PARSERS: dict[str, ClauseParser] = {"intervals": _intervals}
