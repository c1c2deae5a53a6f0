"""The ontology file declares the terms that the code uses, and no others."""

from pathlib import Path

from pyoxigraph import NamedNode, Quad, RdfFormat, parse

from graphdb.holonic import names
from graphdb.holonic.names import LABEL, NAMESPACE, TYPE, Layer

FILE = Path(names.__file__).with_name("vocabulary.ttl")
COMMENT = NamedNode("http://www.w3.org/2000/01/rdf-schema#comment")
SUB_PROPERTY_OF = NamedNode("http://www.w3.org/2000/01/rdf-schema#subPropertyOf")
SUPER_PROPERTY = NamedNode(f"{NAMESPACE}hasLayerGraph")


def quads() -> list[Quad]:
    return list(parse(path=FILE, format=RdfFormat.TURTLE))


def values(predicate: NamedNode) -> dict[str, str]:
    return {quad.subject.value: quad.object.value for quad in quads() if quad.predicate == predicate}  # type: ignore[union-attr]


def test_the_file_declares_what_the_code_uses() -> None:
    constants = {item for item in vars(names).values() if isinstance(item, NamedNode)}
    used = {*constants, *(layer.link for layer in Layer), SUPER_PROPERTY}
    declared = {iri for iri in values(TYPE) if iri.startswith(NAMESPACE)}
    assert declared == {term.value for term in used if term.value.startswith(NAMESPACE)}
    assert declared <= set(values(LABEL)) & (set(values(COMMENT)) | {f"{NAMESPACE}sourceHolon"})


def test_each_layer_has_a_property() -> None:
    assert values(SUB_PROPERTY_OF) == {layer.link.value: SUPER_PROPERTY.value for layer in Layer}
