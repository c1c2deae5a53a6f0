"""The items of a `_bulk`: from the lines of a request to writes, each by itself right or wrong."""

from dataclasses import dataclass

from graphdb.search.catalog.commands import DocumentWrite
from graphdb.search.errors import SearchError
from graphdb.search.results.source_filter import SourceFilter, parse_source_filter
from graphdb.search.segments.operations import Action, Operation
from serve.search.documents.bulk_lines import Line
from serve.search.documents.given_documents import read_document
from serve.search.documents.identifiers import generated_id
from serve.search.documents.sources import asked_source
from serve.search.documents.write_options import Conditions, no_pipeline, refresh_of
from serve.search.frame.parameters import Parameters

__all__ = ["BulkDefaults", "BulkItem", "bulk_items"]

_SHOWN_PROBLEMS_MAX = 100


@dataclass(frozen=True, slots=True)
class BulkDefaults:
    """What the address says for all lines that do not say it themselves."""

    index: str | None
    refresh: str
    routing: str | None
    pipeline: str | None
    require_alias: bool
    source: SourceFilter | None

    @classmethod
    def of(cls, index: str | None, parameters: Parameters) -> "BulkDefaults":
        return cls(
            index,
            refresh_of(parameters),
            parameters.text("routing"),
            parameters.text("pipeline"),
            parameters.boolean("require_alias", False),
            asked_source(parameters, None),
        )


@dataclass(slots=True)
class BulkItem:
    """One operation on its way: to be written, or refused already."""

    action: Action
    index: str
    doc_id: str
    source: SourceFilter | None = None  # of an update: what is shown of the document
    write: DocumentWrite | None = None
    refused: SearchError | None = None


def bulk_items(lines: list[Line], defaults: BulkDefaults, keeps_values: bool) -> list[BulkItem]:
    """keeps_values: a document that is to be stored comes with its value. Raises SearchError for what spoils
    the whole request.
    """
    problems = [problem for line in lines for problem in _problems(line, defaults.index)]
    if problems:
        shown = enumerate(problems[:_SHOWN_PROBLEMS_MAX], 1)
        text = "".join(f"{number}: {problem};" for number, problem in shown)
        raise SearchError("action_request_validation_exception", f"Validation Failed: {text}")
    reading = _Reading(defaults, keeps_values)
    return [reading.item(line) for line in lines]


def _problems(line: Line, default_index: str | None) -> list[str]:
    problems = []
    if line.index is None and default_index is None:
        problems.append("index is missing")
    if line.doc_id is None and line.action in (Action.UPDATE, Action.DELETE):
        problems.append("id is missing")
    return problems


class _Reading:
    def __init__(self, defaults: BulkDefaults, keeps_values: bool) -> None:
        self._defaults, self._keeps_values = defaults, keeps_values
        # what most lines come to, which say no more than where the document is
        self._bare_refusal = no_pipeline(defaults.pipeline)
        self._bare_conditions = Conditions.of_line({"routing": defaults.routing})

    def item(self, line: Line) -> BulkItem:
        index = line.index if line.index is not None else self._defaults.index or ""
        doc_id = generated_id() if line.doc_id is None else line.doc_id
        item = BulkItem(line.action, index, doc_id, self._defaults.source)
        try:
            operation = self._operation(item, line)
        except SearchError as error:
            item.refused = error
        else:
            aliased = line.metadata.get("require_alias", self._defaults.require_alias) in (True, "true")
            item.write = DocumentWrite(index, operation, aliased)
        return item

    def _operation(self, item: BulkItem, line: Line) -> Operation:
        """Raises what is wrong with this one."""
        conditions = self._conditions(item, line)
        if line.action is Action.DELETE:
            return conditions.operation(line.action, item.doc_id)
        value = read_document(line.document)
        if line.action is not Action.UPDATE:
            kept = value if self._keeps_values else None
            return conditions.operation(line.action, item.doc_id, line.document, kept)
        if "_source" in value:
            item.source = parse_source_filter(value["_source"])
        return conditions.operation(line.action, item.doc_id, line.document)

    def _conditions(self, item: BulkItem, line: Line) -> Conditions:
        if line.is_bare:
            if self._bare_refusal is not None:
                raise self._bare_refusal
            return self._bare_conditions
        refusal = no_pipeline(line.metadata.get("pipeline", self._defaults.pipeline))
        if refusal is not None:
            raise refusal
        if line.metadata.get("_source") is not None:
            item.source = parse_source_filter(line.metadata["_source"])
        return Conditions.of_line({"routing": self._defaults.routing, **line.metadata})
