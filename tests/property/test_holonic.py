"""The holonic interface against a naive twin: dictionaries that requests of several tenants change."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias
from urllib.parse import quote

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graphdb.config import Settings
from serve.graph_app import build_app
from tests.support.http_server import serving
from tests.support.memory_backend import MemoryBackend
from tests.support.timing import HANG_S

TENANTS = ["one", "two"]
IRIS = ["http://x/a/b", "urn:b#1", "http://x/ü?q"]
PORTALS = ["urn:portal:1", "http://x/portal/"]
LAYERS = ["interior", "boundary", "context", "projection"]
CONSTRUCT = "CONSTRUCT { ?s <urn:seen> ?o } WHERE { ?s <urn:p> ?o }"
BAD_TURTLE = "<urn:s> <urn:p> 1 . <urn:s>"

Lines: TypeAlias = set[str]


def line(subject: int, predicate: str, number: int) -> str:
    return f'<urn:s:{subject}> <urn:{predicate}> "{number}" .'


@dataclass
class Holon:
    label: str | None
    member_of: str | None
    graphs: dict[tuple[str, str | None], Lines] = field(default_factory=dict)  # by layer and slug
    came_through: dict[str, Lines] = field(default_factory=dict)  # by portal

    def shown(self, layer: str) -> list[list[str]]:
        """What its graphs hold, those that hold something, in any order."""
        graphs = [lines for (of, _), lines in self.graphs.items() if of == layer]
        if layer == "projection":
            graphs += self.came_through.values()
        return sorted(sorted(lines) for lines in graphs if lines)


@dataclass
class Tenant:
    holons: dict[str, Holon] = field(default_factory=dict)
    portals: dict[str, tuple[str, str]] = field(default_factory=dict)  # source and target

    def depth(self, iri: str) -> int:
        parent = self.holons[iri].member_of
        return 0 if parent is None else 1 + self.depth(parent)


@dataclass(frozen=True)
class Declare:
    iri: str
    label: str | None
    member_of: str | None

    def send(self, http: httpx.Client, tenant: str) -> httpx.Response:
        members = {"iri": self.iri, "label": self.label, "member_of": self.member_of}
        return http.post("/holonic/holons", params={"tenant": tenant}, json=members)

    def change(self, tenant: Tenant) -> int:
        if self.iri in tenant.holons or self.member_of == self.iri:
            return 409
        if self.member_of is not None and self.member_of not in tenant.holons:
            return 404
        tenant.holons[self.iri] = Holon(self.label, self.member_of)
        return 200


@dataclass(frozen=True)
class Add:
    iri: str
    layer: str
    slug: str | None
    lines: frozenset[str] | None  # None: they do not parse

    def send(self, http: httpx.Client, tenant: str) -> httpx.Response:
        turtle = BAD_TURTLE if self.lines is None else "\n".join(self.lines)
        path = f"/holonic/holons/{quote(self.iri, safe='')}/{self.layer}"
        return http.post(path, params={"tenant": tenant}, json={"turtle": turtle, "graph_slug": self.slug})

    def change(self, tenant: Tenant) -> int:
        if self.iri not in tenant.holons:
            return 404
        if self.lines is None:
            return 400
        graphs = tenant.holons[self.iri].graphs
        graphs[self.layer, self.slug] = graphs.get((self.layer, self.slug), set()) | self.lines
        return 200


@dataclass(frozen=True)
class Connect:
    iri: str
    source: str
    target: str
    query: str

    def send(self, http: httpx.Client, tenant: str) -> httpx.Response:
        members = {
            "iri": self.iri,
            "source": self.source,
            "target": self.target,
            "construct_query": self.query,
        }
        return http.post("/holonic/portals", params={"tenant": tenant}, json=members)

    def change(self, tenant: Tenant) -> int:
        if self.query != CONSTRUCT:
            return 400
        if self.iri in tenant.portals:
            return 409
        if self.source not in tenant.holons:
            return 404
        tenant.portals[self.iri] = self.source, self.target
        return 200


@dataclass(frozen=True)
class Run:
    iri: str

    def send(self, http: httpx.Client, tenant: str) -> httpx.Response:
        path = f"/holonic/portals/{quote(self.iri, safe='')}/run"
        return http.post(path, params={"tenant": tenant, "store": "true"})

    def change(self, tenant: Tenant) -> int:
        if self.iri not in tenant.portals:
            return 404
        source, target = tenant.portals[self.iri]
        if target not in tenant.holons:
            return 404
        read = {
            found
            for (layer, _), lines in tenant.holons[source].graphs.items()
            for found in lines
            if layer == "interior" and "<urn:p>" in found
        }
        tenant.holons[target].came_through[self.iri] = {found.replace("urn:p", "urn:seen") for found in read}
        return 200


Request: TypeAlias = Declare | Add | Connect | Run

iris, portals = st.sampled_from(IRIS), st.sampled_from(PORTALS)
labels = st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
documents = st.frozensets(
    st.builds(line, st.integers(0, 1), st.sampled_from("pq"), st.integers(0, 2)), max_size=4
)
requests = (
    st.builds(Declare, iris, labels, st.none() | iris)
    | st.builds(
        Add, iris, st.sampled_from(LAYERS), st.sampled_from([None, None, "a", "b.c"]), st.none() | documents
    )
    | st.builds(Connect, portals, iris, iris, st.sampled_from([CONSTRUCT, CONSTRUCT, "ASK {}"]))
    | st.builds(Run, portals)
)


@pytest.fixture(scope="module")
def backend() -> MemoryBackend:
    return MemoryBackend()


@pytest.fixture(scope="module")
def http(backend: MemoryBackend) -> Iterator[httpx.Client]:
    enabled = Settings.model_validate({"holonic": {"enabled": True}})
    with (
        serving(build_app(backend, enabled)) as url,
        httpx.Client(base_url=url, trust_env=False, timeout=HANG_S) as client,
    ):
        yield client


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.sampled_from(TENANTS), requests), max_size=25))
def test_requests_do_what_they_do_to_the_twin(
    http: httpx.Client, backend: MemoryBackend, sent: list[tuple[str, Request]]
) -> None:
    http.post("/update", content="DROP ALL", headers={"Content-Type": "application/sparql-update"})
    twins = {name: Tenant() for name in TENANTS}
    for name, request in sent:
        before = backend.snapshot_index()
        answer = request.send(http, name)
        assert answer.status_code == request.change(twins[name]), answer.text
        if answer.status_code != 200:
            assert backend.snapshot_index() == before, "what is refused leaves nothing"
    for name, twin in twins.items():
        assert_shown(http, name, twin)


def assert_shown(http: httpx.Client, tenant: str, twin: Tenant) -> None:
    def read(path: str) -> httpx.Response:
        return http.get(f"/holonic/{path}", params={"tenant": tenant})

    assert [
        (holon["iri"], holon["label"], holon["member_of"]) for holon in read("holons").json()["holons"]
    ] == [(iri, holon.label, holon.member_of) for iri, holon in sorted(twin.holons.items())]
    for iri in IRIS:
        answer = read(f"holons/{quote(iri, safe='')}")
        if iri not in twin.holons:
            assert answer.status_code == 404
            continue
        layers = answer.json()["layers"]
        assert {layer: written(layers[layer]) for layer in LAYERS} == {
            layer: twin.holons[iri].shown(layer) for layer in LAYERS
        }
    found = {
        portal["iri"]: (portal["source"], portal["target"]) for portal in read("portals").json()["portals"]
    }
    assert found == twin.portals
    depths = {holon["iri"]: holon["depth"] for holon in read("depth").json()["holons"]}
    assert depths == {iri: twin.depth(iri) for iri in twin.holons}


def written(graphs: list[dict[str, str]]) -> list[list[str]]:
    """What the graphs of a layer hold but for portals, as `Holon.shown` has it."""
    lines = (
        [found for found in graph["ntriples"].splitlines() if found.startswith("<urn:s:")] for graph in graphs
    )
    return sorted(sorted(of) for of in lines if of)
