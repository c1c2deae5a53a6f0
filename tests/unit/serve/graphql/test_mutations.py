"""Mutations through the application over memory: what they write, show and refuse."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.serve.graphql.conftest import PREFIXES, Port

MODEL = """
    :Person a owl:Class . :Poet a owl:Class ; rdfs:subClassOf :Person .
    :about a owl:FunctionalProperty ; rdfs:domain :Person .
    :PersonShape a sh:NodeShape ; sh:targetClass :Person ; sh:property
        [ sh:path :name ; sh:datatype xsd:string ; sh:minCount 1 ; sh:maxCount 1 ; sh:minLength 2 ;
          sh:message "a name has two letters at least" ],
        [ sh:path :age ; sh:datatype xsd:short ; sh:maxCount 1 ; sh:minInclusive 0 ],
        [ sh:path :score ; sh:datatype xsd:decimal ; sh:maxCount 1 ],
        [ sh:path :born ; sh:datatype xsd:date ; sh:maxCount 1 ],
        [ sh:path :mood ; sh:in ( "good" "bad" ) ; sh:maxCount 1 ],
        [ sh:path :nick ; sh:datatype xsd:string ],
        [ sh:path :said ; sh:datatype rdf:langString ],
        [ sh:path :knows ; sh:class :Person ] .
"""
ADA = '{ createPerson(input: {id: "http://e/ada", name: "Ada"}) { id } }'


@pytest.fixture(scope="module")
def port(opened: Callable[..., Port]) -> Port:
    return opened()


@pytest.fixture
def people(port: Port) -> Port:
    """Nobody yet; ontology and shapes in a graph of their own."""
    port.backend.logged.forget_before(1)
    port.update("DROP ALL")
    return filled(port)


def filled(port: Port) -> Port:
    rdf = "PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> "
    answer = port.http.put("/data?graph=http://e/model", content=rdf + PREFIXES + MODEL, headers=TURTLE)
    assert answer.status_code == 200, answer.text
    return port


TURTLE = {"Content-Type": "text/turtle"}


def triples(port: Port, graph: str = "") -> set[str]:
    answer = port.http.get("/data", params={"graph": graph} if graph else {})
    return set() if answer.status_code == 404 else set(answer.text.splitlines())


def mutate(port: Port, text: str, **members: Any) -> Any:
    return port.data("mutation " + text, **members)


def refused(port: Port, text: str, **members: Any) -> list[dict[str, Any]]:
    """The errors; nothing was stored."""
    before = port.backend.snapshot_index()
    answer = port.post("mutation " + text, **members)
    assert answer.status_code == 200, answer.text
    assert answer.json()["data"] is None
    assert port.backend.snapshot_index() == before
    errors: list[dict[str, Any]] = answer.json()["errors"]
    return errors


def codes(port: Port, text: str, **members: Any) -> list[str]:
    return [one["extensions"]["code"] for one in refused(port, text, **members)]


def test_what_is_created_is_shown_and_stored(people: Port) -> None:
    text = """($input: CreatePersonInput!) { createPerson(input: $input) {
        id name age score born mood nick said(lang: "de") knows { name } __typename } }"""
    mutate(people, ADA)
    given = {
        "id": "http://e/bob",
        "name": "Bob",
        "age": 7,
        "score": 0.5,
        "born": "2024-02-29",
        "mood": "GOOD",
        "nick": ["b", "a", "b"],
        "said": [{"value": "Guten Tag", "lang": "de"}, {"value": "hello", "lang": "en"}],
        "knows": ["http://e/ada"],
    }
    answer = people.post("mutation " + text, variables={"input": given}).json()
    assert answer["data"]["createPerson"] == {
        **given,
        "nick": ["a", "b"],
        "said": ["Guten Tag"],
        "knows": [{"name": "Ada"}],
        "__typename": "PersonObject",
    }
    assert answer["extensions"] == {"snapshot_index": people.backend.snapshot_index(), "affected_triples": 11}
    xsd = "http://www.w3.org/2001/XMLSchema#"
    assert {
        "<http://e/bob> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://e/Person> .",
        f'<http://e/bob> <http://e/score> "0.5"^^<{xsd}decimal> .',
        '<http://e/bob> <http://e/said> "Guten Tag"@de .',
        "<http://e/bob> <http://e/knows> <http://e/ada> .",
    } < triples(people)


def test_a_name_is_made_where_none_is_given(people: Port) -> None:
    text = '{ a: createPerson(data: {name: "Ada"}) { id } b: createPoet(data: {name: "Bea"}) { id } }'
    made = mutate(people, text)
    assert made["a"]["id"].startswith("http://example.org/Person/")
    assert made["b"]["id"].startswith("http://example.org/Poet/")
    assert people.data("{ persons { totalCount } poets { totalCount } }") == {
        "persons": {"totalCount": 2},
        "poets": {"totalCount": 1},
    }


def test_an_update_replaces_the_fields_that_it_names(people: Port) -> None:
    mutate(people, '{ createPoet(input: {id: "http://e/p", name: "Poe", nick: ["x", "y"], age: 3}) { id } }')
    text = '{ updatePerson(input: {id: "http://e/p", nick: ["z"], age: null}) { name nick age __typename } }'
    assert mutate(people, text)["updatePerson"] == {
        "name": "Poe",
        "nick": ["z"],
        "age": None,
        "__typename": "Poet",
    }
    answer = people.post("mutation " + text)
    assert answer.json()["extensions"]["affected_triples"] == 0


def test_what_is_deleted_is_gone_but_not_what_refers_to_it(people: Port) -> None:
    mutate(people, ADA)
    mutate(people, '{ createPerson(input: {id: "http://e/b", name: "Bea"}) { id } }')
    people.update("INSERT DATA { :b :about :ada }")
    made = mutate(people, '{ deletePerson(id: "http://e/ada") { ok: success __typename } }')
    assert made == {"deletePerson": {"ok": True, "__typename": "DeleteResult"}}
    left = triples(people)
    assert not any(one.startswith("<http://e/ada>") for one in left)
    assert "<http://e/b> <http://e/about> <http://e/ada> ." in left


def test_a_request_is_one_entry_and_later_fields_see_earlier_ones(people: Port) -> None:
    before = people.backend.snapshot_index()
    made = mutate(
        people,
        """{ a: createPerson(input: {id: "http://e/a", name: "Ann"}) { name knows { id } }
             b: createPerson(input: {id: "http://e/b", name: "Bea", knows: ["http://e/a"]}) { knows { name } }
             c: updatePerson(input: {id: "http://e/a", name: "Anna", knows: ["http://e/b"]}) { name }
             d: createPerson(input: {id: "http://e/d", name: "Dora"}) { name }
             e: deletePerson(id: "http://e/d") { success } }""",
    )
    assert people.backend.snapshot_index() == before + 1
    assert made == {
        "a": {"name": "Anna", "knows": [{"id": "http://e/b"}]},
        "b": {"knows": [{"name": "Anna"}]},
        "c": {"name": "Anna"},
        "d": None,
        "e": {"success": True},
    }


def test_one_that_fails_leaves_nothing_of_the_others(people: Port) -> None:
    errors = refused(
        people,
        """{ one: createPerson(input: {id: "http://e/a", name: "Ann"}) { id }
             two: updatePerson(input: {id: "http://e/none", name: "No"}) { id } }""",
    )
    assert [(one["path"], one["extensions"]["code"]) for one in errors] == [(["two"], "NOT_FOUND")]
    assert errors[0]["locations"]
    assert triples(people) == set()


def test_shapes_have_their_say_with_their_own_words(people: Port) -> None:
    mutate(people, ADA)
    [error] = refused(people, '{ p: updatePerson(input: {id: "http://e/ada", name: "A"}) { id } }')
    assert error["path"] == ["p"]
    assert error["extensions"]["code"] == "VALIDATION_FAILED"
    assert error["message"] == "http://e/ada: a name has two letters at least"
    details = error["extensions"]["details"]
    assert details["focusNode"] == "http://e/ada"
    assert details["resultPath"] == "http://e/name"
    assert codes(people, '{ updatePerson(input: {id: "http://e/ada", name: null}) { id } }') == [
        "VALIDATION_FAILED"
    ]
    assert codes(people, '{ updatePerson(input: {id: "http://e/ada", age: -1}) { id } }')
    errors = refused(
        people,
        """{ a: updatePerson(input: {id: "http://e/ada", knows: ["http://e/nobody"]}) { id }
             b: createPerson(input: {name: "B"}) { id } }""",
    )
    assert sorted(one["path"] for one in errors) == [["a"], ["b"]]


def test_a_shape_of_a_class_holds_for_those_below_whatever_graph_says_so(people: Port) -> None:
    text = '{ createPoet(input: {id: "http://e/p", name: "P"}) { id } }'
    assert codes(people, text) == ["VALIDATION_FAILED"]
    mutate(people, '{ createPoet(input: {id: "http://e/p", name: "Poe"}) { id } }')
    mutate(people, '{ createPerson(input: {id: "http://e/q", name: "Qi", knows: ["http://e/p"]}) { id } }')


def test_shapes_that_change_count_at_once(people: Port) -> None:
    mutate(people, ADA)
    more = ":More sh:targetClass :Person ; sh:property [ sh:path :name ; sh:pattern '^[A-M]' ] ."
    people.update(f"INSERT DATA {{ GRAPH :more {{ {more} }} }}")
    text = '{ createPerson(input: {id: "http://e/z", name: "Zoe"}) { id } }'
    assert codes(people, text) == ["VALIDATION_FAILED"]
    people.update("DELETE WHERE { GRAPH :more { ?s sh:pattern ?o } }")
    mutate(people, text)


def test_only_what_a_change_affects_is_validated(people: Port) -> None:
    people.update("INSERT DATA { :wrong a :Person ; :name 'x' }")
    mutate(people, ADA)
    assert codes(people, '{ updatePerson(input: {id: "http://e/wrong", age: 3}) { id } }')


def test_shapes_with_sparql_are_asked_apart(people: Port) -> None:
    shape = """:Odd sh:targetClass :Person ; sh:sparql [ sh:message "too old" ;
        sh:select "SELECT $this { $this <http://e/age> ?age FILTER(?age > 99) }" ] ."""
    people.update(f"INSERT DATA {{ GRAPH :more {{ {shape} }} }}")
    mutate(people, ADA)
    [error] = refused(people, '{ createPoet(input: {name: "Old", age: 100}) { id } }')
    assert error["message"].endswith("too old")


TREES = """:TreeShape sh:targetClass :Tree ;
        sh:property [ sh:path :rings ; sh:datatype xsd:integer ; sh:maxCount 2 ] .
    :Oak a owl:Class ; rdfs:subClassOf :Tree ."""
MEANINGLESS = {
    "no property shape": ":Odd sh:targetClass :Person ; sh:minCount 1 .",
    "no list": ":Odd sh:targetClass :Person ; sh:or [ rdf:first 1 ] .",
    "no path": ":Odd sh:targetClass :Person ; sh:property [ sh:path [] ; sh:minCount 1 ] .",
    "no pattern": ":Odd sh:targetClass :Person ; sh:property [ sh:path :name ; sh:pattern '(' ] .",
    "recursive by not": ":Odd sh:targetClass :Person ; sh:property [ sh:path :knows ; sh:not :Odd ] .",
    "within another graph's shape": "GRAPH :even { :PersonShape sh:node :N } :N sh:closed 'perhaps' .",
}


@pytest.mark.parametrize("name", MEANINGLESS)
def test_shapes_that_mean_nothing_stop_the_types_that_they_speak_of(people: Port, name: str) -> None:
    more = MEANINGLESS[name]
    before, _, after = more.rpartition("}")
    people.update(f"INSERT DATA {{ GRAPH :trees {{ {TREES} }} }}")
    mutate(people, ADA)
    inserted = f"{before}{'}' if before else ''} GRAPH :more {{ {after} }}"
    rdf = "PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> "
    people.update(f"{rdf} INSERT DATA {{ {inserted} }}")
    [error] = refused(
        people,
        """{ t: createTree(input: {rings: 1}) { id }
        p: createPoet(input: {id: "http://e/poe", name: "Poe"}) { id } }""",
    )
    assert error["path"] == ["p"]
    assert error["extensions"]["code"] == "VALIDATION_FAILED"
    assert error["extensions"]["details"]["focusNode"] == "http://e/poe"
    assert error["message"].startswith("http://e/poe: cannot be validated, so it is not stored: malformed")
    assert codes(people, '{ updatePerson(input: {id: "http://e/ada", age: 3}) { id } }') == [
        "VALIDATION_FAILED"
    ]
    made = mutate(people, "{ createOak(input: {rings: 1}) { id } }")["createOak"]["id"]
    assert codes(people, f'{{ updateTree(input: {{id: "{made}", rings: [1, 2, 3]}}) {{ id }} }}')
    mutate(people, '{ deletePerson(id: "http://e/ada") { success } }')  # what is gone is wrong by no shape
    people.update("DROP GRAPH :more ; DROP SILENT GRAPH :even")
    mutate(people, ADA)


def test_a_shape_that_means_nothing_for_certain_resources_stops_these(people: Port) -> None:
    mutate(people, ADA)
    people.update(
        "INSERT DATA { GRAPH :more { :Odd sh:targetNode :ada ; sh:targetObjectsOf :knows ; sh:minCount 1 } }"
    )
    bob = '{ createPerson(input: {id: "http://e/bob", name: "Bob"}) { id } }'
    assert codes(people, '{ updatePerson(input: {id: "http://e/ada", age: 3}) { id } }')
    mutate(people, bob)
    people.update("INSERT DATA { :x :knows :bob }")
    assert codes(people, '{ updatePerson(input: {id: "http://e/bob", age: 3}) { id } }')
    mutate(people, '{ deletePerson(id: "http://e/ada") { success } }')


def test_types_that_refer_to_themselves(people: Port) -> None:
    loop = """:L a sh:NodeShape ; sh:targetClass :Loop ; sh:property
        [ sh:path :again ; sh:node :L ], [ sh:path :level ; sh:datatype xsd:integer ; sh:minCount 1 ] ."""
    people.update(f"INSERT DATA {{ GRAPH :loops {{ {loop} }} }}")
    mutate(people, ADA)
    mutate(
        people,
        """{ a: createLoop(input: {id: "http://e/a", level: 1}) { id }
        b: createLoop(input: {id: "http://e/b", level: 2, again: ["http://e/a"]}) { id } }""",
    )
    mutate(people, '{ updateLoop(input: {id: "http://e/a", again: ["http://e/b", "http://e/a"]}) { id } }')
    found = people.data('{ loop(id: "http://e/b") { again { again { id level } } } }')
    assert found["loop"][0]["again"][0]["again"] == [
        {"id": "http://e/a", "level": [1]},
        {"id": "http://e/b", "level": [2]},
    ]
    [error] = refused(people, '{ c: createLoop(input: {level: 3, again: ["http://e/nowhere"]}) { id } }')
    assert error["path"] == ["c"]
    assert "must conform to <http://e/L>" in error["message"]
    [error] = refused(people, '{ updateLoop(input: {id: "http://e/a", level: []}) { id } }')[:1]
    assert error["extensions"]["code"] == "VALIDATION_FAILED"


def test_shapes_that_the_schema_is_not_made_of_do_not_count(opened: Callable[..., Port]) -> None:
    port = filled(opened({"schema_source": "ontology"}))
    port.update("INSERT DATA { :name rdfs:domain :Person ; rdfs:range xsd:string }")
    mutate(port, '{ createPerson(input: {name: ["x", "y"]}) { name } }')


def test_creating_what_is_there_is_a_conflict(people: Port) -> None:
    mutate(people, ADA)
    assert codes(people, ADA) == ["CONFLICT"]
    mutate(people, '{ createPerson(graph: "http://e/g", input: {id: "http://e/ada", name: "Ada"}) { id } }')


def test_named_graphs_are_written_and_shown_by_themselves(people: Port) -> None:
    made = mutate(
        people,
        """{ a: createPerson(graph: "http://e/g", input: {id: "http://e/x", name: "Xi"}) { name }
             b: createPerson(input: {id: "http://e/x", name: "Yo"}) { name } }""",
    )
    assert made == {"a": {"name": "Xi"}, "b": {"name": "Yo"}}
    assert '<http://e/x> <http://e/name> "Xi" .' in triples(people, "http://e/g")
    mutate(people, '{ deletePerson(id: "http://e/x", graph: "http://e/g") { success } }')
    assert triples(people, "http://e/g") == set()
    assert codes(people, '{ deletePerson(id: "http://e/x", graph: "http://e/g") { success } }') == [
        "NOT_FOUND"
    ]


def test_what_is_of_another_type_is_not_found(people: Port) -> None:
    mutate(people, ADA)
    assert codes(people, '{ updatePoet(input: {id: "http://e/ada", name: "Ida"}) { id } }') == ["NOT_FOUND"]
    assert codes(people, '{ deletePoet(id: "http://e/ada") { success } }') == ["NOT_FOUND"]


class TestIfSnapshot:
    TEXT = """($at: SnapshotIndex) {
        updatePerson(ifSnapshot: $at, input: {id: "http://e/ada", age: 1}) { age } }"""

    def seen(self, port: Port) -> int:
        answer = port.post('{ person(id: "http://e/ada") { name } }')
        return int(answer.headers["x-snapshot-index"])

    def test_holds_while_others_change(self, people: Port) -> None:
        mutate(people, ADA)
        at = self.seen(people)
        mutate(people, '{ createPerson(input: {name: "Bea"}) { id } }')
        people.update("INSERT DATA { GRAPH :g { :ada :name 'elsewhere' } }")
        assert mutate(people, self.TEXT, variables={"at": at}) == {"updatePerson": {"age": 1}}

    @pytest.mark.parametrize(
        "change",
        ["INSERT DATA { :ada :nick 'x' }", "DELETE WHERE { :ada :name ?n }", "DELETE WHERE { :ada ?p ?o }"],
    )
    def test_ends_with_any_change_of_the_resource(self, people: Port, change: str) -> None:
        mutate(people, ADA)
        at = self.seen(people)
        people.update(change)
        [error] = refused(people, self.TEXT, variables={"at": at})
        assert error["extensions"] == {"code": "CONFLICT", "details": {"ifSnapshot": at}}
        assert error["path"] == ["updatePerson"]

    def test_is_about_the_state_before_the_request(self, people: Port) -> None:
        mutate(people, ADA)
        at = self.seen(people)
        text = f"""{{ a: updatePerson(ifSnapshot: {at}, input: {{id: "http://e/ada", age: 1}}) {{ age }}
                      b: deletePerson(ifSnapshot: {at}, id: "http://e/ada") {{ success }} }}"""
        assert mutate(people, text) == {"a": None, "b": {"success": True}}

    def test_does_not_guess_what_the_log_forgot(self, people: Port) -> None:
        mutate(people, ADA)
        at = self.seen(people)
        people.backend.logged.forget_before(at + 5)
        assert codes(people, self.TEXT, variables={"at": at}) == ["CONFLICT"]

    def test_cannot_be_ahead_of_the_node(self, people: Port) -> None:
        answer = people.post("mutation " + self.TEXT, variables={"at": 2**62})
        assert answer.status_code == 503
        assert codes(people, self.TEXT, variables={"at": 2**63}) == ["VALIDATION_FAILED"]
        assert codes(people, self.TEXT, variables={"at": -1}) == ["VALIDATION_FAILED"]


def test_a_request_that_is_sent_again_takes_effect_once(people: Port) -> None:
    body = {"query": 'mutation { createPerson(input: {name: "Ada"}) { id name } }'}
    first, second = (
        people.http.post("/graphql", json=body, headers={"Idempotency-Key": '"k-1"'}) for _ in range(2)
    )
    assert first.json()["data"] == second.json()["data"]
    assert first.json()["data"]["createPerson"]["name"] == "Ada"
    assert people.data("{ persons { totalCount } }") == {"persons": {"totalCount": 1}}
    other = {"query": 'mutation { createPerson(input: {name: "Bea"}) { id } }'}
    answer = people.http.post("/graphql", json=other, headers={"Idempotency-Key": '"k-1"'})
    assert answer.status_code == 422


def test_get_changes_nothing(people: Port) -> None:
    answer = people.http.get("/graphql", params={"query": "mutation " + ADA})
    assert answer.status_code == 405
    assert "POST" in answer.headers["allow"]
    assert triples(people) == set()


def test_fragments_directives_and_aliases(people: Port) -> None:
    text = """mutation ($no: Boolean!, $name: LangString!) {
        ...Making
        skipped: createPerson(input: {name: "No"}) @skip(if: true) { id }
        also: createPerson(input: {name: "No"}) @include(if: $no) { id }
        __typename }
      fragment Making on Mutation {
        p: createPoet(input: {id: "http://e/p", name: "Poe", about: $name}) {
          ...Shown ... on Poet { name } } }
      fragment Shown on Person { who: id about }"""
    made = people.data(text, variables={"no": False, "name": "raven"})
    assert made == {
        "p": {"who": "http://e/p", "about": "raven", "name": "Poe"},
        "__typename": "Mutation",
    }
    assert people.data("{ persons { totalCount } }") == {"persons": {"totalCount": 1}}
    assert mutate(people, "{ __typename }") == {"__typename": "Mutation"}


def test_many_resources_at_once(people: Port) -> None:
    fields = " ".join(
        f'p{n}: createPerson(input: {{id: "http://e/{n}", name: "N{n}"}}) {{ id name }}' for n in range(150)
    )
    made = mutate(people, f"{{ {fields} }}")
    assert made["p149"] == {"id": "http://e/149", "name": "N149"}
    assert [one["name"] for one in made.values()] == [f"N{n}" for n in range(150)]


@pytest.mark.parametrize(
    "text",
    [
        '{ createPerson(input: {id: "no iri", name: "Ada"}) { id } }',
        '{ createPerson(input: {id: "_:b0", name: "Ada"}) { id } }',
        '{ createPerson(input: {id: "http://e/>", name: "Ada"}) { id } }',
        '{ createPerson(input: {id: "http://[", name: "Ada"}) { id } }',
        '{ createPerson(graph: "default", input: {name: "Ada"}) { id } }',
        '{ createPerson(input: {name: "Ada", knows: ["_:x"]}) { id } }',
        '{ createPerson(input: {name: "Ada", said: [{value: "x", lang: "not a tag"}]}) { id } }',
        '{ createPerson(input: {name: "Ada", said: [{value: "x", lang: 5}]}) { id } }',
        '{ createPerson(input: {name: "Ada", said: [{value: "x", other: "y"}]}) { id } }',
        '{ createPerson(input: {name: "Ada", age: 40000}) { id } }',
        '{ createPerson(input: {name: "Ada", born: "2023-02-29"}) { id } }',
        '{ createPerson(input: {name: "Ada", mood: SAD}) { id } }',
        '{ createPerson(input: {name: "Ada"}, data: {name: "Ada"}) { id } }',
        "{ createPerson { id } }",
        "{ createPerson(input: {}) { id } }",
        '{ updatePerson(input: {name: "Ada"}) { id } }',
        '{ deletePerson(id: "x y") { success } }',
        "{ deletePerson { success } }",
        '{ createPerson(input: {name: "Ada"}) }',
        '{ createPerson(input: {name: "A\\uD800"}) { id } }',
    ],
)
def test_what_means_nothing_is_refused(people: Port, text: str) -> None:
    mutate(people, ADA)
    assert set(codes(people, text)) == {"VALIDATION_FAILED"}


def test_types_that_are_not_there(people: Port) -> None:
    assert codes(people, '{ createSpaceship(input: {name: "x"}) { id } }') == ["UNKNOWN_TYPE"]


def test_too_much_is_refused_before_anything_is_stored(people: Port) -> None:
    many = {"input": {"name": "Ada", "nick": [str(n) for n in range(10_001)]}}
    text = "($input: CreatePersonInput!) { createPerson(input: $input) { id } }"
    assert codes(people, text, variables=many) == ["COMPLEXITY_EXCEEDED"]
    fields = " ".join(f'p{n}: createPerson(input: {{name: "Ada"}}) {{ id }}' for n in range(600))
    assert codes(people, f"{{ {fields} }}") == ["COMPLEXITY_EXCEEDED"]
    deep = "knows { " * 20 + "id" + " }" * 20
    assert codes(people, f'{{ createPerson(input: {{name: "Ada"}}) {{ {deep} }} }}') == ["DEPTH_EXCEEDED"]


def test_the_schema_follows_a_mutation_that_changes_it(people: Port) -> None:
    shape = ":ClassShape a sh:NodeShape ; sh:targetClass owl:Class ; sh:property [ sh:path rdfs:comment ] ."
    people.update(f"INSERT DATA {{ GRAPH :more {{ {shape} }} }}")
    mutate(people, '{ createClass(input: {id: "http://e/Ship", comment: ["sails"]}) { id } }')
    assert "type Ship" in people.http.get("/graphql/schema").text
