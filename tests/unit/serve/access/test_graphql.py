"""GraphQL with authentication on: mutations need more than queries, and `/graphql/ws` takes credentials."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from serve.access import middleware
from serve.graph_app import build_app
from tests.support.http_server import serving
from tests.support.memory_backend import MemoryBackend
from tests.support.timing import HANG_S
from tests.support.transport_socket import transport_client
from tests.unit.serve.access.accounts import KEYS, basic, key, settings_of, token

ONTOLOGY = """@prefix owl: <http://www.w3.org/2002/07/owl#> . @prefix : <urn:v:> .
:Thing a owl:Class .
:size a owl:FunctionalProperty ; <http://www.w3.org/2000/01/rdf-schema#domain> :Thing ."""
QUERY = "{ thing { id } }"
MUTATION = 'mutation { createThing(input: {id: "urn:x:%s"}) { id } }'
SUBSCRIPTION = "subscription { thingChanged { node { id } } }"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    tolerant = {"whitelist": ["127.0.0.1"]}
    settings = settings_of(tmp_path_factory.mktemp("graphql"), rate_limiting=tolerant)
    with serving(build_app(MemoryBackend(), settings)) as base:
        headers = {**key("writer"), "Content-Type": "text/turtle"}
        httpx.put(
            f"{base}/data?graph=urn:o", content=ONTOLOGY, headers=headers, trust_env=False
        ).raise_for_status()
        yield base


def post(url: str, query: str, headers: dict[str, str]) -> httpx.Response:
    # the first mutation waits for the import of the library of plurals, seconds on a busy machine
    return httpx.post(
        f"{url}/graphql", json={"query": query}, headers=headers, timeout=HANG_S, trust_env=False
    )


def test_a_mutation_needs_write(url: str) -> None:
    assert post(url, QUERY, key("reader")).status_code == 200
    refused = post(url, MUTATION % "posted", {**key("reader"), "Accept": "application/graphql-response+json"})
    assert refused.status_code == 403
    assert [one["extensions"]["code"] for one in refused.json()["errors"]] == ["FORBIDDEN"]
    assert post(url, QUERY, key("reader")).json()["data"] == {"thing": []}
    assert post(url, MUTATION % "posted", key("writer")).json()["data"] == {
        "createThing": {"id": "urn:x:posted"}
    }


@pytest.mark.parametrize("kind", ["key", "password", "token"])
def test_credentials_in_the_initialisation(url: str, kind: str) -> None:
    members = {
        "key": {"api_key": KEYS["reader"]},
        "password": {"user": "reader", "password": "of reader"},
        "token": {"token": token("reader", bare=True)},
    }
    with transport_client(url) as client:
        client.initialise(**members[kind])
        client.subscribe("q", "{ __typename }")
        assert client.receive()["payload"]["data"] == {"__typename": "Query"}


def test_credentials_of_the_handshake(url: str) -> None:
    for query, headers in (("", basic("reader")), (f"?api_key={KEYS['reader']}", {})):
        with transport_client(url, query, additional_headers=headers) as client:
            client.initialise()


@pytest.mark.parametrize(
    "members",
    [{}, {"api_key": "wrong"}, {"token": 1}, {"user": "reader"}, {"api_key": KEYS["stranger"]}],
    ids=str,
)
def test_nobody_else_is_let_in(url: str, members: dict[str, Any]) -> None:
    with transport_client(url) as client:
        client.send("connection_init", payload=members)
        code, reason = client.closed()
        assert code == 4403
        assert reason.startswith("Forbidden: ")


def test_an_operation_before_the_credentials(url: str) -> None:
    with transport_client(url) as client:
        client.subscribe("s", SUBSCRIPTION)
        assert client.closed()[0] == 4401


@pytest.mark.parametrize("signs_in_by", ["handshake", "message"])
def test_the_socket_is_no_way_around_permissions(url: str, signs_in_by: str) -> None:
    by_message = signs_in_by == "message"
    for role, name in (("reader", "told"), ("writer", signs_in_by)):
        with transport_client(url, additional_headers={} if by_message else key(role)) as client:
            client.initialise(**({"api_key": KEYS[role]} if by_message else {}))
            client.subscribe("m", MUTATION % name)
            answer = client.receive()
            if role == "reader":
                assert answer["type"] == "error"
                assert [one["extensions"]["code"] for one in answer["payload"]] == ["FORBIDDEN"]
            else:
                assert answer["payload"]["data"] == {"createThing": {"id": f"urn:x:{name}"}}
                assert {"index", "snapshot_index"} <= set(answer["payload"]["extensions"])


def test_who_does_not_say_who_they_are_is_not_kept(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(middleware, "SIGN_IN_S", 0.2)
    with transport_client(url) as client:
        assert client.closed() == (4403, "Forbidden: not signed in, or not any more")


def test_a_subscription_ends_with_its_credentials(url: str) -> None:
    with transport_client(url) as client:
        client.initialise(token=token("reader", 1.5, bare=True))
        client.subscribe("s", SUBSCRIPTION)
        assert client.closed()[0] == 4403
