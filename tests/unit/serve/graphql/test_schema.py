"""Where the schema comes from, and how it follows ontology and shapes; the settings of `[graphql]`."""

from collections.abc import Callable
from typing import Any

import pytest
from graphql import build_client_schema, build_schema, get_introspection_query

from tests.unit.serve.graphql.conftest import LIBRARY, Port

SHAPES = """
    :BookShape a sh:NodeShape ; sh:targetClass :Book ;
        sh:property [ sh:path :pages ; sh:datatype xsd:integer ; sh:maxCount 1 ] .
    :emma :pages 480 .
"""


def types(port: Port, name: str) -> list[str]:
    """The fields of a type, as introspection tells them."""
    found = port.data(f'{{ __type(name: "{name}") {{ fields {{ name }} }} }}')["__type"]
    return [one["name"] for one in found["fields"]] if found else []


@pytest.mark.parametrize(
    ("source", "fields"),
    [
        ("ontology", ["id", "author", "title"]),
        ("shacl", ["id", "pages"]),
        ("combined", ["id", "author", "pages", "title"]),
        ("inferred", ["id", "author", "pages", "title"]),
    ],
)
def test_it_comes_from_where_the_setting_says(
    opened: Callable[..., Port], source: str, fields: list[str]
) -> None:
    port = opened({"schema_source": source})
    port.update(f"INSERT DATA {{ {LIBRARY} {SHAPES} }}")
    assert types(port, "Book") == fields
    if "pages" in fields:
        assert str(480) in str(port.data('{ book(filter: {id: {eq: "http://e/emma"}}) { pages } }'))


def test_it_follows_what_is_written(opened: Callable[..., Port]) -> None:
    port = opened()
    assert port.codes("{ books { totalCount } }") == ["UNKNOWN_TYPE"]
    port.update(f"INSERT DATA {{ GRAPH :ontology {{ {LIBRARY} }} }}")
    assert port.data("{ books { totalCount } }") == {"books": {"totalCount": 0}}
    assert port.data('{ books(graph: "http://e/ontology") { totalCount } }') == {"books": {"totalCount": 2}}
    port.update("INSERT DATA { :pages rdfs:domain :Book ; rdfs:range xsd:integer }")
    assert types(port, "Book") == ["id", "author", "pages", "title"]
    port.update("DELETE DATA { :pages rdfs:domain :Book }")
    assert types(port, "Book") == ["id", "author", "title"]
    port.http.put("/data?default", content=b"", headers={"Content-Type": "text/turtle"})
    port.update("DROP ALL")
    assert port.codes("{ books { totalCount } }") == ["UNKNOWN_TYPE"]


def test_data_that_change_leave_it_as_it_is(
    opened: Callable[..., Port], monkeypatch: pytest.MonkeyPatch
) -> None:
    port = opened()
    port.update(f"INSERT DATA {{ {LIBRARY} }}")
    port.data("{ books { totalCount } }")
    reads = []
    matching = port.backend.quads_matching

    def counted(*pattern: Any) -> Any:
        reads.append(pattern)
        return matching(*pattern)

    monkeypatch.setattr(port.backend, "quads_matching", counted)
    port.update('INSERT DATA { :x a :Book ; :title "X" }')
    assert port.data("{ books { totalCount } }") == {"books": {"totalCount": 3}}
    assert reads == []
    port.update("INSERT DATA { :Shelf a owl:Class }")
    port.data("{ shelves { totalCount } }")
    assert reads != []


def test_an_inferred_one_is_made_anew_at_request(opened: Callable[..., Port]) -> None:
    port = opened({"schema_source": "inferred"})
    assert port.codes("{ books { totalCount } }") == ["UNKNOWN_TYPE"]
    port.update('INSERT DATA { :emma a :Book ; :title "Emma" }')
    assert types(port, "Book") == ["id", "title"]
    port.update("INSERT DATA { :emma :pages 480 . :x a :Cat }")
    assert types(port, "Book") == ["id", "title"]
    answer = port.http.post("/graphql/schema/refresh")
    assert answer.status_code == 200
    assert answer.json() == {
        "success": True,
        "message": "the schema has 2 types",
        "snapshot_index": port.backend.snapshot_index(),
        "types": 2,
    }
    assert types(port, "Book") == ["id", "pages", "title"]


def test_it_can_be_downloaded(library: Port) -> None:
    answer = library.http.get("/graphql/schema")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert "attachment" in answer.headers["content-disposition"]
    assert {"Book", "Person", "BookConnection"} <= set(build_schema(answer.text).type_map)
    assert library.http.post("/graphql/schema").status_code == 405
    assert library.http.get("/graphql/schema/refresh").status_code == 405


def test_introspection_can_be_switched_off(opened: Callable[..., Port]) -> None:
    port = opened({"introspection": False})
    port.update(f"INSERT DATA {{ {LIBRARY} }}")
    assert set(port.codes("{ __schema { types { name } } }")) == {"VALIDATION_FAILED"}
    assert set(port.codes('{ __type(name: "Book") { name } }')) == {"VALIDATION_FAILED"}
    assert port.http.get("/graphql/schema").status_code == 403
    assert port.data("{ __typename books { totalCount __typename } }") == {
        "__typename": "Query",
        "books": {"totalCount": 2, "__typename": "BookConnection"},
    }


def test_all_of_it_can_be_switched_off(opened: Callable[..., Port]) -> None:
    port = opened({"enabled": False})
    for path in ("/graphql", "/graphql/schema", "/graphql/playground/playground.js"):
        assert port.http.get(path).status_code == 404
    assert port.post("{ __typename }").status_code == 404
    assert "/graphql" not in port.http.get("/").json()["endpoints"]


def test_the_limits_are_those_of_the_settings(opened: Callable[..., Port]) -> None:
    port = opened({"max_depth": 4, "max_complexity": 30, "default_page_size": 1, "max_page_size": 2})
    port.update(f"INSERT DATA {{ {LIBRARY} :beloved a :Book }}")
    assert len(port.data("{ books { edges { node { id } } } }")["books"]["edges"]) == 1
    assert len(port.data("{ books(first: 2) { edges { node { id } } } }")["books"]["edges"]) == 2
    assert port.codes("{ books(first: 3) { edges { node { id } } } }") == ["VALIDATION_FAILED"]
    assert port.codes("{ books { edges { node { author { id } } } } }") == ["DEPTH_EXCEEDED"]
    many = " ".join(f"a{number}: __typename" for number in range(31))
    assert port.codes(f"{{ {many} }}") == ["COMPLEXITY_EXCEEDED"]


def test_the_root_names_it(library: Port) -> None:
    assert "/graphql" in library.http.get("/").json()["endpoints"]


def test_the_questions_of_clients_are_within_the_limits_of_introspection(library: Port) -> None:
    everything = get_introspection_query(
        specified_by_url=True,
        directive_is_repeatable=True,
        schema_description=True,
        input_value_deprecation=True,
    )
    made = build_client_schema(library.data(everything))
    assert {"Book", "Person"} <= set(made.type_map)


@pytest.mark.parametrize(
    "selection",
    [
        " ".join(f"a{one}: fields {{ name }}" for one in range(201)),
        "fields { type { " * 3 + "name" + " } }" * 3,
    ],
)
def test_introspection_cannot_multiply(library: Port, selection: str) -> None:
    (error,) = library.post(f"{{ __schema {{ types {{ {selection} }} }} }}").json()["errors"]
    assert error["extensions"]["code"] in ("COMPLEXITY_EXCEEDED", "VALIDATION_FAILED")
