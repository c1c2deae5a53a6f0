"""Messages between peers: what is encoded is decoded, and no bytes from outside do more than be refused."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphdb.model import EntryKind, LogEntry
from graphdb.raft import messages as message_codec
from graphdb.raft.membership import Member, Members, PeerId, decode_members, encode_members
from graphdb.raft.messages import (
    Append,
    AppendAnswer,
    Envelope,
    Hello,
    ReadAnswer,
    ReadRequest,
    SnapshotAnswer,
    SnapshotChunk,
    SnapshotMark,
    TimeoutNow,
    VoteAnswer,
    VoteRequest,
    Welcome,
    decode_envelope,
    encode_envelope,
)
from graphdb.raft.wire import Malformed

U64 = st.integers(0, 2**64 - 1)
SMALL = st.integers(0, 2**40)
FLAG = st.booleans()
PEERS = st.builds(PeerId, st.integers(0, 2**32 - 1), st.integers(1, 2**64 - 1))
MEMBER = st.builds(Member, PEERS, st.text(max_size=50), FLAG)
MEMBERS = st.lists(MEMBER, max_size=7, unique_by=lambda member: member.peer.node_id).map(
    lambda members: Members(tuple(members))
)
MARKS = st.builds(SnapshotMark, U64, U64, MEMBERS)


@st.composite
def appends(draw: st.DrawFn) -> Append:
    index, term = draw(SMALL), draw(SMALL)
    entries, entry_term = [], term
    for position in range(draw(st.integers(0, 4))):
        entry_term += draw(st.integers(0, 2))
        kind = draw(st.sampled_from(EntryKind))
        payload = encode_members(draw(MEMBERS)) if kind is EntryKind.MEMBERS else draw(st.binary(max_size=40))
        request_id = draw(st.binary(min_size=16, max_size=16))
        entries.append(LogEntry(index + 1 + position, entry_term, kind, request_id, draw(U64), payload))
    return Append(index, term, draw(U64), draw(U64), tuple(entries))


BODIES = st.one_of(
    st.builds(VoteRequest, U64, U64, FLAG, FLAG),
    st.builds(VoteAnswer, FLAG, FLAG),
    appends(),
    st.builds(AppendAnswer, FLAG, U64, U64, U64, U64),
    st.builds(SnapshotChunk, MARKS, U64, st.binary(max_size=60), FLAG),
    st.builds(SnapshotAnswer, U64, U64),
    st.builds(TimeoutNow),
    st.builds(ReadRequest, U64),
    st.builds(ReadAnswer, U64, U64),
    st.builds(Hello, st.text(max_size=50), U64),
    st.builds(Welcome, U64),
)
TERMS = st.integers(2**41, 2**63)  # no entry is of a later term than its leader's
ENVELOPES = st.builds(Envelope, U64, TERMS, PEERS, PEERS, BODIES)


@given(ENVELOPES)
def test_what_is_encoded_is_decoded(envelope: Envelope) -> None:
    assert decode_envelope(encode_envelope(envelope)) == envelope


@given(ENVELOPES, st.data())
def test_changed_bytes_are_refused_or_are_another_message(envelope: Envelope, data: st.DataObject) -> None:
    encoded = bytearray(encode_envelope(envelope))
    for _ in range(data.draw(st.integers(1, 3))):
        encoded[data.draw(st.integers(0, len(encoded) - 1))] = data.draw(st.integers(0, 255))
    try:
        decoded = decode_envelope(bytes(encoded))
    except Malformed:
        return
    assert decode_envelope(encode_envelope(decoded)) == decoded


@given(ENVELOPES, st.data())
def test_a_message_cut_short_or_with_more_behind_it_is_refused(
    envelope: Envelope, data: st.DataObject
) -> None:
    encoded = encode_envelope(envelope)
    with pytest.raises(Malformed):
        decode_envelope(encoded[: data.draw(st.integers(0, len(encoded) - 1))])
    with pytest.raises(Malformed):
        decode_envelope(encoded + data.draw(st.binary(min_size=1, max_size=9)))


@given(st.binary(max_size=300))
def test_any_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(Malformed):
        decode_envelope(data)


@given(st.integers(1, 11), st.binary(max_size=200))
def test_any_body_is_a_message_or_refused(code: int, body: bytes) -> None:
    head = struct.pack("<4sBBQQIQIQ", b"GDBR", 1, code, 1, 1, 1, 1, 2, 2)
    try:
        decode_envelope(head + body)
    except Malformed:
        return


@given(MEMBERS)
def test_members_are_decoded_as_encoded(members: Members) -> None:
    assert decode_members(encode_members(members)) == members


def test_a_message_over_the_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded = encode_envelope(Envelope(1, 1, PeerId(1, 1), PeerId(2, 2), Hello("a" * 100, 0)))
    monkeypatch.setattr(message_codec, "MESSAGE_BYTES_MAX", 100)
    with pytest.raises(Malformed, match="a message of"):
        decode_envelope(encoded)


def test_entries_that_leave_a_gap_or_fall_back_in_term_are_refused() -> None:
    def message(*places: tuple[int, int]) -> bytes:
        entries = tuple(LogEntry(i, t, EntryKind.CHANGES, bytes(16), 0, b"") for i, t in places)
        body = Append(4, 2, 0, 0, entries)
        return encode_envelope(Envelope(1, 3, PeerId(1, 1), PeerId(2, 2), body))

    assert decode_envelope(message((5, 2), (6, 3)))
    for places in [((6, 2),), ((5, 2), (7, 2)), ((5, 1),), ((5, 3), (6, 2)), ((5, 4),)]:
        with pytest.raises(Malformed):
            decode_envelope(message(*places))
