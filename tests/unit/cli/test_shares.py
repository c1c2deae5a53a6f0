"""`shared_out`: each piece once, blank nodes together, failures come out, no thread is left behind."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from serve.cli import shares
from serve.cli.shares import shared_out
from tests.support.timing import HANG_S

PIECE = b"<urn:a> <urn:b> <urn:c> .\n" * 2_000
BLANK = b"_:a <urn:b> <urn:c> .\n"


class Loads:
    """What each load read."""

    def __init__(self) -> None:
        self.read: list[bytes] = []

    def __call__(self, share: Path) -> None:
        self.take(share.read_bytes())

    def take(self, document: bytes) -> None:
        if document.endswith(b"\n<\n"):
            raise SyntaxError("spoilt")
        self.read.append(document)


@pytest.fixture(autouse=True)
def no_thread_is_left(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(shares, "_FIRST_BYTES", 0)
    yield
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("load-")]


@pytest.mark.parametrize("loaders", [1, 2, 3])
def test_each_piece_is_loaded_once(loaders: int) -> None:
    pieces = [b"# %d\n%s" % (number, PIECE) for number in range(100)]  # more than the pipes hold
    loads, all_have_some = Loads(), threading.Barrier(loaders)

    def load(share: Path) -> None:
        with share.open("rb", buffering=0) as stream:
            start = stream.read(1)
            all_have_some.wait(HANG_S)
            loads.take(start + stream.read())

    shared_out(iter(pieces), load, loaders)
    assert len(loads.read) == loaders
    assert all(loads.read)
    assert sorted(line for part in loads.read for line in part.splitlines() if line[:1] == b"#") == sorted(
        piece.splitlines()[0] for piece in pieces
    )
    assert sum(map(len, loads.read)) == sum(map(len, pieces))


def test_blank_nodes_are_in_one_share() -> None:
    loads = Loads()
    shared_out((BLANK if number % 2 else PIECE for number in range(50)), loads, 3)
    assert [part.count(BLANK) for part in loads.read if BLANK in part] == [25]


def test_a_small_document_is_one_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shares, "_FIRST_BYTES", 10 * len(PIECE))
    loads = Loads()
    shared_out(iter([PIECE] * 10), loads, 2)
    assert sorted(map(len, loads.read)) == [0, 10 * len(PIECE)]


@pytest.mark.parametrize("error", [OSError("unreadable"), KeyboardInterrupt()])
def test_what_the_pieces_raise_comes_out_and_nothing_is_added(error: BaseException) -> None:
    def pieces() -> Iterator[bytes]:
        yield PIECE
        yield PIECE[:40]
        raise error

    loads = Loads()
    with pytest.raises(type(error)) as raised:
        shared_out(pieces(), loads, 2)
    assert raised.value is error
    assert loads.read == []


def test_a_load_that_fails_ends_the_others() -> None:
    """The document is endless: all end because one has failed."""
    loads, endless = Loads(), iter(lambda: PIECE, b"")

    def fails_in_the_first(share: Path) -> None:
        with share.open("rb", buffering=0) as stream:
            start = stream.read(7)
            if start == b"_:fails":
                raise MemoryError("a long token")
            loads.take(start + stream.read())

    def pieces() -> Iterator[bytes]:
        yield b"_:fails" + BLANK
        yield from endless

    with pytest.raises(MemoryError, match="a long token"):
        shared_out(pieces(), fails_in_the_first, 2)
    assert loads.read == []


def test_a_load_may_wait_for_another_one_to_end() -> None:
    """As loads into a store in memory do."""
    loads, others_ended = Loads(), threading.Event()

    def load(share: Path) -> None:
        if threading.current_thread().name == "load-0":
            assert others_ended.wait(HANG_S)
            loads(share)
        else:
            loads(share)
            others_ended.set()

    shared_out(iter([PIECE, BLANK]), load, 2)
    assert b"".join(loads.read).count(BLANK) == 1
