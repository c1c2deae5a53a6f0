"""Names of tenants, layers and graphs."""

import pytest
from pyoxigraph import NamedNode

from graphdb.errors import InvalidParameter
from graphdb.holonic.names import Layer, Tenant

HOLON, OTHER = NamedNode("http://x/holon"), NamedNode("http://x/holon/")


@pytest.mark.parametrize("name", ["a", "default", "A-b_9", "x" * 64, "-"])
def test_a_tenant(name: str) -> None:
    tenant = Tenant(name)
    assert tenant.registry == NamedNode(f"urn:holonic:{name}:registry")
    assert tenant.layer_graph(HOLON, Layer.INTERIOR).value.startswith(f"urn:holonic:{name}:")


@pytest.mark.parametrize("name", ["", "x" * 65, "a:b", "a b", "a/b", "ä", "a\n", "a>", "a.b", "١"])
def test_no_tenant(name: str) -> None:
    with pytest.raises(InvalidParameter, match="tenant"):
        Tenant(name)


def test_each_layer_of_each_holon_of_each_tenant_has_graphs_of_its_own() -> None:
    graphs = [
        tenant.layer_graph(holon, layer, slug)
        for tenant in (Tenant("a"), Tenant("b"), Tenant("a-b"))
        for holon in (HOLON, OTHER)
        for layer in Layer
        for slug in (None, "one", "two", "portal")
    ]
    portals = [
        Tenant("a").portal_graph(target, source) for target in (HOLON, OTHER) for source in (HOLON, OTHER)
    ]
    assert len({*graphs, *portals}) == len(graphs) + len(portals)


@pytest.mark.parametrize("slug", ["a", "2024-01.v2_~x", "x" * 64, ".", ".."])
def test_a_slug(slug: str) -> None:
    plain = Tenant("t").layer_graph(HOLON, Layer.CONTEXT)
    assert Tenant("t").layer_graph(HOLON, Layer.CONTEXT, slug).value == f"{plain.value}:{slug}"


@pytest.mark.parametrize(
    "slug", ["", "a:b", "portal:0", "a/b", "a b", "a>", "> <urn:x", "ä", "x" * 65, "a\n"]
)
def test_no_slug(slug: str) -> None:
    with pytest.raises(InvalidParameter, match="graph_slug"):
        Tenant("t").layer_graph(HOLON, Layer.CONTEXT, slug)


def test_a_graph_is_of_one_layer_only() -> None:
    tenant = Tenant("t")
    for layer in Layer:
        for graph in (
            tenant.layer_graph(HOLON, layer),
            tenant.layer_graph(HOLON, layer, "slug"),
        ):
            of = [
                (name, holon, other)
                for name in ("t", "t2")
                for holon in (HOLON, OTHER)
                for other in Layer
                if Tenant(name).is_layer_graph(graph.value, holon, other)
            ]
            assert of == [("t", HOLON, layer)]
    assert tenant.is_layer_graph(tenant.portal_graph(HOLON, OTHER).value, HOLON, Layer.PROJECTION)
