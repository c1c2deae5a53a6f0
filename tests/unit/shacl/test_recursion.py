"""Shapes that lead back to themselves: what is followed, what is said, and by which name."""

import pytest
from pyoxigraph import NamedNode

from graphdb.shacl.report import result_json
from graphdb.shacl.shapes import Shapes
from graphdb.shacl.validation import validate
from tests.unit.shacl.texts import EX, data, shapes

PERSON = """:S a sh:NodeShape ; sh:targetClass :P ; sh:property _:name, _:knows .
    _:name sh:path :name ; sh:minCount 1 . _:knows sh:path :knows ; sh:maxCount 1 ; sh:node :S ."""


def wrong(turtle: str, given: Shapes) -> list[tuple[str, str, str]]:
    """Focus node, component and source shape of each result, by their local names."""
    results = map(result_json, validate(data(turtle), None, given).results)
    return [
        (
            (one["focusNode"] or "").removeprefix(EX),
            (one["sourceConstraintComponent"] or "").rpartition("#")[2].removesuffix("ConstraintComponent"),
            (one["sourceShape"] or "").removeprefix(EX),
        )
        for one in results
    ]


def test_a_circle_of_data_conforms() -> None:
    assert wrong(":a a :P ; :name 1 ; :knows :b . :b a :P ; :name 2 ; :knows :a .", shapes(PERSON)) == []
    assert wrong(":a a :P ; :name 1 ; :knows :a .", shapes(PERSON)) == []


def test_what_a_node_leads_to_is_checked_too() -> None:
    """Whether or not it is a target."""
    found = wrong(":a a :P ; :name 1 ; :knows :b . :b :knows :c . :c :name 3 .", shapes(PERSON))
    assert found == [("a", "Node", "_:knows")]
    found = wrong(":a a :P ; :name 1 ; :knows :b . :b a :P .", shapes(PERSON))
    assert found == [("a", "Node", "_:knows"), ("b", "MinCount", "_:name")]


def test_the_copy_within_is_called_by_the_shape_s_name() -> None:
    [result] = validate(data(":a a :P ; :name 1 ; :knows :b ."), None, shapes(PERSON)).results
    assert [message.value for message in result.messages] == [f"must conform to <{EX}S>"]


def test_it_is_followed_once_around() -> None:
    """Further on, what is no target is nobody's."""
    far = ":a a :P ; :name 1 ; :knows :b . :b :name 2 ; :knows :c . "
    assert wrong(far, shapes(PERSON)) == []
    assert wrong(far + ":c a :P .", shapes(PERSON)) == [("c", "MinCount", "_:name")]


def test_shapes_that_refer_to_each_other() -> None:
    given = shapes(
        """:S sh:targetClass :P ; sh:property _:works . _:works sh:path :works ; sh:node :T .
        :T sh:targetClass :Firm ; sh:property _:boss . _:boss sh:path :boss ; sh:minCount 1 ; sh:node :S ;
            sh:nodeKind sh:IRI ."""
    )
    assert wrong(":a a :P ; :works :f . :f a :Firm ; :boss :a .", given) == []
    assert wrong(":a a :P ; :works :f .", given) == [("a", "Node", "_:works")]
    assert wrong(":f a :Firm ; :boss :a . :a :works :g .", given) == [("f", "Node", "_:boss")]
    assert wrong(":f a :Firm ; :boss 1 .", given) == [("f", "NodeKind", "_:boss")]


RECURSIVE = {
    "and": ":S sh:targetClass :P ; sh:and ( :T _:u ) . _:u sh:property [ sh:path :p ; sh:node :S ] .",
    "or": """:S sh:targetClass :P ; sh:or ( :T _:u ) .
        _:u sh:property [ sh:path :p ; sh:minCount 1 ; sh:node :S ] .""",
    "qualified": """:S sh:targetClass :P ; sh:node :T ; sh:property
        [ sh:path :p ; sh:qualifiedValueShape :S ; sh:qualifiedMinCount 0 ] .""",
    "property": """:S sh:targetClass :P ; sh:node :T ; sh:property _:p .
        _:p sh:path :p ; sh:property _:p ; sh:class :X .""",
    "inverse": """:S sh:targetClass :P ; sh:node :T ; sh:property
        [ sh:path [ sh:inversePath :p ] ; sh:node :S ] .""",
    "itself": ":S sh:targetClass :P ; sh:node :S, :T .",
    "another": """:R sh:targetClass :P ; sh:node :S .
        :S sh:node :T ; sh:property [ sh:path :p ; sh:node :S ] .""",
}


@pytest.mark.parametrize("name", RECURSIVE)
def test_recursion_of_every_kind(name: str) -> None:
    given = shapes(RECURSIVE[name] + ":T sh:property [ sh:path :name ; sh:minCount 1 ] .")
    assert wrong(":a a :P ; :name 1 .", given) == []
    assert {focus for focus, _, _ in wrong(":a a :P .", given)} == {"a"}


def test_a_circle_of_properties_names_the_shapes_as_they_are() -> None:
    given = shapes(RECURSIVE["property"])
    found = wrong(":a a :P ; :p :b . :b a :X ; :p :c . :c a :X ; :p :d .", given)
    assert found == []
    assert wrong(":a a :P ; :p :b . :b a :X ; :p :c .", given) == [("b", "Class", "_:p")]


def test_copies_have_no_targets() -> None:
    assert [shape.node for shape in shapes(PERSON).targeted] == [NamedNode(EX + "S")]
