"""pySHACL by itself, over the whole of a graph and with targets of its own finding: what it reports."""

import logging
import warnings
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pyshacl
import rdflib
from pyoxigraph import BlankNode, Literal, Quad, Triple

from graphdb.shacl.paths import PredicatePath
from graphdb.shacl.report import ValidationReport
from graphdb.shacl.shacl_names import SH, Term

__all__ = ["Found", "found", "pyshacl_found"]

Found = Counter[tuple[str, ...]]
"""Results as texts of focus node, path (of one property, else empty), value, component, shape, severity."""

_PROPERTIES = (
    "focusNode",
    "resultPath",
    "value",
    "sourceConstraintComponent",
    "sourceShape",
    "resultSeverity",
)


def found(report: ValidationReport) -> Found:
    """The same of a report of ours."""
    return Counter(
        (
            str(result.focus_node),
            str(result.path.predicate) if isinstance(result.path, PredicatePath) else "",
            "" if result.value is None else str(result.value),
            str(result.component),
            str(result.source_shape),
            str(result.severity),
        )
        for result in report.results
    )


def pyshacl_found(data: Iterable[Quad], shapes: Iterable[Triple]) -> Found:
    """What pySHACL finds in the data."""
    logging.getLogger("pyshacl-validate").setLevel(logging.CRITICAL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _, report, _ = pyshacl.validate(_graph(quad.triple for quad in data), shacl_graph=_graph(shapes))
    assert isinstance(report, rdflib.Graph), report
    results = report.objects(None, rdflib.URIRef(SH + "result"))
    return Counter(tuple(_text(report, result, name) for name in _PROPERTIES) for result in results)


def _text(report: rdflib.Graph, result: Any, name: str) -> str:
    value = report.value(result, rdflib.URIRef(SH + name))
    if value is None or (name == "resultPath" and isinstance(value, rdflib.BNode)):
        return ""
    if isinstance(value, rdflib.Literal) and not value.language:
        datatype = None if value.datatype is None else _named(value.datatype)
        return str(Literal(str(value), datatype=datatype))
    if isinstance(value, rdflib.Literal):
        return str(Literal(str(value), language=value.language))
    return f"_:{value}" if isinstance(value, rdflib.BNode) else f"<{value}>"


def _named(iri: rdflib.URIRef) -> Any:
    from pyoxigraph import NamedNode

    return NamedNode(str(iri))


def _graph(triples: Iterable[Triple]) -> rdflib.Graph:
    graph = rdflib.Graph()
    for triple in triples:
        graph.add((_term(triple.subject), _term(triple.predicate), _term(triple.object)))
    return graph


def _term(term: Term) -> Any:
    if isinstance(term, BlankNode):
        return rdflib.BNode(term.value)
    if not isinstance(term, Literal):
        return rdflib.URIRef(term.value)  # type: ignore[union-attr]
    if term.language:
        return rdflib.Literal(term.value, lang=term.language)
    if term.datatype.value == str(rdflib.XSD.string):
        return rdflib.Literal(term.value)
    return rdflib.Literal(term.value, datatype=rdflib.URIRef(term.datatype.value), normalize=False)
