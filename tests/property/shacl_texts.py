"""Random shapes as Turtle, and random data that they say something about: few terms, so that much collides.

Left out is what pySHACL evaluates otherwise than SHACL says, which stands with its reasons in
tests/unit/shacl/test_pyshacl_faults.py.
"""

from hypothesis import strategies as st
from pyoxigraph import Quad, RdfFormat, parse

__all__ = ["PREFIXES", "data_quads", "shapes_texts"]

PREFIXES = """\
@prefix : <http://example.org/> .
@prefix sh: <http://www.w3.org/ns/shacl#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
"""
NODES = [":a", ":b", ":c", "_:x", "_:y"]
CLASSES = [":A", ":B", ":C"]
LINKS = [":p", ":q", ":r"]
NUMBERS = ["0", "1", "2", "1.5", "-3", "1e0", '"1"^^xsd:byte', '"300"^^xsd:byte', '"many"^^xsd:integer']
STRINGS = ['"a"', '"ab"', '"a"@en', '"ab"@en', '"a"@de', '"b"@en-us', '""']
OTHERS = [
    '"2020-13-01"^^xsd:date',
    '"x"^^:own',
    '"2020-01-01T00:00:00Z"^^xsd:dateTime',
]
LITERALS = [*NUMBERS, *STRINGS, *OTHERS]


def data_quads() -> st.SearchStrategy[list[Quad]]:
    """Triples of the default graph. :n and :m have numbers that compare."""
    node, link = st.sampled_from(NODES), st.sampled_from(LINKS)
    value = st.sampled_from([*NODES, *LITERALS])
    triple = st.one_of(
        st.builds("{} {} {} .".format, node, link, value),
        st.builds("{} a {} .".format, node, st.sampled_from(CLASSES)),
        st.builds("{} {} {} .".format, node, st.sampled_from([":n", ":m"]), st.sampled_from(NUMBERS[:5])),
        st.builds("{} {} {} .".format, node, link, node),
    )
    classes = st.sampled_from(
        ["", ":B rdfs:subClassOf :A .", ":C rdfs:subClassOf :B . :B rdfs:subClassOf :A ."]
    )
    texts = st.tuples(classes, st.lists(triple, max_size=14)).map(
        lambda parts: "\n".join([parts[0], *parts[1]])
    )
    return texts.map(_quads)


def _quads(text: str) -> list[Quad]:
    document = (PREFIXES + text).encode()
    return list(parse(document, RdfFormat.TURTLE, rename_blank_nodes=False))


def paths() -> st.SearchStrategy[str]:
    """Without the inverse of a sequence, which pySHACL does not turn round."""
    link = st.sampled_from(LINKS)
    step = link | st.builds("[ sh:inversePath {} ]".format, link)
    repeated = st.builds(
        "[ sh:{} {} ]".format, st.sampled_from(["zeroOrMorePath", "oneOrMorePath", "zeroOrOnePath"]), step
    )
    alternative = st.builds("[ sh:alternativePath ( {} {} ) ]".format, step, link)
    inner = st.one_of(step, repeated, alternative)
    return st.one_of(link, link, step, inner, st.builds("( {} {} )".format, inner, inner))


def _lists(names: list[str], min_size: int = 0) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(names), min_size=min_size, max_size=3, unique=True).map(
        lambda members: f"( {' '.join(members)} )"
    )


def value_constraints() -> st.SearchStrategy[str]:
    """What any shape may say of each value."""
    kinds = ["IRI", "BlankNode", "Literal", "BlankNodeOrIRI", "BlankNodeOrLiteral", "IRIOrLiteral"]
    datatypes = [
        "integer",
        "string",
        "date",
        "dateTime",
        "boolean",
        "decimal",
        "double",
        "byte",
        "nonNegativeInteger",
    ]
    ranges = ["minInclusive", "minExclusive", "maxInclusive", "maxExclusive"]
    return st.one_of(
        st.builds("sh:class {}".format, st.sampled_from(CLASSES)),
        st.builds("sh:datatype xsd:{}".format, st.sampled_from(datatypes)),
        st.sampled_from(["sh:datatype rdf:langString", "sh:datatype :own"]),
        st.builds("sh:nodeKind sh:{}".format, st.sampled_from(kinds)),
        st.builds("sh:{} {}".format, st.sampled_from(ranges), st.sampled_from(NUMBERS[:5])),
        st.sampled_from(["sh:minLength 1", "sh:minLength 2", "sh:maxLength 1", "sh:maxLength 20"]),
        st.sampled_from(['sh:pattern "^a"', 'sh:pattern "B" ; sh:flags "i"', 'sh:pattern "example"']),
        st.builds("sh:languageIn {}".format, _lists(['"en"', '"de"'])),
        st.builds("sh:in {}".format, _lists([*NODES[:2], *LITERALS[:12]])),
        st.builds("sh:hasValue {}".format, st.sampled_from([*NODES[:2], *LITERALS[:12]])),
        st.builds("sh:closed true ; sh:ignoredProperties {}".format, _lists(["rdf:type", *LINKS])),
        st.builds("sh:{} {}".format, st.sampled_from(["equals", "disjoint"]), st.sampled_from(LINKS)),
    )


def shape_constraints(depth: int) -> st.SearchStrategy[str]:
    """What any shape may say by way of other shapes."""
    inner = anonymous_shapes(depth - 1)
    members = st.lists(inner, min_size=1, max_size=3).map(lambda shapes: f"( {' '.join(shapes)} )")
    return st.one_of(
        st.builds("sh:not {}".format, inner),
        st.builds("sh:{} {}".format, st.sampled_from(["and", "or", "xone"]), members),
        st.builds("sh:node {}".format, node_shapes(depth - 1)),
        st.builds("sh:property {}".format, property_shapes(depth - 1)),
    )


def _constraints(depth: int) -> st.SearchStrategy[list[str]]:
    kinds = [value_constraints()] + ([shape_constraints(depth)] if depth > 0 else [])
    return st.lists(st.one_of(*kinds), max_size=3).map(_without_seconds)


def _without_seconds(constraints: list[str]) -> list[str]:
    """Of what may be said once only, the first."""
    several = ("sh:class", "sh:not", "sh:and", "sh:or", "sh:xone", "sh:node ", "sh:property", "sh:hasValue")
    kept = {
        text if text.startswith((*several, "sh:equals", "sh:disjoint")) else text.split()[0]: text
        for text in reversed(constraints)
    }
    return list(kept.values())


def property_constraints(depth: int) -> st.SearchStrategy[str]:
    """What a property shape may say besides."""
    counts = st.builds("sh:{} {}".format, st.sampled_from(["minCount", "maxCount"]), st.integers(0, 2))
    qualified = st.builds(
        "sh:qualifiedValueShape {} ; sh:{} {} {}".format,
        anonymous_shapes(depth - 1) if depth > 0 else st.just("[ sh:class :A ]"),
        st.sampled_from(["qualifiedMinCount", "qualifiedMaxCount"]),
        st.integers(0, 2),
        st.sampled_from(["", "; sh:qualifiedValueShapesDisjoint true"]),
    )
    return st.one_of(counts, counts, qualified, st.just("sh:uniqueLang true"))


@st.composite
def property_shapes(draw: st.DrawFn, depth: int) -> str:
    """A property shape in brackets, with shapes within each other so many levels deep."""
    parts = [f"sh:path {draw(paths())}", *draw(_constraints(depth))]
    more = draw(st.lists(property_constraints(depth), max_size=2, unique_by=lambda text: text.split()[0]))
    parts += more
    if draw(st.integers(0, 12)) == 0:
        parts.append("sh:deactivated true")
    return f"[ {' ; '.join(parts)} ]"


@st.composite
def node_shapes(draw: st.DrawFn, depth: int) -> str:
    """A node shape in brackets."""
    parts = draw(_constraints(depth))
    if draw(st.integers(0, 12)) == 0:
        parts = [*parts, "sh:deactivated true"]
    return f"[ a sh:NodeShape ; {' ; '.join(parts)} ]"


def anonymous_shapes(depth: int) -> st.SearchStrategy[str]:
    depth = max(depth, 0)
    return node_shapes(depth) | property_shapes(depth)


SELECTS_OF_NODE_SHAPES = [
    "SELECT $this ?value WHERE { $this <http://example.org/p> ?value FILTER(isIRI(?value)) }",
    "SELECT $this WHERE { ?x <http://example.org/p> ?y FILTER(?y = $this) }",
    "SELECT $this ?x WHERE { BIND($this AS ?x) FILTER NOT EXISTS { ?x <http://example.org/q> ?y } }",
    "SELECT $this WHERE { { $this a ?c } UNION { FILTER(isBlank($this)) } }",
    "SELECT $this ?value WHERE { OPTIONAL { $this <http://example.org/q> ?value } }",
    "SELECT $this WHERE { $this <http://example.org/p> ?x } GROUP BY $this HAVING (COUNT(?x) > 1)",
    "SELECT $this ?path WHERE { $this ?path ?x . ?x <http://example.org/r> ?z }",
]
SELECTS_OF_PROPERTY_SHAPES = [
    "SELECT $this ?value WHERE { $this $PATH ?value . FILTER(isBlank(?value)) }",
    "SELECT DISTINCT $this WHERE { $this $PATH ?x . FILTER(isLiteral(?x)) }",
]


def sparql_constraints(of_property: bool) -> st.SearchStrategy[str]:
    selects = SELECTS_OF_PROPERTY_SHAPES if of_property else SELECTS_OF_NODE_SHAPES
    return st.builds('sh:sparql [ sh:select """{}""" ]'.format, st.sampled_from(selects))


def targets() -> st.SearchStrategy[str]:
    return st.one_of(
        st.builds("sh:targetClass {}".format, st.sampled_from(CLASSES)),
        st.builds("sh:targetNode {}".format, st.sampled_from([*NODES[:3], '"a"', "1", ":absent"])),
        st.builds(
            "sh:target{} {}".format, st.sampled_from(["SubjectsOf", "ObjectsOf"]), st.sampled_from(LINKS)
        ),
    )


@st.composite
def shapes_texts(draw: st.DrawFn) -> str:
    """A shapes graph with one to three shapes that have targets, and one that they may share."""
    shared = draw(property_shapes(0))
    shapes = []
    for number in range(draw(st.integers(1, 3))):
        text = draw(anonymous_shapes(draw(st.integers(0, 2))))
        given = draw(st.lists(targets(), min_size=1, max_size=2))
        severity = draw(st.sampled_from(["", "; sh:severity sh:Warning", "; sh:severity :Own"]))
        uses = draw(st.sampled_from(["", "", "; sh:property :shared"]))
        # the engine does not find a path of length zero from what the graph does not hold
        if draw(st.integers(0, 4)) == 0 and "zeroOr" not in text.split(";")[0]:
            uses += f" ; {draw(sparql_constraints('sh:path' in text.split(';')[0]))}"
        shapes.append(f":shape{number} {text[1:-1]} ; {' ; '.join(given)} {severity} {uses} .")
    lessthan = draw(
        st.sampled_from(
            [
                "",
                ":less a sh:PropertyShape ; sh:targetSubjectsOf :n ; sh:path :n ; sh:lessThan :m .",
                ":less a sh:PropertyShape ; sh:targetSubjectsOf :n ; sh:path :n ; sh:lessThanOrEquals :m .",
            ]
        )
    )
    return "\n".join([PREFIXES, f":shared {shared[1:-1]} .", *shapes, lessthan])
