"""The search ports of three real services that are one cluster, under clients and kills."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.bulk_clients import BulkClients, document, search_client, stored
from tests.support.cluster_service import ClusterService
from tests.support.service import Service

pytestmark = [pytest.mark.ray, pytest.mark.long, pytest.mark.timeout(600)]

SOON_S = 60.0


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterService]:
    cluster = ClusterService(tmp_path_factory.mktemp("cluster"), search=True)
    try:
        yield cluster.start()
    finally:
        cluster.close()


@pytest.fixture
def cluster(started: ClusterService) -> ClusterService:
    """The running cluster, whole again whatever the last test has left."""
    started.repair()
    for node in started.nodes.values():
        await_search(node)
    return started


def await_search(node: Service) -> None:
    def is_ready() -> bool:
        with search_client(node.search_url) as client:
            return client.get("/_cat/indices").status_code == 200

    node.wait_until(is_ready, SOON_S)


def await_documents(node: Service, index: str, numbers: set[int]) -> dict[int, dict[str, Any]]:
    """Wait until a node has at least these; all that it has."""
    node.wait_until(
        lambda: has_index(node, index) and numbers <= stored(node.search_url, index).keys(), SOON_S
    )
    return stored(node.search_url, index)


def has_index(node: Service, index: str) -> bool:
    with search_client(node.search_url) as client:
        return client.head(f"/{index}").status_code == 200


def await_same(cluster: ClusterService, index: str, clients: BulkClients) -> None:
    """Every node has what was acknowledged, whole, and all have the same."""
    assert clients.unexpected == []
    assert clients.acknowledged
    for node in cluster.nodes.values():
        await_documents(node, index, clients.acknowledged)
    time.sleep(1)  # what nobody was told of may still be on its way
    first, *others = [stored(node.search_url, index) for node in cluster.nodes.values()]
    assert {number: source for number, source in first.items() if source != document(number)} == {}
    assert all(other == first for other in others)


def urls(cluster: ClusterService) -> list[str]:
    return [node.search_url for node in cluster.nodes.values()]


def test_what_a_follower_takes_is_found_at_every_node(cluster: ClusterService) -> None:
    follower = cluster.nodes[cluster.followers()[0]]
    with search_client(follower.search_url) as client:
        client.put("/any/_doc/1?refresh=true", json=document(1)).raise_for_status()
    for node in cluster.nodes.values():
        assert await_documents(node, "any", {1}) == {1: document(1)}


def test_all_nodes_take_writes_at_once_and_agree(cluster: ClusterService) -> None:
    with BulkClients(urls(cluster), "at-once", count=1) as clients:
        time.sleep(3)
    await_same(cluster, "at-once", clients)


def test_a_killed_leader_costs_nothing_that_was_acknowledged(cluster: ClusterService) -> None:
    leader = cluster.leader()
    others = [node.search_url for number, node in cluster.nodes.items() if number != leader]
    with BulkClients(others, "leader-killed", count=1) as clients:
        time.sleep(2)
        before = len(clients.acknowledged)
        cluster.nodes[leader].kill()
        time.sleep(8)
    assert len(clients.acknowledged) > before, "nothing was written after the leader was gone"
    cluster.start(leader)
    await_search(cluster.nodes[leader])
    await_same(cluster, "leader-killed", clients)


def test_a_wiped_node_gets_the_indexes_as_a_snapshot(cluster: ClusterService) -> None:
    wiped = cluster.followers()[0]
    cluster.nodes[wiped].stop()
    cluster.wipe(wiped)
    others = [node.search_url for number, node in cluster.nodes.items() if number != wiped]
    with BulkClients(others, "wiped", count=1) as clients:
        time.sleep(2)
    for url in others:
        with search_client(url) as client:
            client.post("/_flush").raise_for_status()
    cluster.start(wiped)
    await_search(cluster.nodes[wiped])
    await_same(cluster, "wiped", clients)
    assert has_index(cluster.nodes[wiped], "any")
    assert stored(cluster.nodes[wiped].search_url, "any") == {1: document(1)}
