"""What a port asks of its cluster's log, as bytes."""

import struct
from contextlib import suppress

import msgspec
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.log.protocol import LOG_MESSAGES
from actors.raft.log_requests import (
    RAFT_LOG_MESSAGES,
    ClusterView,
    Confirm,
    Finish,
    Forward,
    ForwardedRequest,
    MemberChange,
    Offer,
    ReadIndex,
    ReceivedSnapshot,
    RequestQueue,
    Requests,
    Take,
    ViewedMember,
    Watch,
    decode_change,
    decode_requests,
    encode_change,
    encode_requests,
)
from tests.support.travelling import travelled

NUMBERS = st.integers(0, 2**63 - 1)
NODE_IDS = st.integers(1, 2**31)
TEXTS = st.text(st.characters(codec="utf-8"))
REQUESTS = st.builds(ForwardedRequest, NUMBERS, TEXTS, TEXTS, st.binary())
MEMBERS = st.builds(ViewedMember, NODE_IDS, TEXTS, st.booleans(), st.booleans(), NUMBERS | st.none())
VIEWS = st.builds(
    ClusterView,
    version=NUMBERS,
    role=TEXTS,
    term=NUMBERS,
    leader_id=NODE_IDS | st.none(),
    committed_index=NUMBERS,
    last_index=NUMBERS,
    elections=NUMBERS,
    messages_dropped=NUMBERS,
    snapshot_wanted=st.booleans(),
    received=st.builds(ReceivedSnapshot, NUMBERS, TEXTS) | st.none(),
    failure=TEXTS | st.none(),
    members=st.lists(MEMBERS, max_size=4).map(tuple),
)
TIMEOUTS_S = st.integers(0, 2**32 - 1).map(lambda milliseconds: milliseconds / 1000)


@given(VIEWS)
def test_views_round_trip(view: ClusterView) -> None:
    assert travelled(RAFT_LOG_MESSAGES, view) == view


@given(st.lists(REQUESTS))
def test_requests_round_trip(requests: list[ForwardedRequest]) -> None:
    assert travelled(RAFT_LOG_MESSAGES, Requests(requests)) == Requests(requests)
    assert decode_requests(encode_requests(requests)) == requests


@given(NODE_IDS, REQUESTS, TIMEOUTS_S)
def test_forwarding_round_trips(node_id: int, request: ForwardedRequest, timeout_s: float) -> None:
    forward = Forward(node_id, request, timeout_s)
    assert travelled(RAFT_LOG_MESSAGES, forward) == forward


@given(NUMBERS, st.booleans(), st.binary(), TEXTS, st.sampled_from(RequestQueue))
def test_the_small_ones_round_trip(
    number: int, succeeded: bool, outcome: bytes, path: str, queue: RequestQueue
) -> None:
    for message in (
        Watch(number, number // 3),
        Finish(queue, number, succeeded, outcome),
        Offer(number, path),
        Take(queue, number),
    ):
        assert travelled(RAFT_LOG_MESSAGES, message) == message


@given(TEXTS, NODE_IDS, TEXTS)
def test_changes_round_trip(kind: str, node_id: int, address: str) -> None:
    change = MemberChange(kind, node_id, address)
    assert decode_change(encode_change(change)) == change
    assert travelled(RAFT_LOG_MESSAGES, change) == change


@given(TIMEOUTS_S)
def test_timeouts_keep_their_milliseconds(timeout_s: float) -> None:
    assert travelled(RAFT_LOG_MESSAGES, ReadIndex(timeout_s)) == ReadIndex(timeout_s)
    assert travelled(RAFT_LOG_MESSAGES, Confirm(1, timeout_s)) == Confirm(1, timeout_s)


def test_the_bytes_are_those_that_are_told() -> None:
    request = ForwardedRequest(258, "update", "00ff", b"\1\2")
    head = orjson.dumps({"operation": "update", "request_id": "00ff"})
    encoded = struct.pack("<QII", 258, len(head), 2) + head + b"\1\2"
    assert encode_requests([request]) == encoded


def test_no_code_stands_for_two_requests() -> None:
    """A port that knows `LOG_MESSAGES` only talks to a log of either kind."""
    kinds = RAFT_LOG_MESSAGES.kinds
    assert len(set(kinds)) == len(kinds)
    assert kinds[: len(LOG_MESSAGES.kinds)] == LOG_MESSAGES.kinds


@given(st.binary(min_size=1))
def test_garbage_is_no_view_and_no_change(body: bytes) -> None:
    with suppress(ValueError, TypeError, KeyError):
        decode_change(body)
        raise AssertionError("it was taken")
    with suppress(msgspec.DecodeError, UnicodeDecodeError):
        view = msgspec.msgpack.decode(body, type=ClusterView)
        assert view == ClusterView()  # whose bytes are those of no fields
        assert body[0] in (*range(0x80, 0x90), 0xDE, 0xDF)


@given(REQUESTS, st.data())
def test_a_request_whose_head_is_cut_short_is_none(request: ForwardedRequest, data: st.DataObject) -> None:
    encoded = encode_requests([request])
    head_end = len(encoded) - len(request.body)
    end = data.draw(st.integers(1, head_end - 1))
    with pytest.raises((ValueError, TypeError, struct.error)):
        decode_requests(encoded[:end])
