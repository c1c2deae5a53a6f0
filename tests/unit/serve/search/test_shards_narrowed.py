"""Searches of which not all candidates count, by shards elsewhere: as the node answers them."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from actors.search.shard_cluster import ShardCluster
from graphdb.access.principal import NODE, Principal
from tests.support.memory_graph import MemoryGraph
from tests.support.memory_search import MemorySearch
from tests.support.shard_hosts import LocalHosts
from tests.support.timing import HANG_S
from tests.unit.serve.search.asking import Asking, principal_of

ONE, TWO = "S-1-5-21-1", "S-1-5-21-2"
READER, STRANGER = principal_of("ada", ONE), principal_of("bob")
WORDS = ("red", "green", "blue", "old", "new")
MAPPINGS = {
    "properties": {
        "text": {"type": "text"},
        "colour": {"type": "keyword"},
        "about": {"type": "keyword"},
        "vector": {"type": "dense_vector", "dims": 2, "similarity": "l2_norm"},
    }
}
# every third key is approved; everything leads to urn:r1, and little to others
GRAPH = "INSERT DATA {" + " ".join(
    f'<urn:r{number}> <urn:to> <urn:r1>, <urn:r{number % 4}> ; <urn:key> "{number}" .'
    for number in range(0, 60, 3)
)
FILTER = {"sparql_filter": {"ask": 'ASK { ?x <urn:key> "{id}" }'}}
BOOST = {"kg_boost": {"entity_field": "about", "boost_factor": 5.0, "min_pagerank": 0.5}}
BOOST_BY_SOURCE = {"kg_boost": {**BOOST["kg_boost"], "entity_field": "note"}}
RED: dict[str, Any] = {"query": {"match": {"text": "red old"}}, "size": 30}
COLOURS = {"colours": {"terms": {"field": "colour"}}}
SEARCHES: list[dict[str, Any]] = [
    {**RED, "_ext": FILTER},
    {**RED, "_ext": BOOST},
    {**RED, "_ext": BOOST_BY_SOURCE},
    {**RED, "_ext": {**FILTER, **BOOST}, "aggs": COLOURS, "from": 2},
    {**RED, "_ext": FILTER, "sort": [{"colour": "desc"}, "_score"], "collapse": {"field": "about"}},
    {"query": {"match": {"text": "nothing"}}, "_ext": {**FILTER, **BOOST}},
    {"knn": {"field": "vector", "query_vector": [3, 4], "k": 4, "num_candidates": 40}, "_ext": BOOST},
    {**RED, "_ext": {"sparql_filter": {"ask": "ASK { ?x <urn:key> }"}}},
]
PLAIN: list[dict[str, Any]] = [
    {},
    {**RED, "aggs": COLOURS, "highlight": {"fields": {"text": {}}}},
    {"knn": {"field": "vector", "query_vector": [3, 4], "k": 4, "num_candidates": 40}},
    {"query": {"more_like_this": {"like": [{"_id": "7"}], "min_term_freq": 1, "min_doc_freq": 1}}},
    {"query": {"exists": {"field": "_allow_sids"}}},
]


class _Port:
    def __init__(self, asking: Asking, hosts: LocalHosts) -> None:
        self._asking, self._hosts = asking, hosts

    def ask(self, who: Principal, method: str, path: str, body: Any = None) -> dict[str, Any]:
        answer: dict[str, Any] = self._asking(who, method, path, body).json()
        answer.pop("took", None)
        return answer

    def compare(self, who: Principal, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """The answer of the shards, which is that of the node; they have been asked."""
        before = self._steps()
        found = self.ask(who, "POST", path, body)
        assert self._steps() > before, "the node has searched by itself"
        shards, self._asking.node.shards = self._asking.node.shards, None
        try:
            assert found == self.ask(who, "POST", path, body), (path, body)
        finally:
            self._asking.node.shards = shards
        return found

    def _steps(self) -> int:
        return sum(host.calls.count("steps") for host in self._hosts.running.values())


@pytest.fixture
def port(tmp_path: Path, shards: int) -> Iterator[_Port]:
    node, hosts = MemorySearch(MemoryGraph(GRAPH + "}")), LocalHosts({"a": 1, "b": 1})
    node.shards = cluster = ShardCluster(hosts, lambda: node.catalog)
    cluster.start()
    made = _Port(Asking(tmp_path, node), hosts)
    settings = {"number_of_shards": shards, "number_of_replicas": 0}
    for index in ("logs-a", "logs-b"):
        made.ask(NODE, "PUT", f"/{index}", {"settings": settings, "mappings": MAPPINGS})
        for number in range(40):
            document = {
                "text": " ".join(WORDS[(number * step) % 5] for step in (1, 2, 3, 7)[: 1 + number % 4]),
                "colour": WORDS[number % 3],
                "about": f"urn:r{number % 6}",
                "note": f"urn:r{number % 5}",
                "vector": [number % 6, number % 7],
            }
            if number % 4:
                document["_allow_sids"] = [(ONE, TWO)[number % 2]]
            made.ask(NODE, "PUT", f"/{index}/_doc/{number}", document)
    made.ask(NODE, "POST", "/_refresh")
    until = time.monotonic() + HANG_S
    while any(copy.state != "STARTED" for one in node.catalog.indexes() for copy in cluster.copies(one)):
        assert time.monotonic() < until
        time.sleep(0.02)
    try:
        yield made
    finally:
        cluster.close()


def test_the_graph_filters_and_boosts_what_shards_find(port: _Port) -> None:
    totals = []
    for path in ("/logs-a/_search", "/logs-*/_search"):
        for body in SEARCHES[:-1]:
            for who in (NODE, READER):
                found = port.compare(who, path, body)
                totals.append(found["hits"]["total"]["value"])
    assert sum(map(bool, totals)) > len(totals) / 2
    assert port.ask(NODE, "POST", "/logs-a/_search", SEARCHES[-1])["status"] == 400
    plain = port.ask(NODE, "POST", "/logs-a/_search", RED)["hits"]
    boosted = port.ask(NODE, "POST", "/logs-a/_search", {**RED, "_ext": BOOST})["hits"]
    assert boosted["max_score"] > plain["max_score"]


def test_who_sees_some_documents_is_answered_by_shards_from_those(port: _Port) -> None:
    shown = []
    for who in (READER, STRANGER, NODE):
        for path in ("/logs-a/_search", "/logs-*/_search"):
            for body in PLAIN:
                port.compare(who, path, body)
        shown.append(port.ask(who, "POST", "/logs-a/_search", {})["hits"]["total"]["value"])
    assert 0 < shown[1] < shown[0] < shown[2] == 40
    port.ask(NODE, "DELETE", "/logs-a/_doc/4")
    port.ask(NODE, "PUT", "/logs-a/_doc/8?refresh=true", {"text": "red", "_allow_sids": [TWO]})
    for who in (READER, STRANGER):
        port.compare(who, "/logs-a/_search", PLAIN[1])


def test_a_point_in_time_shows_who_opened_it_only_what_he_sees(port: _Port) -> None:
    pit = port.ask(READER, "POST", "/logs-a/_pit?keep_alive=1m")["id"]
    before = port.ask(READER, "POST", "/logs-a/_search", {})["hits"]
    port.ask(NODE, "PUT", "/logs-a/_doc/0?refresh=true", {"text": "red", "_allow_sids": [TWO]})
    assert port.ask(READER, "POST", "/_search", {"pit": {"id": pit}})["hits"]["total"] == before["total"]
