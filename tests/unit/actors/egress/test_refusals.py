"""SERVICE and LOAD reach no host that is not allowed, however the request spells or hides them.

The engine would call any host by itself. So a real listener on loopback counts who connects: nobody.
"""

import asyncio
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from pyoxigraph import QueryBoolean, Store

from actors.log.client import LogClient
from actors.log.update_log import UpdateLog
from actors.readers.client import ReaderClient
from actors.readers.store_reader import StoreReader
from graphdb.access.visibility import FULL_VISIBILITY
from graphdb.config import Settings
from graphdb.errors import HostNotAllowed, QuerySyntaxError
from graphdb.log.file_log import FileLogConfig
from graphdb.node import QueryRequest
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import parse_query, parse_update
from graphdb.sparql.results import ResultFormat
from tests.support.readers import answering as found_at
from tests.support.shards import Shard


class Listener:
    """Accepts on loopback, answers every request with no rows, and counts."""

    def __init__(self) -> None:
        self.connections = 0
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def _accept(self) -> None:
        body = b'{"head":{"vars":[]},"results":{"bindings":[]}}'
        head = (
            f"HTTP/1.1 200 OK\r\nContent-Type: application/sparql-results+json\r\nContent-Length: {len(body)}"
        )
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self.connections += 1
            with connection:
                connection.recv(65_536)
                connection.sendall(head.encode() + b"\r\nConnection: close\r\n\r\n" + body)

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits in accept
        self._socket.close()
        self._thread.join()


@pytest.fixture(scope="module")
def listener() -> Iterator[Listener]:
    heard = Listener()
    yield heard
    heard.close()


@dataclass
class Node:
    """A shard, and the loop that it runs on."""

    shard: Shard
    loop: asyncio.Runner

    def query(self, text: str, base_iri: str | None = None) -> None:
        """Evaluate a query to its last row."""
        answer = self.shard.query(parse_query(text, base_iri), Dataset()).answer
        if not isinstance(answer, QueryBoolean):
            list(answer)

    def start_query(self, text: str, base_iri: str | None = None) -> None:
        """Have a reader begin with a query."""
        request = QueryRequest(parse_query(text, base_iri), Dataset(), ResultFormat.JSON, 10)

        async def start() -> None:
            (await self.shard.start_query(request)).close()

        self.loop.run(start())

    def update(self, text: str, base_iri: str | None = None) -> None:
        self.loop.run(self.shard.writes(FULL_VISIBILITY).update(parse_update(text, base_iri), Dataset()))


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node with a triple, so that no pattern is skipped for want of data, and with some allowed names."""
    directory = tmp_path_factory.mktemp("node")
    log = UpdateLog(str(directory / "log"), FileLogConfig(segment_bytes=65_536, reserve_bytes=65_536))

    allowed = ["allowed.example", "192.0.2.0/24"]
    security = {"service_allow": allowed, "load_allow": allowed}
    settings = Settings.model_validate(
        {"server": {"data_dir": directory}, "security": security, "readers": {"count": 1}}
    )
    reader = StoreReader(settings, socket_directory=str(directory))
    with asyncio.Runner() as loop:
        shard = Shard.standalone(
            settings, LogClient(found_at(log.endpoint())), ReaderClient(found_at(reader.endpoint()))
        )
        loop.run(shard.start())
        started = Node(shard, loop)
        started.update("INSERT DATA { <urn:s> <urn:p> <urn:o> . GRAPH <urn:g> { <urn:s> <urn:p> <urn:o> } }")
        try:
            yield started
        finally:
            loop.run(shard.close())
            log.close()
            reader.close()


CALL = "SERVICE <URL> { ?a ?b ?c }"

PATTERNS = {
    "plain": CALL,
    "lower case": "service <URL> { ?a ?b ?c }",
    "mixed case": "sErViCe <URL> {}",
    "SILENT": "SERVICE SILENT <URL> { ?a ?b ?c }",
    "without spaces": "SERVICE<URL>{?a ?b ?c}",
    "over lines and comments": "SERVICE#a\n#b\n\t\r\n SILENT#c\n<URL>\n{}",
    "a prefixed name": "SERVICE u: {}",
    "a prefixed name with a local part": "SERVICE l:sparql {}",
    "escapes in the local part": "SERVICE l:s\\-parql {}",
    "code points in the IRI": "SERVICE <http\\u003A//127.0.0.1:PORT/\\u0073parql> {}",
    "an escaped host": "SERVICE <http://\\u0031\\U000000327.0.0.1:PORT/> {}",
    "a scheme in capitals": "SERVICE <HTTP://127.0.0.1:PORT/> {}",
    "a relative IRI": "SERVICE <sparql> {}",
    "an empty IRI": "SERVICE <> {}",
    "an IRI without scheme": "SERVICE <//127.0.0.1:PORT/> {}",
    "a variable": "BIND(<URL> AS ?e) SERVICE ?e {}",
    "a variable bound by VALUES": "VALUES ?e { <URL> } SERVICE SILENT ?e {}",
    "a variable that nothing binds": "SERVICE ?nothing {}",
    "in a group": "{ { { CALL } } }",
    "in OPTIONAL": "?s ?p ?o OPTIONAL { CALL }",
    "in UNION": "{ ?s ?p ?o } UNION { ?s ?p ?o } UNION { CALL }",
    "in MINUS": "?s ?p ?o MINUS { CALL }",
    "in GRAPH": "GRAPH ?g { CALL }",
    "in EXISTS": "?s ?p ?o FILTER EXISTS { CALL }",
    "in NOT EXISTS in an expression": "?s ?p ?o FILTER(false || !(1 = 2 && NOT EXISTS { CALL }))",
    "in EXISTS in BIND": "BIND(IF(EXISTS { CALL }, 1, 2) AS ?x)",
    "in EXISTS in a function call": "FILTER(COALESCE(1/0, <urn:f>(EXISTS { CALL }), EXISTS { CALL }))",
    "in EXISTS in an IN list": "FILTER(?x IN (1, EXISTS { CALL }))",
    "in EXISTS in a filter of OPTIONAL": "OPTIONAL { ?s ?p ?o FILTER EXISTS { FILTER EXISTS { CALL } } }",
    "in a sub-select": "{ SELECT * WHERE { CALL } }",
    "in a column of a sub-select": "{ SELECT (EXISTS { CALL } AS ?x) WHERE {} }",
    "in an aggregate": "{ SELECT (SUM(IF(EXISTS { CALL }, 1, 0)) AS ?n) WHERE { ?s ?p ?o } }",
    "in GROUP BY": "{ SELECT ?k WHERE { ?s ?p ?o } GROUP BY (EXISTS { CALL } AS ?k) }",
    "in HAVING": "{ SELECT ?s WHERE { ?s ?p ?o } GROUP BY ?s HAVING (EXISTS { CALL }) }",
    "in ORDER BY": "{ SELECT ?s WHERE { ?s ?p ?o } ORDER BY (EXISTS { CALL }) }",
    "in another SERVICE that is allowed": "SERVICE SILENT <http://allowed.example/> { CALL }",
    "beside one that is allowed": "OPTIONAL { SERVICE SILENT <http://192.0.2.1/> {} } CALL",
    "an allowed name as user": "SERVICE <http://allowed.example@127.0.0.1:PORT/> {}",
    "an allowed name as user and password": "SERVICE <http://allowed.example:80@127.0.0.1:PORT/> {}",
    "an allowed name as path": "SERVICE <http://127.0.0.1:PORT/allowed.example> {}",
    "an allowed name as fragment": "SERVICE <http://127.0.0.1:PORT#@allowed.example/> {}",
    "an allowed name as query": "SERVICE <http://127.0.0.1:PORT?@allowed.example/> {}",
    "an allowed name as label": "SERVICE <http://allowed.example.127.0.0.1:PORT/> {}",
    "no host": "SERVICE <http:///127.0.0.1:PORT/> {}",
    "no slashes": "SERVICE <http:127.0.0.1:PORT/> {}",
    "localhost": "SERVICE <http://localhost:PORT/> {}",
    "a number as host": "SERVICE <http://2130706433:PORT/> {}",
    "a hexadecimal host": "SERVICE <http://0x7f.1:PORT/> {}",
    "IPv6": "SERVICE <http://[::ffff:127.0.0.1]:PORT/> {}",
    "a percent-encoded host": "SERVICE <http://%31%32%37.0.0.1:PORT/> {}",
    "another scheme": "SERVICE <file:///etc/passwd> {}",
    "behind a comment that a carriage return ends": "#\rCALL",
    "behind a string with escaped quotes": "BIND('\\u0027\\'' AS ?q) CALL",
    "behind a long string": "BIND('''it''s ' \\''''  AS ?q) CALL",
    "behind what looks like a comment in an IRI": "BIND(<urn:#> AS ?q) CALL",
}

MASKED = {
    "the word in code points": "\\u0053ERVICE <URL> {}",
    "one letter in code points": "SERVIC\\u0045 <URL> {}",
    "a full-width letter": "SERVICE\uff25 <URL> {}",
    "a soft hyphen": "SER\u00adVICE <URL> {}",
    "braces in code points": "SERVICE <URL> \\u007B \\u007D",
    "a line separator as space": "SERVICE\u2028<URL> {}",
    "a form feed as space": "SERVICE\f<URL> {}",
    "a NUL in the word": "SERVICE\0 <URL> {}",
    "an IRI with a space": "SERVICE < URL> {}",
    "a literal as endpoint": "SERVICE 'URL' {}",
    "a blank node as endpoint": "SERVICE _:b {}",
}

HARMLESS = {
    "in a string": "BIND('SERVICE <URL> { }' AS ?x)",
    "in a string with escaped code points": "BIND('\\u0027 AS ?x) SERVICE <URL> {} BIND(\\u0027' AS ?x)",
    "in a long string": 'BIND(""" " "" SERVICE <URL> {} """ AS ?x)',
    "in an IRI": "?s <urn:SERVICE> <URL>",
    "an IRI with an escaped end": "?s <urn:x\\u0023SERVICE> <URL>",
    "in a comment": "# SERVICE <URL> {}\n",
    "in a comment with an escaped line feed": "# \\u000A SERVICE <URL> {}\n",
    "in a comment with other separators": "# \u2028SERVICE <URL> {} \x85SERVICE <URL> {} \fSERVICE <URL>\n",
    "as a variable": "?SERVICE ?p <URL>",
    "as a prefixed name": "l:SERVICE ?p <URL>",
    "as a label": "_:SERVICE ?p <URL>",
    "as a predicate": "?s <URL>/<URL>* ?o",
}


def spelled(pattern: str, listener: Listener) -> str:
    address = f"http://127.0.0.1:{listener.port}/"
    return pattern.replace("CALL", CALL).replace("URL", address).replace("PORT", str(listener.port))


def prologue(listener: Listener) -> str:
    return (
        f"PREFIX u: <http://127.0.0.1:{listener.port}/sparql> PREFIX l: <http://127.0.0.1:{listener.port}/> "
    )


def requests(pattern: str, listener: Listener) -> tuple[list[str], list[str]]:
    """Queries, and updates, that hold the pattern."""
    head, body = prologue(listener), spelled(pattern, listener)
    queries = [
        f"SELECT * WHERE {{ {body} }}",
        f"ASK {{ {body} }}",
        f"CONSTRUCT {{ <a:a> <a:a> 1 }} WHERE {{ {body} }}",
    ]
    queries += [f"DESCRIBE <urn:s> WHERE {{ {body} }}"]
    updates = [
        f"INSERT {{ <urn:s> <urn:p> 1 }} WHERE {{ {body} }}",
        f"INSERT DATA {{ <urn:x> <urn:p> 1 }} ; WITH <urn:g> DELETE {{ ?a ?b ?c }} WHERE {{ {body} }}",
    ]
    return [head + each for each in queries], [head + each for each in updates]


def test_the_listener_hears_the_engine(listener: Listener) -> None:
    """Else the other tests could not fail."""
    before = listener.connections
    list(Store().query(spelled(f"SELECT * WHERE {{ {CALL} }}", listener)))  # type: ignore[arg-type]
    assert listener.connections == before + 1


@pytest.mark.parametrize("pattern", PATTERNS.values(), ids=PATTERNS.keys())
def test_service_is_refused(node: Node, listener: Listener, pattern: str) -> None:
    before, base = listener.connections, f"http://127.0.0.1:{listener.port}/"
    queries, updates = requests(pattern, listener)
    for query in queries:
        with pytest.raises(HostNotAllowed, match="SERVICE"):
            node.query(query, base)
        with pytest.raises(HostNotAllowed, match="SERVICE"):
            node.start_query(query, base)
    for update in updates:
        with pytest.raises(HostNotAllowed, match="SERVICE"):
            node.update(update, base)
    assert listener.connections == before
    node.query("ASK { <urn:s> <urn:p> <urn:o> }")


@pytest.mark.parametrize("pattern", MASKED.values(), ids=MASKED.keys())
def test_what_is_no_service_does_not_parse(node: Node, listener: Listener, pattern: str) -> None:
    before = listener.connections
    queries, updates = requests(pattern, listener)
    for query in queries:
        with pytest.raises(QuerySyntaxError):
            node.query(query)
    for update in updates:
        with pytest.raises(QuerySyntaxError):
            node.update(update)
    assert listener.connections == before


@pytest.mark.parametrize("pattern", HARMLESS.values(), ids=HARMLESS.keys())
def test_the_mere_word_calls_nobody(node: Node, listener: Listener, pattern: str) -> None:
    """What our parser takes for a string, a comment or a name, the engine takes for the same."""
    before = listener.connections
    queries, updates = requests(pattern, listener)
    for query in queries:
        node.query(query)
    for update in updates:
        node.update(update)
    assert listener.connections == before


@pytest.mark.parametrize(
    "text",
    [
        "LOAD <URL>",
        "load silent <URL>",
        "LOAD SILENT <URL> INTO GRAPH <urn:g>",
        "LOAD#a\n<URL>",
        "PREFIX u: <URL> LOAD u:x",
        "BASE <URL> LOAD <x>",
        "LOAD <>",
        "LOAD <//127.0.0.1:PORT/>",
        "INSERT DATA { <urn:x> <urn:p> 1 } ; LOAD <URL>",
        "LOAD <HTTP://127.0.0.1:PORT/>",
        "LOAD <http\\u003A//127.0.0.1:PORT/>",
        "LOAD <http://allowed.example@127.0.0.1:PORT/>",
        "LOAD <http://127.0.0.1:PORT#@allowed.example/>",
        "LOAD <http:///127.0.0.1:PORT/>",
        "LOAD <http://localhost:PORT/>",
        "LOAD <http://2130706433:PORT/>",
        "LOAD <http://[::ffff:127.0.0.1]:PORT/>",
        "LOAD <file:///etc/passwd>",
        "LOAD <data:text/turtle,%3Ca:a%3E%3Ca:a%3E1>",
        "LOAD SILENT <Http://127.0.0.1:PORT/>",
    ],
)
def test_load_is_refused(node: Node, listener: Listener, text: str) -> None:
    before = listener.connections
    with pytest.raises(HostNotAllowed, match="LOAD"):
        node.update(spelled(text, listener), f"http://127.0.0.1:{listener.port}/")
    assert listener.connections == before
    node.query("ASK { FILTER NOT EXISTS { <urn:x> ?p ?o } }")


@pytest.mark.parametrize("text", ["\\u004COAD <URL>", "LOAD 'URL'", "LOAD ?url", "LOAD <URL> INTO <urn:g>"])
def test_what_is_no_load_does_not_parse(node: Node, listener: Listener, text: str) -> None:
    before = listener.connections
    with pytest.raises(QuerySyntaxError):
        node.update(spelled(text, listener))
    assert listener.connections == before


def test_silent_is_silent_about_what_names_no_host(node: Node, listener: Listener) -> None:
    before = listener.connections
    node.update(f"LOAD SILENT <file:///etc/passwd> ; LOAD SILENT <data:127.0.0.1:{listener.port}>")
    assert listener.connections == before
    node.query("ASK { <urn:s> <urn:p> <urn:o> }")
