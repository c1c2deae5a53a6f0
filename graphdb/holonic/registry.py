"""The registry of holons: records, membership, portals."""

from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

from pyoxigraph import Literal, NamedNode, Quad

from graphdb.config.limits import GateLimits
from graphdb.errors import AlreadyExists, EvaluationFailed, InvalidParameter, MembershipLoop, NotFound
from graphdb.holonic.names import (
    CONSTRUCT_QUERY,
    CREATED,
    DATE_TIME,
    HOLON,
    LABEL,
    MEMBER_OF,
    SOURCE_HOLON,
    TARGET_HOLON,
    TRANSFORM_PORTAL,
    TYPE,
    Layer,
    Tenant,
)
from graphdb.model import GraphName
from graphdb.planning.gate import read_query
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.syntax import Query
from graphdb.store.view import Subject, Term

__all__ = [
    "HolonRecord",
    "NewHolon",
    "NewPortal",
    "Portal",
    "QuadLookup",
    "Registry",
    "check_construct",
    "depths",
    "holon_quads",
    "layer_link",
    "portal_quads",
    "read_construct",
    "source_dataset",
]

# Holons and portals: what a client declares, and what is read of them.


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


# `Registry`: the graph in which a tenant declares holons and portals, and what a write finds there.
#
# A declaration is final, and names nothing that is not declared already, but for the target of a portal. So
# membership has no loops, as long as nobody else writes to the registry; where somebody has, none is
# closed.

T = TypeVar("T", NamedNode, Literal)


class QuadLookup(Protocol):
    """One state of the store, or the present one."""

    def quads_matching(
        self,
        subject: Subject | None,
        predicate: NamedNode | None,
        object_: Term | None,
        graph: GraphName | None,
    ) -> Iterator[Quad]:
        """See `StoreView.quads_matching`."""


class Registry:
    """A tenant's declarations in a state of the store. Each question takes a few lookups."""

    def __init__(self, tenant: Tenant, quads: QuadLookup) -> None:
        self._tenant, self._quads = tenant, quads

    def check_holon(self, holon: NamedNode) -> None:
        """Raises NotFound where the holon is not declared."""
        if not self._states(holon, TYPE, HOLON):
            raise NotFound("holon", self._named(holon))

    def check_new_holon(self, new: NewHolon) -> None:
        """Raises AlreadyExists; NotFound for a parent that is not declared; MembershipLoop."""
        if self._states(new.iri, TYPE, HOLON):
            raise AlreadyExists("holon", new.iri.value)
        if new.member_of is None:
            return
        if new.member_of == new.iri:
            raise MembershipLoop(new.iri.value, new.member_of.value)
        self.check_holon(new.member_of)
        if self._states(None, MEMBER_OF, new.iri) and new.iri in self._ancestors(new.member_of):
            raise MembershipLoop(new.iri.value, new.member_of.value)

    def check_new_portal(self, new: NewPortal) -> None:
        """Raises AlreadyExists; NotFound for a source that is not declared."""
        if self._states(new.iri, TYPE, TRANSFORM_PORTAL):
            raise AlreadyExists("portal", new.iri.value)
        self.check_holon(new.source)

    def statements(self, holon: NamedNode) -> list[tuple[str, str]]:
        """Predicates and values of what is stated of a holon. Raises NotFound."""
        quads = list(self._quads.quads_matching(holon, None, None, self._tenant.registry))
        if not any(quad.predicate == TYPE and quad.object == HOLON for quad in quads):
            raise NotFound("holon", self._named(holon))
        return [
            (quad.predicate.value, quad.object.value)
            for quad in quads
            if isinstance(quad.object, NamedNode | Literal)
        ]

    def portal(self, iri: NamedNode) -> Portal:
        """The portal of this name.

        Raises NotFound, EvaluationFailed where somebody has changed its description to one that says too much
        or too little.
        """
        if not self._states(iri, TYPE, TRANSFORM_PORTAL):
            raise NotFound("portal", self._named(iri))
        source = self._only(iri, SOURCE_HOLON, self._tenant.registry, NamedNode)
        boundary = self._tenant.layer_graph(source, Layer.BOUNDARY)
        target = self._only(iri, TARGET_HOLON, boundary, NamedNode)
        query = self._only(iri, CONSTRUCT_QUERY, boundary, Literal)
        return Portal(iri, source, target, query.value)

    def _states(self, subject: NamedNode | None, predicate: NamedNode, object_: NamedNode) -> bool:
        found = self._quads.quads_matching(subject, predicate, object_, self._tenant.registry)
        return next(found, None) is not None

    def _ancestors(self, holon: NamedNode) -> set[NamedNode]:
        """The holon and all that it is a member of, however indirectly."""
        seen, waiting = {holon}, [holon]
        while waiting:
            for quad in self._quads.quads_matching(waiting.pop(), MEMBER_OF, None, self._tenant.registry):
                parent = quad.object
                if isinstance(parent, NamedNode) and parent not in seen:
                    seen.add(parent)
                    waiting.append(parent)
        return seen

    def _only(self, subject: NamedNode, predicate: NamedNode, graph: NamedNode, kind: type[T]) -> T:
        """The one value of a property in a graph."""
        values = [quad.object for quad in self._quads.quads_matching(subject, predicate, None, graph)]
        if len(values) != 1 or not isinstance(values[0], kind):
            raise EvaluationFailed(f"the portal {subject} does not have one {predicate} in the graph {graph}")
        return values[0]

    def _named(self, resource: NamedNode) -> str:
        return f"{resource} in tenant {self._tenant.name!r}"


def holon_quads(tenant: Tenant, new: NewHolon) -> Iterator[Quad]:
    """What the registry says of a new holon; it names the graphs of all layers, which hold nothing yet."""
    about: dict[NamedNode, Term] = {TYPE: HOLON, CREATED: Literal(new.created_at, datatype=DATE_TIME)}
    if new.label is not None:
        about[LABEL] = Literal(new.label)
    if new.member_of is not None:
        about[MEMBER_OF] = new.member_of
    for predicate, value in about.items():
        yield Quad(new.iri, predicate, value, tenant.registry)
    for layer in Layer:
        yield layer_link(tenant, new.iri, layer, tenant.layer_graph(new.iri, layer))


def portal_quads(tenant: Tenant, new: NewPortal) -> Iterator[Quad]:
    """The description of a new portal in its source's boundary graph, and what the registry says of it.

    The graph that its results go to is the target's from the beginning, be the target declared or not.
    """
    boundary = tenant.layer_graph(new.source, Layer.BOUNDARY)
    about: dict[NamedNode, Term] = {
        TYPE: TRANSFORM_PORTAL,
        SOURCE_HOLON: new.source,
        TARGET_HOLON: new.target,
        CONSTRUCT_QUERY: Literal(new.construct_query),
        CREATED: Literal(new.created_at, datatype=DATE_TIME),
    }
    for predicate, value in about.items():
        yield Quad(new.iri, predicate, value, boundary)
    yield Quad(new.iri, TYPE, TRANSFORM_PORTAL, tenant.registry)
    yield Quad(new.iri, SOURCE_HOLON, new.source, tenant.registry)
    yield layer_link(tenant, new.source, Layer.BOUNDARY, boundary)
    yield layer_link(tenant, new.target, Layer.PROJECTION, tenant.portal_graph(new.target, new.iri))


def layer_link(tenant: Tenant, holon: NamedNode, layer: Layer, graph: NamedNode) -> Quad:
    """The quad by which the registry knows a graph of a holon's layer."""
    return Quad(holon, layer.link, graph, tenant.registry)


# Membership: how deep each holon is below those that are a part of nothing.


def depths(parents: Mapping[str, Collection[str]]) -> dict[str, int | None]:
    """For each key, in order, the length of its longest chain of parents; 0 where it has none.

    Parents that are no keys do not count. None stands for a key that is in a loop, or below one: its chains
    have no end.
    """
    known = {member: {parent for parent in of if parent in parents} for member, of in parents.items()}
    members: dict[str, list[str]] = defaultdict(list)
    for member, of in known.items():
        for parent in of:
            members[parent].append(member)
    waits_for = {member: len(of) for member, of in known.items()}
    found: dict[str, int | None] = dict.fromkeys(parents)
    ready = deque(member for member, count in waits_for.items() if not count)
    while ready:
        parent = ready.popleft()
        found[parent] = (
            max((depth for of in known[parent] if (depth := found[of]) is not None), default=-1) + 1
        )
        for member in members[parent]:
            waits_for[member] -= 1
            if not waits_for[member]:
                ready.append(member)
    return found


# What a portal may ask, and of which graphs.


def read_construct(text: str, limits: GateLimits) -> Query:
    """The query of a portal; IRIs in it are absolute, or it brings a base of its own.

    It is still to be checked by the store's owner. Raises QuerySyntaxError, LimitExceeded, InvalidParameter.
    """
    query = read_query(text, None, limits)
    check_construct(query)
    return query


def check_construct(query: Query) -> None:
    """Raises InvalidParameter for a query that is no CONSTRUCT, or that names graphs to read by itself."""
    if query.form != "CONSTRUCT":
        raise InvalidParameter("construct_query", f"is a {query.form} query; a portal takes CONSTRUCT")
    if query.dataset:
        raise InvalidParameter("construct_query", "has FROM; a portal reads the layers of its source")


def source_dataset(graphs: Iterable[tuple[Layer, str]], interior: NamedNode) -> Dataset:
    """What a portal reads: the graphs of all layers by name, those of the interior as the default graph.

    interior is the graph that the interior has at least, be it empty: a dataset without graphs would be the
    whole store.
    """
    graphs = [(Layer.INTERIOR, interior.value), *graphs]
    return Dataset(
        _named(graph for layer, graph in graphs if layer is Layer.INTERIOR),
        _named(graph for _, graph in graphs),
    )


def _named(graphs: Iterable[str]) -> tuple[NamedNode, ...]:
    return tuple(map(NamedNode, dict.fromkeys(graphs)))
