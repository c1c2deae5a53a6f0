"""`/ws` with authentication on: credentials in headers, in the query string and in a message."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from graphdb.config import Settings
from serve.access import middleware
from serve.graph_app import build_app
from tests.support.http_server import serving
from tests.support.live_socket import live_client
from tests.support.memory_backend import MemoryBackend
from tests.unit.serve.access.accounts import KEYS, basic, key, settings_of, token

STATEMENT = "LIVE SELECT * FROM <urn:T>"
READER = {"api_key": KEYS["reader"]}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    tolerant = {"whitelist": ["127.0.0.1"]}
    settings = settings_of(tmp_path_factory.mktemp("ws"), rate_limiting=tolerant)
    with serving(build_app(MemoryBackend(), settings)) as base:
        yield base


@pytest.mark.parametrize("headers", [basic("reader"), key("reader"), token("reader")])
def test_headers(url: str, headers: dict[str, str]) -> None:
    with live_client(url, additional_headers=headers) as live:
        assert live.live(STATEMENT)


@pytest.mark.parametrize(
    "query",
    [
        f"?api_key={KEYS['reader']}",
        "?user=reader&password=of+reader&since=0",
        f"?token={token('reader', bare=True)}",
    ],
)
def test_the_query_string(url: str, query: str) -> None:
    with live_client(url, query) as live:
        assert live.live(STATEMENT)


@pytest.mark.parametrize(
    "members",
    [READER, {"user": "reader", "password": "of reader"}, {"token": token("reader", bare=True)}],
)
def test_a_message(url: str, members: dict[str, str]) -> None:
    with live_client(url) as live:
        for method, *params in (("query", STATEMENT), ("ping",), ("kill", "x")):
            assert live.ask(method, *params)["error"] == {"code": "unauthorized", "message": "sign in first"}
        assert live.ask("signin", members)["result"] is None
        assert live.live(STATEMENT)


def test_what_follows_a_sign_in_need_not_wait_for_its_answer(url: str) -> None:
    with live_client(url) as live:
        password = '{"user": "writer", "password": "of writer"}'
        live.connection.send(f'{{"id": 1, "method": "signin", "params": [{password}]}}')
        live.connection.send('{"id": 2, "method": "ping"}')
        assert [live.receive() for _ in range(2)] == [{"id": 1, "result": None}, {"id": 2, "result": "pong"}]


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ([], "unauthorized"),
        ([{}], "unauthorized"),
        (["x"], "unauthorized"),
        ([READER, READER], "unauthorized"),
        ([{"api_key": "wrong"}], "unauthorized"),
        ([{"user": "reader", "password": "wrong"}], "unauthorized"),
        ([{"api_key": KEYS["stranger"]}], "forbidden"),
    ],
)
def test_a_sign_in_that_fails_lets_nobody_in(url: str, params: list[Any], code: str) -> None:
    with live_client(url) as live:
        assert live.ask("signin", *params)["error"]["code"] == code
        assert live.ask("query", STATEMENT)["error"]["code"] == "unauthorized"


def refused(url: str, query: str = "", **options: Any) -> int:
    with pytest.raises(InvalidStatus) as raised, live_client(url, query, **options):
        pass
    return raised.value.response.status_code


def test_a_handshake_with_wrong_credentials_is_refused(url: str) -> None:
    assert refused(url, "?api_key=wrong") == 401
    assert refused(url, "?user=reader") == 401
    assert refused(url, "?token=a&token=b") == 400
    assert refused(url, additional_headers=basic("reader", "wrong")) == 401
    assert refused(url, f"?api_key={KEYS['stranger']}") == 403
    assert refused(url, origin="https://evil.example", additional_headers=key("reader")) == 403


def test_a_socket_is_one_principal_s(url: str) -> None:
    with live_client(url, additional_headers=key("reader")) as live:
        assert live.ask("signin", {"api_key": KEYS["admin"]})["error"]["code"] == "forbidden"
        assert live.ask("signin", READER)["result"] is None


def test_an_ordinary_request_needs_credentials(url: str) -> None:
    assert httpx.get(f"{url}/ws", trust_env=False).status_code == 401
    assert httpx.get(f"{url}/ws", trust_env=False, headers=key("reader")).status_code == 426


def test_who_does_not_sign_in_is_not_kept(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(middleware, "SIGN_IN_S", 0.2)
    with live_client(url) as live, pytest.raises(ConnectionClosed) as raised:
        live.receive()
    assert raised.value.rcvd is not None
    assert raised.value.rcvd.code == 1008


def test_a_socket_ends_with_its_credentials(url: str) -> None:
    with live_client(url, f"?token={token('reader', 1.5, bare=True)}") as live:
        live.live(STATEMENT)
        with pytest.raises(ConnectionClosed):
            live.receive()


def test_newer_credentials_keep_it_open(url: str) -> None:
    with live_client(url, f"?token={token('reader', 1.5, bare=True)}") as live:
        live.ask("signin", {"token": token("reader", bare=True)})
        with pytest.raises(TimeoutError):
            live.receive(2.5)
        assert live.ask("ping")["result"] == "pong"


def test_newer_credentials_that_show_another_part_end_what_was_told(url: str) -> None:
    with live_client(url, f"?token={token('reader', bare=True)}") as live:
        first, second = live.live(STATEMENT), live.live(STATEMENT)
        assert live.ask("signin", {"token": token("reader", bare=True)})["result"] is None
        assert live.nothing_is_told(), "the same part"
        assert live.ask("signin", {"token": token("reader", bare=True, sids=["S-1-5-1"])})["result"] is None
        ended = live.told(2)
        assert {one["id"] for one in ended} == {first, second}
        assert {one["error"]["code"] for one in ended} == {"resnapshot"}
        assert live.ask("kill", first)["error"]["code"] == "not_found"
        assert live.live(STATEMENT) not in (first, second)


def test_changes_end_with_the_credentials_of_their_reader(url: str) -> None:
    with (
        httpx.stream("GET", f"{url}/changes", headers=token("reader", 1.5), trust_env=False) as answer,
        pytest.raises(httpx.RemoteProtocolError),
    ):
        answer.read()


def test_sign_ins_are_counted(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, rate_limiting={"max_attempts": 2})
    with serving(build_app(MemoryBackend(), settings)) as base, live_client(base) as live:
        for code in ("unauthorized", "unauthorized", "locked_out"):
            assert live.ask("signin", {"api_key": "wrong"})["error"]["code"] == code
        assert live.ask("signin", READER)["error"]["code"] == "locked_out"
        assert refused(base) == 429


def test_while_authentication_is_off_credentials_do_not_count() -> None:
    with serving(build_app(MemoryBackend(), Settings())) as base, live_client(base, "?api_key=x") as live:
        assert live.ask("signin", {"api_key": "wrong"})["result"] is None
        assert live.ask("signin")["result"] is None
        assert live.live(STATEMENT)
