"""What a request wants of a document, and the document as it is shown then."""

from dataclasses import dataclass
from typing import Any

from graphdb.search.catalog.index import Index
from graphdb.search.errors import SearchError, version_conflict
from graphdb.search.results.source_filter import EVERYTHING, SourceFilter
from graphdb.search.segments.index_shard import Document
from graphdb.search.segments.operations import PRIMARY_TERM
from serve.search.documents.sources import SOURCE_PARAMETERS, asked_source, shown_source
from serve.search.documents.stored_fields import stored_values
from serve.search.documents.write_options import Conditions
from serve.search.frame.exchange import Exchange
from serve.search.frame.parameters import Parameters

__all__ = ["READ_PARAMETERS", "Wanted", "document_json", "find_document", "keeps_source", "refresh_first"]

READ_PARAMETERS = (
    f"{SOURCE_PARAMETERS} preference realtime refresh routing stored_fields force_synthetic_source"
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked of one document."""

    source: SourceFilter | None = None  # None: all, unless fields are asked for
    fields: tuple[str, ...] = ()
    version: int | None = None
    version_type: str = "internal"
    realtime: bool = True
    routing: str | None = None

    @classmethod
    def of(cls, parameters: Parameters) -> "Wanted":
        conditions = Conditions.of(parameters)
        return cls(
            asked_source(parameters, None),
            tuple(parameters.strings("stored_fields")),
            conditions.version,
            conditions.version_type,
            parameters.boolean("realtime", True),
            conditions.routing,
        )

    @property
    def shown(self) -> SourceFilter:
        if self.source is not None:
            return self.source
        return SourceFilter(False) if self.fields and "_source" not in self.fields else EVERYTHING


def document_json(index: Index, doc_id: str, wanted: Wanted) -> dict[str, Any]:
    document = find_document(index, doc_id, wanted)
    if document is None:
        return {"_index": index.name, "_id": doc_id, "found": False}
    answer: dict[str, Any] = {"_index": index.name, "_id": doc_id, "_version": document.version}
    answer |= {"_seq_no": document.seq_no, "_primary_term": PRIMARY_TERM}
    if document.routing is not None:
        answer["_routing"] = document.routing
    answer["found"] = True
    if wanted.shown.enabled and keeps_source(index):
        answer["_source"] = shown_source(document.source, wanted.shown)
    fields = stored_values(index, document.source, wanted.fields)
    return {**answer, "fields": fields} if fields else answer


def find_document(index: Index, doc_id: str, wanted: Wanted) -> Document | None:
    """Errors: version_conflict_engine_exception where it has another version than is asked for,
    routing_missing_exception.
    """
    if wanted.routing is None and index.mapping.routing_required:
        reason = f"routing is required for [{index.name}]/[{doc_id}]"
        raise SearchError("routing_missing_exception", reason, 400, {"index": index.name})
    document = index.shard.get(doc_id, wanted.realtime)
    if document is None or wanted.version is None or wanted.version == document.version:
        return document
    if wanted.version_type == "external_gte" and wanted.version > document.version:
        return document
    provided = f"the one provided [{wanted.version}]"
    reason = f"version conflict, current version [{document.version}] is different than {provided}"
    raise version_conflict(index.name, doc_id, reason)


def keeps_source(index: Index) -> bool:
    """Whether the mapping lets the documents be seen."""
    return index.mapping.source_options.get("enabled") not in (False, "false")


async def refresh_first(exchange: Exchange, indexes: list[Index]) -> None:
    if exchange.parameters.boolean("refresh", False):
        await exchange.node.refresh(indexes)
