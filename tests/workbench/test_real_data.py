"""Data as people have them, in a browser: medals of the Olympic Games, and airports with their routes."""

import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, urlencode

import httpx
import pytest

from tests.support.chromium import Chromium, browser, why_no_browser
from tests.support.service import Service

pytestmark = [
    pytest.mark.ray,
    pytest.mark.slow,
    pytest.mark.skipif(why_no_browser() is not None, reason=str(why_no_browser())),
]

DATA = Path(__file__).parents[3] / "shared" / "data"
FILES = ("olympics-medals.nt.gz", "openflights.nt.gz")
AIRPORT = "http://openflights.example/airport/1"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service with both."""
    missing = [name for name in FILES if not (DATA / name).exists()]
    if missing:
        pytest.skip(f"there is no {' and no '.join(missing)} in {DATA}")
    service = Service(tmp_path_factory.mktemp("world") / "data")
    try:
        service.start()
        for name in FILES:
            answer = httpx.post(
                f"{service.url}/data?default",
                content=(DATA / name).read_bytes(),
                headers={"Content-Type": "application/n-triples", "Content-Encoding": "gzip"},
                timeout=300,
                trust_env=False,
            )
            assert answer.is_success, answer.text
        yield service
    finally:
        service.close()


@pytest.fixture
def window(world: Service) -> Iterator[Chromium]:
    with browser() as page:
        page.resize(1280, 900)
        yield page
        assert page.strangers(world.url + "/") == []
        assert page.complaints == []


def run(service: Service, page: Chromium, text: str, view: str) -> None:
    told = urlencode({"query": text, "view": view, "run": "1"})
    page.open(f"{service.url}/?{time.monotonic_ns()}#/query?{told}")
    page.wait_for("/rows|triples/.test(document.querySelector('.rstatus')?.textContent)", 90)


MEDALS = """
PREFIX walls: <http://wallscope.co.uk/ontology/olympics/>
PREFIX dbp: <http://dbpedia.org/property/>
SELECT ?year (COUNT(?medal) AS ?medals) WHERE {
  ?instance walls:medal ?medal ; walls:games ?games . ?games dbp:year ?year
} GROUP BY ?year ORDER BY ?year"""


def test_medals_by_year_are_a_chart(world: Service, window: Chromium) -> None:
    run(world, window, MEDALS, "chart")
    window.wait_for("!!document.querySelector('.drawing svg path, .drawing svg rect')")
    window.wait_for("/1,?9[0-9]0/.test(document.querySelector('.drawing svg').textContent)")


AIRPORTS = """
PREFIX geo: <http://www.opengis.net/ont/geosparql#>
PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
SELECT ?airport ?name ?where WHERE {
  ?airport a <http://openflights.example/ont#Airport> ; rdfs:label ?name ; geo:hasGeometry ?place .
  ?place geo:asWKT ?where
} LIMIT 2000"""


def test_airports_are_on_a_map(world: Service, window: Chromium) -> None:
    run(world, window, AIRPORTS, "map")
    window.wait_for("/2,000 geometries/.test(document.querySelector('.results').textContent)")


def test_all_airports_are_rows(world: Service, window: Chromium) -> None:
    run(world, window, AIRPORTS.replace("LIMIT 2000", ""), "table")
    window.wait_for("Number(document.querySelector('.vtable').ariaRowCount) > 5000", 60)


def test_the_overview_of_a_million_triples(world: Service, window: Chromium) -> None:
    window.open(f"{world.url}/#/explore")
    window.wait_for("/Airport/.test(document.querySelector('.bars')?.textContent)", 60)
    window.open(f"{world.url}/#/explore?iri={quote(AIRPORT, safe='')}")
    window.wait_for("/Goroka/.test(document.querySelector('h1')?.textContent)", 60)
    window.wait_for("document.querySelectorAll('.property').length > 5")
