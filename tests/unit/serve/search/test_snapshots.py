"""`_snapshot`: repositories, snapshots made, shown, cloned, deleted and restored; what is refused."""

import asyncio
import errno
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from graphdb.config import Settings
from graphdb.errors import UnavailableError
from graphdb.search.catalog.catalog_commands import BeginSnapshotWork, EndSnapshotWork, FinishFilling
from graphdb.search.catalog.filling import left_unfilled, left_working
from graphdb.search.snapshots import repository as repository_files
from graphdb.search.snapshots.document_frames import FRAME_BYTES
from serve.search.administration import snapshots
from serve.search_app import build_search_app
from tests.support.http_server import serving
from tests.support.memory_search import MemorySearch
from tests.support.timing import HANG_S, wait_until
from tests.unit.serve.search.conftest import one_shard, reason_of

pytestmark = one_shard

SNAPSHOT = "/_snapshot/backups/first"
WAIT = "?wait_for_completion=true"
NO_REPOSITORIES: list[tuple[dict[str, Any], str]] = [
    ({"type": "s3", "settings": {"bucket": "b"}}, "use [fs]"),
    ({"type": "url", "settings": {"url": "file:/"}}, "use [fs]"),
    ({"type": "nonsense"}, "does not exist"),
    ({"type": "fs"}, "missing location"),
    ({"type": "fs", "settings": {"location": "a", "bucket": "b"}}, "unknown setting [bucket]"),
    ({"type": "fs", "settings": {"location": "a", "readonly": "perhaps"}}, "[readonly]"),
    (
        {"type": "fs", "settings": {"location": "a", "max_snapshot_bytes_per_sec": "fast"}},
        "size in bytes",
    ),
    ({"type": "fs", "settings": {"location": "a"}, "more": 1}, "unknown key [more]"),
]
NOT_RESTORED: list[tuple[dict[str, Any], str]] = [
    ({"indices": "none"}, "index_not_found_exception"),
    ({"nonsense": 1}, "illegal_argument_exception"),
    ({"rename_pattern": "books"}, "illegal_argument_exception"),
    ({"rename_pattern": "(", "rename_replacement": "x"}, "illegal_argument_exception"),
    ({"rename_pattern": "books", "rename_replacement": "$7"}, "illegal_argument_exception"),
    ({"rename_pattern": "books", "rename_replacement": "NO"}, "invalid_index_name_exception"),
    ({"index_settings": {"index.number_of_shards": 1}}, "snapshot_restore_exception"),
    ({"index_settings": {"nonsense": 1}, "indices": "books"}, "snapshot_restore_exception"),
    ({"feature_states": ["security"]}, "illegal_argument_exception"),
]


@pytest.fixture
def allowed(tmp_path: Path) -> Path:
    directory = tmp_path / "repositories"
    directory.mkdir()
    return directory


@pytest.fixture
def http(node: MemorySearch, allowed: Path) -> Iterator[httpx.Client]:
    settings = Settings.model_validate({"search": {"snapshot_paths": [str(allowed)]}})
    with (
        serving(build_search_app(node, settings)) as url,
        httpx.Client(base_url=url, trust_env=False, timeout=HANG_S) as client,
    ):
        yield client


@pytest.fixture
def backups(http: httpx.Client) -> httpx.Client:
    """A repository, and an index with what a snapshot has to keep."""
    assert register(http).status_code == 200
    http.put("/_ingest/pipeline/mark", json={"processors": [{"set": {"field": "marked", "value": 1}}]})
    body = {
        "settings": {"number_of_shards": 2, "refresh_interval": "7s"},
        "mappings": {"properties": {"n": {"type": "keyword"}}},
        "aliases": {"all": {"filter": {"term": {"n": "1"}}}},
    }
    assert http.put("/books", json=body).status_code == 200
    for number in range(30):
        http.put(f"/books/_doc/{number}", json={"n": str(number)})
    http.put("/books/_doc/again?routing=r&version=12&version_type=external", json={"n": "again"})
    http.put("/books/_settings", json={"index.blocks.write": True, "index.final_pipeline": "mark"})
    return http


def register(http: httpx.Client, name: str = "backups", **settings: Any) -> httpx.Response:
    body = {"type": "fs", "settings": {"location": "here", **settings}}
    return http.put(f"/_snapshot/{name}", json=body)


def count(http: httpx.Client, index: str) -> Any:
    http.post(f"/{index}/_refresh")
    return http.get(f"/{index}/_count").json()["count"]


def files(allowed: Path) -> list[str]:
    """All but what says who wrote last, which stays."""
    found = (path for path in allowed.rglob("*") if path.is_file() and not path.name.startswith("root-"))
    return sorted(str(path.relative_to(allowed)) for path in found)


def test_repositories(http: httpx.Client, allowed: Path) -> None:
    assert register(http, max_snapshot_bytes_per_sec="10mb", compress=False).json() == {"acknowledged": True}
    assert register(http, "other", readonly=True).status_code == 200
    shown = http.get("/_snapshot").json()
    assert list(shown) == ["backups", "other"]
    assert shown["backups"]["settings"] == {
        "location": "here",
        "max_snapshot_bytes_per_sec": "10mb",
        "compress": "false",
    }
    assert list(http.get("/_snapshot/oth*").json()) == ["other"]
    assert reason_of(http.get("/_snapshot/none"))[:2] == (404, "repository_missing_exception")
    assert len(http.post("/_snapshot/backups/_verify").json()["nodes"]) == 1
    assert "other" in http.get("/_cat/repositories").text
    refused = reason_of(http.put("/_snapshot/other/s"))
    assert (refused[1], "readonly" in refused[2]) == ("repository_exception", True)
    assert http.delete("/_snapshot/other").json() == {"acknowledged": True}
    assert http.get("/_snapshot/other/_all").status_code == 404
    assert files(allowed) == []


def test_no_location_leads_out(http: httpx.Client, allowed: Path) -> None:
    (allowed / "link").symlink_to(allowed.parent)
    for location in ("../elsewhere", "/etc", "a/../../b", ".", "", "link/inside", "/", "nul\0byte"):
        assert reason_of(register(http, location=location))[1] == "repository_exception", location
    assert http.get("/_snapshot").json() == {}


def test_a_link_that_comes_later_leads_nowhere(backups: httpx.Client, allowed: Path) -> None:
    (allowed / "here").rmdir()
    (allowed / "here").symlink_to(allowed.parent)
    assert reason_of(backups.put(SNAPSHOT + WAIT))[1] == "repository_exception"
    assert list(allowed.parent.glob("snapshot-*")) == []


def test_what_no_repository_can_be(http: httpx.Client) -> None:
    for body, words in NO_REPOSITORIES:
        assert words in reason_of(http.put("/_snapshot/r", json=body))[2]


def test_without_the_setting_there_are_none(node: MemorySearch) -> None:
    with serving(build_search_app(node, Settings())) as url, httpx.Client(base_url=url) as http:
        assert "search.snapshot_paths" in reason_of(register(http))[2]


def test_a_snapshot(backups: httpx.Client, allowed: Path) -> None:
    made = backups.put(SNAPSHOT + WAIT, json={"metadata": {"by": "me"}}).json()["snapshot"]
    assert (made["state"], made["indices"]) == ("SUCCESS", ["books"])
    assert made["shards"] == {"total": 2, "failed": 0, "successful": 2}
    assert made["metadata"] == {"by": "me"}
    again = reason_of(backups.put(SNAPSHOT + WAIT))
    assert again[:2] == (400, "invalid_snapshot_name_exception")
    backups.put("/_snapshot/backups/second" + WAIT, json={"indices": "none*", "include_global_state": False})
    answer = backups.get("/_snapshot/backups/_all").json()
    assert [one["snapshot"] for one in answer["snapshots"]] == ["first", "second"]
    assert (answer["total"], answer["remaining"]) == (2, 0)
    page = backups.get("/_snapshot/*/*?sort=name&order=desc&size=1").json()
    assert ([one["snapshot"] for one in page["snapshots"]], page["remaining"]) == (["second"], 1)
    rows = backups.get("/_cat/snapshots?format=json").json()
    assert [(row["id"], row["repository"], row["indices"]) for row in rows] == [
        ("first", "backups", "1"),
        ("second", "backups", "0"),
    ]
    assert backups.get("/_cat/snapshots/none").status_code == 404
    status = backups.get(SNAPSHOT + "/_status").json()["snapshots"][0]
    assert status["shards_stats"]["done"] == 2
    assert status["stats"]["total"]["size_in_bytes"] > 0
    assert reason_of(backups.get("/_snapshot/backups/none"))[:2] == (404, "snapshot_missing_exception")
    assert backups.get("/_snapshot/backups/none?ignore_unavailable").json()["snapshots"] == []
    assert backups.delete("/_snapshot/backups/first,second").json() == {"acknowledged": True}
    assert reason_of(backups.delete(SNAPSHOT))[:2] == (404, "snapshot_missing_exception")
    assert files(allowed) == []


def test_a_snapshot_is_restored(backups: httpx.Client) -> None:
    before = backups.get("/books").json()["books"]
    backups.put(SNAPSHOT + WAIT)
    open_there = reason_of(backups.post(f"{SNAPSHOT}/_restore{WAIT}"))
    assert (open_there[1], "open index" in open_there[2]) == ("snapshot_restore_exception", True)
    backups.put("/books/_settings", json={"index.blocks.write": None})
    backups.put("/books/_doc/later", json={})
    backups.post("/books/_close")
    restored = backups.post(f"{SNAPSHOT}/_restore{WAIT}").json()["snapshot"]
    assert restored["shards"] == {"total": 2, "failed": 0, "successful": 2}
    after = backups.get("/books").json()["books"]
    assert (after["mappings"], after["aliases"]) == (before["mappings"], before["aliases"])
    for settings in (before["settings"]["index"], after["settings"]["index"]):
        del settings["uuid"], settings["creation_date"]
    assert after["settings"] == before["settings"]
    assert count(backups, "books") == 31
    moved = backups.get("/books/_doc/again?routing=r").json()
    assert (moved["_version"], moved["_source"]) == (12, {"n": "again"})
    assert backups.get("/books/_doc/later").status_code == 404
    assert backups.put("/books/_doc/x", json={}).status_code == 403


def test_restored_under_another_name(backups: httpx.Client, node: MemorySearch) -> None:
    backups.put(SNAPSHOT + WAIT)
    backups.delete("/_ingest/pipeline/mark")
    body = {
        "indices": "bo*",
        "rename_pattern": "(.+)s",
        "rename_replacement": "old-$1",
        "index_settings": {"index.number_of_replicas": 0},
        "ignore_index_settings": ["index.blocks.*", "final_pipeline"],
        "include_aliases": False,
    }
    answer = backups.post(f"{SNAPSHOT}/_restore{WAIT}", json=body)
    assert answer.json()["snapshot"]["indices"] == ["old-book"]
    shown = backups.get("/old-book").json()["old-book"]
    assert shown["aliases"] == {}
    assert shown["settings"]["index"]["number_of_replicas"] == "0"
    assert not {"blocks", "final_pipeline", "resize"} & shown["settings"]["index"].keys()
    assert count(backups, "old-book") == 31
    assert left_unfilled(node.catalog.state, 1, set()) == []
    assert (node.filling, node.catalog.state.snapshot_work) == (set(), {})


def test_what_is_not_restored(backups: httpx.Client) -> None:
    backups.put(SNAPSHOT + WAIT)
    for body, kind in NOT_RESTORED:
        assert reason_of(backups.post(f"{SNAPSHOT}/_restore{WAIT}", json=body))[1] == kind, body
    assert list(backups.get("/_all").json()) == ["books"]


def test_the_global_state_is_restored(backups: httpx.Client) -> None:
    backups.put("/_index_template/t", json={"index_patterns": ["t*"], "composed_of": ["c"]})
    backups.put("/_component_template/c", json={"template": {"settings": {"refresh_interval": "3s"}}})
    backups.put("/_index_template/t", json={"index_patterns": ["t*"], "composed_of": ["c"]})
    backups.put("/_ilm/policy/p", json={"policy": {"phases": {"delete": {"actions": {"delete": {}}}}}})
    backups.put(SNAPSHOT + WAIT)
    backups.delete("/_index_template/t")
    backups.delete("/_component_template/c")
    backups.delete("/_ilm/policy/p")
    body = {"indices": "-*", "ignore_unavailable": True, "include_global_state": True}
    assert backups.post(f"{SNAPSHOT}/_restore{WAIT}", json=body).status_code == 200
    assert backups.get("/_index_template/t").status_code == 200
    assert backups.get("/_component_template/c").status_code == 200
    assert "p" in backups.get("/_ilm/policy").json()


def test_names_that_no_snapshot_has(backups: httpx.Client) -> None:
    for name in ("Capital", "with space", "a,b", "_leading", "a*", "a%2Fb", "x" * 201, "a%00b"):
        refused = reason_of(backups.put(f"/_snapshot/backups/{name}{WAIT}"))
        assert refused[1] == "invalid_snapshot_name_exception", name
    for name in ("a%2Fb", "x" * 300, "a%00b"):
        assert backups.get(f"/_snapshot/backups/{name}/_status").status_code in (400, 404)


def test_a_clone_outlives_what_it_was_made_of(backups: httpx.Client) -> None:
    backups.put("/more/_doc/1", json={"a": 1})
    backups.put(SNAPSHOT + WAIT)
    cloned = backups.put(f"{SNAPSHOT}/_clone/second", json={"indices": "more"})
    assert cloned.json() == {"acknowledged": True}
    backups.delete(SNAPSHOT)
    backups.delete("/more")
    restored = backups.post(f"/_snapshot/backups/second/_restore{WAIT}").json()
    assert restored["snapshot"]["indices"] == ["more"]
    assert backups.get("/more/_doc/1").json()["_source"] == {"a": 1}
    assert backups.put(f"{SNAPSHOT}/_clone/x", json={"indices": "*"}).status_code == 404


def test_each_damaged_byte_is_found(backups: httpx.Client, allowed: Path) -> None:
    backups.put(SNAPSHOT + WAIT)
    (documents,) = allowed.rglob("*.docs")
    (manifest,) = allowed.rglob("snapshot-*")
    body = {"rename_pattern": "books", "rename_replacement": "other"}
    for path in (documents, manifest):
        whole = path.read_bytes()
        for at in range(0, len(whole), max(1, len(whole) // 12)):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
            refused = reason_of(backups.post(f"{SNAPSHOT}/_restore{WAIT}", json=body))
            assert (refused[1], "damaged" in refused[2]) == ("repository_exception", True)
            assert str(allowed) not in refused[2]
        path.write_bytes(whole[:-1])
        assert backups.post(f"{SNAPSHOT}/_restore{WAIT}", json=body).status_code == 500
        path.write_bytes(whole)
    assert list(backups.get("/_all").json()) == ["books"]
    assert backups.post(f"{SNAPSHOT}/_restore{WAIT}", json=body).status_code == 200


def test_a_full_disk_leaves_nothing(
    backups: httpx.Client, allowed: Path, node: MemorySearch, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(repository_files.DocumentsWriter, "finish", full)
        assert "No space left" in reason_of(backups.put(SNAPSHOT + WAIT))[2]
    with monkeypatch.context() as patch:
        patch.setattr(repository_files, "_FREE_BYTES", 1 << 62)
        assert reason_of(backups.put(SNAPSHOT + WAIT))[0] == 507
    assert files(allowed) == []
    assert (node.filling, node.catalog.state.snapshot_work) == (set(), {})
    assert backups.put(SNAPSHOT + WAIT).status_code == 200


def full(*_: Any) -> Any:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_what_a_stopped_node_has_left_is_cleaned_up(backups: httpx.Client, allowed: Path) -> None:
    backups.put(SNAPSHOT + WAIT)
    left = allowed / "here" / "data-1-abc"
    left.mkdir()
    (left / "0.docs").write_bytes(b"half")
    gone = allowed / "here" / "data-77-abc"  # of a node that is no member
    gone.mkdir()
    assert [one["snapshot"] for one in backups.get("/_snapshot/backups/*").json()["snapshots"]] == ["first"]
    cleaned = backups.post("/_snapshot/backups/_cleanup").json()["results"]
    assert cleaned == {"deleted_bytes": 4, "deleted_blobs": 1}
    assert not left.exists()
    assert not gone.exists()
    body = {"rename_pattern": "books", "rename_replacement": "other"}
    assert backups.post(f"{SNAPSHOT}/_restore{WAIT}", json=body).status_code == 200


def test_a_snapshot_that_is_deleted_while_it_is_made(
    backups: httpx.Client, allowed: Path, node: MemorySearch, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached, go_on = threading.Event(), threading.Event()

    class Held(snapshots.Pace):
        async def keep(self, done: int, check: Callable[[], None]) -> None:
            reached.set()
            await asyncio.to_thread(go_on.wait, HANG_S)

    monkeypatch.setattr(snapshots, "Pace", Held)
    for number in range(3):  # so that there is more than one frame
        backups.put(f"/large/_doc/{number}", json={"text": "x" * FRAME_BYTES})
    assert backups.put(SNAPSHOT).json() == {"accepted": True}
    assert reached.wait(HANG_S)
    (running,) = backups.get("/_snapshot/backups/_current").json()["snapshots"]
    assert (running["snapshot"], running["state"]) == ("first", "IN_PROGRESS")
    assert backups.get("/_snapshot/_status").json()["snapshots"][0]["state"] == "STARTED"
    tasks = backups.get("/_tasks?actions=cluster:admin/snapshot*").text
    assert "snapshot/create" in tasks
    other = reason_of(backups.put("/_snapshot/backups/second" + WAIT))
    assert other[:2] == (503, "concurrent_snapshot_execution_exception")
    assert reason_of(backups.delete("/_snapshot/backups"))[:2] == (409, "repository_conflict_exception")
    assert left_working(node.catalog.state, 1, set()) == [running["uuid"]]
    deleting = threading.Thread(target=lambda: backups.delete(SNAPSHOT))
    deleting.start()
    with suppress(TimeoutError):
        while "aborted" not in next(iter(node.catalog.state.snapshot_work.values()), {"aborted": 1}):
            go_on.wait(0.01)
    go_on.set()
    deleting.join(HANG_S)
    assert files(allowed) == []
    assert backups.get("/_snapshot/backups/_all").json()["snapshots"] == []
    assert (node.filling, node.catalog.state.snapshot_work) == (set(), {})


def test_a_low_rate_keeps_no_snapshot_from_being_deleted(backups: httpx.Client, allowed: Path) -> None:
    register(backups, max_snapshot_bytes_per_sec="1b")
    assert backups.put(SNAPSHOT).json() == {"accepted": True}
    assert backups.delete(SNAPSHOT).json() == {"acknowledged": True}
    assert files(allowed) == []


def test_work_of_a_node_that_is_gone_is_ended(backups: httpx.Client, node: MemorySearch) -> None:
    work = {"node": 9, "kind": "snapshot", "repository": "backups", "snapshot": "first", "indices": []}
    body = {**work, "started_ms": 0, "include_global_state": True}
    asyncio.run(node.perform(BeginSnapshotWork("u", body)))
    assert backups.put("/_snapshot/backups/second" + WAIT).status_code == 503
    assert backups.delete(SNAPSHOT).json() == {"acknowledged": True}
    assert backups.put("/_snapshot/backups/second" + WAIT).status_code == 200
    asyncio.run(node.perform(EndSnapshotWork("u")))


def test_a_restore_that_fails_leaves_no_index(backups: httpx.Client, node: MemorySearch) -> None:
    backups.put(SNAPSHOT + WAIT)
    write = node.write

    async def failing(*_: Any) -> Any:
        raise RuntimeError("the disk is full")

    node.write = failing  # type: ignore[assignment, method-assign]
    body = {"rename_pattern": "books", "rename_replacement": "other"}
    assert backups.post(f"{SNAPSHOT}/_restore{WAIT}", json=body).status_code == 500
    node.write = write  # type: ignore[method-assign]
    assert list(backups.get("/_all").json()) == ["books"]
    assert node.filling == set()


def closed_books(backups: httpx.Client) -> dict[str, Any]:
    """A snapshot, then an index of the name that differs, is closed and stands for what must not be lost."""
    backups.put("/books/_alias/written", json={"is_write_index": True})
    backups.put(SNAPSHOT + WAIT)
    backups.put("/books/_settings", json={"index.blocks.write": None})
    backups.put("/books/_doc/later", json={"n": "later"})
    backups.post("/books/_close")
    found: dict[str, Any] = backups.get("/books").json()
    return found


@pytest.mark.parametrize("fails", ["write", "finish"])
def test_a_restore_that_fails_leaves_the_index_that_it_was_to_replace(
    backups: httpx.Client, node: MemorySearch, fails: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = closed_books(backups)

    async def failing(*_: Any) -> Any:
        raise RuntimeError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(node, "write" if fails == "write" else "refresh", failing)
        assert backups.post(f"{SNAPSHOT}/_restore{WAIT}").status_code == 500
    assert backups.get("/books").json() == before
    backups.post("/books/_open")
    assert count(backups, "books") == 32
    assert [index.name for index in node.catalog.indexes()] == ["books"]
    assert (node.filling, node.catalog.state.snapshot_work) == (set(), {})
    backups.post("/books/_close")
    assert backups.post(f"{SNAPSHOT}/_restore{WAIT}").status_code == 200
    assert count(backups, "books") == 31


def test_an_end_that_nobody_heard_of_keeps_the_restored_index(
    backups: httpx.Client, node: MemorySearch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log has taken the end of the restore, and the answer was lost: the old index is gone by then."""
    closed_books(backups)
    perform = node.perform

    async def unheard(command: Any) -> Any:
        outcome = await perform(command)
        if isinstance(command, FinishFilling):
            raise UnavailableError("whether it was logged is unknown")
        return outcome

    with monkeypatch.context() as patch:
        patch.setattr(node, "perform", unheard)
        assert backups.post(f"{SNAPSHOT}/_restore{WAIT}").status_code == 503
    assert count(backups, "books") == 31


def test_while_an_index_is_replaced_its_name_means_the_old_one(
    backups: httpx.Client, node: MemorySearch
) -> None:
    uuid = closed_books(backups)["books"]["settings"]["index"]["uuid"]
    write, seen = node.write, list[Any]()

    async def watched(*given: Any) -> Any:
        shown = await asyncio.to_thread(backups.get, "/books")
        seen.append(shown.json()["books"]["settings"]["index"]["uuid"])
        again = await asyncio.to_thread(backups.post, f"{SNAPSHOT}/_restore{WAIT}")
        seen.append("being replaced already" in reason_of(again)[2])
        deleted = await asyncio.to_thread(backups.delete, SNAPSHOT)
        seen.append(reason_of(deleted)[:2])
        return await write(*given)

    node.write = watched  # type: ignore[assignment, method-assign]
    assert backups.post(f"{SNAPSHOT}/_restore{WAIT}").status_code == 200
    assert seen == [uuid, True, (503, "concurrent_snapshot_execution_exception")]
    shown = backups.get("/books").json()["books"]
    assert shown["settings"]["index"]["uuid"] != uuid
    assert shown["aliases"]["written"] == {"is_write_index": True}
    assert not {"resize"} & shown["settings"]["index"].keys()
    assert backups.delete(SNAPSHOT).json() == {"acknowledged": True}


def test_an_index_that_is_opened_while_it_is_replaced_stays(
    backups: httpx.Client, node: MemorySearch
) -> None:
    closed_books(backups)
    write = node.write

    async def watched(*given: Any) -> Any:
        await asyncio.to_thread(backups.post, "/books/_open")
        return await write(*given)

    node.write = watched  # type: ignore[assignment, method-assign]
    refused = reason_of(backups.post(f"{SNAPSHOT}/_restore{WAIT}"))
    assert (refused[0], "was opened" in refused[2]) == (409, True)
    assert count(backups, "books") == 32
    assert [index.name for index in node.catalog.indexes()] == ["books"]


def test_during_a_restore_other_snapshots_are_made_and_deleted(
    backups: httpx.Client, node: MemorySearch
) -> None:
    backups.put(SNAPSHOT + WAIT)
    backups.put("/_snapshot/backups/other" + WAIT)
    write, seen = node.write, list[Any]()

    async def watched(*given: Any) -> Any:
        made = await asyncio.to_thread(
            backups.put, "/_snapshot/backups/third" + WAIT, json={"indices": "books"}
        )
        deleted = await asyncio.to_thread(backups.delete, "/_snapshot/backups/other,third")
        seen.extend((made.status_code, deleted.status_code))
        return await write(*given)

    node.write = watched  # type: ignore[assignment, method-assign]
    body = {"rename_pattern": "books", "rename_replacement": "new"}
    assert backups.post(f"{SNAPSHOT}/_restore{WAIT}", json=body).status_code == 200
    assert seen == [200, 200]


def test_until_it_is_restored_an_index_says_who_fills_it(backups: httpx.Client, node: MemorySearch) -> None:
    backups.put(SNAPSHOT + WAIT)
    write, seen = node.write, list[Any]()

    async def watched(*given: Any) -> Any:
        seen.append([one.name for one in left_unfilled(node.catalog.state, 1, set())])
        assert left_unfilled(node.catalog.state, 1, node.filling) == []
        taken = await asyncio.to_thread(backups.put, "/_snapshot/backups/second" + WAIT)
        seen.append(reason_of(taken)[1])
        partial = {"partial": True}
        taken = await asyncio.to_thread(backups.put, "/_snapshot/backups/third" + WAIT, json=partial)
        seen.append(taken.json()["snapshot"]["state"])
        return await write(*given)

    node.write = watched  # type: ignore[assignment, method-assign]
    body = {"rename_pattern": "books", "rename_replacement": "other"}
    assert backups.post(f"{SNAPSHOT}/_restore{WAIT}", json=body).status_code == 200
    assert seen == [["other"], "snapshot_exception", "PARTIAL"]
    assert backups.get("/other").json()["other"]["settings"]["index"].get("resize") is None


def test_a_restored_index_is_there_once_its_restore_is_accepted(
    backups: httpx.Client, node: MemorySearch
) -> None:
    """As curator and others ask `_recovery` at once, and again until every shard is done."""
    backups.put(SNAPSHOT + WAIT)
    write, filling = node.write, threading.Event()

    async def held(*given: Any) -> Any:
        assert await asyncio.to_thread(filling.wait, HANG_S)
        return await write(*given)

    def stages() -> set[str]:
        found = backups.get("/new/_recovery").raise_for_status().json()["new"]["shards"]
        return {shard["stage"] for shard in found}

    node.write = held  # type: ignore[assignment, method-assign]
    body = {"rename_pattern": "books", "rename_replacement": "new"}
    assert backups.post(f"{SNAPSHOT}/_restore", json=body).json() == {"accepted": True}
    assert stages() == {"INDEX"}
    assert {row["stage"] for row in backups.get("/_cat/recovery/new?format=json").json()} == {"index"}
    filling.set()
    wait_until(lambda: stages() == {"DONE"})
