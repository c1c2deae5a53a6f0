"""The schema: sound in GraphQL's eyes, with the types, fields and arguments of the interface."""

from graphql import build_schema, validate_schema

from graphdb.graphql.schema import RootKind, schema_of
from tests.support.graphql_graph import model_from

TURTLE = """
:Person a owl:Class ; rdfs:comment "Somebody" . :Employee a owl:Class ; rdfs:subClassOf :Person .
:name a owl:FunctionalProperty ; rdfs:domain :Person ; rdfs:range xsd:string .
:knows rdfs:domain :Person ; rdfs:range :Person .
[] a sh:NodeShape ; sh:targetClass :Employee ; sh:property
    [ sh:path :code ; sh:datatype xsd:string ; sh:minCount 1 ; sh:maxCount 1 ],
    [ sh:path :state ; sh:in ("on" "off") ; sh:maxCount 1 ],
    [ sh:path :and ; sh:datatype xsd:time ], [ sh:path :label ; sh:datatype rdf:langString ; sh:minCount 1 ] .
"""
SCHEMA = schema_of(model_from(TURTLE))


def lines() -> set[str]:
    return {line.strip() for line in SCHEMA.sdl.splitlines()}


def test_graphql_finds_nothing_wrong() -> None:
    assert validate_schema(SCHEMA.graphql) == []
    build_schema(SCHEMA.sdl)


def test_types_and_fields() -> None:
    assert "interface Person implements Node {" in lines()
    assert "type Employee implements Person & Node {" in lines()
    assert "type PersonObject implements Person & Node {" in lines()
    assert {"code: String!", "name: String", "state: EmployeeState", "totalCount: Int!"} <= lines()
    assert "knows(first: Int, filter: PersonFilter, orderBy: [OrderBy!]): [Person!]" in lines()


def test_root_fields() -> None:
    kinds = {name: root.kind for name, root in SCHEMA.roots.items()}
    assert kinds["persons"] is RootKind.COLLECTION
    assert kinds["person"] is RootKind.SINGULAR
    assert kinds["node"] is RootKind.NODE
    assert kinds["createPerson"] is RootKind.CREATE
    assert kinds["personChanged"] is RootKind.CHANGED
    query = SCHEMA.graphql.query_type
    assert query is not None
    assert set(query.fields["persons"].args) == {
        "first",
        "after",
        "last",
        "before",
        "filter",
        "orderBy",
        "graph",
    }
    assert set(query.fields["person"].args) == {"id", *query.fields["persons"].args}


def test_what_mutations_take() -> None:
    made = SCHEMA.graphql.type_map["CreateEmployeeInput"].fields  # type: ignore[attr-defined]
    changed = SCHEMA.graphql.type_map["UpdateEmployeeInput"].fields  # type: ignore[attr-defined]
    assert [str(one["id"].type) for one in (made, changed)] == ["ID", "ID!"]
    assert [str(one["code"].type) for one in (made, changed)] == ["String!", "String"]
    assert str(made["knows"].type) == "[ID!]"
    assert str(made["label"].type) == "[LangString!]!"
    mutation = SCHEMA.graphql.mutation_type
    assert mutation is not None
    taken = {
        name: set(mutation.fields[name].args) for name in ("createPerson", "updatePerson", "deletePerson")
    }
    assert taken == {
        "createPerson": {"input", "data", "graph", "ifSnapshot"},
        "updatePerson": {"input", "data", "graph", "ifSnapshot"},
        "deletePerson": {"id", "graph", "ifSnapshot"},
    }


def test_subscriptions_can_be_left_out() -> None:
    assert schema_of(model_from(TURTLE), subscriptions=False).graphql.subscription_type is None


def test_a_schema_of_nothing() -> None:
    empty = schema_of(model_from(""))
    assert validate_schema(empty.graphql) == []
    assert empty.graphql.mutation_type is None


def test_names_that_the_schema_makes_give_way_to_classes() -> None:
    schema = schema_of(
        model_from(
            " ".join(f":{one} a owl:Class ." for one in ("Person", "PersonFilter", "PersonEdge", "OrderBy"))
        )
    )
    assert validate_schema(schema.graphql) == []
    clashing = schema_of(model_from(":SnapshotIndex a owl:Class . :LangString a owl:Class ."))
    assert validate_schema(clashing.graphql) == []
    assert {"PersonFilter_2", "PersonEdge_2", "OrderBy_2"} <= set(schema.graphql.type_map)
