"""Indexes that follow the graph of a running service: what SPARQL changes is found by a search."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.file_texts import files_with
from tests.support.service import Service
from tests.support.timing import HANG_S

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.timeout(300)]

MUSEUM = Path(__file__).parents[2] / "examples" / "museum"
PREFIXES = """PREFIX m: <https://museum.example/ontology#> PREFIX : <https://museum.example/id/>
    PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#> """
PEOPLE = PREFIXES + "SELECT ?id ?name ?from { ?id a m:Person ; m:name ?name ; m:birthplace/rdfs:label ?from }"
SHAPES = {
    "paintings": "https://museum.example/ontology#Painting",
    "people": {"query": PEOPLE},
    "persons": {"shape": "https://museum.example/shapes#Person"},
}
FOUND_S = 20.0  # on a busy machine


@pytest.fixture(scope="module")
def museum(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service with the museum's data, and an index for each kind of shape."""
    service = Service(tmp_path_factory.mktemp("following") / "data", search=True)
    try:
        service.start()
        service.wait_until(lambda: search(service, "_cat/indices").status_code == 200, 60)
        for path in sorted(MUSEUM.iterdir()):
            media_type = "application/trig" if path.suffix == ".trig" else "text/turtle"
            post(service, "data", path.read_bytes(), media_type)
        for name, shape in SHAPES.items():
            body = {"settings": {"graph": {"shape": shape}}}
            httpx.put(f"{service.search_url}/{name}", json=body, trust_env=False).raise_for_status()
        yield service
    finally:
        service.close()


def post(service: Service, path: str, content: bytes, media_type: str) -> None:
    headers = {"Content-Type": media_type}
    url = f"{service.url}/{path}"
    httpx.post(url, content=content, headers=headers, timeout=HANG_S, trust_env=False).raise_for_status()


def update(service: Service, text: str) -> None:
    post(service, "update", (PREFIXES + text).encode(), "application/sparql-update")


def search(service: Service, path: str, **parameters: Any) -> httpx.Response:
    return httpx.get(f"{service.search_url}/{path}", params=parameters, trust_env=False)


def count(service: Service, index: str, query: str) -> Callable[[], int]:
    return lambda: int(search(service, f"{index}/_count", q=query).json().get("count", -1))


def await_count(service: Service, index: str, query: str, wanted: int) -> None:
    took_s = service.wait_until(lambda: count(service, index, query)() == wanted, FOUND_S)
    print(f"{index} {query}: {took_s:.1f} s")


def test_what_sparql_changes_is_found(museum: Service) -> None:
    await_count(museum, "paintings", "heron", 1)
    update(
        museum,
        'INSERT DATA { :calm a m:Painting ; m:frame [ m:wood "oak" ] . [] a m:Painting ; m:title "Nix" }',
    )
    await_count(museum, "paintings", "frame.wood:oak", 1)
    await_count(museum, "paintings", "title:nix", 1)
    update(museum, 'DELETE { ?f m:wood "oak" } INSERT { ?f m:wood "elm" } WHERE { :calm m:frame ?f }')
    await_count(museum, "paintings", "frame.wood:elm", 1)
    update(museum, "DELETE { ?f ?p ?o . :calm m:frame ?f } WHERE { :calm m:frame ?f . ?f ?p ?o }")
    await_count(museum, "paintings", "frame.wood:elm", 0)


def test_what_is_not_the_documents_own_resource_is_followed_too(museum: Service) -> None:
    await_count(museum, "people", "from:lindhaven", 3)
    await_count(museum, "persons", "birthplace.label:lindhaven", 3)
    update(museum, 'DELETE DATA { :lindhaven rdfs:label "Lindhaven"@en }')
    update(museum, 'INSERT DATA { :lindhaven rdfs:label "Newhaven"@en }')
    await_count(museum, "people", "from:newhaven", 3)
    await_count(museum, "persons", "birthplace.label:newhaven", 3)


def test_what_changes_while_the_search_is_dead_is_followed(museum: Service) -> None:
    update(museum, 'INSERT DATA { :gone a m:Painting ; m:title "Gone" }')
    await_count(museum, "paintings", "title:gone", 1)
    museum.kill("SearchPort")
    update(museum, 'DELETE WHERE { :gone ?p ?o } ; INSERT DATA { :come a m:Painting ; m:title "Come" }')
    await_count(museum, "paintings", "title:come", 1)
    await_count(museum, "paintings", "title:gone", 0)
    following = search(museum, "paintings/_stats").json()["indices"]["paintings"]["graph"]
    assert (following["state"], following["failed_documents"]) == ("following", 0)


def test_clients_do_not_write(museum: Service) -> None:
    answer = httpx.put(f"{museum.search_url}/paintings/_doc/1", json={}, trust_env=False)
    assert answer.status_code == 400
    assert "follows the graph" in answer.json()["error"]["reason"]


def test_what_is_purged_is_in_no_file(museum: Service) -> None:
    name, title = "https://museum.example/id/erased-4711", "Erasmus-0815"
    update(museum, f'INSERT DATA {{ <{name}> a m:Painting ; m:title "{title}" . :calm m:like <{name}> }}')
    await_count(museum, "paintings", "title:0815", 1)
    purge = f"{museum.url}/history/purge"
    httpx.post(purge, params={"resource": name}, timeout=120, trust_env=False).raise_for_status()
    museum.wait_until(lambda: httpx.get(purge, trust_env=False).json()["purges"][-1]["done"], 120)
    assert count(museum, "paintings", "title:0815")() == 0
    assert files_with(museum.data_dir, name, title, "erased-4711") == []
    museum.stop()
    assert files_with(museum.data_dir, name, title, "erased-4711") == []
    museum.start()
