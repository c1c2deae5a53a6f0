"""What GraphQL refuses: the limits of an operation, and errors with the interface's codes."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphql import GraphQLError, Node

from graphdb.errors import LimitExceeded

__all__ = [
    "COMPLEXITY_EXCEEDED",
    "CONFLICT",
    "DEPTH_EXCEEDED",
    "FORBIDDEN",
    "NOT_FOUND",
    "SPARQL_ERROR",
    "UNKNOWN_TYPE",
    "VALIDATION_FAILED",
    "Limits",
    "Refused",
    "coded",
    "failure",
    "too_large",
]


@dataclass(frozen=True, slots=True)
class Limits:
    """The first four are those of `[graphql]` in the configuration."""

    max_depth: int = 15
    max_complexity: int = 1000
    default_page_size: int = 25
    max_page_size: int = 100
    max_rows: int = 200_000  # of the SPARQL query
    introspection: bool = True


VALIDATION_FAILED = "VALIDATION_FAILED"
NOT_FOUND = "NOT_FOUND"
CONFLICT = "CONFLICT"
SPARQL_ERROR = "SPARQL_ERROR"
UNKNOWN_TYPE = "UNKNOWN_TYPE"
DEPTH_EXCEEDED = "DEPTH_EXCEEDED"
COMPLEXITY_EXCEEDED = "COMPLEXITY_EXCEEDED"
FORBIDDEN = "FORBIDDEN"

# graphql-core's words where a type is named, or a root field asked for, that the schema does not have
_OF_NO_TYPE = re.compile(r"Unknown type |Cannot query field '\w+' on type '(Query|Mutation|Subscription)'")


class Refused(Exception):
    """An operation that is not carried out, with all that is wrong with it."""

    def __init__(self, errors: Sequence[GraphQLError]) -> None:
        super().__init__(errors)
        self.errors = list(errors)


def failure(
    code: str,
    message: str,
    nodes: Sequence[Node] | Node | None = None,
    path: Sequence[str | int] | None = None,
    details: Mapping[str, Any] | None = None,
) -> GraphQLError:
    """An error with a code of the interface's table; details are for programs."""
    extensions: dict[str, Any] = {"code": code}
    if details:
        extensions["details"] = dict(details)
    return GraphQLError(message, nodes, path=path, extensions=extensions)


def too_large(error: LimitExceeded) -> GraphQLError:
    """What the gate of SPARQL says of a query that was made from an operation."""
    return failure(COMPLEXITY_EXCEEDED, f"The operation asks for too much at once: {error}")


def coded(error: GraphQLError) -> GraphQLError:
    """An error of graphql-core with a code, where it has none."""
    if "code" not in (error.extensions or {}):
        code = UNKNOWN_TYPE if _OF_NO_TYPE.match(error.message) else VALIDATION_FAILED
        error.extensions = {**(error.extensions or {}), "code": code}
    return error
