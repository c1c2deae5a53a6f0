"""Shapes and data as Turtle, for the tests of SHACL."""

from pyoxigraph import RdfFormat, Store, Triple, parse

from graphdb.shacl.shapes import Shapes, read_shapes

__all__ = ["EX", "data", "shapes", "triples"]

EX = "http://example.org/"
_PREFIXES = f"""
@prefix : <{EX}> .
@prefix sh: <http://www.w3.org/ns/shacl#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
"""


def triples(turtle: str) -> list[Triple]:
    """Blank nodes keep their labels."""
    document = (_PREFIXES + turtle).encode()
    return [quad.triple for quad in parse(document, RdfFormat.TURTLE, rename_blank_nodes=False)]


def shapes(turtle: str) -> Shapes:
    return read_shapes(triples(turtle))


def data(turtle: str) -> Store:
    """A store with the triples in its default graph."""
    store = Store()
    store.extend(parse((_PREFIXES + turtle).encode(), RdfFormat.TURTLE, rename_blank_nodes=False))
    return store
