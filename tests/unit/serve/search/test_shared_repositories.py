"""Two clusters that write to one repository of snapshots: the second is told, and nobody loses anything."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from threading import Barrier, Thread
from typing import Any

import httpx
import pytest

from graphdb.config import Settings
from graphdb.log.file_system import RealFileSystem
from graphdb.search.catalog.catalog_commands import BeginSnapshotWork, EndSnapshotWork
from graphdb.search.errors import SearchError
from graphdb.search.snapshots.repository import SnapshotRepository
from graphdb.search.snapshots.repository_root import NO_WORK, RepositoryRoot
from serve.search_app import build_search_app
from tests.support.http_server import serving
from tests.support.memory_search import MemorySearch
from tests.support.timing import HANG_S
from tests.unit.serve.search.conftest import reason_of

WAIT = "?wait_for_completion=true"
MODIFIED = "modified by another writer"


@contextmanager
def cluster(allowed: Path, node: MemorySearch | None = None) -> Iterator[httpx.Client]:
    """One with a document that says whose it is, and with the repository registered."""
    settings = Settings.model_validate({"search": {"snapshot_paths": [str(allowed)]}})
    with (
        serving(build_search_app(node or MemorySearch(), settings)) as url,
        httpx.Client(base_url=url, trust_env=False, timeout=HANG_S) as client,
    ):
        register(client)
        client.put("/books/_doc/1?refresh=true", json={"of": url})
        yield client


def register(client: httpx.Client, **settings: Any) -> None:
    body = {"type": "fs", "settings": {"location": "here", **settings}}
    client.put("/_snapshot/backups", json=body).raise_for_status()


def snapshots(client: httpx.Client) -> list[str]:
    return [one["snapshot"] for one in client.get("/_snapshot/backups/_all").json()["snapshots"]]


@pytest.fixture
def two(tmp_path: Path) -> Iterator[tuple[httpx.Client, httpx.Client]]:
    with cluster(tmp_path) as first, cluster(tmp_path) as second:
        yield first, second


def test_the_second_writer_is_told_and_changes_nothing(
    two: tuple[httpx.Client, httpx.Client], tmp_path: Path
) -> None:
    first, second = two
    assert first.put("/_snapshot/backups/a" + WAIT).status_code == 200
    assert first.put("/_snapshot/backups/b" + WAIT).status_code == 200
    before = sorted(path.name for path in tmp_path.rglob("*"))
    for refused in (
        second.put("/_snapshot/backups/c" + WAIT),
        second.put("/_snapshot/backups/a/_clone/c", json={"indices": "*"}),
        second.delete("/_snapshot/backups/a"),
        second.post("/_snapshot/backups/_cleanup"),
    ):
        status, kind, reason = reason_of(refused)[:3]
        assert (status, kind, MODIFIED in reason) == (500, "repository_exception", True)
    assert sorted(path.name for path in tmp_path.rglob("*")) == before
    assert snapshots(second) == ["a", "b"]  # what reads is not refused
    assert first.delete("/_snapshot/backups/b").status_code == 200

    # who registers it again goes on with what is there, and then the other is told
    register(second)
    assert second.put("/_snapshot/backups/c" + WAIT).status_code == 200
    assert MODIFIED in reason_of(first.put("/_snapshot/backups/d" + WAIT))[2]
    assert snapshots(first) == ["a", "c"]
    body = {"rename_pattern": "(.+)", "rename_replacement": "new-$1"}
    assert second.post("/_snapshot/backups/a/_restore" + WAIT, json=body).status_code == 200
    shown = second.get("/_snapshot/backups").json()["backups"]
    assert shown.keys() == {"type", "uuid", "settings"}


def test_one_that_only_reads_is_never_told(two: tuple[httpx.Client, httpx.Client]) -> None:
    first, second = two
    register(second, readonly=True)
    for name in ("a", "b"):
        assert first.put(f"/_snapshot/backups/{name}" + WAIT).status_code == 200
        body = {"rename_pattern": "(.+)", "rename_replacement": f"{name}-$1"}
        restored = second.post(f"/_snapshot/backups/{name}/_restore" + WAIT, json=body)
        assert restored.status_code == 200


def test_a_snapshot_that_both_make_at_a_time_is_of_one_of_them(
    two: tuple[httpx.Client, httpx.Client],
) -> None:
    for number in range(8):
        for client in two:
            register(client)
        answers: dict[int, httpx.Response] = {}

        def make(which: int, name: str = f"s{number}", answers: Any = answers) -> None:
            answers[which] = two[which].put(f"/_snapshot/backups/{name}" + WAIT)

        threads = [Thread(target=make, args=(which,)) for which in (0, 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(HANG_S)
        made = [which for which in (0, 1) if answers[which].status_code == 200]
        assert len(made) == 1
        winner = two[made[0]]
        body = {"rename_pattern": "(.+)", "rename_replacement": f"s{number}-$1"}
        restored = winner.post(f"/_snapshot/backups/s{number}/_restore" + WAIT, json=body)
        assert restored.status_code == 200
        source = winner.get(f"/s{number}-books/_doc/1").json()["_source"]
        assert source == winner.get("/books/_doc/1").json()["_source"]
    assert len(snapshots(two[0])) == 8


def test_what_a_stopped_node_may_have_written_is_of_its_cluster(tmp_path: Path) -> None:
    """The root says a work whose end was logged by somebody else, or never."""
    node = MemorySearch()
    with cluster(tmp_path, node) as client:
        assert client.put("/_snapshot/backups/a" + WAIT).status_code == 200
        work = {"node": 9, "kind": "cleanup", "repository": "backups", "snapshot": "_", "started_ms": 0}
        for uuid in ("first", "second"):
            asyncio.run(node.perform(BeginSnapshotWork(uuid, work)))
            asyncio.run(node.perform(EndSnapshotWork(uuid)))
        SnapshotRepository(str(tmp_path / "here")).root.claim("first", None)
        assert client.put("/_snapshot/backups/b" + WAIT).status_code == 200
        SnapshotRepository(str(tmp_path / "here")).root.claim("second", None)  # as late as can be
        assert client.put("/_snapshot/backups/c" + WAIT).status_code == 200
        SnapshotRepository(str(tmp_path / "here")).root.claim("of another", None)
        assert MODIFIED in reason_of(client.put("/_snapshot/backups/d" + WAIT))[2]


def test_a_damaged_root_is_of_nobody_until_the_repository_is_registered_again(tmp_path: Path) -> None:
    with cluster(tmp_path) as client:
        assert client.put("/_snapshot/backups/a" + WAIT).status_code == 200
        (root,) = (tmp_path / "here").glob("root-*")
        root.write_bytes(root.read_bytes()[:-3])
        assert MODIFIED in reason_of(client.put("/_snapshot/backups/b" + WAIT))[2]
        register(client)
        assert client.put("/_snapshot/backups/b" + WAIT).status_code == 200
        assert snapshots(client) == ["a", "b"]


def test_of_those_who_claim_a_root_together_one_has_it(tmp_path: Path) -> None:
    root = RepositoryRoot(str(tmp_path), RealFileSystem())
    last, random = NO_WORK, Random(7)
    for round_ in range(40):
        writers = random.randrange(1, 6)
        barrier, claimed = Barrier(writers), list[str]()

        def claim(work: str, own: str = last, barrier: Barrier = barrier, claimed: Any = claimed) -> None:
            barrier.wait(HANG_S)
            try:
                root.claim(work, {own})
            except SearchError:
                return
            claimed.append(work)

        threads = [Thread(target=claim, args=(f"{round_}-{writer}",)) for writer in range(writers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(HANG_S)
        assert len(claimed) == 1
        assert root.newest() == (round_ + 1, claimed[0])
        last = claimed[0]
    assert len(list(tmp_path.iterdir())) == 20  # the older ones are gone, and nothing else is left
