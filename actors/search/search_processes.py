"""`SearchProcesses`: the processes beside a search port that search for it, so that it uses all processors.

    a search ─► SearchProcesses.search ─┬─ a process that has the index of now, and less to do ─► its answer
                                        └─ None: the port searches itself

They map the files of the segments and of the graphs of their vectors. A search names the state of now, so it
never sees less than the port does. Whatever a process cannot do, or does not live to do, the port does
itself.

Whole connections may be lent to them (`serve.port.lending`). What they answer there names no state: for each
index a number that they share with the port says which state is that of now, and the port takes it away when
it changes, before anybody is told of the change.
"""

import asyncio
import logging
import math
import mmap
import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import orjson

from actors.bounded_process import BoundedProcess, spawn
from actors.search.process_messages import (
    PROCESS_MESSAGES,
    SHARED_BYTES,
    SLOTS,
    Adopted,
    ForgetIndex,
    Found,
    LongSearch,
    NotFound,
    Ready,
    SearchIndex,
)
from actors.search.shared_state import SharedState, unsaved_bytes
from actors.wire.connection import Stream, stream_over
from graphdb.errors import GraphDBError, QueryMemoryExceeded, QueryTimeout
from graphdb.search.catalog.catalog import Catalog
from graphdb.search.catalog.state import Index
from graphdb.search.sharded import SearchTask

__all__ = ["SearchProcesses", "SharedMemory", "idle_s", "lending_memory"]

logger = logging.getLogger(__name__)
_MEMORY_MB = 1_024  # that one may have to itself, without the segments
_UNSAVED_BYTES = 64 << 20  # of what is in no file yet; with more, the port searches itself
_ASKED_MAX = 64  # searches that wait for one process
_BUSY = 50  # searches that found others waiting, within _BUSY_S, until one more process is started
_BUSY_S = 1.0
_BUSY_LEAST_S = 0.2
_FREE = 0.4  # of a processor has to be idle meanwhile
_IDLE_S = 30.0  # without a search, until a process is ended
_LOOK_S = 5.0
_AGAIN_S, _AGAIN_S_MAX = 1.0, 60.0  # after one that did not start; twice as long after each that follows
_NOTICE_S = 1.0  # beyond its time, what a search has to notice it, until it is answered for
_BEYOND_S = 5.0  # beyond that, until the process of a search is killed
_CHECK_S = 0.05  # at most until a process hears that a state has changed which no request has changed


class SharedMemory:
    """Of this process and those that are sent its file. Closing it closes the file, not the memory."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.view = memoryview(mmap.mmap(fd, 0))

    @classmethod
    def new(cls, name: str, size: int) -> "SharedMemory":
        """Of zeros. Raises OSError."""
        fd = os.memfd_create(name)
        os.ftruncate(fd, size)
        return cls(fd)

    def __enter__(self) -> "SharedMemory":
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.fd)


def lending_memory(shared: SharedMemory) -> tuple[memoryview, memoryview]:
    """Of one process: that of its `Ledger`, and how often its thread has gone on."""
    return shared.view[:-8], shared.view[-8:].cast("Q")


@dataclass(frozen=True, slots=True)
class _Answer:
    members: Mapping[str, bytes] | None = None
    timed_out: bool = False


class _Process(BoundedProcess):
    """One of them. Searches are by number."""

    def __init__(self, process: Any, stream: Stream, channel: socket.socket, shared: SharedMemory) -> None:
        super().__init__(process, _MEMORY_MB)
        self._stream = stream
        self.channel = channel
        self.ledger, self._beat = lending_memory(shared)
        self.lent = 0  # connections
        self._last_beat, self._beat_at = 0, time.monotonic()
        self.asked: dict[int, asyncio.Future[_Answer]] = {}
        self.long: set[int] = set()
        self.sent: dict[str, int] = {}  # the state of each index that it was told
        self.states: dict[str, int] = {}  # that it has
        self.is_ready = False
        self.used_at = time.monotonic()

    @classmethod
    async def start(cls, module: str, states: SharedMemory, arguments: Sequence[str]) -> "_Process":
        """Raises OSError."""
        ours, theirs = socket.socketpair()
        channel, their_channel = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        shared = SharedMemory.new("lent", SHARED_BYTES)
        with theirs, their_channel, shared:
            socket.send_fds(ours, [b"-"], [their_channel.fileno(), shared.fd, states.fd])
            stream = await stream_over(PROCESS_MESSAGES, ours)
            try:
                process = spawn(module, theirs, [str(_MEMORY_MB), *arguments], niceness=0, gives_way=False)
                return cls(process, stream, channel, shared)
            except BaseException:
                stream.close()
                channel.close()
                raise

    @property
    def is_watched(self) -> bool:
        return bool(self.asked or self.lent)

    def note_lent(self, count: int) -> None:
        """So many connections are lent to it now."""
        self.lent, self.used_at = count, time.monotonic()
        self.watch_memory()

    def hangs(self, limit_s: float) -> bool:
        """Whether nothing has happened for so long to the connections that are lent to it. Asked often."""
        now, beat = time.monotonic(), int(self._beat[0])
        if beat != self._last_beat or not self.lent:
            self._last_beat, self._beat_at = beat, now
        return now - self._beat_at > limit_s

    def let_go(self) -> None:
        self._stream.close()
        self.channel.close()

    def tell(self, message: object) -> None:
        """It hears it, or is gone."""
        self._stream.send(message)

    async def follow(self, note: Callable[[], None]) -> None:
        """Take its messages until it is gone; then those who wait are told. note: it has a state more."""
        try:
            while (message := await self._stream.read()) is not None:
                self._take(message)
                if isinstance(message, Adopted | Ready):
                    note()
        finally:
            self.kill()
            await self.ended.wait()
            self._fail()

    def _take(self, message: object) -> None:
        if isinstance(message, Found):
            self._answer(message.search, _Answer(message.members))
        elif isinstance(message, NotFound):
            if message.full:
                self._refuse(message.search)
            self._answer(message.search, _Answer(timed_out=message.timed_out))
        elif isinstance(message, LongSearch):
            self.long.add(message.search)
        elif isinstance(message, Adopted):
            if message.is_there:
                self.states[message.uuid] = message.number
        elif isinstance(message, Ready):
            self.is_ready = True

    def _answer(self, search: int, answer: _Answer) -> None:
        waiting = self.asked.pop(search, None)
        self.long.discard(search)
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)

    def _refuse(self, search: int) -> None:
        waiting = self.asked.get(search)
        if waiting is not None and not waiting.done():
            waiting.set_exception(QueryMemoryExceeded("the search took more memory than a search may have"))

    def _fail(self) -> None:
        """It is gone. The port tries short searches again: they fill no memory (`short_answer`)."""
        for search in list(self.asked):
            if search in self.long and self.has_filled_memory():
                self._refuse(search)
            self._answer(search, _Answer())


class SearchProcesses:
    """For one event loop. close() it at last."""

    def __init__(
        self,
        most: int,
        catalog: Callable[[], Catalog],
        limit_s: float,
        scorer: Sequence[str],
        idle_s: Callable[[], float],
        module: str,
    ) -> None:
        """most: processes at a time. catalog raises while there is none. limit_s: a search ends before.

        scorer: name and two weights, as in the settings. idle_s: how long the processors of the machine have
        been idle, together. module: what they run, see `search_process`.
        """
        self._most, self._catalog, self._limit_s, self._scorer = most, catalog, limit_s, scorer
        self._module = module
        self._shared_states = SharedMemory.new("states", 8 * SLOTS)
        self._valid = self._shared_states.view.cast("Q")  # by slot, the number of the state of now, or 0
        self._processes: list[_Process] = []
        self._states: dict[str, SharedState] = {}
        self._state_number = self._search_number = 0
        self._present = 0  # searches that have come and are not with a process
        self._busy = 0  # searches that found others waiting, since
        self._busy_since = self._idle_before = 0.0
        self._idle_s = idle_s
        self._starting: asyncio.Task[None] | None = None
        self._start_after = self._pause_s = 0.0
        self._following: set[asyncio.Task[None]] = set()
        self._sweeping: asyncio.Task[None] | None = None
        self._checking: asyncio.Task[None] | None = None
        self._is_closed = False

    async def close(self) -> None:
        """End them all."""
        self._is_closed = True
        tasks = [task for task in (self._starting, self._sweeping, self._checking) if task is not None]
        for task in tasks:
            task.cancel()
        for process in self._processes:
            process.kill()
        await asyncio.gather(*tasks, *self._following, return_exceptions=True)
        for state in self._states.values():
            state.close()
        self._shared_states.__exit__()

    @property
    def pids(self) -> list[int]:
        """Of those that search."""
        return [process.pid for process in self._processes if process.is_ready]

    @property
    def lent(self) -> int:
        """Connections that they serve now."""
        return sum(process.lent for process in self._processes)

    @property
    def searches(self) -> int:
        """How many they were given so far."""
        return self._search_number

    @contextmanager
    def present(self) -> Iterator[None]:
        """A search has come; until it is answered."""
        self._present += 1
        try:
            yield
        finally:
            self._present -= 1

    def borrower(self, index: Index) -> _Process | None:
        """The process with the fewest connections, if it has the index of now and may answer for it. One is
        started where there is none. Asked while the port is busy with the searches of several connections.
        """
        ready = [one for one in self._processes if one.is_ready and not one.leaving.is_set()]
        process = min(ready, key=lambda one: one.lent, default=None)
        self._note_busy(process is not None and not process.lent)
        if process is None:
            return None
        state = self._shared(process, index)
        if state is None or state.settings is not self._catalog().cluster_settings:
            return None
        self._valid[state.message.slot] = state.message.number
        self.check()  # it may have changed before this said that it has not
        return process if self._valid[state.message.slot] else None

    def check(self) -> None:
        """Take it back that states are those of now which are not. On any thread."""
        try:
            catalog = self._catalog()
        except GraphDBError:
            catalog = None
        for state in list(self._states.values()):
            slot = state.message.slot
            if self._valid[slot] and (catalog is None or not state.is_now(catalog)):
                self._valid[slot] = 0

    async def _check(self) -> None:
        while self._processes:
            await asyncio.sleep(_CHECK_S)
            self.check()
        self._checking = None

    async def search(
        self, index: Index, task: SearchTask, timeout_ms: int | None
    ) -> tuple[Mapping[str, bytes] | None, bool]:
        """(the members of the answer, each as JSON, whether the client's time has passed); neither: the port
        is to search itself. Within `present`.

        Raises QueryMemoryExceeded, QueryTimeout.
        """
        await asyncio.sleep(0)  # all that have come together are present then
        process = self._chosen()
        state = None if process is None else self._shared(process, index)
        if process is None or state is None:
            return None, False
        self._present -= 1
        try:
            answer = await self._answered(process, state, task, timeout_ms)
        finally:
            self._present += 1
        return answer.members, answer.timed_out

    def _chosen(self) -> _Process | None:
        """The process that has less to do than the port, if there is one."""
        least = self._least()
        if self._present > 1:
            self._note_busy(least is not None and not least.asked)
        elif least is None or not any(one.asked for one in self._processes):
            return None  # nobody waits for this search
        return least if least is not None and len(least.asked) <= min(self._present, _ASKED_MAX) else None

    def _least(self) -> _Process | None:
        """The process that has the least to do."""
        ready = [one for one in self._processes if one.is_ready and not one.leaving.is_set()]
        return min(ready, key=lambda one: len(one.asked), default=None)

    def _note_busy(self, has_free: bool) -> None:
        """Start one more process if searches have waited for a while, and those that are there are busy."""
        if self._is_closed or self._starting is not None or len(self._processes) >= self._most:
            return
        if has_free:
            return
        now = time.monotonic()
        if not self._busy or now - self._busy_since > _BUSY_S:
            self._busy, self._busy_since, self._idle_before = 0, now, self._idle_s()
        self._busy += 1
        if self._busy > _BUSY and now > max(self._start_after, self._busy_since + _BUSY_LEAST_S):
            is_free = self._idle_s() - self._idle_before > _FREE * (now - self._busy_since)
            self._busy = 0
            if is_free:
                self._starting = asyncio.get_running_loop().create_task(self._start())

    async def _start(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            process = await _Process.start(self._module, self._shared_states, self._scorer)
        except OSError as error:
            logger.warning("a search process does not start: %s", error)
            self._pause()
        else:
            self._processes.append(process)
            following = loop.create_task(self._follow(process))
            self._following.add(following)
            following.add_done_callback(self._following.discard)
            if self._sweeping is None:
                self._sweeping = loop.create_task(self._sweep())
            if self._checking is None:
                self._checking = loop.create_task(self._check())
        finally:
            self._starting = None

    async def _follow(self, process: _Process) -> None:
        try:
            await process.follow(self._note_adopted)
        finally:
            self._processes.remove(process)
            if not process.is_ready:
                self._pause()

    def _pause(self) -> None:
        """One did not start: killed by chance, it is missed for a moment; one that cannot is seldom tried."""
        self._pause_s = min(max(2 * self._pause_s, _AGAIN_S), _AGAIN_S_MAX)
        self._start_after = time.monotonic() + self._pause_s

    async def _sweep(self) -> None:
        """End processes without work, kill those of searches that do not end, forget indexes."""
        while self._processes:
            await asyncio.sleep(_LOOK_S)
            now = time.monotonic()
            for process in self._processes:
                if process.hangs(self._limit_s + _BEYOND_S):
                    self._expire(process)
                if process.is_ready and not process.is_watched and now - process.used_at > _IDLE_S:
                    process.kill()
            with suppress(GraphDBError):
                self._forget({index.uuid for index in self._catalog().indexes()})
        self._forget(set())
        self._sweeping = None

    def _forget(self, known: set[str]) -> None:
        for uuid in self._states.keys() - known:
            gone = self._states.pop(uuid)
            self._valid[gone.message.slot] = 0
            gone.close()
            self._tell_to_forget(uuid)

    def _tell_to_forget(self, uuid: str) -> None:
        for process in self._processes:
            process.sent.pop(uuid, None)
            process.states.pop(uuid, None)
            process.tell(ForgetIndex(uuid))

    # what they have

    def _shared(self, process: _Process, index: Index) -> SharedState | None:
        """The state of now, if the process has it; else it is told."""
        state = self._state_of(index)
        if state is not None and state.is_closed and process.sent.get(index.uuid) != state.message.number:
            del self._states[index.uuid]  # for a process that has come later, its files are made again
            state = self._state_of(index)
        if state is None:
            return None
        number = state.message.number
        if process.states.get(index.uuid) == number:
            return state
        for one in self._processes:
            if one.is_ready and one.sent.get(index.uuid) != number:
                one.sent[index.uuid] = number
                one.tell(state.message)
        return None

    def _state_of(self, index: Index) -> SharedState | None:
        """As of now; None where too much of it is in no file yet."""
        before = self._states.get(index.uuid)
        if before is not None and before.is_of(index):
            return before
        if unsaved_bytes(index) > _UNSAVED_BYTES:
            return None
        slot = self._free_slot() if before is None else before.message.slot
        if slot is None:
            return None
        if before is not None:
            del self._states[index.uuid]
            self._valid[slot] = 0
            before.close()
            if before.index is not index:  # as with a new catalogue, whose segments may have the same names
                self._tell_to_forget(index.uuid)
        self._state_number += 1
        settings = self._catalog().cluster_settings
        state = SharedState.of(index, settings, self._state_number, slot)
        self._states[index.uuid] = state
        return state

    def _free_slot(self) -> int | None:
        taken = {state.message.slot for state in self._states.values()}
        return next((slot for slot in range(SLOTS) if slot not in taken), None)

    def _note_adopted(self) -> None:
        self._pause_s = 0.0  # they start
        self._close_unsaved()

    def _close_unsaved(self) -> None:
        """Of states that all processes have, which have these files themselves then."""
        for uuid, state in self._states.items():
            if state.unsaved and all(
                one.states.get(uuid) == state.message.number for one in self._processes if one.is_ready
            ):
                state.close()

    # searches

    async def _answered(
        self, process: _Process, state: SharedState, task: SearchTask, timeout_ms: int | None
    ) -> _Answer:
        """One that does not end in time is answered for all the same, and its process killed later."""
        wanted_s = math.inf if timeout_ms is None else timeout_ms / 1000
        waiting = self._sent(process, state, task, timeout_ms)
        number = self._search_number
        try:
            async with asyncio.timeout(min(wanted_s, self._limit_s) + _NOTICE_S):
                return await waiting
        except TimeoutError:
            asyncio.get_running_loop().call_later(_BEYOND_S, self._expire_unanswered, process, number)
            if wanted_s < self._limit_s:
                return _Answer(timed_out=True)
            raise QueryTimeout(f"the search ran longer than [{self._limit_s}s] and was ended") from None

    def _expire_unanswered(self, process: _Process, search: int) -> None:
        if search in process.asked:
            self._expire(process)

    @staticmethod
    def _expire(process: _Process) -> None:
        logger.error("a search does not end: its process %d is killed", process.pid)
        process.kill()

    def _sent(
        self, process: _Process, state: SharedState, task: SearchTask, timeout_ms: int | None
    ) -> asyncio.Future[_Answer]:
        self._search_number = number = self._search_number + 1
        now = time.monotonic()
        process.used_at = now
        deadline_s = now + self._limit_s
        waiting: asyncio.Future[_Answer] = asyncio.get_running_loop().create_future()
        process.asked[number] = waiting
        process.watch_memory()
        process.tell(
            SearchIndex(
                number,
                state.message.uuid,
                state.message.number,
                orjson.dumps(task.body),
                task.now_ms,
                task.options.typed_keys,
                task.options.named_scores,
                None if task.filter is None else orjson.dumps(task.filter),
                task.boost,
                task.window,
                deadline_s,
                None if timeout_ms is None else now + timeout_ms / 1000,
            )
        )
        return waiting


def idle_s() -> float:
    """How long the processors of the machine have been idle, together; grows without end."""
    with open("/proc/stat", "rb") as file:
        fields = file.readline().split()  # cpu user nice system idle iowait ..., in ticks
    return (int(fields[4]) + int(fields[5])) / os.sysconf("SC_CLK_TCK")
