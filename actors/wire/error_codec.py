"""Errors of this project on their way between processes: the name of the class and its arguments, as JSON."""

import inspect
import json
import logging
from typing import Any

from graphdb import errors
from graphdb.errors import GraphDBError, OutcomeUnknown, UnavailableError
from graphdb.public_text import without_paths

__all__ = ["decode_error", "encode_error"]

logger = logging.getLogger(__name__)

_KINDS: dict[str, type[GraphDBError]] = {
    name: kind for name, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, GraphDBError)
}


def encode_error(error: BaseException, otherwise: type[UnavailableError] = UnavailableError) -> bytes:
    """The bytes of an error; one that this project does not name becomes an `otherwise`."""
    if _KINDS.get(type(error).__name__) is not type(error):
        logger.error("a part of the service failed", exc_info=error)
        error = otherwise(f"a part of the service failed: {without_paths(repr(error))}")
    return json.dumps({"kind": type(error).__name__, "arguments": error.args}).encode()


def decode_error(body: bytes) -> GraphDBError:
    """The error that encode_error was given; OutcomeUnknown where it is of a class that is not known here.
    Raises ValueError where these bytes are not of its making.
    """
    try:
        fields = json.loads(body)
        name, arguments = fields["kind"], map(_as_argument, fields["arguments"])
        if isinstance(name, str) and name not in _KINDS:
            # which may say what was changed, so the caller must not take it that nothing was
            return OutcomeUnknown(f"a part of the service failed with an unknown error, {name[:100]}")
        return _KINDS[name](*arguments)
    except (KeyError, TypeError) as error:
        raise ValueError(f"no error: {body[:100]!r}") from error


def _as_argument(value: Any) -> Any:
    """JSON has no tuples, which is what errors hold."""
    return tuple(value) if isinstance(value, list) else value
