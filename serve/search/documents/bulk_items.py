"""The items of a `_bulk` request, and its lines."""

import codecs
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import orjson

from graphdb.errors import BodyTooLarge
from graphdb.search.catalog.catalog_commands import DocumentWrite
from graphdb.search.document_texts import LongNumbers, PlainDocuments
from graphdb.search.errors import SearchError, illegal_argument
from graphdb.search.results.fetching import SourceFilter, parse_source_filter
from graphdb.search.segments.operations import Action, Operation, version_problems
from serve.search.documents.shown_fields import asked_source
from serve.search.documents.write_options import (
    Conditions,
    generated_id,
    read_document,
    refresh_of,
    simple_text,
)
from serve.search.frame.exchange import token_name
from serve.search.frame.parameters import Parameters

__all__ = ["BulkDefaults", "BulkItem", "BulkLines", "Line", "Lines", "bulk_items"]

# The lines of a bulk request: pieces of bytes become lines, and lines become operations.

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
_NOT_STORED = (Action.UPDATE, Action.DELETE)  # as they are given
_PLACED, _PLACE = frozenset(_ACTIONS), frozenset({"_id", "_index"})  # what most lines say
_COMPOUND = frozenset({"_source", "dynamic_templates"})


class Lines:
    """Splits its input at line ends."""

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
    """An operation has two lines, a deletion one. Errors are those of the whole request."""

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
        if len(found) == 1 and name in _PLACED and type(metadata) is dict and metadata.keys() <= _PLACE:
            index, doc_id = metadata.get("_index"), metadata.get("_id")
            if (index is None or type(index) is str) and (doc_id is None or type(doc_id) is str):
                return Line(_ACTIONS[name], index, doc_id, metadata)
        if name not in _ACTIONS:
            raise self._malformed("field [create], [delete], [index] or [update]", name)
        if not isinstance(metadata, dict):
            raise self._malformed("START_OBJECT or END_OBJECT", token_name(metadata))
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
        if metadata.get("dynamic_templates") is not None:
            self._check_templates(action, metadata["dynamic_templates"])
        if action is Action.INDEX and metadata.get("op_type") == "create":
            action = Action.CREATE
        return Line(action, _text(metadata.get("_index")), _text(metadata.get("_id")), metadata)

    def _check_templates(self, action: Action, templates: Any) -> None:
        if action in _NOT_STORED:
            reason = f"request in line [{self._number}] does not accept dynamic_templates"
            raise illegal_argument(f"{action.value.capitalize()} {reason}")
        if not isinstance(templates, dict) or not all(type(name) is str for name in templates.values()):
            raise self._malformed("an object of names for field [dynamic_templates]", token_name(templates))

    def _malformed(self, expected: str, found: str) -> SearchError:
        return illegal_argument(
            f"Malformed action/metadata line [{self._number}], expected {expected} but found [{found[:100]}]"
        )


def _text(value: Any) -> str | None:
    return value if value is None or type(value) is str else simple_text(value)


# The items of a `_bulk`: from the lines of a request to writes, each by itself right or wrong.

_SHOWN_PROBLEMS_MAX = 100
_TOGETHER_MIN = 8  # documents that are worth to be looked through before they are parsed


@dataclass(frozen=True, slots=True)
class BulkDefaults:
    """What the address says for all lines that do not say it themselves."""

    index: str | None
    refresh: str
    routing: str | None
    pipeline: str | None
    require_alias: bool
    source: SourceFilter | None
    require_data_stream: bool = False
    lists_pipelines: bool = False

    @classmethod
    def of(cls, index: str | None, parameters: Parameters) -> "BulkDefaults":
        return cls(
            index,
            refresh_of(parameters),
            parameters.text("routing"),
            parameters.text("pipeline"),
            parameters.boolean("require_alias", False),
            asked_source(parameters, None),
            parameters.boolean("require_data_stream", False),
            parameters.boolean("list_executed_pipelines", False),
        )


@dataclass(slots=True)
class BulkItem:
    """One operation on its way: to be written, or refused already."""

    action: Action
    index: str
    doc_id: str
    source: SourceFilter | None = None  # of an update: the parts of the document in the answer
    write: DocumentWrite | None = None
    refused: SearchError | None = None
    pipeline: str | None = None
    lists_pipelines: bool = False  # in the answer


def bulk_items(lines: list[Line], defaults: BulkDefaults, keeps_values: bool) -> list[BulkItem]:
    """keeps_values: a document that is to be stored comes with its value. Raises SearchError for what spoils
    the whole request.
    """
    _refuse([problem for line in lines for problem in _problems(line, defaults.index)])
    reading = _Reading(defaults, keeps_values)
    if len(lines) < _TOGETHER_MIN:
        items = [reading.item(line, None) for line in lines]
    else:
        plain = PlainDocuments([b"" if line.action in _NOT_STORED else line.document for line in lines])
        items = [reading.item(line, plain.read(place)) for place, line in enumerate(lines)]
    _refuse(reading.problems)
    return items


def _refuse(problems: list[str]) -> None:
    """Raise where there are any."""
    if problems:
        shown = enumerate(problems[:_SHOWN_PROBLEMS_MAX], 1)
        text = "".join(f"{number}: {problem};" for number, problem in shown)
        raise SearchError("action_request_validation_exception", f"Validation Failed: {text}")


def _problems(line: Line, default_index: str | None) -> list[str]:
    problems = []
    if line.index is None and default_index is None:
        problems.append("index is missing")
    if line.doc_id is None and line.action in _NOT_STORED:
        problems.append("id is missing")
    return problems


Read: TypeAlias = tuple[dict[str, Any], LongNumbers | None]
"""The value of a document, and what it lacks (`PlainDocuments`)."""


class _Reading:
    def __init__(self, defaults: BulkDefaults, keeps_values: bool) -> None:
        self._defaults, self._keeps_values = defaults, keeps_values
        self.problems: list[str] = []  # of versions, which spoil the whole request
        # what most lines come to, which say no more than where the document is
        self._bare_conditions = Conditions.of_line({"routing": defaults.routing})

    def item(self, line: Line, read: Read | None) -> BulkItem:
        """read: the document, if that was read before."""
        index = line.index if line.index is not None else self._defaults.index or ""
        doc_id = generated_id() if line.doc_id is None else line.doc_id
        item = BulkItem(line.action, index, doc_id, self._defaults.source)
        item.pipeline = self._defaults.pipeline
        item.lists_pipelines = self._flag(line, "list_executed_pipelines", self._defaults.lists_pipelines)
        try:
            operation = self._operation(item, line, read)
        except SearchError as error:
            item.refused = error
        else:
            aliased = self._flag(line, "require_alias", self._defaults.require_alias)
            streams = self._flag(line, "require_data_stream", self._defaults.require_data_stream)
            item.write = DocumentWrite(index, operation, aliased, require_data_stream=streams)
            if operation.is_conditional:
                self.problems += version_problems(operation)
        return item

    @staticmethod
    def _flag(line: Line, name: str, default: bool) -> bool:
        return default if line.is_bare else line.metadata.get(name, default) in (True, "true")

    def _operation(self, item: BulkItem, line: Line, read: Read | None) -> Operation:
        """Raises the error of this item."""
        conditions = self._conditions(item, line)
        if line.action is Action.DELETE:
            return conditions.operation(line.action, item.doc_id)
        value, numbers = (read_document(line.document), None) if read is None else read
        if line.action is not Action.UPDATE:
            kept = value if self._keeps_values else None
            operation = conditions.operation(line.action, item.doc_id, line.document, kept, numbers)
            named = None if line.is_bare else line.metadata.get("dynamic_templates")
            return operation._replace(dynamic_templates=named) if named else operation
        if "_source" in value:
            item.source = parse_source_filter(value["_source"])
        operation = conditions.operation(line.action, item.doc_id, line.document)
        return operation if item.source is None else operation._replace(wants_source=item.source.enabled)

    def _conditions(self, item: BulkItem, line: Line) -> Conditions:
        if line.is_bare:
            return self._bare_conditions
        if line.metadata.get("pipeline") is not None:
            item.pipeline = str(line.metadata["pipeline"])
        if line.metadata.get("_source") is not None:
            item.source = parse_source_filter(line.metadata["_source"])
        return Conditions.of_line({"routing": self._defaults.routing, **line.metadata})
