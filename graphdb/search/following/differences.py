"""What is to be written so that an index has the documents that the graph says."""

from collections.abc import Callable, Iterable, Iterator

import orjson

from graphdb.search.following.shape import Documents
from graphdb.search.segments.operations import Action, Operation

__all__ = ["differences", "source_of"]


def source_of(document: object) -> bytes:
    """As it is stored: the same document is always the same bytes."""
    return orjson.dumps(document, option=orjson.OPT_SORT_KEYS)


def differences(
    ids: Iterable[str], documents: Documents, stored: Callable[[str], bytes | None]
) -> Iterator[Operation]:
    """Writes of those that are new or other, deletions of those of the ids that are in the index only.

    stored: the source of a document in the index, None where there is none.
    """
    for doc_id in ids:
        before, document = stored(doc_id), documents.get(doc_id)
        if document is None:
            if before is not None:
                yield Operation(Action.DELETE, doc_id)
            continue
        source = source_of(document)
        if source != before:
            yield Operation(Action.INDEX, doc_id, source)
