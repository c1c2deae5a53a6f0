"""LOAD and SERVICE of a whole node without Ray: the log, a store, readers, and real hosts to call."""

import asyncio
import gzip
import json
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from actors.log.client import LogClient
from actors.log.update_log import UpdateLog
from actors.readers.client import ReaderClient
from actors.readers.store_reader import StoreReader
from graphdb.access.visibility import FULL_VISIBILITY
from graphdb.config import Settings
from graphdb.errors import EvaluationFailed, HostNotAllowed
from graphdb.log.file_log import FileLogConfig
from graphdb.model import Confirmation
from graphdb.node import QueryRequest
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import parse_query, parse_update
from graphdb.sparql.results import ResultFormat
from tests.support.readers import answering as found_at
from tests.support.remote_host import RemoteHost, answering, remote_host
from tests.support.shards import Shard

BYTES_MAX = 50_000
JSON = "application/sparql-results+json"
TURTLE = "text/turtle"
TWO_ROWS = (
    b'{"head":{"vars":["x"]},"results":{"bindings":['
    b'{"x":{"type":"uri","value":"urn:a"}},{"x":{"type":"uri","value":"urn:b"}}]}}'
)


@dataclass
class Node:
    """A shard with its readers, and the loop that it runs on."""

    shard: Shard
    loop: asyncio.Runner

    def update(self, text: str) -> Confirmation:
        return self.loop.run(self.shard.writes(FULL_VISIBILITY).update(parse_update(text), Dataset()))

    def query(self, text: str) -> list[dict[str, str]]:
        """The rows, as a reader finds them."""
        return self.loop.run(self._query(text))

    async def _query(self, text: str) -> list[dict[str, str]]:
        request = QueryRequest(parse_query(text), Dataset(), ResultFormat.JSON, 20)
        answer = await self.shard.start_query(request)
        body = b""
        try:
            while (chunk := await answer.read()) is not None:
                body += chunk
        finally:
            answer.close()
        rows = json.loads(body)["results"]["bindings"]
        return [{name: term["value"] for name, term in row.items()} for row in rows]

    def quads(self) -> set[str]:
        return {str(quad) for quad in self.shard.dataset_quads()}


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    directory: Path = tmp_path_factory.mktemp("node")
    log = UpdateLog(str(directory / "log"), FileLogConfig(segment_bytes=65_536, reserve_bytes=65_536))
    allowed = {"service_allow": ["127.0.0.1"], "load_allow": ["127.0.0.1"]}
    bounds = {"service_timeout_seconds": 0.5, "load_timeout_seconds": 0.5}
    settings = Settings.model_validate(
        {
            "server": {"data_dir": directory, "max_body_bytes": BYTES_MAX},
            "security": allowed | bounds,
            "readers": {"count": 1},
        }
    )
    reader = StoreReader(settings, socket_directory=str(directory))
    with asyncio.Runner() as loop:
        readers = ReaderClient(found_at(reader.endpoint()))
        shard = Shard.standalone(settings, LogClient(found_at(log.endpoint())), readers)
        loop.run(shard.start())
        try:
            yield Node(shard, loop)
        finally:
            loop.run(shard.close())
            log.close()
            reader.close()


@pytest.fixture
def node(started: Node) -> Node:
    started.update("DROP ALL")
    return started


def test_load(node: Node) -> None:
    document = b"@prefix : <#> . <a> :b [] . <urn:x> :y 1 ."
    with remote_host(answering(document, f"{TURTLE}; charset=utf-8")) as host:
        node.update(f"LOAD <{host.url}d> ; LOAD <{host.url}d> INTO GRAPH <urn:g>")
        assert len(host.requests) == 2
        assert b"Accept: application/n-triples, " in host.requests[0]
    quads = node.quads()
    assert len(quads) == 4
    assert sum(f"<{host.url}a> <{host.url}d#b> _:" in quad for quad in quads) == 2
    blank = {quad.split()[2] for quad in quads if "_:" in quad}
    assert len(blank) == 2, "the blank nodes of two readings are not the same"


def test_what_was_redirected_is_read_against_where_it_is(node: Node) -> None:
    with remote_host(answering(b"<a> <b> <c> .", TURTLE)) as there:
        moved = answering(status=302, headers=(f"Location: {there.url}dir/",))
        with remote_host(moved) as host:
            node.update(f"LOAD <{host.url}>")
    assert node.quads() == {f"<{there.url}dir/a> <{there.url}dir/b> <{there.url}dir/c>"}


def test_gzip(node: Node) -> None:
    body = gzip.compress(b"<urn:a> <urn:b> <urn:c> .")
    with remote_host(answering(body, TURTLE, headers=("Content-Encoding: gzip",))) as host:
        node.update(f"LOAD <{host.url}>")
    assert len(node.quads()) == 1


def stall(connection: socket.socket) -> None:
    connection.recv(1)


BAD_DOCUMENTS = {
    "not there": (answering(status=404), "the host answers 404"),
    "half": (answering(b"<urn:a> <urn:b> <urn:c> . <urn:a", TURTLE), "malformed RDF"),
    "a page": (answering(b"<html>", "text/html"), "cannot read text/html"),
    "no type": (lambda c: c.sendall(b"HTTP/1.1 200 X\r\nContent-Length: 0\r\n\r\n"), "without Content-Type"),
    "a DOCTYPE": (answering(b"<!DOCTYPE a><a/>", "application/rdf+xml"), "DOCTYPE"),
    "a remote context": (
        answering(b'{"@context": "http://127.0.0.1/c", "a": 1}', "application/ld+json"),
        "remote JSON-LD contexts",
    ),
    "too large": (answering(b"#" * (BYTES_MAX + 1), TURTLE), r"larger than 50000 bytes \(server.max_body_by"),
    "a bomb": (
        answering(gzip.compress(b"#" * 9_000_000), TURTLE, headers=("Content-Encoding: gzip",)),
        "larger than 50000 bytes",
    ),
    "stalled": (stall, r"no answer within 0.5 s \(security.load_timeout_seconds\)"),
    "quads into a graph": (answering(b"<urn:a> <urn:b> 1 <urn:g> .", "application/n-quads"), ""),
}


@pytest.mark.parametrize("name", BAD_DOCUMENTS)
def test_a_document_that_cannot_be_read_fails_the_update_unless_silent(node: Node, name: str) -> None:
    answer, message = BAD_DOCUMENTS[name]
    before, after = "INSERT DATA { <urn:s> <urn:p> 1 }", "INSERT DATA { <urn:s> <urn:p> 2 }"
    with remote_host(answer) as host:
        load = f"<{host.url}> INTO GRAPH <urn:g>"
        with pytest.raises(EvaluationFailed, match=message or None) as failed:
            node.update(f"{before} ; LOAD {load} ; {after}")
        if message:
            assert str(failed.value).startswith(f"LOAD <{host.url}>: ")
        assert not node.quads()
        node.update(f"{before} ; LOAD SILENT {load} ; {after}")
        assert len(node.quads()) == 2


def test_documents_of_a_request_share_the_limit(node: Node) -> None:
    document = b"<urn:a> <urn:b> <urn:c> ." + b" " * (BYTES_MAX // 2)
    with remote_host(answering(document, TURTLE)) as host:
        with pytest.raises(EvaluationFailed, match="larger than"):
            node.update(f"LOAD <{host.url}1> ; LOAD <{host.url}2>")
        assert not node.quads()
        node.update(f"LOAD <{host.url}1> ; LOAD SILENT <{host.url}2>")
        assert len(node.quads()) == 1


@pytest.mark.parametrize("silent", ["", "SILENT"])
def test_a_refusal_is_no_failure(node: Node, silent: str) -> None:
    """Neither SILENT nor an allowed document before it helps, and nothing is changed."""
    with remote_host(answering(b"<a:a> <a:b> 1 .", TURTLE), "127.0.0.2") as other:
        with remote_host(answering(b"<a:a> <a:b> 1 .", TURTLE)) as host:
            with pytest.raises(HostNotAllowed, match="LOAD"):
                node.update(f"LOAD <{host.url}> ; LOAD {silent} <{other.url}>")
            assert not host.requests, "nothing is fetched for a request that is refused"
            host.answer = answering(status=301, headers=(f"Location: {other.url}",))
            with pytest.raises(HostNotAllowed, match="redirects there"):
                node.update(f"LOAD {silent} <{host.url}>")
        assert not other.requests
    assert not node.quads()


def test_the_writer_does_not_wait_for_documents(node: Node) -> None:
    """An update that loads from a host that is slow lets others pass."""
    asked, released = threading.Event(), threading.Event()

    def slow(connection: socket.socket) -> None:
        asked.set()
        released.wait(5)
        answering(b"<urn:a> <urn:b> <urn:c> .", TURTLE)(connection)

    async def both(host: RemoteHost) -> tuple[Confirmation, Confirmation]:
        loading = asyncio.create_task(
            node.shard.writes(FULL_VISIBILITY).update(parse_update(f"LOAD <{host.url}>"), Dataset())
        )
        assert await asyncio.to_thread(asked.wait, 5)
        other = await node.shard.writes(FULL_VISIBILITY).update(
            parse_update("INSERT DATA { <urn:x> <urn:y> 1 }"), Dataset()
        )
        released.set()
        return other, await loading

    with remote_host(slow) as host:
        other, loaded = node.loop.run(both(host))
    assert other.snapshot_index < loaded.snapshot_index


def test_a_query_calls_a_service(node: Node) -> None:
    node.update("INSERT DATA { <urn:b> <urn:name> 'B' }")
    with remote_host(answering(TWO_ROWS, JSON)) as host:
        rows = node.query(f"SELECT * {{ SERVICE <{host.url}sparql> {{ ?x a ?t }} ?x <urn:name> ?name }}")
    assert rows == [{"x": "urn:b", "name": "B"}]
    assert len(host.requests) == 1


@pytest.mark.parametrize("pattern", ["CALL", "?a ?b ?c FILTER EXISTS { CALL }", "OPTIONAL { CALL }"])
def test_a_service_that_fails_fails_the_query(node: Node, pattern: str) -> None:
    node.update("INSERT DATA { <urn:b> <urn:name> 'B' }")
    with remote_host(answering(status=500)) as host:
        call = f"SERVICE <{host.url}> {{ ?x a ?t }}"
        with pytest.raises(EvaluationFailed) as failed:
            node.query(f"SELECT * {{ {pattern.replace('CALL', call)} }}")
    assert str(failed.value) == f"SERVICE <{host.url}>: the host answers 500"


@pytest.mark.parametrize("silent", ["", "SILENT"])
def test_a_service_that_redirects_elsewhere(node: Node, silent: str) -> None:
    with remote_host(answering(TWO_ROWS, JSON), "127.0.0.2") as other:
        moved = answering(status=308, headers=(f"Location: {other.url}",))
        with remote_host(moved) as host, pytest.raises(HostNotAllowed) as refused:
            node.query(f"SELECT * {{ SERVICE {silent} <{host.url}> {{ ?x a ?t }} }}")
        assert not other.requests
    assert str(refused.value) == (
        f"SERVICE to {other.url} is not allowed by [security] service_allow: no rule covers the address"
        f" 127.0.0.2 (<{host.url}> redirects there)"
    )


def test_no_address_of_the_forwarder_is_in_an_answer(node: Node) -> None:
    with remote_host(answering(TWO_ROWS, JSON)) as host:
        url = f"<{host.url}>"
        rows = node.query(f"SELECT * {{ BIND({url} AS ?u) BIND('{url}' AS ?s) SERVICE {url} {{ ?x a ?t }} }}")
    assert rows == [{"u": host.url, "s": url, "x": x} for x in ("urn:a", "urn:b")]


def test_an_update_calls_a_service(node: Node) -> None:
    with remote_host(answering(TWO_ROWS, JSON)) as host:
        node.update(f"INSERT {{ ?x a <urn:T> }} WHERE {{ SERVICE <{host.url}> {{ ?x a ?t }} }}")
        assert len(node.quads()) == 2
        host.answer = answering(status=500)
        with pytest.raises(EvaluationFailed, match=f"SERVICE <{host.url}>: the host answers 500"):
            node.update(f"INSERT {{ ?x a <urn:U> }} WHERE {{ SERVICE <{host.url}> {{ ?x a ?t }} }}")
        assert len(node.quads()) == 2
