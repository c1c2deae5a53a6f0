"""Indexes that follow the graph in a cluster of real services, under kills, hand-overs and lost disks."""

import os
import time
from collections.abc import Iterator

import httpx
import pytest
from elasticsearch import Elasticsearch

from tests.integration.test_cluster import BLOB, first_index_of_log, graphdb
from tests.integration.test_search_cluster import await_documents, await_search
from tests.support.bulk_clients import document, search_client
from tests.support.cluster_service import ClusterService
from tests.support.file_texts import files_with
from tests.support.graph_changers import INDEXES, GraphChangers, await_followed, following
from tests.support.service import Service
from tests.support.timing import HANG_S

pytestmark = [pytest.mark.ray, pytest.mark.long, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterService]:
    cluster = ClusterService(tmp_path_factory.mktemp("cluster"), search=True)
    try:
        cluster.start()
        await_all(cluster)
        follower = cluster.nodes[cluster.followers()[0]]
        with search_client(follower.search_url) as client:
            for name, shape in INDEXES.items():
                client.put(f"/{name}", json={"settings": {"graph": {"shape": shape}}}).raise_for_status()
        yield cluster
    finally:
        cluster.close()


@pytest.fixture
def cluster(started: ClusterService) -> ClusterService:
    """The running cluster, whole again whatever the last test has left."""
    started.repair()
    await_all(started)
    return started


def await_all(cluster: ClusterService) -> None:
    for node in cluster.nodes.values():
        await_search(node)


def changers(cluster: ClusterService, seed: int, *without: int) -> GraphChangers:
    return GraphChangers([node.url for number, node in cluster.nodes.items() if number not in without], seed)


def check(cluster: ClusterService, clients: GraphChangers) -> None:
    assert clients.unexpected == []
    assert clients.confirmed > 0
    await_followed(cluster)


def test_what_is_written_at_any_node_is_in_the_indexes_of_all(cluster: ClusterService) -> None:
    with changers(cluster, seed=1) as clients:
        time.sleep(3)
    check(cluster, clients)
    leader = cluster.leader()
    states = {
        number: {one["state"] for one in following(node).values()} for number, node in cluster.nodes.items()
    }
    assert states == {number: {"following" if number == leader else "elsewhere"} for number in cluster.nodes}


def test_the_lead_is_handed_over_in_the_middle_of_writes(cluster: ClusterService) -> None:
    with changers(cluster, seed=2) as clients:
        for _ in range(3):
            time.sleep(1)
            graphdb(cluster.nodes[cluster.leader()], "lead", str(cluster.followers()[0]))
        time.sleep(1)
    check(cluster, clients)


def test_leaders_are_killed_in_the_middle_of_writes(cluster: ClusterService) -> None:
    for seed in (3, 4):
        killed = cluster.leader()
        with changers(cluster, seed) as clients:
            time.sleep(1.5)
            cluster.nodes[killed].kill()
            time.sleep(3)
        cluster.start(killed)
        await_search(cluster.nodes[killed])
        check(cluster, clients)


def test_the_search_of_the_leader_is_killed(cluster: ClusterService) -> None:
    with changers(cluster, seed=5) as clients:
        time.sleep(1)
        cluster.nodes[cluster.leader()].kill("SearchPort")
        time.sleep(1)
    check(cluster, clients)


def test_every_node_is_killed_at_once(cluster: ClusterService) -> None:
    with changers(cluster, seed=6) as clients:
        time.sleep(2)
        for node in cluster.nodes.values():
            node.kill()
    cluster.start()
    await_all(cluster)
    check(cluster, clients)


def test_a_node_without_disk_and_one_without_search_come_back_and_lead(cluster: ClusterService) -> None:
    """By a snapshot, which has the indexes, and by a copy of another node's."""
    wiped, off = cluster.followers()
    cluster.nodes[off].stop()
    cluster.nodes[off].set_search(False)
    cluster.start(off)
    cluster.nodes[wiped].stop()
    cluster.wipe(wiped)
    leader = cluster.nodes[cluster.leader()]
    with search_client(leader.search_url) as client:
        client.put("/kept/_doc/1", json=document(1)).raise_for_status()
    for number in range(14):  # two checkpoints' worth, of which the log keeps one
        noise = os.urandom(6 << 20).hex()
        leader.update(f"DROP SILENT GRAPH <urn:ballast> ; {BLOB.format(number=number, noise=noise)}")
    leader.update("DROP SILENT GRAPH <urn:ballast>")
    with changers(cluster, 7, wiped) as clients:
        with search_client(leader.search_url) as client:
            client.post("/_flush").raise_for_status()
        cluster.start(wiped)
        cluster.nodes[off].stop()
        cluster.nodes[off].set_search(True)
        cluster.start(off)
        await_all(cluster)
    for number in (wiped, off):
        assert first_index_of_log(cluster.nodes[number]) > 1, "it has got every entry"
        assert await_documents(cluster.nodes[number], "kept", {1}) == {1: document(1)}
    check(cluster, clients)
    for number in (wiped, off):
        cluster.lead(number)
        with changers(cluster, number) as clients:
            time.sleep(1)
        check(cluster, clients)


def test_every_node_tells_the_same_of_the_cluster_and_clients_find_all(cluster: ClusterService) -> None:
    told = {number: cluster_as_told(node) for number, node in cluster.nodes.items()}
    uuid, names = told[1]
    assert told == dict.fromkeys(cluster.nodes, (uuid, names))
    assert sorted(names) == [f"n{number}" for number in sorted(cluster.nodes)]
    assert sniffed(cluster.nodes[2]) == {node.search_url for node in cluster.nodes.values()}
    stopped = cluster.followers()[0]
    cluster.nodes[stopped].stop()
    rest = cluster.nodes[cluster.leader()]
    rest.wait_until(lambda: len(sniffed(rest)) == 2, HANG_S)
    cluster.start(stopped)
    await_all(cluster)
    rest.wait_until(lambda: len(sniffed(rest)) == 3, HANG_S)
    assert cluster_as_told(cluster.nodes[stopped])[0] == uuid


def cluster_as_told(node: Service) -> tuple[str, list[str]]:
    """The cluster's id, and the names of its nodes."""
    with search_client(node.search_url) as client:
        uuid = client.get("/").json()["cluster_uuid"]
        listed = client.get("/_cat/nodes?h=name").text.split()
        for path in ("_nodes", "_cluster/state/nodes"):
            shown = client.get(f"/{path}").json()["nodes"].values()
            assert [one["name"] for one in shown] == listed
    return uuid, listed


def sniffed(node: Service) -> set[str]:
    """Where the official client finds nodes by asking one."""
    with Elasticsearch(node.search_url, sniff_on_start=True, sniff_before_requests=True) as client:
        assert client.info()["tagline"]
        return {
            f"http://{found.config.host}:{found.config.port}" for found in client.transport.node_pool.all()
        }


def test_what_is_purged_is_on_no_node_also_if_one_was_down(cluster: ClusterService) -> None:
    name, shape = "https://example.org/person/4711", "https://example.org/Person"
    asked, down = cluster.followers()
    node, purge = cluster.nodes[asked], f"{cluster.nodes[asked].url}/history/purge"
    httpx.put(
        f"{node.search_url}/persons", json={"settings": {"graph": {"shape": shape}}}, trust_env=False
    ).raise_for_status()
    text = f'INSERT DATA {{ <{name}> a <{shape}> ; <urn:name> "Secret-0815" }}'
    httpx.post(f"{node.url}/update", data={"update": text}, trust_env=False).raise_for_status()
    count = f"{cluster.nodes[down].search_url}/persons/_count"
    cluster.nodes[down].wait_until(
        lambda: httpx.get(count, params={"q": "name:0815"}, trust_env=False).json().get("count") == 1, HANG_S
    )
    cluster.nodes[down].kill()
    asking = httpx.post(purge, params={"resource": name}, timeout=HANG_S, trust_env=False)
    # on a busy machine it does not wait for the others either
    assert (asking.status_code, down in asking.json()["waiting_nodes"]) == (202, True)
    assert files_with(cluster.nodes[down].data_dir, name)
    cluster.nodes[down].start()
    for each in cluster.nodes.values():
        listed = f"{each.url}/history/purge"
        each.wait_until(lambda: is_done(listed), HANG_S)  # noqa: B023 it is asked within this turn
        each.wait_until(lambda: not files_with(each.data_dir, name, "Secret-0815"), HANG_S)  # noqa: B023


def is_done(address: str) -> bool:
    purges = httpx.get(address, trust_env=False).json().get("purges")
    return bool(purges) and purges[-1]["done"]
