"""The application with `/holonic`, and a client that speaks of holons."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from graphdb.config import Settings
from serve.graph_app import build_app
from tests.support.http_server import serving
from tests.support.memory_backend import MemoryBackend
from tests.unit.serve.conftest import error_of, update

SETTINGS = Settings.model_validate(
    {"holonic": {"enabled": True, "default_tenant": "usual"}, "server": {"max_body_bytes": 1_000_000}}
)
A, B, C = "http://x/a/1?k=v#f", "urn:x:b", "http://é.example/ü c".replace(" ", "%20")


@pytest.fixture(scope="module")
def base_url(backend: MemoryBackend) -> Iterator[str]:
    with serving(build_app(backend, SETTINGS)) as url:
        yield url


class Holons:
    """What the tests do, by IRI; each request in a tenant, or without one in the usual."""

    def __init__(self, client: httpx.Client) -> None:
        self.http = client

    def declare(self, iri: str, tenant: str | None = None, **members: Any) -> httpx.Response:
        return self._post("holons", {"iri": iri, **members}, tenant)

    def add(
        self, iri: str, layer: str, turtle: str, tenant: str | None = None, **members: Any
    ) -> httpx.Response:
        return self._post(f"holons/{in_path(iri)}/{layer}", {"turtle": turtle, **members}, tenant)

    def connect(
        self, iri: str, source: str, target: str, query: str, tenant: str | None = None
    ) -> httpx.Response:
        members = {"iri": iri, "source": source, "target": target, "construct_query": query}
        return self._post("portals", members, tenant)

    def run(self, iri: str, tenant: str | None = None, accept: str = "*/*", **options: str) -> httpx.Response:
        return self.http.post(
            f"/holonic/portals/{in_path(iri)}/run", params=_in(tenant) | options, headers={"Accept": accept}
        )

    def get(self, path: str, tenant: str | None = None, **options: str) -> Any:
        """What is read there, which has to be there."""
        answer = self.http.get(f"/holonic/{path}", params=_in(tenant) | options)
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"] == "application/json"
        return answer.json()

    def detail(self, iri: str, tenant: str | None = None) -> Any:
        return self.get(f"holons/{in_path(iri)}", tenant)

    def layer(self, iri: str, layer: str, tenant: str | None = None) -> list[str]:
        """The lines of all graphs of a layer, sorted."""
        graphs = self.detail(iri, tenant)["layers"][layer]
        assert [len(graph["ntriples"].splitlines()) for graph in graphs] == [
            graph["triples"] for graph in graphs
        ]
        return sorted(line for graph in graphs for line in graph["ntriples"].splitlines())

    def _post(self, path: str, members: dict[str, Any], tenant: str | None) -> httpx.Response:
        return self.http.post(f"/holonic/{path}", params=_in(tenant), json=members)


def in_path(iri: str) -> str:
    return quote(iri, safe="")


def _in(tenant: str | None) -> dict[str, str]:
    return {} if tenant is None else {"tenant": tenant}


@pytest.fixture
def holons(client: httpx.Client) -> Holons:
    """A client of a service without a holon."""
    return Holons(client)


def confirmed(answer: httpx.Response) -> dict[str, Any]:
    """The confirmation of a write that has to succeed."""
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    assert set(body) == {"success", "message", "snapshot_index", "affected_triples", "graph"}
    assert body["success"] is True
    assert answer.headers["X-Snapshot-Index"] == str(body["snapshot_index"])
    return body


def refused(answer: httpx.Response, status: int) -> str:
    """The message of a refusal."""
    assert answer.status_code == status, answer.text
    return error_of(answer)


__all__ = ["A", "B", "C", "Holons", "confirmed", "in_path", "refused", "update"]
