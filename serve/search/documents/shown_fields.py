"""The parts of documents that a request selects: `_source` and stored fields."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from graphdb.search.answer_room import take_room_of_part, whole_document
from graphdb.search.catalog.state import Index
from graphdb.search.errors import routing_missing, version_conflict
from graphdb.search.mapping.lookup import FieldLookup
from graphdb.search.results.fetching import EVERYTHING, SourceFilter, kept_source, parse_source_filter
from graphdb.search.results.field_values import FieldPattern, source_fields
from graphdb.search.segments.index_shard import Document
from graphdb.search.segments.operations import PRIMARY_TERM
from serve.search.documents.write_options import Conditions
from serve.search.frame.exchange import Exchange
from serve.search.frame.parameters import Parameters

__all__ = [
    "READ_PARAMETERS",
    "SOURCE_PARAMETERS",
    "Wanted",
    "asked_source",
    "check_routing",
    "document_json",
    "find_document",
    "keeps_source",
    "refresh_first",
    "shown_source",
    "stored_values",
]

# `_source` in requests for documents: which parts of them are shown.

SOURCE_PARAMETERS = "_source _source_includes _source_excludes"


def asked_source(parameters: Parameters, default: SourceFilter | None = EVERYTHING) -> SourceFilter | None:
    """The filter in the query string, or default."""
    given = parameters.text("_source")
    includes, excludes = parameters.strings("_source_includes"), parameters.strings("_source_excludes")
    if given is None and not includes and not excludes:
        return default
    if given in (None, "", "true", "false"):
        chosen = parse_source_filter(given != "false")
    else:
        chosen = parse_source_filter(parameters.strings("_source"))
    return replace(chosen, includes=(*chosen.includes, *includes), excludes=(*chosen.excludes, *excludes))


def shown_source(source: bytes, chosen: SourceFilter, mapping: FieldLookup | None = None) -> Any:
    """The document, or the selected parts of what its mapping shows. A whole document is the stored text."""
    kept = EVERYTHING if mapping is None else kept_source(mapping)
    if not (chosen.includes or chosen.excludes or kept.includes or kept.excludes):
        return whole_document(source)
    shown = chosen.applied(kept.applied(orjson.loads(source)))
    take_room_of_part(shown, source)
    return shown


# `stored_fields`: the values of fields whose mapping says `store`.


def stored_values(index: Index, source: bytes, names: Sequence[str]) -> dict[str, list[Any]]:
    """By path, for those of the names that are stored."""
    mapping = index.mapping
    fields = [spec for name in names if name != "_source" for spec in mapping.match(name)]
    stored = tuple(FieldPattern(spec.path) for spec in fields if spec.options.get("store") in (True, "true"))
    if not stored:
        return {}
    return source_fields(stored, index.context(0), orjson.loads(source))


# The options of a request for a document, and the document in the answer.

READ_PARAMETERS = (
    f"{SOURCE_PARAMETERS} preference realtime refresh routing stored_fields force_synthetic_source"
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """The options of a request for one document."""

    source: SourceFilter | None = None  # None: all, unless the request names fields
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
        answer["_source"] = shown_source(document.source, wanted.shown, index.mapping)
    fields = stored_values(index, document.source, wanted.fields)
    return {**answer, "fields": fields} if fields else answer


def find_document(index: Index, doc_id: str, wanted: Wanted) -> Document | None:
    """Errors: version_conflict_engine_exception where it has another version than is asked for,
    routing_missing_exception.
    """
    check_routing(index, doc_id, wanted.routing)
    document = index.shards.get(doc_id, wanted.routing, wanted.realtime)
    index.shards.counters.note_read(document is not None)
    if document is None or wanted.version is None or wanted.version == document.version:
        return document
    provided = f"the one provided [{wanted.version}]"
    reason = f"version conflict, current version [{document.version}] is different than {provided}"
    raise version_conflict(index.name, index.shards.routing.shard_of(doc_id, wanted.routing), doc_id, reason)


def check_routing(index: Index, doc_id: str, routing: str | None) -> None:
    """Errors: routing_missing_exception."""
    if routing is None and index.mapping.routing_required:
        raise routing_missing(index.name, doc_id)


def keeps_source(index: Index) -> bool:
    """Whether the mapping shows the source of documents."""
    return kept_source(index.mapping).enabled


async def refresh_first(exchange: Exchange, indexes: list[Index]) -> None:
    if exchange.parameters.boolean("refresh", False):
        await exchange.node.refresh(indexes)
