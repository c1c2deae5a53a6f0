"""`OwnBook`: what a node keeps beside the quads for its clients, as its own log has it. `BookLog`: what those
need of it who ask, in a cluster or not.
"""

from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

from actors.node.open_store import CurrentStore
from actors.shard.store_directory import KeptBeside
from actors.shard.write_queue import EntryPlan
from graphdb.model import Confirmation, EntryKind

__all__ = ["Book", "BookLog", "OwnBook"]


class Book(Protocol):
    """Such as `graphdb.namespaces.NamespaceBook`."""

    def plan(self, command: Any, /) -> bytes:
        """The payload of the entry that makes a command true."""


B = TypeVar("B", bound=Book)
B_co = TypeVar("B_co", bound=Book, covariant=True)
C = TypeVar("C")
C_contra = TypeVar("C_contra", contravariant=True)


class BookLog(Protocol[B_co, C_contra]):
    """A book as the log has it, and commands to it."""

    def book(self) -> B_co:
        """As far as this node has followed the log. Raises LogUnavailable."""

    async def change(self, command: C_contra, request_id: bytes | None = None) -> Confirmation:
        """Have a command logged by the node that leads, and applied here, if that does not take long.

        Raises KeyReused, UnavailableError, and what the book does that refuses the command.
        """


class OwnBook(Generic[B, C]):
    """See `BookLog`: commands are logged by this node."""

    def __init__(self, current: CurrentStore, kind: EntryKind, book_of: Callable[[KeptBeside], B]) -> None:
        self._current, self._kind, self._book_of = current, kind, book_of

    def book(self) -> B:
        """See `BookLog.book`."""
        return self._book_of(self._current.opened().kept)

    async def change(
        self, command: C, request_id: bytes | None = None, since: int | None = None
    ) -> Confirmation:
        """See `BookLog.change`, and `ShardWriter.write` for since."""
        store = self._current.opened()
        plan = EntryPlan(self._kind, lambda: self._book_of(store.kept).plan(command))
        return await store.writer.write(plan, request_id=request_id, since=since)
