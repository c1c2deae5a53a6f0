"""The texts of a bulk answer's items that succeeded, most of which differ by three values only."""

from typing import Any

import orjson

from graphdb.search.catalog.catalog import Catalog
from graphdb.search.catalog.commands import WriteResult
from graphdb.search.results.source_filter import SourceFilter
from graphdb.search.segments.operations import Action, Outcome
from serve.search.documents.write_answers import written

__all__ = ["ItemTexts", "succeeded"]


def succeeded(
    catalog: Catalog, result: WriteResult, refresh: str, source: SourceFilter | None = None
) -> dict[str, Any]:
    """An item, of an operation that did not fail."""
    shown = written(catalog, result, refresh, source)
    return {result.result.action.value: {**shown, "status": result.result.status}}


class ItemTexts:
    """For the results of one piece of a request: of each kind one item is made, the others are like it."""

    def __init__(self, catalog: Catalog, refresh: str) -> None:
        self._catalog, self._refresh = catalog, refresh
        self._kinds: dict[tuple[str, Action, Outcome | None], bytes] = {}

    def text(self, result: WriteResult) -> bytes:
        """`succeeded` as JSON, without a document."""
        done = result.result
        kind = (result.index, done.action, done.outcome)
        template = self._kinds.get(kind)
        if template is None:
            template = self._kinds[kind] = self._template(result)
        return template % (orjson.dumps(done.doc_id), done.version, done.seq_no)

    def _template(self, result: WriteResult) -> bytes:
        """An item with gaps for the id, the version and the sequence number, in this order. What it holds
        besides is the name of an index, in which there are no quotes.
        """
        empty = result.result._replace(doc_id="", version=0, seq_no=0)
        item = succeeded(self._catalog, WriteResult(result.index, empty), self._refresh)
        text = orjson.dumps(item).replace(b"%", b"%%")
        for name, gap in ((b'"_id":', b"%b"), (b'"_version":', b"%d"), (b'"_seq_no":', b"%d")):
            before, found, after = text.partition(name)
            text = before + found + gap + after[2 if gap == b"%b" else 1 :]
        return text
