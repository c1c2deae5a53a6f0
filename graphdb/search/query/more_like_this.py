"""`more_like_this`: documents that hold the words by which some texts, or other documents, stand out.

Source: Elasticsearch's MoreLikeThisQueryBuilder and Lucene's MoreLikeThis: the terms with the highest
frequency * idf of the classic similarity. Each term of a text is looked for in whichever of the fields has it
most often, those of documents in each field by itself.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from graphdb.search.errors import SearchError, illegal_argument, illegal_request
from graphdb.search.fields import FieldSpec, Storage
from graphdb.search.mapping.value_formats import term_of
from graphdb.search.mapping.wildcards import scalars_at
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
_TOKENS_MAX = 5_000  # of one text, as in Lucene


@dataclass(frozen=True, slots=True)
class TermChoice:
    """Which terms are worth looking for. least, most: 0 for any."""

    count_max: int = 25
    term_freq_min: int = 2
    doc_freq_min: int = 5
    doc_freq_max: int = 2**31 - 1
    length_min: int = 0
    length_max: int = 0  # 0: any
    stop_words: frozenset[str] = frozenset()

    def allows(self, term: str) -> bool:
        length = _units(term)
        fits = length >= self.length_min and (self.length_max <= 0 or length <= self.length_max)
        return fits and term not in self.stop_words


@dataclass(frozen=True, slots=True)
class Words:
    """Terms with how often they are in what is given. fields: (path, whether of text) that may have them."""

    fields: tuple[tuple[str, bool], ...]
    counts: tuple[tuple[str, int], ...]


@dataclass(frozen=True, kw_only=True)
class MoreLikeThisQuery(RewrittenQuery):
    """groups: the words of the documents, and of the texts; each has the minimum of its own.

    excluded: the documents that are given. boost_terms: how much a term's weight counts, 0: not at all.
    """

    groups: tuple[tuple[Words, ...], ...]
    choice: TermChoice
    minimum: str | None = "30%"
    boost_terms: float = 0.0
    excluded: tuple[str, ...] = ()

    def rewritten(self, searcher: Searcher) -> Query:
        return searcher.keep(("more_like_this", self), lambda: self._chosen(searcher))

    def _chosen(self, searcher: Searcher) -> Query:
        parts = []
        for group in self.groups:
            terms = tuple(query for words in group for query in self._best(words, searcher))
            least = 0 if self.minimum is None else minimum_should_match(len(terms), self.minimum)
            parts.append(BoolQuery(should=terms, minimum=max(1, least)))
        excluded = (IdsQuery(ids=self.excluded),) if self.excluded else ()
        return BoolQuery(should=tuple(part for part in parts if part.should), must_not=excluded, minimum=1)

    def _best(self, words: Words, searcher: Searcher) -> Iterator[Query]:
        """The terms to look for, the least first: its boost is `boost_terms`, those of the others more."""
        choice = self.choice
        best: _Best[tuple[str, bool, str]] = _Best(min(choice.count_max, len(words.counts)))
        for term, freq in words.counts:
            if freq < choice.term_freq_min:
                continue
            path, is_text, doc_freq = *words.fields[0], 0
            for own_path, own_text in words.fields:
                own = searcher.doc_freq(own_path, term)
                if own > doc_freq:
                    path, is_text, doc_freq = own_path, own_text, own
            if doc_freq and choice.doc_freq_min <= doc_freq <= choice.doc_freq_max:
                idf = np.float32(math.log((searcher.doc_count + 1) / (doc_freq + 1)) + 1)
                best.add(float(np.float32(freq) * idf), (path, is_text, term))
        least = None
        for score, (path, is_text, term) in best.ascending():
            least = score if least is None else least
            boost = float(np.float32(self.boost_terms) * np.float32(score) / np.float32(least))
            kind = TermQuery if is_text else KeywordQuery
            yield kind(path=path, term=term, boost=boost if self.boost_terms else 1.0)

    def text(self) -> str:
        named = [
            f"{words.fields[0][0]}:{term}"
            for group in self.groups
            for words in group
            for term, _ in words.counts
        ]
        return f"more_like_this({' '.join(named[:25])})"


Value = TypeVar("Value")

# Which of the terms with equal scores are chosen depends on how Java orders the words, and on its heap.


class _Best(Generic[Value]):
    """The values with the highest scores: a heap whose first is the least, as Lucene's PriorityQueue."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._heap: list[tuple[float, Value]] = []

    def add(self, score: float, value: Value) -> None:
        heap = self._heap
        if len(heap) == self._size:
            if heap and heap[0][0] < score:
                heap[0] = score, value
                self._sink()
            return
        heap.append((score, value))
        place = len(heap) - 1
        while place and score < heap[(place - 1) // 2][0]:
            heap[place] = heap[(place - 1) // 2]
            place = (place - 1) // 2
        heap[place] = score, value

    def _sink(self) -> None:
        heap, place, one = self._heap, 0, self._heap[0]
        while (below := 2 * place + 1) < len(heap):
            if below + 1 < len(heap) and heap[below + 1][0] < heap[below][0]:
                below += 1
            if heap[below][0] >= one[0]:
                break
            heap[place], place = heap[below], below
        heap[place] = one

    def ascending(self) -> list[tuple[float, Value]]:
        return sorted(self._heap, key=lambda one: one[0])


def _in_java_order(words: Iterable[str]) -> list[str]:
    """As a Java HashMap lists them that got them in this order."""
    known = list(words)
    buckets = 16
    while len(known) > buckets * 3 // 4:
        buckets *= 2
    return sorted(known, key=lambda word: _java_hash(word) & (buckets - 1))


def _java_hash(word: str) -> int:
    code = 0
    units = word.encode("utf-16-le", "surrogatepass")
    for place in range(0, len(units), 2):
        code = (31 * code + units[place] + 256 * units[place + 1]) & 0xFFFFFFFF
    return code ^ (code >> 16)


def _units(word: str) -> int:
    return len(word) + sum(one > "\uffff" for one in word)


# From the JSON to the words.


def _more_like_this(body: Mapping[str, Any], context: QueryContext, parse: Parse) -> Query:
    clause = Clause("more_like_this", body)
    given = clause.take("fields")
    likes, unlikes = _examples(clause.take("like")), _examples(clause.take("unlike"))
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
    strict = clause.flag("fail_on_unsupported_field", True)
    clause.done()
    if not likes:
        raise malformed("more_like_this requires 'like' to be specified")
    if choice.count_max <= 0:
        raise illegal_request("requires 'maxQueryTerms' to be greater than 0")
    reader = _Reader(_fields(given, strict, [*likes, *unlikes], context), analyzer, choice, context)
    if given is not None and not reader.names:
        return MatchNoneQuery(reason="no fields to look in", boost=clause.boost, name=clause.name)
    ids = () if include else tuple(dict.fromkeys(str(one["_id"]) for one in likes if _is_stored(one)))
    return MoreLikeThisQuery(
        groups=reader.groups(likes, unlikes),
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


def _examples(given: Any) -> list[Any]:
    """Texts and items. Errors: SearchError."""
    examples = [
        str(one) if isinstance(one, int | float) and not isinstance(one, bool) else one
        for one in _listed(given)
    ]
    for one in examples:
        if not isinstance(one, str):
            _check(one)
    return examples


def _fields(given: Any, strict: bool, examples: Sequence[Any], context: QueryContext) -> tuple[str, ...]:
    """The names of fields to look in. Errors: SearchError."""
    if given is not None and (not isinstance(given, list) or not given):
        raise malformed("more_like_this requires 'fields' to be non-empty")
    if given is None:
        if context.default_fields == ("*",) and any(isinstance(one, str) for one in examples):
            reason = (
                "[more_like_this] query cannot infer the field to analyze the free text, you should update "
                "the [index.query.default_field] index setting to a field that exists in the mapping or set "
                "the [fields] option in the query."
            )
            raise context.failed(reason, illegal_argument(reason))
        return context.default_fields
    names = []
    for name in map(str, given):
        spec = context.mapping.field(name)
        if spec is None or spec.type in ("text", "keyword"):
            names.append(name if spec is None else spec.path)
        elif strict:
            reason = f"more_like_this only supports text/keyword fields: [{name}]"
            raise context.failed(reason, illegal_argument(reason))
    return tuple(names)


def _is_stored(like: Any) -> bool:
    return isinstance(like, Mapping) and "doc" not in like


Counts = dict[str, "Counter[str]"]
"""By path, how often each term is there."""


class _Reader:
    """Counts the terms of what a query gives as examples."""

    def __init__(
        self, names: tuple[str, ...], analyzer: str | None, choice: TermChoice, context: QueryContext
    ) -> None:
        self.names = names
        self._analyzer, self._choice, self._context = analyzer, choice, context
        self._left = _TEXT_MAX

    def groups(self, likes: Sequence[Any], unlikes: Sequence[Any]) -> tuple[tuple[Words, ...], ...]:
        """The words of the documents by field, and those of the texts. Errors: SearchError."""
        texts = [one for one in likes if isinstance(one, str)]
        items = [one for one in likes if not isinstance(one, str)]
        skipped: set[tuple[str, str]] = set()
        for one in unlikes:
            if isinstance(one, str):
                skipped.update((self.names[0], term) for term in self._of_text(one))
            elif items:  # without documents to like Elasticsearch does not look at those
                skipped.update((path, term) for path, terms in self._of_item(one).items() for term in terms)
        groups = []
        if items:
            groups.append(self._of_documents(items, skipped))
        if texts:
            groups.append(self._of_texts(texts, skipped))
        return tuple(groups)

    def _of_documents(self, items: Sequence[Any], skipped: set[tuple[str, str]]) -> tuple[Words, ...]:
        counts: Counts = {}
        for item in items:
            for path, found in self._of_item(item).items():
                own = counts.setdefault(path, Counter())
                for term in sorted(found):
                    if self._choice.allows(term) and (path, term) not in skipped:
                        own[term] += found[term]
        return tuple(_words((path,), own, self._context) for path, own in counts.items())

    def _of_texts(self, texts: Sequence[str], skipped: set[tuple[str, str]]) -> tuple[Words, ...]:
        counts: Counter[str] = Counter()
        for text in texts:
            for term in self._of_text(text):
                if self._choice.allows(term) and (self.names[0], term) not in skipped:
                    counts[term] += 1
        return (_words(self.names, counts, self._context),)

    def _of_text(self, text: str) -> Sequence[str]:
        """Its terms, as the first field has them."""
        name = self.names[0]
        spec = self._context.mapping.field(name)
        if self._analyzer is None and spec is None:
            raise illegal_argument(f"No analyzer configured for field {name}")
        return self._terms(text, spec, self._analyzer)[:_TOKENS_MAX]

    def _of_item(self, item: Any) -> Counts:
        """Of a document that is given (`doc`), or stored (`_id`)."""
        analyzers = item.get("per_field_analyzer") or {}
        counts: Counts = {}
        for spec in self._fields_of(item):
            found: Counter[str] = Counter()
            for value in self._values(item, spec):
                found.update(self._terms(value, spec, analyzers.get(spec.path)))
            if found:
                counts[spec.path] = found
        return counts

    def _fields_of(self, item: Mapping[str, Any]) -> list[FieldSpec]:
        """Its own `fields`; else of a stored document those of the query, of one that is given all."""
        names = item.get("fields") or (("*",) if "doc" in item else self.names)
        specs = {spec.path: spec for name in names for spec in self._context.mapping.match(str(name))}
        return [spec for spec in specs.values() if spec.type in ("text", "keyword") and spec.indexed]

    def _values(self, item: Mapping[str, Any], spec: FieldSpec) -> Iterable[Any]:
        if "doc" in item:
            nested = spec.nested is not None
            found = (
                () if nested else [one for path in spec.value_paths for one in scalars_at(path, item["doc"])]
            )
        elif self._context.terms_lookup is None:
            raise illegal_request("[more_like_this] of documents is not supported here")
        else:
            index, routing = str(item.get("_index") or self._context.index_name), item.get("routing")
            found = self._looked_up(index, str(item["_id"]), spec, routing)
        return [one for one in found if one is not None and not isinstance(one, dict | list)]

    def _looked_up(self, index: str, doc_id: str, spec: FieldSpec, routing: str | None) -> list[Any]:
        lookup = self._context.terms_lookup
        assert lookup is not None
        try:
            return [value for path in spec.value_paths for value in lookup(index, doc_id, path, routing)]
        except SearchError as error:
            if error.status == 404:  # an index that does not exist has no such document
                return []
            raise

    def _terms(self, value: Any, spec: FieldSpec | None, analyzer: str | None) -> Sequence[str]:
        text = str(value)
        self._left -= len(text)
        if self._left < 0:
            raise illegal_request(f"[more_like_this] reads at most [{_TEXT_MAX}] characters")
        if spec is not None and spec.storage is not Storage.TEXT and analyzer is None:
            return [str(term_of(spec, text))]
        own = "default" if spec is None else spec.analyzer
        return self._context.analyzers.analyzer(analyzer or own).tokens(text)[0]


def _words(names: Sequence[str], counts: "Counter[str]", context: QueryContext) -> Words:
    fields = []
    for name in names:
        spec = context.mapping.field(name)
        fields.append((name, spec is None or spec.storage is Storage.TEXT))
    return Words(tuple(fields), tuple((term, counts[term]) for term in _in_java_order(counts)))


_MEMBERS = {"_index", "_id", "doc", "fields", "per_field_analyzer", "routing", "version", "version_type"}


def _check(item: Any) -> None:
    if not isinstance(item, Mapping):
        raise malformed("more_like_this: an example is neither a text nor an object")
    unknown = [name for name in item if name not in _MEMBERS]
    if unknown:
        raise _item_error(f"unknown field [{unknown[0][:100]}]")
    if "_id" not in item and "doc" not in item:
        raise _item_error("neither [id] nor [doc] is specified!")
    if "_id" in item and "doc" in item:
        raise _item_error("either [id] or [doc] can be specified, but not both!")
    for member in ("doc", "per_field_analyzer"):
        if not isinstance(item.get(member, {}), Mapping):
            raise _item_error(f"[{member}] must be an object")


def _item_error(reason: str) -> SearchError:
    return SearchError("parse_exception", f"failed to parse More Like This item. {reason}")


PARSERS: dict[str, ClauseParser] = {"more_like_this": _more_like_this}
