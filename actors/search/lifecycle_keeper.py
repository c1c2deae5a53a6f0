"""`LifecycleKeeper`: does what the lifecycles of indexes ask for, where this node leads."""

import asyncio
import base64
import logging
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from graphdb.errors import UnavailableError
from graphdb.search.catalog.catalog_commands import Command, RollOver
from graphdb.search.catalog.lifecycles import due_commands
from graphdb.search.catalog.state import CatalogState
from graphdb.search.catalog.stream_lifecycles import due_in_streams
from graphdb.search.errors import SearchError

__all__ = ["LifecycleKeeper"]

logger = logging.getLogger(__name__)

_PAUSE_MAX_S = 600.0  # as often as Elasticsearch looks at all: what was refused may be possible by then
_Step: TypeAlias = tuple[str, str]
"""The name of a command and the uuid of the index that it is about."""


@dataclass(slots=True)
class _Refused:
    """reason: as it was told; pause_s: how long it is left alone; until_s: from when it is tried again."""

    reason: str
    pause_s: float
    until_s: float


class LifecycleKeeper:
    """For one event loop. A step that the catalogue refuses is tried again after twice as long each time."""

    def __init__(
        self,
        perform: Callable[[Command], Awaitable[Any]],
        now_ms: Callable[[], int],
        look_s: float,
    ) -> None:
        """look_s: how often `look` is called."""
        self._perform, self._now_ms, self._look_s = perform, now_ms, look_s
        self._refused: dict[_Step, _Refused] = {}

    async def look(self, state: CatalogState) -> None:
        """Do what is due and not left alone for now."""
        now_ms = self._now_ms()
        try:
            commands = await asyncio.to_thread(_due_commands, state, now_ms)
        except Exception:
            logger.exception("what lifecycles of indexes ask for cannot be told")
            return
        due = {_step(command): command for command in commands}
        self._refused = {step: refused for step, refused in self._refused.items() if step in due}
        for step, command in due.items():
            refused = self._refused.get(step)
            if refused is None or now_ms / 1000 >= refused.until_s:
                await self._do(step, command)

    async def _do(self, step: _Step, command: Command) -> None:
        try:
            await self._perform(command)
        except UnavailableError as error:  # it passes by itself
            logger.warning("a lifecycle of an index waits: %s", error)
        except SearchError as error:
            self._put_off(step, str(error))
        else:
            self._refused.pop(step, None)

    def _put_off(self, step: _Step, reason: str) -> None:
        before = self._refused.get(step)
        pause_s = min(self._look_s if before is None else 2 * before.pause_s, _PAUSE_MAX_S)
        if before is None or before.reason != reason:
            logger.warning(
                "a lifecycle of an index cannot go on, it is tried again within %d s: %s",
                _PAUSE_MAX_S,
                reason,
            )
        self._refused[step] = _Refused(reason, pause_s, self._now_ms() / 1000 + pause_s)


def _step(command: Command) -> _Step:
    index = command.old_uuid if isinstance(command, RollOver) else getattr(command, "uuids", ("",))[0]
    return type(command).__name__, index


def _due_commands(state: CatalogState, now_ms: int) -> list[Command]:
    return [*due_commands(state, now_ms, _new_uuid), *due_in_streams(state, now_ms, _new_uuid)]


def _new_uuid() -> str:
    return base64.urlsafe_b64encode(secrets.token_bytes(16)).decode().rstrip("=")
