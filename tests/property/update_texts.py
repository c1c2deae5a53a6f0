"""Hypothesis strategies for SPARQL updates as text, over the terms of `strategies`."""

from dataclasses import dataclass

from hypothesis import strategies as st
from pyoxigraph import BlankNode, DefaultGraph, Quad, Triple

from tests.property.strategies import GRAPHS, PREDICATES, RESOURCES, quads, simple_objects

__all__ = ["OperationText", "block", "has_blank_node", "requests", "written"]


@dataclass(frozen=True)
class OperationText:
    """One operation; source and target are set for COPY, MOVE and ADD ("" is the default graph)."""

    text: str
    silent: bool = False
    source: str | None = None
    target: str | None = None


def has_blank_node(term: object) -> bool:
    if isinstance(term, Triple | Quad):
        graph = term.graph_name if isinstance(term, Quad) else None
        return any(map(has_blank_node, (term.subject, term.object, graph)))
    return isinstance(term, BlankNode)


def block(quads: list[tuple[str, str]]) -> str:
    """Braces around quads, each a graph (or "") and a triple."""
    return "{ " + " ".join(f"GRAPH {g} {{ {t} }}" if g else f"{t} ." for g, t in quads) + " }"


def written(quad: Quad) -> tuple[str, str]:
    graph = "" if isinstance(quad.graph_name, DefaultGraph) else str(quad.graph_name)
    return graph, f"{quad.subject} {quad.predicate} {written_term(quad.object)}"


def written_term(term: object) -> str:
    if isinstance(term, Triple):
        return f"<<( {term.subject} {term.predicate} {written_term(term.object)} )>>"
    return str(term)


named_quads = quads.filter(lambda quad: not isinstance(quad.graph_name, BlankNode))
insert_data = st.lists(named_quads, max_size=4).map(
    lambda data: OperationText(f"INSERT DATA {block([written(q) for q in data])}")
)
delete_data = st.lists(named_quads.filter(lambda quad: not has_blank_node(quad)), max_size=4).map(
    lambda data: OperationText(f"DELETE DATA {block([written(q) for q in data])}")
)

variables = st.sampled_from(["?a", "?b", "?c"])
iris = st.sampled_from([str(iri) for iri in RESOURCES])
ground_objects = simple_objects.filter(lambda term: not isinstance(term, BlankNode)).map(str)
predicate_slots = st.sampled_from([*map(str, PREDICATES), "?p"])
graph_slots = st.sampled_from(["", "", *map(str, GRAPHS), "?g"])


@st.composite
def patterns(draw: st.DrawFn, *, blank_nodes: bool) -> tuple[str, str]:
    """A quad pattern, for a template or for WHERE."""
    subjects = variables | iris | (st.just("_:new") if blank_nodes else st.nothing())
    objects = subjects | ground_objects
    triple_term = st.builds("<<( {} {} {} )>>".format, subjects, predicate_slots, objects)
    return draw(graph_slots), f"{draw(subjects)} {draw(predicate_slots)} {draw(objects | triple_term)}"


templates = st.lists(patterns(blank_nodes=False), max_size=3)
delete_where = st.lists(patterns(blank_nodes=False), min_size=1, max_size=2).map(
    lambda pattern: OperationText(f"DELETE WHERE {block(pattern)}")
)

EXTRAS = [
    "",
    "OPTIONAL { ?a <http://example.org/q> ?c }",
    'BIND(STRDT("007", <http://www.w3.org/2001/XMLSchema#integer>) AS ?c)',
    "BIND(<http://example.org/new> AS ?c)",
    "BIND(TRIPLE(?a, ?p, ?b) AS ?c)",
    "FILTER(isIRI(?a))",
    "{ SELECT ?c { ?c ?d ?e } }",
]


@st.composite
def modifications(draw: st.DrawFn) -> OperationText:
    """[WITH] [DELETE] [INSERT] [USING] WHERE."""
    delete = draw(templates | st.none())
    insert = draw(
        st.lists(patterns(blank_nodes=True), max_size=3) | (st.none() if delete is not None else st.nothing())
    )
    graph = st.sampled_from([str(graph) for graph in GRAPHS])
    parts = [
        f"WITH {draw(graph)}" if draw(st.booleans()) else "",
        "" if delete is None else f"DELETE {block(delete)}",
        "" if insert is None else f"INSERT {block(insert)}",
        *(f"USING {g}" for g in draw(st.sets(graph, max_size=1))),
        *(f"USING NAMED {g}" for g in draw(st.sets(graph, max_size=1))),
    ]
    where = draw(st.lists(patterns(blank_nodes=False), max_size=2))
    extra = draw(st.sampled_from(EXTRAS))
    if "AS ?c" in extra and "?c" in block(where):
        extra = ""
    return OperationText(f"{' '.join(filter(None, parts))} WHERE {block(where)[:-1]} {extra} }}")


@st.composite
def graph_operations(draw: st.DrawFn) -> OperationText:
    """CLEAR, DROP, CREATE, COPY, MOVE or ADD."""
    graphs = st.sampled_from([str(graph) for graph in GRAPHS])
    verb = draw(st.sampled_from(["CLEAR", "DROP", "CREATE", "COPY", "MOVE", "ADD"]))
    silent = draw(st.booleans())
    head = f"{verb} SILENT" if silent else verb
    if verb == "CREATE":
        return OperationText(f"{head} GRAPH {draw(graphs)}", silent)
    if verb in ("CLEAR", "DROP"):
        target = draw(graphs.map("GRAPH {}".format) | st.sampled_from(["DEFAULT", "NAMED", "ALL"]))
        return OperationText(f"{head} {target}", silent)
    source, target = draw(st.just("") | graphs), draw(st.just("") | graphs)
    return OperationText(f"{head} {source or 'DEFAULT'} TO {target or 'DEFAULT'}", silent, source, target)


operations = st.one_of(insert_data, delete_data, delete_where, modifications(), graph_operations())
requests = st.lists(operations, min_size=1, max_size=4)
