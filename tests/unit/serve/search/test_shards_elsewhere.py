"""Searches over the port, of shards that other processes have: as the node answers; lost copies."""

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import httpx
import pytest

from actors.search.shard_cluster import ShardCluster
from actors.search.shard_host import ShardHost
from graphdb.config import Settings
from graphdb.search.catalog.visible_catalog import VisibleIndex
from serve.search.frame.parameters import Parameters
from serve.search.searching.search_names import held_of, names_found, targets_of
from serve.search_app import build_search_app
from tests.support.http_server import serving
from tests.support.memory_graph import MemoryGraph
from tests.support.memory_search import MemorySearch
from tests.support.shard_hosts import LocalHosts
from tests.support.timing import HANG_S

WORDS = ("red", "green", "blue", "old", "new")
MAPPINGS = {
    "properties": {
        "text": {"type": "text"},
        "colour": {"type": "keyword"},
        "size": {"type": "integer"},
        "vector": {"type": "dense_vector", "dims": 2, "similarity": "l2_norm"},
    }
}
GRAPH = """INSERT DATA {
    <urn:a> <urn:key> "5" ; <urn:name> "five" . <urn:b> <urn:key> "10" ; <urn:name> "ten" .
    <urn:c> <urn:word> "red", "blue" }"""
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
    {"query": {"terms": {"colour": {"index": "books", "id": "7", "path": "colour"}}}},
    {
        "size": 0,
        "aggs": {"f": {"filter": {"terms": {"size": {"index": "books", "id": "8", "path": "size"}}}}},
    },
    {"query": {"terms": {"colour": {"index": "nowhere", "id": "7", "path": "colour"}}}},
    {"query": {"more_like_this": {"like": [{"_id": "7"}], "min_term_freq": 1, "min_doc_freq": 1}}},
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
        until = time.monotonic() + HANG_S
        while not holds(self.copies()):
            assert time.monotonic() < until, self.copies()
            time.sleep(0.02)

    def await_started(self) -> None:
        self.await_copies(lambda copies: all(state == "STARTED" for _, _, state, _ in copies))

    def most_states(self) -> int:
        """How many moments of the index a copy has, at most."""
        hosts = [host.host for host in self.hosts.running.values() if not host.is_dead]
        return max(len(copy.states) for host in hosts for copy in host._copies.values())

    def await_health(self, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        until = time.monotonic() + HANG_S
        while not holds(health := self.ask("GET", "/_cluster/health")):
            assert time.monotonic() < until, health
            time.sleep(0.02)
        return dict(health)

    def searched_by(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = self.ask("POST", path, {**body, "profile": True})["profile"]["searched_by"]
        return found


@pytest.fixture
def port() -> Iterator[_Port]:
    node, hosts = MemorySearch(MemoryGraph(GRAPH)), LocalHosts({"a": 2, "b": 2})
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
    assert "reason" in port.searched_by("/_search?preference=_shards:0", {})


def test_some_of_the_shards_are_searched_with_the_statistics_of_all(port: _Port) -> None:
    for limit in ("routing=x", "routing=3,x", "preference=_shards:0,2", "preference=_shards:1", "routing=9"):
        for body in SEARCHES:
            path = f"/books/_search?{limit}"
            assert port.ask("POST", path, body) == port.by_node("POST", path, body), (path, body)
    assert port.searched_by("/books/_search?preference=_shards:0,2", {})["shards"] == 2
    _compare_scrolls(port, {"query": {"match": {"text": "red"}}}, "/books/_search?preference=_shards:0,2")


def test_what_documents_of_other_indexes_hold_is_looked_up_for_the_shards(port: _Port) -> None:
    port.ask("PUT", "/other/_doc/1?refresh=true", {"text": ["red", "blue"]})
    body = {"query": {"terms": {"colour": {"index": "other", "id": "1", "path": "text"}}}}
    assert port.searched_by("/books/_search", body)["shards"] == 3
    assert port.ask("POST", "/books/_search", body) == port.by_node("POST", "/books/_search", body)


def test_shards_refuse_expensive_queries_as_the_node_does(port: _Port) -> None:
    body = {"query": {"prefix": {"text": "re"}}}
    assert port.ask("POST", "/books/_search", body)["hits"]["total"]["value"] > 0
    port.ask("PUT", "/_cluster/settings", {"persistent": {"search.allow_expensive_queries": False}})
    refused = port.ask("POST", "/books/_search", body)
    assert "allow_expensive_queries" in str(refused)
    assert refused == port.by_node("POST", "/books/_search", body)


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
    shards = port.node.shards
    assert isinstance(
        shards, ShardCluster
    )  # the replicas are given up a moment later than they are not shown
    port.await_copies(lambda _: all(len(copies) == 1 for copies in shards._copies.values()))
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
    assert {one["node"] for one in lost["_shards"]["failures"]} <= {"a", "b", None}
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


def test_health_is_that_of_now_when_a_process_is_killed(port: _Port, monkeypatch: pytest.MonkeyPatch) -> None:
    gate, adopt = threading.Event(), ShardHost.adopt

    def later(host: ShardHost, *arguments: Any) -> None:
        assert gate.wait(HANG_S)
        adopt(host, *arguments)

    monkeypatch.setattr(ShardHost, "adopt", later)  # no copy is made anew meanwhile
    port.await_health(lambda health: health["status"] == "green")
    next(host for host in port.hosts.running.values() if host.has_copies).kill()
    assert port.ask("GET", "/_cluster/health")["status"] == "yellow"
    assert port.ask("GET", "/_cat/health?format=json")[0]["status"] == "yellow"
    gate.set()
    port.await_health(lambda health: health["status"] == "green")


def test_copies_stay_where_they_are_put_while_none_are_spread(port: _Port) -> None:
    port.ask("PUT", "/books/_settings", {"number_of_replicas": 0})
    setting = {"persistent": {"cluster.routing.rebalance.enable": "none"}}
    port.ask("PUT", "/_cluster/settings", setting)
    port.await_copies(lambda copies: len(copies) == 3 and all(one[2] == "STARTED" for one in copies))
    for shard, _, _, source in port.copies():
        if source == "a":
            move = {"index": "books", "shard": shard, "from_node": "a", "to_node": "b"}
            until = time.monotonic() + HANG_S
            while _reroute(port, [{"move": move}]) != {"acknowledged": True}:  # as long as another one moves
                assert time.monotonic() < until
                time.sleep(0.02)
    port.await_copies(lambda copies: all(one[2:] == ("STARTED", "b") for one in copies))
    port.ask("POST", "/books/_search", {})
    assert {node for *_, node in port.copies()} == {"b"}
    port.ask("PUT", "/_cluster/settings", {"persistent": {"cluster.routing.rebalance.enable": None}})
    port.await_copies(lambda copies: {node for *_, node in copies} == {"a", "b"})


def _reroute(port: _Port, commands: list[dict[str, Any]], parameters: str = "") -> Any:
    return port.ask("POST", f"/_cluster/reroute{parameters}", {"commands": commands})


def test_copies_are_moved_by_hand(port: _Port) -> None:
    port.ask("PUT", "/books/_settings", {"number_of_replicas": 0})
    port.await_copies(lambda copies: len(copies) == 3 and all(one[2] == "STARTED" for one in copies))
    whole = port.ask("POST", "/books/_search", {})
    before = port.copies()
    shard, _, _, source = before[0]
    target = "b" if source == "a" else "a"
    command = {"move": {"index": "books", "shard": shard, "from_node": source, "to_node": target}}
    until = time.monotonic() + HANG_S
    while True:  # as long as copies are being spread
        shown = _reroute(port, [command], "?dry_run=true&explain=true")["explanations"][0]["decisions"]
        if shown[0]["decision"] == "YES":
            break
        assert time.monotonic() < until, (shown, before, port.copies())
        time.sleep(0.02)
    assert port.copies() == before
    assert _reroute(port, [command]) == {"acknowledged": True}
    port.await_copies(lambda copies: copies[0][2:] == ("STARTED", target))
    assert port.ask("POST", "/books/_search", {}) == whole
    cancelled = {"cancel": {"index": "books", "shard": shard, "node": target, "allow_primary": True}}
    assert _reroute(port, [cancelled]) == {"acknowledged": True}
    port.await_started()
    assert port.ask("POST", "/books/_search", {}) == whole


def test_a_reroute_that_is_not_possible_says_why_and_changes_nothing(port: _Port) -> None:
    before = port.copies()
    move = {"index": "books", "shard": 0, "from_node": "a", "to_node": "b"}
    refused: dict[str, tuple[dict[str, Any], str]] = {
        "same node": ({"move": move}, "a copy of this shard is already allocated to the node [b]"),
        "no shard": ({"move": {**move, "shard": 7}}, "there is no shard [books][7]"),
        "no index": ({"move": {**move, "index": "no"}}, "there is no shard [no][0]"),
        "no node": ({"move": {**move, "to_node": "x"}}, "failed to resolve [x], no matching nodes"),
        "no field": ({"move": {"index": "books", "shard": 0}}, "missing or wrong: [from_node]"),
        "all there": (
            {"allocate_replica": {"index": "books", "shard": 0, "node": "a"}},
            "all copies are already assigned",
        ),
        "primary": (
            {"cancel": {"index": "books", "shard": 0, "node": before[0][3]}},
            "[allow_primary] is not given",
        ),
        "empty": (
            {"allocate_empty_primary": {"index": "books", "shard": 0, "node": "a", "accept_data_loss": True}},
            "made of them by itself",
        ),
    }
    for name, (command, reason) in refused.items():
        answer = _reroute(port, [command])
        assert (answer["status"], reason in answer["error"]["reason"]) == (400, True), (name, answer)
    shown = _reroute(port, [{"move": move}], "?explain=true")["explanations"][0]
    assert shown["decisions"][0]["decision"] == "NO"
    assert port.copies() == before


def test_a_point_in_time_is_searched_by_shards(port: _Port) -> None:
    pit = port.ask("POST", "/books/_pit?keep_alive=1m")["id"]
    body = {"pit": {"id": pit}, "query": {"match": {"text": "red"}}, "sort": ["size"], "size": 50}
    before = port.ask("POST", "/_search", body)
    assert before == port.by_node("POST", "/_search", body)
    for low in (60, 70, 80):
        port.fill(low, low + 10)
        assert port.searched_by("/books/_search", {})["shards"] == 3
        assert port.searched_by("/_search", body)["shards"] == 3
        assert port.ask("POST", "/_search", body) == before
    port.hosts.kill_node("a")  # the copies that are made again have the moment too
    port.hosts.nodes["c"] = 2
    port.await_copies(lambda copies: {node for *_, node in copies} == {"b", "c"})
    port.await_started()
    assert port.searched_by("/_search", body)["shards"] == 3
    assert port.ask("POST", "/_search", body) == before
    port.ask("DELETE", "/_pit", {"id": pit})
    port.fill(90, 95)
    assert port.ask("POST", "/books/_search", body | {"pit": None})["status"] == 400


SCROLLS: list[dict[str, Any]] = [
    {},
    {"query": {"match": {"text": "red old"}}, "highlight": {"fields": {"text": {}}}},
    {"sort": ["_doc"]},
    {"sort": [{"size": "desc"}, "colour"], "query": {"match": {"text": "red"}}, "track_scores": True},
    {"sort": "colour", "aggs": {"c": {"terms": {"field": "colour"}}}},
    {"slice": {"id": 1, "max": 3}, "sort": ["size", "_score"]},
    {"post_filter": {"term": {"colour": "red"}}},
    {"query": {"term": {"colour": "nothing"}}},
    {"sort": "missing"},
    {"from": 3},
]


def test_a_scroll_over_shards_is_that_of_the_node_whatever_is_written(port: _Port) -> None:
    for body in SCROLLS:
        _compare_scrolls(port, body)


def test_several_indexes_are_searched_by_all_their_shards(port: _Port) -> None:
    settings = {"number_of_shards": 2, "number_of_replicas": 0}
    other = {"properties": {**MAPPINGS["properties"], "size": {"type": "double"}}}
    port.ask("PUT", "/other", {"settings": settings, "mappings": other})
    for number in range(20):
        document = {"text": WORDS[number % 5] + " old", "colour": WORDS[number % 2], "size": number / 2}
        port.ask("PUT", f"/other/_doc/{number}", document)
    port.ask("POST", "/other/_refresh")
    port.await_started()
    several = [body for body in SEARCHES if "vector" not in str(body) and "collapse" not in body]
    for body in [*several, {"indices_boost": [{"other": 3}], "query": {"match": {"text": "old"}}}]:
        for path in ("/_search", "/other,books/_search?search_type=dfs_query_then_fetch"):
            assert port.ask("POST", path, body) == port.by_node("POST", path, body), body
    assert port.searched_by("/_search", {})["shards"] == 5
    _compare_scrolls(port, {"sort": [{"size": "desc"}], "query": {"match": {"text": "red"}}}, "/_search")
    pit = port.ask("POST", "/other,books/_pit?keep_alive=1m")["id"]
    body = {"pit": {"id": pit}, "query": {"match": {"text": "old"}}, "sort": ["size"], "size": 70}
    before = port.ask("POST", "/_search", body)
    port.fill(60, 90)
    assert port.searched_by("/_search", body)["shards"] == 5
    assert port.ask("POST", "/_search", body) == before


def _compare_scrolls(port: _Port, body: dict[str, Any], path: str = "/books/_search") -> None:
    begin = "POST", f"{path}{'&' if '?' in path else '?'}scroll=1m", {"size": 13, **body}
    ours, theirs = port.ask(*begin), port.by_node(*begin)
    port.fill(50, 70)
    first_of_host = {place: list(host.calls) for place, host in port.hosts.running.items()}
    for _ in range(7):
        ids = [page.pop("_scroll_id", None) for page in (ours, theirs)]
        assert ours == theirs, body
        if ids[0] is None:
            break
        ours = port.ask("POST", "/_search/scroll", {"scroll_id": ids[0]})
        theirs = port.by_node("POST", "/_search/scroll", {"scroll_id": ids[1]})
    assert (
        "error" in ours
        or not ours["hits"]["total"]["value"]
        or any(
            "steps" in host.calls[len(first_of_host[place]) :] for place, host in port.hosts.running.items()
        )
    )


def test_what_somebody_sees_of_an_index_is_not_held_for_shards(port: _Port) -> None:
    (found,) = names_found(port.node, "books", Parameters({}))
    targets = targets_of(port.node, [found])
    assert len(held_of(port.node, targets, [found])) == 1
    restricted = replace(found, index=VisibleIndex(found.index, frozenset()))
    assert held_of(port.node, targets, [restricted]) == ()


EXTENSIONS: list[tuple[dict[str, Any], bool]] = [
    ({"sparql_enrich": {"query": 'SELECT ?n { ?x <urn:key> "{id}" ; <urn:name> ?n }'}}, True),
    ({"sparql_expand": {"synonym_query": 'SELECT ?s { ?x <urn:word> "{term}", ?s }', "field": "text"}}, True),
    ({"sparql_filter": {"ask": 'ASK { ?x <urn:key> "{id}" }'}}, True),
]


def test_what_the_graph_adds_is_added_to_what_shards_find(port: _Port) -> None:
    for extension, is_apart in EXTENSIONS:
        body = {"query": {"match": {"text": "red"}}, "size": 50, "_ext": extension}
        expected = port.by_node("POST", "/books/_search", body)
        calls = {place: len(host.calls) for place, host in port.hosts.running.items()}
        assert port.ask("POST", "/books/_search", body) == expected
        begun = any("steps" in host.calls[calls[place] :] for place, host in port.hosts.running.items())
        assert "hits" in expected, (extension, expected)
        assert (begun, expected["hits"]["total"]["value"] > 0) == (is_apart, True)


def test_copies_forget_a_moment_that_nobody_searches_any_more(port: _Port) -> None:
    pit = port.ask("POST", "/books/_pit?keep_alive=1m")["id"]
    scroll = port.ask("POST", "/books/_search?scroll=1m", {"size": 1})["_scroll_id"]
    for low in (60, 65, 70, 75):
        port.fill(low, low + 5)
        assert port.searched_by("/books/_search", {})["shards"] == 3
    assert port.most_states() > 2
    port.ask("DELETE", "/_pit", {"id": pit})
    port.ask("DELETE", "/_search/scroll", {"scroll_id": scroll})
    until = time.monotonic() + HANG_S
    while port.most_states() > 2:
        assert time.monotonic() < until
        time.sleep(0.05)


def test_a_node_that_is_lost_while_a_copy_moves_leaves_no_shard_on_one_node_alone(
    port: _Port, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, adopt = threading.Event(), ShardHost.adopt

    def later(host: ShardHost, *arguments: Any) -> None:
        assert gate.wait(HANG_S)
        adopt(host, *arguments)

    monkeypatch.setattr(ShardHost, "adopt", later)
    port.hosts.nodes["c"] = 2
    until = time.monotonic() + HANG_S
    while not any("missing" in host.calls for place, host in port.hosts.running.items() if place[0] == "c"):
        assert time.monotonic() < until
        time.sleep(0.02)
    assert isinstance(port.node.shards, ShardCluster)
    ((_, source),) = port.node.shards._moving.items()
    killed = "a" if source.place[0] == "b" else "b"
    port.hosts.kill_node(killed)
    port.await_copies(lambda copies: all(node not in (killed, None) for *_, node in copies))
    gate.set()
    shards = port.node.shards
    port.await_copies(lambda copies: not shards._moving and all(one[2] == "STARTED" for one in copies))
    for shard in range(3):
        assert len({node for number, _, _, node in port.copies() if number == shard}) == 2
