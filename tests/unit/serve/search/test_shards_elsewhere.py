"""Searches over the port, of shards that other processes have: as the node answers; lost copies."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from actors.search.shard_cluster import ShardCluster
from graphdb.config import Settings
from serve.search_app import build_search_app
from tests.support.http_server import serving
from tests.support.memory_search import MemorySearch
from tests.support.shard_hosts import LocalHosts
from tests.support.timing import HANG_S

WAIT_S = 20.0
WORDS = ("red", "green", "blue", "old", "new")
MAPPINGS = {
    "properties": {
        "text": {"type": "text"},
        "colour": {"type": "keyword"},
        "size": {"type": "integer"},
        "vector": {"type": "dense_vector", "dims": 2, "similarity": "l2_norm"},
    }
}
SEARCHES: list[dict[str, Any]] = [
    {},
    {"query": {"match": {"text": "red old"}}, "size": 7},
    {"query": {"match": {"text": "red"}}, "highlight": {"fields": {"text": {}}}},
    {"query": {"range": {"size": {"gte": 5, "lt": 20}}}, "sort": [{"size": "desc"}, "colour"], "from": 3},
    {"size": 0, "aggs": {"c": {"terms": {"field": "colour"}, "aggs": {"s": {"avg": {"field": "size"}}}}}},
    {"size": 2, "aggs": {"c": {"terms": {"field": "colour"}, "aggs": {"t": {"top_hits": {"size": 1}}}}}},
    {"query": {"term": {"colour": "blue"}}, "collapse": {"field": "size"}},
    {"knn": {"field": "vector", "query_vector": [3.0, 4.0], "k": 4, "num_candidates": 20}},
    {"query": {"match": {"text": "red"}}, "knn": {"field": "vector", "query_vector": [3, 4], "k": 4}},
    {"query": {"nothing": {}}},
    {"sort": "missing"},
]


class _Port:
    """The port of a node whose shards are elsewhere."""

    def __init__(self, client: httpx.Client, node: MemorySearch, hosts: LocalHosts) -> None:
        self.node, self.hosts, self._http = node, hosts, client

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        answer = self._http.request(method, path, json=body).json()
        if isinstance(answer, dict):
            answer.pop("took", None)
        return answer

    def fill(self, low: int, high: int) -> None:
        for number in range(low, high):
            document = {
                "text": " ".join(WORDS[(number * step) % 5] for step in (1, 2, 3, 7)[: 1 + number % 4]),
                "colour": WORDS[number % 3],
                "size": number % 11 + number // 7,
                "vector": [number % 6, number % 7],
            }
            self.ask("PUT", f"/books/_doc/{number}", document)
        self.ask("POST", "/books/_refresh")

    def by_node(self, method: str, path: str, body: Any = None) -> Any:
        """As the node answers that searches its shards itself."""
        shards, self.node.shards = self.node.shards, None
        try:
            return self.ask(method, path, body)
        finally:
            self.node.shards = shards

    def copies(self) -> list[tuple[int, bool, str, str | None]]:
        """(shard, whether primary, state, node)."""
        assert self.node.shards is not None
        found = self.node.shards.copies(self.node.catalog.indexes()[0])
        return [
            (one.number, one.is_primary, one.state, None if one.node is None else one.node.id)
            for one in found
        ]

    def await_copies(self, holds: Callable[[list[tuple[int, bool, str, str | None]]], bool]) -> None:
        until = time.monotonic() + WAIT_S
        while not holds(self.copies()):
            assert time.monotonic() < until, self.copies()
            time.sleep(0.02)

    def await_started(self) -> None:
        self.await_copies(lambda copies: all(state == "STARTED" for _, _, state, _ in copies))

    def await_health(self, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        until = time.monotonic() + WAIT_S
        while not holds(health := self.ask("GET", "/_cluster/health")):
            assert time.monotonic() < until, health
            time.sleep(0.02)
        return dict(health)

    def searched_by(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = self.ask("POST", path, {**body, "profile": True})["profile"]["searched_by"]
        return found


@pytest.fixture
def port() -> Iterator[_Port]:
    node, hosts = MemorySearch(), LocalHosts({"a": 2, "b": 2})
    shards = ShardCluster(hosts, lambda: node.catalog)
    node.shards = shards
    shards.start()
    with (
        serving(build_search_app(node, Settings())) as url,
        httpx.Client(base_url=url, timeout=HANG_S) as client,
    ):
        made = _Port(client, node, hosts)
        settings = {"number_of_shards": 3, "number_of_replicas": 1}
        made.ask("PUT", "/books", {"settings": settings, "mappings": MAPPINGS})
        made.fill(0, 60)
        made.await_started()
        yield made
    shards.close()


def test_answers_are_those_of_the_node_after_each_change(port: _Port) -> None:
    _compare(port)
    port.fill(60, 70)
    _compare(port)
    port.fill(20, 30)
    _compare(port)
    for number in range(5, 15):
        port.ask("DELETE", f"/books/_doc/{number}")
    port.ask("POST", "/books/_refresh")
    _compare(port)
    assert port.searched_by("/books/_search", {})["shards"] == 3


def _compare(port: _Port) -> None:
    for body in SEARCHES:
        assert port.ask("POST", "/books/_search", body) == port.by_node("POST", "/books/_search", body)
    query = {"query": {"match": {"text": "red"}}}
    assert port.ask("POST", "/books/_count", query) == port.by_node("POST", "/books/_count", query)


def test_what_the_node_searches_itself_says_why(port: _Port) -> None:
    port.ask("PUT", "/other/_doc/1?refresh=true", {"text": "red"})
    lookup = {"query": {"terms": {"colour": {"index": "other", "id": "1", "path": "text"}}}}
    for path, body in (("/_search", {}), ("/books/_search?routing=x", {}), ("/books/_search", lookup)):
        assert "reason" in port.searched_by(path, body)


def test_a_replica_answers_for_a_lost_node_and_both_are_made_again(port: _Port) -> None:
    whole = port.ask("POST", "/books/_search", SEARCHES[1])
    assert all(
        len({node for shard, _, _, node in port.copies() if shard == number}) == 2 for number in range(3)
    )
    assert port.ask("GET", "/_cluster/health")["status"] == "green"
    shown = port.ask("GET", "/books/_search_shards")
    assert [sorted(copy["node"] for copy in copies) for copies in shown["shards"]] == [["a", "b"]] * 3
    assert shown["nodes"].keys() == {"a", "b"}
    port.hosts.kill_node("a")
    assert port.ask("POST", "/books/_search", SEARCHES[1]) == whole
    port.await_copies(lambda copies: [state for _, _, state, _ in copies].count("UNASSIGNED") == 3)
    port.await_copies(lambda copies: all(state == "STARTED" for _, primary, state, _ in copies if primary))
    assert port.ask("POST", "/books/_search", SEARCHES[1]) == whole
    health = port.await_health(lambda health: health["number_of_data_nodes"] == 1)
    assert (health["status"], health["unassigned_shards"], health["number_of_data_nodes"]) == ("yellow", 3, 1)
    why = port.ask("GET", "/_cluster/allocation/explain")
    assert why["allocate_explanation"].startswith("there are 1 Ray nodes for shards")
    port.hosts.nodes["c"] = 1
    port.await_started()
    assert port.ask("POST", "/books/_search", SEARCHES[1]) == whole


def test_without_a_replica_the_answer_is_partial_until_the_shard_is_there_again(port: _Port) -> None:
    whole = port.ask("POST", "/books/_search", {})
    port.ask("PUT", "/books/_settings", {"number_of_replicas": 0})
    port.await_copies(lambda copies: len(copies) == 3 and all(one[2] == "STARTED" for one in copies))
    port.hosts.may_start = False
    for host in list(port.hosts.running.values())[:2]:
        host.kill()
    health = port.await_health(lambda health: health["status"] == "red")
    lost = port.ask("POST", "/books/_search", {})
    failed = lost["_shards"]["failed"]
    assert 0 < failed < 3
    assert lost["hits"]["total"]["value"] < whole["hits"]["total"]["value"]
    assert {one["reason"]["type"] for one in lost["_shards"]["failures"]} == {
        "no_shard_available_action_exception"
    }
    assert health["unassigned_primary_shards"] <= failed
    refused = port.ask("POST", "/books/_search?allow_partial_search_results=false", {})
    assert refused["status"] == 503
    port.hosts.may_start = True
    port.await_started()
    assert port.ask("POST", "/books/_search", {})["hits"] == whole["hits"]


def test_copies_move_to_a_node_that_comes(port: _Port) -> None:
    port.hosts.nodes["c"] = 2
    port.await_copies(lambda copies: sum(node == "c" for *_, node in copies) == 2)
    assert port.ask("POST", "/books/_search", {}) == port.by_node("POST", "/books/_search", {})
