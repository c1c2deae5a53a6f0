"""What `validate` reports, beyond what the W3C suite and pySHACL agree on."""

import logging
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from pyoxigraph import BlankNode, Literal, NamedNode, Quad, Store, Triple

from graphdb.errors import EvaluationFailed, QueryTimeout
from graphdb.shacl.data_graph import UNION_GRAPH
from graphdb.shacl.pyshacl_engine import pyshacl_results
from graphdb.shacl.report import ValidationReport, report_json
from graphdb.shacl.shacl_names import Term, sh
from graphdb.shacl.shapes import Shapes
from graphdb.shacl.validation import Engine, validate
from tests.unit.shacl.texts import EX, data, shapes

A, S = NamedNode(EX + "a"), NamedNode(EX + "S")
TWO, THREE, SEVEN = (f'"{number}"^^<http://www.w3.org/2001/XMLSchema#integer>' for number in (2, 3, 7))
TRUE = '"true"^^<http://www.w3.org/2001/XMLSchema#boolean>'
FUNCTION = """:isOne a sh:SPARQLFunction ; sh:parameter [ sh:path :x ] ; sh:returnType xsd:boolean ;
    sh:ask "ASK { FILTER($x = 1) }" ."""

DECLARED = ':o sh:declare [ sh:prefix "" ; sh:namespace "http://example.org/" ] .'


def focus_nodes(report: ValidationReport) -> list[str]:
    return [str(result.focus_node).replace(EX, "") for result in report.results]


def values(report: ValidationReport) -> list[str]:
    return [str(result.value).replace(EX, "") for result in report.results]


def messages(report: ValidationReport) -> list[str]:
    return [message.value for result in report.results for message in result.messages]


def on(turtle: str, shape: str, **options: Any) -> ValidationReport:
    """The report on one shape, :S."""
    return validate(data(turtle), None, shapes(f":S {shape}"), **options)


# Which values match which datatype, where the store keeps another one.
DERIVED = {
    "xsd:byte": ({'"127"^^xsd:byte', "-128"}, {"128", '"x"^^xsd:byte', "1.0", '"1"'}),
    "xsd:unsignedByte": ({"0", "255"}, {"256", "-1"}),
    "xsd:nonNegativeInteger": ({"0", "99999999999999999999999999"}, {"-1", "-99999999999999999999999999"}),
    "xsd:positiveInteger": ({"1"}, {"0"}),
    "xsd:negativeInteger": ({"-1", "-99999999999999999999999999"}, {"0", "99999999999999999999999999"}),
    "xsd:unsignedLong": ({"18446744073709551615", "9223372036854775808"}, {"18446744073709551616"}),
    "xsd:long": ({"9223372036854775807"}, {"9223372036854775808"}),
    "xsd:integer": ({"1", "99999999999999999999999999"}, {"1.5", '"x"^^xsd:integer', ":iri", "[]"}),
    "xsd:decimal": ({"1.5", "99999999999999999999999999.5"}, {"1", '"x"^^xsd:decimal'}),
    "xsd:dateTimeStamp": (
        {'"2020-01-01T00:00:00Z"^^xsd:dateTimeStamp', '"2020-01-01T00:00:00+01:00"^^xsd:dateTime'},
        {'"2020-01-01T00:00:00"^^xsd:dateTime'},
    ),
    "xsd:date": ({'"2020-01-31"^^xsd:date'}, {'"2020-01-32"^^xsd:date', '"2020-01-31"'}),
    "xsd:duration": ({'"P1D"^^xsd:duration'}, {'"one day"^^xsd:duration'}),
    "rdf:langString": ({'"a"@en'}, {'"a"'}),
    "xsd:anyURI": ({'"any text"^^xsd:anyURI'}, {'"any text"', ":iri"}),
}


@pytest.mark.parametrize("engine", ["compiled", "pyshacl"])
@pytest.mark.parametrize("datatype", DERIVED)
def test_datatypes(datatype: str, engine: Engine) -> None:
    logging.getLogger("rdflib").setLevel(logging.CRITICAL)
    good, bad = DERIVED[datatype]
    if (
        engine == "pyshacl"
    ):  # it takes no large number for ill-typed; the store's own rounding is not its matter
        good, bad = ({each for each in part if len(each) < 25 and "e7" not in each} for part in (good, bad))
    triples = " ".join(
        f":n{number} :p {value} ." for number, value in enumerate([*sorted(good), *sorted(bad)])
    )
    report = on(triples, f"sh:targetSubjectsOf :p ; sh:path :p ; sh:datatype {datatype} .", engine=engine)
    assert sorted(focus_nodes(report)) == sorted(f"<n{len(good) + number}>" for number in range(len(bad)))
    assert {result.component for result in report.results} <= {sh("DatatypeConstraintComponent")}


def test_long_lists_and_many_subclasses_are_asked_of_python() -> None:
    members = " ".join(map(str, range(300)))
    report = on(":a :p 299, 300, _:x .", f"sh:targetNode :a ; sh:path :p ; sh:in ( {members} ) .")
    assert values(report) == ['"300"^^<http://www.w3.org/2001/XMLSchema#integer>', "_:x"]
    classes = " ".join(f":C{number} rdfs:subClassOf :C ." for number in range(60))
    report = on(
        f"{classes} :a :p :b, :c . :b a :C59 .", "sh:targetNode :a ; sh:path :p ; sh:not [ sh:class :C ] ."
    )
    assert values(report) == ["<b>"]


def test_a_catastrophic_pattern_is_none_for_the_engine() -> None:
    text = "a" * 5_000
    report = on(f':a :p "{text}b" .', 'sh:targetNode :a ; sh:path :p ; sh:pattern "^(a+)+$" .')
    assert len(report.results) == 1


def test_a_deep_chain_of_shapes() -> None:
    turtle = "".join(f":S{n} sh:property [ sh:path :p ; sh:node :S{n + 1} ] .\n" for n in range(15))
    chain = " ".join(f":n{n} :p :n{n + 1} ." for n in range(16))
    found = shapes(f"{turtle} :S0 sh:targetNode :n0 . :S15 sh:property [ sh:path :q ; sh:minCount 1 ] .")
    assert focus_nodes(validate(data(chain), None, found)) == ["<n0>"]
    assert validate(data(chain + ":n15 :q 1 ."), None, found).conforms


def test_triple_terms_are_of_no_kind() -> None:
    report = on(
        ":a :p <<( :S :p :o )>>, :b .", "sh:targetNode :a ; sh:path :p ; sh:nodeKind sh:BlankNodeOrIRI ."
    )
    assert [result.value for result in report.results] == [
        Triple(S, NamedNode(EX + "p"), NamedNode(EX + "o"))
    ]


def test_triple_terms_as_focus_nodes() -> None:
    report = on(":a :p <<( :S :p :o )>> .", "sh:targetObjectsOf :p ; sh:nodeKind sh:IRI .")
    [result] = report_json(report, 0)["results"]
    assert result["focusNode"] == f"<<( <{EX}S> <{EX}p> <{EX}o> )>>"


def test_blank_focus_nodes() -> None:
    turtle = "_:x a :A ; :p _:y . _:y :q 1 . _:z a :A ."
    shape = """sh:targetClass :A ; sh:property [ sh:path :p ; sh:minCount 1 ; sh:node [ sh:property :Q ] ] .
        :Q sh:path :q ; sh:minCount 2 ."""
    assert focus_nodes(on(turtle, shape)) == ["_:x", "_:z"]
    assert focus_nodes(on(turtle, shape, focus=[BlankNode("z"), A])) == ["_:z"]


def test_focus_is_what_is_a_target_among_the_given() -> None:
    report = on(":a :p 1 . :b :p 2 .", "sh:targetSubjectsOf :p ; sh:closed true .", focus=[A, Literal("a")])
    assert focus_nodes(report) == ["<a>"]
    assert report.focus_nodes_validated == 1
    assert on(":a :p 1 .", "sh:targetSubjectsOf :p ; sh:closed true .", focus=[]).conforms


def test_a_node_that_the_graph_does_not_hold_is_its_own_value() -> None:
    shape = "sh:targetNode :absent, 7 ; sh:path [ sh:zeroOrMorePath :p ] ; {} ."
    assert values(on("", shape.format("sh:class :A"))) == [
        SEVEN,
        "<absent>",
    ]
    assert focus_nodes(on("", shape.format("sh:hasValue :absent"))) == [SEVEN]
    assert on("", shape.format("sh:minCount 1 ; sh:maxCount 1")).conforms


def test_graphs() -> None:
    store = Store()
    for name, node in (("g", "a"), ("h", "b")):
        quad = NamedNode(EX + node), NamedNode(EX + "p"), Literal("x")
        store.add(Quad(*quad, NamedNode(EX + name)))
    found = shapes(":S sh:targetSubjectsOf :p ; sh:closed true .")
    assert focus_nodes(validate(store, None, found)) == []
    assert focus_nodes(validate(store, NamedNode(EX + "g"), found)) == ["<a>"]
    assert focus_nodes(validate(store, UNION_GRAPH, found)) == ["<a>", "<b>"]


def test_the_stats() -> None:
    report = validate(
        data(":a a :A ; :p 1 . :b a :A, :B ."),
        None,
        shapes(
            """:S sh:targetClass :A ; sh:class :A ; sh:property [ sh:path :p ; sh:minCount 1 ; sh:in ( 2 ) ] ;
            sh:severity sh:Info ; sh:not [ sh:class :C ; sh:deactivated true ] .
            :T sh:targetClass :B, :C ; sh:class :C ; sh:severity sh:Warning .
            :U sh:targetClass :D ; sh:class :E ."""
        ),
    )
    json = report_json(report, 12)
    assert json["stats"] == {
        "focus_nodes_validated": 2,
        "constraints_checked": 5,  # :U has no focus node, and what is deactivated has no constraints
        "violations": 2,
        "warnings": 1,
        "infos": 2,
        "duration_ms": 12,
    }
    assert json["conforms"] is False


def test_messages_are_the_shapes_own() -> None:
    shape = """sh:targetNode :a ; sh:path :p ; sh:maxLength 1 ;
        sh:message "{$this} has {?value} by {$path}, {$unknown}", "{?value} zu lang"@de ."""
    [result] = on(':a :p "long" .', shape).results
    assert set(result.messages) == {
        Literal(f"{EX}a has long by <{EX}p>, {{$unknown}}"),
        Literal("long zu lang", language="de"),
    }


def test_messages_without_any_say_what_is_asked_for() -> None:
    [message] = messages(on(":a :p 1, 2 .", "sh:targetNode :a ; sh:path :p ; sh:maxCount 1 ."))
    assert message == "must have 1 value at most"


def test_sparql_constraints() -> None:
    shape = """sh:targetNode :a, :b ; sh:message "unused"@fr ; sh:sparql [
        sh:message "{?value} of {$this} by {?path}: {?why}" ;
        sh:select "SELECT $this ?value ?path ('why' AS ?why) { $this ?path ?value FILTER(?value > 1) }" ] ."""
    turtle = ":a :p 1, 2 . :b :q 3 ."
    report = on(turtle, shape)
    assert messages(report) == ["unused", "unused"]  # a message of the shape goes before
    report = on(turtle, shape.replace('sh:message "unused"@fr ;', ""))
    assert messages(report) == [
        f"2 of {EX}a by {EX}p: why",
        f"3 of {EX}b by {EX}q: why",
    ]
    assert [result["resultPath"] for result in report_json(report, 0)["results"]] == [EX + "p", EX + "q"]
    assert {result.source_constraint for result in report.results} != {None}


def test_sparql_may_say_the_message_and_the_failure() -> None:
    select = "SELECT $this ?message ?failure {{ BIND({} AS ?message) BIND({} AS ?failure) }}"
    shape = 'sh:targetNode :a ; sh:sparql [ sh:select "{}" ] .'
    report = on("", shape.format(select.format("'said'", "false")))
    assert messages(report) == ["said"]
    with pytest.raises(EvaluationFailed, match="reports a failure"):
        on("", shape.format(select.format("'said'", "true")))


def test_comments_in_sparql_end_with_their_line() -> None:
    shape = """sh:targetNode :a ; sh:sparql [ sh:select \'\'\'# SELECT
        SELECT $this # $this {
        { $this ?p ?x } # the end\'\'\' ] ."""
    assert focus_nodes(on(":a :p 1 .", shape)) == ["<a>"]
    ask = "ASK # ASK {\n WHERE { FILTER($value = $wanted) } # x"
    component = f"{COMPONENT} sh:validator [ sh:ask '''{ask}''' ] ."
    assert values(on(":a :p 1, 2 .", f"sh:targetNode :a ; sh:path :p ; :wanted 1 . {component}")) == [TWO]


def test_pre_binding_reaches_everywhere() -> None:
    select = """SELECT $this (COUNT(?x) AS ?value) {
        { SELECT $this ?x { { $this :p ?x } UNION { BIND($this AS ?x) } FILTER(?x != $this) } }
        FILTER EXISTS { FILTER(isIRI($this)) } OPTIONAL { ?y :p ?x FILTER(?y = $this) }
    } GROUP BY $this HAVING (COUNT(?x) > 1)"""
    shape = (
        f'sh:targetSubjectsOf :p ; sh:sparql :C . :C sh:select """{select}""" ; sh:prefixes :o . {DECLARED}'
    )
    report = on(":a :p 1, 2 . :b :p 1 . _:x :p 1, 2 .", shape)
    assert focus_nodes(report) == ["<a>"]
    assert values(report) == [TWO]


# What a result says where the shape says nothing.
USUAL_MESSAGES = {
    "sh:minInclusive 5": "must be >= 5",
    "sh:maxExclusive 0.5": "must be < 0.5",
    'sh:hasValue "2020-01-01"^^xsd:date': 'must have the value "2020-01-01"^^xsd:date',
    'sh:in ( true "b" :c "d"@en )': 'must be one of true, "b", <http://example.org/c>, "d"@en',
    "sh:class rdfs:Class": "must be an instance of rdfs:Class",
    "sh:or ( :T [ sh:nodeKind sh:IRI ] )": "must conform to one at least of the 2 shapes within",
    "sh:and ( [ sh:nodeKind sh:IRI ] )": "must conform to all of the shape within",
    "sh:xone ( :T )": "must conform to exactly one of <http://example.org/T>",
    "sh:not [ sh:nodeKind sh:Literal ]": "must not conform to the shape within",
}


@pytest.mark.parametrize("engine", ["compiled", "pyshacl"])
@pytest.mark.parametrize("constraint", USUAL_MESSAGES)
def test_usual_messages(constraint: str, engine: Engine) -> None:
    report = on("", f"sh:targetNode 1 ; {constraint} . :T sh:nodeKind sh:IRI .", engine=engine)
    assert messages(report) == [USUAL_MESSAGES[constraint]]


def test_sparql_is_written_for_the_engine() -> None:
    """What the engine reads otherwise, or only in one spelling, beside what is projected besides."""
    star = "SELECT * { $this :p ?value FILTER(?value IN (TRUE, 2) && COALESCE (?value, 1) != 3) }"
    joined = (
        "SELECT $this (GROUP_CONCAT(?o) AS ?value) { $this :q ?o FILTER($currentShape = :S) } GROUP BY $this"
    )
    ask = "ASK { FILTER($value IN (FALSE, $wanted) && COALESCE ($currentShape, 1) = :S) }"
    queries = ", ".join(f'[ sh:select "{select}" ; sh:prefixes :o ]' for select in (star, joined))
    shape = f"sh:targetNode :a ; sh:sparql {queries} . {DECLARED}"
    assert sorted(values(on(':a :p true, 2, 3 ; :q "x"@en .', shape))) == [TWO, TRUE, '"x"']
    component = COMPONENT + f'sh:validator [ sh:ask "{ask}" ; sh:prefixes :o ] . {DECLARED}'
    assert values(on(":a :p 1, 2 .", f"sh:targetNode :a ; sh:path :p ; :wanted 1 . {component}")) == [TWO]


# Of a triple that stands in two graphs: queries that would notice it, and one that would not.
COUNTING = {
    "COUNT": "SELECT $this { $this :p ?o } GROUP BY $this HAVING (COUNT(?o) > 1)",
    "SUM": "SELECT $this { { SELECT $this (SUM(?o) AS ?n) { $this :p ?o } GROUP BY $this } FILTER(?n > 1) }",
    "OFFSET": "SELECT $this { $this :p ?o } OFFSET 1",
    "none": "SELECT $this { $this :p ?o FILTER(?o > 1) }",
}


@pytest.mark.parametrize("select", COUNTING.values(), ids=list(COUNTING))
def test_sparql_counts_a_triple_of_two_graphs_once(select: str) -> None:
    shape = shapes(f':S sh:targetNode :a ; sh:sparql [ sh:select "{select}" ; sh:prefixes :o ] . {DECLARED}')
    store = data(":a :p 1 .")
    store.add(Quad(A, NamedNode(EX + "p"), Literal(1), NamedNode(EX + "g")))
    assert validate(store, UNION_GRAPH, shape).conforms
    store.add(Quad(A, NamedNode(EX + "p"), Literal(2), NamedNode(EX + "h")))
    assert focus_nodes(validate(store, UNION_GRAPH, shape)) == ["<a>"]


def test_sparql_that_counts_can_still_name_the_graphs_of_the_union() -> None:
    select = "SELECT $this (COUNT(*) AS ?value) { GRAPH ?g { $this :p ?o } } GROUP BY $this"
    shape = shapes(f':S sh:targetNode :a ; sh:sparql [ sh:select "{select}" ; sh:prefixes :o ] . {DECLARED}')
    store = data(":a :p 1 .")
    store.extend(Quad(A, NamedNode(EX + "p"), Literal(1), NamedNode(EX + name)) for name in "gh")
    assert values(validate(store, UNION_GRAPH, shape)) == [TWO]


COMPONENT = """:C a sh:ConstraintComponent ; sh:message "{$value} is not {$wanted}" ;
    sh:parameter [ sh:path :wanted ], [ sh:path :other ; sh:optional true ] ; """


def test_components_by_ask() -> None:
    component = COMPONENT + 'sh:validator [ sh:ask "ASK { FILTER($value = $wanted || $value = $other) }" ] .'
    report = on(":a :p 1, 2, 3 .", f"sh:targetNode :a ; sh:path :p ; :wanted 1 ; :other 2 . {component}")
    assert values(report) == [THREE]
    assert messages(report) == ["3 is not 1"]
    report = on(":a :p 1, 2 .", f"sh:targetNode :a ; sh:path :p ; :wanted 1 . {component}")
    assert values(report) == [TWO]


def test_components_by_select() -> None:
    select = "SELECT $this ?value { $this $PATH ?value FILTER(?value != $wanted) }"
    component = COMPONENT + f'sh:propertyValidator [ sh:select "{select}" ] .'
    report = on(
        ":a :p 1 ; :q 2 .",
        "sh:targetNode :a ; sh:path [ sh:alternativePath ( :p :q ) ] ; :wanted 1 . " + component,
    )
    assert values(report) == [TWO]
    assert {result.component for result in report.results} == {NamedNode(EX + "C")}


def test_a_blank_node_as_a_parameter() -> None:
    component = COMPONENT + 'sh:validator [ sh:ask "ASK { FILTER(isBlank($wanted)) }" ] .'
    assert on("", f"sh:targetNode :a ; :wanted [] . {component}").conforms
    assert not on("", f"sh:targetNode :a ; :wanted :b . {component}").conforms


def test_targets_in_sparql() -> None:
    shape = """sh:closed true ; sh:target [ sh:select "SELECT ?this { ?this ?p 1 }" ], [ a :With ; :of :b ] .
        :With a sh:SPARQLTargetType ; sh:parameter [ sh:path :of ] ;
            sh:select "SELECT ?this { ?this ?p $of }" ."""
    assert focus_nodes(on(":a :p 1 . :b :p 2 . :c :p :b .", shape)) == ["<a>", "<c>"]


def test_sparql_that_looks_at_the_shapes() -> None:
    select = "SELECT $this { GRAPH $shapesGraph { $currentShape <http://example.org/level> 3 } }"
    shape = f'sh:targetNode :a ; :level 3 ; sh:sparql [ sh:select "{select}" ] .'
    assert focus_nodes(on(":x :y :z .", shape)) == ["<a>"]
    assert on(":x :y :z .", shape.replace(":level 3", ":level 4")).conforms


def test_sparql_may_compute_with_geometries() -> None:
    geo = "http://www.opengis.net/ont/geosparql#"
    select = """SELECT $this ?value { $this ?p ?value FILTER(!<http://www.opengis.net/def/function/geosparql/sfWithin>(
        ?value, 'POLYGON((0 0, 2 0, 2 2, 0 2, 0 0))'^^<http://www.opengis.net/ont/geosparql#wktLiteral>)) }"""
    report = on(
        f':a :p "POINT(1 1)"^^<{geo}wktLiteral> . :b :p "POINT(3 1)"^^<{geo}wktLiteral> .',
        f'sh:targetSubjectsOf :p ; sh:sparql [ sh:select """{select}""" ] .',
    )
    assert focus_nodes(report) == ["<b>"]


# What the compiled engine leaves to pySHACL, all of it of SHACL-AF; nothing of the W3C suite is among it.
FALLBACKS = {
    "sh:expression": "sh:targetNode :a ; sh:expression [ :isOne ( [ sh:path :p ] ) ] .",
    "sh:expression within": "sh:targetNode :a ; sh:not [ sh:node [ sh:expression [ :isOne ( 2 ) ] ] ] .",
    "a declared function in sh:sparql": f"""sh:targetNode :a ; sh:sparql [
        sh:select "SELECT $this {{ $this ?p ?x FILTER(<{EX}isOne>(?x)) }}" ] .""",
    "a declared function in a component": f"""sh:targetNode :a ; :wanted 1 . :C a sh:ConstraintComponent ;
        sh:parameter [ sh:path :wanted ] ; sh:validator [ a sh:SPARQLAskValidator ;
            sh:ask "ASK {{ FILTER(<{EX}isOne>($wanted)) }}" ] .""",
}


@pytest.mark.parametrize("name", FALLBACKS)
def test_what_is_left_to_pyshacl(name: str) -> None:
    store, given = data(":a :p 1 ."), shapes(f":S {FALLBACKS[name]} {FUNCTION}")
    with pytest.raises(EvaluationFailed, match="cannot be compiled"):
        validate(store, None, given, engine="compiled")
    assert validate(store, None, given) == validate(store, None, given, engine="pyshacl")


def test_only_shapes_that_need_it_are_left_to_pyshacl(monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[str] = []

    def noting(graph: Any, given: Shapes, focus: Mapping[Any, Iterable[Term]]) -> Iterable[Any]:
        left.extend(str(node).replace(EX, "") for node in focus)
        return original(graph, given, focus)

    original = pyshacl_results
    monkeypatch.setattr("graphdb.shacl.validation.pyshacl_results", noting)
    found = shapes(
        f""":Plain sh:targetSubjectsOf :p ; sh:class :A . {FUNCTION}
        :By sh:targetSubjectsOf :p ; sh:property [ sh:path :p ; sh:node :One ] .
        :One sh:expression [ :isOne ( sh:this ) ] .
        :Calls sh:targetSubjectsOf :p ; sh:sparql [
            sh:select "SELECT $this {{ $this <{EX}p> ?x FILTER(!<{EX}isOne>(?x)) }}" ] ."""
    )
    store = data(":a :p 1 . :b :p 2 .")
    report = validate(store, None, found)
    assert set(left) == {"<By>", "<Calls>"}
    assert sorted(focus_nodes(report)) == ["<a>", "<b>", "<b>", "<b>"]
    with pytest.raises(EvaluationFailed, match="cannot be compiled"):
        validate(store, None, found, engine="compiled")


@pytest.mark.parametrize(
    ("expression", "count"),
    [
        ("[ :isOne ( [ sh:path :p ] ) ]", 1),
        ("[ :isOne ( [ sh:path [ sh:zeroOrMorePath :p ] ] ) ]", 2),
        ("[ :isOne ( [ sh:union ( [ sh:path :p ] 1 ) ] ) ]", 1),
        ("[ :looks ( sh:this ) ]", 4),
        ("[ :unknown ( sh:this ) ]", 4),
    ],
)
def test_pyshacl_gets_what_an_expression_looks_at(
    expression: str, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Any] = []

    def noting(*, data: Any, **others: Any) -> Any:
        given.extend(data)
        raise EvaluationFailed("enough")

    monkeypatch.setattr("graphdb.shacl.pyshacl_engine._validate", noting)
    looking = """:looks a sh:SPARQLFunction ; sh:parameter [ sh:path :x ] ;
        sh:ask "ASK { $x ?p ?o }" ."""
    with pytest.raises(EvaluationFailed, match="enough"):
        on(
            ":a :p :b . :b :p :c . :c :q 1 . :d :p 1 .",
            f"sh:targetNode :a ; sh:expression {expression} . {FUNCTION} {looking}",
        )
    assert len(given) == count


def test_pyshacl_calls_nobody() -> None:
    """What would get through our reading in a function's body does not get through rdflib."""
    body = "SELECT ?x WHERE { SERVICE <http://127.0.0.1:9/> { ?x ?y ?z } }"
    function = f""":f a sh:SPARQLFunction ; sh:parameter [ sh:path :x ] ; sh:returnType xsd:boolean ;
        sh:select "{body}" ."""
    with pytest.raises(EvaluationFailed, match="SERVICE is not allowed"):
        on(":a :p 1 .", f"sh:targetNode :a ; sh:expression [ :f ( sh:this ) ] . {function}")


def test_the_deadline_is_asked_between_queries() -> None:
    asked = 0

    def check() -> None:
        nonlocal asked
        asked += 1
        if asked > 3:
            raise QueryTimeout("past the time limit")

    turtle = "sh:targetNode :a ; " + " ; ".join(
        f"sh:property [ sh:path :p{n} ; sh:minCount 1 ]" for n in range(9)
    )
    with pytest.raises(QueryTimeout):
        on("", f"{turtle} .", check=check)
    assert asked == 4


AWKWARD = [
    '"quote \\" and \\\\ and \\n\\r\\t\\b\\f and \\u0001 and 😀"',
    '"ar"@ar--rtl',
    '"tagged"@de-ch-1996',
    '"x"^^<http://example.org/%20type>',
    '"2020-01-01T00:00:00+05:30"^^xsd:dateTime',
    '"-INF"^^xsd:double',
    '"P1DT2H"^^xsd:dayTimeDuration',
    "<http://example.org/ü?a=b&c='d'>",
    '"' + "long " * 500 + '"',
]


@pytest.mark.parametrize("term", AWKWARD, ids=range(len(AWKWARD)))
def test_awkward_terms_are_the_same_in_shapes_and_data(term: str) -> None:
    turtle = f":a :p {term} ."
    shape = "sh:targetNode :a ; sh:path :p ; {} ."
    assert on(turtle, shape.format(f"sh:in ( {term} )")).conforms
    assert on(turtle, shape.format(f"sh:hasValue {term}")).conforms
    assert not on(turtle, shape.format(f"sh:not [ sh:in ( {term} ) ]")).conforms
    assert focus_nodes(on(":a :p 1 .", f"sh:targetNode {term} ; sh:in ( 1 ) ."))[0] != ""
    assert on(turtle, f"sh:targetNode {term} ; sh:path [ sh:inversePath :p ] ; sh:hasValue :a .").conforms
