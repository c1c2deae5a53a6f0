"""What a port asks of its cluster's log, as bytes."""

import struct
from contextlib import suppress

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.log.protocol import Request
from actors.raft.log_requests import (
    ClusterView,
    ForwardedRequest,
    MemberChange,
    RaftLogRequest,
    ReceivedSnapshot,
    ViewedMember,
    decode_change,
    decode_finish,
    decode_forward,
    decode_offer,
    decode_requests,
    decode_timeout,
    decode_view,
    decode_watch,
    encode_change,
    encode_finish,
    encode_forward,
    encode_offer,
    encode_requests,
    encode_timeout,
    encode_view,
    encode_watch,
)

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
    assert decode_view(encode_view(view)) == view


@given(st.lists(REQUESTS))
def test_requests_round_trip(requests: list[ForwardedRequest]) -> None:
    assert decode_requests(encode_requests(requests)) == requests


@given(NODE_IDS, REQUESTS, TIMEOUTS_S)
def test_forwarding_round_trips(node_id: int, request: ForwardedRequest, timeout_s: float) -> None:
    assert decode_forward(encode_forward(node_id, request, timeout_s)) == (node_id, request, timeout_s)


@given(NUMBERS, st.booleans(), st.binary(), TEXTS)
def test_the_small_ones_round_trip(number: int, succeeded: bool, outcome: bytes, path: str) -> None:
    assert decode_watch(encode_watch(number, number // 3)) == (number, number // 3)
    assert decode_finish(encode_finish(number, succeeded, outcome)) == (number, succeeded, outcome)
    assert decode_offer(encode_offer(number, path)) == (number, path)


@given(TEXTS, NODE_IDS, TEXTS)
def test_changes_round_trip(kind: str, node_id: int, address: str) -> None:
    change = MemberChange(kind, node_id, address)
    assert decode_change(encode_change(change)) == change


@given(TIMEOUTS_S)
def test_timeouts_keep_their_milliseconds(timeout_s: float) -> None:
    assert decode_timeout(encode_timeout(timeout_s)) == timeout_s


@pytest.mark.parametrize(("timeout_s", "kept_s"), [(0.0004, 0.0), (0.0006, 0.001), (2.0004, 2.0)])
def test_a_timeout_is_rounded_to_milliseconds(timeout_s: float, kept_s: float) -> None:
    assert decode_timeout(encode_timeout(timeout_s)) == kept_s


def test_the_bytes_are_those_that_are_told() -> None:
    request = ForwardedRequest(258, "update", "00ff", b"\1\2")
    head = orjson.dumps({"operation": "update", "request_id": "00ff"})
    encoded = struct.pack("<QII", 258, len(head), 2) + head + b"\1\2"
    assert encode_requests([request]) == encoded
    assert encode_forward(3, request, 1.5) == struct.pack("<II", 1500, 3) + encoded
    assert encode_finish(258, True, b"x") == b"\2\1\0\0\0\0\0\0\1x"


def test_no_code_stands_for_two_requests() -> None:
    assert not {*map(int, RaftLogRequest)} & {*map(int, Request)}
    assert min(RaftLogRequest) >= 16


@given(st.binary(min_size=1))
def test_garbage_is_no_view_and_no_change(body: bytes) -> None:
    for decode in (decode_view, decode_change):
        with suppress(ValueError, TypeError, KeyError):
            decode(body)
            raise AssertionError("it was taken")


@given(REQUESTS, st.data())
def test_a_request_whose_head_is_cut_short_is_none(request: ForwardedRequest, data: st.DataObject) -> None:
    encoded = encode_requests([request])
    head_end = len(encoded) - len(request.body)
    end = data.draw(st.integers(1, head_end - 1))
    with pytest.raises((ValueError, TypeError, struct.error)):
        decode_requests(encoded[:end])


@given(st.binary(max_size=7))
def test_what_is_too_short_is_refused(body: bytes) -> None:
    for decode in (decode_watch, decode_finish, decode_offer):
        with pytest.raises(struct.error):
            decode(body)
    with pytest.raises((struct.error, ValueError)):
        decode_forward(body)
