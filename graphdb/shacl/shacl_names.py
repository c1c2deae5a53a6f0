"""The names of SHACL and of the vocabularies around it, as the engine's terms."""

from functools import lru_cache
from typing import Final, TypeAlias

from pyoxigraph import BlankNode, Literal, NamedNode, Triple

__all__ = [
    "OWL",
    "RDF",
    "RDFS",
    "RDFS_CLASS",
    "RDFS_SUBCLASS_OF",
    "RDF_FIRST",
    "RDF_NIL",
    "RDF_REST",
    "RDF_TYPE",
    "SH",
    "XSD",
    "Node",
    "Term",
    "sh",
]

Node: TypeAlias = NamedNode | BlankNode
Term: TypeAlias = NamedNode | BlankNode | Literal | Triple

SH: Final = "http://www.w3.org/ns/shacl#"
RDF: Final = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFS: Final = "http://www.w3.org/2000/01/rdf-schema#"
OWL: Final = "http://www.w3.org/2002/07/owl#"
XSD: Final = "http://www.w3.org/2001/XMLSchema#"

RDF_TYPE: Final = NamedNode(RDF + "type")
RDF_FIRST: Final = NamedNode(RDF + "first")
RDF_REST: Final = NamedNode(RDF + "rest")
RDF_NIL: Final = NamedNode(RDF + "nil")
RDFS_CLASS: Final = NamedNode(RDFS + "Class")
RDFS_SUBCLASS_OF: Final = NamedNode(RDFS + "subClassOf")


@lru_cache(maxsize=512)
def sh(name: str) -> NamedNode:
    """The term of SHACL's own vocabulary with this local name."""
    return NamedNode(SH + name)
