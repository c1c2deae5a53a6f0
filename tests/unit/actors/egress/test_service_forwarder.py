"""SERVICE as the engine performs it through a real `ServiceForwarder`: round trips, failures, bounds."""

import asyncio
import http.client
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from urllib.parse import urlsplit

import pytest
from pyoxigraph import Literal, NamedNode, Quad, Store

from actors.egress import service_forwarder
from actors.egress.guarded_fetch import Bounds, Call, GuardedFetch
from actors.egress.rules import HostRules
from actors.egress.service_forwarder import ServiceCalls, ServiceForwarder, service_fetch
from graphdb.config.service import Security
from graphdb.errors import EvaluationFailed, GraphDBError, HostNotAllowed, QueryTimeout
from graphdb.planning.engine_text import engine_text_and_services
from graphdb.sparql.parser import parse_query
from graphdb.store.engine_errors import request_failure
from tests.support.remote_host import answering, remote_host

JSON = "application/sparql-results+json"
XML = "application/sparql-results+xml"
ONE_ROW = b'{"head":{"vars":["x"]},"results":{"bindings":[{"x":{"type":"literal","value":"a"}}]}}'
ONE_ROW_XML = (
    b"<sparql xmlns='http://www.w3.org/2005/sparql-results#'><head><variable name='x'/></head>"
    b"<results><result><binding name='x'><literal>a</literal></binding></result></results></sparql>"
)
BOUNDS = Bounds(0.5, "security.service_timeout_seconds", 100_000, "security.service_max_bytes")


def small_store() -> Store:
    store = Store()
    store.extend(Quad(NamedNode(f"x:{n}"), NamedNode("x:p"), Literal(n)) for n in range(20))
    return store


def evaluate(
    text: str,
    *,
    rules: tuple[str, ...] = ("127.0.0.1",),
    timeout_s: float = 10,
    meanwhile: Callable[[ServiceCalls], None] = lambda calls: None,
) -> list[str]:
    """The values of ?x, as a reader evaluates the query."""

    def rows(text: str) -> list[str] | GraphDBError:
        """An error is not raised, for the engine's solutions must not leave their thread within it."""
        try:
            return [str(row["x"]) for row in small_store().query(text)]  # type: ignore[union-attr]
        except (OSError, RuntimeError) as error:
            failure = request_failure(error)
            assert failure is not None
            return failure

    async def run() -> list[str]:
        forwarder = ServiceForwarder(GuardedFetch(HostRules("SERVICE", rules), BOUNDS), timeout_s)
        await forwarder.start()
        try:
            made, services = engine_text_and_services(parse_query(text), "0123")
            with forwarder.open(services) as calls:
                local = calls.text_for_engine(made.text)
                evaluating = asyncio.create_task(asyncio.to_thread(rows, local))
                await asyncio.sleep(0)
                meanwhile(calls)
                found = await evaluating
                if isinstance(found, GraphDBError):
                    raise calls.explained(found)
                if calls.failure is not None:
                    raise calls.failure
                return found
        finally:
            await forwarder.close()

    return asyncio.run(run())


@pytest.mark.parametrize(("body", "content_type"), [(ONE_ROW, JSON), (ONE_ROW_XML, XML)])
def test_a_round_trip(body: bytes, content_type: str) -> None:
    with remote_host(answering(body, content_type)) as host:
        url = host.url + "sparql?key=1"
        text = (
            f"PREFIX e: <x:> SELECT ?x {{ SERVICE <{url}> {{ ?s e:p ?x SERVICE <x:inner> {{ ?s ?p ?x }} }} }}"
        )
        assert evaluate(text) == ['"a"']
    [request] = host.requests
    head, _, sent = request.decode().partition("\r\n\r\n")
    lines = head.split("\r\n")
    assert lines[0] == "POST /sparql?key=1 HTTP/1.1"
    assert f"Host: 127.0.0.1:{host.port}" in lines
    assert "content-type: application/sparql-query" in lines
    assert f"accept: {JSON}, {XML}" in lines
    assert len(lines) == 8, "nothing else is passed on"
    assert sent == "SELECT * WHERE { ?s <x:p> ?x . SERVICE <x:inner> { ?s ?p ?x . } }"


def test_each_endpoint_has_its_own_answer() -> None:
    other = ONE_ROW.replace(b'"a"', b'"b"')
    with remote_host(answering(ONE_ROW, JSON)) as one, remote_host(answering(other, JSON)) as two:
        union = f"{{ SERVICE <{one.url}> {{ ?s ?p ?x }} }} UNION {{ SERVICE <{two.url}> {{ ?s ?p ?x }} }}"
        assert sorted(evaluate(f"SELECT ?x {{ {union} }}")) == ['"a"', '"b"']


def test_the_same_call_is_made_once_a_query() -> None:
    with remote_host(answering(ONE_ROW.replace(b'"x"', b'"y"'), JSON)) as host:
        text = f"SELECT ?x {{ ?x <x:p> ?o FILTER EXISTS {{ SERVICE <{host.url}> {{ ?s ?p ?y }} }} }}"
        assert len(evaluate(text)) == 20
        assert len(host.requests) == 1
        evaluate(text)
        assert len(host.requests) == 2


def test_what_is_not_kept_is_bounded_in_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_forwarder, "CALLS_MAX", 6)
    padded = ONE_ROW.replace(b'"x"', b'"y"') + b" " * (BOUNDS.bytes_max - len(ONE_ROW))
    with remote_host(answering(padded, JSON)) as host:
        calls = " ".join(
            f"FILTER EXISTS {{ SERVICE <{host.url}> {{ ?s <x:{number}> ?y }} }}" for number in range(3)
        )
        with pytest.raises(EvaluationFailed, match=f"SERVICE <{host.url}>: the query has made 6 calls"):
            evaluate(f"SELECT ?x {{ ?x <x:p> ?o {calls} }}")
        assert len(host.requests) == 6


def stall(connection: socket.socket) -> None:
    connection.recv(1)


def redirecting(target: str) -> Callable[[socket.socket], None]:
    return answering(status=307, headers=(f"Location: {target}",))


TERM = b'{"type":"uri","value":"a:a"}'
TRIPLE = b'{"type":"triple","value":{"subject":' + TERM + b',"predicate":' + TERM + b',"object":'
DEEP_JSON = ONE_ROW.replace(b'{"type":"literal","value":"a"}', TRIPLE * 50_000 + TERM + b"}}" * 50_000)
DEEP_XML = ONE_ROW_XML.replace(b"<literal>", b"<triple>" * 5000 + b"<literal>")
FAILURES = {
    "an error": (answering(b"secret", status=500), "the host answers 500"),
    "not there": (answering(status=404), "the host answers 404"),
    "empty": (answering(status=204), "the host answers 204"),
    "a page": (answering(b"<html>", "text/html"), "the host answers with text/html, not with results"),
    "no type": (lambda c: c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), "with no media type"),
    "CSV": (answering(b"x\r\na\r\n", "text/csv"), "with text/csv"),
    "a truth value": (answering(b'{"head":{},"boolean":true}', JSON), "a truth value"),
    "half": (answering(ONE_ROW[:-9], JSON), "the host's answer: "),
    "half XML": (answering(ONE_ROW_XML[:-9], XML), "the host's answer: "),
    "a DOCTYPE": (answering(b"<!DOCTYPE a>" + ONE_ROW_XML, XML), "DOCTYPE"),
    "cut short": (lambda c: c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"), "closed connection"),
    "too large": (
        answering(b" " * 100_001, JSON),
        r"larger than 100000 bytes \(security.service_max_bytes\)",
    ),
    "silent": (stall, r"within 0.5 s \(security.service_timeout_seconds\)"),
    "deep XML": (answering(DEEP_XML, XML), "nested more than"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_failure_names_the_endpoint_and_silent_covers_it(name: str) -> None:
    answer, message = FAILURES[name]
    with remote_host(answer) as host:
        with pytest.raises(EvaluationFailed, match=message) as failed:
            evaluate(f"SELECT ?x {{ SERVICE <{host.url}> {{ ?s ?p ?x }} }}")
        assert str(failed.value).startswith(f"SERVICE <{host.url}>: ")
        assert "secret" not in str(failed.value)
        in_exists = f"SELECT ?x {{ ?x ?p ?o FILTER EXISTS {{ SERVICE <{host.url}> {{ ?s ?p ?x }} }} }}"
        with pytest.raises(EvaluationFailed, match=message):
            evaluate(in_exists)
        silent = f"SELECT ?x {{ BIND(1 AS ?one) SERVICE SILENT <{host.url}> {{ ?s ?p ?x }} }}"
        assert evaluate(silent) == ["None"]


def test_terms_nested_too_deep_for_the_engine_do_not_reach_it() -> None:
    with remote_host(answering(DEEP_JSON, JSON)) as host:
        fetcher = GuardedFetch(HostRules("SERVICE", ["127.0.0.1"]), Bounds(5, "", 1 << 24, ""))

        async def run() -> None:
            forwarder = ServiceForwarder(fetcher, 10)
            with forwarder.open({"x:placeholder": host.url}) as calls:
                await calls.call(Call(host.url, "POST"))

        with pytest.raises(EvaluationFailed, match="nested more than 200 levels"):
            asyncio.run(run())


REFUSED = ["http://127.0.0.2:PORT/", "http://elsewhere.example/", "file:///etc/passwd"]


@pytest.mark.parametrize("target", REFUSED)
def test_a_redirect_to_a_host_that_is_not_allowed(target: str) -> None:
    with remote_host(answering(ONE_ROW, JSON), "127.0.0.2") as other:
        moved = redirecting(target.replace("PORT", str(other.port)))
        with remote_host(moved) as host:
            for silent in ("", "SILENT"):
                with pytest.raises(HostNotAllowed, match="redirects there"):
                    evaluate(f"SELECT ?x {{ SERVICE {silent} <{host.url}> {{ ?s ?p ?x }} }}")
        assert not other.requests


def test_a_redirect_is_followed_with_the_query() -> None:
    with remote_host(answering(ONE_ROW, JSON)) as there, remote_host(redirecting(there.url)) as host:
        assert evaluate(f"SELECT ?x {{ SERVICE <{host.url}> {{ ?s ?p ?x }} }}") == ['"a"']
    assert there.requests[0].endswith(b"SELECT * WHERE { ?s ?p ?x . }")


def test_the_calls_of_a_query_share_its_time() -> None:
    def slow(connection: socket.socket) -> None:
        time.sleep(0.3)
        answering(ONE_ROW, JSON)(connection)

    with remote_host(slow) as host:
        calls = " ".join(f"SERVICE <{host.url}> {{ ?s <x:{number}> ?x }}" for number in range(10))
        with pytest.raises(EvaluationFailed, match=r"too long \(server.query_timeout_seconds\)"):
            evaluate(f"SELECT ?x {{ {calls} }}", timeout_s=0.5)
        assert len(host.requests) <= 2


def test_closing_ends_the_calls_under_way() -> None:
    with remote_host(stall) as host:

        def close_soon(calls: ServiceCalls) -> None:
            asyncio.get_running_loop().call_later(0.2, calls.close)

        with pytest.raises(EvaluationFailed, match="the query has ended"):  # and not: no answer in time
            evaluate(f"SELECT ?x {{ SERVICE <{host.url}> {{ ?s ?p ?x }} }}", meanwhile=close_soon)


def test_an_address_holds_for_one_query_and_others_lead_nowhere() -> None:
    async def status(url: str) -> int:
        parts = urlsplit(url)

        def get() -> int:
            connection = http.client.HTTPConnection(parts.hostname or "", parts.port)
            try:
                connection.request("POST", parts.path, b"ASK {}")
                return connection.getresponse().status
            finally:
                connection.close()

        return await asyncio.to_thread(get)

    async def run(endpoint: str) -> list[int]:
        services = {"x:y": endpoint}
        forwarder = ServiceForwarder(GuardedFetch(HostRules("SERVICE", ["127.0.0.1"]), BOUNDS), 10)
        await forwarder.start()
        with forwarder.open(services) as calls, forwarder.open(services) as others:
            url = calls.text_for_engine("<x:y>").strip("<>")
            assert url != others.text_for_engine("<x:y>").strip("<>")
            seen = [await status(url), await status(url[:-1]), await status(url.rpartition("/")[0] + "/")]
        seen.append(await status(url))
        await forwarder.close()
        with suppress(ConnectionRefusedError):
            seen.append(await status(url))
        return seen

    with remote_host(answering(ONE_ROW, JSON)) as host:
        assert asyncio.run(run(host.url)) == [200, 404, 404, 404]
        assert len(host.requests) == 1


def test_without_rules_nothing_listens() -> None:
    async def run() -> None:
        forwarder = ServiceForwarder(service_fetch(Security()), 10)
        await forwarder.start()
        with forwarder.open({"x:y": "http://a.example/"}) as calls:
            assert calls.text_for_engine("<x:y>").startswith("<http://127.0.0.1:0/")
        await forwarder.close()

    asyncio.run(run())


def test_an_error_of_the_engine_shows_no_address_of_the_forwarder() -> None:
    forwarder = ServiceForwarder(service_fetch(Security()), 10)
    with forwarder.open({"x:y": "http://a.example/"}) as calls:
        local = calls.text_for_engine("<x:y>")
        error = calls.explained(EvaluationFailed(f"the engine could not finish: {local} is odd"))
        timeout = QueryTimeout("too long")
        assert calls.explained(timeout) is timeout
    assert str(error) == "the engine could not finish: <http://a.example/> is odd"
