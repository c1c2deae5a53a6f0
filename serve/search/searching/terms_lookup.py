"""The values of a `terms` query that another document holds, of whatever index."""

from typing import Any

import orjson

from graphdb.search.catalog.catalog import Catalog
from graphdb.search.results.field_values import values_at
from serve.search.documents.named_index import one_index

__all__ = ["TermsOfDocuments"]


class TermsOfDocuments:
    """A `TermsLookup` over all indexes of a node."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def __call__(self, index: str, doc_id: str, path: str, routing: str | None) -> list[Any]:
        """As they stand in the document now; none where there is none. Errors: index_not_found_exception."""
        document = one_index(self._catalog, index).shard.get(doc_id)
        return [] if document is None else list(values_at(orjson.loads(document.source), path))
