"""`NamedStateService`: what clients ask of the names of past states."""

import time
from collections.abc import Sequence
from typing import Protocol, TypeAlias

from actors.node.own_book import BookLog, OwnBook
from graphdb.errors import InvalidParameter
from graphdb.history.moments import NAME_RULE, Moment, is_state_name
from graphdb.history.named_states import (
    ForgetState,
    NamedState,
    NamedStateBook,
    NamedStateCommand,
    NameState,
)

__all__ = ["NamedStateService", "OwnNamedStates"]

OwnNamedStates: TypeAlias = OwnBook[NamedStateBook, NamedStateCommand]


class Past(Protocol):
    """See `actors.node.past_changes.PastChanges`."""

    async def place_of(self, at: Moment | None) -> tuple[int, int]: ...
    async def oldest_index(self) -> int: ...


class NamedStateService:
    """See `serve.backend.NamedStates`. Owned by a node, on its event loop."""

    def __init__(
        self, log: BookLog[NamedStateBook, NamedStateCommand], past: Past, *, keeps_past: bool
    ) -> None:
        """keeps_past: whether there is a history of what the log no longer has."""
        self._log, self._past, self._keeps_past = log, past, keeps_past

    async def oldest_index(self) -> int:
        """See `serve.backend.NamedStates.oldest_index`."""
        return await self._past.oldest_index()

    def list(self) -> Sequence[NamedState]:
        """See `serve.backend.NamedStates.list`."""
        return [*self._log.book().states.values()]

    def show(self, name: str) -> NamedState:
        """See `serve.backend.NamedStates.show`."""
        return self._log.book().find(name)

    async def create(
        self, name: str, at: Moment | None, named_by: str, request_id: bytes | None
    ) -> NamedState:
        """See `serve.backend.NamedStates.create`."""
        if not is_state_name(name):
            raise InvalidParameter("name", f"{name[:100]!r} is not a name: {NAME_RULE}")
        if not self._keeps_past:
            raise InvalidParameter("name", 'states of the past are not kept here: history.keep is "off"')
        index, needed_from = await self._past.place_of(at)
        state = NamedState(name, index, needed_from, named_by, time.time_ns() // 1_000_000)
        await self._log.change(NameState(state), request_id)
        return self._log.book().states.get(name, state)  # this node may not have followed the log so far yet

    async def delete(self, name: str, request_id: bytes | None) -> None:
        """See `serve.backend.NamedStates.delete`."""
        await self._log.change(ForgetState(name), request_id)
