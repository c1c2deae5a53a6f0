"""The namespaces that many know by one prefix, and how an IRI is written with them."""

import re
from collections.abc import Mapping

__all__ = ["WELL_KNOWN", "well_known_name"]

WELL_KNOWN: Mapping[str, str] = {
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "owl": "http://www.w3.org/2002/07/owl#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "schema": "https://schema.org/",
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "dcterms": "http://purl.org/dc/terms/",
    "dc": "http://purl.org/dc/elements/1.1/",
    "prov": "http://www.w3.org/ns/prov#",
    "geo": "http://www.opengis.net/ont/geosparql#",
    "sh": "http://www.w3.org/ns/shacl#",
    "void": "http://rdfs.org/ns/void#",
    "dcat": "http://www.w3.org/ns/dcat#",
}
_LOCAL = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


def well_known_name(iri: str) -> tuple[str, str] | None:
    """Prefix and local name of an IRI in one of these namespaces; None for another IRI."""
    for prefix, namespace in WELL_KNOWN.items():
        if iri.startswith(namespace) and _LOCAL.fullmatch(iri, len(namespace)):
            return prefix, iri[len(namespace) :]
    return None
