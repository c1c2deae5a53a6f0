"""Ports for services of tests and measurements."""

import random
import socket
import subprocess
import sys

import pytest

from benchmarks import service

_TWO = "from benchmarks.service import free_port; print(free_port(), free_port(), flush=True); input()"


def test_no_two_processes_get_the_same_port(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether or not somebody listens on it already."""
    command = [sys.executable, "-c", _TWO]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        claimed = [int(port) for port in other.stdout.readline().split()]
        own = service.free_port()
        with socket.socket() as listening:
            listening.bind(("127.0.0.1", 0))
            taken = [*claimed, own, listening.getsockname()[1]]
            monkeypatch.setattr(service, "_RANDOM", _Drawing(taken))
            assert service.free_port() not in taken
        other.communicate("\n")
    monkeypatch.setattr(service, "_RANDOM", _Drawing(claimed))
    assert service.free_port() == claimed[0]


class _Drawing(random.SystemRandom):
    def __init__(self, first: list[int]) -> None:
        self._first = iter(first)

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        """The first ones first."""
        return next(self._first, None) or super().randrange(start, stop, step)
