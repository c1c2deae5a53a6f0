"""Errors on their way between nodes: the name of the class and its arguments, as JSON."""

import inspect
import json
from typing import Any

from actors.raft.raft_pb2 import Failure
from graphdb import errors
from graphdb.errors import CorruptionError, GraphDBError, OutcomeUnknown

__all__ = ["decode_failure", "encode_failure"]

_KINDS = {
    name: kind
    for name, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, GraphDBError) and not issubclass(kind, CorruptionError)
}


def encode_failure(error: GraphDBError) -> Failure:
    """Damage on the node that was asked is none on the node that asks: there the outcome is not known."""
    if type(error).__name__ not in _KINDS:
        error = OutcomeUnknown("the node that was asked has failed")
    return Failure(kind=type(error).__name__, arguments=json.dumps(error.args))


def decode_failure(failure: Failure) -> GraphDBError:
    """The error that was encoded; OutcomeUnknown where another version sent what this one does not know."""
    try:
        arguments = [_as_argument(each) for each in json.loads(failure.arguments)]
        return _KINDS[failure.kind](*arguments)
    except (ValueError, KeyError, TypeError):
        return OutcomeUnknown(f"an answer that cannot be understood: {failure.kind[:100]!r}")


def _as_argument(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
