"""Errors travel between nodes as themselves, but for damage."""

import pytest

from actors.raft.peer_protocol import decode_failure, encode_failure
from actors.raft.raft_pb2 import Failure
from graphdb.errors import CorruptionError, OutcomeUnknown
from tests.architecture.test_errors import CLASSES, example


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_round_trip(kind: type) -> None:
    error = example(kind)
    copy = decode_failure(Failure.FromString(encode_failure(error).SerializeToString()))
    if kind is CorruptionError:
        assert type(copy) is OutcomeUnknown
    else:
        assert (type(copy), copy.args, vars(copy)) == (kind, error.args, vars(error))


@pytest.mark.parametrize(
    "failure",
    [
        Failure(),
        Failure(error=b'{"kind": "NotLeader", "arguments": {}'),
        Failure(error=b'{"kind": "NotLeader", "arguments": []}'),
        Failure(error=b'{"kind": "NotLeader", "arguments": 7}'),
        Failure(error=b'{"kind": "NotLeader", "arguments": [1, 2, 3, 4, 5]}'),
        Failure(error=b'{"kind": "SystemExit", "arguments": []}'),
        Failure(error=b'{"kind": "CorruptionError", "arguments": ["a", "b"]}'),
    ],
    ids=["empty", "no JSON", "too few", "no list", "too many", "none of ours", "damage"],
)
def test_what_cannot_be_understood_leaves_the_outcome_unknown(failure: Failure) -> None:
    assert type(decode_failure(failure)) is OutcomeUnknown
