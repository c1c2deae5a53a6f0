"""What goes wrong in a run: one fault after the other, several at a time, drawn from the world's seed."""

from collections.abc import Callable

from graphdb.raft.raft_node import RaftNode
from tests.simulation.raft.peer import Peer
from tests.simulation.raft.world import Weather, World, fail_disk

__all__ = ["Storm"]


class Storm:
    """Faults for a `World`, as long as it is stormy. Each run favours some kinds."""

    def __init__(self, world: World, only: str | None = None) -> None:
        """only: the one kind of fault, by the name of its method, where a run shall have no other."""
        self._world = world
        self._random = world.random
        faults: list[Callable[[Peer], None]] = [
            self._weather,
            self._partition,
            self._isolate,
            self._one_way,
            self._crash,
            self._crash_all,
            self._pause,
            self._fail_disk,
            self._checkpoint,
            self._transfer,
            self._wipe,
            self._remove,
            self._add,
            self._kill_leader,
            self._race,
            self._split_and_shrink,
            self._see_saw,
            self._figure_eight,
        ]
        self._faults = [(fault, self._random.choice([0, 1, 1, 4])) for fault in faults]
        self._every_s = self._random.choice([0.2, 0.5, 1.2])
        if only is not None:
            self._faults, self._every_s = [(getattr(self, f"_{only}"), 1)], 2.0

    def begin(self) -> None:
        """Begin to make fault."""
        self._world.at(1.0, self._strike)

    def _strike(self) -> None:
        if not self._world.stormy:
            return
        kinds, weights = zip(*self._faults, strict=True)
        if any(weights):
            fault = self._random.choices(kinds, weights)[0]
            fault(self._random.choice([*self._world.peers.values()]))
        self._world.at(self._random.random() * 2 * self._every_s, self._strike)

    # the network

    def _weather(self, peer: Peer) -> None:
        random, blocked = self._random, self._world.weather.blocked
        self._world.weather = Weather(
            drop=random.choice([0, 0, 0.05, 0.3]),
            double=random.choice([0, 0, 0.2]),
            late=random.choice([0, 0.03, 0.3]),
            late_s=random.choice([0.05, 0.5, 4.0]),
            delay_s=random.choice([0.002, 0.01, 0.05]),
            blocked=blocked,
        )
        self._world.at(random.choice([0.5, 2.0, 5.0]), self._clear_up)

    def _block(self, pairs: set[tuple[int, int]], heal_s: float) -> None:
        self._world.weather.blocked |= pairs
        self._world.at(heal_s, lambda: self._world.weather.blocked.difference_update(pairs))

    def _partition(self, peer: Peer) -> None:
        nodes = [*self._world.peers]
        side = set(self._random.sample(nodes, self._random.randrange(1, len(nodes))))
        self._split(side, self._random.choice([0.2, 1.0, 3.0]))

    def _split(self, side: set[int], heal_s: float) -> None:
        """Cut these nodes off from the others."""
        nodes = [*self._world.peers]
        self._block({(a, b) for a in nodes for b in nodes if (a in side) != (b in side)}, heal_s)

    def _isolate(self, peer: Peer) -> None:
        target = self._leader() or peer
        self._split({target.node_id}, self._random.choice([0.2, 1.0, 3.0]))

    def _one_way(self, peer: Peer) -> None:
        others = [node_id for node_id in self._world.peers if node_id != peer.node_id]
        reverse = self._random.random() < 0.5
        pairs = {(other, peer.node_id) if reverse else (peer.node_id, other) for other in others}
        self._block(pairs, self._random.choice([0.2, 1.0, 3.0]))

    def _race(self, peer: Peer) -> None:
        """Elections in which everything takes as long as the time-outs, and arrives twice."""
        blocked = self._world.weather.blocked
        self._world.weather = Weather(double=0.7, late=0.4, late_s=0.3, delay_s=0.05, blocked=blocked)
        self._world.at(1.0, self._clear_up)
        self._isolate(peer)

    def _see_saw(self, peer: Peer) -> None:
        """Let a leader write much to one other only, be unseated, and lead again, while that other's answers
        are on their way and it hears nothing more.
        """
        leader = self._leader()
        if leader is None:
            return
        peer = self._random.choice([each for each in self._world.peers.values() if each is not leader])
        world, others = self._world, [node_id for node_id in self._world.peers if node_id != peer.node_id]
        world.weather = Weather(late=0.5, late_s=5.0, blocked=world.weather.blocked)
        self._split({leader.node_id, peer.node_id}, 1.3)
        world.at(0.05, lambda: world.burst(leader))
        world.at(0.3, self._clear_up)
        world.at(1.25, lambda: self._block({(other, peer.node_id) for other in others}, 3.0))
        for delay_s in (1.6, 1.9, 2.2, 2.5):
            world.at(delay_s, lambda: self._transfer(leader))
            world.at(delay_s + 0.2, lambda: world.burst(leader))

    def _clear_up(self) -> None:
        self._world.weather = Weather(blocked=self._world.weather.blocked)

    def _figure_eight(self, peer: Peer) -> None:
        """Raft paper, figure 8: entries of an old term reach a majority late, another peer has newer ones."""
        leader = self._leader()
        if leader is None:
            return
        world, term = self._world, leader.node.status().term if leader.node else 0
        self._split({leader.node_id, peer.node_id}, 0.9)
        world.at(0.05, lambda: world.burst(leader))
        world.at(0.05, lambda: self._silence_candidate(term, world.now + 0.8))
        world.at(1.2 + 0.6 * self._random.random(), lambda: self._crash(leader))

    def _silence_candidate(self, term: int, until: float) -> None:
        """Let the next winner be elected, but not be heard: its first entry stays its own."""
        world = self._world
        for peer in world.peers.values():
            status = peer.node.status() if peer.node else None
            if status is not None and status.role == "candidate" and status.term > term:
                self._block({(peer.node_id, other) for other in world.peers}, 1.2)
                return
        if world.now < until:
            world.at(0.002, lambda: self._silence_candidate(term, until))

    # the machines

    def _crash(self, peer: Peer) -> None:
        if peer.node is not None:
            self._world.stop(peer)
            self._world.at(self._random.choice([0.0, 0.3, 2.0]), lambda: self._world.start(peer))

    def _kill_leader(self, peer: Peer) -> None:
        self._crash(self._leader() or peer)

    def _crash_all(self, peer: Peer) -> None:
        for each in self._world.peers.values():
            self._crash(each)

    def _pause(self, peer: Peer) -> None:
        peer.paused_until = self._world.now + self._random.choice([0.1, 0.5, 2.0])

    def _fail_disk(self, peer: Peer) -> None:
        fail_disk(peer, self._random)

    def _wipe(self, peer: Peer) -> None:
        if self._world.may_wipe(peer):
            self._world.stop(peer)
            peer.wipe()
            self._world.at(self._random.choice([0.1, 1.0]), lambda: self._world.start(peer))

    # the operator

    def _leader(self) -> Peer | None:
        peers = [p for p in self._world.peers.values() if p.node and p.node.status().role == "leader"]
        return self._random.choice(peers) if peers else None

    def _ask_leader(self, operation: Callable[[RaftNode], None]) -> None:
        leader = self._leader()
        if leader is not None:
            self._world.ask(leader, operation)

    def _checkpoint(self, peer: Peer) -> None:
        for each in self._random.sample([*self._world.peers.values()], 2):
            keep = self._random.choice([0, 0, 300])
            self._world.ask(each, lambda node, each=each, keep=keep: each.checkpoint(keep))  # type: ignore[misc]

    def _transfer(self, peer: Peer) -> None:
        self._ask_leader(lambda node: node.transfer_leadership(peer.node_id))

    def _remove(self, peer: Peer) -> None:
        self._ask_leader(lambda node: self._remove_if_enough(node, peer.node_id))

    def _remove_if_enough(self, node: RaftNode, node_id: int) -> None:
        if sum(member.voting for member in node.status().members) > 3:
            node.remove_member(node_id)

    def _split_and_shrink(self, peer: Peer) -> None:
        """Cut a leader off with a minority, and ask it to remove the others at once."""
        leader = self._leader()
        if leader is None or leader.node is None:
            return
        members = [member.peer.node_id for member in leader.node.status().members if member.voting]
        others = [node_id for node_id in members if node_id != leader.node_id]
        self._random.shuffle(others)
        far = set(others[len(members) // 2 - 1 :])
        self._split(far, 1.0)
        for node_id in sorted(far):
            self._ask_leader_at(leader, node_id)

    def _ask_leader_at(self, leader: Peer, node_id: int) -> None:
        self._world.ask(leader, lambda node: self._remove_if_enough(node, node_id))

    def _add(self, peer: Peer) -> None:
        """Add a node that is no member; one that was, with a new disk."""
        leader = self._leader()
        if leader is None or leader.node is None:
            return
        if any(member.peer.node_id == peer.node_id for member in leader.node.status().members):
            return
        index, voters = self._world.newest_members()
        journals = [each.journal for each in self._world.peers.values() if each.journal is not None]
        settled = len(journals) == len(self._world.peers) and all(j.members_index <= index for j in journals)
        if peer.peer_id() in voters or not settled:
            return
        if peer.node is not None and peer.node.status().role != "newcomer":
            self._world.stop(peer)
            peer.wipe()
            self._world.at(0.1, lambda: self._world.start(peer))
        self._ask_leader(lambda node: node.add_member(peer.node_id, peer.founders[peer.node_id]))
