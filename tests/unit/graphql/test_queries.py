"""Answers to queries: what is selected, filtered, ordered; one SPARQL query for each operation."""

import pytest

from tests.support.graphql_graph import GraphQLGraph

TURTLE = """
:Person a owl:Class . :Employee a owl:Class ; rdfs:subClassOf :Person . :Company a owl:Class .
:name a owl:FunctionalProperty ; rdfs:domain :Person ; rdfs:range xsd:string .
:age a owl:FunctionalProperty ; rdfs:domain :Person ; rdfs:range xsd:integer .
:nick rdfs:domain :Person ; rdfs:range xsd:string .
:knows rdfs:domain :Person ; rdfs:range :Person .
:worksFor a owl:FunctionalProperty ; rdfs:domain :Employee ; rdfs:range :Company .
[] a sh:NodeShape ; sh:targetClass :Company ; sh:property
    [ sh:path :code ; sh:datatype xsd:string ; sh:minCount 1 ; sh:maxCount 1 ],
    [ sh:path :state ; sh:in ("on" "off") ; sh:maxCount 1 ],
    [ sh:path :title ; sh:datatype rdf:langString ; sh:maxCount 1 ],
    [ sh:path [ sh:inversePath :worksFor ] ; sh:class :Employee ; sh:name "staff" ] .
"""
DATA = """
:a a :Person ; :name "Ada" ; :age 30 ; :nick "x", "y" ; :knows :b, :c .
:b a :Employee ; :name "Bob" ; :age 20 ; :worksFor :f ; :knows :a, [ :name "Nobody" ] .
:c a :Person ; :name "Cy" .
:f a :Company ; :code "F" ; :state "on" ; :title "Firma"@de, "Firm"@en-GB .
:g a :Company ; :state "broken" .
GRAPH :other { :z a :Person ; :name "Zoe" }
"""
GRAPH = GraphQLGraph(TURTLE, DATA)


def names(found: object) -> list[str]:
    assert isinstance(found, list)
    return [one["name"] for one in found]


def test_one_operation_is_one_query() -> None:
    before = len(GRAPH.asked)
    GRAPH.data("{ persons { totalCount edges { node { name knows { name } nick } } } company { id } }")
    assert len(GRAPH.asked) == before + 1


def test_the_answer_is_in_the_order_of_the_selection() -> None:
    found = GRAPH.data('{ b: person(id: "http://e/b") { z: age __typename id a: name } }')
    assert list(found["b"][0].items()) == [
        ("z", 20),
        ("__typename", "Employee"),
        ("id", "http://e/b"),
        ("a", "Bob"),
    ]


def test_fragments_and_directives() -> None:
    text = """query ($no: Boolean = false) { person(orderBy: {field: "name"}) {
        __typename name @include(if: $no) ...E ... on Person @skip(if: true) { age } } }
        fragment E on Employee { worksFor { code staff { name } } }"""
    assert GRAPH.data(text) == {
        "person": [
            {"__typename": "PersonObject"},
            {"__typename": "Employee", "worksFor": {"code": "F", "staff": [{"name": "Bob"}]}},
            {"__typename": "PersonObject"},
        ]
    }


def test_lists_side_by_side_and_blank_nodes() -> None:
    found = GRAPH.data('{ person(id: "http://e/b") { nick knows(orderBy: {field: "name"}) { name id } } }')
    (bob,) = found["person"]
    assert bob["nick"] == []
    assert names(bob["knows"]) == ["Ada", "Nobody"]
    assert bob["knows"][1]["id"].startswith("_:")


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ('{name: {eq: "Ada"}}', ["Ada"]),
        ('{name: {ne: "Ada"}}', ["Bob", "Cy"]),
        ('{name: {in: ["Ada", "Cy"]}}', ["Ada", "Cy"]),
        ("{age: {gt: 20}}", ["Ada"]),
        ("{age: {gte: 20, lt: 30}}", ["Bob"]),
        ('{name: {contains: "o"}}', ["Bob"]),
        ('{name: {startsWith: "C"}}', ["Cy"]),
        ('{name: {regex: "^[AB]"}}', ["Ada", "Bob"]),
        ("{age: {eq: null}}", ["Cy"]),
        ("{age: {ne: null}}", ["Ada", "Bob"]),
        ('{knows: {name: {eq: "Cy"}}}', ["Ada"]),
        ('{knows: {id: {eq: "http://e/a"}}}', ["Bob"]),
        ("{not: {knows: {}}}", ["Cy"]),
        ('{or: [{name: {eq: "Cy"}}, {age: {lt: 25}}]}', ["Bob", "Cy"]),
        ('{and: [{nick: {eq: "x"}}, {nick: {eq: "y"}}]}', ["Ada"]),
        ("{or: []}", []),
        ("{}", ["Ada", "Bob", "Cy"]),
    ],
)
def test_filters(condition: str, expected: list[str]) -> None:
    found = GRAPH.data(f'{{ person(filter: {condition}, orderBy: {{field: "name"}}) {{ name }} }}')
    assert names(found["person"]) == expected


def test_orders() -> None:
    text = '{ person(orderBy: [{field: "age", direction: DESC}, {field: "id"}]) { name } }'
    assert names(GRAPH.data(text)["person"]) == ["Ada", "Bob", "Cy"]


def test_a_named_graph() -> None:
    assert names(GRAPH.data('{ person(graph: "http://e/other") { name } }')["person"]) == ["Zoe"]


def test_node() -> None:
    text = (
        '{ node(id: "http://e/f") { __typename ... on Company { code } } no: node(id: "http://e/0") { id } }'
    )
    assert GRAPH.data(text) == {"node": {"__typename": "Company", "code": "F"}, "no": None}


@pytest.mark.parametrize(
    ("argument", "expected"), [("", "Firm"), ('(lang: "de,en")', "Firma"), ('(lang: "fr")', None)]
)
def test_languages(argument: str, expected: str | None) -> None:
    found = GRAPH.data(f'{{ company(id: "http://e/f") {{ title{argument} }} }}')
    assert found["company"] == [{"title": expected}]


def test_null_where_a_value_is_required_goes_up() -> None:
    found = GRAPH.ask('{ company(id: "http://e/g") { id code } __typename }')
    assert found["data"] is None
    assert found["errors"][0]["path"] == ["company", 0, "code"]
    found = GRAPH.ask('{ node(id: "http://e/g") { ... on Company { code } } __typename }')
    assert found["data"] == {"node": None, "__typename": "Query"}


def test_a_value_that_is_none_of_the_enum() -> None:
    found = GRAPH.ask('{ company(id: "http://e/g") { state } }')
    assert found["data"] == {"company": [{"state": None}]}
    assert found["errors"][0]["path"] == ["company", 0, "state"]


def test_an_integer_beyond_32_bits() -> None:
    graph = GraphQLGraph(
        TURTLE, ":a a :Person ; :name 'A' ; :age 2147483648 . :b a :Person ; :age 2147483647 ."
    )
    found = graph.ask("{ person { name age } }")
    assert found["data"] == {"person": [{"name": "A", "age": None}, {"name": None, "age": 2147483647}]}
    assert [one["path"] for one in found["errors"]] == [["person", 0, "age"]]


def test_pages_go_on_where_they_ended_whatever_has_changed() -> None:
    data = " ".join(f":p{number} a :Person ; :age {number} ." for number in range(6))
    graph = GraphQLGraph(TURTLE, data)
    text = """query ($after: String) { persons(first: 2, after: $after, orderBy: {field: "age"}) {
        edges { node { id } } pageInfo { endCursor hasNextPage hasPreviousPage } } }"""
    first = graph.data(text)["persons"]
    graph.store.update(
        "PREFIX : <http://e/> DELETE WHERE { :p1 ?p ?o } ; INSERT DATA { :new a :Person ; :age 0 }"
    )
    second = graph.data(text, {"after": first["pageInfo"]["endCursor"]})["persons"]
    assert [one["node"]["id"] for one in second["edges"]] == ["http://e/p2", "http://e/p3"]
    assert second["pageInfo"]["hasPreviousPage"]


def test_total_count_is_counted_only_where_it_is_selected() -> None:
    assert GRAPH.data("{ persons(first: 1) { totalCount } }") == {"persons": {"totalCount": 3}}
    assert "COUNT" in GRAPH.asked[-1]
    GRAPH.data("{ persons { edges { cursor } } }")
    assert "COUNT" not in GRAPH.asked[-1]


def test_introspection_beside_data() -> None:
    found = GRAPH.data(
        '{ t: __type(name: "Company") { name fields { name } } company { state: id } __typename }'
    )
    assert list(found) == ["t", "company", "__typename"]
    assert "staff" in [one["name"] for one in found["t"]["fields"]]


def test_hostile_texts_stay_texts() -> None:
    text = "query ($t: String) { person(filter: {name: {eq: $t}}) { id } }"
    assert GRAPH.data(text, {"t": '"}} } # \\ \n'}) == {"person": []}
    assert GRAPH.data('{ person(id: "x> ?p ?o } #") { id } }') == {"person": []}


@pytest.mark.parametrize("direction", ["ASC", "DESC"])
@pytest.mark.parametrize(("size", "cursor", "end"), [("first", "after", "end"), ("last", "before", "start")])
def test_pages_over_missing_and_several_values(direction: str, size: str, cursor: str, end: str) -> None:
    data = " ".join(f":p{number} a :Person ." for number in range(6))
    graph = GraphQLGraph(TURTLE, f"{data} :p3 :age 3, 0 . :p4 :age 1 . :p5 :age 2 .")
    text = f"""query ($at: String) {{ persons({size}: 1, {cursor}: $at,
        orderBy: {{field: "age", direction: {direction}}})
        {{ edges {{ node {{ id }} }} pageInfo {{ {end}Cursor }} }} }}"""
    found, at = [], None
    while (page := graph.data(text, {"at": at})["persons"])["edges"]:
        found.append(page["edges"][0]["node"]["id"][-1])
        at = page["pageInfo"][f"{end}Cursor"]
    expected = list("012345" if direction == "ASC" else "354012")
    assert found == (expected if size == "first" else expected[::-1])
