"""`ShardCluster`: the shards of a node's search indexes in processes on a Ray cluster: which process has
which copy, what each copy has, and searches over them.

    ShardCluster (a thread) ─► which copies are where (`graphdb.search.sharded.allocation`)
      HostFollower (a thread for each place) ─► its process: starts it, sends what copies lack, looks at it
    search(), on any thread ─► waits for the state of now in a copy of each shard ─► `search_shards`

The database node has all documents, and copies are made of its segments. So what is lost with a process is
nothing but a copy.
"""

import logging
import secrets
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count
from threading import Condition, Lock, Thread
from typing import Any, cast
from weakref import WeakSet

from actors.columns.shard_calls import ShardLost
from actors.search.host_follower import (
    CopySteps,
    HeldState,
    HostFollower,
    HostNode,
    HostProcesses,
    IndexState,
    ShardCopy,
    called,
)
from graphdb.errors import GraphDBError, UnavailableError
from graphdb.public_text import fault_text
from graphdb.search.catalog.catalog import Catalog
from graphdb.search.catalog.cluster_settings import balance_threshold, rebalanced_kinds
from graphdb.search.catalog.state import Index
from graphdb.search.deadline import checkpoint
from graphdb.search.sharded import Advise, SearchTask, SeveralTask, ShardFailures, search_shards
from graphdb.search.sharded.allocation import Kinds, ShardKey, allocate, next_move
from graphdb.search.sharded.rerouting import CopyAt, NotAllowed, Reroute, Rerouted, rerouted

__all__ = ["PlacedCopy", "ShardCluster"]

logger = logging.getLogger(__name__)

_POLL_S = 0.05  # between two looks whether an index has changed
_PLACES_S = 2.0  # between two looks which places there are
_STEP_S = 0.2  # between two looks whether a wait is over
_FRESH_S = 2.0  # for which a search waits until the copies have what was refreshed
_GATHER_S = 5.0  # from the first process that is there, until shards are placed without the others
_SHAPES_BYTES_MAX = 64 << 20  # of mappings and settings that a search of several indexes sends


@dataclass(frozen=True, slots=True)
class PlacedCopy:
    """A copy of a shard as it is shown: state is STARTED, INITIALIZING or UNASSIGNED."""

    number: int
    is_primary: bool
    state: str
    node: HostNode | None
    reason: str | None = None  # why it has no node


class ShardCluster:
    """For any threads. start() it, close() it at last."""

    def __init__(self, processes: HostProcesses, catalog: Callable[[], Catalog]) -> None:
        """catalog raises while there is none."""
        self._processes, self._catalog = processes, catalog
        self.changed = Condition()  # guards all that follows
        self.is_closed = False
        self._known_catalog: Catalog | None = None
        self._epoch = 0
        self._numbers, self._turns = count(1), count()
        self._states: dict[str, IndexState] = {}
        self._held: dict[str, WeakSet[HeldState]] = {}  # by the uuid of the index
        self._copies: dict[ShardKey, list[ShardCopy]] = {}  # the primary first
        self._moving: dict[ShardCopy, ShardCopy] = {}  # one that is being made, whose place it takes
        self._filled: set[ShardKey] = set()  # that have had a copy
        self._by_hand: set[tuple[ShardKey, str]] = set()  # copies, by their places, that somebody has moved
        self._balancing: tuple[str, float] = ("", 0.0)  # what the cluster's settings say of spreading copies
        self._looking, self._looked_at = Lock(), 0.0
        self._places: Mapping[str, HostNode] = {}
        self._followers: dict[str, HostFollower] = {}
        self._first_ready_at: float | None = None
        self._is_settled = False  # nothing has changed since copies were placed
        self._thread = Thread(target=self._run, name="index-shards", daemon=True)

    def start(self) -> None:
        """Begin to look for places."""
        self._thread.start()

    def close(self) -> None:
        """End all processes."""
        with self.changed:
            self.is_closed = True
            followers = list(self._followers.values())
            self.changed.notify_all()
        for follower in followers:
            follower.kill()

    # what is shown

    def copies(self, index: Index) -> list[PlacedCopy]:
        """Of an index, shard by shard, the primary first; those without a place too."""
        wanted = 1 + index.number("number_of_replicas")
        shown = []
        with self.changed:
            for number in range(len(index.shards)):
                copies = self._copies.get((index.uuid, number), [])
                whole = [copy for copy in copies if copy not in self._moving][:wanted]
                for rank in range(wanted):
                    if rank >= len(whole):
                        reason = self._why_not(len(whole))
                        shown.append(PlacedCopy(number, rank == 0, "UNASSIGNED", None, reason))
                        continue
                    state = "STARTED" if whole[rank].states else "INITIALIZING"
                    node = self._places.get(whole[rank].place)
                    shown.append(PlacedCopy(number, rank == 0, state, node))
        return shown

    def _why_not(self, copies: int) -> str:
        nodes = {node.id for node in self._places.values()}
        if len(nodes) > copies:
            return "the processes on the Ray nodes for shards are being started"
        return f"there are {len(nodes)} Ray nodes for shards, and no two copies of a shard are on one of them"

    def nodes(self) -> list[HostNode]:
        """Those that may have copies."""
        with self.changed:
            return sorted({*self._places.values()}, key=lambda node: (node.host, node.id))

    def look(self, within_s: float) -> None:
        """Notice which processes are gone now: what is shown before may be a second old. One that does not
        answer in that time counts as before.
        """
        asked_at = time.monotonic()
        with self._looking:
            if self._looked_at > asked_at:  # somebody else has looked since
                return
            self._looked_at = time.monotonic()
            with self.changed:
                there = [(one, one.process) for one in self._followers.values() if one.process is not None]
            looks = [(one, process, process.call("steps", [])[0]) for one, process in there]
            for one, process, result in looks:
                try:
                    result.value(max(0.0, self._looked_at + within_s - time.monotonic()))
                except ShardLost:
                    one.note_lost(process)
                except TimeoutError:
                    continue

    # what is moved by hand

    def reroute(
        self, commands: Sequence[Reroute], *, is_trial: bool, goes_on: bool
    ) -> list[NotAllowed | None]:
        """What came of each command, one after the other: None where it is carried out. is_trial: nothing is.
        Without goes_on all are carried out or none.
        """
        with self.changed:
            uuids = {index.name: index.uuid for index in self._catalog().indexes()}
            nodes = self._ready_places()
            copies = {
                key: [CopyAt(one.place, bool(one.states), one in self._moving) for one in these]
                for key, these in self._copies.items()
            }
            done: list[NotAllowed | None] = []
            changes: list[tuple[ShardKey, Rerouted]] = []
            for command in commands:
                key = uuids.get(command.index, ""), command.shard
                try:
                    change = self._rerouted(command, key, copies, nodes)
                    changes.append((key, change))
                    done.append(None)
                except NotAllowed as error:
                    done.append(error)
            if not is_trial and (goes_on or not any(done)):
                for key, change in changes:
                    self._reroute(key, change)
                self._note_change()
        return done

    def _rerouted(
        self, command: Reroute, key: ShardKey, copies: dict[ShardKey, list[CopyAt]], nodes: Mapping[str, str]
    ) -> Rerouted:
        """Copies are afterwards as they will be. Raises NotAllowed."""
        state = self._states.get(key[0])
        if state is None or not 0 <= key[1] < len(state.view.parts):
            raise NotAllowed(f"there is no shard {command.name}")
        wanted = 1 + state.index.number("number_of_replicas")
        loads = Counter(copy.place for these in copies.values() for copy in these)
        these = copies.setdefault(key, [])
        change = rerouted(command, these, wanted, nodes, loads)
        if change.target is None:
            copies[key] = [copy for copy in these if copy.place != change.source]
        else:
            these.append(CopyAt(change.target, False, change.source is not None))
        return change

    def _reroute(self, key: ShardKey, change: Rerouted) -> None:
        these = self._copies.setdefault(key, [])
        source = next((copy for copy in these if copy.place == change.source), None)
        if change.target is None:
            self._copies[key] = [copy for copy in these if copy is not source]
            return
        made = ShardCopy(key, change.target)
        these.append(made)
        self._by_hand.add((key, change.target))
        if source is not None:
            self._moving[made] = source

    # searches

    def hold(self, index: Index) -> HeldState:
        """As it is now."""
        with self.changed:
            held = HeldState(self._state_of(index))
            self._held.setdefault(index.uuid, WeakSet()).add(held)
        return held

    def search(
        self,
        index: Index,
        task: SearchTask,
        partial: bool,
        held: HeldState | None = None,
        advise: Advise | None = None,
    ) -> tuple[dict[str, Any], ShardFailures]:
        """See `search_shards`: over all shards of an index, as it is now or was when it was held. Shards that
        have lost all their copies are missing in the answer.

        Raises SearchError, NoShard; UnavailableError where the shards cannot be asked yet.
        """
        _, (copies,) = self._when_ready([index], [held])
        return search_shards(secrets.token_hex(8), copies, task, called, partial, advise)

    def search_several(
        self,
        indexes: Sequence[Index],
        task: SeveralTask,
        partial: bool,
        held: Sequence[HeldState] = (),
        advise: Advise | None = None,
    ) -> tuple[dict[str, Any], ShardFailures]:
        """The same over all shards of several indexes, which failures number index by index. task: its parts
        are in the order of the indexes, and get their shapes here. held: of each, where they are not of now.
        """
        states, ready = self._when_ready(indexes, held or [None] * len(indexes))
        parts = [
            replace(part, shape=state.shape, shards=len(state.view.parts))
            for part, state in zip(task.parts, states, strict=True)
        ]
        shards = sum(part.shards for part in parts)
        if shards * sum(len(part.shape) for part in parts) > _SHAPES_BYTES_MAX:
            raise UnavailableError(
                "the mappings of so many indexes are too large to be sent to all their shards"
            )
        of_all = [copies for of_index in ready for _, copies in sorted(of_index.items())]
        task = replace(task, parts=tuple(parts))
        return search_shards(secrets.token_hex(8), dict(enumerate(of_all)), task, called, partial, advise)

    def _when_ready(
        self, indexes: Sequence[Index], held: Sequence[HeldState | None]
    ) -> tuple[list[IndexState], list[dict[int, list[CopySteps]]]]:
        """(state, copies that have it by shard) of each, when all have theirs. Raises UnavailableError."""
        until = time.monotonic() + _FRESH_S
        with self.changed:
            while True:
                states = [
                    one.state if one else self._state_of(index)
                    for index, one in zip(indexes, held, strict=True)
                ]
                found = [copies for copies in map(self._ready, states) if copies is not None]
                if len(found) == len(states):
                    return states, found
                checkpoint()
                left_s = until - time.monotonic()
                if left_s <= 0 or not self._followers:
                    raise UnavailableError("the processes of its shards do not have the index of now yet")
                self.changed.wait(min(left_s, _STEP_S))

    def _ready(self, state: IndexState) -> dict[int, list[CopySteps]] | None:
        """The copies that have a state, by shard; None where there will be one if one waits."""
        found: dict[int, list[CopySteps]] = {}
        for number in range(len(state.view.parts)):
            key = (state.index.uuid, number)
            copies = self._copies.get(key, [])
            steps = [self._steps(copy, state) for copy in copies if state.number in copy.states]
            these = [one for one in steps if one is not None]
            first = next(self._turns) % max(1, len(these))
            found[number] = these[first:] + these[:first]  # copies share the work
            if not found[number] and (key not in self._filled or any(copy.states for copy in copies)):
                return None
        return found

    def _steps(self, copy: ShardCopy, state: IndexState) -> CopySteps | None:
        follower = self._followers.get(copy.place)
        if follower is None or follower.process is None:
            return None
        node = self._places[copy.place].id
        return CopySteps(follower.process, follower, node, copy.name(state.epoch), state.number)

    # for followers, who hold `changed`

    def is_wanted(self, follower: "HostFollower") -> bool:
        """Whether its place is still there."""
        return not self.is_closed and self._followers.get(follower.place) is follower

    def copies_at(self, place: str) -> list[tuple[ShardCopy, list[IndexState]]]:
        """What it is to have, and the states of each, the one of now last."""
        return [
            (copy, self._wanted_states(state))
            for key, copies in self._copies.items()
            for copy in copies
            if copy.place == place and (state := self._states.get(key[0])) is not None
        ]

    def _wanted_states(self, now: IndexState) -> list[IndexState]:
        held = {
            one.state.number: one.state
            for one in self._held.get(now.index.uuid, ())
            if one.state.index is now.index and one.state.epoch == now.epoch
        }
        return [*(state for number, state in sorted(held.items()) if state is not now), now]

    def note_ready(self) -> None:
        """A process is there."""
        if self._first_ready_at is None:
            self._first_ready_at = time.monotonic()
        self._note_change()

    def note_filled(self, copy: ShardCopy, state: IndexState) -> None:
        """A copy has a state."""
        copy.states = (*self.kept_states(copy, state), state.number)
        copy.epoch = state.epoch
        self._filled.add(copy.shard)
        source = self._moving.pop(copy, None)
        if source is not None and (copies := self._copies.get(copy.shard)) and source in copies:
            copies.remove(copy)
            copies[copies.index(source)] = copy
        self._note_change()

    def kept_states(self, copy: ShardCopy, other: IndexState) -> tuple[int, ...]:
        """Those that a copy keeps beside one: that are held, and the newest, which searches begin with."""
        return self._kept(copy, other, 1) if copy.epoch == other.epoch else ()

    def kept_at(self, place: str) -> dict[str, frozenset[int]]:
        """What its copies keep, by their names: the two newest states and those that are held."""
        found = {}
        for copy, states in self.copies_at(place):
            if copy.epoch == states[-1].epoch:
                copy.states = self._kept(copy, states[-1], 2)
            found[copy.name(copy.epoch)] = frozenset(copy.states)
        return found

    def _kept(self, copy: ShardCopy, other: IndexState, newest: int) -> tuple[int, ...]:
        held = {state.number for state in self._wanted_states(other)[:-1]}
        wanted = held | set(sorted(copy.states)[-newest:])
        return tuple(number for number in copy.states if number in wanted)

    def note_lost(self, follower: "HostFollower") -> None:
        """A process is gone, with its copies."""
        self._keep_copies_at(self._places.keys() - {follower.place})
        self._note_change()

    def _note_change(self) -> None:
        self._is_settled = False
        self.changed.notify_all()

    # the thread that decides

    def _run(self) -> None:
        looked_at = 0.0
        while not self.is_closed:
            places = None
            if time.monotonic() - looked_at >= _PLACES_S:
                try:
                    places = self._processes.places()
                except Exception as error:  # noqa: BLE001 - whatever is wrong with Ray, it is asked again
                    logger.warning("Ray does not say which nodes there are: %s", fault_text(error))
                looked_at = time.monotonic()
            gone: list[HostFollower] = []
            with self.changed:
                if places is not None:
                    gone = self._take_places(places)
                with suppress(GraphDBError):  # the indexes are being opened
                    self._take_catalog(self._catalog())
                    self._take_balancing(self._catalog().cluster_settings)
                if not self._is_settled:
                    self._place_copies()
            for follower in gone:
                follower.kill()
            time.sleep(_POLL_S)

    def _take_places(self, places: Mapping[str, HostNode]) -> "list[HostFollower]":
        """Those whose places are gone."""
        if places != self._places:
            self._places = places
            self._note_change()
        gone = [self._followers.pop(place) for place in self._followers.keys() - places.keys()]
        for place in places.keys() - self._followers.keys():
            follower = self._followers[place] = HostFollower(self, self._processes, place)
            follower.start()
        return gone

    def _take_catalog(self, catalog: Catalog) -> None:
        indexes = {index.uuid: index for index in catalog.indexes()}
        for uuid in self._states.keys() - indexes.keys():
            del self._states[uuid]
            self._held.pop(uuid, None)
            self._note_change()
            self._filled = {key for key in self._filled if key[0] != uuid}
        for index in indexes.values():
            self._state_of(index)

    def _take_balancing(self, settings: Mapping[str, Mapping[str, str]]) -> None:
        balancing = rebalanced_kinds(settings), balance_threshold(settings)
        if balancing != self._balancing:
            self._balancing = balancing
            self._note_change()

    def _state_of(self, index: Index) -> IndexState:
        """As of now; a new one wakes those who follow."""
        catalog = self._catalog()
        if catalog is not self._known_catalog:
            self._known_catalog, self._epoch = catalog, self._epoch + 1
        known = self._states.get(index.uuid)
        if known is not None and known.is_now(index, self._epoch):
            return known
        view, mapping = index.shards.view(), index.mapping
        state = self._states[index.uuid] = IndexState(
            next(self._numbers), self._epoch, index, view, mapping, index.settings, index.aliases
        )
        self._note_change()
        return state

    def _place_copies(self) -> None:
        """See `allocate`. As long as processes start that are known, the others wait a while for them."""
        nodes = self._ready_places()
        self._keep_copies_at(nodes.keys())
        since = self._first_ready_at
        if since is None or (len(nodes) < len(self._places) and time.monotonic() - since < _GATHER_S):
            return
        self._is_settled = True
        wanted = {
            (uuid, number): 1 + state.index.number("number_of_replicas")
            for uuid, state in self._states.items()
            for number in range(len(state.view.parts))
        }
        for key in self._copies.keys() - wanted.keys():
            del self._copies[key]
        for key, copies in self._copies.items():
            # where one is missing, one that was to take another's place is that: a third would be beside it
            if sum(copy not in self._moving for copy in copies) < wanted[key]:
                for copy in copies:
                    self._moving.pop(copy, None)
        whole = {
            key: [copy for copy in copies if copy not in self._moving] for key, copies in self._copies.items()
        }
        placed = {key: [copy.place for copy in copies] for key, copies in whole.items()}
        for key, target in allocate(wanted, placed, nodes).items():
            known = {copy.place: copy for copy in whole.get(key, ())}
            moving = [copy for copy in self._copies.get(key, ()) if copy in self._moving]
            self._copies[key] = [known.get(place) or ShardCopy(key, place) for place in target] + moving
        self._move_one(nodes)

    def _ready_places(self) -> dict[str, str]:
        """Those whose process is there, with their nodes."""
        return {
            place: self._places[place].id
            for place, follower in self._followers.items()
            if follower.process is not None
        }

    def _move_one(self, nodes: Mapping[str, str]) -> None:
        """Begin to move a copy, if all others have come to rest."""
        present = {copy for copies in self._copies.values() for copy in copies}
        self._moving = {copy: source for copy, source in self._moving.items() if {copy, source} <= present}
        if self._moving or not all(copy.states for copy in present):
            return
        self._by_hand &= {(copy.shard, copy.place) for copy in present}
        kinds, threshold = self._balancing
        if kinds == "none":
            return
        placed = {key: [copy.place for copy in these] for key, these in self._copies.items()}
        move = next_move(placed, nodes, threshold, cast(Kinds, kinds), self._by_hand)
        if move is not None:
            copies = next(these for key, these in self._copies.items() if key == move.shard)
            source = next(copy for copy in copies if copy.place == move.source)
            target = ShardCopy(source.shard, move.target)
            self._moving[target] = source
            copies.append(target)

    def _keep_copies_at(self, places: Set[str]) -> None:
        for key, copies in self._copies.items():
            self._copies[key] = [copy for copy in copies if copy.place in places]
