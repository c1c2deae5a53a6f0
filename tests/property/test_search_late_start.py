"""Nodes with and without search, whose logs forget: those that open their indexes have the same ones."""

from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from random import Random

import pytest

from graphdb.search.catalog.late_start import Fetch, LateStart, PassOver, SearchState, Wait, late_start

SEARCH, QUADS = "search", "quads"


@dataclass
class Node:
    """documents: places in the log of the search entries that its indexes have, up to `applied`; on its disk
    are those up to `saved`. It is open once it follows the log. start: what it does before, step by step.
    """

    number: int
    enabled: bool = False
    open: bool = False
    reachable: bool = True
    is_starting: bool = False
    first_index: int = 1
    applied: int = 0
    documents: set[int] = field(default_factory=set)
    saved: int = 0
    on_disk: set[int] = field(default_factory=set)
    start: Iterator[None] = field(default_factory=lambda: iter(()))

    def save(self) -> None:
        self.saved, self.on_disk = self.applied, set(self.documents)

    def stop(self) -> None:
        """What is not on disk is gone."""
        self.applied, self.documents, self.open = self.saved, set(self.on_disk), False
        self.start = iter(())


class Cluster:
    """Three nodes, and a log whose entries all of them get at once."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.nodes = [Node(number) for number in (1, 2, 3)]
        self.is_lost = False  # whether documents may be on no disk any more

    def append(self, kind: str) -> None:
        """Documents are logged by nodes that serve them."""
        if kind == QUADS or any(node.open and node.reachable for node in self.nodes):
            self.log.append(kind)
            for node in self.nodes:
                if node.open:
                    self.follow(node)

    def follow(self, node: Node) -> None:
        new = range(node.applied + 1, len(self.log) + 1)
        node.documents |= {index for index in new if self.log[index - 1] == SEARCH}
        node.applied = len(self.log)

    def trim(self, node: Node) -> None:
        """The log forgets what the quads, and the search where it is on, do not need.

        Who turns the search off after a crash may lose what nobody else has.
        """
        needed = node.saved + 1 if node.enabled else len(self.log) + 1
        forgotten = range(node.first_index, needed)
        node.first_index = max(node.first_index, needed)
        for index in forgotten:
            has = (index in other.on_disk or index >= other.first_index for other in self.nodes)
            self.is_lost |= self.log[index - 1] == SEARCH and not any(has)

    def switch(self, node: Node) -> None:
        """A restart in order, with search on or off."""
        if node.open:
            node.save()
        node.stop()
        node.enabled = not node.enabled

    def wipe(self, node: Node) -> None:
        """It comes back by a snapshot without indexes."""
        self.is_lost = True
        self.nodes[node.number - 1] = Node(node.number, node.enabled, first_index=len(self.log) + 1)

    def state(self, node: Node) -> SearchState:
        in_log = range(max(node.first_index, node.saved + 1), len(self.log) + 1)
        is_changed = any(self.log[index - 1] == SEARCH for index in in_log)
        is_off = not node.enabled
        known = len(self.log) if is_off and not is_changed else node.saved
        return SearchState(
            node.number,
            node.enabled,
            node.saved,
            node.first_index,
            known,
            is_off and is_changed,
            node.enabled and node.is_starting,
        )

    def go_on(self, node: Node) -> None:
        """One step on the way to open indexes."""
        if node.enabled and not node.open and next(node.start, self) is self:
            node.start = self._start(node)

    def _start(self, node: Node) -> Iterator[None]:
        node.is_starting = False
        if self.state(node).is_whole:
            self.follow(node)
            node.open = True
            return
        step = yield from self._step(node)
        if isinstance(step, PassOver):
            node.is_starting = True
            step = yield from self._step(node)
        if isinstance(step, Fetch):
            source = self.nodes[step.node_id - 1]
            if source.saved > node.saved:  # a disk may have gone meanwhile
                node.applied, node.documents = source.saved, set(source.on_disk)
                node.save()
        elif isinstance(step, PassOver):
            node.applied = node.first_index - 1
            node.save()
        node.is_starting = False

    def _step(self, node: Node) -> Generator[None, None, LateStart]:
        """Ask one after the other, and decide a moment later."""
        states: dict[int, SearchState | None] = {}
        for other in [other for other in self.nodes if other.number != node.number]:
            if other.open and other.reachable:
                other.save()  # who is asked puts on disk what it has
            states[other.number] = self.state(other) if other.reachable else None
            yield
        step = late_start(self.state(node), states)
        yield
        return step

    def check(self) -> None:
        """Open nodes agree, and have all documents unless a disk was lost."""
        opened = [node for node in self.nodes if node.open]
        for node in opened:
            assert node.documents == opened[0].documents
            if not self.is_lost:
                assert node.documents == {place for place, kind in enumerate(self.log, 1) if kind == SEARCH}


HAPPENINGS = ("append", "save", "trim", "switch", "kill", "start", "reach", "wipe")


def happen(cluster: Cluster, rng: Random, kind: str) -> None:
    node = rng.choice(cluster.nodes)
    match kind:
        case "append":
            cluster.append(rng.choice([SEARCH, QUADS]))
        case "save":
            node.save()
        case "trim":
            cluster.trim(node)
        case "switch":
            cluster.switch(node)
        case "kill":
            node.stop()
        case "start":
            cluster.go_on(node)
        case "reach":
            node.reachable = not node.reachable
        case "wipe":
            cluster.wipe(node)


@pytest.mark.parametrize("may_lose_disks", [False, True])
def test_nodes_that_open_their_indexes_have_the_same(may_lose_disks: bool) -> None:
    """Each walk has its own idea of what happens how often."""
    for seed in range(2000):
        rng, cluster = Random(seed), Cluster()
        for node in cluster.nodes:
            node.enabled = rng.random() < 0.5
        weights = {kind: rng.choice([0, 1, 4]) for kind in HAPPENINGS} | {"start": rng.choice([1, 6, 20])}
        weights["wipe"] = weights["wipe"] if may_lose_disks else 0
        for kind in rng.choices(list(weights), list(weights.values()), k=rng.randint(20, 200)):
            happen(cluster, rng, kind)
            cluster.check()
        for node in cluster.nodes:
            if not node.enabled:
                cluster.switch(node)
            node.reachable = True
        for _ in range(300):
            cluster.go_on(rng.choice(cluster.nodes))
            cluster.check()
        assert all(node.open for node in cluster.nodes), "a node waits for ever"


def test_whom_a_node_waits_for_is_said() -> None:
    own = SearchState(1, True, 5, 10, 5)
    off, on = SearchState(2, False, 4, 3, 4, is_off_with_changes=True), SearchState(3, True, 7, 6, 7)
    for others, reason in (
        ({2: off, 3: None}, "node 2 has what this node lacks, but search.enabled is false there"),
        ({2: off, 3: on}, "node 3 is to put on disk what this node lacks"),
        ({2: None, 3: None}, "node 2 or node 3 does not say whether it has what this node lacks"),
        ({3: SearchState(3, True, 0, 9, 0)}, "node 3 has to begin before this node"),
        ({3: SearchState(3, True, 0, 12, 0, is_starting=True)}, "node 3 has to begin before this node"),
    ):
        assert late_start(own, others) == Wait(reason)


def test_whose_indexes_are_taken() -> None:
    own, empty = SearchState(1, True, 5, 10, 5), SearchState(2, True, 0, 10, 0)
    assert late_start(own, {2: empty, 3: SearchState(3, True, 12, 8, 12)}) == Fetch(3)
    assert late_start(own, {2: empty, 3: SearchState(3, False, 6, 12, 20)}) == Fetch(3)
    assert late_start(own, {2: empty, 3: SearchState(3, False, 5, 12, 20)}) == PassOver()
    assert late_start(own, {2: None, 3: SearchState(3, False, 5, 2, 20)}) == PassOver(), "nothing was missed"
