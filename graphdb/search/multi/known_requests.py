"""`KnownRequests`: what many searches have in common is read once.

A program asks searches that differ in the words, terms and bounds of their queries alone. What is left of one
without these is its form (`graphdb.search.query.forms`): a search of a known form costs the analysis of its
text and no more. Where a clause of the query takes no part in that, or vectors are searched for, all but
`query` and `knn` is known still: the page, the sort keys, the aggregations of a dashboard. Nor does the name
of a single aggregation count: it is put in afterwards.

Programs write such a search the same each time, too. A text that has come a few times but for its words,
terms and bounds becomes a pattern: who finds these in the next one need not read it as JSON.
"""

import re
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any
from weakref import ref

import orjson

from graphdb.search.aggregations.aggregation import Common
from graphdb.search.aggregations.parsing import FORMS as AGGREGATION_FORMS
from graphdb.search.aggregations.parsing import form_of as form_of_aggregation
from graphdb.search.errors import SearchError
from graphdb.search.hybrid import planned
from graphdb.search.mapping.lookup import FieldLookup
from graphdb.search.multi.prepared import AllFailed, Prepared, Searchers, Target, prepare
from graphdb.search.query import Query, QueryContext, Searcher
from graphdb.search.query.clause import ResultLimits
from graphdb.search.query.forms import Form, Make, NoForm, Values
from graphdb.search.query.parse import FORMS, form_of_query
from graphdb.search.query.slots import slotted
from graphdb.search.query.tree import MatchAllQuery
from graphdb.search.results.search import SearchOptions, scope_of
from graphdb.search.results.search_request import SearchRequest

__all__ = ["PLAIN_MEMBERS", "KnownRequests", "with_name"]

PLAIN_MEMBERS = frozenset(
    {"query", "knn", "aggs", "aggregations", "from", "size", "sort", "search_after", "track_scores"}
    | {"track_total_hits", "_source", "docvalue_fields", "fields", "version", "seq_no_primary_term"}
)
"""Members of a body that do not make a search another than one of documents of an index as it is."""

_ONLY = "a"
_KEPT_MAX = 256
_BYTES_MAX = 2_000  # of the text of what is kept
_FORMS_MAX = 8  # of one outline
_TRIED, _TRIED_EACH = 8, 16  # bodies that are learnt from
_SPELT_AFTER, _SPELLINGS_MAX = 4, 8  # times that a form has come; patterns of one index
_EVERYTHING = MatchAllQuery()
# A moment, and documents that are looked up, make another request each time.
_CHANGING = (b"now", b'"index"')
# What lets hits show more of a query than that it matches.
_SAYING = (b'"_name"', b'"inner_hits"', b'"percolate"')
_NAME = re.compile(r"[\w.-]+", re.ASCII)
_NAME_TOKEN = re.compile(rb'"[\w.-]+"', re.ASCII)
# The texts and numbers of JSON as orjson writes it.
_TOKEN = re.compile(rb'("(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*)')
# Those that are open in a text, none with an escape; JSON is read of what is found.
_OPEN = rb'("[^"\\]*"|-?\d[\d.eE+-]*)'
_OPEN_NAME = rb'"([\w.-]+)"'


@dataclass(frozen=True, slots=True)
class _State:
    """What parsing depends on beside a body. What changes an index, also a setting, makes other limits."""

    searcher: ref[Searcher]
    mapping: FieldLookup
    limits: ResultLimits
    allow_expensive: bool

    @classmethod
    def of(cls, target: Target) -> "_State":
        context = target.context
        return cls(ref(target.searcher), context.mapping, context.limits, context.allow_expensive)

    def is_of(self, target: Target) -> bool:
        context = target.context
        same = self.mapping is context.mapping and self.limits is context.limits
        return same and self.allow_expensive == context.allow_expensive and self.searcher() is target.searcher


@dataclass(frozen=True, slots=True)
class _Form:
    """Which of the texts and numbers of a body are open. known: by the others what a search is without these.

    name_place: of the name of its only aggregation, None: it has none.
    """

    fixed: Callable[[Sequence[bytes]], Any]
    places: tuple[int, ...]
    name_place: int | None
    known: "OrderedDict[Any, tuple[_State, _Kept]]" = field(default_factory=OrderedDict)

    def find(self, tokens: Sequence[bytes], target: Target) -> tuple[SearchRequest, str | None] | None:
        """The request, and as `KnownRequests.prepare`; None where it is not known. Raises SearchError."""
        known = self.known.get(self.fixed(tokens))
        if known is None or not known[0].is_of(target):
            return None
        name = None
        if self.name_place is not None:
            if _NAME_TOKEN.fullmatch(tokens[self.name_place]) is None:
                return None
            name = tokens[self.name_place][1:-1].decode()
        values = orjson.loads(b"[%b]" % b",".join([tokens[place] for place in self.places]))
        return known[1].of(values, target.context), name

    def is_often(self, tokens: Sequence[bytes]) -> bool:
        """Whether what was found now has been found so often that it is worth a pattern."""
        kept = self.known[self.fixed(tokens)][1]
        kept.found += 1
        return kept.found == _SPELT_AFTER

    def keep(self, tokens: Sequence[bytes], state: _State, kept: "_Kept") -> None:
        self.known[self.fixed(tokens)] = state, kept
        if len(self.known) > _KEPT_MAX:
            self.known.popitem(last=False)


@dataclass(slots=True)
class _Kept:
    """A request, and what makes those parts of it that depend on open values. found: how often it was."""

    request: SearchRequest
    query: Make
    aggregations: Callable[[Values], Common] | None
    found: int = 0

    @classmethod
    def read(cls, slots: Any, target: Target, request: SearchRequest, form: Form) -> "_Kept":
        """slots: a body of plain members, whose request has been parsed. Raises NoForm, SearchError."""
        query: Make = _everything
        if slots.get("query") is not None:
            query = form_of_query(slots["query"], target.context, form)
        aggregations = None
        if _only_name(slots) is not None:
            ((_, definition),) = slots["aggs"].items()
            if isinstance(definition, dict) and not AGGREGATION_FORMS.keys().isdisjoint(definition):
                aggregations = form_of_aggregation(_ONLY, definition, target.context, form)
        words = orjson.dumps(slots.get("query"), default=_no_text)
        is_silent = not any(word in words for word in _SAYING)
        return cls(request.of_query(request.query, query_is_silent=is_silent), query, aggregations)

    def of(self, values: Values, context: QueryContext) -> SearchRequest:
        query = self.query(values, context)
        if self.aggregations is None:
            return self.request.of_query(query)
        return self.request.of_query(query, aggregations=self.aggregations(values))


def _no_text(slot: object) -> None:
    """A slot, as JSON."""


def _everything(values: Values, context: QueryContext) -> Query:
    return _EVERYTHING


class _Spelling:
    """The texts of one form that differ in open values alone, and in the name of the only aggregation."""

    def __init__(self, form: _Form, text: bytes, tokens: Sequence[bytes]) -> None:
        """text: one of them; tokens: those of its body, in the same order, as orjson writes them."""
        self._form, self._key = form, form.fixed(tokens)
        opened = {place: _OPEN for place in form.places}
        if form.name_place is not None:
            opened[form.name_place] = _OPEN_NAME
        pieces = [
            opened.get(number // 2, re.escape(part)) if number % 2 else re.escape(part)
            for number, part in enumerate(_TOKEN.split(text))
        ]
        self.pattern = re.compile(b"".join(pieces), re.ASCII)
        groups = {place: number for number, place in enumerate(sorted(opened))}
        self._groups = [groups[place] for place in form.places]
        self._name_group = None if form.name_place is None else groups[form.name_place]

    def find(self, text: bytes, target: Target) -> tuple[SearchRequest, str | None] | None:
        """See `_Form.find`; None for another text, too."""
        found = self.pattern.fullmatch(text)
        if found is None:
            return None
        known = self._form.known.get(self._key)
        if known is None or not known[0].is_of(target):
            return None
        given = found.groups()
        values = orjson.loads(b"[%b]" % b",".join([given[group] for group in self._groups]))
        name = None if self._name_group is None else given[self._name_group].decode()
        return known[1].of(values, target.context), name


class _Outline:
    """Bodies that are the same but for their texts and numbers, names of members included."""

    def __init__(self) -> None:
        self._forms: list[_Form] = []
        self._found = self._missed = 0

    def find(
        self, tokens: Sequence[bytes], target: Target
    ) -> tuple[tuple[SearchRequest, str | None], _Form] | None:
        """What a form finds, and which."""
        for form in self._forms:
            found = form.find(tokens, target)
            if found is not None:
                self._found += 1
                return found, form
        return None

    def learn(
        self, tokens: Sequence[bytes], body: Mapping[str, Any], target: Target, request: SearchRequest
    ) -> None:
        """From a body that was parsed. Where that has helped little, it is tried now and then only."""
        self._missed += 1
        if self._missed > _TRIED and self._found < self._missed and self._missed % _TRIED_EACH:
            return
        slots, count = slotted(body, 0)
        try:
            if count != len(tokens):
                return
            read = Form(FORMS)
            kept = _Kept.read(slots, target, request, read)
        except (NoForm, SearchError):
            return
        form = self._form_of(tuple(read.places), _name_place(body), count)
        if form is not None:
            form.keep(tokens, _State.of(target), kept)

    def _form_of(self, places: tuple[int, ...], name_place: int | None, count: int) -> _Form | None:
        """None where there are too many."""
        for form in self._forms:
            if (form.places, form.name_place) == (places, name_place):
                return form
        left = [place for place in range(count) if place not in places and place != name_place]
        if not left or len(self._forms) >= _FORMS_MAX:
            return None
        self._forms.append(_Form(itemgetter(*left), places, name_place))
        return self._forms[-1]


def _name_place(body: Mapping[str, Any]) -> int | None:
    """Of the name of the only aggregation, where it has no part in what is parsed."""
    if _only_name(body) is None:
        return None
    place = 0
    for member, value in body.items():
        place += 1
        if member == "aggs":
            break
        place = slotted(value, place)[1]
    return place


def _only_name(body: Mapping[str, Any]) -> str | None:
    aggregations = body.get("aggs")
    if not isinstance(aggregations, dict) or len(aggregations) != 1 or "aggregations" in body:
        return None
    (name,) = aggregations
    return name if _NAME.fullmatch(name) else None


class KnownRequests:
    """For one thread. The least recently used is dropped first."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, bytes], tuple[_State, SearchRequest]] = OrderedDict()
        self._outlines: OrderedDict[tuple[str, bytes], _Outline] = OrderedDict()
        self._spellings: OrderedDict[str, list[_Spelling]] = OrderedDict()  # by index, the last found first

    def of_text(
        self, text: bytes, target: Target, options: SearchOptions
    ) -> tuple[Prepared, str | None] | None:
        """As `prepare`, of the text of a body; None where it is not one that has come several times but for
        its open values, or is wrong.
        """
        if target.filter is not None or target.boost != 1.0:
            return None
        spellings = self._spellings.get(target.name) or []
        for place, spelling in enumerate(spellings):
            try:
                found = spelling.find(text, target)
            except (SearchError, orjson.JSONDecodeError):
                return None
            if found is not None:
                if place:
                    spellings.insert(0, spellings.pop(place))
                return _prepared(found[0], target, options), found[1]
        return None

    def _spell(self, form: _Form, text: bytes, tokens: Sequence[bytes], name: str) -> None:
        """Make a pattern of a text whose body has these texts and numbers."""
        if len(_TOKEN.findall(text)) != len(tokens):
            return
        spelling = _Spelling(form, text, tokens)
        spellings = self._spellings.setdefault(name, [])
        if all(spelling.pattern != other.pattern for other in spellings):
            spellings.insert(0, spelling)
            del spellings[_SPELLINGS_MAX:]
        if len(self._spellings) > _KEPT_MAX:
            self._spellings.popitem(last=False)

    def prepare(
        self,
        body: Mapping[str, Any],
        target: Target,
        searchers: Searchers,
        options: SearchOptions,
        text: bytes = b"",
    ) -> tuple[Prepared, str | None]:
        """As `prepare`, and the name of the only aggregation for `with_name`. body: of plain members.

        text: of the body as it was sent, empty: not known. Raises SearchError, AllFailed.
        """
        if target.filter is not None or target.boost != 1.0 or not PLAIN_MEMBERS.issuperset(body):
            return prepare(body, [target], searchers, options), None
        plain = b"" if "knn" in body else orjson.dumps(body)
        if not plain or len(plain) > _BYTES_MAX or b'"knn"' in plain:  # a vector is no text of a form
            return self._but_for_query(body, target, searchers, options)[:2]
        parts = _TOKEN.split(plain)
        tokens, key = parts[1::2], (target.name, b"?".join(parts[::2]))
        outline = self._outlines.get(key)
        if outline is not None:
            try:
                found = outline.find(tokens, target)
            except SearchError:
                return prepare(body, [target], searchers, options), None
            if found is not None:
                self._outlines.move_to_end(key)
                (request, name), form = found
                if 0 < len(text) <= 2 * _BYTES_MAX and form.is_often(tokens):
                    self._spell(form, text, tokens, target.name)
                return _prepared(request, target, options), name
        prepared, name, is_kept = self._but_for_query(body, target, searchers, options)
        if is_kept:
            if outline is None:
                outline = self._outlines[key] = _Outline()
            outline.learn(tokens, body, target, prepared.request)
            if len(self._outlines) > _KEPT_MAX:
                self._outlines.popitem(last=False)
        return prepared, name

    def _but_for_query(
        self, body: Mapping[str, Any], target: Target, searchers: Searchers, options: SearchOptions
    ) -> tuple[Prepared, str | None, bool]:
        """As prepare, for a body whose form is not known; and whether all but its query may be kept."""
        rest = {member: value for member, value in body.items() if member not in ("query", "knn")}
        name = _only_name(body)
        if name is not None:
            rest["aggs"] = {_ONLY: rest["aggs"][name]}
        text = orjson.dumps(rest)
        if len(text) > _BYTES_MAX or any(word in text for word in _CHANGING):
            return prepare(body, [target], searchers, options), None, False
        key = target.name, text
        known = self._kept.get(key)
        if known is None or not known[0].is_of(target):
            whole = body if name is None else {**body, "aggs": rest["aggs"]}
            try:
                prepared = prepare(whole, [target], searchers, options)
            except (SearchError, AllFailed):
                prepare(body, [target], searchers, options)  # which names the aggregation as the client does
                raise
            self._kept[key] = _State.of(target), prepared.request
            if len(self._kept) > _KEPT_MAX:
                self._kept.popitem(last=False)
            return prepared, name, True
        self._kept.move_to_end(key)
        query, _ = planned(body, target.context, options.hybrid)
        return _prepared(known[1].of_query(query or _EVERYTHING), target, options), name, True


def _prepared(request: SearchRequest, target: Target, options: SearchOptions) -> Prepared:
    return Prepared(request, scope_of(target.searcher, target.context, options), options, (target,))


def with_name(answer: dict[str, Any], name: str | None) -> dict[str, Any]:
    """The answer of a request of `KnownRequests.prepare`, its aggregation called as the client does."""
    if name is not None:
        answer["aggregations"] = {name: answer["aggregations"][_ONLY]}
    return answer
