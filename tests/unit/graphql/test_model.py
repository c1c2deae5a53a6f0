"""What the model makes of ontologies and shapes: types, fields, kinds of values, names."""

import pytest
from pyoxigraph import Literal

from graphdb.graphql.model import (
    EnumType,
    Path,
    Reference,
    Scalar,
    enum_value_name,
    field_name,
    plural_of,
    spelt,
)
from tests.support.graphql_graph import model_from


def test_domain_and_range_make_a_field() -> None:
    model = model_from(
        ":P a owl:Class . :age rdfs:domain :P ; rdfs:range xsd:int ; rdfs:comment 'In years' ."
    )
    field = model.types["P"].fields["age"]
    assert (field.value, field.is_list, field.is_required) == (Scalar.INT, True, False)
    assert (field.path, field.description) == (Path("http://e/age"), "In years")


def test_a_functional_property_is_no_list() -> None:
    model = model_from(":age a owl:FunctionalProperty ; rdfs:domain :P .")
    assert not model.types["P"].fields["age"].is_list


@pytest.mark.parametrize(
    ("datatype", "scalar"),
    [
        ("string", "String"),
        ("integer", "Int"),
        ("long", "Int"),
        ("byte", "Int"),
        ("decimal", "Float"),
        ("float", "Float"),
        ("double", "Float"),
        ("boolean", "Boolean"),
        ("dateTime", "DateTime"),
        ("date", "Date"),
        ("time", "Time"),
        ("anyURI", "String"),
    ],
)
def test_datatypes(datatype: str, scalar: str) -> None:
    model = model_from(f":p rdfs:domain :P ; rdfs:range xsd:{datatype} .")
    value = model.types["P"].fields["p"].value
    assert isinstance(value, Scalar)
    assert value.value == scalar


SHAPES = """
:S a sh:NodeShape ; sh:targetClass :P ; sh:description "People" ; sh:property
    [ sh:path :n ; sh:name "full name" ; sh:datatype xsd:string ; sh:minCount 1 ; sh:maxCount 1 ],
    [ sh:path :state ; sh:in ("open" "half-shut" "true") ; sh:maxCount 1 ],
    [ sh:path :friend ; sh:class :P ],
    [ sh:path :address ; sh:node :A ],
    [ sh:path [ sh:inversePath :owns ] ; sh:class :P ],
    [ sh:path ( :a :b ) ], [ sh:path :gone ; sh:deactivated true ] .
:A a sh:NodeShape ; sh:property [ sh:path :street ; sh:datatype xsd:string ] .
"""


def test_shapes() -> None:
    model = model_from(SHAPES)
    person, address = model.types["P"], model.types["A"]
    assert set(person.fields) == {"full_name", "state", "friend", "address", "ownsOf"}
    name = person.fields["full_name"]
    assert (name.is_list, name.is_required, name.value) == (False, True, Scalar.STRING)
    assert person.fields["friend"].value == Reference("P")
    assert person.fields["address"].value == Reference("A")
    assert person.fields["ownsOf"].path == Path("http://e/owns", inverse=True)
    assert person.description == "People"
    assert (person.is_root, address.is_root) == (True, False)


def test_enum_values_are_upper_case_and_spellable() -> None:
    state = model_from(SHAPES).types["P"].fields["state"].value
    assert isinstance(state, EnumType)
    assert state.name == "PState"
    assert state.values == {
        "OPEN": Literal("open"),
        "HALF_SHUT": Literal("half-shut"),
        "TRUE_": Literal("true"),
    }


def test_shapes_have_the_last_word_over_the_ontology() -> None:
    model = model_from(
        ":n rdfs:domain :P ; rdfs:range xsd:string . "
        "[] a sh:NodeShape ; sh:targetClass :P ; sh:property [ sh:path :n ; sh:datatype xsd:date ] ."
    )
    assert model.types["P"].fields["n"].value is Scalar.DATE


def test_subclasses_inherit_and_make_interfaces() -> None:
    model = model_from(
        ":B rdfs:subClassOf :A ; a owl:Class . :C rdfs:subClassOf :B ; a owl:Class . :A a owl:Class . "
        ":a rdfs:domain :A . :c rdfs:domain :C ."
    )
    top, bottom = model.types["A"], model.types["C"]
    assert (top.is_interface, top.concrete_name, top.subtypes) == (True, "AObject", ("B", "C"))
    assert (bottom.is_interface, bottom.interfaces, set(bottom.fields)) == (False, ("B", "A"), {"a", "c"})
    assert set(model.types["B"].interface_fields) == {"a"}


def test_classes_that_are_above_each_other_end() -> None:
    model = model_from(":A rdfs:subClassOf :B ; a owl:Class . :B rdfs:subClassOf :A ; a owl:Class .")
    assert (model.types["A"].interfaces, model.types["B"].interfaces) == ((), ("A",))


def test_what_types_below_have_otherwise_is_not_the_interfaces() -> None:
    model = model_from(
        ":B a owl:Class ; rdfs:subClassOf :A . :A a owl:Class . :x rdfs:domain :A ; rdfs:range xsd:string . "
        "[] a sh:NodeShape ; sh:targetClass :B ; sh:property [ sh:path :x ; sh:datatype xsd:integer ] ."
    )
    assert model.types["A"].interface_fields == {}
    assert model.types["B"].fields["x"].value is Scalar.INT


def test_names_that_clash_are_told_apart_by_iri() -> None:
    model = model_from(
        "<http://a/P> a owl:Class . <http://b/P> a owl:Class . <http://c/Query> a owl:Class . "
        "<http://a/n> rdfs:domain <http://a/P> . <http://b/n> rdfs:domain <http://a/P> ."
    )
    assert set(model.types) == {"P", "P_2", "Query_2"}
    first = model.types["P"]
    assert first.class_iri is not None
    assert first.class_iri.value == "http://a/P"
    assert {name: one.path.iri for name, one in first.fields.items()} == {
        "n": "http://a/n",
        "n_2": "http://b/n",
    }


@pytest.mark.parametrize(
    ("name", "made"), [("é-t", "e_t"), ("1a", "_1a"), ("__x", "_x"), ("日", "_"), ("", "_"), ("a b", "a_b")]
)
def test_unspellable_names(name: str, made: str) -> None:
    assert spelt(name) == made


def test_names_of_our_own() -> None:
    assert field_name("id") == "id_"
    assert enum_value_name(Literal("null")) == "NULL_"
    assert [plural_of(one) for one in ("Person", "City", "Sheep")] == ["persons", "cities", "sheeplist"]
