"""Which documents an index that follows the graph has, the queries for them, and how documents differ."""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar

import orjson
from pyoxigraph import Quad

from graphdb.search.segments.operations import Action, Operation

__all__ = [
    "Documents",
    "Plan",
    "Row",
    "Selection",
    "Shape",
    "Term",
    "batches",
    "carried_out",
    "differences",
    "source_of",
]

# `Plan`: work that needs answers of the graph, without knowing how the graph is asked.
#
# A plan is a generator: it yields the text of a SELECT, is sent its rows, and returns what it has made of
# them.

T = TypeVar("T")

Term: TypeAlias = Mapping[str, Any]
"""As SPARQL 1.1 results JSON has it: type, value, datatype, xml:lang."""
Row: TypeAlias = Mapping[str, Term]
"""By variable, without those that are unbound."""
Plan: TypeAlias = Generator[str, Sequence[Row], T]


def carried_out(plan: Plan[T], select: Callable[[str], Sequence[Row]]) -> T:
    """What a plan returns, with a graph that answers at once."""
    try:
        query = next(plan)
        while True:
            query = plan.send(select(query))
    except StopIteration as end:
        result: T = end.value
        return result


def batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """The items in order, at most so many at a time."""
    batch: list[T] = []
    for item in items:
        batch.append(item)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


# `Shape`: what every kind of shape can tell about the documents of its index.

Documents: TypeAlias = Mapping[str, Mapping[str, Any]]
"""By `_id`."""


@dataclass(frozen=True, slots=True)
class Selection:
    """All documents that there are to be: their ids, and themselves where they came along with these."""

    ids: Sequence[str]
    documents: Documents | None = None


class Shape(Protocol):
    """It keeps no state between calls."""

    def everything(self) -> Plan[Selection]:
        """All documents of the graph as it is."""

    def owners(self, quads: Iterable[Quad]) -> Plan[set[str] | None]:
        """Ids of all documents that may be other, new or gone since these quads were added or removed; those
        of none may be among them. None: perhaps all. To be asked of the graph after the change.
        """

    def documents(self, ids: Sequence[str]) -> Plan[Documents]:
        """Those of the ids that there is a document for."""


# What is to be written so that an index has the documents that the graph says.


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
