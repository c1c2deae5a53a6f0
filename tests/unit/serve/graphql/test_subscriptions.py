"""`/graphql/ws` over a real socket: what subscriptions are told, and the sub-protocol to the letter."""

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import orjson
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tests.support.timing import HANG_S
from tests.support.transport_socket import TransportClient, transport_client
from tests.unit.serve.graphql.conftest import LIBRARY, Port

BOOKS = "subscription { bookChanged { mutationType node { title author { name } } } }"
JANE = [{"name": "Jane"}]


@pytest.fixture(scope="module")
def port(opened: Callable[..., Port]) -> Port:
    return opened({"max_depth": 6, "max_complexity": 60}, server={"cors": ["http://app.example"]})


@pytest.fixture(autouse=True)
def _library(port: Port) -> None:
    port.update(f"DROP ALL ; INSERT DATA {{ {LIBRARY} }}")


@pytest.fixture
def client(port: Port) -> Iterator[TransportClient]:
    with transport_client(url_of(port)) as found:
        found.initialise()
        yield found


def url_of(port: Port) -> str:
    return str(port.http.base_url).rstrip("/")


def listeners(port: Port) -> int:
    return port.backend.embedded_store().active_listener_count


def wait_for_listeners(port: Port, count: int) -> None:
    deadline = time.monotonic() + HANG_S
    while listeners(port) != count:
        assert time.monotonic() < deadline, listeners(port)
        time.sleep(0.01)


def follow(port: Port, client: TransportClient, operation_id: str, query: str, **members: Any) -> None:
    """Subscribe, and wait until it is open."""
    before = listeners(port)
    client.subscribe(operation_id, query, **members)
    wait_for_listeners(port, before + 1)


def changed(how: str, title: str | None, author: Any) -> dict[str, Any]:
    return {"bookChanged": {"mutationType": how, "node": {"title": title, "author": author}}}


def test_a_book_is_made_changed_and_taken_away(port: Port, client: TransportClient) -> None:
    follow(port, client, "b", BOOKS)
    before = port.backend.snapshot_index()
    port.update('INSERT DATA { :new a :Book ; :title "Persuasion" ; :author :jane }')
    port.update('DELETE { ?b :title ?t } INSERT { ?b :title "Anne" } WHERE { BIND(:new AS ?b) ?b :title ?t }')
    message = client.receive()
    assert message["payload"]["extensions"] == {"index": before + 1}
    assert message["payload"]["data"] == changed("CREATED", "Persuasion", JANE)
    assert client.events(1, "b") == [changed("UPDATED", "Anne", JANE)]
    port.http.post(
        "/data?default",
        content='<http://e/x> <http://e/title> "no book" .',
        headers={"Content-Type": "text/turtle"},
    )
    port.update("DELETE WHERE { :new ?p ?o }")
    assert client.events(1, "b") == [changed("DELETED", "Anne", JANE)]
    assert client.nothing_is_told()


def test_what_is_shown_from_further_away_is_told(port: Port, client: TransportClient) -> None:
    follow(port, client, "b", BOOKS)
    port.update('DELETE DATA { :jane :name "Jane" } ; INSERT DATA { :jane :name "J. Austen" ; :age 41 }')
    port.update("INSERT DATA { :jane :age 42 }")  # is not shown
    assert client.events(1) == [changed("UPDATED", "Emma", [{"name": "J. Austen"}])]
    port.update("DELETE DATA { :emma :author :jane }")
    assert client.events(1) == [changed("UPDATED", "Emma", [])]
    assert client.nothing_is_told()


def test_a_filter_tells_who_begins_and_ceases_to_meet_it(port: Port, client: TransportClient) -> None:
    query = """subscription ($name: String, $short: Boolean!) {
      bookChanged(filter: {author: {name: {startsWith: $name}}, not: {title: {eq: "Emma"}}}) {
        how: mutationType __typename node { ...book } again: node { id } }
    } fragment book on Book { title @skip(if: $short) called: title ... on Node { id } }"""
    follow(port, client, "f", query, variables={"name": "J", "short": True}, operationName=None)
    port.update("INSERT DATA { :sula :author :jane }")
    port.update("DELETE DATA { :jane :name 'Jane' } ; INSERT DATA { :jane :name 'Emily' }")
    shown = {
        "__typename": "BookChanged",
        "node": {"called": "Sula", "id": "http://e/sula"},
        "again": {"id": "http://e/sula"},
    }
    assert client.events(2, "f") == [
        {"bookChanged": {"how": "CREATED", **shown}},
        {"bookChanged": {"how": "DELETED", **shown}},
    ]
    assert client.nothing_is_told()


def test_all_of_one_write_comes_together_and_writes_in_their_order(
    port: Port, client: TransportClient
) -> None:
    follow(port, client, "p", "subscription { personChanged { node { name } } }")
    start = port.backend.snapshot_index()
    for number in range(20):
        both = [f':{letter}{number} a :Person ; :name "{letter}{number}" .' for letter in "ab"]
        port.update(f"INSERT DATA {{ {' '.join(both)} }}")
    messages = [client.receive()["payload"] for _ in range(40)]
    assert [one["data"]["personChanged"]["node"]["name"] for one in messages] == [
        f"{letter}{number}" for number in range(20) for letter in "ab"
    ]
    assert [one["extensions"]["index"] for one in messages] == [
        start + 1 + number // 2 for number in range(40)
    ]


def test_a_subscription_resumes_where_its_client_was(port: Port) -> None:
    people = "subscription { personChanged { node { name } } }"
    with transport_client(url_of(port)) as client:
        since = client.initialise()["payload"]["index"]
    for name in ("Ann", "Bob"):
        port.update(f'INSERT DATA {{ :{name} a :Person ; :name "{name}" }}')
    ann, bob = ({"personChanged": {"node": {"name": name}}} for name in ("Ann", "Bob"))
    for url, payload, members, expected in (
        (f"?since={since}", {}, {}, [ann, bob]),
        ("", {"since": since + 1}, {}, [bob]),
        ("?since=0", {"since": 0}, {"extensions": {"since": since}}, [ann, bob]),
    ):
        with transport_client(url_of(port), url) as client:
            client.initialise(**payload)
            client.subscribe("s", people, **members)
            assert client.events(len(expected), "s") == expected
            port.update("INSERT DATA { :x :y :z }")
            assert client.nothing_is_told()


def test_what_is_forgotten_is_said(port: Port, client: TransportClient) -> None:
    first, port.backend.logged.first_index = port.backend.logged.first_index, port.backend.snapshot_index()
    try:
        client.subscribe("s", BOOKS, extensions={"since": 0})
        message = client.receive()
    finally:
        port.backend.logged.first_index = first
    assert (message["id"], message["type"]) == ("s", "error")
    assert message["payload"][0]["extensions"] == {
        "code": "SPARQL_ERROR",
        "details": {"reason": "resnapshot"},
    }


def test_many_on_a_socket_and_complete_from_the_client(port: Port, client: TransportClient) -> None:
    for name in ("a", "b", "c"):
        follow(port, client, name, "subscription { personChanged { mutationType } }")
    client.send("complete", id="b")
    wait_for_listeners(port, 2)
    client.send("complete", id="unknown")
    port.update("INSERT DATA { :ann a :Person }")
    assert sorted(client.receive()["id"] for _ in range(2)) == ["a", "c"]
    follow(port, client, "b", "subscription { personChanged { mutationType } }")  # the id is free again
    port.update("DELETE DATA { :ann a :Person }")
    assert sorted(client.receive()["id"] for _ in range(3)) == ["a", "b", "c"]
    client.connection.close()
    wait_for_listeners(port, 0)


def test_queries_over_the_same_socket(port: Port, client: TransportClient) -> None:
    client.subscribe(
        "q", "query ($t: String) { books(filter: {title: {eq: $t}}) { totalCount } }", variables={"t": "Emma"}
    )
    answer, end = client.receive(), client.receive()
    assert answer == {
        "id": "q",
        "type": "next",
        "payload": {
            "data": {"books": {"totalCount": 1}},
            "extensions": {"index": port.backend.snapshot_index()},
        },
    }
    assert end == {"id": "q", "type": "complete"}
    client.subscribe("q", "{ __schema { subscriptionType { fields { name } } } }")
    fields = client.events(1, "q")[0]["__schema"]["subscriptionType"]["fields"]
    assert [one["name"] for one in fields] == ["bookChanged", "personChanged"]


@pytest.mark.parametrize(
    ("query", "members", "code"),
    [
        ("subscription { bookChanged { node { titel } } }", {}, "VALIDATION_FAILED"),
        ("subscription { shipChanged { node { id } } }", {}, "UNKNOWN_TYPE"),
        ("subscription {", {}, "VALIDATION_FAILED"),
        (
            "subscription { bookChanged { mutationType } personChanged { mutationType } }",
            {},
            "VALIDATION_FAILED",
        ),
        ("subscription { bookChanged @skip(if: true) { mutationType } }", {}, "VALIDATION_FAILED"),
        ("subscription { __typename }", {}, "VALIDATION_FAILED"),
        ('subscription { bookChanged(graph: "no iri") { mutationType } }', {}, "VALIDATION_FAILED"),
        ("subscription { bookChanged(filter: {title: null}) { mutationType } }", {}, "VALIDATION_FAILED"),
        (
            'subscription { bookChanged(filter: {title: {regex: "("}}) { mutationType } }',
            {},
            "VALIDATION_FAILED",
        ),
        (BOOKS, {"extensions": {"since": -1}}, "VALIDATION_FAILED"),
        (BOOKS, {"extensions": {"since": True}}, "VALIDATION_FAILED"),
        (BOOKS, {"operationName": "other"}, "VALIDATION_FAILED"),
        ("subscription ($a: Int!) { bookChanged { mutationType } }", {}, "VALIDATION_FAILED"),
        ("subscription " + "{ a " * 10 + "}" * 10, {}, "DEPTH_EXCEEDED"),
        (
            "subscription { bookChanged { node { author { id } title " + "id " * 60 + "} } }",
            {},
            "COMPLEXITY_EXCEEDED",
        ),
        ("mutation { x }", {}, None),
    ],
)
def test_what_is_wrong_with_an_operation_ends_it_alone(
    client: TransportClient, query: str, members: dict[str, Any], code: str | None
) -> None:
    client.subscribe("w", query, **members)
    message = client.receive()
    assert (message["id"], message["type"]) == ("w", "error")
    assert message["payload"][0]["message"]
    if code:
        assert message["payload"][0]["extensions"]["code"] == code
    client.subscribe("w", "{ books { totalCount } }")  # the id is free, the socket goes on
    assert client.events(1, "w") == [{"books": {"totalCount": 2}}]


@pytest.mark.parametrize(
    ("messages", "code"),
    [
        (["no json"], 4400),
        (["[]"], 4400),
        (["[" * 100_000], 4400),
        ([b'{"type": "connection_init"}'], 4400),
        (["{}"], 4400),
        ([{"type": "start"}], 4400),
        ([{"type": ["ping"]}], 4400),
        ([{"type": "ping", "payload": 3}], 4400),
        ([{"type": "connection_init", "payload": "x"}], 4400),
        ([{"type": "connection_init", "payload": {"since": "x"}}], 4400),
        ([{"type": "subscribe", "id": "1", "payload": {"query": "{ node }"}}], 4401),
        (["init", "init"], 4429),
        (["init", {"type": "subscribe", "id": "1"}], 4400),
        (["init", {"type": "subscribe", "id": 1, "payload": {"query": "{ node }"}}], 4400),
        (["init", {"type": "subscribe", "id": "", "payload": {"query": "{ node }"}}], 4400),
        (["init", {"type": "subscribe", "id": "i" * 2000, "payload": {"query": "{ node }"}}], 4400),
        (["init", {"type": "subscribe", "id": "1", "payload": {"query": 7}}], 4400),
        (["init", {"type": "subscribe", "id": "1", "payload": {"query": BOOKS, "variables": []}}], 4400),
        (["init", {"type": "complete"}], 4400),
        (["init", *[{"type": "subscribe", "id": "1", "payload": {"query": BOOKS}}] * 2], 4409),
    ],
)
def test_codes_with_which_the_connection_ends(port: Port, messages: list[Any], code: int) -> None:
    with transport_client(url_of(port)) as client:
        for one in messages:
            said = {"type": "connection_init"} if one == "init" else one
            client.connection.send(orjson.dumps(said).decode() if isinstance(said, dict) else said)
        assert client.closed()[0] == code
    wait_for_listeners(port, 0)


def test_pings_both_ways_and_who_does_not_begin(port: Port, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("serve.graph.graphql.operation_socket._PING_S", 0.1)
    monkeypatch.setattr("serve.graph.graphql.operation_socket._INITIALISATION_S", 0.5)
    with transport_client(url_of(port)) as client:
        assert client.receive_any() == {"type": "ping"}
        client.send("pong")
        client.send("pong", payload={"any": 1})
        assert client.closed() == (4408, "Connection initialisation timeout")


@pytest.mark.parametrize("protocols", [None, ["graphql-ws"], ["graphql-ws", "other"]])
def test_another_sub_protocol_is_not_spoken(port: Port, protocols: list[Any] | None) -> None:
    with transport_client(url_of(port), subprotocols=protocols) as client:
        assert client.closed()[0] == 4406


def test_pages_of_other_origins_are_not_let_in(port: Port) -> None:
    with transport_client(url_of(port), origin="http://evil.example") as client:
        client.send("connection_init")
        code, reason = client.closed()
        assert (code, "evil.example" in reason) == (4403, True)
    for origin in ("http://app.example", url_of(port)):
        with transport_client(url_of(port), origin=origin) as client:
            client.initialise()


@pytest.mark.parametrize("query", ["?since=x", "?since=-1", "?timeout=x", "?min_index=-1"])
def test_refused_handshakes(port: Port, query: str) -> None:
    with pytest.raises(InvalidStatus) as caught, transport_client(url_of(port), query):
        pass
    assert caught.value.response.status_code == 400
    assert port.http.get("/graphql/ws").status_code == 426


@pytest.mark.parametrize("depth", [90, 300, 1000])
def test_filters_that_are_nested_deeply(port: Port, client: TransportClient, depth: int) -> None:
    query = "subscription ($f: BookFilter) { bookChanged(filter: $f) { node { id } } }"
    given = '{"not":' * depth + "{}" + "}" * depth
    payload = f'{{"query": "{query}", "variables": {{"f": {given}}}}}'
    client.connection.send(f'{{"id": "n", "type": "subscribe", "payload": {payload}}}')
    message = client.receive()
    assert message["payload"][0]["extensions"]["code"] in ("COMPLEXITY_EXCEEDED", "VALIDATION_FAILED")


def test_by_post_a_subscription_is_told_where_it_belongs(port: Port) -> None:
    answer = port.post(BOOKS).json()
    assert "/graphql/ws" in answer["errors"][0]["message"]


def test_switched_off(opened: Callable[..., Port]) -> None:
    off = opened({"subscriptions": False})
    off.update(f"INSERT DATA {{ {LIBRARY} }}")
    with pytest.raises(InvalidStatus) as caught, transport_client(url_of(off)):
        pass
    assert caught.value.response.status_code == 404
    assert "subscription" not in off.http.get("/graphql/schema").text


def test_limits_of_a_socket(opened: Callable[..., Port]) -> None:
    port = opened(live={"max_socket_subscriptions": 2})
    port.update(f"INSERT DATA {{ {LIBRARY} }}")
    with transport_client(url_of(port)) as client:
        client.initialise()
        follow(port, client, "1", BOOKS)
        follow(port, client, "2", BOOKS)
        client.subscribe("3", BOOKS)
        [error] = client.receive()["payload"]
        assert error["extensions"]["details"] == {"reason": "limit"}
        assert "(live.max_socket_subscriptions) is 3, at most 2" in error["message"]
        with suppress(ConnectionClosed):  # which may come before all of it is sent
            client.connection.send("x" * 2_000_000)
        assert client.closed()[0] == 1009
    wait_for_listeners(port, 0)


def test_a_change_that_touches_too_much_ends_the_subscription(
    port: Port, client: TransportClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graphdb.live.matcher._LOOKS_MAX", 200)
    monkeypatch.setattr("graphdb.live.matcher._LOOKS_A_TRIPLE", 0)
    follow(port, client, "far", BOOKS)
    follow(port, client, "near", "subscription { personChanged { node { name } } }")
    many = " ".join(f":many{number} a :Book ; :author :jane ." for number in range(40))
    port.update(f"INSERT DATA {{ {many} }}")
    message = client.receive()
    assert (message["id"], message["type"]) == ("far", "error")
    assert message["payload"][0]["extensions"]["code"] == "COMPLEXITY_EXCEEDED"
    port.update("INSERT DATA { :ann a :Person }")
    assert client.events(1, "near") == [{"personChanged": {"node": {"name": None}}}]


def test_a_node_that_cannot_go_on_closes_the_connection(opened: Callable[..., Port]) -> None:
    port = opened()
    port.update(f"INSERT DATA {{ {LIBRARY} }}")
    with transport_client(url_of(port)) as client:
        client.initialise()
        follow(port, client, "1", BOOKS)
        for stream in port.backend.logged.streams:
            stream.close()
        assert client.closed()[0] == 1013  # so that clients connect again by themselves


def test_a_reader_that_takes_nothing_is_cut_off_and_slows_nobody(opened: Callable[..., Port]) -> None:
    port = opened(live={"max_queue_bytes": 65_536})
    port.update(f"INSERT DATA {{ {LIBRARY} }}")
    host, number = url_of(port).removeprefix("http://").split(":")
    with (
        transport_client(url_of(port)) as good,
        socket.create_connection((host, int(number)), timeout=HANG_S) as stuck,
    ):
        good.initialise()
        follow(port, good, "p", "subscription { personChanged { node { id } } }")
        stuck.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        stuck.sendall(
            b"GET /graphql/ws HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
            b"Sec-WebSocket-Protocol: graphql-transport-ws\r\n\r\n"
        )
        assert b"101" in stuck.recv(4096)
        for message in (
            b'{"type":"connection_init"}',
            b'{"type":"subscribe","id":"1","payload":{"query":"subscription{personChanged{node{name}}}"}}',
        ):
            stuck.sendall(bytes((0x81, 0x80 | len(message))) + b"\x00\x00\x00\x00" + message)
        wait_for_listeners(port, 2)
        value = "v" * 200_000
        for count in range(1, 101):
            port.update(f'INSERT DATA {{ :p{count} a :Person ; :name "{count}{value}" }}')
            if listeners(port) == 1:
                break
        else:
            pytest.fail("the stuck reader is still there")
        assert good.events(count, "p")[-1] == {"personChanged": {"node": {"id": f"http://e/p{count}"}}}
