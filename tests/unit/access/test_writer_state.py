"""What a writer who does not see everything may do to protected triples and to what is said about them."""

from itertools import count

import pytest
from pyoxigraph import BlankNode

from graphdb.access.visibility import Visibility
from graphdb.access.writer_state import VisibleState, planned_by
from graphdb.errors import Forbidden
from graphdb.model import ChangeSet
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import parse_update
from graphdb.store.overlay import Overlay
from graphdb.store.quad_store import QuadStore
from graphdb.updates.planner import UpdateContext, plan_update
from tests.property.twin import store_of, twin_of
from tests.unit.access.test_annotations import everywhere, shown, state

PREFIXES = """PREFIX : <urn:x:> PREFIX acl: <urn:graphdb:acl#>
PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#>
"""
PROTECTED = """
:a :pay 1 ~ :note {| acl:allowedSid "S-1" ; :source :ledger |} ~ :review {| :by :eve |} .
:said :that <<( :review :year 2020 )>> .
:ada :name "Ada" .
"""


def written(visibility: Visibility, text: str, store: QuadStore) -> ChangeSet:
    numbers = count()

    def fresh() -> BlankNode:
        return BlankNode(f"fresh{next(numbers)}")

    planned = planned_by(
        visibility, Overlay(store), fresh, lambda s: store_of(twin_of(VisibleState(visibility, s)))
    )
    update = parse_update(PREFIXES + text)
    real = planned.real_change(plan_update(update, planned.state, Dataset(), UpdateContext(fresh)))
    store.apply(real)
    return real


def statements(visibility: Visibility, store: QuadStore) -> set[str]:
    return shown(VisibleState(visibility, store).dataset_quads())


@pytest.mark.parametrize("visibility", [everywhere(), everywhere("S-1")])
@pytest.mark.parametrize("resource", [":source", ":by"])
def test_what_is_not_seen_is_not_deleted(visibility: Visibility, resource: str) -> None:
    store = state(PROTECTED)
    before = set(store.dataset_quads())
    real = written(visibility, f"DELETE WHERE {{ ?r {resource} ?o }}", store)
    sees_it = resource == ":by" and visibility.sids
    assert len(real.removed) == (1 if sees_it else 0)
    assert set(store.dataset_quads()) == before - set(real.removed)


@pytest.mark.parametrize("visibility", [everywhere(), everywhere("S-1")])
@pytest.mark.parametrize(
    "statement",
    [
        ":note :more :said",  # of what annotates
        ":note rdf:reifies <<( :ada :name 'Ada' )>>",
        ":ada rdf:reifies <<( :a :pay 1 )>>",  # would take what is said of :ada out of visibility
        ":review :year 2020",  # would take what was said of it out of visibility
    ],
)
def test_nothing_is_taken_away_from_others(visibility: Visibility, statement: str) -> None:
    store = state(PROTECTED)
    before = set(store.dataset_quads())
    with pytest.raises(Forbidden):
        written(visibility, f"INSERT DATA {{ {statement} }}", store)
    assert set(store.dataset_quads()) == before


def test_who_sees_a_protected_triple_may_speak_of_it_to_those_who_do() -> None:
    store = state(PROTECTED)
    outside = statements(everywhere(), store)
    written(everywhere("S-1"), "INSERT DATA { :a :pay 1 {| :sure 0.5 {| :since 2021 |} |} }", store)
    written(
        everywhere("S-1"), "INSERT DATA { :review :month 5 . :said :that <<( :review :by :eve )>> }", store
    )
    assert statements(everywhere(), store) == outside
    inside = "".join(statements(everywhere("S-1"), store))
    assert all(f"<urn:x:{name}>" in inside for name in ("sure", "since", "month", "by"))
