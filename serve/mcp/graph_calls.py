"""`GraphCalls`: the requests to the service that tools make, with the rights of whoever uses them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import orjson

__all__ = ["ANSWER_BYTES_MAX", "GraphCalls", "Reply", "ToolFailure"]


ANSWER_BYTES_MAX = 4 << 20  # unless a call says otherwise


class ToolFailure(Exception):
    """A tool cannot do what it was asked for; the text is for the model."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to one request; body is cut at the limit of the call, and then not complete."""

    status: int
    headers: Mapping[str, str]  # names in lower case
    body: bytes
    is_complete: bool = True

    def checked(self) -> "Reply":
        """The same. Raises ToolFailure with the service's message unless it is a success."""
        if 200 <= self.status < 300:
            return self
        try:
            message = orjson.loads(self.body)["error"]
        except (orjson.JSONDecodeError, KeyError, TypeError):
            message = f"the service answered with status {self.status}"
        if isinstance(message, dict):  # of the search port
            message = message.get("reason", message)
        raise ToolFailure(str(message))

    def json(self) -> Any:
        """The body. Raises ToolFailure as `checked`, and where it is cut."""
        if not self.checked().is_complete:
            raise ToolFailure("the answer is too long; ask for less")
        return orjson.loads(self.body)


class GraphCalls(Protocol):
    """Requests to both ports."""

    async def graph(
        self,
        path: str,
        form: Mapping[str, str],
        *,
        accept: str = "application/json",
        bytes_max: int = ANSWER_BYTES_MAX,
    ) -> Reply:
        """POST a form to a path of the graph port. Raises ToolFailure where it cannot be reached."""

    @property
    def has_search(self) -> bool:
        """Whether the search port can be reached."""

    async def search(self, path: str, body: Mapping[str, Any]) -> Reply:
        """POST JSON to a path of the search port. Raises ToolFailure."""
