"""Linearizable reads without entries: the read index (dissertation 6.4).

A leader notes its commit index, hears from a majority that it still leads, and answers; the reader waits
until that index is applied. The leader must have committed an entry of its own term before, or its commit
index may be older than another leader's.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from graphdb.raft.membership import Members, PeerId

__all__ = ["PendingRead", "ReadQueue"]


@dataclass(frozen=True, slots=True)
class PendingRead:
    """A read that waits for a majority to answer read_round or a later one."""

    ticket: int
    asked_by: PeerId
    read_index: int
    read_round: int


class ReadQueue:
    """The reads that wait at a leader. Those that come between two flushes share a round."""

    def __init__(self) -> None:
        self.read_round = 0
        self._begun = False  # read_round has reads, and has not gone out yet
        self._waiting: list[PendingRead] = []

    def add(self, ticket: int, asked_by: PeerId, read_index: int) -> None:
        """Take a read."""
        if not self._begun:
            self._begun = True
            self.read_round += 1
        self._waiting.append(PendingRead(ticket, asked_by, read_index, self.read_round))

    def take_news(self) -> bool:
        """Whether a round has begun since the last call: it must go out now."""
        begun, self._begun = self._begun, False
        return begun

    def take_confirmed(self, members: Members, answered: Iterable[tuple[PeerId, int]]) -> list[PendingRead]:
        """The reads whose round a majority has answered, by the latest round of each peer."""
        if not self._waiting:
            return []
        confirmed = members.reached_by_majority(answered)
        done = [read for read in self._waiting if read.read_round <= confirmed]
        self._waiting = self._waiting[len(done) :]
        return done

    def take_all(self) -> list[PendingRead]:
        """All that wait: the leader cannot answer them any more."""
        waiting, self._waiting = self._waiting, []
        return waiting
