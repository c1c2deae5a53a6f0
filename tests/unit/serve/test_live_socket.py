"""`/ws` over a real socket: live queries, what they are told, and what bad messages are answered with."""

import asyncio
import json
import socket
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from graphdb.config import Settings
from graphdb.errors import LimitExceeded
from graphdb.live.matcher import LiveQuery
from serve.backend import LiveSink
from serve.graph_app import build_app
from tests.support.http_server import serving
from tests.support.live_socket import LiveClient, live_client
from tests.support.memory_backend import MemoryBackend
from tests.support.timing import HANG_S, wait_until
from tests.unit.serve.conftest import update

X = "PREFIX x: <http://x/> "
ANN = {"id": "http://x/ann", "type": "http://x/Person"}


@pytest.fixture
def socket_(client: httpx.Client, base_url: str) -> Iterator[LiveClient]:
    with live_client(base_url) as live:
        yield live


def events(notifications: list[dict[str, Any]]) -> list[tuple[str, Any]]:
    return [(one["action"], one["result"]) for one in notifications]


def test_create_update_and_delete(client: httpx.Client, socket_: LiveClient, backend: MemoryBackend) -> None:
    subscription = socket_.live("LIVE SELECT * FROM Person")
    start = backend.snapshot_index()
    update(client, X + "INSERT DATA { x:ann a x:Person ; x:name 'Ann' . x:dog a x:Dog }")
    update(client, X + "DELETE { ?p x:name ?n } INSERT { ?p x:name 'Anna' } WHERE { ?p x:name ?n }")
    update(client, X + "DELETE WHERE { x:ann ?p ?o }")
    told = socket_.told(3)
    assert events(told) == [
        ("CREATE", ANN | {"name": "Ann"}),
        ("UPDATE", ANN | {"name": "Anna"}),
        ("DELETE", {"id": "http://x/ann"}),
    ]
    assert {one["id"] for one in told} == {subscription}
    assert [one["index"] for one in told] == [start + 1, start + 2, start + 3]


def test_a_row_that_stops_matching_is_told(client: httpx.Client, socket_: LiveClient) -> None:
    socket_.live("LIVE SELECT age FROM Person WHERE age >= 18 AND NOT name = 'Bob'")
    update(
        client, X + "INSERT DATA { x:ann a x:Person ; x:age 17 . x:bob a x:Person ; x:age 20 ; x:name 'Bob' }"
    )
    update(client, X + "DELETE DATA { x:ann x:age 17 }; INSERT DATA { x:ann x:age 18 }")
    update(client, X + "INSERT DATA { x:ann x:other 1 }")
    update(client, X + "DELETE DATA { x:ann x:age 18 }")
    assert events(socket_.told(2)) == [
        ("CREATE", {"id": "http://x/ann", "age": 18}),
        ("DELETE", {"id": "http://x/ann"}),
    ]
    assert socket_.nothing_is_told()


def test_many_subscriptions_on_a_socket_and_kill(client: httpx.Client, socket_: LiveClient) -> None:
    same = [socket_.live("LIVE SELECT * FROM Person") for _ in range(3)]
    named = socket_.live("LIVE SELECT name FROM x:Person".replace("x:Person", "<http://x/Person>"))
    socket_.live("LIVE SELECT * FROM Dog")
    update(client, X + "INSERT DATA { x:ann a x:Person }")
    told = socket_.told(4)
    assert sorted(one["id"] for one in told) == sorted([*same, named])
    assert {one["id"]: one["result"] for one in told}[named] == {"id": "http://x/ann"}
    assert socket_.ask("kill", same[0])["result"] is None
    assert socket_.ask("kill", same[0])["error"]["code"] == "not_found"
    update(client, X + "DELETE DATA { x:ann a x:Person }")
    assert sorted(one["id"] for one in socket_.told(3)) == sorted([*same[1:], named])


def test_since_tells_what_was_missed_once_and_goes_on(
    client: httpx.Client, base_url: str, socket_: LiveClient, backend: MemoryBackend
) -> None:
    socket_.live("LIVE SELECT * FROM Person")
    start = backend.snapshot_index()
    for number in range(5):
        update(
            client, X + f"DELETE WHERE {{ x:ann x:n ?n }}; INSERT DATA {{ x:ann a x:Person ; x:n {number} }}"
        )
    update(client, X + "DELETE WHERE { x:ann ?p ?o }")
    seen = socket_.told(6)
    for since in range(start, start + 7):
        with live_client(base_url) as late:
            late.live("LIVE SELECT * FROM Person", since)
            expected = [(one["index"], one["action"]) for one in seen if one["index"] > since]
            assert [(one["index"], one["action"]) for one in late.told(len(expected))] == expected
            assert late.nothing_is_told()
    with live_client(base_url, f"?since={start + 4}") as whole:
        ids = [whole.live("LIVE SELECT * FROM Person"), whole.live("LIVE SELECT n FROM Person")]
        assert [(one["id"] in ids, one["index"]) for one in whole.told(4)] == [
            (True, start + 5),
            (True, start + 6),
        ] * 2
        update(client, X + "INSERT DATA { x:eva a x:Person }")
        assert len({one["id"] for one in whole.told(2)}) == 2


def test_solutions_of_sparql(client: httpx.Client, socket_: LiveClient, backend: MemoryBackend) -> None:
    start = backend.snapshot_index()
    asked = X + "LIVE SELECT ?name ?id WHERE { ?a x:name ?name ; x:knows ?id FILTER(?name != 'Bob') }"
    socket_.live(asked)
    update(client, X + "INSERT DATA { x:ann x:name 'Ann' . x:bob x:name 'Bob' ; x:knows x:ann }")
    update(client, X + "INSERT DATA { x:ann x:knows x:bob }")
    update(client, X + "DELETE DATA { x:ann x:name 'Ann' }; INSERT DATA { x:ann x:name 'Anna' }")
    created, *renamed = socket_.told(3)
    digest = created["result"]["id"]
    assert (created["action"], created["index"]) == ("CREATE", start + 2)
    assert created["result"] == {"id": digest, "name": "Ann", "?id": "http://x/bob"}
    assert {one["action"]: one["result"] for one in renamed} == {
        "DELETE": {"id": digest},
        "CREATE": {"id": renamed[-1]["result"]["id"], "name": "Anna", "?id": "http://x/bob"},
    }
    answer = socket_.ask("query", "LIVE SELECT * WHERE { ?s ?p ?o FILTER(?o < NOW()) }")
    assert (answer["error"]["code"], "clock" in answer["error"]["message"]) == ("invalid", True)
    assert socket_.ask("query", "LIVE SELECT * WHERE { ?s ?p")["error"]["code"] == "syntax"


def test_a_query_is_evaluated_anew_where_it_cannot_be_followed(
    client: httpx.Client, base_url: str, socket_: LiveClient, backend: MemoryBackend
) -> None:
    start = backend.snapshot_index()
    asked = X + "LIVE SELECT (COUNT(*) AS ?n) WHERE { ?s x:counted ?o }"
    subscription = socket_.live(asked)
    for number in range(2):
        update(client, X + f"INSERT DATA {{ x:ann x:counted {number} }}")
    told = socket_.told(4)
    assert [(one["action"], one["result"].get("n"), one["index"] - start) for one in told] == [
        ("DELETE", None, 1),
        ("CREATE", 1, 1),
        ("DELETE", None, 2),
        ("CREATE", 2, 2),
    ]
    assert told[1]["result"]["id"] == told[2]["result"]["id"]
    with live_client(base_url, f"?since={start + 1}") as resumed:
        resumed.live(asked)
        assert events(resumed.told(2)) == events(told[2:])
    backend.evaluation.failure = LimitExceeded("seconds", 2, 1)
    try:
        assert socket_.ask("query", X + "LIVE SELECT ?s { ?s x:q+ ?o }")["error"]["code"] == "limit"
        update(client, X + "INSERT DATA { x:ann x:counted 7 }")
        ended = socket_.told(1)[0]
        assert (ended["id"], ended["error"]["code"]) == (subscription, "limit")
    finally:
        backend.evaluation.failure = None
    wait_until(lambda: backend.evaluation.held == 0)
    assert backend.live_report().subscriptions == 0


def test_a_query_that_a_change_makes_too_costly_is_evaluated_anew(
    client: httpx.Client, socket_: LiveClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graphdb.live.matcher._LOOKS_MAX", 50)
    monkeypatch.setattr("graphdb.live.matcher._LOOKS_A_TRIPLE", 0)
    costly = socket_.live(X + "LIVE SELECT * WHERE { ?a x:in ?b . ?c x:in ?b }")
    person = socket_.live("LIVE SELECT id FROM Person")
    many = " ".join(f"x:s{number} x:in x:all ." for number in range(20))
    update(client, X + f"INSERT DATA {{ {many} }}")
    rows = {one["result"]["id"] for one in socket_.told(400)}
    assert len(rows) == 400
    update(client, X + "INSERT DATA { x:ann a x:Person ; x:in x:all }")
    told = socket_.told(42)
    assert [one["result"]["id"] for one in told if one["id"] == person] == ["http://x/ann"]
    assert len({one["result"]["id"] for one in told if one["id"] == costly} - rows) == 41
    update(client, X + "DELETE WHERE { ?s x:in x:all }")
    assert {one["action"] for one in socket_.told(441)} == {"DELETE"}
    assert socket_.ask("kill", costly)["result"] is None


def test_too_old_is_said(client: httpx.Client, base_url: str, backend: MemoryBackend) -> None:
    update(client, X + "INSERT DATA { x:ann a x:Person }")
    first, backend.logged.first_index = backend.logged.first_index, backend.snapshot_index()
    try:
        with live_client(base_url) as live:
            answer = live.ask("query", "LIVE SELECT * FROM Person", {"since": 0})
            assert answer["error"]["code"] == "resnapshot"
            assert "result" not in answer
    finally:
        backend.logged.first_index = first


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("no json", "invalid"),
        ("[" * 100_000, "invalid"),
        ("[]", "invalid"),
        ('{"id": {}, "method": "ping"}', "invalid"),
        ('{"id": 7}', "invalid"),
        ('{"id": 7, "method": ["query"]}', "invalid"),
        ('{"id": 7, "method": "query"}', "invalid"),
        ('{"id": 7, "method": "query", "params": "LIVE SELECT * FROM P"}', "invalid"),
        ('{"id": 7, "method": "query", "params": [7]}', "invalid"),
        ('{"id": 7, "method": "query", "params": ["SELECT * FROM P"]}', "syntax"),
        ('{"id": 7, "method": "query", "params": ["LIVE SELECT * FROM P WHERE ("]}', "syntax"),
        ('{"id": 7, "method": "query", "params": ["LIVE SELECT * FROM P", 3]}', "invalid"),
        ('{"id": 7, "method": "query", "params": ["LIVE SELECT * FROM P", {"since": -1}]}', "invalid"),
        ('{"id": 7, "method": "query", "params": ["LIVE SELECT * FROM P", {"since": true}]}', "invalid"),
        ('{"id": 7, "method": "query", "params": ["LIVE SELECT * FROM P", {"sinse": 1}]}', "invalid"),
        (
            '{"id": 7, "method": "query", "params": ["LIVE SELECT * FROM P", {"since": 9999999}]}',
            "unavailable",
        ),
        ('{"id": 7, "method": "kill", "params": ["00000000-0000-0000-0000-000000000000"]}', "not_found"),
        ('{"id": 7, "method": "kill", "params": [null]}', "invalid"),
    ],
)
def test_a_bad_message_is_answered_and_the_socket_lives(
    client: httpx.Client, socket_: LiveClient, message: str, code: str
) -> None:
    for sent in (message, message.encode()):
        socket_.connection.send(sent)
        answer = socket_.receive()
        assert answer["id"] == (7 if '"id": 7' in message else None)
        assert answer["error"]["code"] == code
        assert answer["error"]["message"]
    socket_.connection.send(b"\xff\xfe")
    assert socket_.receive()["error"]["code"] == "invalid"
    socket_.live("LIVE SELECT * FROM Person")
    update(client, X + "INSERT DATA { x:ann a x:Person }")
    assert len(socket_.told(1)) == 1


def test_what_else_a_client_may_send(socket_: LiveClient) -> None:
    assert socket_.ask("ping")["result"] == "pong"
    assert socket_.ask("signin", {"user": "u", "password": "p"})["result"] is None
    assert socket_.connection.ping().wait(10)


def test_browsers_of_other_origins_are_not_let_in(base_url: str) -> None:
    with pytest.raises(InvalidStatus) as caught, live_client(base_url, origin="http://evil.example"):
        pass
    assert caught.value.response.status_code == 403
    for origin in ("http://app.example", base_url):
        with live_client(base_url, origin=origin) as live:
            assert live.ask("ping")["result"] == "pong"


@pytest.mark.parametrize(("path", "status"), [("?since=x", 400), ("?since=1&since=2", 400), ("/none", 404)])
def test_refused_handshakes(base_url: str, path: str, status: int) -> None:
    with pytest.raises(InvalidStatus) as caught, live_client(base_url, path):
        pass
    assert caught.value.response.status_code == status
    assert json.loads(caught.value.response.body)["status"] == status


def test_an_ordinary_request_is_told_what_it_is(client: httpx.Client) -> None:
    assert client.get("/ws").status_code == 426


def test_health_tells_who_listens(client: httpx.Client, socket_: LiveClient, backend: MemoryBackend) -> None:
    socket_.live("LIVE SELECT * FROM Person")
    socket_.live("LIVE SELECT * FROM Dog")
    store = client.get("/health").json()["embedded_store"]
    assert (store["ready"], store["projection_bootstrapped"], store["active_listener_count"]) == (
        True,
        True,
        2,
    )
    assert metric(client, "subscriptions") == metric(client, "queries") == 2
    assert metric(client, "sockets") == 1
    before = metric(client, "notifications_total")
    update(client, X + "INSERT DATA { x:ann a x:Person, x:Dog }")
    socket_.told(2)
    assert metric(client, "notifications_total") == before + 2
    assert metric(client, "lag_entries") == 0
    socket_.connection.close()
    wait_until(lambda: not client.get("/health").json()["embedded_store"]["active_listener_count"])
    wait_until(lambda: metric(client, "sockets") == 0)
    assert metric(client, "subscriptions") == 0


def metric(client: httpx.Client, name: str) -> float:
    lines = client.get("/metrics").text.splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(f"service_service_live_{name} "))


def test_a_reader_that_takes_nothing_is_cut_off_and_slows_nobody() -> None:
    backend = MemoryBackend()
    settings = Settings.model_validate({"live": {"max_queue_bytes": 65_536}})
    with (
        serving(build_app(backend, settings)) as url,
        httpx.Client(base_url=url, trust_env=False) as writer,
        live_client(url) as good,
        socket.create_connection(tuple(url.removeprefix("http://").split(":")), timeout=HANG_S) as stuck,  # type: ignore[arg-type]
    ):
        good.live("LIVE SELECT name FROM Person")
        stuck.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        stuck.sendall(
            b"GET /ws HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
        )
        assert b"101" in stuck.recv(4096)
        message = b'{"id":1,"method":"query","params":["LIVE SELECT * FROM Person"]}'
        mask = b"\x00\x00\x00\x00"
        stuck.sendall(bytes((0x81, 0x80 | len(message))) + mask + message)
        assert b"result" in stuck.recv(4096)
        value = "v" * 200_000
        for number in range(100):
            update(
                writer, X + f"INSERT DATA {{ x:p{number} a x:Person ; x:name '{number}' ; x:long '{value}' }}"
            )
            if backend.hub.status("", 0).active_listener_count == 1:
                break
        else:
            pytest.fail("the stuck reader is still there")
        assert [one["result"]["name"] for one in good.told(number + 1)] == [
            str(earlier) for earlier in range(number + 1)
        ]
        with pytest.raises((ConnectionError, EOFError)):
            read_to_the_end(stuck)
        assert metric(writer, "slow_readers_total") == 1


def read_to_the_end(connection: socket.socket) -> None:
    while connection.recv(65_536):
        pass
    raise EOFError


class Hesitant(MemoryBackend):
    """Opens no live query."""

    async def subscribe(self, query: LiveQuery, since: int | None, sink: LiveSink) -> str:
        await asyncio.Event().wait()
        raise AssertionError


def test_the_limit_of_a_socket_counts_what_it_says() -> None:
    """Those that are being opened count, so the message counts them too."""
    settings = Settings.model_validate({"live": {"max_socket_subscriptions": 20}})
    with serving(build_app(Hesitant(), settings)) as url, live_client(url) as live:
        for number in range(20):
            live.connection.send(
                json.dumps({"id": f"q{number}", "method": "query", "params": ["LIVE SELECT * FROM A"]})
            )
        error = live.ask("query", "LIVE SELECT * FROM A")["error"]
    name = "live queries on one socket (live.max_socket_subscriptions)"
    assert error == {"code": "limit", "message": f"{name} is 21, at most 20 is allowed"}


def test_limits() -> None:
    settings = Settings.model_validate({"live": {"max_socket_subscriptions": 2}})
    with serving(build_app(MemoryBackend(), settings)) as url, live_client(url) as live:
        live.live("LIVE SELECT * FROM A")
        killed = live.live("LIVE SELECT * FROM B")
        assert live.ask("query", "LIVE SELECT * FROM C")["error"]["code"] == "limit"
        live.ask("kill", killed)
        live.live("LIVE SELECT * FROM C")
        with pytest.raises(ConnectionClosed):  # 1009: larger than any message may be
            live.ask("query", "x" * 2_000_000)
