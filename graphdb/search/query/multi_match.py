"""The multi_match query, and the blended statistics of its cross_fields type."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from graphdb.search.errors import illegal_argument, illegal_request
from graphdb.search.fields import FieldSpec, Storage
from graphdb.search.query.clause import Clause, ClauseParser, Parse, QueryContext, malformed, number_format
from graphdb.search.query.compound import DisMaxQuery
from graphdb.search.query.full_text import MatchOptions, combined, match_field, places_of, read_options
from graphdb.search.query.searcher import Searcher
from graphdb.search.query.term_queries import TermQuery
from graphdb.search.query.tree import SCORE_MAX, MatchNoneQuery, Query, RewrittenQuery, boosted

__all__ = ["PARSERS", "BlendedQuery", "Boosts", "expand_fields", "multi_match"]

# A term looked for in several fields as though they were one, as `cross_fields` does.
#
# Every field counts the documents of the field where the term is most frequent, and one more for each field
# where it is rarer, so that where a word happens to be rare does not decide. Source: Elasticsearch's
# BlendedTermQuery.


@dataclass(frozen=True, kw_only=True)
class BlendedQuery(RewrittenQuery):
    """The best field's score and tie_breaker of the others'. fields are (path, boost)."""

    fields: tuple[tuple[str, float], ...]
    term: str
    tie_breaker: float = 0.0

    def boost_max(self) -> float:
        return self.boost * max(boost for _, boost in self.fields)

    def rewritten(self, searcher: Searcher) -> Query:
        """The terms with their blended numbers of documents, in this searcher."""
        return searcher.keep(("blended", self), lambda: self._blend(searcher))

    def _blend(self, searcher: Searcher) -> Query:
        own = {path: searcher.doc_freq(path, self.term) for path, _ in self.fields}
        statistics = {path: searcher.statistics(path) for path, _ in self.fields}
        limit = min(searcher.doc_count, *(of_field.total_terms for of_field in statistics.values()))
        blended = dict(own)
        shared = previous = max(own.values())
        for path in sorted(own, key=lambda path: -own[path]):
            if not own[path]:
                break
            shared += own[path] < previous
            blended[path] = min(statistics[path].doc_count, limit, shared)
            previous = own[path]
        terms = tuple(
            TermQuery(path=path, term=self.term, boost=boost, doc_freq=blended[path])
            for path, boost in self.fields
        )
        return DisMaxQuery(queries=terms, tie_breaker=self.tie_breaker) if len(terms) > 1 else terms[0]

    def text(self) -> str:
        terms = [f"{path}:{self.term}" + (f"^{boost}" if boost != 1 else "") for path, boost in self.fields]
        return f"blended(terms:[{', '.join(terms)}])"


# `multi_match`: one text on several fields, and how their scores are joined.

TYPES = ("best_fields", "most_fields", "cross_fields", "phrase", "phrase_prefix", "bool_prefix")
KINDS = {"phrase": "phrase", "phrase_prefix": "phrase_prefix", "bool_prefix": "bool_prefix"}
TIE_BREAKERS = {"most_fields": 1.0, "bool_prefix": 1.0}
FIELDS_MAX = 1024

Boosts = dict[str, float]
"""Boosts by field."""


def expand_fields(fields: Iterable[str], context: QueryContext) -> tuple[Boosts, bool]:
    """Fields such as `title^2` or `*_name` less those that cannot be asked, and whether they name all (`*`).

    A field that no mapping has stays: it matches nothing.
    """
    boosts: Boosts = {}
    everything = False
    for given in fields:
        pattern, caret, text = given.partition("^")
        try:
            boost = float(text) if caret else 1.0
        except ValueError:
            raise number_format(text) from None
        if not 0 <= boost <= SCORE_MAX:
            raise illegal_request(
                f"negative [boost] are not allowed in [{given}], use a value between 0 and 1 to deboost"
            )
        everything |= pattern == "*"
        paths = [pattern]
        if "*" in pattern:
            paths = [spec.path for spec in context.mapping.match(pattern) if _may_be_asked(spec)]
        for path in paths:
            boosts[path] = boosts.get(path, 1.0) * boost
    if len(boosts) > FIELDS_MAX:
        raise illegal_argument(
            f"field expansion matches too many fields, got: {len(boosts)}. Limit: {FIELDS_MAX}"
        )
    return boosts, everything


def _may_be_asked(spec: FieldSpec) -> bool:
    return spec.indexed and spec.storage not in (Storage.NONE, Storage.POINTS, Storage.VECTORS)


def multi_match(
    boosts: Boosts,
    value: Any,
    type_name: str,
    options: MatchOptions,
    tie_breaker: float | None,
    context: QueryContext,
) -> Query:
    """The query for a value on several fields."""
    tie = TIE_BREAKERS.get(type_name, 0.0) if tie_breaker is None else tie_breaker
    if type_name == "cross_fields":
        queries = _cross_fields(boosts, value, options, context, tie)
    else:
        options = replace(options, kind=KINDS.get(type_name, "boolean"))
        queries = [
            boosted(match_field(path, value, options, context), boost) for path, boost in boosts.items()
        ]
    if not queries:
        return MatchNoneQuery(reason="No fields to match")
    return queries[0] if len(queries) == 1 else DisMaxQuery(queries=tuple(queries), tie_breaker=tie)


def _cross_fields(
    boosts: Boosts, value: Any, options: MatchOptions, context: QueryContext, tie: float
) -> list[Query]:
    """One query for each group of fields with the same analyzer, whose terms are those of one large field."""
    groups: dict[str, list[tuple[str, float]]] = {}
    queries: list[Query] = []
    for path, boost in boosts.items():
        spec = context.mapping.field(path)
        if spec is None or spec.storage is not Storage.TEXT:
            queries.append(boosted(match_field(path, value, options, context), boost))
        else:
            groups.setdefault(options.analyzer or spec.search_analyzer, []).append((spec.path, boost))
    for fields in groups.values():
        spec = context.mapping.field(fields[0][0])
        assert spec is not None
        words: list[Query] = [
            BlendedQuery(fields=tuple(fields), term=term, tie_breaker=tie)
            for _, terms in places_of(str(value), spec, context, options.analyzer)
            for term in terms
        ]
        if words:
            queries.append(combined(words, options))
    return queries


@dataclass(frozen=True, slots=True)
class _Request:
    value: Any
    type_name: str
    tie_breaker: float | None
    options: MatchOptions


def _read(clause: Clause) -> _Request:
    value = clause.take("query")
    if value is None:
        raise malformed("No text specified for multi_match query")
    if isinstance(value, dict | list):
        clause.refuse("query", value)
    type_name = clause.word("type", "best_fields").lower()
    if type_name not in TYPES:
        raise malformed(f"failed to parse [multi_match] query type [{type_name}]. unknown type.")
    tie_breaker = clause.number("tie_breaker", 0.0) if "tie_breaker" in clause else None
    if type_name == "bool_prefix" and "slop" in clause:
        raise malformed(f"[slop] not allowed for type [{type_name}]")
    kept = clause.take("slop", 0)
    if type_name == "cross_fields" and "fuzziness" in clause:
        raise malformed(f"[multi_match] query does not support [fuzziness] with type [{type_name}]")
    options = replace(read_options(clause, "boolean"), slop=int(kept))
    return _Request(value, type_name, tie_breaker, options)


def _fields(given: Any, context: QueryContext) -> Sequence[str]:
    fields = [given] if isinstance(given, str) else given
    if fields is None:
        return context.default_fields
    if not isinstance(fields, list) or not all(isinstance(field, str) for field in fields):
        raise malformed("[multi_match] query does not support [fields]")
    return fields


def _multi_match(body: Mapping[str, Any], context: QueryContext, parse: Parse) -> Query:
    clause = Clause("multi_match", body)
    fields = _fields(clause.take("fields"), context)
    request = _read(clause)
    clause.done()
    boosts, everything = expand_fields(fields, context)
    options = replace(request.options, lenient=True) if everything else request.options
    query = multi_match(boosts, request.value, request.type_name, options, request.tie_breaker, context)
    return boosted(query, clause.boost, clause.name)


PARSERS: dict[str, ClauseParser] = {"multi_match": _multi_match}
