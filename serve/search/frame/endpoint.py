"""`Endpoint`: one operation of the search API: where it is, what it takes, and the function that answers."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias

from serve.search.frame.exchange import Exchange

__all__ = ["Body", "Endpoint", "Handler", "endpoint"]

# What it returns is an `Answer`, or the value of one with status 200.
Handler: TypeAlias = Callable[[Exchange], Awaitable[Any]]


class Body(Enum):
    """What an operation reads beside its parameters."""

    NONE = "none"  # a body is refused
    JSON = "json"
    LINES = "lines"  # NDJSON; JSON as a media type passes too


@dataclass(frozen=True, slots=True)
class Endpoint:
    """path has literal segments and `{names}`; a literal one goes before a name, whatever the order."""

    methods: tuple[str, ...]
    path: str
    handler: Handler
    parameters: frozenset[str]  # of the query string, but those that every operation takes
    body: Body


def endpoint(
    methods: str, paths: str | Sequence[str], handler: Handler, parameters: str = "", body: Body = Body.NONE
) -> list[Endpoint]:
    """The same operation at one or several paths; methods and parameters are words apart by spaces."""
    places = [paths] if isinstance(paths, str) else paths
    names = frozenset(parameters.split())
    return [Endpoint(tuple(methods.split()), path, handler, names, body) for path in places]
