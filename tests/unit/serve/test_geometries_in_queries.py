"""GeoSPARQL in queries over HTTP: refusals, how much is entailed, and what is answered at once."""

from collections.abc import Iterator

import httpx
import pytest

from graphdb.config import Settings
from graphdb.geo.spatial_index import SpatialIndex
from serve.graph_app import build_app
from tests.support.http_server import serving
from tests.support.memory_backend import MemoryBackend
from tests.support.timing import HANG_S

PREFIXES = """PREFIX : <urn:> PREFIX geo: <http://www.opengis.net/ont/geosparql#>
PREFIX geof: <http://www.opengis.net/def/function/geosparql/>
PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
"""
DATA = f"""{PREFIXES} INSERT DATA {{
:area geo:hasGeometry :shape . :shape geo:asWKT "POLYGON((0 0, 5 0, 5 5, 0 5, 0 0))"^^geo:wktLiteral .
:claim geo:sfWithin :area . :town a :City . :City rdfs:subClassOf geo:Feature .
{" ".join(f':g{n} geo:asWKT "POINT({n / 2} 1)"^^geo:wktLiteral .' for n in range(300))}
}}"""
INSIDE = ["area", "claim", *(f"g{n}" for n in range(1, 10)), "shape"]
WITHIN = """SELECT ?g { ?g geo:asWKT ?w
FILTER(geof:sfWithin(?w, "POLYGON((0 0, 5 0, 5 5, 0 5, 0 0))"^^geo:wktLiteral)) }"""


@pytest.fixture(scope="module")
def backend() -> MemoryBackend:
    return MemoryBackend()


@pytest.fixture(scope="module")
def client(backend: MemoryBackend) -> Iterator[httpx.Client]:
    with (
        serving(build_app(backend, Settings())) as url,
        httpx.Client(base_url=url, trust_env=False, timeout=HANG_S) as http,
    ):
        update = {"Content-Type": "application/sparql-update"}
        assert http.post("/update", content=DATA, headers=update).status_code == 200
        yield http


def ask(client: httpx.Client, text: str, **parameters: str) -> httpx.Response:
    headers = {"Accept": "text/csv"}
    return client.get("/sparql", params={"query": PREFIXES + text} | parameters, headers=headers)


def names(answer: httpx.Response) -> list[str]:
    assert answer.status_code == 200, answer.text
    return sorted(row.removeprefix("urn:") for row in answer.text.splitlines()[1:])


@pytest.mark.parametrize(
    ("entailment", "expected"),
    [
        ({}, INSIDE),
        ({"entailment": "geosparql"}, INSIDE),
        ({"entailment": "simple"}, ["claim"]),
        ({"entailment": "geosparql-rdfs"}, INSIDE),
    ],
)
def test_how_much_is_entailed(client: httpx.Client, entailment: dict[str, str], expected: list[str]) -> None:
    assert names(ask(client, "SELECT ?x { ?x geo:sfWithin :area }", **entailment)) == expected
    long = f"SELECT ?x {{ ?x geo:sfWithin :area }} #{'x' * 5000}"
    assert names(ask(client, long, **entailment)) == expected


def test_instances_of_subclasses_for_those_who_ask(client: httpx.Client) -> None:
    text = "SELECT ?x { ?x a geo:Feature }"
    assert names(ask(client, text)) == []
    assert names(ask(client, text, entailment="geosparql-rdfs")) == ["town"]


@pytest.mark.parametrize(
    ("text", "parameters", "words"),
    [
        ("ASK {}", {"entailment": "owl"}, "simple, geosparql, geosparql-rdfs"),
        ("ASK { ?s ?p", {"entailment": "simple"}, "syntax error"),
        ("ASK { FILTER(geof:sfWithin(1)) }", {}, "geof:sfWithin"),
        ("ASK { FILTER(geof:quux(1)) }", {}, "geof:quux"),
    ],
)
def test_refusals(client: httpx.Client, text: str, parameters: dict[str, str], words: str) -> None:
    answer = ask(client, text, **parameters)
    assert answer.status_code == 400
    assert words in answer.json()["error"]


def test_updates_are_refused_alike(client: httpx.Client) -> None:
    text = f"{PREFIXES} INSERT {{ ?s :p 1 }} WHERE {{ ?s ?p ?w FILTER(geof:isEmpty(?w, ?w)) }}"
    headers = {"Content-Type": "application/sparql-update"}
    answer = client.post("/update", content=text, headers=headers)
    assert (answer.status_code, "geof:isEmpty" in answer.json()["error"]) == (400, True)


def test_bad_geometries_in_data_are_errors_of_the_expression(client: httpx.Client) -> None:
    text = 'SELECT ?x { VALUES ?x { "POINT(1 1)" "POINT(1 1)"^^geo:wktLiteral "POINT("^^geo:wktLiteral 7 } '
    assert len(names(ask(client, text + "FILTER(!geof:isEmpty(?x)) }"))) == 1
    assert len(names(ask(client, text + "BIND(geof:isEmpty(?x) AS ?e) FILTER(!BOUND(?e)) }"))) == 3


def test_what_the_index_finds_is_answered_at_once(
    client: httpx.Client, backend: MemoryBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    def explained() -> str:
        answer = ask(client, WITHIN, explain="true").json()
        evaluated: str = answer["classification"]["evaluated"]
        return evaluated

    index = SpatialIndex(backend.store.objects_of)
    while index.has_work:
        index.begin()
        index.step()
        index.publish(1)
    monkeypatch.setattr(backend, "entries_at_once", 128)
    assert explained() == "by a reader"
    assert names(ask(client, WITHIN)) == INSIDE[2:]
    monkeypatch.setattr(backend.store, "spatial_index", index)
    assert explained() == "at once"
    assert names(ask(client, WITHIN)) == INSIDE[2:]


def test_what_may_be_slow_is_not_answered_at_once(
    client: httpx.Client, backend: MemoryBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backend, "entries_at_once", 128)
    around = ", ".join(f"{179 * (-1) ** n} 89" for n in range(70))
    constants = {
        "POINT(1 1)": "at once",
        "<http://www.opengis.net/def/crs/EPSG/0/27700> POINT(1 1)": "by a reader",
        "CIRCULARSTRING(0 0, 1 1, 2 0)": "by a reader",
        f"LINESTRING({around})": "by a reader",  # half a minute from its mirror image
    }
    for constant, place in constants.items():
        call = f'geof:metricDistance("{constant}"^^geo:wktLiteral, ?w)'
        text = f"SELECT ?d {{ :g1 geo:asWKT ?w BIND({call} AS ?d) }}"
        explained = ask(client, text, explain="true").json()
        assert explained["classification"]["evaluated"] == place, constant
