"""Which filters can be looked up, and where in the engine's text what is found is put."""

import pytest

from graphdb.geo.lookups import NEAR, NEAREST, EngineText, Meets, MeetsResource, Within
from graphdb.planning.engine_text import engine_text
from graphdb.sparql.parser import parse_query

PREFIXES = (
    "PREFIX : <urn:> PREFIX geo: <http://www.opengis.net/ont/geosparql#>"
    " PREFIX geof: <http://www.opengis.net/def/function/geosparql/>"
    " PREFIX uom: <http://www.opengis.net/def/uom/OGC/1.0/> "
)
GEO = "http://www.opengis.net/ont/geosparql#"
PLACE = '"POINT(1 1)"^^geo:wktLiteral'
NEAR_PLACE = f"geof:distance(?w, {PLACE}, uom:metre)"


def made(text: str) -> EngineText:
    return engine_text(parse_query(PREFIXES + text))


def with_found(text: str) -> str:
    """The engine's text, "FOUND" wherever something may be put."""
    there = made(text)
    slots = [str(number) for number in range(len(there.lookups))]
    return there.filled(dict.fromkeys([*slots, NEAREST, NEAR], "FOUND"))


@pytest.mark.parametrize(
    "condition",
    [
        f"geof:sfWithin(?w, {PLACE})",
        f"geof:sfContains({PLACE}, ?w)",
        f"geof:rcc8ec(?w, {PLACE}) && ?g != :x",
        f"geof:ehMeet(?w, {PLACE}) = true",
        f"geof:sfWithin(?w, geof:buffer({PLACE}, 10, uom:metre))",
        f'geof:relate(?w, {PLACE}, "T*F**F***")',
        f"{NEAR_PLACE} < 10",
        f"10.5 >= {NEAR_PLACE}",
        f"geof:metricDistance({PLACE}, ?w) <= 1e3",
    ],
)
def test_conditions_that_can_be_looked_up(condition: str) -> None:
    assert with_found(f"SELECT ?g {{ ?g geo:asWKT ?w FILTER({condition}) }}").count("FOUND") == 1


@pytest.mark.parametrize(
    "condition",
    [
        f"geof:sfDisjoint(?w, {PLACE})",
        f"!geof:sfWithin(?w, {PLACE})",
        f"geof:sfWithin(?w, {PLACE}) || ?g = :x",
        f"{NEAR_PLACE} > 10",
        f"10 < {NEAR_PLACE}",
        "geof:sfWithin(?w, ?v)",
        f"geof:sfWithin(?v, {PLACE})",
        f'geof:relate(?w, {PLACE}, "FF*FF****")',
        f"geof:sfWithin(?w, {PLACE}) = false",
        f"IF(geof:sfWithin(?w, {PLACE}), true, false)",
    ],
)
def test_conditions_that_cannot(condition: str) -> None:
    assert made(f"SELECT ?g {{ ?g geo:asWKT ?w FILTER({condition}) }}").lookups == ()


FILTER = f"FILTER(geof:sfWithin(?w, {PLACE}))"
FOUND = "?found <urn:found> ?found ."


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (f"?g geo:asWKT ?w {FILTER}", f"{FOUND} ?g geo:asWKT ?w {FILTER}"),
        (f"{FILTER} ?g a :T ; :p|:q ?w", f"{FILTER} {FOUND} ?g a :T ; :p|:q ?w"),
        (f"?f geo:hasGeometry/geo:asWKT ?w {FILTER}", f"{FOUND} ?f geo:hasGeometry/geo:asWKT ?w {FILTER}"),
        (f"GRAPH :h {{ ?g geo:asWKT ?w }} {FILTER}", f"GRAPH :h {{ {FOUND} ?g geo:asWKT ?w }} {FILTER}"),
        (f"{{ ?g geo:asWKT ?w }} ?g a :T {FILTER}", f"{{ {FOUND} ?g geo:asWKT ?w }} ?g a :T {FILTER}"),
        (
            f"?x a :T OPTIONAL {{ ?g geo:asWKT ?w {FILTER} }}",
            f"?x a :T OPTIONAL {{ {FOUND} ?g geo:asWKT ?w {FILTER} }}",
        ),
        (f"OPTIONAL {{ ?x ?y ?w }} ?g :p ?w {FILTER}", f"OPTIONAL {{ ?x ?y ?w }} {FOUND} ?g :p ?w {FILTER}"),
    ],
)
def test_where_values_are_put(pattern: str, expected: str) -> None:
    filled = made(f"SELECT ?g {{ {pattern} }}").filled({"0": FOUND})
    assert filled.split() == made(f"SELECT ?g {{ {expected} }}").text.split()


@pytest.mark.parametrize(
    "pattern",
    [
        f"OPTIONAL {{ ?g geo:asWKT ?w }} {FILTER}",
        f"{{ ?g geo:asWKT ?w }} UNION {{ ?g :p ?w }} {FILTER}",
        f"{{ SELECT ?w {{ ?g geo:asWKT ?w }} LIMIT 5 }} {FILTER}",
        f"?g ?p ?w {FILTER}",
        f"?w :p ?g {FILTER}",
        f"?g ^:p ?w {FILTER}",
        f"?g :p* ?w {FILTER}",
        f"?g geo:asWKT ?w OPTIONAL {{ ?g :q ?x {FILTER} }}",
        f"?g :p <<( :a :b ?w )>> {FILTER}",
    ],
)
def test_where_they_must_not_be(pattern: str) -> None:
    assert made(f"SELECT ?g {{ {pattern} }}").lookups == ()


def test_what_bind_and_values_name() -> None:
    text = (
        f"SELECT ?g {{ VALUES ?here {{ {PLACE} }} BIND(uom:metre AS ?unit) ?g geo:asWKT ?w"
        " BIND(geof:distance(?w, ?here, ?unit) AS ?d) FILTER(?d < 100) }"
    )
    [lookup] = made(text).lookups
    [condition] = lookup.conditions
    assert isinstance(condition, Within)
    assert lookup.binding.properties == {GEO + "asWKT"}


def test_a_name_that_something_else_binds_too_is_none() -> None:
    text = f"SELECT ?g {{ ?g geo:asWKT ?w BIND({NEAR_PLACE} AS ?d) ?g :d ?d FILTER(?d < 100) }}"
    assert made(text).lookups == ()


def test_names_in_a_circle_are_followed_no_further() -> None:
    text = "SELECT ?g { ?g geo:asWKT ?w BIND(?b AS ?a) BIND(?a AS ?b) FILTER(geof:sfWithin(?w, ?a)) }"
    assert made(text).lookups == ()


def test_conditions_of_one_variable_go_together() -> None:
    [lookup] = made(f"SELECT ?g {{ ?g geo:asWKT ?w {FILTER} FILTER({NEAR_PLACE} < 5) }}").lookups
    assert [type(condition) for condition in lookup.conditions] == [Meets, Within]


ORDERED = f"SELECT ?g {{ ?g geo:asWKT ?w }} ORDER BY {NEAR_PLACE}"


@pytest.mark.parametrize(
    "text",
    [
        f"{ORDERED} LIMIT 3",
        f"SELECT ?g {{ ?g geo:asWKT ?w }} ORDER BY ASC({NEAR_PLACE}) ?g LIMIT 3 OFFSET 2",
        f"SELECT ?g {{ ?g geo:asWKT ?w BIND({NEAR_PLACE} AS ?d) }} ORDER BY ?d LIMIT 3",
        f"SELECT ?g ({NEAR_PLACE} AS ?d) {{ ?g geo:asWKT ?w }} ORDER BY ?d LIMIT 3",
        f"SELECT DISTINCT ?g {{ ?g geo:asWKT ?w }} ORDER BY {NEAR_PLACE} LIMIT 3",
        f"{ORDERED} LIMIT 3 VALUES ?g {{ :a }}",
    ],
)
def test_the_nearest(text: str) -> None:
    there = made(text)
    assert there.nearest is not None
    assert (there.nearest.limit, there.nearest.offset) == (3, 2 if "OFFSET" in text else 0)
    assert with_found(text).count("FOUND") == 2
    assert there.call.startswith("<http://www.opengis.net/def/function/geosparql/distance>(?w, ")


@pytest.mark.parametrize(
    "text",
    [
        ORDERED,
        ORDERED.replace("BY ", "BY DESC(") + ") LIMIT 3",
        ORDERED.replace("BY ", "BY ?g ") + " LIMIT 3",
        f"SELECT (COUNT(*) AS ?n) {{ ?g geo:asWKT ?w }} ORDER BY {NEAR_PLACE} LIMIT 3",
        f"SELECT ?w {{ ?g geo:asWKT ?w }} GROUP BY ?w ORDER BY {NEAR_PLACE} LIMIT 3",
        f"SELECT ?g {{ OPTIONAL {{ ?g geo:asWKT ?w }} }} ORDER BY {NEAR_PLACE} LIMIT 3",
    ],
)
def test_what_is_not_the_nearest(text: str) -> None:
    assert made(text).nearest is None


def test_a_topology_property_with_one_end_given() -> None:
    there = made("SELECT ?x { ?x geo:sfWithin :area }")
    [lookup] = there.lookups
    assert lookup.conditions == (MeetsResource("urn:area"),)
    assert there.filled({}).count("VALUES") == 0
    assert there.filled({"0": "VALUES ?geo0a { 1 }"}).count("VALUES") == 4
    assert made("SELECT ?x { ?x geo:sfDisjoint :area }").lookups == ()
    assert made("SELECT * { ?x geo:sfWithin ?y }").lookups == ()


def test_a_text_without_geometries_has_no_slots() -> None:
    text = "SELECT ?g { ?g ?p ?w FILTER(?w < 1) } ORDER BY ?w LIMIT 3"
    made = engine_text(parse_query(text))
    assert made == EngineText((made.text,))
