"""A small library of books, with an ontology and shapes, behind the application over memory."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest

from graphdb.config import Settings
from serve.graph_app import build_app
from tests.support.http_server import serving
from tests.support.memory_backend import MemoryBackend
from tests.support.timing import HANG_S

PREFIXES = """
PREFIX : <http://e/>
PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
PREFIX owl: <http://www.w3.org/2002/07/owl#>
PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
PREFIX sh: <http://www.w3.org/ns/shacl#>
"""
LIBRARY = """
    :Book a owl:Class . :Person a owl:Class .
    :title a owl:FunctionalProperty ; rdfs:domain :Book ; rdfs:range xsd:string .
    :author rdfs:domain :Book ; rdfs:range :Person .
    :name a owl:FunctionalProperty ; rdfs:domain :Person ; rdfs:range xsd:string .
    :emma a :Book ; :title "Emma" ; :author :jane . :jane a :Person ; :name "Jane" .
    :sula a :Book ; :title "Sula" ; :author :toni . :toni a :Person ; :name "Toni" .
"""


class Port:
    """One running application."""

    def __init__(self, http: httpx.Client, backend: MemoryBackend) -> None:
        self.http, self.backend = http, backend

    def update(self, text: str) -> None:
        """Apply an update that has to succeed."""
        answer = self.http.post(
            "/update", content=PREFIXES + text, headers={"Content-Type": "application/sparql-update"}
        )
        assert answer.status_code == 200, answer.text

    def post(self, query: str, **members: Any) -> httpx.Response:
        """One request as most clients send it."""
        return self.http.post("/graphql", json={"query": query, **members})

    def data(self, query: str, **members: Any) -> Any:
        """What is answered; without errors."""
        answer = self.post(query, **members)
        assert answer.status_code == 200, answer.text
        assert "errors" not in answer.json(), answer.text
        return answer.json()["data"]

    def codes(self, query: str, **members: Any) -> list[str]:
        """The codes of an answer's errors."""
        return [one["extensions"]["code"] for one in self.post(query, **members).json()["errors"]]


@pytest.fixture(scope="module")
def opened() -> Iterator[Callable[..., Port]]:
    """Opens an application with settings of its own."""
    with ExitStack() as stack:

        def open_port(graphql: dict[str, Any] | None = None, **settings: Any) -> Port:
            backend = MemoryBackend()
            server = {"max_body_bytes": 1_000_000}
            made = Settings.model_validate({"server": server, "graphql": graphql or {}, **settings})
            url = stack.enter_context(serving(build_app(backend, made)))
            http = httpx.Client(base_url=url, trust_env=False, timeout=HANG_S)
            return Port(stack.enter_context(http), backend)

        yield open_port


@pytest.fixture(scope="module")
def library(opened: Callable[..., Port]) -> Port:
    """The library; leave it as it is."""
    port = opened()
    port.update(f"INSERT DATA {{ {LIBRARY} }}")
    return port
