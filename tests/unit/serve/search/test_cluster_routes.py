"""What the port says of the cluster and its nodes."""

import threading
import time
from typing import Any

import httpx
import pytest

from graphdb.config import Settings
from graphdb.node import ClusterMember, NodeStatus
from graphdb.search.catalog.catalog_commands import CreateIndex, IntroduceNode
from graphdb.search.catalog.state import KnownNode
from serve.search.administration import cluster
from serve.search.administration.cat_nodes import listings
from serve.search.administration.cat_table import CatView
from serve.search.frame.identity import Identity
from serve.search.frame.parameters import Parameters
from serve.search_app import build_search_app
from tests.support.http_server import serving
from tests.support.leaving_client import leave
from tests.support.memory_search import MemorySearch
from tests.support.timing import HANG_S
from tests.unit.serve.search.conftest import one_shard, reason_of

pytestmark = one_shard


def make(http: httpx.Client, name: str, replicas: int = 0, shards: int = 1) -> None:
    body = {"settings": {"number_of_replicas": replicas, "number_of_shards": shards}}
    assert http.put(f"/{name}", json=body).status_code == 200


class Cluster(MemorySearch):
    """A node of three, of which one cannot be reached."""

    def __init__(self, number: int = 2) -> None:
        super().__init__()
        self._number = number

    def status(self) -> NodeStatus:
        members = (
            ClusterMember(1, "10.0.0.1:7002", "leader", True),
            ClusterMember(2, "10.0.0.2:7002", "follower", True),
            ClusterMember(3, "[fe80::3]:7002", "follower", False),
        )
        role = "leader" if self._number == 1 else "follower"
        return NodeStatus("healthy", role, self._number, 5, 1, members, 0, True, 3)


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


def settings_of(number: int) -> Settings:
    return Settings.model_validate({"cluster": {"enabled": True, "node_id": number}})


def introduced(node: MemorySearch, *numbers: int) -> None:
    for number in numbers:
        address = f"10.0.0.{number}:9200"
        node.catalog.apply(IntroduceNode(number, f"n{number}", address, f"uuid{number}"), number, 0)


def test_every_node_of_a_cluster_shows_the_same_nodes() -> None:
    shown = []
    for number in (1, 2):
        node = Cluster(number)
        introduced(node, 2, 1)
        node.own = KnownNode(f"n{number}", f"10.0.0.{number}:9200")
        identity = Identity(node, settings_of(number))
        shown.append(identity.members(node.status()))
        assert identity.cluster_uuid == "uuid2", "the first to come has decided"
        assert identity.here(node.status()).id == identity.node_id == shown[-1][number - 1].id
    assert shown[0] == shown[1]
    assert len({node.id for node in shown[0]}) == 3
    assert [(node.name, node.host, node.http_address, node.leads) for node in shown[0]] == [
        ("n1", "10.0.0.1", "10.0.0.1:9200", True),
        ("n2", "10.0.0.2", "10.0.0.2:9200", False),
        ("node-3", "fe80::3", None, False),
    ]


def test_a_cluster_has_no_id_before_a_node_has_introduced_itself(node: MemorySearch) -> None:
    identity = Identity(node, Settings())
    assert identity.cluster_uuid == "_na_"
    before = identity.node_id
    introduced(node, 1)
    assert (identity.cluster_uuid, identity.node_id == before) == ("uuid1", False)
    introduced(node, 2)
    assert identity.cluster_uuid == "uuid1"


def test_what_clients_ask_to_find_all_nodes() -> None:
    node = Cluster(2)
    introduced(node, 1)
    node.own = KnownNode("n2", "10.0.0.2:9200")
    with serving(build_search_app(node, settings_of(2))) as url, httpx.Client(base_url=url) as http:
        found = http.get("/_nodes/_all/http").json()
        assert found["_nodes"] == {"total": 2, "successful": 2, "failed": 0}
        addresses = {one["name"]: one["http"]["publish_address"] for one in found["nodes"].values()}
        assert addresses == {"n1": "10.0.0.1:9200", "n2": "10.0.0.2:9200"}
        everything = http.get("/_nodes").json()["nodes"].values()
        assert [("os" in one, one["transport_address"]) for one in everything] == [
            (False, "10.0.0.1:7002"),
            (True, "10.0.0.2:7002"),
        ]
        for asked, wanted in (("_local", "n2"), ("_master", "n1"), ("n*", "n1 n2"), ("x,n1", "n1")):
            shown = http.get(f"/_nodes/{asked}").json()["nodes"].values()
            assert " ".join(one["name"] for one in shown) == wanted
        assert [one["name"] for one in http.get("/_nodes/stats").json()["nodes"].values()] == ["n2"]
        names = http.get("/_cat/nodes?h=name,master,http_address,port").text.splitlines()
        assert [line.split() for line in names] == [
            ["n1", "*", "10.0.0.1:9200", "7002"],
            ["n2", "-", "10.0.0.2:9200", "7002"],
        ]
        state = http.get("/_cluster/state/nodes,master_node").json()
        assert [one["name"] for one in state["nodes"].values()] == ["n1", "n2"]
        assert state["nodes"][state["master_node"]]["name"] == "n1"


def test_waiting_ends_when_the_client_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[float] = []
    look = cluster._look

    def noted(*arguments: Any) -> Any:
        looked.append(time.monotonic())
        return look(*arguments)

    monkeypatch.setattr(cluster, "_look", noted)
    with serving(build_search_app(MemorySearch(), Settings())) as url:
        leave(f"{url}/_cluster/health/never?timeout=10000d", lambda: looked)
        deadline, count = time.monotonic() + HANG_S, 0
        while len(looked) > count:
            assert time.monotonic() < deadline
            count = len(looked)
            time.sleep(0.5)


def test_waiting_has_an_end(http: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "_WAIT_MS_MAX", 300)
    answer = http.get("/_cluster/health/never?timeout=10000d")
    assert (answer.status_code, answer.json()["timed_out"]) == (408, True)


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
    answer = http.get(f"/_cluster/health/late?timeout={HANG_S:.0f}s")
    late.join()
    assert answer.status_code == 200
    assert 0.25 < time.monotonic() - started < HANG_S / 2
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


def test_other_settings_of_the_cluster_cannot_be_set(http: httpx.Client) -> None:
    assert http.get("/_cluster/settings").json() == {"persistent": {}, "transient": {}}
    assert reason_of(http.put("/_cluster/settings", json={"persistent": {"a": {"b": 1}}})) == (
        400,
        "illegal_argument_exception",
        "persistent setting [a.b], not recognized",
    )
    assert http.put("/_cluster/settings", json={"transient": {"a.b": None}}).json()["acknowledged"] is True
    assert reason_of(http.put("/_cluster/settings", json={"lasting": {}}))[0] == 400
    assert reason_of(http.put("/_cluster/settings", json={"transient": [1]}))[0] == 400


def auto_create(http: httpx.Client, value: Any, kind: str = "persistent") -> httpx.Response:
    return http.put("/_cluster/settings", json={kind: {"action.auto_create_index": value}})


def test_auto_create_index_is_set_shown_and_reset(http: httpx.Client) -> None:
    nested = {"action": {"auto_create_index": "false"}}
    assert auto_create(http, False).json() == {"acknowledged": True, "persistent": nested, "transient": {}}
    there = http.put("/_cluster/settings", json={"transient": {"action": {"auto_create_index": "+a*,-b"}}})
    assert there.json()["transient"] == {"action": {"auto_create_index": "+a*,-b"}}
    assert http.get("/_cluster/settings").json()["persistent"] == nested
    assert http.get("/_cluster/settings?flat_settings=true").json() == {
        "persistent": {"action.auto_create_index": "false"},
        "transient": {"action.auto_create_index": "+a*,-b"},
    }
    assert http.put("/abc/_doc/1", json={}).status_code == 201  # transient wins
    assert auto_create(http, None, "transient").json()["transient"] == {}
    assert http.put("/abd/_doc/1", json={}).status_code == 404
    assert http.put("/_cluster/settings", json={"persistent": {"action.*": None}}).status_code == 200
    shown = http.get("/_cluster/settings?include_defaults=true&flat_settings=true").json()
    assert shown["persistent"] == shown["transient"] == {}
    assert shown["defaults"]["action.auto_create_index"] == "true"
    assert http.put("/abd/_doc/1", json={}).status_code == 201


@pytest.mark.parametrize("value", ["+a,-", "a,,b", "+", ["a"], 3])
def test_auto_create_index_refuses_what_means_nothing(http: httpx.Client, value: Any) -> None:
    status, kind, reason = reason_of(auto_create(http, value))
    assert (status, kind) == (400, "illegal_argument_exception")
    assert reason.startswith("Can't parse [")
    assert http.get("/_cluster/settings").json()["persistent"] == {}


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (False, "[action.auto_create_index] is [false]"),
        (
            "-new*,+*",
            "[action.auto_create_index] contains [-new*] which forbids automatic creation of the index",
        ),
        ("+logs-*,-*x", "[action.auto_create_index] ([+logs-*,-*x]) doesn't match"),
    ],
)
def test_auto_create_index_governs_documents_and_nothing_else(
    http: httpx.Client, value: Any, why: str
) -> None:
    auto_create(http, value)
    refused = (404, "index_not_found_exception", f"no such index [new] and {why}")
    assert reason_of(http.put("/new/_doc/1", json={})) == refused
    assert reason_of(http.post("/new/_update/1", json={"doc": {}, "doc_as_upsert": True})) == refused
    lines = '{"index":{"_index":"new"}}\n{}\n{"create":{"_index":"there","_id":"1"}}\n{}\n'
    make(http, "there")
    bulk = http.post("/_bulk", content=lines, headers={"Content-Type": "application/x-ndjson"}).json()
    first, second = bulk["items"]
    assert (first["index"]["status"], first["index"]["error"]["reason"]) == (404, refused[2])
    assert second["create"]["status"] == 201
    assert http.head("/new").status_code == 404
    make(http, "new")
    assert http.put("/new/_doc/1", json={}).status_code == 201


def test_a_template_says_more_of_automatic_creation_than_the_cluster(http: httpx.Client) -> None:
    auto_create(http, False)
    body = {"index_patterns": ["free-*"], "allow_auto_create": True}
    assert http.put("/_index_template/free", json=body).status_code == 200
    assert http.put("/_index_template/quiet", json={"index_patterns": ["quiet-*"]}).status_code == 200
    assert http.put("/free-1/_doc/1", json={}).status_code == 201
    assert http.put("/quiet-1/_doc/1", json={}).status_code == 404


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
    settings = http.get("/_nodes/settings").json()["nodes"][node_id]["settings"]
    assert settings["client"] == {"type": "node"}
    flat = http.get("/_nodes/settings?flat_settings=true").json()["nodes"][node_id]["settings"]
    assert flat["client.type"] == "node"


def test_there_is_no_keystore_to_be_read_again(http: httpx.Client) -> None:
    (node,) = http.post("/_nodes/reload_secure_settings").json()["nodes"].values()
    assert node == {"name": "memory"}
    body = {"secure_settings_password": "guessed"}
    (node,) = http.post("/_nodes/_local/reload_secure_settings", json=body).json()["nodes"].values()
    assert node["reload_exception"]["type"] == "security_exception"
    assert http.post("/_nodes/somebody/reload_secure_settings").json()["nodes"] == {}


def test_answers_for_features_that_are_not_here(http: httpx.Client) -> None:
    assert http.get("/_license").json()["license"]["type"] == "basic"
    assert http.get("/_xpack").json()["features"]["ml"] == {"available": False, "enabled": False}
    [here] = http.get("/_tasks").json()["nodes"].values()
    assert [task["action"] for task in here["tasks"].values()] == ["cluster:monitor/tasks/lists"]
    assert http.get("/_ml/info").status_code == 400
    assert http.get("/_ml/info").json() == {"error": "no handler found for uri [/_ml/info] and method [GET]"}


def test_cat_shows_a_cluster() -> None:
    node = Cluster()
    view = CatView(node, Identity(node, settings_of(2)), [], None, Parameters.of(b""))
    by_name = {listing.name: listing for listing in listings(Settings().server.data_dir)}
    rows = list(by_name["nodes"].rows(view))
    assert [(row["ip"], row["master"]) for row in rows] == [("10.0.0.1", "*"), ("127.0.0.1", "-")]
    assert [row["node"] for row in by_name["master"].rows(view)] == ["node-1"]
    (health,) = by_name["health"].rows(view)
    assert health["node.total"] == 2


def test_health_is_reported_by_cause() -> None:
    node = Cluster(2)
    introduced(node, 1)
    with serving(build_search_app(node, settings_of(2))) as url, httpx.Client(base_url=url) as http:
        healthy = http.get("/_health_report").json()
        assert [one["status"] for one in healthy["indicators"].values()] == ["green", "green"]
        http.put("/i", json={"settings": {"number_of_replicas": 2}}).raise_for_status()
        report = http.get("/_health_report?size=1").json()
        shards = report["indicators"]["shards_availability"]
        assert (report["status"], shards["status"]) == ("yellow", "yellow")
        assert shards["details"]["unassigned_replicas"] == 1
        assert shards["diagnosis"][0]["affected_resources"] == {"indices": ["i"]}
        short = http.get("/_health_report/shards_availability?verbose=false").json()
        assert short["indicators"]["shards_availability"].keys() == {"status", "symptom"}
        assert http.get("/_health_report/weather").status_code == 404


def test_there_is_one_cluster_to_resolve() -> None:
    with serving(build_search_app(MemorySearch(), Settings())) as url, httpx.Client(base_url=url) as http:
        http.put("/some").raise_for_status()
        for name, found in (("so*", True), ("other*", False)):
            local = http.get(f"/_resolve/cluster/{name}").json()["(local)"]
            assert (local["connected"], local["matching_indices"]) == (True, found)
        assert http.get("/_resolve/cluster/none").json()["(local)"]["error"] == "no such index [none]"
        assert "matching_indices" not in http.get("/_resolve/cluster").json()["(local)"]


def test_nodes_name_the_modules_whose_features_are_here(http: httpx.Client) -> None:
    (node,) = http.get("/_nodes/modules").json()["nodes"].values()
    names = [module["name"] for module in node["modules"]]
    assert {"analysis-common", "ingest-common", "lang-painless", "parent-join", "reindex"} <= set(names)
    assert names == sorted(names)
    assert "modules" not in next(iter(http.get("/_nodes/http").json()["nodes"].values()))
