"""The spatial index changes no answer: random geometries, changes and queries, with it and without it."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad, QuerySolutions, Store

from graphdb.geo.spatial_index import SpatialIndex
from graphdb.geometry.geosparql_names import GEO, GML, WKT
from graphdb.model import ChangeSet
from graphdb.planning.engine_text import engine_text
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import parse_query
from graphdb.store.engine_query import first_full
from graphdb.store.quad_store import QuadStore

PREFIXES = """
PREFIX : <urn:> PREFIX geo: <http://www.opengis.net/ont/geosparql#>
PREFIX geof: <http://www.opengis.net/def/function/geosparql/>
PREFIX uom: <http://www.opengis.net/def/uom/OGC/1.0/>
"""
CRS = "<http://www.opengis.net/def/crs/EPSG/0/{}> "
OTHER_SYSTEMS = {"4326": 1.0, "3857": 111_000.0, "32631": 111_000.0}

numbers = st.integers(-3, 3)
far = numbers | st.sampled_from([-180, -179, 179, 180, 85, -89, 60])
corners = st.tuples(far, numbers | st.sampled_from([84, -89, 60]))
near_corners = st.tuples(numbers, numbers)


def point(at: tuple[int, int]) -> str:
    return f"POINT({at[0]} {at[1]})"


def box(at: tuple[int, int], size: int) -> str:
    west, south = at
    east, north = west + size, min(90, south + size)
    return f"POLYGON(({west} {south}, {east} {south}, {east} {north}, {west} {north}, {west} {south}))"


def line(one: tuple[int, int], other: tuple[int, int]) -> str:
    return f"LINESTRING({one[0]} {one[1]}, {other[0]} {other[1]})"


def elsewhere(system: str, at: tuple[int, int]) -> str:
    """A place in another system; degrees north first, or metres."""
    x, y = (value * OTHER_SYSTEMS[system] for value in at)
    if system == "32631":
        x += 500_000
    return CRS.format(system) + (f"POINT({y} {x})" if system == "4326" else f"POINT({x} {y})")


shapes = (
    corners.map(point)
    | corners.map(point)
    | st.builds(box, corners, st.integers(1, 4))
    | st.builds(line, near_corners, corners)
    | st.builds(elsewhere, st.sampled_from(sorted(OTHER_SYSTEMS)), near_corners)
)
constants = shapes | st.builds(box, near_corners, st.integers(1, 6)) | st.just("POINT EMPTY")
odd_values = st.sampled_from(
    [
        Literal("POINT(1", datatype=NamedNode(WKT)),
        Literal("", datatype=NamedNode(WKT)),
        Literal("POINT(0 99)", datatype=NamedNode(WKT)),
        Literal("POINT(1 1)"),
        Literal("POINT(1 1)", language="en"),
        Literal(
            "<gml:Point xmlns:gml='http://www.opengis.net/ont/gml'><gml:pos>1 1</gml:pos></gml:Point>",
            datatype=NamedNode(GML),
        ),
        NamedNode("urn:no-literal"),
        BlankNode("b"),
    ]
)
values = shapes.map(lambda text: Literal(text, datatype=NamedNode(WKT)))
properties = st.sampled_from([GEO + "asWKT", GEO + "asWKT", GEO + "asWKT", GEO + "asGML", "urn:place"])
graphs = st.sampled_from([DefaultGraph(), DefaultGraph(), NamedNode("urn:g")])


def quads_of(number: int, property_: str, value: Any, graph: Any) -> list[Quad]:
    """A feature with a geometry that has one value; one in three says what kind it is."""
    feature, geometry = NamedNode(f"urn:f{number}"), NamedNode(f"urn:g{number}")
    has = "hasDefaultGeometry" if number % 2 else "hasGeometry"
    quads = [
        Quad(feature, NamedNode(GEO + has), geometry, graph),
        Quad(geometry, NamedNode(property_), value, graph),
    ]
    if number % 3 == 0:
        quads.append(Quad(feature, NamedNode("urn:is"), NamedNode("urn:Kind"), graph))
    return quads


entries = st.builds(quads_of, st.integers(0, 11), properties, values | values | values | odd_values, graphs)
relations = st.sampled_from(
    ["sfIntersects", "sfWithin", "sfContains", "sfEquals", "sfTouches", "sfDisjoint", "ehMeet", "rcc8ntpp"]
)
limits = st.sampled_from(["0", "1", "150000", "500000.5", "2e6", "-1"])


def literal(text: str) -> str:
    return f'"{text}"^^geo:wktLiteral'


def related(relation: str, constant: str, is_first: bool) -> str:
    arguments = ["?w", literal(constant)] if is_first else [literal(constant), "?w"]
    return f"geof:{relation}({', '.join(arguments)})"


def computed(relation: str, call: str, constant: str) -> str:
    return f"geof:{relation}(?w, {call.format(literal(constant))})"


def distant(constant: str, limit: str, unit: str) -> str:
    return f"geof:distance(?w, {literal(constant)}, uom:{unit}) < {limit}"


calls = st.sampled_from(
    [
        "geof:buffer({}, 120, uom:kilometre)",
        "geof:buffer({}, 1.5, uom:degree)",
        "geof:buffer({}, -1, uom:kilometre)",
        "geof:convexHull(geof:union({0}, geof:envelope({0})))",
        "geof:boundary({})",
    ]
)
conditions = (
    st.builds(related, relations, constants, st.booleans())
    | st.builds(computed, relations, calls, constants)
    | st.builds(distant, constants, limits, st.just("metre"))
    | st.builds(distant, constants, st.sampled_from(["0.5", "2"]), st.just("degree"))
    | st.builds("geof:relate(?w, {}, {!r})".format, constants.map(literal), st.sampled_from(["T*F**F***"]))
)
bindings = st.sampled_from(
    [
        "?g geo:asWKT ?w",
        "?g :place ?w",
        "?f geo:hasGeometry/geo:asWKT ?w",
        "?f geo:hasDefaultGeometry ?g . ?g geo:asWKT|geo:asGML ?w",
        "?f :is :Kind ; geo:hasGeometry ?g . ?g geo:asWKT ?w",
        "GRAPH :g { ?g geo:asWKT ?w }",
        "GRAPH ?graph { ?g geo:asWKT ?w OPTIONAL { ?f geo:hasGeometry ?g } }",
        "{ ?g geo:asWKT ?w } ?f ?has ?g",
        "?g geo:asWKT ?v OPTIONAL { ?f geo:hasGeometry ?g } ?g geo:asWKT ?w",
    ]
)
groups = st.sampled_from(
    [
        "SELECT * {{ {binding} FILTER({condition}) }}",
        "SELECT * {{ {binding} FILTER({condition} && ISLITERAL(?w)) }}",
        "SELECT * {{ {binding} BIND({condition} AS ?holds) FILTER(?holds) }}",
        "SELECT * {{ {binding} FILTER({condition} || ?g = :g1) }}",
        "SELECT * {{ {binding} FILTER(!({condition})) }}",
        "SELECT * {{ ?x :is ?kind OPTIONAL {{ {binding} FILTER({condition}) }} }}",
        "SELECT * {{ {{ {binding} FILTER({condition}) }} UNION {{ ?x :is ?kind }} }}",
        "SELECT * {{ {binding} FILTER({condition}) OPTIONAL {{ ?x :is ?k }} MINUS {{ ?g geo:asGML ?gml }} }}",
        "SELECT (COUNT(*) AS ?n) {{ ?x :is ?kind FILTER EXISTS {{ {binding} FILTER({condition}) }} }}",
        "SELECT ?n {{ {{ SELECT (COUNT(*) AS ?n) {{ {binding} FILTER({condition}) }} }} }}",
    ]
)


def filtered(group: str, binding: str, condition: str) -> str:
    return group.format(binding=binding, condition=condition)


def topological(pattern: str, relation: str, number: int) -> str:
    return "SELECT * {" + pattern.replace("REL", f"geo:{relation}").replace("THIS", f":f{number}") + "}"


patterns = st.sampled_from(
    [
        "?x REL THIS",
        "THIS REL ?x",
        "?x :is :Kind ; REL THIS",
        "GRAPH ?graph { ?x REL THIS }",
        "?x :is :Kind . FILTER EXISTS { ?x REL THIS }",
        "?x :is ?kind OPTIONAL { THIS REL ?x }",
    ]
)


def nearest(binding: str, constant: str, count: int, offset: int, select: str) -> str:
    call = f"geof:distance(?w, {literal(constant)}, uom:metre)"
    text = f"SELECT {select.format(call)} {{ {binding} }} ORDER BY {'?d' if '?d' in select else call}"
    return f"{text} LIMIT {count} OFFSET {offset}"


filters = st.builds(filtered, groups, bindings, conditions)
topologies = st.builds(topological, patterns, relations, st.integers(0, 11))
firsts = st.builds(
    nearest,
    bindings,
    constants,
    st.integers(1, 3),
    st.sampled_from([0, 0, 1]),
    st.sampled_from(["(({}) AS ?d)", "DISTINCT ?w (({}) AS ?d)"]),
)
steps = st.lists(
    st.tuples(st.just("add"), entries)
    | st.tuples(st.just("add"), entries)
    | st.tuples(st.just("remove"), entries | st.integers(0, 30))
    | st.tuples(st.just("work"), st.integers(1, 3))
    | st.tuples(st.just("ask"), filters | filters | topologies | firsts),
    max_size=25,
)


class World:
    """A store with an index that is kept up as the test says."""

    def __init__(self) -> None:
        self.quads = QuadStore(Store())
        self.index = SpatialIndex(self.quads.objects_of)
        self.quads.spatial_index = self.index
        self.added: list[Quad] = []

    def add(self, quads: list[Quad]) -> None:
        new = [quad for quad in quads if not self.quads.contains(quad)]
        self.quads.apply(ChangeSet(added=tuple(new)))
        self.added += new

    def remove(self, which: list[Quad] | int) -> None:
        if isinstance(which, int):
            which = self.added[which : which + 1]
        self.quads.apply(ChangeSet(removed=tuple(quad for quad in which if self.quads.contains(quad))))

    def work(self, times: int) -> None:
        for _ in range(times):
            self.index.begin()
            self.index.step()
            self.index.publish(1)

    def answers(self, text: str) -> tuple[Any, Any]:
        """With the index, and without it."""
        return self._answer(text), self._without(text)

    def _answer(self, text: str) -> list[dict[str, Any]]:
        query = parse_query(PREFIXES + text)
        asked = self.quads.narrowed(engine_text(query))

        def ask(engine: str) -> Any:
            return self.quads.query_text(engine, Dataset(), calls_geometry=True)

        solutions = first_full(ask, asked.attempts, asked.rows, asked.text)
        assert isinstance(solutions, QuerySolutions)
        names = [variable.value for variable in solutions.variables]
        return [{name: row[name] for name in names} for row in solutions]

    def _without(self, text: str) -> list[dict[str, Any]]:
        with self._unindexed():
            return self._answer(text)

    @contextmanager
    def _unindexed(self) -> Iterator[None]:
        self.quads.spatial_index = None
        try:
            yield
        finally:
            self.quads.spatial_index = self.index


def check(world: World, text: str) -> None:
    with_index, without = world.answers(text)
    if " LIMIT " in text:  # rows that are equally far may be chosen otherwise
        assert [row["d"] for row in with_index] == [row["d"] for row in without], text
    else:
        assert counted(with_index) == counted(without), text


def counted(rows: list[dict[str, Any]]) -> Counter[tuple[str, ...]]:
    return Counter(tuple(f"{name}={row[name]}" for name in sorted(row)) for row in rows)


@given(steps=steps)
@settings(max_examples=60, deadline=None)
def test_answers_are_the_same(steps: list[tuple[str, Any]]) -> None:
    world = World()
    for action, argument in steps:
        if action == "ask":
            check(world, argument)
        else:
            getattr(world, action)(argument)


@given(
    first=st.lists(entries, min_size=20, max_size=40),
    second=st.lists(entries, max_size=10),
    asked=st.lists(filters | filters | topologies | firsts, min_size=5, max_size=10),
)
@settings(max_examples=40, deadline=None)
def test_answers_are_the_same_over_a_column_that_is_complete(
    first: list[list[Quad]], second: list[list[Quad]], asked: list[str]
) -> None:
    world = World()
    for quads in first:
        world.add(quads)
    world.answers("SELECT * { ?g :place ?w FILTER(geof:sfWithin(?w, 'POINT(0 0)'^^geo:wktLiteral)) }")
    world.work(20)
    for quads in second:
        world.add(quads)
    assert not world.index.has_work or second
    for text in asked:
        check(world, text)


@given(
    stored=st.lists(st.tuples(values | values | values | odd_values, graphs), min_size=25, max_size=60),
    asked=st.lists(firsts, min_size=3, max_size=6),
)
@settings(max_examples=30, deadline=None)
def test_the_nearest_are_the_same(stored: list[tuple[Any, Any]], asked: list[str]) -> None:
    world = World()
    for number, (value, graph) in enumerate(stored):
        if not isinstance(value, BlankNode):  # one would do for the index to be of no use
            world.add(quads_of(number, GEO + "asWKT", value, graph))
    world.work(20)
    for text in asked:
        check(world, text)
