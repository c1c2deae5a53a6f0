"""What a fuzzer reports: an input that broke a promise, made small."""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["BrokenPromise", "Finding", "shrink"]


class BrokenPromise(Exception):
    """Something that must hold for every input does not; str() of it says what, a word for its kind first."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One broken promise: what, the smallest input found (as Python writes it), and how to see it again."""

    what: str
    shown_by: str
    reproduce: str

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def shrink(data: bytes, fails: Callable[[bytes], bool], seconds: float = 10) -> bytes:
    """The input with as much cut out as still fails: halves, quarters and so on down to single bytes."""
    deadline = time.monotonic() + seconds
    size = max(1, len(data) // 2)
    while time.monotonic() < deadline:
        shorter = _without_a_piece(data, size, fails, deadline)
        if shorter is not None:
            data = shorter
        elif size > 1:
            size //= 2
        else:
            break
        size = max(1, min(size, len(data) // 2))
    return data


def _without_a_piece(data: bytes, size: int, fails: Callable[[bytes], bool], deadline: float) -> bytes | None:
    for start in range(0, len(data), size):
        if time.monotonic() > deadline:
            return None
        shorter = data[:start] + data[start + size :]
        if shorter != data and fails(shorter):
            return shorter
    return None
