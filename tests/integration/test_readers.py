"""The readers of a running service: killed one by one and all together, with the service going on."""

import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.readers import FIRST, exists
from tests.support.service import Service
from tests.support.timing import HANG_S, quick_enough

pytestmark = [pytest.mark.ray, pytest.mark.slow]

COUNT = "SELECT (COUNT(*) AS ?n) WHERE { ?s ?p ?o }"
ENDLESS = "SELECT (COUNT(*) AS ?n) WHERE { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l }"
NOT_CACHED = {"Cache-Control": "no-cache"}


def evaluators(service: Service) -> list[int]:
    return service.pids("actors.readers.evaluator")


def count(service: Service) -> str:
    """What a reader, not the cache, counts; it may take as long as the readers need to be back."""
    answer = httpx.post(
        f"{service.url}/sparql", data={"query": COUNT}, headers=NOT_CACHED, timeout=HANG_S, trust_env=False
    )
    assert answer.status_code == 200, answer.text
    value: str = answer.json()["results"]["bindings"][0]["n"]["value"]
    return value


def ask_endless(service: Service) -> threading.Thread:
    """Ask what no reader can answer in time, on a thread."""
    thread = threading.Thread(
        target=lambda: httpx.post(
            f"{service.url}/sparql", data={"query": ENDLESS, "timeout": "20"}, timeout=HANG_S, trust_env=False
        )
    )
    thread.start()
    return thread


def test_kills_of_readers_are_mended(tmp_path: Path) -> None:
    """An evaluator, then the QueryKeeper in the midst of a query; nothing is left behind at the end."""
    service = Service(tmp_path / "data")
    try:
        service.start()
        service.load(b"".join(b"<urn:s%d> <urn:p> <urn:o> .\n" % number for number in range(300)))
        assert count(service) == "300"
        service.wait_until(lambda: len(evaluators(service)) >= FIRST, HANG_S)
        killed = evaluators(service)
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
        assert count(service) == "300"
        service.wait_until(lambda: len(set(evaluators(service)) - set(killed)) >= FIRST, HANG_S)
        asking = ask_endless(service)
        time.sleep(1)
        before = evaluators(service)
        service.kill("QueryKeeper")
        service.wait_until(lambda: not any(map(exists, before)), HANG_S)
        asking.join()
        assert count(service) == "300"
        service.update("INSERT DATA { <urn:s> <urn:p> <urn:new> }")
        assert count(service) == "301"
        assert service.stop() == 0
        assert service.pids() == []
    finally:
        service.close()


def explained(service: Service, query: str, **fields: str) -> dict[str, Any]:
    answer = httpx.post(
        f"{service.url}/sparql",
        data={"query": query, "explain": "true", **fields},
        timeout=HANG_S,
        trust_env=False,
    )
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_explaining_what_ends_and_what_does_not(service: Service) -> None:
    service.load(b"".join(b"<urn:e%d> <urn:explained> <urn:o> .\n" % number for number in range(300)))
    short = explained(service, "SELECT * { <urn:e1> <urn:explained> ?b . ?b <urn:explained> ?c }")
    assert short["classification"]["evaluated"] == "at once"
    assert short["scans"] == [
        {"pattern": "<urn:e1> <urn:explained> ?b", "quads": 1, "complete": True},
        {"pattern": "?b <urn:explained> ?c", "quads": 300, "complete": True},
    ]
    evaluation = short["evaluation"]
    assert (evaluation["outcome"], evaluation["rows"], evaluation["snapshot_exact"]) == ("ok", 0, True)
    assert any(f"(process {pid})" in evaluation["where"] for pid in evaluators(service))

    cross = " . ".join(f"?{name}a <urn:explained> ?{name}b" for name in "wxyz")
    endless = f"SELECT (COUNT(*) AS ?n) {{ {cross} }}"
    joined = "SELECT (COUNT(*) AS ?n) { ?a <urn:explained> ?b . ?c <urn:explained> ?b }"
    service.wait_until(lambda: explained(service, joined)["columns"]["path"] == "columns", 60)
    for took in quick_enough(2.5):
        service.wait_until(lambda: evaluators(service), HANG_S)
        before = evaluators(service)  # the one that does not end in time is ended
        with took:
            long = explained(service, endless, timeout="1")
    assert long["classification"]["evaluated"] == "by the column view"
    assert any(f"(process {pid})" in long["evaluation"]["where"] for pid in before), "to explain it"
    assert [each["quads"] for each in long["scans"]] == [300] * 4
    assert (long["evaluation"]["outcome"], long["evaluation"]["rows"]) == ("timeout", None)
    assert "1 s" in long["evaluation"]["error"]


def test_cancelling_an_explanation(service: Service) -> None:
    service.load(b"".join(b"<urn:e%d> <urn:explained> <urn:o> .\n" % number for number in range(300)))
    cross = " . ".join(f"?{name}a <urn:explained> ?{name}b" for name in "stuv")
    endless = f"SELECT (COUNT(*) AS ?n) {{ {cross} }}"
    with ThreadPoolExecutor() as pool, httpx.Client(base_url=service.url, trust_env=False) as client:

        def ours() -> list[str]:
            queries = client.get("/queries").json()["queries"]
            return [query["id"] for query in queries if query["text"] == endless and query["where"]]

        asking = pool.submit(explained, service, endless)
        service.wait_until(ours, HANG_S)
        time.sleep(0.5)  # it has counted by then
        assert client.delete(f"/queries/{ours()[0]}").status_code == 200
        found = asking.result(HANG_S)
    assert found["evaluation"]["outcome"] == "cancelled"
    assert [each["quads"] for each in found["scans"]] == [300] * 4
