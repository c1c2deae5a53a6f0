"""The lines of a bulk request: pieces of bytes become lines, and lines become operations."""

import codecs
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from graphdb.errors import BodyTooLarge
from graphdb.search.errors import SearchError, illegal_argument
from graphdb.search.segments.operations import Action
from serve.search.documents.write_options import simple_text
from serve.search.frame.json_text import token_name

__all__ = ["BulkLines", "Line", "Lines"]

_ACTIONS = {action.value: action for action in Action}
_NAMES = frozenset(
    {
        "_id",
        "_index",
        "_source",
        "dynamic_templates",
        "if_primary_term",
        "if_seq_no",
        "list_executed_pipelines",
        "op_type",
        "pipeline",
        "require_alias",
        "require_data_stream",
        "retry_on_conflict",
        "routing",
        "version",
        "version_type",
    }
)
_ACTION_BYTES_MAX = 1 << 20
_COMPOUND = frozenset({"_source", "dynamic_templates"})


class Lines:
    """Cuts what it is fed at line ends."""

    def __init__(self, line_bytes_max: int) -> None:
        self._rest = bytearray()
        self._line_bytes_max = line_bytes_max

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """The lines that are whole now, without their ends. Raises BodyTooLarge for a line over the limit."""
        first, newline, rest = piece.partition(b"\n")
        self._rest += first
        if len(self._rest) > self._line_bytes_max:
            raise BodyTooLarge(self._line_bytes_max)
        if not newline:
            return
        yield bytes(self._rest)
        *whole, last = rest.split(b"\n")
        yield from whole
        self._rest = bytearray(last)

    def check_complete(self) -> None:
        """Raise where the last line does not end."""
        if self._rest.strip():
            raise illegal_argument("The bulk request must be terminated by a newline [\\n]")


@dataclass(slots=True)
class Line:
    """One action with its document. metadata is all that its line says."""

    action: Action
    index: str | None
    doc_id: str | None
    metadata: Mapping[str, Any]
    document: bytes = b""

    @property
    def is_bare(self) -> bool:
        """Whether the line says no more than where the document is."""
        return len(self.metadata) == (self.index is not None) + (self.doc_id is not None)


class BulkLines:
    """Two lines make an operation, but for a deletion one. Errors are of the whole request."""

    def __init__(self) -> None:
        self._number = 0
        self._waiting: Line | None = None

    def feed(self, lines: Iterable[bytes]) -> Iterator[Line]:
        """The operations that these lines complete."""
        for line in lines:
            self._number += 1
            begun = self._waiting
            if self._number == 1:
                line = line.removeprefix(codecs.BOM_UTF8)
            if begun is not None:
                begun.document, self._waiting = line.strip(), None
                yield begun
            elif line and not line.isspace():
                begun = self._begun(line)
                if begun.action is Action.DELETE:
                    yield begun
                else:
                    self._waiting = begun

    def check_complete(self) -> None:
        """Raise where the last operation has no document."""
        if self._waiting is not None:
            raise illegal_argument(
                f"Malformed action/metadata line [{self._number}], "
                f"expected a document line after [{self._waiting.action.value}] but found the end"
            )

    def _begun(self, line: bytes) -> Line:
        if len(line) > _ACTION_BYTES_MAX:
            raise illegal_argument(
                f"Action/metadata line [{self._number}] is longer than {_ACTION_BYTES_MAX} bytes"
            )
        try:
            found = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            reason = f"[{error.lineno}:{error.colno}] {error.msg.partition(':')[0]}"
            cause = SearchError("x_content_parse_exception", reason)
            raise illegal_argument(f"Malformed action/metadata line [{self._number}]", cause) from None
        if not isinstance(found, dict):
            raise self._malformed("START_OBJECT", token_name(found))
        if not found:
            raise self._malformed("FIELD_NAME", "END_OBJECT")
        name, metadata = next(iter(found.items()))
        if name not in _ACTIONS:
            raise self._malformed("field [create], [delete], [index] or [update]", name)
        if not isinstance(metadata, dict):
            raise self._malformed("START_OBJECT", token_name(metadata))
        if len(found) > 1:
            raise self._malformed("END_OBJECT", "FIELD_NAME")
        return self._line(_ACTIONS[name], metadata)

    def _line(self, action: Action, metadata: dict[str, Any]) -> Line:
        for name, value in metadata.items():
            if name not in _NAMES:
                raise illegal_argument(
                    f"Action/metadata line [{self._number}] contains an unknown parameter [{name[:100]}]"
                )
            if isinstance(value, dict | list) and name not in _COMPOUND:
                raise self._malformed(f"a simple value for field [{name}]", token_name(value))
        if action is Action.INDEX and metadata.get("op_type") == "create":
            action = Action.CREATE
        return Line(action, _text(metadata.get("_index")), _text(metadata.get("_id")), metadata)

    def _malformed(self, expected: str, found: str) -> SearchError:
        return illegal_argument(
            f"Malformed action/metadata line [{self._number}], expected {expected} but found [{found[:100]}]"
        )


def _text(value: Any) -> str | None:
    return value if value is None or type(value) is str else simple_text(value)
