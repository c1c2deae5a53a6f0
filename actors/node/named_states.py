"""`NamedStateService`: what clients ask of the names of past states."""

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol, TypeAlias

from actors.node.own_book import BookLog, OwnBook
from graphdb.errors import InvalidParameter
from graphdb.history.moments import NAME_RULE, Moment, is_state_name
from graphdb.history.named_states import (
    ForgetState,
    KeptState,
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
    async def kept(self, states: Sequence[NamedState]) -> list[KeptState]: ...


class NamedStateService:
    """See `serve.backend.NamedStates`. Owned by a node, on its event loop."""

    def __init__(
        self,
        log: BookLog[NamedStateBook, NamedStateCommand],
        past: Past,
        holding: Callable[[int], AbstractAsyncContextManager[None]],
        *,
        keeps_past: bool,
    ) -> None:
        """holding: see `HistoryKeeper.holding`. keeps_past: whether there is a history of what the log no
        longer has.
        """
        self._log, self._past, self._holding, self._keeps_past = log, past, holding, keeps_past

    async def list(self) -> Sequence[KeptState]:
        """See `serve.backend.NamedStates.list`."""
        return await self._past.kept([*self._log.book().states.values()])

    async def show(self, name: str) -> KeptState:
        """See `serve.backend.NamedStates.show`."""
        [found] = await self._past.kept([self._log.book().find(name)])
        return found

    async def create(
        self, name: str, at: Moment | None, named_by: str, request_id: bytes | None
    ) -> KeptState:
        """See `serve.backend.NamedStates.create`."""
        if not is_state_name(name):
            raise InvalidParameter("name", f"{name[:100]!r} is not a name: {NAME_RULE}")
        if not self._keeps_past:
            raise InvalidParameter("name", 'states of the past are not kept here: history.keep is "off"')
        _, needed_from = await self._past.place_of(at)
        async with self._holding(needed_from):
            # once more: what leads to it may have been deleted until it was held
            index, needed_from = await self._past.place_of(at)
            state = NamedState(name, index, needed_from, named_by, time.time_ns() // 1_000_000)
            await self._log.change(NameState(state), request_id)
        # this node may not have followed the log so far yet
        [found] = await self._past.kept([self._log.book().states.get(name, state)])
        return found

    async def delete(self, name: str, request_id: bytes | None) -> None:
        """See `serve.backend.NamedStates.delete`."""
        await self._log.change(ForgetState(name), request_id)
