"""The search port of a running service: started, written to by the official client, killed, restarted."""

import random
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from elasticsearch import Elasticsearch, helpers

from tests.support.bulk_clients import BulkClients, PutClients, document, search_client, stored
from tests.support.client_threads import asked_while_killed
from tests.support.service import COMMAND, Service
from tests.support.timing import HANG_S, wait_until

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.timeout(300)]

BACK_S = 30.0  # a killed port on a busy machine
ROUNDS = 3


@pytest.fixture(scope="module")
def mortal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service with a search port, which tests may kill."""
    service = Service(tmp_path_factory.mktemp("search") / "data", search=True)
    try:
        yield service
    finally:
        service.close()


@pytest.fixture
def running(mortal: Service) -> Service:
    if not mortal.pids():
        mortal.start()
    await_search(mortal)
    return mortal


def await_search(service: Service, timeout_s: float = BACK_S) -> float:
    """Wait until the search port answers with what it has; how long it took."""

    def is_ready() -> bool:
        return httpx.get(f"{service.search_url}/_cat/indices", trust_env=False).status_code == 200

    return service.wait_until(is_ready, timeout_s)


def check(service: Service, index: str, clients: BulkClients) -> None:
    """What was acknowledged is there, and whatever is there is whole."""
    assert clients.unexpected == []
    assert clients.acknowledged
    found = stored(service.search_url, index)
    assert clients.acknowledged - found.keys() == set()
    assert {number: source for number, source in found.items() if source != document(number)} == {}


def test_the_official_client_writes_and_finds(running: Service) -> None:
    with Elasticsearch(running.search_url) as client:
        client.indices.create(index="client", mappings={"properties": {"number": {"type": "long"}}})
        actions = ({"_index": "client", "_id": str(number), **document(number)} for number in range(2000))
        assert helpers.bulk(client, actions, refresh=True) == (2000, [])
        answer = client.search(index="client", query={"term": {"number": 1234}})
        assert [hit["_id"] for hit in answer["hits"]["hits"]] == ["1234"]
        assert client.get(index="client", id="7")["_source"] == document(7)
        assert client.count(index="client", query={"match": {"text": "word1"}})["count"] > 0


def test_a_killed_search_port_is_back_with_all_that_was_acknowledged(running: Service) -> None:
    with BulkClients([running.search_url], "port-killed") as clients:
        time.sleep(2)
        graph_port = running.pids("GraphPort")
        running.kill("SearchPort")
        time.sleep(0.2)
        assert running.health()["status"] == "degraded"
        running.update("INSERT DATA { <urn:while> <urn:search> 'is away' }")
        took_s = await_search(running)
        time.sleep(1)
    print(f"search port back after {took_s + 0.2:.1f} s")
    assert running.pids("GraphPort") == graph_port
    check(running, "port-killed", clients)


def test_health_says_healthy_when_both_ports_take_requests(running: Service) -> None:
    assert running.stop() == 0
    running.start(wait=False)
    running.wait_until(lambda: is_well(running), 120)
    running.kill("SearchPort")
    # The kernel takes some milliseconds to end the process, which still says that it is well until then.
    running.wait_until(lambda: running.health()["status"] != "healthy", BACK_S)
    running.wait_until(lambda: is_well(running), BACK_S)


def is_well(service: Service) -> bool:
    """Whether the service says so; then searches are answered."""
    says_so: bool = service.health()["status"] == "healthy"
    if says_so:
        assert httpx.get(f"{service.search_url}/_cat/indices", trust_env=False).status_code == 200
    return says_so


def test_who_comes_while_the_search_port_is_made_again_is_answered(running: Service) -> None:
    outcomes, killed = asked_while_killed(
        running, f"{running.search_url}/_cat/indices", "SearchPort", lambda: await_search(running)
    )
    assert outcomes
    assert set(outcomes) <= {200, 503}, outcomes  # 503 while the indexes are opened
    assert running.pids("SearchPort") not in ([], killed)


def test_writes_wait_for_a_killed_log(running: Service) -> None:
    with BulkClients([running.search_url], "log-killed") as clients:
        time.sleep(1)
        running.kill("UpdateLog")
        time.sleep(3)
    check(running, "log-killed", clients)


@pytest.mark.parametrize("killed", ["SearchPort", "UpdateLog", None])
def test_no_single_document_that_was_acknowledged_is_lost(running: Service, killed: str | None) -> None:
    index = f"puts-{killed}".lower()
    with PutClients([running.search_url], index) as clients:
        wait_until(lambda: len(clients.acknowledged) > 200)
        if killed is None:
            running.kill()
        else:
            running.kill(killed)
            before = len(clients.acknowledged)
            wait_until(lambda: len(clients.acknowledged) > before + 200)
    if killed is None:
        running.start()
    await_search(running)
    check(running, index, clients)


def test_an_index_keeps_its_order_when_everything_is_killed(running: Service) -> None:
    sort = {"field": ["number", "tag"], "order": ["desc", "asc"]}
    fields = {"number": {"type": "integer"}, "tag": {"type": "keyword"}}
    body = {"settings": {"index": {"sort": sort, "number_of_shards": 1}}, "mappings": {"properties": fields}}
    rng = random.Random(5)
    with httpx.Client(base_url=running.search_url, trust_env=False, timeout=HANG_S) as http:
        assert http.put("/ordered", json=body).status_code == 200
    numbers: dict[str, tuple[int, str]] = {}
    for round_ in range(ROUNDS):
        with httpx.Client(base_url=running.search_url, trust_env=False, timeout=HANG_S) as http:
            for _ in range(2):
                for doc_id in map(str, rng.sample(range(150), k=40)):
                    number, tag = rng.randrange(30), rng.choice("abc")
                    made = http.put(f"/ordered/_doc/{doc_id}", json={"number": number, "tag": tag})
                    assert made.is_success
                    numbers[doc_id] = -number, tag
                http.post("/ordered/_refresh")
            if round_ == 1:
                http.post("/ordered/_flush")
        running.kill()
        running.start()
        await_search(running)
        with httpx.Client(base_url=running.search_url, trust_env=False, timeout=HANG_S) as http:
            http.post("/ordered/_refresh")
            sorted_by = [{"number": "desc"}, {"tag": "asc"}]
            for query in ({"sort": sorted_by}, {"sort": sorted_by, "track_total_hits": False}):
                hits = http.post("/ordered/_search", json={"size": 200, **query}).json()["hits"]["hits"]
                found = [numbers[hit["_id"]] for hit in hits]
                assert found == sorted(numbers.values())
            assert http.post("/ordered/_forcemerge?max_num_segments=1").is_success
            hits = http.post("/ordered/_search", json={"size": 200}).json()["hits"]["hits"]
            assert [numbers[hit["_id"]] for hit in hits] == sorted(numbers.values())


def test_nothing_acknowledged_is_lost_when_everything_is_killed_again_and_again(running: Service) -> None:
    rng = random.Random(5)
    for round_ in range(ROUNDS):
        index = f"all-killed-{round_}"
        with BulkClients([running.search_url], index) as clients:
            time.sleep(rng.uniform(1, 3))
            running.kill()
        running.start()
        took_s = await_search(running)
        print(f"ready after {running.ready_s:.1f} s, search {took_s:.1f} s later")
        check(running, index, clients)


def test_a_stop_in_order_leaves_nothing_to_replay(running: Service) -> None:
    with search_client(running.search_url) as client:
        client.put("/kept/_doc/1", json={"number": 1}).raise_for_status()
    assert running.stop() == 0
    running.start()
    await_search(running)
    assert stored(running.search_url, "kept") == {1: {"number": 1}}


def test_a_backup_has_the_search_indexes(running: Service, tmp_path: Path) -> None:
    with search_client(running.search_url) as client:
        client.put("/saved/_doc/1", json={"number": 1}).raise_for_status()
    backup(running, tmp_path / "backup")
    restored = Service(tmp_path / "backup", search=True)
    try:
        restored.start()
        await_search(restored)
        assert stored(restored.search_url, "saved") == {1: {"number": 1}}
    finally:
        restored.close()


def backup(service: Service, target: Path) -> None:
    subprocess.run([COMMAND, "backup", target, "--data-dir", service.data_dir], check=True, timeout=HANG_S)


def test_a_search_port_that_is_taken_is_said_before_anything_starts(running: Service, tmp_path: Path) -> None:
    environment = {"GRAPHDB_SEARCH__ENABLED": "true", "GRAPHDB_SEARCH__PORT": str(running.search_port)}
    second = Service(tmp_path / "data", environment=environment)
    second.start(wait=False)
    assert second.exit_code(30) == 1
    assert second.output == (
        f"graphdb: cannot listen on 127.0.0.1:{running.search_port}: Address already in use\n"
    )


def test_without_search_there_is_no_process_for_it(tmp_path: Path) -> None:
    service = Service(tmp_path / "data")
    try:
        service.start()
        assert service.pids("SearchPort") == []
        assert "search at" not in service.output
    finally:
        service.close()
