"""JSON of requests, read strictly, against Python's own reader."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from graphdb.search.errors import SearchError
from serve.search.frame.exchange import DEPTH_MAX, parse_json

NAMES = st.sampled_from(['"a"', '"b"', '"a:b"', '"\\u0061"', '"\\u003a"', '"{"', '"\\""', '""'])
SIMPLE = st.one_of(
    NAMES, st.sampled_from(["1", "-0.5", "null", "true", '"a:b"', '"["', '"\\\\"', "[]", "[[1]]", "{}"])
)
MEMBERS = st.builds("{}{}{}".format, NAMES, st.sampled_from([":", " : ", ": "]), SIMPLE)
OBJECTS = st.lists(MEMBERS, max_size=4).map(lambda members: "{" + ",".join(members) + "}")
TEXTS = st.one_of(
    OBJECTS,
    OBJECTS,
    st.lists(OBJECTS, max_size=2).map(lambda items: "[" + ",".join(items) + "]"),
    OBJECTS.map(lambda inner: '{"c":%s}' % inner),  # noqa: UP031 braces
    OBJECTS.map(lambda inner: '{"c":"d","a":[%s],"e":":"}' % inner),  # noqa: UP031 braces
)


class Repeated(Exception):
    """A name that an object has twice."""


def once(members: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(members)) < len(members):
        raise Repeated
    return dict(members)


@given(TEXTS)
@example('{"a":":","a":":"}')
@example('{"a":1,"a":":"}')
@example('{"a:":1,"a:":2}')
@example('{"a":1,"b":{},"b":2}')
def test_no_name_stands_twice_in_an_object(text: str) -> None:
    try:
        wanted = json.loads(text, object_pairs_hook=once)
    except Repeated:
        with pytest.raises(SearchError, match="Duplicate"):
            parse_json(text.encode())
    else:
        assert parse_json(text.encode()) == wanted


@pytest.mark.parametrize("depth", [DEPTH_MAX - 1, DEPTH_MAX, DEPTH_MAX + 1, DEPTH_MAX + 60])
def test_arrays_may_be_so_deep(depth: int) -> None:
    text = b'{"a":' + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}"
    if depth <= DEPTH_MAX:
        assert list(parse_json(text)) == ["a"]
    else:
        with pytest.raises(SearchError, match="depth"):
            parse_json(text)
