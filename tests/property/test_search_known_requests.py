"""Searches of known forms against those that are parsed alone, and what else is found once for many."""

import json
import pickle
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from unittest.mock import patch

import numpy as np
import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graphdb.search.abstract import Abstract
from graphdb.search.analysis import Analyzers
from graphdb.search.errors import SearchError
from graphdb.search.mapping import Mapping
from graphdb.search.multi import Searchers, Target, known_requests, prepare
from graphdb.search.multi.known_requests import KnownRequests, with_name
from graphdb.search.multi.prepared import AllFailed, Prepared, is_short
from graphdb.search.query import Query, QueryContext, Searcher, parse_query
from graphdb.search.query.slots import Slot, slotted
from graphdb.search.results import SearchOptions
from graphdb.search.results.sort_keys import short_float, short_floats
from graphdb.search.segments.index_shard import IndexShard
from graphdb.search.segments.operations import Action, Operation
from serve.search.frame.exchange import parse_json

ANALYZERS = Analyzers.of({})
FIELDS = {
    "t": {"type": "text"},
    "e": {"type": "text", "analyzer": "english"},
    "k": {"type": "keyword"},
    "n": {"type": "integer"},
    "p": {"type": "double"},
    "d": {"type": "date"},
    "i": {"type": "ip"},
    "b": {"type": "boolean"},
    "r": {"type": "integer_range"},
}
OPTIONS = SearchOptions(raw_source=True)
some = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def _document(number: int) -> dict[str, Any]:
    words = " ".join(f"w{number * step % 7}" for step in range(1, 5))
    return {
        "t": words,
        "e": f"the {words} running",
        "k": [f"k{number % 3}", f"k{number % 5}"],
        "n": number % 11,
        "p": number / 4,
        "d": f"2020-01-{number % 28 + 1:02}",
        "i": f"10.0.0.{number % 9}",
        "b": number % 2 == 0,
        "r": {"gte": number % 6, "lte": number % 6 + 2},
    }


def _target(count: int = 60, fields: dict[str, Any] | None = None, **context: Any) -> Target:
    """Two segments, some documents deleted."""
    shard = IndexShard("i", Mapping.of({"properties": fields or FIELDS}, ANALYZERS), {})
    for start in (0, count // 2):
        numbers = range(start, start + count // 2)
        shard.apply([Operation(Action.INDEX, str(n), orjson.dumps(_document(n))) for n in numbers])
        shard.refresh()
    shard.apply([Operation(Action.DELETE, str(number), b"") for number in range(0, count, 9)])
    shard.refresh()
    own = QueryContext(shard.mapping, ANALYZERS, now_ms=1_579_000_000_000, index_name="i", **context)
    return Target(Searcher(shard.leaves(), shard.mapping, ANALYZERS), own)


TARGET = _target()

texts = st.lists(st.sampled_from(["w0", "w1", "W2", "w3", "running", "the", "é", '"\\', "now"]), max_size=4)
values = st.one_of(
    texts.map(" ".join),
    st.sampled_from(
        ["k0", "k1", "2020-01-05", "now", "now-1d/d", "10.0.0.3", "10.0.0.0/29", "true", "1.5", "x"]
    ),
    st.integers(-3, 12),
    st.sampled_from([2**40, -(2**63), 0.5, -0.0, 1e16, 1e300, True, None]),
)
paths = st.sampled_from(["t", "e", "k", "n", "p", "d", "i", "b", "r", "_id", "_index", "missing"])
boosts: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [{}, {}, {"boost": 2}, {"boost": 0}, {"_name": "q"}, {"boost": -1}]
)


_OPTIONS: dict[str, list[dict[str, Any]]] = {
    "match": [{"operator": "and"}, {"minimum_should_match": "50%"}, {"fuzziness": 1}, {"analyzer": "x"}],
    "match_phrase": [{"slop": 2}, {"zero_terms_query": "all"}, {"slop": -1}],
    "match_bool_prefix": [{"operator": "and"}],
    "match_phrase_prefix": [{"max_expansions": 3}],
}


@st.composite
def matches(draw: st.DrawFn) -> Any:
    kind = draw(st.sampled_from(["match", "match_phrase", "match_bool_prefix", "match_phrase_prefix"]))
    path, value = draw(paths), draw(values)
    if draw(st.booleans()):
        return {kind: {path: value}}
    options: dict[str, Any] = draw(st.sampled_from([{}, *_OPTIONS[kind]])) | draw(boosts)
    return {kind: {path: {"query": value} | options}}


@st.composite
def terms(draw: st.DrawFn) -> Any:
    path, listed = draw(paths), draw(st.lists(values, max_size=3))
    form = draw(st.integers(0, 3))
    if form == 0:
        return {"terms": {path: listed} | draw(boosts)}
    if form == 1:
        return {"term": {path: draw(values)}}
    return {"term": {path: {"value": draw(values)} | draw(boosts)}}


@st.composite
def ranges(draw: st.DrawFn) -> Any:
    names = draw(st.lists(st.sampled_from(["gte", "gt", "lt", "lte", "from", "to"]), max_size=2, unique=True))
    bounds = {name: draw(values) for name in names}
    more = draw(
        st.sampled_from([{}, {}, {"time_zone": "+02:00"}, {"format": "yyyy-MM-dd"}, {"relation": "within"}])
    )
    return {"range": {draw(paths): bounds | more | draw(boosts)}}


fixed = st.sampled_from(
    [
        {"match_all": {}},
        {"match_none": {}},
        {"exists": {"field": "n"}},
        {"prefix": {"k": "k"}},  # takes no part
        {"ids": {"values": ["1", "2"]}},
    ]
)
leaves = st.one_of(matches(), terms(), ranges(), fixed)


def _around(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.one_of(inner, st.lists(inner, max_size=2))
    parts = st.fixed_dictionaries(
        {},
        optional={
            "must": several,
            "filter": several,
            "should": several,
            "must_not": several,
            "minimum_should_match": st.sampled_from([1, "2"]),
            "boost": st.sampled_from([1, 3]),
        },
    )
    constant = inner.map(lambda one: {"constant_score": {"filter": one, "boost": 2}})
    return st.one_of(parts.map(lambda one: {"bool": one}), constant)


queries = st.recursive(leaves, _around, max_leaves=4)
aggregations = st.one_of(
    st.builds(
        lambda interval, more: {"histogram": {"field": "n", "interval": interval} | more},
        st.sampled_from([1, 2, 2.5, "3", 0, -1, None, "x"]),
        st.sampled_from([{}, {"offset": 1}, {"min_doc_count": 1}, {"keyed": True}, {"missing": 3}])
        | st.just({"extended_bounds": {"min": 0, "max": 20}}),
    ),
    st.sampled_from(
        [
            {"terms": {"field": "k", "size": 2}},
            {"terms": {"field": "n", "order": {"_count": "asc"}}},
            {"terms": {"field": "k", "min_doc_count": 0}},
            {"terms": {"field": "k", "missing": "k00"}},
            {"date_histogram": {"field": "d", "calendar_interval": "month"}},
            {"avg": {"field": "p"}},
        ]
    ),
)
rests = st.one_of(
    st.sampled_from(
        [{}, {"from": 1, "size": 3}, {"sort": [{"n": "desc"}, "_doc"]}, {"track_total_hits": False}]
    ),
    st.tuples(st.sampled_from(["a", "b.c", "x y", "_"]), aggregations).map(
        lambda pair: {"size": 0, "aggs": {pair[0]: pair[1]}}
    ),
)
bodies = st.builds(
    lambda query, rest: rest if query is None else {"query": query, **rest}, st.none() | queries, rests
)


def _answer(prepared: Prepared, name: str | None) -> Any:
    return orjson.loads(orjson.dumps(with_name(prepared.run(), name)))


def _outcome(make: Any) -> Any:
    try:
        return _answer(*make())
    except AllFailed as failed:
        return "failed", [str(failure.error) for failure in failed.failures]
    except SearchError as error:
        return "failed", [str(error)]


def _both(known: KnownRequests, body: dict[str, Any], target: Target) -> tuple[Any, Any]:
    searchers = Searchers()
    return (
        _outcome(lambda: known.prepare(body, target, searchers, OPTIONS)),
        _outcome(lambda: (prepare(body, [target], searchers, OPTIONS), None)),
    )


def _with_others(body: Any, value: st.SearchStrategy[Any], draw: Any, inside: bool = False) -> Any:
    """The same form: other texts and numbers, as far as they are of a query, or an interval."""
    if isinstance(body, dict):
        return {
            name: draw(value) if inside and name in _OPEN else _with_others(one, value, draw, True)
            for name, one in body.items()
        }
    if isinstance(body, list):
        return [_with_others(one, value, draw, inside) for one in body]
    return body


_OPEN = {"value", "gte", "gt", "lt", "lte", "interval", "t", "k", "n", "d"}


@some
@given(st.data(), st.lists(bodies, min_size=1, max_size=3))
def test_known_forms_answer_as_parsed_alone(data: st.DataObject, asked: list[Any]) -> None:
    """Each again and again, with other values in between."""
    known = KnownRequests()
    for body in asked:
        others = [_with_others(body, values, data.draw) for _ in range(3)]
        for one in (body, *others, body):
            found, alone = _both(known, one, TARGET)
            assert found == alone, one


_SPELLINGS: list[Callable[[Any], bytes]] = [
    orjson.dumps,
    lambda body: orjson.dumps(body, option=orjson.OPT_INDENT_2),
    lambda body: json.dumps(body).encode(),
    lambda body: json.dumps(body, ensure_ascii=False, separators=(" , ", ":\t")).encode(),
]


def _changed(text: bytes, draw: Any) -> bytes:
    """With another byte at one place, or one more or less."""
    place = draw(st.integers(0, len(text)))
    byte = draw(st.sampled_from([b'"', b"{", b"}", b",", b"\\", b"0", b"-", b"e", b" ", b"\0", b"\xff", b""]))
    changed: bytes = text[:place] + byte + text[place + draw(st.integers(0, 1)) :]
    return changed


@some
@given(st.data(), st.lists(bodies, min_size=1, max_size=2), st.sampled_from(_SPELLINGS))
def test_known_texts_answer_as_parsed_alone(
    data: st.DataObject, asked: list[Any], spelt: Callable[[Any], bytes]
) -> None:
    """Also those that are no JSON, or another request, and were a known one but for a byte."""
    known, searchers = KnownRequests(), Searchers()
    with patch.object(known_requests, "_SPELT_AFTER", 1):
        for body in asked:
            for _ in range(3):
                other = _with_others(body, values, data.draw)
                with suppress(SearchError, AllFailed):
                    known.prepare(other, TARGET, searchers, OPTIONS, spelt(other))
            for text in (spelt(body), _changed(spelt(body), data.draw)):
                _check_of_text(known, text)


def _check_of_text(known: KnownRequests, text: bytes) -> None:
    found = known.of_text(text, TARGET, OPTIONS)
    if found is not None:
        alone = _outcome(lambda: (prepare(parse_json(text), [TARGET], Searchers(), OPTIONS), None))
        assert _outcome(lambda: found) == alone, text


def test_a_text_that_comes_often_is_not_read_as_json() -> None:
    known, searchers = KnownRequests(), Searchers()

    def body(text: str, name: str, interval: float) -> dict[str, Any]:
        histogram = {"histogram": {"interval": interval, "field": "n"}}
        return {"size": 0, "aggs": {name: histogram}, "query": {"match": {"t": {"query": text}}}}

    for number in range(known_requests._SPELT_AFTER + 1):
        own = body(f"w{number}", f"a{number}", number + 1)
        assert known.of_text(json.dumps(own).encode(), TARGET, OPTIONS) is None
        known.prepare(own, TARGET, searchers, OPTIONS, json.dumps(own).encode())
    last = body("w3 w1", "by", 2.5)
    found = known.of_text(json.dumps(last).encode(), TARGET, OPTIONS)
    assert found is not None
    assert found[1] == "by"
    assert _answer(*found) == _answer(prepare(last, [TARGET], searchers, OPTIONS), None)
    assert known.of_text(json.dumps(last).encode(), _target(max_terms_count=1), OPTIONS) is None
    assert known.of_text(json.dumps(body("\u0000", "by", 1)).encode(), TARGET, OPTIONS) is None  # an escape
    assert known.of_text(orjson.dumps(last), TARGET, OPTIONS) is None  # another spelling


def test_a_known_form_is_not_parsed() -> None:
    known = KnownRequests()
    rest = {"size": 0, "aggs": {"by": {"histogram": {"field": "n", "interval": 2}}}}
    body = {"query": {"bool": {"must": {"match": {"t": "w1"}}, "filter": [{"range": {"n": {"gte": 1}}}]}}}
    known.prepare(body | rest, TARGET, Searchers(), OPTIONS)
    rest = {"size": 0, "aggs": {"other": {"histogram": {"field": "n", "interval": 3.5}}}}
    body = {
        "query": {"bool": {"must": {"match": {"t": "w3 w4"}}, "filter": [{"range": {"n": {"gte": 0.5}}}]}}
    }
    alone = _answer(prepare(body | rest, [TARGET], Searchers(), OPTIONS), None)
    with patch.object(known_requests, "prepare", None), patch.object(known_requests, "planned", None):
        prepared, name = known.prepare(body | rest, TARGET, Searchers(), OPTIONS)
    assert _answer(prepared, name) == alone
    assert name == "other"


def test_what_was_read_holds_for_one_state_of_an_index() -> None:
    known = KnownRequests()
    body = {"query": {"terms": {"k": ["k0", "k1"]}}}
    changed = [
        TARGET,
        _target(fields={**FIELDS, "k": {"type": "text"}}),
        _target(max_terms_count=1),
        _target(allow_expensive=False),
        TARGET,
    ]
    body_of_range = {"query": {"range": {"k": {"gte": "k1"}}}}
    for target in changed:
        for one in (body, body_of_range) * 2:
            found, alone = _both(known, one, target)
            assert found == alone


def test_forms_that_help_little_are_few() -> None:
    known = KnownRequests()
    for number in range(2_000):
        for body in ({"query": {"prefix": {"k": f"{number}"}}}, {"from": number, "size": 1}):
            known.prepare(body, TARGET, Searchers(), OPTIONS)
    for outline in known._outlines.values():
        assert sum(len(form.known) for form in outline._forms) <= 256
    assert len(known._outlines) <= 256


@given(
    st.recursive(st.none() | st.booleans() | st.integers(0, 9) | st.text(max_size=3), st.lists, max_leaves=9)
)
def test_slots_are_in_the_order_of_the_text(value: Any) -> None:
    body = {"a": value, "b": {"c": value}}
    slots, count = slotted(body, 0)
    found: list[Any] = []

    def look(one: Any) -> None:
        if isinstance(one, dict):
            for name, inner in one.items():
                found.append(name)
                look(inner)
        elif isinstance(one, list):
            for inner in one:
                look(inner)
        elif isinstance(one, Slot):
            assert one.place == len(found)
            found.append(one.value)

    look(slots)
    assert len(found) == count


@given(st.lists(st.floats(width=32), max_size=20))
def test_scores_are_written_together_as_alone(scores: list[float]) -> None:
    array = np.array(scores, np.float32)
    assert np.array_equal(short_floats(array), list(map(short_float, array.tolist())), equal_nan=True)


def test_nodes_of_a_query_are_its_own() -> None:
    body = {"bool": {"must": [{"match": {"t": "a b"}}], "filter": {"term": {"k": "x"}}}}
    query = parse_query(body, TARGET.context)
    assert [str(node) for node in query.nodes][1:3] == ["t:a t:b", "t:a"]
    assert b"nodes" not in pickle.dumps(query)
    assert pickle.loads(pickle.dumps(query)) == query


def test_abstract_classes_know_their_subclasses_alone() -> None:
    with pytest.raises(TypeError, match="abstract"):
        Query()  # type: ignore[abstract]
    assert isinstance(parse_query({"match_all": {}}, TARGET.context), Query)
    assert issubclass(Query, Abstract)
    assert not isinstance(1, Query)


def test_a_known_search_is_as_short() -> None:
    known = KnownRequests()
    for body in ({"query": {"match": {"t": "w1 w2"}}}, {"sort": "n"}, {"query": {"prefix": {"k": "k"}}}):
        for _ in range(2):
            found, _ = known.prepare(body, TARGET, Searchers(), OPTIONS)
            assert is_short(found) == is_short(prepare(body, [TARGET], Searchers(), OPTIONS))
