"""Names of holons and their graphs, and the vocabulary."""

import hashlib
import re
from enum import Enum
from typing import Self

from pyoxigraph import NamedNode

from graphdb.errors import InvalidParameter

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
    "Layer",
    "Tenant",
]

# The terms that say what holons and portals are; `vocabulary.ttl` says what each means.

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


# Names: tenants, layers, and the graphs that hold them. Which graph is meant follows from names alone.

_TENANT = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
# No colon: what stands behind one is never a client's choice.
_SLUG = re.compile(r"[A-Za-z0-9._~-]{1,64}", re.ASCII)
_DIGEST_CHARACTERS = 32  # 128 bits: no two holons of a tenant share a graph, by chance or on purpose


class Layer(Enum):
    """One of the four layers of a holon, in the order in which they are shown. The value is its name."""

    link: NamedNode  # the property that leads from a holon to a graph of this layer

    def __new__(cls, name: str) -> Self:
        member = object.__new__(cls)
        member._value_ = name
        member.link = NamedNode(f"{NAMESPACE}has{name.capitalize()}")
        return member

    INTERIOR = "interior"
    BOUNDARY = "boundary"
    CONTEXT = "context"
    PROJECTION = "projection"


class Tenant:
    """The graphs of one tenant. They begin with its name and a colon, so no two tenants share one."""

    def __init__(self, name: str) -> None:
        """Raises InvalidParameter for what is no tenant's name."""
        if not _TENANT.fullmatch(name):
            raise InvalidParameter("tenant", f"{name!r} is not 1 to 64 of A-Z, a-z, 0-9, _ and -")
        self.name = name
        self.registry = NamedNode(f"urn:holonic:{name}:registry")

    def layer_graph(self, holon: NamedNode, layer: Layer, slug: str | None = None) -> NamedNode:
        """The graph of a layer, or a further one of it where there is a slug. Raises InvalidParameter."""
        if slug is None:
            return NamedNode(self._graph(holon, layer))
        if not _SLUG.fullmatch(slug):
            raise InvalidParameter("graph_slug", f"{slug!r} is not 1 to 64 of A-Z, a-z, 0-9, ., _, ~ and -")
        return NamedNode(f"{self._graph(holon, layer)}:{slug}")

    def portal_graph(self, target: NamedNode, portal: NamedNode) -> NamedNode:
        """The graph of the target's projection that holds what comes through a portal."""
        return NamedNode(f"{self._graph(target, Layer.PROJECTION)}:portal:{_digest(portal)}")

    def is_layer_graph(self, graph: str, holon: NamedNode, layer: Layer) -> bool:
        """Whether a graph has the name of one of this layer."""
        name = self._graph(holon, layer)
        return graph == name or graph.startswith(f"{name}:")

    def _graph(self, holon: NamedNode, layer: Layer) -> str:
        return f"urn:holonic:{self.name}:{_digest(holon)}:{layer.value}"


def _digest(resource: NamedNode) -> str:
    return hashlib.sha256(resource.value.encode()).hexdigest()[:_DIGEST_CHARACTERS]
