"""Work on a thread that lets go of it: an engine closes its files with the last reference to it.

A thread of a pool keeps what it has called until its next turn of the interpreter, which on a busy machine
comes after the caller has gone on. So the caller of a close would find files still open, and still written.
"""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["call_once", "on_thread"]

T = TypeVar("T")


def call_once(function: Callable[..., T], *arguments: Any) -> Callable[[], T]:
    """A call that holds neither function nor arguments once it has returned."""
    held = [(function, arguments)]

    def call() -> T:
        called, given = held.pop()
        return called(*given)

    return call


async def on_thread(function: Callable[..., T], *arguments: Any) -> T:
    """As `asyncio.to_thread`; what the call held is let go when this returns."""
    return await asyncio.to_thread(call_once(function, *arguments))
