"""What a visibility shows of a state of the past: what it showed then, less what it does not show now."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from pyoxigraph import Quad, Store

from actors.views.building import build_view, nested_terms, remove_quads
from graphdb.access.annotations import ALLOWED_SID, REIFIES, has_annotations
from graphdb.access.view_following import hidden_by_annotations, hidden_graphs
from graphdb.access.visibility import Visibility
from graphdb.model import ChangeSet
from graphdb.store.overlay import Overlay
from graphdb.store.quad_store import QuadStore

__all__ = ["build_visible_past", "hide_present"]


def build_visible_past(visibility: str, past: Path, present: Path, target: Path) -> None:
    """Make a store at target of a past state, by a visibility in JSON.

    past and present are the directories of copies of the two states; nobody else has that of the past open.
    Raises StorageFull, CorruptionError.
    """
    shows = Visibility.from_json(visibility)
    then, now = QuadStore(Store(past)), QuadStore(Store.read_only(str(present)))
    seen, _ = build_view(shows, then, target, (), union_default_graph=False)
    hide_present(shows, seen, now)
    seen.flush()


def hide_present(shows: Visibility, seen: QuadStore, now: QuadStore) -> None:
    """Take from what was seen of a past state what is hidden in the present one, or would be.

    The annotations of then are hidden themselves, so they let nobody in whom those of now keep out.
    """
    if not has_annotations(now):
        return
    # by what is annotated now, of what there was then; and what is hidden now for what else there is now
    annotated, nested = Overlay(seen), nested_terms(shows, seen, now)
    annotated.push(ChangeSet(added=tuple(dict.fromkeys(_annotating(shows, now, seen)))))
    hidden = [
        *hidden_by_annotations(shows, annotated, nested, seen),
        *hidden_by_annotations(shows, now, nested, seen),
    ]
    remove_quads(seen, iter(hidden))
    dropped = filter(seen.graph_exists, hidden_graphs(shows, now, seen))
    seen.apply(ChangeSet(dropped_graphs=tuple(dropped)))


def _annotating(shows: Visibility, now: QuadStore, seen: QuadStore) -> Iterator[Quad]:
    """The quads of the graphs which are shown that annotate, unless they are seen."""
    for allowing in now.quads_matching(None, ALLOWED_SID, None, None):
        if shows.sees_graph(allowing.graph_name):
            reifying = now.quads_matching(allowing.subject, REIFIES, None, allowing.graph_name)
            yield from (quad for quad in chain((allowing,), reifying) if not seen.contains(quad))
