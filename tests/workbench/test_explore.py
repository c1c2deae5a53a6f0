"""Explore in a browser: the overview, the page of a resource, editing, the graph that grows, hostile data."""

import json
from collections.abc import Iterator
from urllib.parse import quote

import httpx
import pytest

from tests.support.chromium import Chromium
from tests.support.service import Service

pytestmark = [pytest.mark.ray, pytest.mark.slow]

ID = "https://museum.example/id/"
ONTOLOGY = "https://museum.example/ontology#"
HUB = "https://museum.example/id/hub"
HOSTILE = "https://museum.example/id/hostile"
LONG = 10_000_000  # characters

# where nodes lie, by their keys
PLACES = "Object.fromEntries(document.querySelector('.graph-canvas').places)"


def update(service: Service, text: str) -> None:
    answer = httpx.post(
        f"{service.url}/update",
        content=text,
        headers={"Content-Type": "application/sparql-update"},
        timeout=120,
        trust_env=False,
    )
    assert answer.is_success, answer.text


def open_resource(service: Service, page: Chromium, iri: str, view: str = "") -> None:
    page.open(f"{service.url}/#/explore?iri={quote(iri, safe='')}{view}")


def holds(selector: str, text: str) -> str:
    """An expression: whether an element that a selector finds holds a text."""
    return (
        f"[...document.querySelectorAll({json.dumps(selector)})]"
        f".some((one) => one.textContent.includes({json.dumps(text)}))"
    )


def press_button(page: Chromium, text: str, within: str = ".main") -> None:
    """Click the first button or link whose text or name holds a text."""
    found = (
        f"[...document.querySelectorAll({json.dumps(f'{within} button, {within} a')})].find((one) => "
        f"(one.textContent + ' ' + (one.ariaLabel ?? '')).includes({json.dumps(text)}) && !one.disabled)"
    )
    page.wait_for(f"!!{found}")
    page.evaluate(f"{found}.click()")


@pytest.fixture(scope="module")
def hub(museum: Service) -> Iterator[str]:
    """A resource that sixty others point to."""
    triples = " ".join(f"<{HUB}/{number}> <{ONTOLOGY}near> <{HUB}> ." for number in range(60))
    update(museum, f"INSERT DATA {{ {triples} }}")
    yield HUB
    update(museum, f"DELETE DATA {{ {triples} }}")


@pytest.fixture(scope="module")
def hostile(museum: Service) -> Iterator[str]:
    """A resource whose values would run as scripts in a careless page, and one that is 10 MB long."""
    triples = f"""
        <{HOSTILE}> <http://www.w3.org/2000/01/rdf-schema#label> "<img src=x onerror='window.ran = 1'>" ;
            <{ONTOLOGY}page> <javascript:window.ran=1> ;
            <http://xmlns.com/foaf/0.1/depiction> <javascript:window.ran=1> , <data:text/html,window.ran> ;
            <{ONTOLOGY}text> "{"long " * (LONG // 5)}" ."""
    update(museum, f"INSERT DATA {{ {triples} }}")
    yield HOSTILE
    update(museum, f"DELETE WHERE {{ <{HOSTILE}> ?p ?o }}")


def test_the_overview_leads_to_classes_and_resources(museum: Service, page: Chromium) -> None:
    page.open(f"{museum.url}/#/explore")
    page.wait_for(holds(".bars a", "Painting"))
    row = "[...document.querySelectorAll('.bars li')].find((one) => one.textContent.includes('Painting'))"
    assert page.evaluate(f"{row}.querySelector('.num').textContent") == "7"
    assert page.evaluate(f"{row}.querySelector('a[aria-label^=Query]').hash").startswith(
        "#/query?query=SELECT"
    )
    page.evaluate(f"{row}.querySelector('a').click()")
    page.wait_for(holds(".figure b", "7"))
    page.wait_for(holds(".bars li", "100 %"))  # all of them have a title
    page.wait_for(holds(".arrows a", "Ebb"))
    press_button(page, "Ebb", ".arrows")
    page.wait_for(holds("h1", "Ebb"))


def test_a_resource_is_found_by_its_name(museum: Service, page: Chromium) -> None:
    page.open(f"{museum.url}/#/explore")
    page.wait_for(holds(".bars a", "Painting"))  # prefixes and labels are known
    page.evaluate("document.querySelector('.find input').focus()")
    page.write("herring")
    page.wait_for(holds(".found", "Herring Boats"))
    page.press("Enter")
    page.wait_for(holds("h1", "Herring Boats"))


def test_the_page_of_a_resource(museum: Service, page: Chromium) -> None:
    open_resource(museum, page, f"{ID}ada-holm")
    page.wait_for(holds("h1", "Ada Holm"))
    page.wait_for(holds(".badge", "Person"))
    page.wait_for(holds(".property", "1838-03-02"))
    page.wait_for(holds(".arrows li", "The Pilot"))
    page.wait_for(holds(".badge.good", "Conforms"))
    open_resource(museum, page, f"{ID}lindhaven")
    page.wait_for(holds(".small-card", "Where it is"))
    page.wait_for(holds(".small-card", "POINT(10.42 54.61)"))
    page.wait_for("!!document.querySelector('.places-map .leaflet-overlay-pane path')")


def test_what_points_to_it_is_paged_and_counted(museum: Service, page: Chromium, hub: str) -> None:
    open_resource(museum, page, hub)
    page.wait_for(holds(".pager", "1–25 of 60"))
    first = page.evaluate("document.querySelector('.arrows').textContent")
    page.click(".pager [title='Next page']")
    page.wait_for(holds(".pager", "26–50 of 60"))
    page.wait_for(f"document.querySelector('.arrows').textContent !== {json.dumps(first)}")
    page.click(".pager [title='Next page']")
    page.wait_for("document.querySelectorAll('.arrows li').length === 10")
    assert page.evaluate("document.querySelector('.pager [title=\"Next page\"]').disabled")


def test_a_value_is_edited_and_shapes_speak_at_its_field(museum: Service, page: Chromium) -> None:
    year = f"ASK {{ <{ID}flood> <{ONTOLOGY}year> %s }}"

    def is_there(value: str) -> bool:
        answer = httpx.post(f"{museum.url}/sparql", data={"query": year % value}, trust_env=False)
        return bool(answer.json()["boolean"])

    open_resource(museum, page, f"{ID}flood")
    page.wait_for(holds(".badge.good", "Conforms"))
    press_button(page, ": 1936", ".property")
    page.wait_for("document.activeElement?.getAttribute('aria-label') === 'Value'")
    page.press("Escape")
    page.wait_for("!document.querySelector('.value-form')")
    press_button(page, ": 1936", ".property")
    page.wait_for("document.activeElement?.getAttribute('aria-label') === 'Value'")
    page.evaluate("document.activeElement.select()")
    page.write("1236")
    page.press("Enter")
    at_the_field = (
        "[...document.querySelectorAll('.property')].find((one) => one.textContent.includes('1236'))"
    )
    page.wait_for(f"!!{at_the_field}?.querySelector('.finding.violation')")  # at least 1500
    assert is_there("1236")
    press_button(page, "Undo", ".toasts")
    page.wait_for(holds(".property", "1936"))
    page.wait_for(holds(".badge.good", "Conforms"))
    assert is_there("1936")
    assert not is_there("1236")


def test_the_graph_grows_where_one_clicks(museum: Service, page: Chromium) -> None:
    open_resource(museum, page, f"{ID}ada-holm", "&view=graph")
    page.wait_for(holds(".way", "creator"))
    assert page.evaluate(
        "[...document.querySelectorAll('.way')]"
        ".find((one) => /creator/.test(one.title)).textContent.endsWith('3')"
    )
    press_button(page, "creator", ".inspector")
    page.wait_for(holds(".counts", "4 nodes, 3 edges"))
    before = page.evaluate(PLACES)
    press_button(page, "taughtBy", ".inspector")
    page.wait_for(holds(".counts", "5 nodes, 4 edges"))
    after = page.evaluate(PLACES)
    assert {key: after[key] for key in before} == before  # nothing jumps
    press_button(page, "Pin", ".inspector")
    page.wait_for(holds(".inspector", "Pinned"))
    press_button(page, "Collapse", ".inspector")
    page.wait_for(holds(".counts", "1 node, 0 edges"))
    press_button(page, "creator", ".inspector")
    page.wait_for(holds(".counts", "4 nodes, 3 edges"))
    page.click(".inspector [title='Close (Escape)']")
    page.wait_for(holds(".legend", "Painting"))
    page.evaluate(
        "[...document.querySelectorAll('.legend label')]"
        ".find((one) => /Painting/.test(one.textContent)).click()"
    )
    page.wait_for(holds(".counts", "1 node, 0 edges"))


def test_the_graph_needs_no_mouse(museum: Service, page: Chromium) -> None:
    open_resource(museum, page, f"{ID}ada-holm", "&view=graph")
    page.wait_for(holds(".way", "creator"))
    page.evaluate("document.querySelector('.graph-canvas').focus()")
    page.press("Enter")
    page.wait_for(holds(".counts", "6 nodes, 5 edges"))
    for key in ("ArrowRight", "ArrowLeft", "ArrowUp", "ArrowDown"):
        page.press(key)
    page.press("p")
    page.wait_for(holds(".inspector", "Pinned"))
    page.press("Escape")
    page.wait_for("!document.querySelector('.inspector')")


def test_how_classes_connect(museum: Service, page: Chromium) -> None:
    page.open(f"{museum.url}/#/explore?view=shape")
    page.wait_for(holds(".legend", "creator"))
    page.wait_for(f"'{ONTOLOGY}Painting' in {PLACES}")


def test_hostile_values_run_nothing(museum: Service, page: Chromium, hostile: str) -> None:
    open_resource(museum, page, hostile)
    page.wait_for(holds("h1", "<img src=x"))
    page.wait_for(holds(".long-text", "of 10,000,000 characters"))
    assert page.evaluate("window.ran === undefined")
    assert page.evaluate(
        "[...document.querySelectorAll('a')].every((one) => ['http:', 'https:'].includes(one.protocol))"
    )
    assert page.evaluate("document.querySelectorAll('.main img').length") == 0
    open_resource(museum, page, hostile, "&view=graph")
    page.wait_for(holds(".counts", "1 node"))
    assert page.evaluate("window.ran === undefined")


@pytest.mark.parametrize("view", ["", "&view=graph"])
def test_it_fits_a_narrow_screen(museum: Service, page: Chromium, view: str) -> None:
    page.resize(360, 640)
    open_resource(museum, page, f"{ID}ada-holm", view)
    page.wait_for(holds("h1", "Ada Holm"))
    page.wait_for("!!document.querySelector('.property, .way')")
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    assert page.evaluate("document.querySelector('.main').scrollWidth") <= 360
