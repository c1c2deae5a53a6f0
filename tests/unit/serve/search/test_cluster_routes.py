"""What the port says of the cluster and its nodes."""

import threading
import time

import httpx
import pytest

from graphdb.config import Settings
from graphdb.node import ClusterMember, NodeStatus
from graphdb.search.catalog.commands import CreateIndex
from serve.search.administration.cat_nodes import listings
from serve.search.administration.cat_view import CatView
from serve.search.frame.identity import Identity
from serve.search.frame.parameters import Parameters
from tests.support.memory_search import MemorySearch
from tests.unit.serve.search.conftest import reason_of


def make(http: httpx.Client, name: str, replicas: int = 0, shards: int = 1) -> None:
    body = {"settings": {"number_of_replicas": replicas, "number_of_shards": shards}}
    assert http.put(f"/{name}", json=body).status_code == 200


class Cluster(MemorySearch):
    """A node of three, of which one cannot be reached."""

    def status(self) -> NodeStatus:
        members = (
            ClusterMember(1, "10.0.0.1:7002", "leader", True),
            ClusterMember(2, "10.0.0.2:7002", "follower", True),
            ClusterMember(3, "[fe80::3]:7002", "follower", False),
        )
        return NodeStatus("healthy", "follower", 2, 5, 1, members, 0, True, 3)


def test_the_first_answer(http: httpx.Client) -> None:
    body = http.get("/").json()
    assert {name: body[name] for name in ("cluster_name", "tagline")} == {
        "cluster_name": "graphdb",
        "tagline": "You Know, for Search",
    }
    assert body["version"]["number"] == "8.19.0"
    assert body["version"]["build_flavor"] == "default"
    head = http.head("/")
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == http.get("/").headers["content-length"]


def test_ids_stay_and_are_the_same_on_every_node_of_a_cluster() -> None:
    one, other = Identity(Settings()), Identity(Settings.model_validate({"search": {"node_name": "b"}}))
    assert one.cluster_uuid == other.cluster_uuid == "qxSWDL2qVKy0xSayhEFbag"
    status = Cluster().status()
    assert [node.id for node in one.members(status)] == [node.id for node in other.members(status)]
    assert len({node.id for node in one.members(status)}) == 3
    assert [(node.host, node.leads) for node in one.members(status)][1:] == [
        ("10.0.0.1", True),
        ("fe80::3", False),
    ]
    other_cluster = Identity(Settings.model_validate({"search": {"cluster_name": "b"}}))
    assert other_cluster.cluster_uuid != one.cluster_uuid


def test_health_counts_copies_that_have_a_place(http: httpx.Client) -> None:
    make(http, "a", replicas=0, shards=2)
    make(http, "b", replicas=1)
    health = http.get("/_cluster/health").json()
    assert health["status"] == "yellow"
    assert (health["active_primary_shards"], health["active_shards"], health["unassigned_shards"]) == (
        3,
        3,
        1,
    )
    assert health["active_shards_percent_as_number"] == 75.0
    assert http.get("/_cluster/health/a").json()["status"] == "green"
    by_index = http.get("/_cluster/health?level=indices").json()["indices"]
    assert {name: one["status"] for name, one in by_index.items()} == {"a": "green", "b": "yellow"}
    shards = http.get("/_cluster/health/a?level=shards").json()["indices"]["a"]["shards"]
    assert shards.keys() == {"0", "1"}


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("wait_for_status=green", 408),
        ("wait_for_status=yellow", 200),
        ("wait_for_status=YELLOW", 200),
        ("wait_for_nodes=1", 200),
        ("wait_for_nodes=%3E%3D2", 408),
        ("wait_for_nodes=ge(1)", 200),
        ("wait_for_nodes=lt(1)", 408),
        ("wait_for_active_shards=1", 200),
        ("wait_for_active_shards=2", 408),
        ("wait_for_active_shards=all", 408),
        ("wait_for_no_relocating_shards=true&wait_for_no_initializing_shards=true", 200),
    ],
)
def test_waiting_for_health(http: httpx.Client, query: str, status: int) -> None:
    make(http, "a", replicas=1)
    answer = http.get(f"/_cluster/health?timeout=0&{query}")
    assert (answer.status_code, answer.json()["timed_out"]) == (status, status == 408)


def test_health_waits_for_an_index_that_is_to_come(node: MemorySearch, http: httpx.Client) -> None:
    late = threading.Timer(0.3, lambda: node.catalog.apply(CreateIndex("late", "u"), 1, 0))
    late.start()
    started = time.monotonic()
    answer = http.get("/_cluster/health/late?timeout=5s")
    late.join()
    assert answer.status_code == 200
    assert 0.25 < time.monotonic() - started < 3
    answer = http.get("/_cluster/health/never?timeout=10ms")
    assert (answer.status_code, answer.json()["status"]) == (408, "red")


@pytest.mark.parametrize(
    "query",
    [
        "level=planet",
        "wait_for_status=blue",
        "wait_for_nodes=many",
        "wait_for_active_shards=x",
        "timeout=5",
        "nothing=1",
    ],
)
def test_health_refuses_what_means_nothing(http: httpx.Client, query: str) -> None:
    assert reason_of(http.get(f"/_cluster/health?{query}"))[0] == 400


def test_settings_of_the_cluster_cannot_be_set(http: httpx.Client) -> None:
    assert http.get("/_cluster/settings").json() == {"persistent": {}, "transient": {}}
    assert reason_of(http.put("/_cluster/settings", json={"persistent": {"a": {"b": 1}}})) == (
        400,
        "illegal_argument_exception",
        "persistent setting [a.b], not recognized",
    )
    assert http.put("/_cluster/settings", json={"transient": {"a.b": None}}).json()["acknowledged"] is True
    assert reason_of(http.put("/_cluster/settings", json={"lasting": {}}))[0] == 400
    assert reason_of(http.put("/_cluster/settings", json={"transient": [1]}))[0] == 400


def test_state_and_stats(http: httpx.Client) -> None:
    make(http, "a")
    state = http.get("/_cluster/state").json()
    assert state["metadata"]["indices"].keys() == {"a"}
    assert state["master_node"] in state["nodes"]
    assert "nodes" not in http.get("/_cluster/state/metadata/a").json()
    assert reason_of(http.get("/_cluster/state/weather"))[0] == 400
    stats = http.get("/_cluster/stats").json()
    assert (stats["indices"]["count"], stats["status"], stats["nodes"]["count"]["total"]) == (1, "green", 1)


def test_nodes(url: str, http: httpx.Client) -> None:
    answer = http.get("/_nodes/http").json()
    (node_id,) = answer["nodes"]
    assert answer["nodes"][node_id]["http"]["publish_address"] == url.removeprefix("http://")
    assert "os" not in answer["nodes"][node_id]
    for path in (node_id, "_local", "_master", "_all", "master:true", "data:true", f"{node_id}/http"):
        assert http.get(f"/_nodes/{path}").json()["_nodes"]["total"] == 1
    assert http.get("/_nodes/somebody").json()["nodes"] == {}
    assert http.get("/_nodes/stats/os").json()["nodes"][node_id].keys() >= {"os", "name"}
    assert http.get("/_nodes/somebody/stats").json()["nodes"] == {}


def test_answers_for_features_that_are_not_here(http: httpx.Client) -> None:
    assert http.get("/_license").json()["license"]["type"] == "basic"
    assert http.get("/_xpack").json()["features"]["ml"] == {"available": False, "enabled": False}
    assert http.get("/_tasks").json() == {"nodes": {}}
    assert http.get("/_ingest/pipeline").json() == {}
    assert reason_of(http.get("/_ingest/pipeline/p"))[0] == 404
    assert http.get("/_ml/info").status_code == 400
    assert http.get("/_ml/info").json() == {"error": "no handler found for uri [/_ml/info] and method [GET]"}


def test_cat_shows_a_cluster() -> None:
    node = Cluster()
    view = CatView(node, Identity(Settings()), [], None, Parameters.of(b""))
    by_name = {listing.name: listing for listing in listings(Settings().server.data_dir)}
    rows = list(by_name["nodes"].rows(view))
    assert [(row["ip"], row["master"]) for row in rows][1:] == [("10.0.0.1", "*")]
    assert [row["node"] for row in by_name["master"].rows(view)] == ["node-1"]
    (health,) = by_name["health"].rows(view)
    assert health["node.total"] == 2
