"""Records, conditions on them, and what a change of a record is told as."""

from typing import Any

import pytest
from pyoxigraph import BlankNode, Literal, NamedNode, Quad, RdfFormat, parse

from graphdb.live.notifications import Difference
from graphdb.live.records import Star, value_of
from graphdb.live.statement import read_statement
from graphdb.live.table_queries import TableQuery

PREFIXES = (
    "@prefix x: <http://x/> . @prefix y: <http://y#> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> . "
)
ANN = NamedNode("http://x/ann")


def star(turtle: str) -> Star:
    text = f"{PREFIXES} x:ann {turtle} ." if turtle else ""
    quads = [Quad(one.subject, one.predicate, one.object) for one in parse(text, format=RdfFormat.TURTLE)]
    return Star.of(ANN, quads)


def query(text: str) -> TableQuery:
    found = read_statement(f"PREFIX x: <http://x/> PREFIX y: <http://y#> LIVE SELECT {text}")
    assert isinstance(found, TableQuery)
    return found


@pytest.mark.parametrize(
    ("turtle", "record"),
    [
        ("a x:P ; x:name 'Ann'@en ; x:age 41", {"type": "http://x/P", "name": "Ann", "age": 41}),
        ("x:a 1, 2, 1.0, 'b', true", {"a": [True, 1, 2, "b"]}),
        ("x:a '01'^^xsd:byte, 'x'^^xsd:integer", {"a": ["01", "x"]}),
        ("x:a 1.5, 2e0, 'NaN'^^xsd:double, '2020-01-01'^^xsd:date", {"a": [1.5, 2.0, "2020-01-01", "NaN"]}),
        ("x:a 99999999999999999999", {"a": "99999999999999999999"}),
        ("x:name 1 ; y:name 2 ; y:other 3", {"http://x/name": 1, "http://y#name": 2, "other": 3}),
        ("a x:P ; x:id 1 ; x:type 2", {"type": "http://x/P", "http://x/id": 1, "http://x/type": 2}),
        ("x:knows x:bob, _:b0", {"knows": ["_:b0", "http://x/bob"]}),
    ],
)
def test_record(turtle: str, record: dict[str, Any]) -> None:
    found = star(turtle).record()
    assert found.pop("id") == "http://x/ann"
    if "knows" in found:
        found["knows"] = sorted("_:b0" if one.startswith("_:") else one for one in found["knows"])
    assert {name: repr(value) for name, value in found.items()} == {
        name: repr(value) for name, value in record.items()
    }


def test_terms_that_are_no_literals() -> None:
    assert value_of(BlankNode("b")) == "_:b"
    assert value_of(Literal("true", datatype=NamedNode("http://www.w3.org/2001/XMLSchema#boolean"))) is True


PERSON = "a x:P ; x:name 'Ann', 'Anna' ; x:age 41 ; x:ok true ; y:age 7"


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("name = 'Anna'", True),
        ("name != 'Anna'", False),
        ("name != 'Bob'", True),
        ("none != 'Bob'", False),
        ("NOT none = 'Bob'", True),
        ("x:age > 40 AND x:age <= 41.0", True),
        ("age = 7 AND age = 41", True),  # both properties that are called so
        ("x:age > '40'", False),  # text and numbers do not compare
        ("ok = true AND NOT ok = 1", True),
        ("ok > 0", False),
        ("name CONTAINS 'nna' AND NOT name CONTAINS 'ANN'", True),
        ("name IN ['x', 'Ann'] AND name NOT IN []", True),
        ("none IS NULL AND name IS NOT NULL", True),
        ("id = <http://x/ann> AND type = x:P AND id CONTAINS 'ann'", True),
        ("ok = false OR name = 'Ann' AND x:age = 1", False),
        ("(ok = true OR name = 'Ann') AND x:age = 41", True),
    ],
)
def test_condition(condition: str, holds: bool) -> None:
    assert query(f"* FROM P WHERE {condition}").matches(star(PERSON)) is holds


@pytest.mark.parametrize(
    ("asked", "before", "after", "action", "result"),
    [
        ("* FROM P", "", "a x:P ; x:a 1", "CREATE", {"type": "http://x/P", "a": 1}),
        ("* FROM x:P", "x:a 1", "a x:P ; x:a 1", "CREATE", {"type": "http://x/P", "a": 1}),
        ("* FROM y:P", "", "a x:P", None, None),
        ("* FROM P", "a x:P ; x:a 1", "a x:P ; x:a 2", "UPDATE", {"type": "http://x/P", "a": 2}),
        ("* FROM P", "a x:P ; x:a 1", "x:a 1", "DELETE", {}),
        ("* FROM P WHERE a < 2", "a x:P ; x:a 1", "a x:P ; x:a 2", "DELETE", {}),
        ("* FROM P WHERE a > 1", "a x:P ; x:a 1", "a x:P ; x:a 2", "CREATE", {"type": "http://x/P", "a": 2}),
        ("* FROM P WHERE a > 2", "a x:P ; x:a 1", "a x:P ; x:a 2", None, None),
        ("a FROM P", "a x:P ; x:a 1 ; x:b 1", "a x:P ; x:a 1 ; x:b 2", None, None),
        ("a, none, id FROM P", "a x:P ; x:b 1", "a x:P ; x:a 1, 2", "UPDATE", {"a": [1, 2]}),
        ("b FROM P WHERE a = 1", "a x:P ; x:b 1", "a x:P ; x:a 1 ; x:b 1", "CREATE", {"b": 1}),
        ("x:a, y:a FROM P", "", "a x:P ; x:a 1 ; y:a 2", "CREATE", {"http://x/a": 1, "http://y#a": 2}),
        ("* FROM P", "a x:P ; x:a 1", "a x:P ; x:a true", "UPDATE", {"type": "http://x/P", "a": True}),
        ("* FROM P", "a x:P ; x:a 1", "a x:P ; x:a 1.0", None, None),
    ],
)
def test_what_a_change_is_told_as(
    asked: str, before: str, after: str, action: str | None, result: dict[str, Any]
) -> None:
    found = query(asked).difference(star(before), star(after))
    expected = None if action is None else Difference(action, {"id": "http://x/ann", **result})
    assert found == expected


def test_queries_that_ask_the_same_are_equal() -> None:
    assert query("*  FROM P WHERE a=1") == query("* from `P` where (a = 1);")
    assert query("* FROM P WHERE a = 1") != query("* FROM P WHERE a = true")
    assert hash(query("* FROM P WHERE a=1")) == hash(query("* FROM P WHERE a = 1"))
