"""The slow-query log: which queries stand in it, how, and that its disk is nobody's fault."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

import serve.graph.query_accounts as slow_query_log
from graphdb.config import Settings
from graphdb.errors import EvaluationFailed
from serve.graph.query_accounts import SlowQueryLog
from serve.graph_app import build_app
from tests.support.http_server import serving
from tests.support.leaving_client import leave
from tests.support.scripted_backend import HANG, ScriptedBackend, ScriptedStream
from tests.support.timing import HANG_S, wait_until
from tests.unit.serve.conftest import update

CHEAP = "SELECT ?o { <http://x/s> <http://x/p> ?o }"
NOT_CHEAP = "SELECT ?o { ?s ?p ?o . ?s ?q ?o }"
CHUNK = b"x" * 65_536


@contextmanager
def client_of(directory: Path, backend: ScriptedBackend, slow_s: float) -> Iterator[httpx.Client]:
    settings = Settings.model_validate({"server": {"slow_query_seconds": slow_s, "data_dir": directory}})
    with serving(build_app(backend, settings)) as url, httpx.Client(base_url=url, trust_env=False) as client:
        yield client


def lines(directory: Path) -> list[dict[str, Any]]:
    """To be read when the application has stopped."""
    return [json.loads(line) for line in (directory / "slow-queries.log").read_text().splitlines()]


def test_every_query_where_nothing_is_quick_enough(tmp_path: Path) -> None:
    backend = ScriptedBackend()
    long_text = NOT_CHEAP + " #" + "x" * 3_000
    with client_of(tmp_path, backend, 0) as client:
        update(client, 'INSERT DATA { <http://x/s> <http://x/p> "a" }')
        cheap = client.get("/sparql", params={"query": CHEAP})
        made = client.get("/sparql", params={"query": NOT_CHEAP})
        client.get("/sparql", params={"query": NOT_CHEAP})
        client.get("/sparql", params={"query": NOT_CHEAP}, headers={"If-None-Match": "*"})
        client.get("/sparql", params={"query": "not a query"})
        client.get("/sparql", params={"query": long_text})
        backend.answer_with(EvaluationFailed("no"))
        client.get("/sparql", params={"query": CHEAP, "format": "csv"})
        client.post("/sparql", data={"query": NOT_CHEAP, "format": "csv"})
        backend.answer_with(ScriptedStream(CHUNK, CHUNK, EvaluationFailed("no"), snapshot_index=1))
        with pytest.raises(httpx.RemoteProtocolError):
            client.post("/sparql", data={"query": NOT_CHEAP, "format": "tsv"})
        client.post("/update", data={"update": "DROP GRAPH <http://g/none>"})
    noted = lines(tmp_path)
    shown = [(line["form"], line["outcome"], line["where"], line["bytes"]) for line in noted]
    assert shown == [
        ("UPDATE", "ok", "port", 0),
        ("SELECT", "ok", "port", len(cheap.content)),
        ("SELECT", "ok", "thread", len(made.content)),
        ("SELECT", "cached", "cache", len(made.content)),
        ("SELECT", "not_modified", "port", 0),
        ("SELECT", "ok", "thread", len(made.content)),
        ("SELECT", "ok", "port", len(b"o\r\na\r\n")),
        ("SELECT", "failed", "port", 0),
        ("SELECT", "broken", "script", 2 * len(CHUNK)),
        ("UPDATE", "rejected", "port", 0),
    ]
    assert [line["text"] for line in noted[1:3]] == [CHEAP, NOT_CHEAP]
    assert noted[5]["text"] == long_text[:2_000]
    assert [line["snapshot_index"] for line in noted[:3]] == [1, 1, 1]
    assert [bool(line["id"]) for line in noted] == [
        *[False] * 2,
        True,
        False,
        False,
        True,
        False,
        False,
        True,
        False,
    ]
    for line in noted:
        assert set(line) == {
            *("time", "id", "seconds", "outcome", "form", "where", "snapshot_index", "bytes"),
            *("principal", "text"),
        }
        assert 0 <= line["seconds"] < HANG_S
        assert abs((datetime.now(UTC) - datetime.fromisoformat(line["time"])).total_seconds()) < 30


def test_only_slow_ones(tmp_path: Path) -> None:
    backend = ScriptedBackend()
    with client_of(tmp_path, backend, 1.5) as client:
        assert client.get("/sparql", params={"query": NOT_CHEAP}).status_code == 200
        began, stream = time.monotonic(), ScriptedStream(HANG)
        backend.answer_with(stream)

        def has_hung() -> bool:
            return stream.hangs_since is not None and time.monotonic() > stream.hangs_since + 1.5

        leave(f"{client.base_url}/sparql", has_hung, query=NOT_CHEAP + " #")
        wait_until(lambda: stream.is_closed)
    [line] = lines(tmp_path)
    assert (line["outcome"], line["text"]) == ("disconnected", NOT_CHEAP + " #")
    assert 1.5 <= line["seconds"] < time.monotonic() - began


def test_no_file_before_it_is_needed(tmp_path: Path) -> None:
    with client_of(tmp_path, ScriptedBackend(), 5) as client:
        client.get("/sparql", params={"query": CHEAP})
    assert list(tmp_path.iterdir()) == []


def test_files_are_turned_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slow_query_log, "FILE_BYTES", 1_000)
    log = SlowQueryLog(tmp_path / "slow.log")
    for number in range(400):
        log.note({"number": number})
    log.close()
    files = ["slow.log", "slow.log.1", "slow.log.2", "slow.log.3"]
    assert sorted(path.name for path in tmp_path.iterdir()) == files
    text = "".join((tmp_path / name).read_text() for name in reversed(files))
    kept = [json.loads(line)["number"] for line in text.splitlines()]
    assert kept == list(range(400 - len(kept), 400))


def test_a_directory_that_is_missing_and_then_there(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = SlowQueryLog(tmp_path / "later" / "slow.log")
    for _ in range(3):
        log.note({"number": 1})
    log.close()
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    (tmp_path / "later").mkdir()
    log.note({"number": 2})
    log.close()
    assert (tmp_path / "later" / "slow.log").read_text() == '{"number":2}\n'


def test_a_full_disk(caplog: pytest.LogCaptureFixture) -> None:
    log = SlowQueryLog(Path("/dev/full"))
    for _ in range(3):
        log.note({"number": 1})
    log.close()
    [record] = caplog.records
    assert "No space left" in record.getMessage()


def test_lines_that_the_disk_cannot_keep_up_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(slow_query_log, "WAITING_MAX", 10)
    log = SlowQueryLog(tmp_path / "slow.log")
    began = time.monotonic()
    for _ in range(20_000):
        log.note({"number": 1})
    assert time.monotonic() - began < HANG_S
    log.close()
    written = len((tmp_path / "slow.log").read_text().splitlines())
    assert written + len(caplog.records) == 20_000
