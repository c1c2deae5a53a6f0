"""How long a search may take: who starts one says how to tell, who works long asks now and then.

The check travels with the thread (a context variable), as it is asked for deep inside of queries that know
nothing of requests. The clock is the caller's.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["checkpoint", "limited"]

_CHECK: ContextVar[Callable[[], None] | None] = ContextVar("search_deadline", default=None)


@contextmanager
def limited(check: Callable[[], None]) -> Iterator[None]:
    """What runs inside calls check before each step that may be long; check raises to end it."""
    token = _CHECK.set(check)
    try:
        yield
    finally:
        _CHECK.reset(token)


def checkpoint() -> None:
    """Go on, if there is time. Raises what the check raises."""
    check = _CHECK.get()
    if check is not None:
        check()
