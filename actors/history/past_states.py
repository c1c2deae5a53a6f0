"""`PastStates`: stores of states of the past, made when they are asked for, and given up unused."""

import asyncio
import contextlib
import logging
import shutil
import socket
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing
from dataclasses import astuple, dataclass
from pathlib import Path
from secrets import token_hex

from pyoxigraph import Store

from actors.bounded_process import BoundedProcess, spawn
from actors.history.state_process import MODULE, Leading, VisiblePart, outcome_of, read_outcome
from actors.log.applied_index import AppliedIndex
from actors.readers.checkpoints import Checkpoints, FixedCheckpoints
from actors.views.view_directory import ViewDirectory, delete_after, linked_copy
from actors.views.views import Views, VisibleStore
from actors.worker_thread import on_thread
from graphdb.access.annotations import AnnotationWatch, has_annotations
from graphdb.access.visibility import Visibility
from graphdb.config.service import History
from graphdb.errors import (
    HistoryForgotten,
    InvalidParameter,
    LimitExceeded,
    LogUnavailable,
    Overloaded,
    QueryMemoryExceeded,
    QueryTimeout,
    RequestError,
    StorageFull,
    UnavailableError,
)
from graphdb.graphql.schema_triples import SchemaWatch
from graphdb.history.moments import Moment, index_of
from graphdb.history.past_log import PastLog
from graphdb.history.purging import PurgedUpTo
from graphdb.store.quad_store import QuadStore
from graphdb.timestamps import iso_timestamp

__all__ = ["PastStates", "Present"]

logger = logging.getLogger(__name__)
_IDLE_S = 60.0  # a state that nobody has asked for so long is given up
_LOOK_S = 0.5  # between two looks at the disk that a state takes
_AGAIN_S = 5
_MAKING_MAX = 8  # one is made, the others wait
_BLOCK_BYTES = 512  # of st_blocks
_KEPT_S = 5.0  # so long it is not looked again whether a state is kept: retention looks once a minute
_KNOWN_MAX = 100
_PURGED_MEANWHILE = "something was purged meanwhile"
_NO_SEARCH = "the past cannot be searched: the indexes hold the present state"


@dataclass(frozen=True, slots=True)
class Present:
    """What past states are made of."""

    data_dir: Path  # with the log and the history
    applied: AppliedIndex
    checkpoints: Checkpoints
    annotations: AnnotationWatch
    views: Views
    has_room: Callable[[], bool]  # whether the disk takes what adds
    named: Callable[[str], int | None]  # the log index of a named state
    purged_index: Callable[[], int]  # of the last purge; 0 for none
    unpurged: Callable[[], Sequence[PurgedUpTo]]  # what was purged that the history's files may still have


@dataclass(frozen=True, slots=True)
class _Key:
    index: int
    visibility: str | None = None  # in JSON; None: everything
    annotated: int = 0  # how often something had been annotated by the time, for a visibility


@dataclass(slots=True, eq=False)
class _State:
    """A store that nobody writes. Its files go with the last reference to quads."""

    key: _Key
    path: Path
    quads: QuadStore
    schema: SchemaWatch
    purged_index: int  # it has nothing of what was purged by then
    used_at: float  # of the event loop's clock


class PastStates:
    """Owned by an open store, on its event loop. It does nothing before the past is asked for.

    A state is made of a copy of the nearest one, the present or another that is kept, by what has changed
    between the two: in a process of its own, one at a time, within limits of time, memory and disk.
    """

    def __init__(
        self,
        directory: Path,
        present: Present,
        settings: History,
        release: Callable[[str], Awaitable[None]],
        *,
        union_default_graph: bool,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """The directory, on the store's file system, is emptied. release: as for `Checkpoints`. clock: that
        of the log's entries, in seconds. Raises StorageFull.
        """
        self._directory, self._present, self._settings = ViewDirectory(directory), present, settings
        self._release, self._union_default_graph, self._clock = release, union_default_graph, clock
        self._states: dict[_Key, _State] = {}  # the one that was asked for last is the last
        self._making: dict[_Key, asyncio.Task[_State]] = {}
        self._one_made = asyncio.Lock()  # at a time
        self._releasing: set[asyncio.Task[None]] = set()
        self._idle_timer: asyncio.TimerHandle | None = None
        self._purged_index = 0  # the states that are kept have nothing of what was purged by then
        self._known: dict[int, float] = {}  # until when an index counts as kept, of the loop's time
        self._is_closed = False
        # in the keys of answers: what has been annotated is counted anew where the store is opened again, and
        # the history may be another
        self._token = token_hex(6)

    async def visible_store(self, moment: Moment, visibility: Visibility, timeout_s: float) -> VisibleStore:
        """What a visibility shows of the state at a moment, less what it does not show of the present.

        Raises what `index_of` raises, LimitExceeded, StorageFull, QueryTimeout, QueryMemoryExceeded,
        UnavailableError: Overloaded where the state is not made in time; who asks again finds it made, or
        nearly so.
        """
        ends = asyncio.get_running_loop().time() + timeout_s
        await self._reach(moment, timeout_s)
        try:
            async with asyncio.timeout_at(ends):
                index = await self._found(moment)
                if _Key(index) not in self._states:  # what is not kept need not wait for others that are made
                    await self._look_up(index)
                return await self._visible_store(index, visibility)
        except TimeoutError:
            raise Overloaded(
                f"the state as of {moment} was not made within {round(timeout_s, 2):g} s, but it is still "
                "being made: ask again",
                _AGAIN_S,
            ) from None

    async def index_of(self, moment: Moment, timeout_s: float) -> int:
        """The log index of a moment whose state the history leads back to; nothing is made.

        Raises InvalidParameter (a moment of the future, once the time is up; see also
        `graphdb.history.moments.index_of`), HistoryForgotten, UnavailableError, CorruptionError.
        """
        await self._reach(moment, timeout_s)
        index = await self._found(moment)
        await self._look_up(index)
        return index

    async def _look_up(self, index: int) -> None:
        """Raises as `_check_kept`."""
        now = asyncio.get_running_loop().time()
        if self._known.get(index, 0.0) < now:
            await self._check_kept(index)
            if len(self._known) >= _KNOWN_MAX:
                self._known.clear()
            self._known[index] = now + _KEPT_S

    async def _found(self, moment: Moment) -> int:
        if moment.log_index is not None:
            return moment.log_index
        return await on_thread(self._index_of, moment, self._present.applied.current)

    def is_made(self, index: int) -> bool:
        """Whether the whole state at a log index has a store that may be read."""
        return _Key(index) in self._states and self._present.purged_index() == self._purged_index

    def made(self, moment: Moment) -> VisibleStore | None:
        """The whole state at a log index, if it has a store already and nothing has been purged since:
        answers of other states say so.
        """
        index = moment.log_index
        if index is None or index < self._present.purged_index() or not self.is_made(index):
            return None
        state = self._states.pop(_Key(index))
        self._states[state.key] = state
        state.used_at = asyncio.get_running_loop().time()
        return self._shown(state, lambda: True, is_whole=True)

    def is_known(self, moment: Moment) -> bool:
        """Whether it is a log index that index_of() has just found, and nothing has been purged since."""
        index, now = moment.log_index, asyncio.get_running_loop().time()
        return (
            index is not None and index >= self._present.purged_index() and self._known.get(index, 0.0) >= now
        )

    async def is_made_within(self, index: int, wait_s: float) -> bool:
        """As is_made(), having begun the making and waited for a while; where it goes on, or has failed, it
        is not. Who comes later than that does not wait.
        """
        self._give_up_purged()
        if _Key(index) in self._making:
            return False
        with contextlib.suppress(TimeoutError, RequestError, UnavailableError):
            async with asyncio.timeout(wait_s):
                await self._state(_Key(index))
        return self.is_made(index)

    def known_by(self, index: int) -> tuple[str, int]:
        """The key of answers of the whole state at a log index, and the log index from which on a view of the
        log knows that state: behind a purge it is another view. Both are others once something was purged.
        """
        purged_index = self._present.purged_index()
        return self._key(index, purged_index), max(index, purged_index)

    def _key(self, index: int, purged_index: int) -> str:
        return f"as of {index} {self._token} {purged_index}"

    async def _visible_store(self, index: int, visibility: Visibility) -> VisibleStore:
        annotations = self._present.annotations
        annotated = annotations.count
        self._give_up_purged()
        state = await self._state(_Key(index))
        if visibility.is_whole:
            return self._shown(state, lambda: True, is_whole=True)
        if has_annotations(state.quads) or not self._present.views.sees_all(visibility):
            state = await self._state(_Key(index, visibility.to_json(), annotated), state)
        return self._shown(state, lambda: annotations.count == annotated)

    def _shown(self, state: _State, holds: Callable[[], bool], *, is_whole: bool = False) -> VisibleStore:
        """is_whole: for who sees everything, whatever is annotated."""
        key = state.key
        past_index = key.index if is_whole else None
        seen_by = "" if key.visibility is None else f" {key.annotated} {key.visibility}"
        return VisibleStore(
            f"{self._key(key.index, state.purged_index)}{seen_by}",
            state.quads,
            state.schema,
            AppliedIndex(lambda: key.index),
            FixedCheckpoints(state.path, key.index, state.quads),
            holds,
            None,
            None,
            is_apart=True,
            why_apart=_NO_SEARCH,
            past_index=past_index,
            past_known_from=None if past_index is None else self.known_by(past_index)[1],
        )

    # which state

    async def _reach(self, moment: Moment, timeout_s: float) -> None:
        """Wait for a moment of the future. Raises InvalidParameter where it does not come in time."""
        applied = self._present.applied
        try:
            async with asyncio.timeout(timeout_s):
                if moment.log_index is not None:
                    await applied.wait_for(moment.log_index)
                elif moment.name is not None:
                    return
                elif (ahead_s := moment.time_ms / 1000 - self._clock()) > timeout_s:
                    raise TimeoutError
                elif ahead_s > 0:
                    await asyncio.sleep(ahead_s)
        except TimeoutError:
            now = (
                f"the time is {iso_timestamp(int(self._clock() * 1000))}"
                if moment.log_index is None
                else f"the log is at index {applied.current}"
            )
            raise InvalidParameter("as_of", f"{moment} is in the future: {now}") from None

    def _index_of(self, moment: Moment, last_index: int) -> int:
        """See `graphdb.history.moments.index_of`."""
        with closing(PastLog(self._present.data_dir)) as log:
            return index_of(moment, log, last_index, self._present.named)

    async def _check_kept(self, index: int) -> None:
        """Raises HistoryForgotten, LogUnavailable, CorruptionError."""

        def first_index() -> int:
            with closing(PastLog(self._present.data_dir)) as log:
                return log.first_index(self._present.applied.current)

        oldest = await on_thread(first_index) - 1
        if index < oldest:
            raise HistoryForgotten(str(index), oldest)

    # keeping states

    async def _state(self, key: _Key, whole: _State | None = None) -> _State:
        """The state of a key. whole: the same for those who see everything, where the key is of others."""
        state = self._states.pop(key, None)
        if state is not None:
            self._states[key] = state
            state.used_at = asyncio.get_running_loop().time()
            return state
        making = self._making.get(key)
        if making is None:
            if self._is_closed:
                raise LogUnavailable("the node is starting or stopping")
            if len(self._making) >= _MAKING_MAX:
                raise Overloaded(f"{_MAKING_MAX} states of the past are being made already", _AGAIN_S)
            making = self._making[key] = asyncio.get_running_loop().create_task(self._make(key, whole))
            making.add_done_callback(lambda _: self._making.pop(key, None))
            making.add_done_callback(lambda made: made.cancelled() or made.exception())  # nobody may wait
        return await asyncio.shield(making)

    def _let_go(self, key: _Key) -> None:
        path = str(self._states.pop(key).path)
        task = asyncio.get_running_loop().create_task(self._release_readers(path))
        self._releasing.add(task)
        task.add_done_callback(self._releasing.discard)

    async def _release_readers(self, path: str) -> None:
        try:
            await self._release(path)
        except Exception as error:  # noqa: BLE001 a reader that cannot be asked dies, and lets go so
            logger.debug("no reader could be told to let go of %s: %s", path, error)

    def _make_room(self) -> None:
        """For one more: the longest unused go, also where all take too much of the disk."""
        while len(self._states) >= self._settings.as_of_states:
            self._let_go(next(iter(self._states)))

    async def _keep_to_disk_limit(self, newest: _State) -> None:
        limit = self._settings.as_of_disk_mb << 20
        states = list(self._states.values())
        sizes = await asyncio.to_thread(lambda: [_own_bytes(state.path) for state in states])
        total = sum(sizes)
        for state, size in zip(states, sizes, strict=True):
            if total > limit and state is not newest and self._states.get(state.key) is state:
                self._let_go(state.key)
                total -= size

    def _look_later(self) -> None:
        if self._idle_timer is None and self._states:
            self._idle_timer = asyncio.get_running_loop().call_later(_IDLE_S, self._drop_idle)

    def _drop_idle(self) -> None:
        self._idle_timer = None
        since = asyncio.get_running_loop().time() - _IDLE_S
        for key in [key for key, state in self._states.items() if state.used_at <= since]:
            self._let_go(key)
        self._look_later()

    def _give_up_purged(self) -> None:
        """States of before a purge have what it took, and would lead to others that have it."""
        purged_index = self._present.purged_index()
        if purged_index != self._purged_index:
            self._purged_index = purged_index
            for key in list(self._states):
                self._let_go(key)

    async def close(self) -> None:
        """Let go of all, and end what is being made."""
        self._is_closed = True
        making = list(self._making.values())
        for task in making:
            task.cancel()
        await asyncio.gather(*making, return_exceptions=True)
        for key in list(self._states):
            self._let_go(key)
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        await asyncio.gather(*self._releasing)

    # making them

    async def _make(self, key: _Key, whole: _State | None) -> _State:
        async with self._one_made:
            self._give_up_purged()
            purged_index = self._purged_index
            if whole is not None and whole.purged_index != purged_index:
                raise Overloaded(_PURGED_MEANWHILE)
            path = self._directory.new_path()
            try:
                if key.visibility is None or whole is None:
                    await self._make_whole(key.index, path)
                else:
                    await self._make_visible(whole, key.visibility, path)
                quads = await on_thread(self._opened, path)
                if self._present.purged_index() != purged_index:
                    raise Overloaded(_PURGED_MEANWHILE)  # it may have what the history has no longer
            except BaseException:
                await asyncio.to_thread(shutil.rmtree, path, ignore_errors=True)
                raise
            self._make_room()
            loop = asyncio.get_running_loop()
            state = _State(key, path, quads, SchemaWatch(), purged_index, loop.time())
            self._states[key] = state
            await self._keep_to_disk_limit(state)
            self._look_later()
            return state

    def _opened(self, path: Path) -> QuadStore:
        quads = QuadStore(Store.read_only(str(path)), union_default_graph=self._union_default_graph)
        delete_after(quads, path)
        return quads

    async def _make_whole(self, index: int, path: Path) -> None:
        """A copy of the nearest state there is, led to this one. Raises HistoryForgotten, as `_perform`."""
        await self._check_kept(index)
        whole = [key.index for key in self._states if key.visibility is None]
        from_index = min((*whole, self._present.applied.current), key=lambda kept: abs(kept - index))
        if from_index in whole:
            state = self._states[_Key(from_index)]
            await asyncio.to_thread(linked_copy, state.path, path)
        else:
            checkpoints = self._present.checkpoints
            checkpoint = await checkpoints.take_exact()
            from_index = checkpoint.index
            try:
                await asyncio.to_thread(linked_copy, checkpoint.path, path)
            finally:
                checkpoints.give_back(checkpoint)
        if from_index != index:
            purges = tuple((*astuple(one.scope), one.log_index) for one in self._present.unpurged())
            task = Leading(str(path), str(self._present.data_dir), from_index, index, purges)
            await self._perform(task, index, path)

    async def _make_visible(self, whole: _State, visibility: str, path: Path) -> None:
        checkpoints, past = self._present.checkpoints, self._directory.new_path()
        checkpoint = await checkpoints.take()
        try:
            await asyncio.to_thread(linked_copy, whole.path, past)
            task = VisiblePart(str(path), str(past), str(checkpoint.path), visibility)
            await self._perform(task, whole.key.index, path)
        finally:
            checkpoints.give_back(checkpoint)
            await asyncio.to_thread(shutil.rmtree, past, ignore_errors=True)

    async def _perform(self, task: Leading | VisiblePart, index: int, path: Path) -> None:
        """In a process of its own, which is ended where it exceeds a limit; path: where it writes.

        Raises LimitExceeded, StorageFull, QueryTimeout, QueryMemoryExceeded, LogUnavailable, and what the
        task raises.
        """
        settings, what = self._settings, f"making the state as of {index}"
        ours, theirs = socket.socketpair()
        with ours:
            ours.setblocking(False)
            with theirs:
                memory_mb = settings.as_of_memory_mb
                process = BoundedProcess(spawn(MODULE, theirs, [str(memory_mb)]), memory_mb)
            process.watch_memory()
            watching = asyncio.get_running_loop().create_task(self._watch_disk(process, path))
            try:
                async with asyncio.timeout(settings.as_of_seconds):
                    outcome = await outcome_of(task, ours)
            except TimeoutError:
                raise QueryTimeout(
                    f"{what} took longer than {settings.as_of_seconds:g} s (history.as_of_seconds)"
                ) from None
            finally:
                watching.cancel()
                process.kill()
                await process.ended.wait()
        if process.has_filled_memory():
            raise QueryMemoryExceeded(f"{what} took more than {memory_mb} MB (history.as_of_memory_mb)")
        with contextlib.suppress(asyncio.CancelledError):
            await watching
        try:
            read_outcome(outcome)
        except ValueError:
            raise LogUnavailable(f"{what} has failed: its process ended by {process.how()}") from None

    async def _watch_disk(self, process: BoundedProcess, path: Path) -> None:
        """Raises LimitExceeded, StorageFull, having ended the process."""
        limit_mb = self._settings.as_of_disk_mb
        while True:
            await asyncio.sleep(_LOOK_S)
            size_mb = await asyncio.to_thread(_own_bytes, path) >> 20
            if size_mb <= limit_mb and self._present.has_room():
                continue
            process.kill()
            if size_mb > limit_mb:
                raise LimitExceeded(
                    "megabytes of disk for a state of the past (history.as_of_disk_mb)", size_mb, limit_mb
                )
            raise StorageFull("the disk of the data directory is full: no state of the past can be made", 5)


def _own_bytes(path: Path) -> int:
    """The disk that a store takes for itself: files with other names too are those of the present as well."""
    size = 0
    for file in path.glob("*"):
        with contextlib.suppress(FileNotFoundError):
            found = file.stat()
            size += found.st_blocks * _BLOCK_BYTES if found.st_nlink == 1 else 0
    return size
