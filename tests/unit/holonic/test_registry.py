"""What a write finds in the registry, in a store and in a state that is still planned."""

import pytest
from pyoxigraph import Literal, NamedNode, Quad, Store

from graphdb.config.limits import GateLimits
from graphdb.errors import (
    AlreadyExists,
    EvaluationFailed,
    InvalidParameter,
    MembershipLoop,
    NotFound,
    QuerySyntaxError,
)
from graphdb.holonic.names import CONSTRUCT_QUERY, HOLON, LABEL, MEMBER_OF, TARGET_HOLON, TYPE, Layer, Tenant
from graphdb.holonic.registry import (
    HolonRecord,
    NewHolon,
    NewPortal,
    Portal,
    QuadLookup,
    Registry,
    holon_quads,
    portal_quads,
    read_construct,
    source_dataset,
)
from graphdb.model import ChangeSet
from graphdb.store.overlay import Overlay
from graphdb.store.quad_store import QuadStore

T, U = Tenant("t"), Tenant("u")
A, B, C, D, GONE = (NamedNode(f"http://x/{name}") for name in ("a", "b", "c", "d", "gone"))
NOON = "2026-01-01T12:00:00Z"
CONSTRUCT = "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }"


def new(iri: NamedNode, member_of: NamedNode | None = None, label: str | None = None) -> NewHolon:
    return NewHolon(iri, label, member_of, NOON)


def portal(iri: NamedNode, source: NamedNode, target: NamedNode) -> NewPortal:
    return NewPortal(iri, source, target, CONSTRUCT, NOON)


def stored(*quads: Quad) -> QuadLookup:
    store = Store()
    store.extend(quads)
    return QuadStore(store)


def planned(*quads: Quad) -> QuadLookup:
    """Half of them are in the store, half are laid over it, and one more is to be removed."""
    store, half = Store(), len(quads) // 2
    gone = Quad(GONE, TYPE, HOLON, T.registry)
    store.extend([*quads[:half], gone])
    overlay = Overlay(QuadStore(store))
    overlay.push(ChangeSet(removed=(gone,), added=quads[half:]))
    return overlay


@pytest.fixture(params=[stored, planned])
def registry(request: pytest.FixtureRequest) -> Registry:
    """b is a member of a; a portal p leads from a to c, which is not declared."""
    quads = [
        *holon_quads(T, new(A, label="A")),
        *holon_quads(T, new(B, A)),
        *portal_quads(T, portal(NamedNode("urn:p"), A, C)),
    ]
    return Registry(T, request.param(*quads))


def test_what_is_declared_is_there(registry: Registry) -> None:
    registry.check_holon(A)
    registry.check_holon(B)
    assert registry.portal(NamedNode("urn:p")) == Portal(NamedNode("urn:p"), A, C, CONSTRUCT)
    record = HolonRecord.of(T, B, registry.statements(B))
    graphs = tuple((layer, T.layer_graph(B, layer).value) for layer in Layer)
    assert record == HolonRecord(B.value, None, A.value, NOON, graphs)


def test_what_is_not_declared_is_not_there(registry: Registry) -> None:
    for missing in (C, GONE, T.registry):
        with pytest.raises(NotFound, match=r"there is no holon <.*> in tenant 't'"):
            registry.check_holon(missing)
        with pytest.raises(NotFound, match="there is no holon"):
            registry.statements(missing)
    with pytest.raises(NotFound, match="there is no portal"):
        registry.portal(A)


def test_what_another_tenant_declares_is_not_there() -> None:
    quads = stored(*holon_quads(T, new(A)), *portal_quads(T, portal(NamedNode("urn:p"), A, C)))
    other = Registry(U, quads)
    with pytest.raises(NotFound):
        other.check_holon(A)
    with pytest.raises(NotFound):
        other.portal(NamedNode("urn:p"))
    other.check_new_holon(new(A))
    with pytest.raises(NotFound):
        other.check_new_holon(new(B, A))


def test_a_new_holon(registry: Registry) -> None:
    registry.check_new_holon(new(C))
    registry.check_new_holon(new(C, B))
    for known in (new(A), new(A, B), new(B, A), new(A, A)):
        with pytest.raises(AlreadyExists, match=r"the holon <.*> exists already"):
            registry.check_new_holon(known)
    with pytest.raises(NotFound):
        registry.check_new_holon(new(C, GONE))
    with pytest.raises(MembershipLoop, match="would be a member of itself"):
        registry.check_new_holon(new(C, C))


def test_a_new_portal(registry: Registry) -> None:
    registry.check_new_portal(portal(NamedNode("urn:q"), B, A))
    with pytest.raises(AlreadyExists, match="the portal <urn:p> exists already"):
        registry.check_new_portal(portal(NamedNode("urn:p"), B, A))
    with pytest.raises(NotFound):
        registry.check_new_portal(portal(NamedNode("urn:q"), C, A))


@pytest.mark.parametrize("lookup", [stored, planned])
def test_no_loop_is_closed_that_somebody_has_begun(lookup: type) -> None:
    begun = [
        Quad(B, MEMBER_OF, A, T.registry),  # written by an update: a is not declared
        Quad(C, MEMBER_OF, B, T.registry),
        Quad(D, MEMBER_OF, D, T.registry),
        *(Quad(iri, TYPE, HOLON, T.registry) for iri in (B, C, D)),
    ]
    registry = Registry(T, lookup(*begun))
    registry.check_new_holon(new(A))
    for parent in (B, C):
        with pytest.raises(MembershipLoop):
            registry.check_new_holon(new(A, parent))
    registry.check_new_holon(new(A, D))  # its own loop is not this one's


def test_values_too_many_are_passed_over() -> None:
    foreign = Tenant("u").layer_graph(A, Layer.INTERIOR)
    extra = T.layer_graph(A, Layer.INTERIOR, "extra")
    statements = [
        (LABEL.value, "b"),
        (LABEL.value, "a"),
        (Layer.INTERIOR.link.value, foreign.value),
        (Layer.BOUNDARY.link.value, extra.value),
        (Layer.INTERIOR.link.value, extra.value),
        ("http://x/other", "x"),
    ]
    assert HolonRecord.of(T, A, statements) == HolonRecord(
        A.value, "a", None, None, ((Layer.INTERIOR, extra.value),)
    )


@pytest.mark.parametrize(
    "quad",
    [
        pytest.param((TARGET_HOLON, B), id="two targets"),
        pytest.param((CONSTRUCT_QUERY, Literal("ASK {}")), id="two queries"),
    ],
)
def test_a_portal_that_somebody_has_changed(quad: tuple[NamedNode, NamedNode | Literal]) -> None:
    p, boundary = NamedNode("urn:p"), T.layer_graph(A, Layer.BOUNDARY)
    quads = portal_quads(T, portal(p, A, C))
    registry = Registry(T, stored(*quads, Quad(p, *quad, boundary)))
    with pytest.raises(EvaluationFailed, match="the portal <urn:p> does not have one <"):
        registry.portal(p)


@pytest.mark.parametrize(
    ("text", "error", "reason"),
    [
        ("SELECT * { ?s ?p ?o }", InvalidParameter, "is a SELECT query"),
        ("DESCRIBE <urn:x>", InvalidParameter, "is a DESCRIBE query"),
        ("CONSTRUCT { ?s ?p ?o } FROM <urn:g> WHERE { ?s ?p ?o }", InvalidParameter, "has FROM"),
        ("CONSTRUCT { ?s ?p ?o } FROM NAMED <urn:g> WHERE { ?s ?p ?o }", InvalidParameter, "has FROM"),
        ("CONSTRUCT WHERE { ?s <p> ?o }", QuerySyntaxError, "needs a BASE"),
        ("INSERT DATA { <urn:a> <urn:b> 1 }", QuerySyntaxError, "expected"),
        ("", QuerySyntaxError, "expected"),
    ],
)
def test_no_query_for_a_portal(text: str, error: type[Exception], reason: str) -> None:
    with pytest.raises(error, match=reason):
        read_construct(text, GateLimits())


def test_what_a_portal_reads() -> None:
    plain, extra = T.layer_graph(A, Layer.INTERIOR), T.layer_graph(A, Layer.INTERIOR, "extra")
    boundary = T.layer_graph(A, Layer.BOUNDARY)
    dataset = source_dataset([(Layer.INTERIOR, extra.value), (Layer.BOUNDARY, boundary.value)], plain)
    assert dataset.default_graphs == (plain, extra)
    assert dataset.named_graphs == (plain, extra, boundary)
    assert source_dataset([], plain), "a dataset without graphs would be the whole store"
