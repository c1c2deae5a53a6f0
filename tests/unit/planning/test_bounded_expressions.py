"""What an event loop may evaluate: nothing in which the engine may compute with durations."""

import pytest

from graphdb.planning.bounded_expressions import are_bounded, may_compute_durations
from graphdb.sparql.parser import parse_query

LONG = '"P1M10000000000D"^^xsd:duration'

RUNNING_AWAY = [
    f'{LONG} < "P1M"^^xsd:duration',
    "?a < ?b",
    "?a >= -?b",
    "?a + ?b > 5",
    "1 IN (?a + ?b)",
    '?a - "2026-01-01T00:00:00Z"^^xsd:dateTime = 1',
    "NOW() + ?a = 1",
    "xsd:dateTime(?a) + ?b = 1",
    "xsd:duration(?a) = ?b",
    'STRDT(CONCAT("P1M", STR(?a)), xsd:duration) = ?b',
    f"IF(?a, {LONG}, 1) = ?b",
    "MAX(?a) < ?b",
]
BOUNDED = [
    "?a < 5",
    '"2026-01-01T00:00:00Z"^^xsd:dateTime <= ?a',
    "?a = ?b",
    "?a != ?b",
    "?a + 1 < ?b * 2 + 1",
    "?a * ?b > 5",
    "?a / ?b = 5",
    "STRLEN(?a) > ?b",
    "NOW() > ?a",
    "YEAR(?a) + ?b > 2000",
    "xsd:integer(?a) + ?b > ?c",
    "COUNT(?a) > ?b",
    "?a = ?b && ?a < 5",
]


def expression(text: str) -> object:
    [having] = parse_query(
        "PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> "
        f"SELECT ?b {{ ?a ?p ?b }} GROUP BY ?a ?b ?c HAVING ({text})"
    ).modifiers.having
    return having


@pytest.mark.parametrize("text", RUNNING_AWAY)
def test_durations_are_computed_where_the_engine_can_be_killed(text: str) -> None:
    assert may_compute_durations(expression(text))
    assert not are_bounded(expression(text))


@pytest.mark.parametrize("text", BOUNDED)
def test_what_has_no_durations_may_be_evaluated_at_once(text: str) -> None:
    assert not may_compute_durations(expression(text))


def test_values_may_hold_durations() -> None:
    query = parse_query(
        "PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> "
        f"SELECT * {{ VALUES ?a {{ {LONG} }} ?s ?p ?b FILTER(?a = ?b) }}"
    )
    assert may_compute_durations(query.where)
