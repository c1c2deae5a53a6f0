"""Shards of search indexes on the nodes of a Ray cluster: a process and a Ray node are lost, answers stay."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from tests.support.ray_cluster import RayCluster
from tests.support.service import Service
from tests.support.timing import HANG_S

pytestmark = [pytest.mark.ray, pytest.mark.slow]

DOCUMENTS = 300
WORDS = ("red", "green", "blue", "old")
SEARCHES: list[dict[str, Any]] = [
    {"query": {"match": {"text": "red old"}}, "size": 20},
    {"size": 0, "aggs": {"words": {"terms": {"field": "word.keyword"}}}},
]


@pytest.fixture(scope="module")
def ray_cluster() -> Iterator[RayCluster]:
    cluster = RayCluster()
    try:
        for name in ("one", "two", "three"):
            cluster.add(name)
        yield cluster
    finally:
        cluster.close()


@pytest.fixture(scope="module")
def client(ray_cluster: RayCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """Of the search port of a service on the first Ray node, with an index of two shards and a replica."""
    environment = {**ray_cluster.environment("one"), "GRAPHDB_SEARCH__SHARDS_ON": "cluster"}
    data_dir = tmp_path_factory.mktemp("service") / "data"
    service = Service(data_dir, search=True, environment=environment)
    try:
        service.start()
        with httpx.Client(base_url=service.search_url, timeout=HANG_S, trust_env=False) as client:
            settings = {"number_of_shards": 2, "number_of_replicas": 1}
            client.put("/books", json={"settings": settings}).raise_for_status()
            for number in range(DOCUMENTS):
                words = [WORDS[(number * step) % 4] for step in (1, 3, 7)[: 1 + number % 3]]
                body = {"text": " ".join(words), "word": words[0]}
                client.put(f"/books/_doc/{number}", json=body).raise_for_status()
            client.post("/books/_refresh").raise_for_status()
            yield client
    finally:
        print(service.output)
        service.close()


def _answers(client: httpx.Client) -> list[Any]:
    """Each by the shards, and whole."""
    found = []
    for body in SEARCHES:
        response = client.post("/books/_search", json={**body, "profile": True})
        assert response.is_success, response.text
        answer = response.json()
        assert answer["_shards"]["failed"] == 0
        assert answer.pop("profile")["searched_by"]["shards"] == 2
        found.append((answer["hits"], answer.get("aggregations")))
    return found


def _await_health(client: httpx.Client, status: str) -> None:
    health = client.get(
        f"/_cluster/health?wait_for_status={status}&timeout={HANG_S:.0f}s", timeout=2 * HANG_S
    ).json()
    assert health["status"] == status, health


def _nodes(client: httpx.Client) -> Counter[str]:
    """How many copies each Ray node has, by its address."""
    rows = client.get("/_cat/shards/books?format=json").json()
    return Counter(row["ip"] for row in rows if row["node"] is not None)


def _await(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + HANG_S
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.1)


def test_a_process_and_a_ray_node_are_lost(ray_cluster: RayCluster, client: httpx.Client) -> None:
    _await_health(client, "green")
    whole = _answers(client)
    assert sum(_nodes(client).values()) == 4

    killed = ray_cluster.kill_worker("two", "ray::ShardHost")
    assert _answers(client) == whole
    _await(lambda: killed not in (there := _hosts(ray_cluster, "two")) and len(there) == 1)
    _await_health(client, "green")
    assert _answers(client) == whole

    ray_cluster.remove("three")
    assert _answers(client) == whole
    _await(lambda: "127.0.0.3" not in _nodes(client))
    _await_health(client, "green")
    assert _nodes(client) == {"127.0.0.1": 2, "127.0.0.2": 2}
    assert _answers(client) == whole
    client.put("/books/_doc/new?refresh=true", json={"text": "red", "word": "red"}).raise_for_status()
    assert _answers(client) != whole


def _hosts(cluster: RayCluster, name: str) -> list[int]:
    return [pid for title, pid in cluster.workers(name).items() if title.startswith("ray::ShardHost")]
