"""What EXPLAIN has the engine do: counting within a time, then the query itself."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from pyoxigraph import Literal, NamedNode, Quad, Store

from graphdb.errors import EvaluationFailed
from graphdb.planning.sources import scans_of
from graphdb.sparql.parser import parse_query
from graphdb.store.explaining import COUNTING_S, explain


def ticks(*times: float) -> Any:
    """A clock that tells these times, one a look."""
    left: Iterator[float] = iter(times)
    return lambda: next(left)


def explained(text: str, clock: Any = lambda: 0.0) -> list[Any]:
    store = Store()
    store.extend(Quad(NamedNode("urn:a"), NamedNode(f"urn:p{n % 2}"), Literal(n)) for n in range(5))
    pieces: list[bytes] = []
    counts = [scan.count_query for scan in scans_of(parse_query(text))]
    explain(store.query, lambda: store.query(text), counts, pieces.append, clock)
    return [json.loads(piece) for piece in pieces]


JOIN = "SELECT * { ?a <urn:p0> ?b . ?a <urn:p1> ?c . ?a <urn:p2> ?d }"


@pytest.mark.parametrize(
    ("text", "quads", "rows"),
    [
        ("SELECT * { ?a <urn:p0> ?b . ?a <urn:p1> ?c }", [3, 2], 6),
        ("CONSTRUCT { ?a <urn:made> ?b , 1 } WHERE { ?a <urn:p0> ?b }", [3], 4),
        ("DESCRIBE <urn:a>", [], 5),
        ("ASK { ?s ?p 1 }", [1], None),
        ("SELECT (1 AS ?x) {}", [], 1),
    ],
)
def test_figures(text: str, quads: list[int], rows: int | None) -> None:
    assert explained(text) == [{"quads": quads}, {"rows": rows}]


@pytest.mark.parametrize(
    ("times", "quads"),
    [
        ((0, 0, 0.5, 0.99), [3, 2, 0]),
        ((0, 0, 0.5, COUNTING_S), [3, 2, None]),
        ((7, 7 + COUNTING_S, 9, 9), [None, None, None]),
    ],
)
def test_what_the_time_does_not_suffice_for_is_not_counted(
    times: tuple[float, ...], quads: list[int | None]
) -> None:
    assert explained(JOIN, ticks(*times)) == [{"quads": quads}, {"rows": 0}]


def test_the_scans_are_there_though_the_evaluation_fails() -> None:
    pieces: list[bytes] = []
    with pytest.raises(EvaluationFailed, match="expected"):
        explain(
            Store().query,
            lambda: Store().query("SELECT (a"),
            ["SELECT (7 AS ?n) {}"],
            pieces.append,
            lambda: 0.0,
        )
    assert pieces == [b'{"quads": [7]}']


def test_a_scan_that_the_engine_refuses_is_not_counted() -> None:
    pieces: list[bytes] = []
    counts = ["SELECT (7 AS ?n) {}", "SELECT ('7'@a-b-c AS ?n) {}"]
    explain(Store().query, lambda: Store().query("SELECT * {} LIMIT 0"), counts, pieces.append, lambda: 0.0)
    assert pieces == [b'{"quads": [7, null]}', b'{"rows": 0}']
