"""What counts in one session, direction, stream and place counts in no other."""

from dataclasses import replace

import pytest

from actors.raft.credentials import ClusterCredentials
from actors.raft.peer_protocol import Handshake, PieceMarker, PieceReader, Refused, frames_of
from actors.raft.raft_pb2 import Frame

KEY = bytes(range(32))
HANDSHAKE = Handshake(KEY, 1, 2, b"a" * 32, b"b" * 32)
OTHERS = [
    replace(HANDSHAKE, key=bytes(32)),
    replace(HANDSHAKE, source=3),
    replace(HANDSHAKE, target=3),
    replace(HANDSHAKE, caller_nonce=b"c" * 32),
    replace(HANDSHAKE, called_nonce=b"c" * 32),
]


def read(frames: list[Frame], marker: PieceMarker, message_bytes_max: int = 10 << 20) -> list[bytes]:
    reader = PieceReader(marker, message_bytes_max)
    return [message for frame in frames if (message := reader.add(frame)) is not None]


def test_proofs_differ_by_everything_they_prove() -> None:
    proofs = [HANDSHAKE.caller_proof(), HANDSHAKE.called_proof()]
    proofs += [proof for other in OTHERS for proof in (other.caller_proof(), other.called_proof())]
    assert len({*proofs}) == len(proofs)


def test_marks_differ_by_session_purpose_and_number() -> None:
    markers = [each.message_marker() for each in [HANDSHAKE, *OTHERS]]
    for number in (1, 2):
        markers += [HANDSHAKE.request_marker(number), HANDSHAKE.answer_marker(number)]
    marks = {marker.mark(b"data", True) for marker in markers}
    assert len(marks) == len(markers)


@pytest.mark.parametrize("size", [0, 1, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 3 << 20])
def test_a_message_comes_back(size: int) -> None:
    message = bytes(size)
    frames = [*frames_of(message, HANDSHAKE.message_marker())]
    assert read(frames, HANDSHAKE.message_marker()) == [message]


def test_pieces_count_only_unchanged_and_in_their_place() -> None:
    marker = HANDSHAKE.message_marker()
    frames = [*frames_of(bytes(2 << 20), marker), *frames_of(b"second", marker)]
    assert read(frames, HANDSHAKE.message_marker()) == [bytes(2 << 20), b"second"]
    changed = Frame.FromString(frames[2].SerializeToString())
    changed.piece.data = b"Second"
    early = Frame.FromString(frames[0].SerializeToString())
    early.piece.last = True
    for tampered in [frames[1:], [frames[0], frames[0]], [*frames[:2], changed], [early], [frames[2]]]:
        with pytest.raises(Refused, match="MAC"):
            read(tampered, HANDSHAKE.message_marker())


def test_a_message_is_not_larger_than_agreed() -> None:
    frames = [*frames_of(bytes(3 << 20), PieceMarker(None))]
    with pytest.raises(Refused, match="more than 2097152 bytes"):
        read(frames, PieceMarker(None), 2 << 20)


def test_a_secret_is_never_shown() -> None:
    credentials = ClusterCredentials.of("a secret of the cluster")
    assert credentials.key is not None
    shown = repr(credentials) + repr(replace(HANDSHAKE, key=credentials.key))
    assert "secret" not in shown
    assert repr(credentials.key) not in shown
