"""The terms that say what holons and portals are; `vocabulary.ttl` says what each means."""

from pyoxigraph import NamedNode

__all__ = [
    "CONSTRUCT_QUERY",
    "CREATED",
    "DATE_TIME",
    "HOLON",
    "LABEL",
    "MEMBER_OF",
    "NAMESPACE",
    "SOURCE_HOLON",
    "TARGET_HOLON",
    "TRANSFORM_PORTAL",
    "TYPE",
]

NAMESPACE = "urn:graphdb:holonic#"

HOLON = NamedNode(f"{NAMESPACE}Holon")
MEMBER_OF = NamedNode(f"{NAMESPACE}memberOf")
TRANSFORM_PORTAL = NamedNode(f"{NAMESPACE}TransformPortal")
SOURCE_HOLON = NamedNode(f"{NAMESPACE}sourceHolon")
TARGET_HOLON = NamedNode(f"{NAMESPACE}targetHolon")
CONSTRUCT_QUERY = NamedNode(f"{NAMESPACE}constructQuery")

TYPE = NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
LABEL = NamedNode("http://www.w3.org/2000/01/rdf-schema#label")
CREATED = NamedNode("http://purl.org/dc/terms/created")
DATE_TIME = NamedNode("http://www.w3.org/2001/XMLSchema#dateTime")
