"""Holons and portals: what a client declares, and what is read of them."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from pyoxigraph import NamedNode

from graphdb.holonic.names import Layer, Tenant
from graphdb.holonic.vocabulary import CREATED, LABEL, MEMBER_OF

__all__ = ["HolonRecord", "NewHolon", "NewPortal", "Portal"]


@dataclass(frozen=True, slots=True)
class NewHolon:
    """A holon to declare. created_at is an xsd:dateTime."""

    iri: NamedNode
    label: str | None
    member_of: NamedNode | None
    created_at: str


@dataclass(frozen=True, slots=True)
class NewPortal:
    """A portal to declare. created_at is an xsd:dateTime."""

    iri: NamedNode
    source: NamedNode
    target: NamedNode
    construct_query: str
    created_at: str


@dataclass(frozen=True, slots=True)
class Portal:
    """A portal as its source's boundary graph describes it."""

    iri: NamedNode
    source: NamedNode
    target: NamedNode
    construct_query: str


@dataclass(frozen=True, slots=True)
class HolonRecord:
    """A holon as the registry has it.

    graphs are those of its layers, in the order of these and by name. Not all need hold a triple.
    """

    iri: str
    label: str | None
    member_of: str | None
    created_at: str | None
    graphs: tuple[tuple[Layer, str], ...]

    def layer(self, layer: Layer) -> tuple[NamedNode, ...]:
        """The graphs of one layer."""
        return tuple(NamedNode(graph) for of, graph in self.graphs if of is layer)

    @classmethod
    def of(cls, tenant: Tenant, iri: NamedNode, statements: Iterable[tuple[str, str]]) -> "HolonRecord":
        """From what the registry states of the holon: predicates and values, in any order.

        Others may write to the registry as well, so a value too many is passed over, the later in order, and
        so is a graph that has no name of this holon's layer.
        """
        values: dict[str, list[str]] = defaultdict(list)
        for predicate, value in statements:
            values[predicate].append(value)
        return cls(
            iri.value,
            min(values[LABEL.value], default=None),
            min(values[MEMBER_OF.value], default=None),
            min(values[CREATED.value], default=None),
            tuple(
                (layer, graph)
                for layer in Layer
                for graph in sorted(set(values[layer.link.value]))
                if tenant.is_layer_graph(graph, iri, layer)
            ),
        )
