"""`HostFollower`: the process of one place follows what its copies of shards are to have; `called`: calls to
copies, for searches. See `shard_cluster.py`.
"""

import logging
import pickle
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from threading import Condition, Thread
from typing import Any, Protocol

from actors.columns.shard_calls import Result, ShardLost, ShardProcess
from actors.search.shard_host import LeafState, ShardState, StepCall
from graphdb.public_text import fault_text
from graphdb.search.answer_room import take_room
from graphdb.search.catalog.state import Index
from graphdb.search.deadline import checkpoint
from graphdb.search.segments.index_shards import ShardLeaves
from graphdb.search.segments.segment_file import segment_pieces
from graphdb.search.segments.shard_view import array_segment
from graphdb.search.sharded import Call, Lost
from graphdb.search.sharded.allocation import ShardKey
from graphdb.search.sharded.steps import Answered

__all__ = [
    "CopySteps",
    "HeldState",
    "HostFollower",
    "HostNode",
    "HostProcesses",
    "IndexState",
    "Placement",
    "ShardCopy",
    "called",
]

logger = logging.getLogger(__name__)

_LOOK_S = 1.0  # between two looks at a process
_STEP_S = 0.2  # between two looks whether a wait is over
_SILENT_S = 10.0  # without an answer, until a process counts as lost
_TELL_S = 30.0  # without a place, until it is said
_AGAIN_S, _AGAIN_S_MAX = 0.2, 10.0  # between two attempts


@dataclass(frozen=True, slots=True)
class HostNode:
    """A Ray node, on which are one or more places for processes."""

    id: str
    host: str

    @property
    def name(self) -> str:
        """For people."""
        return f"ray-{self.host}-{self.id[:8]}"


class HostProcesses(Protocol):
    """Starts the processes of `ShardHost`s."""

    def places(self) -> Mapping[str, HostNode]:
        """Those that there are now, by name: one for each process that there may be."""
        ...

    def start(self, place: str) -> ShardProcess:
        """That of one place; its first call waits until it is there."""
        ...


@dataclass(frozen=True, slots=True)
class IndexState:
    """An index as of one moment."""

    number: int
    epoch: int  # of the catalogue; another one may give the same names to other segments
    index: Index
    view: ShardLeaves
    mapping: Any
    settings: Any
    aliases: Any

    def is_now(self, index: Index, epoch: int) -> bool:
        return (
            self.epoch == epoch
            and self.index is index
            and self.view is index.shards.view()
            and self.mapping is index.mapping
            and self.settings is index.settings
            and self.aliases is index.aliases
        )

    @property
    def shape(self) -> bytes:
        """See `IndexPart.shape`; `ShardHost` reads it."""
        return pickle.dumps((self.index.name, self.settings, self.mapping.as_json(), dict(self.aliases)))

    def of_shard(self, number: int) -> ShardState:
        leaves = tuple(map(LeafState.of, self.view.parts[number]))
        mapping = self.mapping.as_json()
        return ShardState(self.number, self.index.name, self.settings, mapping, dict(self.aliases), leaves)


@dataclass(eq=False, slots=True)
class ShardCopy:
    shard: ShardKey
    place: str
    states: tuple[int, ...] = ()  # of the epoch, as they have come
    epoch: int = 0

    def name(self, epoch: int) -> str:
        """To its process."""
        return f"{self.shard[0]}.{self.shard[1]}.{epoch}"


class HeldState:
    """An index as of one moment, for searches that may come later: copies have it as long as this lives."""

    def __init__(self, state: IndexState) -> None:
        self.state = state

    def is_of(self, index: Index) -> bool:
        """Whether it is the same index still."""
        return self.state.index is index


@dataclass(frozen=True, slots=True)
class CopySteps:
    """A copy, as `search_shards` names it in calls."""

    process: ShardProcess
    follower: "HostFollower"
    node: str
    copy: str
    state: int

    def begin(self, search: str, task: int, number: int, work: bytes) -> Any:
        """See `Steps`."""
        return called([Call(self, "begin", (search, task, number, work))])[0]

    def go_on(self, search: str, task: int, known: bytes) -> Any:
        """See `Steps`."""
        return called([Call(self, "go_on", (search, task, known))])[0]

    def end(self, search: str) -> None:
        """See `Steps`. Nobody waits for it."""
        called([Call(self, "end", (search,))])


class Placement(Protocol):
    """What a follower needs of a `ShardCluster`; the methods are for who holds `changed`."""

    changed: Condition

    def is_wanted(self, follower: "HostFollower") -> bool: ...
    def copies_at(self, place: str) -> list[tuple[ShardCopy, list[IndexState]]]: ...
    def kept_at(self, place: str) -> dict[str, frozenset[int]]: ...
    def kept_states(self, copy: ShardCopy, other: IndexState) -> tuple[int, ...]: ...
    def note_ready(self) -> None: ...
    def note_filled(self, copy: ShardCopy, state: IndexState) -> None: ...
    def note_lost(self, follower: "HostFollower") -> None: ...


class HostFollower:
    """The process of one place: starts it, sends what copies lack, and starts it again when it is lost."""

    def __init__(self, cluster: Placement, processes: HostProcesses, place: str) -> None:
        self.place = place
        self.process: ShardProcess | None = None  # once it answers
        self._cluster, self._processes = cluster, processes
        self._starting: ShardProcess | None = None
        self._thread = Thread(target=self._run, name=f"index-shards-{place}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def kill(self) -> None:
        """End its process, whatever it does."""
        process = self._starting
        if process is not None:
            with suppress(Exception):
                process.kill()

    def note_lost(self, process: ShardProcess) -> None:
        """Who asked it has been told that it is gone."""
        with self._cluster.changed:
            if self.process is process:
                self.process = None
                self._cluster.note_lost(self)

    def _run(self) -> None:
        pause_s = _AGAIN_S
        while self._is_wanted():
            began = time.monotonic()
            try:
                self._follow(self._started())
            except Exception as error:  # noqa: BLE001 - it is made again, whatever it was
                if not self._is_wanted():
                    break
                logger.warning("the index shards at %s are made again: %s", self.place, fault_text(error))
            self.kill()
            with self._cluster.changed:
                self.process = self._starting = None
                self._cluster.note_lost(self)
            pause_s = _AGAIN_S if time.monotonic() - began > _AGAIN_S_MAX else min(pause_s * 2, _AGAIN_S_MAX)
            time.sleep(pause_s)
        self.kill()

    def _is_wanted(self) -> bool:
        with self._cluster.changed:
            return self._cluster.is_wanted(self)

    def _started(self) -> ShardProcess:
        process = self._starting = self._processes.start(self.place)
        result, began, is_told = process.call("look", {})[0], time.monotonic(), False
        while True:
            with suppress(TimeoutError):
                result.value(_STEP_S)
                break
            if not self._is_wanted():
                raise ShardLost("the place is gone")
            if not is_told and time.monotonic() - began > _TELL_S:
                logger.warning("the process for index shards at %s does not start yet", self.place)
                is_told = True
        with self._cluster.changed:
            self.process = process
            self._cluster.note_ready()
        return process

    def _follow(self, process: ShardProcess) -> None:
        """Until it is lost."""
        looked_at = 0.0
        while True:
            with self._cluster.changed:
                if not self._cluster.is_wanted(self):
                    return
                if self.process is not process:
                    raise ShardLost("it is gone")
                copies = self._cluster.copies_at(self.place)
                behind = [
                    (copy, state)
                    for copy, states in copies
                    for state in states
                    if copy.epoch != state.epoch or state.number not in copy.states
                ]
                if not behind:
                    self._cluster.changed.wait(_LOOK_S)
            for copy, state in behind:
                self._send(process, copy, state)
            if time.monotonic() - looked_at >= _LOOK_S:
                looked_at = time.monotonic()
                with self._cluster.changed:
                    kept = self._cluster.kept_at(self.place)
                self._value(process.call("look", kept))

    def _send(self, process: ShardProcess, copy: ShardCopy, state: IndexState) -> None:
        name, number = copy.name(state.epoch), copy.shard[1]
        if number >= len(state.view.parts):
            return
        segments = {one.name: one for one in map(array_segment, state.view.parts[number])}
        missing = self._value(process.call("missing", name, tuple(segments)))
        sent: list[Result] | None = None
        for segment in missing:
            for offset, piece in segment_pieces(segments[segment]):
                if sent is not None:
                    self._value(sent)  # the next piece was made meanwhile
                sent = process.call("take", name, segment, offset, piece)
        if sent is not None:
            self._value(sent)
        with self._cluster.changed:
            kept = frozenset(self._cluster.kept_states(copy, state))
        self._value(process.call("adopt", name, state.of_shard(number), kept))
        with self._cluster.changed:
            self._cluster.note_filled(copy, state)

    def _value(self, results: Sequence[Result]) -> Any:
        began = time.monotonic()
        while True:
            with suppress(TimeoutError):
                return results[0].value(_STEP_S)
            if time.monotonic() - began > _SILENT_S or not self._is_wanted():
                raise ShardLost(f"it has not answered for {_SILENT_S:.0f} s")


def called(calls: Sequence[Call]) -> list[Any]:
    """See `Calls`: all at once, those of one process in one call.

    What the shards show of documents comes process by process, and takes from the room of the one answer that
    it is for; each shard has seen to its own part alone. Raises circuit_breaking_exception.
    """
    by_process: dict[int, list[int]] = {}
    copies = []
    for place, call in enumerate(calls):
        assert isinstance(call.copy, CopySteps)
        copies.append(call.copy)
        by_process.setdefault(id(call.copy.process), []).append(place)
    made = []
    for places in by_process.values():
        process = copies[places[0]].process
        if calls[places[0]].method == "end":  # nobody waits for it
            (search,) = calls[places[0]].arguments
            process.call("end", search, [(copies[place].copy, copies[place].state) for place in places])
            continue
        steps = [
            StepCall(calls[place].method, copies[place].copy, copies[place].state, calls[place].arguments)
            for place in places
        ]
        made.append((places, process.call("steps", steps)[0]))
    found: list[Any] = [None] * len(calls)
    for places, result in made:
        came = _finished(copies[places[0]], result)
        for place, step in zip(places, [came] * len(places) if isinstance(came, Lost) else came, strict=True):
            found[place] = step
            if isinstance(step, Answered):
                take_room(len(step.result))
    return found


def _finished(steps: CopySteps, result: Result) -> Any:
    """What came of a call; `Lost` without its process. Raises what the time limit of the search raises."""
    while True:
        try:
            return result.value(_STEP_S)
        except TimeoutError:
            checkpoint()
            if steps.follower.process is not steps.process:
                return Lost("its process is lost", steps.node)
        except ShardLost as lost:
            steps.follower.note_lost(steps.process)
            return Lost(str(lost), steps.node)
