"""Failures of one node's processes, counted together."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from actors.access.failure_board import FailureBoard
from graphdb.config.access import RateLimiting
from tests.support.timing import HANG_S

LIMITS = RateLimiting(max_attempts=3, window_seconds=10, lockout_duration=20, whitelist=("10.0.0.0/8",))


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "failures")


@pytest.fixture
def opened(path: str) -> Iterator[Callable[[], FailureBoard]]:
    boards = []

    def make() -> FailureBoard:
        boards.append(FailureBoard(path, LIMITS))
        return boards[-1]

    yield make
    for board in boards:
        board.close()


def test_what_one_notes_the_others_know(opened: Callable[[], FailureBoard]) -> None:
    graph, search = opened(), opened()
    graph.note_failure("192.0.2.1", 100)
    search.note_failure("192.0.2.1", 101)
    assert graph.wait_s("192.0.2.1", 101) == search.wait_s("192.0.2.1", 101) == 0
    graph.note_failure("192.0.2.1", 102)
    assert graph.wait_s("192.0.2.1", 103) == search.wait_s("192.0.2.1", 103) == 19
    assert search.wait_s("192.0.2.2", 103) == 0
    assert opened().wait_s("192.0.2.1", 103) == 19  # a process made again


def test_another_process(path: str, opened: Callable[[], FailureBoard]) -> None:
    board = opened()
    noted = "[board.note_failure('192.0.2.1', 100) for _ in range(3)]"
    text = f"from {__name__} import *; board = FailureBoard({path!r}, LIMITS); {noted}"
    subprocess.run(
        [sys.executable, "-W", "ignore", "-c", text],
        check=True,
        cwd=Path(__file__).parents[4],
        timeout=HANG_S,
    )
    assert board.wait_s("192.0.2.1", 101) == 19


def test_the_whitelist_takes_no_room(path: str, opened: Callable[[], FailureBoard]) -> None:
    board = opened()
    assert not board.note_failure("10.0.0.1", 100)
    assert Path(path).stat().st_size == Path(path).read_bytes().count(0)


def test_more_than_the_ring_holds(opened: Callable[[], FailureBoard]) -> None:
    noting, late = opened(), opened()
    for number in range(5_000):
        noting.note_failure(f"2001:db8:0:{number:x}::1", 100)
    for _ in range(3):
        noting.note_failure("192.0.2.1", 101)
    assert late.wait_s("192.0.2.1", 101) == 20


def test_what_a_machine_noted_before_it_was_started_again(opened: Callable[[], FailureBoard]) -> None:
    before = opened()
    for _ in range(3):
        before.note_failure("192.0.2.1", 1_000_000)
    assert opened().wait_s("192.0.2.1", 50) == 0
