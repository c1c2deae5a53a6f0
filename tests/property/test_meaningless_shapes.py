"""Whatever triples of ontology and shapes there are: what means nothing takes nothing else along."""

from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import BlankNode, Literal, NamedNode, Triple

from graphdb.graphql.modelling import combined, model_of
from graphdb.graphql.schema import schema_of
from graphdb.graphql.schema_sources import read_ontology
from graphdb.graphql.schema_sources import read_shapes as read_types
from graphdb.shacl.shacl_names import OWL, RDF_FIRST, RDF_NIL, RDF_REST, RDF_TYPE, RDFS, sh
from graphdb.shacl.shapes import read_shapes, readable_shapes
from graphdb.shacl.shapes_graph import ShapesGraph

NODES = [
    *(NamedNode(f"http://e/{name}") for name in ("A", "B", "__typename", "Query", "1", "", "AObject", "id")),
    *(BlankNode(f"b{number}") for number in range(5)),
]
CLASSES = [NamedNode(OWL + "Class"), sh("NodeShape"), sh("PropertyShape"), sh("ConstraintComponent")]
PREDICATES = [
    *(RDF_TYPE, RDF_FIRST, RDF_REST),
    *(NamedNode(RDFS + name) for name in ("subClassOf", "domain", "range", "comment")),
    *map(sh, ("targetClass", "targetNode", "property", "path", "inversePath", "node", "class", "in")),
    *map(sh, ("and", "or", "not", "xone", "qualifiedValueShape", "qualifiedMinCount", "minCount", "pattern")),
    *map(sh, ("sparql", "select", "parameter", "closed", "name", "order", "deactivated", "expression")),
]
VALUES = [*NODES, *CLASSES, RDF_NIL, *(Literal(value) for value in (1, -1, 2.5, True, "", "(", "nan"))]
TRIPLES = st.lists(
    st.builds(Triple, st.sampled_from(NODES), st.sampled_from(PREDICATES), st.sampled_from(VALUES)),
    max_size=40,
)


@settings(deadline=None)
@given(TRIPLES)
def test_what_can_be_read_is_read(triples: list[Triple]) -> None:
    shapes, meaningless = readable_shapes(triples)
    assert read_shapes(shapes.triples).by_node.keys() & set(NODES) == shapes.by_node.keys() & set(NODES)
    assert all(each.shape.targets for each in meaningless)
    assert not {each.shape.node for each in meaningless} & {shape.node for shape in shapes.targeted}


@settings(deadline=None)
@given(TRIPLES)
def test_a_schema_is_made(triples: list[Triple]) -> None:
    graph = ShapesGraph(triples)
    assert "type Query" in schema_of(model_of(combined(read_ontology(graph), read_types(graph)))).sdl
