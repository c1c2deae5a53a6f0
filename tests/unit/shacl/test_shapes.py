"""What is wrong with shapes is told with its place; what is right is read."""

import pickle
import re

import pytest
from pyoxigraph import Literal, NamedNode

from graphdb.errors import MalformedShapes
from graphdb.shacl.paths import path_text
from graphdb.shacl.shacl_names import sh
from graphdb.shacl.shape_tree import ClassConstraint, ClassTarget, CountConstraint, InConstraint
from graphdb.shacl.shapes import read_shapes, readable_shapes
from tests.unit.shacl.texts import EX, shapes, triples

S = NamedNode(EX + "S")

MALFORMED = {
    "minCount is no number": (":S sh:path :p ; sh:minCount :x .", "sh:minCount of <{}S>", "an integer"),
    "negative maxCount": (":S sh:path :p ; sh:maxCount -1 .", "sh:maxCount of <{}S>", "an integer from 0 on"),
    "two minCounts": (":S sh:path :p ; sh:minCount 1, 2 .", "sh:minCount of <{}S>", "has 2 values"),
    "minCount of a node shape": (":S sh:minCount 1 .", "sh:minCount of <{}S>", "is for property shapes"),
    "no such kind": (":S sh:nodeKind sh:Iri .", "sh:nodeKind of <{}S>", "must be one of sh:IRI"),
    "class is a literal": (':S sh:class "A" .', "sh:class of <{}S>", 'must be an IRI, not "A"'),
    "two datatypes": (":S sh:datatype :a, :b .", "sh:datatype of <{}S>", "has 2 values"),
    "severity": (':S sh:targetNode :a ; sh:severity "high" .', "sh:severity of <{}S>", "must be an IRI"),
    "deactivated": (":S sh:targetNode :a ; sh:deactivated 1 .", "sh:deactivated of <{}S>", "true or false"),
    "message": (":S sh:targetNode :a ; sh:message :m .", "sh:message of <{}S>", "must be a string"),
    "target": (":S sh:targetClass 1 .", "sh:targetClass of <{}S>", "must be an IRI"),
    "blank target": (":S sh:targetNode _:x .", "sh:targetNode of <{}S>", "cannot be _:x"),
    "another kind of target": (":S sh:target [ a :T ] .", "sh:target of <{}S>", "none that is offered"),
    "property without path": (":S sh:property [ sh:minCount 1 ] .", "sh:property of <{}S>", "has no sh:path"),
    "node with path": (":S sh:node [ sh:path :p ] .", "sh:node of <{}S>", "must be a node shape"),
    "node shape with path": (":S a sh:NodeShape ; sh:path :p .", "sh:path of <{}S>", "this is a node shape"),
    "property shape without path": (":S a sh:PropertyShape .", "sh:path of <{}S>", "is missing"),
    "two paths": (":S a sh:PropertyShape ; sh:path :p, :q .", "sh:path of <{}S>", "has 2 values"),
    "path is a literal": (':S a sh:PropertyShape ; sh:path "p" .', "sh:path of <{}S>", "a blank node"),
    "path is nothing": (":S a sh:PropertyShape ; sh:path [] .", "sh:path of <{}S>", "is no path"),
    "two kinds of path": (
        ":S a sh:PropertyShape ; sh:path [ sh:inversePath :p ; sh:oneOrMorePath :p ] .",
        "sh:path of <{}S>",
        "more than one path",
    ),
    "sequence of one": (
        ":S a sh:PropertyShape ; sh:path ( :p ) .",
        "sh:path of <{}S>",
        "two members or more",
    ),
    "path in a circle": (
        ":S a sh:PropertyShape ; sh:path _:a . _:a sh:inversePath _:b . _:b sh:inversePath _:a .",
        "sh:path of <{}S>",
        "leads back to itself",
    ),
    "list in a circle": (
        ":S sh:in _:a . _:a rdf:first 1 ; rdf:rest _:a .",
        "sh:in of <{}S>",
        "this one is a circle",
    ),
    "list without end": (":S sh:in _:a . _:a rdf:first 1 .", "sh:in of <{}S>", "well-formed list"),
    "list is a literal": (":S sh:in 1 .", "sh:in of <{}S>", "must be a list"),
    "blank node in a list": (":S sh:in ( [] ) .", "sh:in of <{}S>", "IRIs and literals"),
    "no shapes in or": (":S sh:or () .", "sh:or of <{}S>", "one shape at least"),
    "literal in or": (":S sh:or ( 1 ) .", "sh:or of <{}S>", "must be an IRI or a blank node"),
    "message is a number": (
        ":S sh:targetNode :a ; sh:message 1 .",
        "sh:message of <{}S>",
        "must be a string",
    ),
    "pattern is a number": (":S sh:pattern 1 .", "sh:pattern of <{}S>", "must be a string"),
    "empty sequence": (":S a sh:PropertyShape ; sh:path () .", "sh:path of <{}S>", "two members or more"),
    "languages are numbers": (":S sh:languageIn ( 1 ) .", "sh:languageIn of <{}S>", "a list of strings"),
    "languages": (":S sh:languageIn ( :en ) .", "sh:languageIn of <{}S>", "a list of strings"),
    "ignored": (
        ":S sh:closed true ; sh:ignoredProperties ( 1 ) .",
        "sh:ignoredProperties of",
        "list of IRIs",
    ),
    "qualified without count": (
        ":S sh:path :p ; sh:qualifiedValueShape [] .",
        "sh:qualifiedValueShape of <{}S>",
        "needs a sh:qualifiedMinCount",
    ),
    "pattern": (':S sh:pattern "(" .', "sh:pattern of <{}S>", "no pattern that the engine reads"),
    "look-ahead": (':S sh:pattern "^(?!a)" .', "sh:pattern of <{}S>", "no pattern that the engine reads"),
    "flags": (
        ':S sh:pattern "a" ; sh:flags "z" .',
        "sh:pattern of <{}S>",
        "no pattern that the engine reads",
    ),
    "recursion by not": (
        ":S sh:not :T . :T sh:property [ sh:path :p ; sh:node :S ] .",
        "<{}S>",
        "is recursive by sh:not",
    ),
    "recursion by not at once": (":S sh:not :S .", "<{}S>", "is recursive by sh:not"),
    "recursion by xone": (
        ":S sh:xone ( :T :S ) . :T sh:class :C .",
        "<{}S>",
        "is recursive by sh:not, sh:xone",
    ),
    "recursion by a count of at most": (
        "_:p sh:path :p ; sh:qualifiedValueShape :S ; sh:qualifiedMaxCount 1 . :S sh:property _:p .",
        "_:p (path <{}p>)",
        "a count of at most",
    ),
    "recursion by disjoint siblings": (
        """:S sh:property _:p, _:q . _:q sh:path :q ; sh:qualifiedValueShape :T ; sh:qualifiedMinCount 1 .
        _:p sh:path :p ; sh:qualifiedValueShape :S ; sh:qualifiedMinCount 1 ;
            sh:qualifiedValueShapesDisjoint true .""",
        "_:p (path <{}p>)",
        "a count of at most",
    ),
    "recursion with expressions": (
        ":S sh:targetClass :C ; sh:node :S ; sh:expression [ sh:path :p ] .",
        "<{}S>",
        "is recursive, or has a shape within it that is, and needs sh:expression",
    ),
    "syntax": (
        ':S sh:sparql [ sh:select "SELECT $this { $this ?p }" ] .',
        "sh:select of _:",
        "syntax error at line 1, column 25",
    ),
    "SPARQL without select": (":S sh:sparql [] .", "sh:select of _:", "is missing"),
    "no column this": (':S sh:sparql [ sh:select "SELECT ?x { ?x ?p $this }" ] .', "sh:select of", "?this"),
    "a star without this": (
        ':S sh:sparql [ sh:select "SELECT * { FILTER($this = 1) }" ] .',
        "sh:select of",
        "?this among its columns",
    ),
    "not a SELECT": (':S sh:sparql [ sh:select "ASK { $this ?p ?o }" ] .', "sh:select of", "a SELECT query"),
    "SERVICE": (
        ':S sh:sparql [ sh:select "SELECT $this { SERVICE <http://x/> { $this ?p ?o } }" ] .',
        "sh:select of",
        "must not use SERVICE",
    ),
    "FROM": (
        ':S sh:sparql [ sh:select "SELECT $this FROM <http://x/> { $this ?p ?o }" ] .',
        "sh:select of",
        "must not use FROM",
    ),
    "PATH of a node shape": (
        ':S sh:sparql [ sh:select "SELECT $this { $this $PATH ?o }" ] .',
        "sh:select of",
        "only property shapes have",
    ),
    "prefix twice": (
        """:S sh:sparql [ sh:prefixes :o ; sh:select "SELECT $this { $this ?p ?o }" ] .
        :o sh:declare [ sh:prefix "x" ; sh:namespace "http://a/" ] ;
            sh:declare [ sh:prefix "x" ; sh:namespace "http://b/" ] .""",
        "sh:prefixes of",
        "declares 'x' twice",
    ),
    "prefix that is none": (
        """:S sh:sparql [ sh:prefixes :o ; sh:select "SELECT $this { $this ?p ?o }" ] .
        :o sh:declare [ sh:prefix "x> BASE" ; sh:namespace "http://a/" ] .""",
        "sh:declare of",
        "no prefix and namespace",
    ),
    "component without parameters": (
        ":C a sh:ConstraintComponent .",
        "sh:parameter of <{}C>",
        "one parameter",
    ),
    "component without validator": (
        ":C a sh:ConstraintComponent ; sh:parameter [ sh:path :max ] . :S :max 1 .",
        "sh:validator of <{}C>",
        "there is none for node shapes",
    ),
    "ASK with more": (
        """:C a sh:ConstraintComponent ; sh:parameter [ sh:path :max ] ; sh:validator [
            sh:ask "ASK { $this ?p ?o } GROUP BY ?p" ] . :S :max 1 .""",
        "sh:ask of",
        "must end with its pattern",
    ),
    "reserved parameter": (
        ":C a sh:ConstraintComponent ; sh:parameter [ sh:path :this ] .",
        "sh:path of _:",
        "cannot be a variable's name",
    ),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed(name: str) -> None:
    turtle, place, reason = MALFORMED[name]
    with pytest.raises(MalformedShapes, match=re.escape(reason)) as caught:
        shapes(turtle)
    assert place.format(EX) in str(caught.value)


def test_the_place_of_a_shape_without_name_is_told_by_what_is_around_it() -> None:
    with pytest.raises(MalformedShapes) as caught:
        shapes(":S sh:property [ sh:path :age ; sh:or ( [ sh:minLength -1 ] ) ] .")
    told = f"sh:minLength of _:[0-9a-f]+, sh:or of _:[0-9a-f]+ \\(path <{EX}age>\\), sh:property of <{EX}S>:"
    assert re.search(told, str(caught.value))


def test_targets() -> None:
    found = shapes(
        """:S a rdfs:Class ; sh:targetNode :a, "b" ; sh:targetSubjectsOf :p ; sh:property [ sh:path :p ] .
        :T a owl:Class ; sh:closed true . :Sub rdfs:subClassOf rdfs:Class . :U a :Sub, sh:NodeShape .
        :Off sh:targetClass :A ; sh:deactivated true . :Without a sh:NodeShape ."""
    )
    assert {shape.node.value for shape in found.targeted} == {EX + "S", EX + "T", EX + "U"}
    assert len(found[S].targets) == 4
    assert ClassTarget(S) in found[S].targets


def test_constants_are_in_their_stored_form() -> None:
    [constraint] = shapes(':S sh:in ( 01 "1.0"^^xsd:decimal "5"^^xsd:byte ) .')[S].constraints
    integer, decimal = (
        NamedNode(f"http://www.w3.org/2001/XMLSchema#{name}") for name in ("integer", "decimal")
    )
    one, rounded, five = (
        Literal("1", datatype=integer),
        Literal("1", datatype=decimal),
        Literal("5", datatype=integer),
    )
    assert constraint == InConstraint((one, rounded, five))


def test_one_is_not_true() -> None:
    assert shapes(':S sh:closed "1"^^xsd:boolean .')[S].constraints == ()


def test_undefined_shapes_are_shapes_without_constraints() -> None:
    found = shapes(":S sh:node :Nowhere .")
    assert found[NamedNode(EX + "Nowhere")].constraints == ()


def test_shapes_stand_behind_those_they_refer_to() -> None:
    nodes = [node.value for node in shapes(":A sh:node :B . :B sh:node :C . :C sh:class :x .").by_node]
    assert nodes == [EX + "C", EX + "B", EX + "A"]


def test_shapes_pickle_as_their_triples() -> None:
    found = shapes(
        ":S sh:targetClass :A ; sh:property [ sh:path ( :p [ sh:inversePath :q ] ) ; sh:minCount 1 ] ."
    )
    copy = pickle.loads(pickle.dumps(found))
    assert copy.triples == found.triples
    assert copy.by_node == found.by_node


PATHS = {
    ":p": "<{}p>",
    "[ sh:inversePath :p ]": "^<{}p>",
    "[ sh:inversePath [ sh:inversePath :p ] ]": "^(^<{}p>)",
    "( :p :q )": "(<{}p>/<{}q>)",
    "[ sh:alternativePath ( :p [ sh:inversePath :q ] ) ]": "(<{}p>|^<{}q>)",
    "[ sh:zeroOrMorePath [ sh:inversePath :p ] ]": "(^<{}p>)*",
    "[ sh:inversePath [ sh:zeroOrMorePath :p ] ]": "^<{}p>*",
    "[ sh:oneOrMorePath [ sh:zeroOrOnePath :p ] ]": "(<{}p>?)+",
    "[ sh:zeroOrOnePath ( :p :q ) ]": "(<{}p>/<{}q>)?",
}


@pytest.mark.parametrize("turtle", PATHS)
def test_paths(turtle: str) -> None:
    shape = shapes(f":S a sh:PropertyShape ; sh:path {turtle} .")[S]
    assert shape.path is not None
    assert path_text(shape.path) == PATHS[turtle].replace("{}", EX)


def test_the_usual_prefixes_need_no_declaration() -> None:
    shapes(':S sh:sparql [ sh:select "SELECT $this { $this rdf:type rdfs:Class }" ] .')


MEANINGLESS = {
    "by itself": ":S sh:targetClass :C ; sh:minCount 1 .",
    "by its target": ":S sh:targetClass :C ; sh:targetNode [] .",
    "by a property": ":S sh:targetClass :C ; sh:property [ sh:path :p ; sh:pattern '(' ] .",
    "by what that refers to": ":S sh:targetClass :C ; sh:property [ sh:path :p ; sh:node [ sh:and () ] ] .",
    "by a path": ":S sh:targetClass :C ; sh:property [ sh:path ( :p ) ; sh:minCount 1 ] .",
    "by a list": ":S sh:targetClass :C ; sh:or _:l . _:l rdf:first :T ; rdf:rest _:l .",
    "by recursion": ":S sh:targetClass :C ; sh:node :T . :T sh:property [ sh:path :p ; sh:not :T ] .",
    "by SPARQL": ":S sh:targetClass :C ; sh:sparql [ sh:select 'SELECT' ] .",
    "by prefixes": """:S sh:targetClass :C ; sh:sparql _:s .
        _:s sh:select 'SELECT $this { $this a ?c }' ; sh:prefixes :o . :o sh:declare [ sh:prefix "x" ] .""",
    "by a component": """:S sh:targetClass :C ; :most 3 . :K a sh:ConstraintComponent ;
        sh:parameter [ sh:path :most ], [ sh:path "x" ] .""",
    "as a class": ":C a owl:Class ; sh:minCount 1 .",
}


@pytest.mark.parametrize("name", MEANINGLESS)
def test_what_means_nothing_leaves_the_other_shapes_as_they_are(name: str) -> None:
    good = ":Good sh:targetClass :D ; sh:property _:good . _:good sh:path :p ; sh:minCount 1 ."
    given = triples(MEANINGLESS[name] + good)
    with pytest.raises(MalformedShapes) as caught:
        read_shapes(given)
    read, [meaningless] = readable_shapes(given)
    assert str(meaningless.error) == str(caught.value)
    assert ClassTarget(NamedNode(EX + "C")) in meaningless.shape.targets
    assert read.targeted == shapes(good).targeted
    assert pickle.loads(pickle.dumps(read)).targeted == read.targeted


def test_a_shape_that_means_nothing_still_declares_prefixes() -> None:
    read, [meaningless] = readable_shapes(
        triples(
            """:o sh:targetClass :C ; sh:minCount 1 ; sh:declare _:d .
            _:d sh:prefix "e" ; sh:namespace "http://e/" . :Good sh:targetClass :D ; sh:sparql
            [ sh:prefixes :o ; sh:select "SELECT $this { $this e:p 1 }" ] ."""
        )
    )
    assert meaningless.shape.node == NamedNode(EX + "o")
    assert [shape.node for shape in read.targeted] == [NamedNode(EX + "Good")]


class TestHostile:
    """Refused, or read, within a second or two."""

    def test_deep_nesting(self) -> None:
        turtle = ":S sh:not " + "[ sh:not " * 2_000 + ":T" + " ]" * 2_000 + " ."
        with pytest.raises(MalformedShapes, match="more than 32 levels deep"):
            shapes(turtle)

    def test_shared_shapes_that_double_with_each_level(self) -> None:
        turtle = "".join(f":S{n} sh:node :S{n + 1} ; sh:and ( :S{n + 1} :S{n + 1} ) .\n" for n in range(30))
        with pytest.raises(MalformedShapes, match="in more than 20000 ways"):
            shapes(turtle)

    def test_a_long_circle_of_shapes(self) -> None:
        turtle = "".join(f":S{n} sh:node :S{(n + 1) % 20_000} .\n" for n in range(20_000))
        with pytest.raises(MalformedShapes, match="more than 32 levels deep"):
            shapes(turtle)

    def test_shapes_that_all_refer_to_each_other(self) -> None:
        names = " ".join(f":S{n}" for n in range(150))
        turtle = "".join(f":S{n} sh:and ( {names} ) ; sh:class :C{n} .\n" for n in range(150))
        read = shapes(turtle)
        assert len(read.by_node) == 300
        copies = [shape for shape in read.by_node.values() if shape.written]
        assert all([*map(type, shape.constraints)] == [ClassConstraint] for shape in copies)

    def test_many_shapes_of_which_none_means_anything(self) -> None:
        turtle = "".join(f":S{n} sh:targetClass :C ; sh:not :S{n} .\n" for n in range(10_000))
        read, meaningless = readable_shapes(triples(turtle))
        assert not read.by_node
        assert len(meaningless) == 10_000

    def test_a_deep_path(self) -> None:
        turtle = ":S a sh:PropertyShape ; sh:path " + "[ sh:inversePath " * 3_000 + ":p" + " ]" * 3_000 + " ."
        with pytest.raises(MalformedShapes, match="levels deep"):
            shapes(turtle)

    def test_a_path_that_would_be_planned_for_ever(self) -> None:
        path = ":p"
        for _ in range(12):
            path = f"[ sh:oneOrMorePath ( {path} :p ) ]"
        with pytest.raises(MalformedShapes, match="is too complex"):
            shapes(f":S a sh:PropertyShape ; sh:path {path} .")

    def test_a_long_path(self) -> None:
        with pytest.raises(MalformedShapes, match="is too complex"):
            shapes(f":S a sh:PropertyShape ; sh:path ( {':p ' * 500} ) .")

    def test_an_enormous_list(self) -> None:
        [constraint] = shapes(f":S sh:in ( {' '.join(map(str, range(20_000)))} ) .")[S].constraints
        assert isinstance(constraint, InConstraint)
        assert len(constraint.members) == 20_000

    def test_a_list_too_long(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("graphdb.shacl.shapes_graph.LIST_MEMBERS_MAX", 100)
        shapes(f":S sh:in ( {' '.join(map(str, range(100)))} ) .")
        with pytest.raises(MalformedShapes, match="more than 100 members"):
            shapes(f":S sh:in ( {' '.join(map(str, range(101)))} ) .")

    def test_a_huge_pattern(self) -> None:
        with pytest.raises(MalformedShapes, match="longer than 10000 characters"):
            shapes(f':S sh:pattern "{"a" * 20_000}" .')

    def test_a_pattern_that_unfolds(self) -> None:
        with pytest.raises(MalformedShapes, match="no pattern that the engine reads"):
            shapes(':S sh:pattern "((a{1000}){1000}){1000}" .')

    def test_a_query_that_the_gate_refuses(self) -> None:
        text = "SELECT $this { " + "OPTIONAL { $this ?p ?o } " * 200 + "}"
        with pytest.raises(MalformedShapes, match=r"security\.max_patterns"):
            shapes(f':S sh:sparql [ sh:select "{text}" ] .')

    def test_imports_in_a_circle(self) -> None:
        shapes(
            """:S sh:sparql [ sh:prefixes :o ; sh:select "SELECT $this { $this ?p ?o }" ] .
            :o owl:imports :o2 . :o2 owl:imports :o ."""
        )

    def test_classes_in_a_circle(self) -> None:
        shapes(":A rdfs:subClassOf :B . :B rdfs:subClassOf :A . :S a :A ; sh:class :B .")

    def test_large_counts(self) -> None:
        [constraint] = shapes(f":S sh:path :p ; sh:maxCount {10**30} .")[S].constraints
        assert constraint == CountConstraint(sh("MaxCountConstraintComponent"), most=10**30)

    def test_shapes_that_are_their_own_data(self) -> None:
        assert read_shapes(triples("")).targeted == ()
