"""`more_like_this`: documents that hold the words by which some texts, or other documents, stand out.

Source: Lucene's MoreLikeThis: the terms with the highest frequency * idf of the classic similarity.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphdb.search.errors import illegal_request
from graphdb.search.fields import FieldSpec, Storage
from graphdb.search.mapping.value_formats import term_of
from graphdb.search.query.clause import (
    Clause,
    ClauseParser,
    Parse,
    QueryContext,
    malformed,
    minimum_should_match,
)
from graphdb.search.query.compound import BoolQuery
from graphdb.search.query.searcher import Searcher
from graphdb.search.query.term_queries import IdsQuery, KeywordQuery, TermQuery
from graphdb.search.query.tree import MatchNoneQuery, Query, RewrittenQuery

__all__ = ["PARSERS", "MoreLikeThisQuery", "TermChoice"]

_LIKE_MAX = 100  # texts and documents of one query
_TEXT_MAX = 1_000_000  # characters of all of them

Frequency = tuple[str, bool, str, int]  # path, whether of text, term, how often


@dataclass(frozen=True, slots=True)
class TermChoice:
    """Which terms are worth looking for."""

    count_max: int = 25
    term_freq_min: int = 2
    doc_freq_min: int = 5
    doc_freq_max: int = 2**31 - 1
    length_min: int = 0
    length_max: int = 0  # 0: any
    stop_words: frozenset[str] = frozenset()

    def allows(self, term: str, freq: int) -> bool:
        fits = len(term) >= self.length_min and (not self.length_max or len(term) <= self.length_max)
        return fits and freq >= self.term_freq_min and term not in self.stop_words


@dataclass(frozen=True, kw_only=True)
class MoreLikeThisQuery(RewrittenQuery):
    """excluded: the documents that are given. boost_terms: how much a term's weight counts, 0: not at all."""

    frequencies: tuple[Frequency, ...]
    choice: TermChoice
    minimum: str = "30%"
    boost_terms: float = 0.0
    excluded: tuple[str, ...] = ()

    def rewritten(self, searcher: Searcher) -> Query:
        return searcher.keep(("more_like_this", self), lambda: self._chosen(searcher))

    def _chosen(self, searcher: Searcher) -> Query:
        weighed = []
        for path, is_text, term, freq in self.frequencies:
            doc_freq = searcher.doc_freq(path, term)
            if self.choice.doc_freq_min <= doc_freq <= self.choice.doc_freq_max and doc_freq:
                idf = math.log((searcher.doc_count + 1) / (doc_freq + 1)) + 1
                weighed.append((-freq * idf, path, term, is_text))
        best = sorted(weighed)[: self.choice.count_max]
        if not best:
            return MatchNoneQuery(reason="no terms to look for")
        highest = -best[0][0]
        clauses = []
        for weight, path, term, is_text in best:
            kind = TermQuery if is_text else KeywordQuery
            boost = self.boost_terms * -weight / highest if self.boost_terms else 1.0
            clauses.append(kind(path=path, term=term, boost=boost))
        excluded = (IdsQuery(ids=self.excluded),) if self.excluded else ()
        needed = minimum_should_match(len(clauses), self.minimum)
        return BoolQuery(should=tuple(clauses), must_not=excluded, minimum=max(1, needed))

    def text(self) -> str:
        terms = " ".join(f"{path}:{term}" for path, _, term, _ in self.frequencies[:25])
        return f"more_like_this({terms})"


def _more_like_this(body: Mapping[str, Any], context: QueryContext, parse: Parse) -> Query:
    clause = Clause("more_like_this", body)
    fields = _fields(clause.take("fields"), context)
    likes, unlikes = _listed(clause.take("like")), _listed(clause.take("unlike"))
    choice = TermChoice(
        clause.integer("max_query_terms", 25),
        clause.integer("min_term_freq", 2),
        clause.integer("min_doc_freq", 5),
        clause.integer("max_doc_freq", 2**31 - 1),
        clause.integer("min_word_length", 0),
        clause.integer("max_word_length", 0),
        frozenset(map(str, _listed(clause.take("stop_words")))),
    )
    analyzer, minimum = clause.string("analyzer"), clause.word("minimum_should_match", "30%")
    boost_terms, include = clause.number("boost_terms", 0.0), clause.flag("include", False)
    clause.ignore("fail_on_unsupported_field")
    clause.done()
    if not likes:
        raise malformed("more_like_this requires 'like' to be specified")
    if choice.count_max <= 0:
        raise illegal_request("requires 'maxQueryTerms' to be greater than 0")
    reader = _Reader(fields, analyzer, context)
    counts, unwanted = reader.frequencies(likes), reader.frequencies(unlikes)
    kept = [
        (*key, freq) for key, freq in counts.items() if key not in unwanted and choice.allows(key[2], freq)
    ]
    ids = () if include else tuple(dict.fromkeys(str(one["_id"]) for one in likes if _is_stored(one)))
    return MoreLikeThisQuery(
        frequencies=tuple(sorted(kept)),
        choice=choice,
        minimum=minimum,
        boost_terms=boost_terms,
        excluded=ids,
        boost=clause.boost,
        name=clause.name,
    )


def _listed(given: Any) -> list[Any]:
    listed = [] if given is None else given if isinstance(given, list) else [given]
    if len(listed) > 10 * _LIKE_MAX:
        raise illegal_request(f"[more_like_this] takes at most [{_LIKE_MAX}] texts and documents")
    return listed


def _fields(given: Any, context: QueryContext) -> list[FieldSpec]:
    """Those that have terms; all of them, where none are named."""
    if given is not None and (not isinstance(given, list) or not given):
        raise illegal_request("more_like_this requires 'fields' to be non-empty")
    names = context.default_fields if given is None else tuple(map(str, given))
    specs = [spec for name in names for spec in context.mapping.match(name)]
    return [spec for spec in specs if spec.type in ("text", "keyword") and spec.indexed]


def _is_stored(like: Any) -> bool:
    return isinstance(like, Mapping) and "_id" in like


class _Reader:
    """Counts the terms of what a query gives as examples."""

    def __init__(self, fields: Sequence[FieldSpec], analyzer: str | None, context: QueryContext) -> None:
        self._fields, self._analyzer, self._context = fields, analyzer, context
        self._left = _TEXT_MAX

    def frequencies(self, likes: Sequence[Any]) -> "Counter[tuple[str, bool, str]]":
        """By path, whether it is a text field, and term."""
        if len(likes) > _LIKE_MAX:
            raise illegal_request(f"[more_like_this] takes at most [{_LIKE_MAX}] texts and documents")
        counts: Counter[tuple[str, bool, str]] = Counter()
        for like in likes:
            for spec in self._fields:
                for value in self._values(like, spec):
                    counts.update(
                        (spec.path, spec.storage is Storage.TEXT, term) for term in self._terms(value, spec)
                    )
        return counts

    def _values(self, like: Any, spec: FieldSpec) -> Sequence[Any]:
        if isinstance(like, str):
            return [like]
        if not isinstance(like, Mapping):
            raise malformed("more_like_this: [like] is neither a text nor an object")
        if isinstance(like.get("doc"), Mapping):
            value = like["doc"].get(spec.path)
            return value if isinstance(value, list) else [] if value is None else [value]
        if "_id" not in like:
            raise illegal_request("more_like_this: an item needs [_id] or [doc]")
        if self._context.terms_lookup is None:
            raise illegal_request("[more_like_this] of documents is not supported here")
        index = str(like.get("_index") or self._context.index_name)
        return self._context.terms_lookup(index, str(like["_id"]), spec.path, like.get("routing"))

    def _terms(self, value: Any, spec: FieldSpec) -> Sequence[str]:
        text = str(value)
        self._left -= len(text)
        if self._left < 0:
            raise illegal_request(f"[more_like_this] reads at most [{_TEXT_MAX}] characters")
        if spec.storage is not Storage.TEXT:
            return [str(term_of(spec, text))]
        return self._context.analyzers.analyzer(self._analyzer or spec.analyzer).tokens(text)[0]


PARSERS: dict[str, ClauseParser] = {"more_like_this": _more_like_this}
