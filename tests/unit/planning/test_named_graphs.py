"""The graphs that a text names."""

import pytest

from graphdb.config.service import Security
from graphdb.planning.gate import read_query, read_update
from graphdb.planning.sources import named_graphs

LIMITS = Security()


@pytest.mark.parametrize(
    ("text", "graphs"),
    [
        ("ASK {}", []),
        ("SELECT * FROM <urn:a> FROM NAMED <urn:b> {}", ["urn:a", "urn:b"]),
        ("ASK { GRAPH <urn:a> { ?s <urn:p> <urn:o> } GRAPH ?g {} GRAPH <urn:a> {} }", ["urn:a"]),
        (
            "PREFIX : <urn:x:> SELECT * { { SELECT * { OPTIONAL { GRAPH :a {} } } } UNION { GRAPH :b {} } }",
            ["urn:x:a", "urn:x:b"],
        ),
        ("ASK { FILTER NOT EXISTS { GRAPH <urn:a> {} } }", ["urn:a"]),
        ("DESCRIBE <urn:a>", []),
    ],
)
def test_of_queries(text: str, graphs: list[str]) -> None:
    assert named_graphs(read_query(text, None, LIMITS)) == graphs


@pytest.mark.parametrize(
    ("text", "graphs"),
    [
        ("INSERT DATA { <urn:s> <urn:p> <urn:o> GRAPH <urn:a> { <urn:s> <urn:p> 1 } }", ["urn:a"]),
        (
            "WITH <urn:a> DELETE { ?s ?p 1 } INSERT { GRAPH <urn:b> { ?s ?p 2 } } USING <urn:c> "
            "WHERE { GRAPH <urn:d> { ?s ?p 1 } }",
            ["urn:a", "urn:b", "urn:c", "urn:d"],
        ),
        ("CLEAR GRAPH <urn:a>; DROP GRAPH <urn:b>; CREATE GRAPH <urn:c>", ["urn:a", "urn:b", "urn:c"]),
        ("COPY <urn:a> TO <urn:b>; MOVE DEFAULT TO <urn:c>; CLEAR ALL", ["urn:a", "urn:b", "urn:c"]),
        ("LOAD <http://source.example/x> INTO GRAPH <urn:a>", ["urn:a"]),
    ],
)
def test_of_updates(text: str, graphs: list[str]) -> None:
    assert sorted(named_graphs(read_update(text, None, LIMITS))) == graphs


def test_of_a_long_text_the_first_are_enough() -> None:
    groups = " ".join(f"GRAPH <urn:{number}> {{ ?s ?p {number} }}" for number in range(60))
    assert named_graphs(read_query(f"ASK {{ {groups} }}", None, LIMITS)) == [
        f"urn:{number}" for number in range(20)
    ]


def test_data_that_are_not_read_as_syntax_name_none() -> None:
    data = " ".join(f"GRAPH <urn:{number}> {{ <urn:s> <urn:p> {number} }}" for number in range(500))
    assert named_graphs(read_update(f"INSERT DATA {{ {data} }}; CLEAR GRAPH <urn:x>", None, LIMITS)) == [
        "urn:x"
    ]
