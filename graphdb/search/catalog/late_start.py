"""What a node of a cluster does whose log begins after its search indexes: search was off there, or the
indexes are lost.

All nodes must come to the same indexes. So no node passes over entries while another node may still know what
they did; and where none does, one node goes first, with the newest state of any disk, and the others follow
it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

__all__ = ["Fetch", "LateStart", "PassOver", "SearchState", "Wait", "late_start"]


@dataclass(frozen=True, slots=True)
class SearchState:
    """A node's search indexes.

    enabled: whether it follows the log with them. saved_index: as of which entry they are on disk; 0: there
    are none. first_index: of the first entry that its log has. known_index: up to there, on disk or in its
    log, nothing has changed them since saved_index. is_off_with_changes: something has, but search is off.
    is_starting: it is about to pass over entries.
    """

    node_id: int
    enabled: bool
    saved_index: int
    first_index: int
    known_index: int
    is_off_with_changes: bool = False
    is_starting: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether its log goes on where the indexes end: it has, or can make, the newest ones."""
        return self.first_index <= self.saved_index + 1


@dataclass(frozen=True, slots=True)
class Fetch:
    """Take the indexes of that node in place of one's own."""

    node_id: int


@dataclass(frozen=True, slots=True)
class PassOver:
    """Go on with one's own, and with the first entry that the log has. To be decided twice, the second time
    while all others can see that this node is starting: then no other one can have decided so too.
    """


@dataclass(frozen=True, slots=True)
class Wait:
    """Ask again later. reason: a sentence without its end, for the waiting client."""

    reason: str


LateStart: TypeAlias = Fetch | PassOver | Wait


def late_start(own: SearchState, others: Mapping[int, SearchState | None]) -> LateStart:
    """others: by node id, all other members of the cluster; None: it does not answer."""
    known = [state for state in others.values() if state is not None]
    whole = [state for state in known if state.is_whole]
    enough = [state for state in whole if state.known_index >= own.first_index - 1]
    if enough:
        return _with(own, max(enough, key=lambda state: state.known_index))
    if following := [state for state in whole if state.enabled]:
        return Wait(f"{_nodes(following)} is to put on disk what this node lacks")
    if off := [state for state in known if state.is_off_with_changes]:
        return Wait(f"{_nodes(off)} has what this node lacks, but search.enabled is false there")
    if silent := sorted(node_id for node_id, state in others.items() if state is None):
        return Wait(f"{_listed(silent)} does not say whether it has what this node lacks")
    return _without_help(own, known)


def _without_help(own: SearchState, known: list[SearchState]) -> LateStart:
    """No node has the whole history. The one whose log goes back furthest begins."""
    rivals = [state for state in known if state.enabled and not state.is_whole]
    starting = [state for state in rivals if state.is_starting]
    before = [
        state for state in rivals if (state.first_index, state.node_id) < (own.first_index, own.node_id)
    ]
    if starting or before:
        return Wait(f"{_nodes(starting or before)} has to begin before this node")
    return _with(own, max([own, *known], key=lambda state: state.saved_index))


def _with(own: SearchState, other: SearchState) -> LateStart:
    """Own indexes, where those of the other node are no newer."""
    return Fetch(other.node_id) if other.saved_index > own.saved_index else PassOver()


def _nodes(states: list[SearchState]) -> str:
    return _listed(sorted(state.node_id for state in states))


def _listed(node_ids: list[int]) -> str:
    return " or ".join(f"node {node_id}" for node_id in node_ids)
