"""kill -9 amid snapshots and restores: a snapshot is whole or not there, an index the old one or the new."""

import multiprocessing
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import httpx
import orjson
import pytest

from tests.simulation.killed_search_node import serve
from tests.support.timing import HANG_S, wait_until

KILLS = 8
DOCUMENTS = 400
PADDING = "x" * 3_000  # so that there are two frames, of which the first has a megabyte
RATE, TAKES_S = "1mb", 1.0  # so that the kills fall into the work
_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload(["tests.simulation.killed_search_node"])


@contextmanager
def node(directory: Path, repositories: Path) -> Iterator[httpx.Client]:
    """One that is killed at the end."""
    ours, theirs = _PROCESSES.Pipe(duplex=False)
    process = _PROCESSES.Process(target=serve, args=(directory, repositories, theirs))
    process.start()
    theirs.close()
    try:
        assert ours.poll(HANG_S), "the node does not start"
        url = f"http://127.0.0.1:{ours.recv()}"
        with httpx.Client(base_url=url, trust_env=False, timeout=HANG_S) as http:
            yield http
    finally:
        process.kill()
        process.join()
        ours.close()


def fill(http: httpx.Client, index: str, marked: str) -> None:
    """With documents that all say the same."""
    lines = [
        line
        for number in range(DOCUMENTS)
        for line in ({"index": {"_id": str(number)}}, {"marked": marked, "padding": PADDING})
    ]
    body = b"".join(orjson.dumps(line) + b"\n" for line in lines)
    headers = {"content-type": "application/x-ndjson"}
    answer = http.post(f"/{index}/_bulk?refresh=true", content=body, headers=headers)
    assert answer.json()["errors"] is False


def marks(http: httpx.Client, index: str) -> dict[str, int]:
    """How many documents say what."""
    http.post(f"/{index}/_refresh").raise_for_status()
    aggs = {"marks": {"terms": {"field": "marked.keyword"}}}
    answer = http.post(f"/{index}/_search", json={"size": 0, "aggs": aggs})
    return {one["key"]: one["doc_count"] for one in answer.json()["aggregations"]["marks"]["buckets"]}


def settled(http: httpx.Client) -> None:
    """Nothing that the killed node had begun is left."""

    def is_settled() -> bool:
        shown = http.get("/_all/_settings?expand_wildcards=all&flat_settings=true").json()
        filled = [name for name, one in shown.items() if "index.resize.filled_by" in one["settings"]]
        return not filled and not http.get("/_snapshot/_status").json()["snapshots"]

    wait_until(is_settled)


def snapshots(http: httpx.Client) -> list[Any]:
    found: list[Any] = http.get("/_snapshot/r/_all").json()["snapshots"]
    return found


@pytest.mark.slow
def test_a_node_that_is_killed_amid_snapshots_and_restores(tmp_path: Path) -> None:
    directory, repositories, random = tmp_path / "node", tmp_path / "repositories", Random(11)
    for made in (directory, repositories):
        made.mkdir()
    with node(directory, repositories) as http:
        rates = {"max_snapshot_bytes_per_sec": RATE, "max_restore_bytes_per_sec": RATE}
        body = {"type": "fs", "settings": {"location": "r", "compress": False, **rates}}
        http.put("/_snapshot/r", json=body).raise_for_status()
        fill(http, "books", "first")
        http.put("/_snapshot/r/whole?wait_for_completion=true").raise_for_status()
        fill(http, "books", "second")
    is_second, kept = True, {"whole"}
    for number in range(KILLS):
        with node(directory, repositories) as http:
            settled(http)
            shown = {one["snapshot"]: one["state"] for one in snapshots(http)}
            assert kept <= shown.keys()
            assert set(shown.values()) == {"SUCCESS"}
            http.post("/books/_open").raise_for_status()
            is_second = is_second and "second" in marks(http, "books")
            assert marks(http, "books") == {"second" if is_second else "first": DOCUMENTS}
            for name in shown.keys() - kept:  # one that was made when the node was killed is whole
                restore = f"/_snapshot/r/{name}/_restore?wait_for_completion=true"
                http.post(restore, json=beside("copy")).raise_for_status()
                assert sum(marks(http, "copy").values()) == DOCUMENTS
                http.delete("/copy").raise_for_status()
                http.delete(f"/_snapshot/r/{name}").raise_for_status()
            if number % 2:
                http.put(f"/_snapshot/r/s{number}").raise_for_status()
            else:
                http.post("/books/_close").raise_for_status()
                http.post("/_snapshot/r/whole/_restore").raise_for_status()
            time.sleep(random.random() * 0.8 * TAKES_S)  # all has to hold whenever the kill comes
    with node(directory, repositories) as http:
        settled(http)
        http.put("/_snapshot/r/last?wait_for_completion=true").raise_for_status()
        http.post("/_snapshot/r/_cleanup").raise_for_status()
        directories = {path.name for path in (repositories / "r").glob("data-*")}
        assert len(directories) == len(snapshots(http))


def beside(name: str) -> dict[str, str]:
    return {"rename_pattern": "books", "rename_replacement": name}
