"""How the index keeps up: what is noted, when it may be used and for which state, when it begins anew."""

from collections.abc import Iterable
from typing import Any

import pytest
from pyoxigraph import BlankNode, Literal, NamedNode, Quad

from graphdb.geo import geometry_column, spatial_index
from graphdb.geo.geometry_column import GeometryColumn
from graphdb.geo.lookups import Binding, Lookup, Meets
from graphdb.geo.narrowing import NotUsed, candidates
from graphdb.geo.spatial_index import SpatialIndex, Values
from graphdb.geometry.bounds import EVERYWHERE, Bounds
from graphdb.geometry.geosparql_names import GEO, WKT
from graphdb.model import ChangeSet
from graphdb.sparql.terms import RdfLiteral, Span

AS_WKT = NamedNode(GEO + "asWKT")


def point(x: float, y: float = 0) -> Literal:
    return Literal(f"POINT({x} {y})", datatype=NamedNode(WKT))


def quad(value: Any, predicate: NamedNode = AS_WKT) -> Quad:
    return Quad(NamedNode("urn:g"), predicate, value)


class Store:
    """What is there of each property; scan tells how often it was gone through."""

    def __init__(self, *values: Any) -> None:
        self.values: dict[NamedNode, list[Any]] = {AS_WKT: list(values)}
        self.scans = 0

    def scan(self, name: NamedNode) -> Iterable[Any]:
        self.scans += 1
        return list(self.values.get(name, ()))


def settle(index: SpatialIndex, at: int = 1) -> SpatialIndex:
    while index.has_work:
        index.begin()
        index.step()
        index.publish(at)
    return index


def held(values: Values | None) -> list[str]:
    """Everything that a query would count with."""
    assert values is not None
    column = values.column
    placed = [] if column is None else column.terms(column.meeting([EVERYWHERE], None).places.tolist())
    return sorted(term.value for term in (*placed, *values.waiting))  # type: ignore[union-attr]


def test_nothing_is_known_before_it_is_made() -> None:
    index = SpatialIndex(Store(point(1)).scan)
    assert index.has_work
    assert index.values(AS_WKT.value) is None
    settle(index)
    assert held(index.values(AS_WKT.value)) == ["POINT(1 0)"]
    assert not index.has_work


def test_no_values_take_no_column() -> None:
    values = settle(SpatialIndex(Store().scan)).values(AS_WKT.value)
    assert values == Values(None, ())


def test_changes_are_there_at_once_and_read_later() -> None:
    called: list[None] = []
    index = settle(SpatialIndex(Store().scan, on_work=lambda: called.append(None)))
    index.note(ChangeSet(added=(quad(point(1)), quad(point(2), NamedNode("urn:other")))))
    assert called == [None]
    before = index.values(AS_WKT.value)
    assert before is not None
    assert before.waiting == (point(1),)
    settle(index)
    after = index.values(AS_WKT.value)
    assert after is not None
    assert after.waiting == ()
    assert held(before) == held(after) == ["POINT(1 0)"]


def test_what_is_removed_stays() -> None:
    index = settle(SpatialIndex(Store(point(1)).scan))
    index.note(ChangeSet(removed=(quad(point(1)),)))
    assert held(settle(index).values(AS_WKT.value)) == ["POINT(1 0)"]


def test_a_stream_of_changes_is_noted_as_it_goes_by() -> None:
    index = settle(SpatialIndex(Store().scan))
    changes = iter([ChangeSet(added=(quad(point(number)),)) for number in range(2)])
    passing = iter(index.noted(changes))
    assert held(index.values(AS_WKT.value)) == []
    next(passing)
    assert held(index.values(AS_WKT.value)) == ["POINT(0 0)"]


def test_older_states_are_none_of_its_business() -> None:
    index = settle(SpatialIndex(Store(point(1)).scan), at=7)
    assert index.values(AS_WKT.value, at=6) is None
    assert held(index.values(AS_WKT.value, at=7)) == ["POINT(1 0)"]


def test_a_change_during_the_making_is_in_the_column() -> None:
    store = Store(*(point(number) for number in range(100)))
    index = SpatialIndex(store.scan)
    index.begin()
    index.note(ChangeSet(added=(quad(point(-1)),)))  # not yet in the store when it is gone through
    index.step()
    index.note(ChangeSet(added=(quad(point(-2)),)))
    assert index.values(AS_WKT.value) is None
    found = held(settle(index).values(AS_WKT.value))
    assert len(found) == 102
    assert {"POINT(-1 0)", "POINT(-2 0)"} < set(found)


def test_another_property_is_followed_once_it_is_asked_for() -> None:
    store, place = Store(), NamedNode("urn:place")
    store.values[place] = [point(5)]
    called: list[None] = []
    index = settle(SpatialIndex(store.scan, on_work=lambda: called.append(None)))
    assert index.values(place.value) is None
    assert called == [None]
    settle(index, at=3)
    index.note(ChangeSet(added=(quad(point(6), place),)))
    assert held(index.values(place.value, at=3)) == ["POINT(5 0)", "POINT(6 0)"]


def test_properties_are_bounded() -> None:
    index = SpatialIndex(Store().scan)
    for number in range(100):
        index.values(f"urn:{number}")
    settle(index)
    known = [number for number in range(100) if index.values(f"urn:{number}") is not None]
    assert len(known) == 16 - 3


def test_a_column_is_made_anew_when_too_much_of_it_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spatial_index, "_GONE_MIN", 2)
    store = Store(*(point(number) for number in range(5)))
    index = settle(SpatialIndex(store.scan), at=1)
    gone = store.values[AS_WKT][:3]
    store.values[AS_WKT] = store.values[AS_WKT][3:]
    index.note(ChangeSet(removed=tuple(quad(value) for value in gone)))
    assert len(held(index.values(AS_WKT.value, at=1))) == 5
    settle(index, at=9)
    assert held(index.values(AS_WKT.value, at=9)) == ["POINT(3 0)", "POINT(4 0)"]
    assert index.values(AS_WKT.value, at=8) is None


def test_more_than_can_wait_has_the_column_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spatial_index, "_WAITING_MAX", 3)
    store = Store()
    index = settle(SpatialIndex(store.scan))
    scans = store.scans
    store.values[AS_WKT] = [point(number) for number in range(10)]
    index.note(ChangeSet(added=tuple(map(quad, store.values[AS_WKT]))))
    assert index.values(AS_WKT.value) is None
    assert len(held(settle(index, at=2).values(AS_WKT.value))) == 10
    assert store.scans == scans + 1


def test_losing_track_while_a_column_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spatial_index, "_WAITING_MAX", 3)
    store = Store(*(point(number) for number in range(100)))
    index = SpatialIndex(store.scan)
    index.begin()
    index.step()
    index.note(ChangeSet(added=tuple(quad(point(-number)) for number in range(1, 10))))
    index.publish(1)
    assert index.values(AS_WKT.value) is None
    store.values[AS_WKT] += [point(-number) for number in range(1, 10)]
    assert len(held(settle(index).values(AS_WKT.value))) == 109


def test_a_column_finds_what_meets_a_box() -> None:
    column = GeometryColumn()
    column.add([point(x, y) for x in range(40) for y in range(40)])
    column.add([point(5.5, 5.5)])
    found = column.meeting([Bounds(5, 5, 6, 6), Bounds(5.5, 5.5, 7, 7)], None)
    values = {term.value for term in column.terms(found.places.tolist()) if isinstance(term, Literal)}
    near = {f"POINT({x} {y})" for x in (5, 6) for y in (5, 6)}
    assert values == near | {"POINT(5.5 5.5)", "POINT(6 7)", "POINT(7 6)", "POINT(7 7)"}
    assert len(found) == 8


def test_a_column_tells_what_has_no_place() -> None:
    malformed, empty = Literal("POINT(", datatype=NamedNode(WKT)), Literal("", datatype=NamedNode(WKT))
    column = GeometryColumn()
    column.add([malformed, empty, point(1), point(0, 95), NamedNode("urn:x"), BlankNode()])
    assert column.odd == [malformed, empty, point(0, 95), NamedNode("urn:x")]
    assert (column.count, column.nameless) == (6, 1)
    assert len(column.meeting([EVERYWHERE], None)) == 2


def test_a_property_of_other_things_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spatial_index, "_TRIED", 50)
    store, name = Store(), NamedNode("urn:name")
    store.values[name] = [Literal(f"name {number}") for number in range(1000)]
    index = settle(SpatialIndex(store.scan))
    index.values(name.value)
    scans = store.scans
    settle(index)
    index.note(ChangeSet(added=(quad(Literal("another"), name),)))
    assert index.values(name.value) is None
    assert not index.has_work
    assert store.scans == scans + 1


def test_a_very_long_geometry_may_be_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(geometry_column, "READING_MAX", 20)
    column = GeometryColumn()
    long = Literal("LINESTRING(0 0, 1 1, 2 2, 3 3)", datatype=NamedNode(WKT))
    column.add([long, point(1)])
    assert column.unlocated == [long]
    assert len(column.meeting([EVERYWHERE], None)) == 1


def test_a_column_is_made_anew_without_a_long_value_that_is_gone() -> None:
    long = Literal(f"LINESTRING({'1 1, ' * 1_000_000}1 1)", datatype=NamedNode(WKT))
    store = Store(point(1), long)
    index = settle(SpatialIndex(store.scan))
    store.values[AS_WKT] = [point(1)]
    index.note(ChangeSet(removed=(quad(long),)))
    settle(index)
    values = index.values(AS_WKT.value)
    assert values is not None
    assert values.column is not None
    assert (values.column.unlocated, store.scans) == ([], 4)


def test_what_is_too_long_is_not_written_into_a_query() -> None:
    """Else each query would be megabytes, as long as one such value is there."""
    long = Literal(f"LINESTRING({'1 1, ' * 600_000}1 1)", datatype=NamedNode(WKT))
    index = settle(SpatialIndex(Store(point(1), point(2), long).scan))
    area = RdfLiteral("POINT(1 0)", WKT, None, None, Span(0, 0))
    lookup = Lookup(Binding("w", frozenset((AS_WKT.value,)), 200), (Meets(area),))
    with pytest.raises(NotUsed, match="too long"):
        candidates(lookup, index)
    index = settle(SpatialIndex(Store(point(1), point(2)).scan))
    assert candidates(lookup, index) == [point(1)]
