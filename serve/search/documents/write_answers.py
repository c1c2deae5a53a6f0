"""What is said of a document that was written."""

from typing import Any
from urllib.parse import quote

from graphdb.search.catalog.catalog import Catalog
from graphdb.search.catalog.commands import WriteResult
from graphdb.search.results.source_filter import SourceFilter
from graphdb.search.segments.operations import PRIMARY_TERM, OperationResult, Outcome
from serve.search.documents.sources import shown_source

__all__ = ["location", "written"]


def written(
    catalog: Catalog, result: WriteResult, refresh: str = "false", source: SourceFilter | None = None
) -> dict[str, Any]:
    """One that did not fail. source: show the document that an update made."""
    done = result.result
    answer: dict[str, Any] = {"_index": result.index, "_id": done.doc_id, "_version": done.version}
    answer["result"] = _word(done)
    if refresh == "true":
        answer["forced_refresh"] = True
    answer["_shards"] = _shards(catalog, result)
    answer |= {"_seq_no": done.seq_no, "_primary_term": PRIMARY_TERM}
    if source is not None and source.enabled and done.source is not None:
        answer["get"] = {
            "_seq_no": done.seq_no,
            "_primary_term": PRIMARY_TERM,
            "found": True,
            "_source": shown_source(done.source, source),
        }
    return answer


def location(result: WriteResult, routing: str | None) -> str:
    """Where a document that was created is."""
    path = f"/{quote(result.index, safe='')}/_doc/{quote(result.result.doc_id, safe='')}"
    return path if routing is None else f"{path}?routing={quote(routing, safe='')}"


def _word(done: OperationResult) -> str:
    return (done.outcome or Outcome.NOOP).value


def _shards(catalog: Catalog, result: WriteResult) -> dict[str, int]:
    """The copies that were asked to have it; those that do have it when it is acknowledged: the log's."""
    if result.result.outcome is Outcome.NOOP:
        return {"total": 0, "successful": 0, "failed": 0}
    index = catalog.find(result.index)
    replicas = 1 if index is None else int(index.settings.get("number_of_replicas", 1))
    return {"total": 1 + replicas, "successful": 1, "failed": 0}
