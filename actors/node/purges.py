"""`PurgeService`: what clients ask of purges. `OwnPurges`: purges as this node's own log has them."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from secrets import token_hex
from typing import Protocol

from actors.node.open_store import CurrentStore, OpenStore
from actors.node.own_book import BookLog, OwnBook
from actors.shard.write_queue import EntryPlan
from graphdb.errors import MalformedShapes, Overloaded, ShapesViolated, TransactionConflict
from graphdb.history.purges import NodePurged, Purge, PurgeBook, PurgeCommand, PurgeRecord
from graphdb.history.purging import PurgeScope, deletion
from graphdb.model import Author, Confirmation, EntryKind, Interface

__all__ = ["OwnPurges", "PurgeService"]

_ATTEMPTS = 10  # so often what is to go may come back meanwhile
_SALT_BYTES = 16
_MEND_FIRST = (
    "Change what the shapes complain of so that they hold without what is to be purged, for instance by a "
    "pseudonym in its place, or change the shapes. Then send the purge again"
)


class OwnPurges(OwnBook[PurgeBook, PurgeCommand]):
    """See `OwnBook`. A purge is first a deletion, as any other write, which every view follows; then the
    entry which says that no state up to there has the scope. It is logged only where the present has not.
    """

    def __init__(self, current: CurrentStore, nodes: Callable[[], Sequence[int]]) -> None:
        """nodes: the members of the cluster, or this node alone."""
        super().__init__(current, EntryKind.PURGES, lambda kept: kept.purges)
        self._store, self._nodes = current, nodes

    async def change(
        self, command: PurgeCommand, request_id: bytes | None = None, since: int | None = None
    ) -> Confirmation:
        """See `OwnBook.change`. Raises ShapesViolated where enforced shapes forbid the deletion, and
        LimitExceeded where too many purges are under way.
        """
        if isinstance(command, NodePurged):
            return await super().change(command, request_id, since)
        command = replace(command, nodes=tuple(self._nodes()))
        author = Author(command.purged_by, Interface.PURGE)
        for _ in range(_ATTEMPTS):
            store = self._store.opened()
            store.kept.purges.plan(command)  # refuses before anything is deleted
            if request_id is None or store.kept.requests.find(request_id) is None:
                await _delete(store, command.scope, author)
            plan = EntryPlan(EntryKind.PURGES, _planned(store, command), is_slow=True)
            try:
                return await store.writer.write(plan, request_id=request_id, since=since, author=author)
            except _ThereAgain:
                continue
        raise Overloaded("what is to be purged is written again and again", 5)


class _ThereAgain(TransactionConflict):
    """Somebody has written what was deleted."""


async def _delete(store: OpenStore, scope: PurgeScope, author: Author) -> None:
    try:
        await store.writer.write(lambda state: deletion(state.applied_store(), scope), author=author)
    except (ShapesViolated, MalformedShapes) as error:
        report = error.report if isinstance(error, ShapesViolated) else None
        raise ShapesViolated(f"nothing was purged: {error}. {_MEND_FIRST}", report) from None


def _planned(store: OpenStore, command: Purge) -> Callable[[], bytes]:
    def plan() -> bytes:
        if next(deletion(store.quads, command.scope), None) is not None:
            raise _ThereAgain("what is to be purged was written meanwhile")
        return store.kept.purges.plan(command)

    return plan


class Purging(Protocol):
    """See `actors.node.purge_runner.PurgeRunner`."""

    @property
    def error(self) -> str | None: ...

    async def wait_done(self, log_index: int, timeout_s: float) -> None: ...


class PurgeService:
    """See `serve.backend.Purges`. Owned by a node, on its event loop."""

    def __init__(self, log: BookLog[PurgeBook, PurgeCommand], purging: Purging) -> None:
        self._log, self._purging = log, purging

    def last_index(self) -> int:
        """See `serve.backend.Purges.last_index`."""
        return self._log.book().last_index

    def list(self) -> Sequence[PurgeRecord]:
        """See `serve.backend.Purges.list`."""
        return self._log.book().purges

    def error(self) -> str | None:
        """See `serve.backend.Purges.error`."""
        return self._purging.error

    async def purge(
        self, scope: PurgeScope, purged_by: str, request_id: bytes | None, timeout_s: float
    ) -> PurgeRecord:
        """See `serve.backend.Purges.purge`."""
        now_ms = time.time_ns() // 1_000_000
        command = Purge(scope.kind, scope.iri, token_hex(_SALT_BYTES), purged_by, now_ms, ())
        log_index = (await self._log.change(command, request_id)).snapshot_index
        await self._purging.wait_done(log_index, timeout_s)
        return self._log.book().find(log_index)
