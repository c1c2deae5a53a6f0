"""Errors between processes: each comes out as it went in, and what is none is told apart."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.wire.messages import decode_error, encode_error
from graphdb.errors import (
    ConfigError,
    LogUnavailable,
    NotAcceptable,
    OutcomeUnknown,
    QuerySyntaxError,
    UnavailableError,
)
from tests.architecture.test_errors import CLASSES, example


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_each_class_round_trips(kind: type) -> None:
    error = example(kind)
    copy = decode_error(encode_error(error))
    assert (type(copy), copy.args, vars(copy), str(copy)) == (kind, error.args, vars(error), str(error))


@given(st.text(), st.integers(), st.integers())
def test_arguments_of_all_kinds_round_trip(reason: str, line: int, column: int) -> None:
    error = QuerySyntaxError(reason, line, column)
    assert decode_error(encode_error(error)).args == error.args


@given(st.lists(st.text()))
def test_lists_come_back_as_the_tuples_that_they_were(problems: list[str]) -> None:
    assert decode_error(encode_error(ConfigError(*problems))).args == tuple(problems)
    not_acceptable = decode_error(encode_error(NotAcceptable("a/b", tuple(problems))))
    assert isinstance(not_acceptable, NotAcceptable)
    assert not_acceptable.offered == tuple(problems)


class Ours(LogUnavailable):
    """A class of a name that the table does not have."""


class Impostor(Exception):
    """A class with a name that it does have."""


Impostor.__name__ = "LogUnavailable"


@pytest.mark.parametrize("error", [KeyError("x"), Ours("away"), Impostor("x"), SystemExit(3)])
@pytest.mark.parametrize("otherwise", [LogUnavailable, OutcomeUnknown, UnavailableError])
def test_an_error_without_a_name_here_becomes_another(
    error: BaseException, otherwise: type[UnavailableError]
) -> None:
    copy = decode_error(encode_error(error, otherwise))
    assert type(copy) is otherwise
    assert copy.args == (f"a part of the service failed: {error!r}", 1)


@given(st.binary() | st.recursive(st.none() | st.text() | st.integers(), st.lists).map(json.dumps))
def test_garbage_is_no_error(body: bytes | str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 that is all that is promised
        decode_error(body if isinstance(body, bytes) else body.encode())


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"kind": "NotLeader"},
        {"arguments": ["x"]},
        {"kind": ["NotLeader"], "arguments": ["x"]},
        {"kind": "NotLeader", "arguments": None},
        {"kind": "NotLeader", "arguments": []},
        {"kind": "NotLeader", "arguments": [1, 2, 3, 4]},
    ],
)
def test_what_names_no_error_of_ours_is_none(fields: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="no error"):
        decode_error(json.dumps(fields).encode())


@pytest.mark.parametrize("name", ["NoSuchError", "Exception"])
def test_an_error_of_an_unknown_class_is_an_outcome_unknown_that_names_it(name: str) -> None:
    error = decode_error(json.dumps({"kind": name, "arguments": ["x"]}).encode())
    assert isinstance(error, OutcomeUnknown)
    assert isinstance(error, UnavailableError)
    assert error.reason == f"a part of the service failed with an unknown error, {name}"
