"""Search in a browser: facets, marked hits, vectors, why a score, the request, to the graph and back."""

import json
from collections.abc import Iterator

import httpx
import pytest

from tests.support.chromium import Chromium
from tests.support.service import Service
from tests.support.timing import HANG_S
from tests.workbench.test_explore import holds, press_button

pytestmark = [pytest.mark.ray, pytest.mark.slow]

ID = "https://museum.example/id/"
DOCUMENTS = {
    "ebb": {
        "title": "Ebb",
        "about": "Wet sand and a heron",
        "kind": "painting",
        "year": 1869,
        "vector": [1, 0.2, 0],
    },
    "herring-boats": {
        "title": "Herring Boats",
        "about": "A storm",
        "kind": "painting",
        "year": 1874,
        "vector": [0, 1, 0],
    },
    "storm-glass": {
        "title": "Storm Glass",
        "about": "After a storm",
        "kind": "glass",
        "year": 1909,
        "vector": [0.9, 0.1, 0],
    },
    "bad": {
        "title": "<img src=x onerror='window.ran = 1'> storm",
        "kind": "glass",
        "year": 2000,
        "vector": [0, 0, 1],
    },
}


@pytest.fixture(scope="module")
def works(museum: Service) -> Iterator[str]:
    """An index with texts, facets and vectors, whose documents are resources of the museum."""
    with httpx.Client(base_url=museum.search_url, timeout=HANG_S, trust_env=False) as client:
        fill(client)
        yield "works"
        client.delete("/works").raise_for_status()


def fill(client: httpx.Client) -> None:
    """Make the index and store the documents."""
    fields = {
        "title": {"type": "text"},
        "about": {"type": "text"},
        "kind": {"type": "keyword"},
        "year": {"type": "integer"},
        "vector": {"type": "dense_vector", "dims": 3, "index": True, "similarity": "cosine"},
    }
    client.put("/works", json={"mappings": {"properties": fields}}).raise_for_status()
    lines = [line for name, one in DOCUMENTS.items() for line in ({"index": {"_id": ID + name}}, one)]
    body = "".join(json.dumps(line) + "\n" for line in lines)
    client.post(
        "/works/_bulk?refresh=true", content=body, headers={"Content-Type": "application/x-ndjson"}
    ).raise_for_status()


def open_search(service: Service, page: Chromium, parameters: str) -> None:
    page.open(f"{service.url}/#/search?index=works&{parameters}")
    page.wait_for("!!document.querySelector('.hit')")


def titles(page: Chromium) -> list[str]:
    found: list[str] = page.evaluate(
        "[...document.querySelectorAll('.hit h3')].map((one) => one.textContent)"
    )
    return found


def test_one_box_marks_what_it_finds(museum: Service, page: Chromium, works: str) -> None:
    page.open(f"{museum.url}/#/search?index=works")
    page.wait_for("document.querySelectorAll('.hit').length === 4")
    page.evaluate("document.querySelector('.search-box input').focus()")
    page.write("heron")
    page.press("Enter")
    page.wait_for("document.querySelector('.hit mark')?.textContent === 'heron'")
    assert titles(page) == ["Ebb"]


def test_facets_narrow_and_count(museum: Service, page: Chromium, works: str) -> None:
    open_search(museum, page, "q=storm")
    page.wait_for(holds(".facets", "glass"))
    page.evaluate(
        "[...document.querySelectorAll('.facets label')].find((one) => /glass/.test(one.textContent)).click()"
    )
    page.wait_for("document.querySelectorAll('.hit').length === 2")
    assert page.evaluate(holds(".facets label", "painting1"))  # further values can still be added
    press_button(page, "Clear filters")
    page.wait_for("document.querySelectorAll('.hit').length === 3")


def test_vectors_and_both(museum: Service, page: Chromium, works: str) -> None:
    open_search(museum, page, "q=heron")
    press_button(page, "Similar", ".hit")
    page.wait_for("document.querySelectorAll('.hit').length === 4")
    assert titles(page)[:2] == ["Ebb", "Storm Glass"]
    press_button(page, "Hybrid", ".search-options")
    page.wait_for(holds(".request pre", "rrf"))
    page.wait_for("document.querySelector('.hit mark')?.textContent === 'heron'")
    press_button(page, "Why", ".hit")
    page.wait_for(holds(".why", "rank [1]"))


def test_reasons_and_the_request(museum: Service, page: Chromium, works: str) -> None:
    open_search(museum, page, "q=heron")
    press_button(page, "Why", ".hit")
    page.wait_for(holds(".why", "weight(about:heron"))
    page.press("Escape")
    page.wait_for("!document.querySelector('dialog')")
    page.evaluate("document.querySelector('.request summary').click()")
    press_button(page, "curl", ".request")
    page.wait_for(holds(".request pre", "curl -s"))
    assert f"{museum.search_port}/works/_search" in page.evaluate(
        "document.querySelector('.request pre').textContent"
    )
    press_button(page, "JSON", ".request")
    page.wait_for(holds(".request pre", "POST /works/_search"))
    text = page.evaluate("document.querySelector('.request pre').textContent").partition("\n")[2]
    answer = httpx.post(f"{museum.search_url}/works/_search", json=json.loads(text), trust_env=False)
    assert answer.json()["hits"]["hits"][0]["_id"] == f"{ID}ebb"


def test_from_a_hit_to_the_graph_and_back(museum: Service, page: Chromium, works: str) -> None:
    open_search(museum, page, "q=heron")
    page.click(".hit h3 a")
    page.wait_for(holds("h1", "Ebb"))
    page.wait_for(holds(".small-card", "works"))
    press_button(page, "works", ".small-card")
    page.wait_for("document.querySelectorAll('.hit').length === 1")
    press_button(page, "Graph", ".hit")
    page.wait_for("!!document.querySelector('.graph-canvas canvas')")


def test_hostile_documents_run_nothing(museum: Service, page: Chromium, works: str) -> None:
    open_search(museum, page, "q=storm")
    page.wait_for(holds(".hit h3", "<img src=x"))
    assert page.evaluate("window.ran === undefined")
    assert page.evaluate("document.querySelectorAll('.main img').length") == 0


def test_an_index_of_a_class_is_made_here(museum: Service, page: Chromium, works: str) -> None:
    page.open(f"{museum.url}/#/search")
    press_button(page, "New index")
    option = "[...document.querySelectorAll('dialog option')].find((one) => /Museum/.test(one.textContent))"
    page.wait_for(f"!!{option}")
    page.evaluate(
        f"(() => {{ const list = document.querySelector('dialog select'); list.value = {option}.value; "
        "list.dispatchEvent(new Event('change', {bubbles: true})); })()"
    )
    page.wait_for("document.querySelector('dialog input').value === 'museum'")
    page.click("dialog .button.primary")
    page.wait_for("location.hash.includes('index=museum')")
    httpx.delete(f"{museum.search_url}/museum", trust_env=False).raise_for_status()


def test_it_fits_a_narrow_screen(museum: Service, page: Chromium, works: str) -> None:
    page.resize(360, 640)
    open_search(museum, page, "q=storm")
    assert page.evaluate("document.querySelector('.main').scrollWidth") <= 360
    page.click(".facets-toggle")
    page.wait_for("document.querySelector('.facet-list').getBoundingClientRect().height > 0")
