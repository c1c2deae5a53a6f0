"""Both ports as the resource server of a real OpenID Connect provider, and of hostile ones."""

import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from joserfc import jwt
from joserfc.jwk import RSAKey, import_key
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from graphdb.config import Settings
from graphdb.errors import ConfigError
from serve.graph_app import build_app
from serve.search_app import build_search_app
from tests.support.certificate import certificate_and_key, needs_openssl
from tests.support.http_server import serving
from tests.support.memory_backend import MemoryBackend
from tests.support.memory_graph import MemoryGraph
from tests.support.memory_search import MemorySearch
from tests.support.oidc_provider import AUDIENCE, OidcProvider, oidc_provider
from tests.support.service import free_port
from tests.support.timing import HANG_S, quick_enough
from tests.unit.serve.access.accounts import settings_of
from tests.unit.serve.access.accounts import token as own_token

ATTEMPTS = 5


def configured(directory: Path, issuer: str, attempts: int = 1_000, **oidc: Any) -> Settings:
    """Own tokens are taken as well."""
    return settings_of(
        directory,
        rate_limiting={"max_attempts": attempts},
        oidc={
            "issuer_url": issuer,
            "client_id": "graphdb-cli",
            "audience": AUDIENCE,
            "roles_claim": "realm_access.roles",
            "sids_claim": "https://claims.example/sids",
            "role_mapping": {"graph-writers": "writer", "graph-readers": "reader"},
            "jwks_refresh_interval_secs": 1,
            "http_timeout_secs": 2,
            **oidc,
        },
    )


@contextmanager
def port(settings: Settings) -> Iterator[httpx.Client]:
    with (
        serving(build_app(MemoryBackend(), settings)) as url,
        httpx.Client(base_url=url, trust_env=False, timeout=HANG_S) as client,
    ):
        yield client


@pytest.fixture
def graph(provider: OidcProvider, tmp_path: Path) -> Iterator[httpx.Client]:
    with port(configured(tmp_path, provider.issuer)) as client:
        yield client


def asked(client: httpx.Client, token: str) -> httpx.Response:
    bearer = {"Authorization": f"Bearer {token}"}
    return client.get("/sparql", params={"query": "ASK {}"}, headers=bearer)


def changed(client: httpx.Client, token: str) -> httpx.Response:
    bearer = {"Authorization": f"Bearer {token}"}
    return client.post("/update", data={"update": "INSERT DATA { <urn:a> <urn:b> 1 }"}, headers=bearer)


@pytest.mark.parametrize("algorithm", ["RS256", "ES256", "EdDSA"])
def test_a_token_of_the_provider(graph: httpx.Client, provider: OidcProvider, algorithm: str) -> None:
    assert changed(graph, provider.token(algorithm)).status_code == 200


def test_roles_are_mapped_and_no_other_one_counts(graph: httpx.Client, provider: OidcProvider) -> None:
    """The provider says `admin` too, which is not in the mapping."""
    reader = provider.token("reader")
    assert asked(graph, reader).status_code == 200
    assert changed(graph, reader).status_code == 403
    bearer = {"Authorization": f"Bearer {provider.token()}"}
    refused = graph.get("/api_keys", headers=bearer)
    assert (refused.status_code, "permission Admin" in refused.text) == (403, True)


def test_own_tokens_hold_beside_the_provider_s(graph: httpx.Client) -> None:
    assert asked(graph, own_token("reader", bare=True)).status_code == 200


def test_a_token_for_somebody_else(graph: httpx.Client, provider: OidcProvider) -> None:
    refused = asked(graph, provider.token("elsewhere"))
    assert (refused.status_code, "aud" in refused.json()["error"]) == (401, True)
    assert refused.headers["www-authenticate"].startswith("Bearer ")


def test_a_socket_takes_it(graph: httpx.Client, provider: OidcProvider) -> None:
    url = f"{str(graph.base_url).replace('http', 'ws', 1)}/ws?token={provider.token('reader')}"
    with connect(url, proxy=None) as socket:
        socket.send('{"id": 1, "method": "ping"}')
        assert json.loads(socket.recv()).get("error") is None


def test_the_search_port_takes_it(provider: OidcProvider, tmp_path: Path) -> None:
    settings = configured(tmp_path, provider.issuer)
    with serving(build_search_app(MemorySearch(MemoryGraph()), settings)) as url:
        bearer = {"Authorization": f"Bearer {provider.token('reader')}"}
        assert httpx.get(url, headers=bearer, trust_env=False).status_code == 200


def test_keys_are_rotated(graph: httpx.Client, provider: OidcProvider) -> None:
    """New keys are fetched when they are met; those that are not published any more are forgotten."""
    old = provider.token()
    other_old = provider.token()
    assert asked(graph, old).status_code == 200
    provider.rotate()
    time.sleep(1.1)  # the least time between two fetches, by this configuration
    assert asked(graph, provider.token()).status_code == 200
    refused = asked(graph, other_old)
    assert (refused.status_code, "does not have" in refused.json()["error"]) == (401, True)


def claims_of(provider: OidcProvider, **more: Any) -> dict[str, Any]:
    claims = {"iss": provider.issuer, "aud": AUDIENCE, "sub": "ada", "exp": int(time.time()) + 60}
    return claims | {"realm_access": {"roles": ["graph-readers"]}} | more


def test_claims_decide_with_the_right_key_too(graph: httpx.Client, provider: OidcProvider) -> None:
    """Signed by the provider's own key, so that nothing but the claims is wrong."""
    [jwk] = [one for one in provider.private_keys() if one["alg"] == "ES256"]
    key = import_key(jwk)

    def signed(header: dict[str, Any] | None = None, **more: Any) -> str:
        head = {"alg": "ES256", "kid": jwk["kid"], **(header or {})}
        return jwt.encode(head, claims_of(provider, **more), key, ["ES256"])

    now = int(time.time())
    assert asked(graph, signed()).status_code == 200
    assert asked(graph, signed(exp=now - 10)).status_code == 200  # clocks may differ by so much
    for token in (
        signed(exp=now - 60),
        signed(nbf=now + 60),
        signed(iat=now + 60),
        signed(iss=provider.issuer + "/"),
        signed(iss="https://evil.example"),
        signed(aud="graphdb"),
        signed(aud=[]),
        signed(sub=""),
        signed({"typ": "logout+jwt"}),
        signed({"typ": "dpop+jwt"}),
        signed({"kid": "of nobody"}),
        signed({"kid": provider.private_keys()[0]["kid"]}),
    ):
        assert asked(graph, token).status_code == 401


def test_a_client_that_guesses_is_locked_out(provider: OidcProvider, tmp_path: Path) -> None:
    forged = jwt.encode({"alg": "RS256"}, claims_of(provider), RSAKey.generate_key(2048), ["RS256"])
    with port(configured(tmp_path, provider.issuer, ATTEMPTS)) as client:
        assert [asked(client, forged).status_code for _ in range(ATTEMPTS + 1)] == [401] * ATTEMPTS + [429]


def test_a_provider_that_is_away_is_nobody_s_failed_attempt(provider: OidcProvider, tmp_path: Path) -> None:
    """Until it is there; and then keys are used on while it is away again."""
    number = free_port()
    issuer = f"http://127.0.0.1:{number}"
    elsewhere = jwt.encode(
        {"alg": "RS256", "kid": "x"}, claims_of(provider, iss=issuer), RSAKey.generate_key(2048), ["RS256"]
    )
    with port(configured(tmp_path, issuer, ATTEMPTS)) as client:
        for _ in range(ATTEMPTS + 1):
            refused = asked(client, elsewhere)
            assert refused.status_code == 503
            assert int(refused.headers["retry-after"]) >= 1
        assert asked(client, own_token("reader", bare=True)).status_code == 200
        with oidc_provider(number) as late:
            time.sleep(1.1)
            token, other = late.token(), late.token()
            assert asked(client, token).status_code == 200
        time.sleep(1.1)
        assert asked(client, other).status_code == 200
        assert asked(client, elsewhere).status_code == 503  # the key may be a new one


def test_the_search_port_says_that_it_is_away(provider: OidcProvider, tmp_path: Path) -> None:
    issuer = f"http://127.0.0.1:{free_port()}"
    token = jwt.encode(
        {"alg": "RS256"}, claims_of(provider, iss=issuer), RSAKey.generate_key(2048), ["RS256"]
    )
    with serving(build_search_app(MemorySearch(MemoryGraph()), configured(tmp_path, issuer))) as url:
        refused = httpx.get(url, headers={"Authorization": f"Bearer {token}"}, trust_env=False)
    assert (refused.status_code, refused.json()["error"]["type"]) == (503, "security_exception")
    assert int(refused.headers["retry-after"]) >= 1


def test_a_socket_may_sign_in_later_where_the_provider_is_away(
    provider: OidcProvider, tmp_path: Path
) -> None:
    issuer = f"http://127.0.0.1:{free_port()}"
    key = RSAKey.generate_key(2048)
    token = jwt.encode({"alg": "RS256"}, claims_of(provider, iss=issuer), key, ["RS256"])
    with port(configured(tmp_path, issuer)) as client:
        base = str(client.base_url).replace("http", "ws", 1)
        with connect(f"{base}/graphql/ws", proxy=None, subprotocols=["graphql-transport-ws"]) as socket:  # type: ignore[list-item]
            socket.send(json.dumps({"type": "connection_init", "payload": {"token": token}}))
            with pytest.raises(ConnectionClosed) as closed:
                socket.recv()
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 1013


class Hostile:
    """A provider that answers what a test wants, and counts."""

    def __init__(self) -> None:
        self.key = RSAKey.generate_key(2048, {"kid": "k"})
        self.asked: list[str] = []
        self.answers: dict[str, Callable[[str], Response]] = {
            "/.well-known/openid-configuration": lambda issuer: JSONResponse(
                {"issuer": issuer, "jwks_uri": f"{issuer}/keys"}
            ),
            "/keys": lambda _: JSONResponse({"keys": [self.key.as_dict(private=False)]}),
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        self.asked.append(request.url.path)
        answer = self.answers[request.url.path](str(request.base_url).rstrip("/"))
        await answer(scope, receive, send)


@pytest.fixture
def hostile() -> Hostile:
    return Hostile()


@pytest.fixture
def issuer(hostile: Hostile) -> Iterator[str]:
    app: ASGIApp = hostile
    with serving(app) as url:
        yield url


def token_of(hostile: Hostile, issuer: str, kid: str | None = "k", subject: str = "ada") -> str:
    claims = {"iss": issuer, "aud": AUDIENCE, "sub": subject, "exp": int(time.time()) + 60}
    claims |= {"realm_access": {"roles": ["graph-readers"]}}
    header = {"alg": "RS256"} | ({} if kid is None else {"kid": kid})
    return jwt.encode(header, claims, hostile.key, ["RS256"])


def test_kids_that_nobody_has_do_not_hammer_the_provider(
    hostile: Hostile, issuer: str, tmp_path: Path
) -> None:
    settings = configured(tmp_path, issuer, jwks_refresh_interval_secs=3600)
    with port(settings) as client:
        assert asked(client, token_of(hostile, issuer)).status_code == 200
        for number in range(20):
            assert asked(client, token_of(hostile, issuer, f"k{number}")).status_code == 401
        assert asked(client, token_of(hostile, issuer, None, "bea")).status_code == 200
    assert len(hostile.asked) == 2  # discovery and keys, once each


def test_who_comes_at_once_waits_for_one_fetch(hostile: Hostile, issuer: str, tmp_path: Path) -> None:
    plain = hostile.answers["/keys"]

    def late(base: str) -> Response:
        time.sleep(0.5)
        return plain(base)

    hostile.answers["/keys"] = late
    with port(configured(tmp_path, issuer)) as client, ThreadPoolExecutor(10) as threads:
        tokens = [token_of(hostile, issuer, subject=f"u{number}") for number in range(10)]
        answers = list(threads.map(lambda token: asked(client, token), tokens))
    assert [answer.status_code for answer in answers] == [200] * 10
    assert len(hostile.asked) == 2


def test_an_expired_token_is_no_reason_to_ask_for_keys(hostile: Hostile, issuer: str, tmp_path: Path) -> None:
    """Nor an attempt: its key may have been changed since."""
    claims = {"iss": issuer, "aud": AUDIENCE, "sub": "ada", "exp": int(time.time()) - 60}
    token = jwt.encode({"alg": "RS256", "kid": "old"}, claims, hostile.key, ["RS256"])
    with port(configured(tmp_path, issuer, ATTEMPTS)) as client:
        answers = [asked(client, token) for _ in range(ATTEMPTS + 1)]
    assert {(answer.status_code, answer.json()["error"]) for answer in answers} == {
        (401, "the token has expired")
    }
    assert hostile.asked == []


@needs_openssl
def test_a_certificate_of_a_private_authority(hostile: Hostile, tmp_path: Path) -> None:
    """It is believed where it is configured, and nowhere else."""
    certificate = certificate_and_key(tmp_path)
    with serving(hostile, certificate) as issuer:
        token = token_of(hostile, issuer)
        with port(configured(tmp_path, issuer, ca_cert_file=certificate[0])) as client:
            assert asked(client, token).status_code == 200
        with port(configured(tmp_path, issuer)) as client:
            assert asked(client, token).status_code == 503


def test_what_is_no_certificate_stops_the_start(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_text("none")
    with pytest.raises(ConfigError, match="no PEM certificates"):
        build_app(MemoryBackend(), configured(tmp_path, "https://issuer.example", ca_cert_file=file))


def endless() -> Iterator[bytes]:
    while True:
        yield b" " * 65_536


def slow() -> Iterator[bytes]:
    for _ in range(60):
        time.sleep(0.5)
        yield b" "


DISCOVERY = "/.well-known/openid-configuration"
ANSWERS: dict[str, tuple[str, Callable[[str], Response]]] = {
    "another issuer": (
        DISCOVERY,
        lambda issuer: JSONResponse({"issuer": issuer + "/", "jwks_uri": f"{issuer}/keys"}),
    ),
    "keys over plain HTTP": (
        DISCOVERY,
        lambda issuer: JSONResponse({"issuer": issuer, "jwks_uri": "http://keys.example/"}),
    ),
    "keys of a file": (
        DISCOVERY,
        lambda issuer: JSONResponse({"issuer": issuer, "jwks_uri": "file:///etc/passwd"}),
    ),
    "no keys": (DISCOVERY, lambda issuer: JSONResponse({"issuer": issuer})),
    "a list": (DISCOVERY, lambda _: JSONResponse([])),
    "no JSON": (DISCOVERY, lambda _: Response(b"<html>")),
    "elsewhere": (DISCOVERY, lambda issuer: RedirectResponse(f"{issuer}/keys")),
    "endless": ("/keys", lambda _: StreamingResponse(endless())),
    "slow": ("/keys", lambda _: StreamingResponse(slow())),
    "an error": ("/keys", lambda _: Response(status_code=500)),
    "an empty set": ("/keys", lambda _: JSONResponse({"keys": []})),
    "a secret": ("/keys", lambda _: JSONResponse({"keys": [{"kty": "oct", "k": "AAAA", "kid": "k"}]})),
    "deep": ("/keys", lambda _: Response(b"[" * 100_000)),
}


@pytest.mark.parametrize("case", ANSWERS)
def test_answers_that_no_provider_should_give(
    hostile: Hostile, issuer: str, tmp_path: Path, case: str
) -> None:
    path, answer = ANSWERS[case]
    hostile.answers[path] = answer
    for took in quick_enough(6):
        with port(configured(tmp_path, issuer)) as client:
            with took:
                refused = asked(client, token_of(hostile, issuer))
            assert refused.status_code == 503
            assert refused.json()["error"] == "the OpenID Connect provider cannot be asked for its keys"
