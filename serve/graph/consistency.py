"""Read levels: how new an answer has to be, by the parameter `consistency` or the header X-Consistency."""

from starlette.requests import Request

from graphdb.errors import InvalidParameter
from graphdb.node import Consistency
from serve.parameters import Parameters

__all__ = ["consistency_of", "read_consistency"]

HEADER = "X-Consistency"
_HEADER = HEADER.lower().encode()  # as ASGI hands names on
_LEVELS = {level.value: level for level in Consistency}


def read_consistency(parameters: Parameters) -> Consistency | None:
    """The level that a query string or form asks for, None where it says nothing. Raises InvalidParameter."""
    text = parameters.one("consistency")
    return None if text is None else _level("consistency", text)


def consistency_of(request: Request, parameter: Consistency | None) -> Consistency:
    """The level of a request, whose parameter is read already; LOCAL where it asks for none.

    Raises InvalidParameter, also where the parameter and the header ask for different levels.
    """
    asked = parameter
    for name, value in request.scope["headers"]:
        if name == _HEADER:
            level = _level(HEADER, value.decode("latin-1"))
            if asked is not None and asked is not level:
                raise InvalidParameter(HEADER, f"asks for {level.value}, the same request for {asked.value}")
            asked = level
    return asked or Consistency.LOCAL


def _level(name: str, text: str) -> Consistency:
    level = _LEVELS.get(text.lower())
    if level is None:
        raise InvalidParameter(name, f"{text!r} is not a read level; there are {', '.join(_LEVELS)}")
    return level
