"""What a sight saw of past changes, in the states that they were made in."""

from collections.abc import Collection, Iterator, Sequence

from pyoxigraph import Quad

from graphdb.access.sight import Sight
from graphdb.access.visible_state import VisibleState
from graphdb.live.changes import LoggedChange
from graphdb.model import ChangeSet, GraphName
from graphdb.store.overlay import Overlay
from graphdb.store.view import Subject

__all__ = ["seen_changes"]


def seen_changes(
    sight: Sight,
    state: Overlay,
    changes: Sequence[LoggedChange],
    resources: Collection[tuple[Subject, GraphName]],
) -> Iterator[tuple[int, ChangeSet]]:
    """What each change has made of the statements of some resources in their graphs, as a sight saw them: by
    what was annotated then. With the log index of each; those that changed nothing to it are passed over.

    changes: all that have led to the state, from some state on. The state must not change meanwhile.
    """
    past = Overlay(state)
    for one in reversed(changes):
        past.push(one.change.inverse)
    seen = VisibleState(sight, past)
    graphs = {graph for _, graph in resources}

    def said() -> set[Quad]:
        return {
            quad for subject, graph in resources for quad in seen.quads_matching(subject, None, None, graph)
        }

    before, is_concerned = said(), False
    for one in changes:
        past.push(one.change)
        is_concerned |= any(
            quad.graph_name in graphs for quads in (one.change.removed, one.change.added) for quad in quads
        )
        if not (one.is_last and is_concerned):
            continue
        after, is_concerned = said(), False
        if after != before:
            yield one.index, ChangeSet(tuple(before - after), tuple(after - before))
        before = after
