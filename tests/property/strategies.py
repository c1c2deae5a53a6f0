"""Hypothesis strategies for small datasets that collide often: few terms, few graphs, every kind of term."""

from hypothesis import strategies as st
from pyoxigraph import BaseDirection, BlankNode, DefaultGraph, Literal, NamedNode, Quad, Triple

__all__ = ["GRAPHS", "PREDICATES", "datasets", "graph_names", "quads", "terms"]

XSD = "http://www.w3.org/2001/XMLSchema#"

RESOURCES = [NamedNode("http://example.org/a"), NamedNode("http://example.org/b#é")]
BLANK_NODES = [BlankNode("x"), BlankNode("y")]
PREDICATES = [NamedNode("http://example.org/p"), NamedNode("http://example.org/q")]
GRAPHS = [
    NamedNode("http://example.org/g"),
    NamedNode("http://example.org/h"),
    NamedNode("http://example.org/i"),
]
LITERALS = [
    Literal("plain"),
    Literal('"quoted" \\u0041\n\t\\'),
    Literal("tagged", language="de-CH"),
    Literal("directed", language="ar", direction=BaseDirection.RTL),
    Literal("1", datatype=NamedNode(XSD + "integer")),
    Literal("01", datatype=NamedNode(XSD + "integer")),
    Literal("1.50", datatype=NamedNode(XSD + "decimal")),
    Literal("not a number", datatype=NamedNode(XSD + "double")),
    Literal("2020-01-01T00:00:00+00:00", datatype=NamedNode(XSD + "dateTime")),
]

nodes = st.sampled_from([*RESOURCES, *BLANK_NODES])
predicates = st.sampled_from(PREDICATES)
simple_objects = st.sampled_from([*RESOURCES, *BLANK_NODES, *LITERALS])
triple_terms = st.recursive(
    st.builds(Triple, nodes, predicates, simple_objects),
    lambda inner: st.builds(Triple, nodes, predicates, inner),
    max_leaves=2,
)
terms = simple_objects | triple_terms
graph_names = st.sampled_from([DefaultGraph(), *GRAPHS, BlankNode("graph")])
quads = st.builds(Quad, nodes, predicates, terms, graph_names)
datasets = st.lists(quads, max_size=12)
