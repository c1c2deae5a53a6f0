"""The query page in a browser."""

import json
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode
from xml.etree import ElementTree

import httpx
import pytest

from tests.support.chromium import Chromium
from tests.support.service import Service
from tests.support.timing import HANG_S

pytestmark = [pytest.mark.ray, pytest.mark.slow]

# about 38 million rows before the count
ENDLESS = (
    "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i FILTER(STRLEN(STR(?c)) < STRLEN(STR(?i))) }"
)
ROWS = 100_000


def open_query(museum: Service, page: Chromium, text: str, view: str = "table", run: bool = True) -> None:
    """Open a link to a query."""
    told = {"query": text, "view": view} | ({"run": "1"} if run else {})
    page.open(f"{museum.url}/?{time.monotonic_ns()}#/query?{urlencode(told)}")


def status(page: Chromium) -> str:
    """What the answer's head says, once it says how many rows there are."""
    found: str = page.wait_for(
        "((found) => /rows?|triples?/.test(found) && !document.querySelector('.rstatus .spinner') && found)"
        "(document.querySelector('.rstatus')?.textContent ?? '')",
        60,
    )
    return found


@pytest.fixture(scope="module")
def many(museum: Service) -> Iterator[None]:
    """A graph of 100,000 triples."""
    lines = "".join(f"<urn:row:{n}> <urn:number> {n} .\n" for n in range(ROWS))
    answer = httpx.put(
        f"{museum.url}/data?graph=urn:many",
        content=lines,
        headers={"Content-Type": "text/turtle"},
        trust_env=False,
        timeout=120,
    )
    assert answer.is_success, answer.text
    yield
    httpx.delete(f"{museum.url}/data?graph=urn:many", trust_env=False, timeout=HANG_S)


def test_a_query_is_written_and_run_with_the_keyboard(museum: Service, page: Chromium) -> None:
    open_query(museum, page, "", run=False)
    page.open(f"{museum.url}/")
    page.click(".cm-content")
    page.press("a", control=True)
    page.press("Backspace")  # the browser itself would keep the style of what is typed over
    page.write("SELECT ?work { ?work a <https://museum.example/ontology#Painting> }")
    page.press("Enter", control=True)
    assert "rows" in status(page)
    page.wait_for("/Ebb/.test(document.querySelector('.vbody').textContent)")  # a label, in place of the IRI


def test_an_error_is_underlined_where_it_is(museum: Service, page: Chromium) -> None:
    open_query(museum, page, "SELECT * {\n  ?s ?p ?o FILTER( }")
    message = page.wait_for("document.querySelector('.results .notice.bad')?.textContent")
    assert "line 2" in message
    page.wait_for("!!document.querySelector('.cm-lintRange-error')")
    page.complaints[:] = [
        one for one in page.complaints if "400" not in one
    ]  # the browser reports the status


def test_an_error_is_underlined_while_one_writes(museum: Service, page: Chromium) -> None:
    open_query(museum, page, "ASK {}", run=False)
    page.click(".cm-content")
    page.press("a", control=True)
    page.press("Backspace")
    page.write("SELECT * {\n  ?s ?p FILTER }")
    told = page.wait_for("document.querySelector('.qwrong')?.textContent")
    assert told.startswith("Line 2, column 9 expected")
    page.wait_for("document.querySelector('.cm-lintRange-error')?.textContent === 'FILTER'")
    page.press("a", control=True)
    page.press("Backspace")
    page.write("INSERT DATA { <urn:a> <urn:b> ?c }")
    page.wait_for("document.querySelector('.cm-lintRange-error')?.textContent === '?c'")
    page.press("a", control=True)
    page.press("Backspace")
    page.write("SELECT * { ?s ?p ?o }")
    page.wait_for(
        "!document.querySelector('.cm-lintRange-error') && !document.querySelector('.qwrong').textContent"
    )


def test_an_answer_says_who_made_it_and_why(museum: Service, page: Chromium) -> None:
    open_query(museum, page, "SELECT ?p (COUNT(*) AS ?n) { ?s ?p ?o . ?o ?q ?r } GROUP BY ?p")
    assert "index" in status(page)
    page.click(".engine button")
    page.wait_for("/GROUP BY collects the rows first/.test(document.querySelector('.why')?.textContent)")


def test_a_query_is_formatted(museum: Service, page: Chromium) -> None:
    open_query(museum, page, "select * where{?s ?p ?o. # all\noptional{?s a ?c}}limit 3", run=False)
    page.wait_for("/limit 3/.test(document.querySelector('.cm-content')?.textContent)")
    page.click("[title='Format the query']")
    page.wait_for("/LIMIT 3/.test(document.querySelector('.cm-content').textContent)")
    lines = page.evaluate("[...document.querySelectorAll('.cm-line')].map((one) => one.textContent)")
    assert [one for one in lines if one] == [
        "SELECT *",
        "WHERE {",
        "  ?s ?p ?o .",
        "  # all",
        "  OPTIONAL {",
        "    ?s a ?c",
        "  }",
        "}",
        "LIMIT 3",
    ]


def test_completion_finds_resources_by_their_labels(museum: Service, page: Chromium) -> None:
    open_query(museum, page, "SELECT * { ?work ?by ", run=False)
    page.click(".cm-content")
    page.press("End", control=True)
    page.write("Ada")
    page.press(" ", control=True)
    page.wait_for(
        "[...document.querySelectorAll('.cm-tooltip-autocomplete li')]"
        ".some((one) => /Ada Holm/.test(one.textContent))"
    )
    page.press("Escape")


def test_completion_knows_the_data(museum: Service, page: Chromium) -> None:
    head = "PREFIX m: <https://museum.example/ontology#>\nSELECT * { ?x a m:Loan ; "
    open_query(museum, page, head, run=False)
    page.click(".cm-content")
    page.press("End", control=True)
    page.write("m:l")
    shown = page.wait_for(
        "[...document.querySelectorAll('.cm-tooltip-autocomplete li')].map((one) => one.textContent).join()",
    )
    assert shown.startswith("m:lentTo")
    page.press("Escape")


def test_cancelling_stops_the_evaluator(museum: Service, page: Chromium) -> None:
    open_query(museum, page, ENDLESS)
    deadline = time.monotonic() + HANG_S
    while not (running := running_queries(museum)):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert running[0]["text"] == ENDLESS
    page.click(".cm-content")
    page.press("Escape")
    page.wait_for("/Cancelled/.test(document.querySelector('.results').textContent)")
    while running_queries(museum):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    page.complaints[:] = [one for one in page.complaints if "503" not in one]


def running_queries(museum: Service) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = httpx.get(f"{museum.url}/queries", trust_env=False).json()["queries"]
    return found


def test_a_hundred_thousand_rows_scroll(museum: Service, page: Chromium, many: None) -> None:
    open_query(museum, page, "SELECT ?row ?n { GRAPH <urn:many> { ?row <urn:number> ?n } } ORDER BY ?n")
    assert "100,000" in status(page)
    frames = page.evaluate(
        """(async () => {
            const table = document.querySelector('.vtable');
            const frames = [];
            let before = performance.now();
            for (let at = 0; at < 60; at++) {
                table.scrollTop = at * 40000;
                await new Promise(requestAnimationFrame);
                frames.push(performance.now() - before);
                before = performance.now();
            }
            return frames.sort((one, other) => one - other);
        })()"""
    )
    assert frames[len(frames) // 2] < 50, frames  # ms, on a machine that does other things too
    page.evaluate("document.querySelector('.vtable').scrollTop = 1e9")
    page.wait_for("/99999|99,999/.test(document.querySelector('.vbody').textContent)")
    assert page.evaluate("document.querySelectorAll('.vbody .vrow').length") < 100


def test_rows_are_filtered_and_sorted(museum: Service, page: Chromium, many: None) -> None:
    open_query(museum, page, "SELECT ?n { GRAPH <urn:many> { ?row <urn:number> ?n } }")
    status(page)
    page.click(".vfilter")
    page.write("9999")
    page.wait_for("document.querySelector('.vtable').ariaRowCount !== '100001'")
    page.click(".vsort")
    page.wait_for("/^\\s*\\d+9999\\b/.test(document.querySelector('.vbody .vrow').textContent)")


def test_an_update_asks_before_it_removes_much(museum: Service, page: Chromium, many: None) -> None:
    open_query(museum, page, "DELETE WHERE { GRAPH <urn:many> { ?s <urn:number> ?o } }", run=False)
    page.wait_for("/Apply update/.test(document.querySelector('.qbar')?.textContent ?? '')")
    page.click(".qbar .button.primary")
    page.wait_for("/100,000/.test(document.querySelector('dialog')?.textContent ?? '')")
    page.click("dialog .foot .button:first-child")
    page.wait_for("!document.querySelector('dialog')")
    assert museum.select("SELECT (COUNT(*) AS ?n) { GRAPH <urn:many> { ?s ?p ?o } }") == [{"n": str(ROWS)}]


def test_an_update_says_what_it_changed(museum: Service, page: Chromium) -> None:
    open_query(museum, page, 'INSERT DATA { GRAPH <urn:new> { <urn:a> <urn:b> "c" } }', run=False)
    page.wait_for("/Apply update/.test(document.querySelector('.qbar')?.textContent ?? '')")
    page.click(".qbar .button.primary")
    page.wait_for("/1\\s*triple added or removed/.test(document.querySelector('.results').textContent)")
    museum.update("DROP SILENT GRAPH <urn:new>")


def test_tabs_survive_a_reload(museum: Service, page: Chromium) -> None:
    open_query(museum, page, "ASK { <urn:kept> ?p ?o }", run=False)
    page.wait_for("/urn:kept/.test(document.querySelector('.cm-content')?.textContent ?? '')")
    page.open(f"{museum.url}/?again")
    page.wait_for("/urn:kept/.test(document.querySelector('.cm-content')?.textContent ?? '')")


@pytest.mark.parametrize("view", ["chart", "map", "raw", "explain"])
def test_views_show_the_answer(museum: Service, page: Chromium, view: str) -> None:
    text = """
        PREFIX geo: <http://www.opengis.net/ont/geosparql#>
        PREFIX m: <https://museum.example/ontology#>
        SELECT * { ?work m:depicts ?place ; m:heightCm ?height . ?place geo:asWKT ?where }"""
    open_query(museum, page, text, view)
    wanted = {
        "chart": ".drawing svg",
        "map": ".map .leaflet-interactive",
        "raw": ".rawtext",
        "explain": ".figures",
    }
    page.wait_for(f"!!document.querySelector({json.dumps(wanted[view])})")


@pytest.mark.parametrize("view", ["chart", "map"])
def test_a_picture_is_copied(museum: Service, page: Chromium, view: str) -> None:
    page.allow_clipboard(museum.url)
    text = """
        PREFIX geo: <http://www.opengis.net/ont/geosparql#>
        PREFIX m: <https://museum.example/ontology#>
        SELECT * { ?work m:depicts ?place ; m:heightCm ?height . ?place geo:asWKT ?where }"""
    open_query(museum, page, text, view)
    page.wait_for(
        f"!!document.querySelector('{'.drawing svg' if view == 'chart' else '.leaflet-interactive'}')"
    )
    pick_picture(page, "Copy as PNG")
    page.wait_for("/PNG|picture is in the clipboard/.test(document.querySelector('.toasts')?.textContent)")
    size = page.evaluate(
        "(async () => { const [item] = await navigator.clipboard.read(); "
        "const image = await createImageBitmap(await item.getType('image/png')); "
        "return [image.width, image.height]; })()"
    )
    assert min(size) > 300
    pick_picture(page, "Copy as SVG")
    page.wait_for("/as SVG/.test(document.querySelector('.toasts')?.textContent)")
    drawing = page.evaluate("navigator.clipboard.readText()")
    root = ElementTree.fromstring(drawing)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert len(list(root.iter("{http://www.w3.org/2000/svg}path"))) > 3


def pick_picture(page: Chromium, what: str) -> None:
    page.click("button[title='Copy or save the picture']")
    page.evaluate(
        "[...document.querySelectorAll('.menu .item')]"
        f".find((one) => one.textContent.includes({json.dumps(what)})).click()"
    )


def test_a_query_is_saved_in_the_service(museum: Service, page: Chromium) -> None:
    open_query(museum, page, "ASK { <urn:saved> ?p ?o }", run=False)
    page.wait_for("/urn:saved/.test(document.querySelector('.cm-content')?.textContent ?? '')")
    page.click("[title^='Save the query']")
    page.wait_for("!!document.querySelector('dialog input')")
    page.click("dialog input")
    page.press("a", control=True)
    page.write("A saved one")
    page.click("dialog .button.primary")
    page.wait_for("!document.querySelector('dialog')")
    kept = httpx.get(f"{museum.url}/saved-queries", trust_env=False).json()["queries"]
    assert [one["query"] for one in kept if one["name"] == "A saved one"] == ["ASK { <urn:saved> ?p ?o }"]


HOSTILE = """PREFIX : <urn:hostile:> INSERT DATA { GRAPH <urn:hostile> {
    :a :markup "<img src=x onerror='window.hacked = 1'><script>window.hacked = 1</script>" ;
       :link <javascript:window.hacked=1> ; :data <data:text/html,%3Cscript%3Ewindow.hacked=1%3C/script%3E> ;
       <http://www.w3.org/2000/01/rdf-schema#label> "<b onmouseover=window.hacked=1>name</b>" ;
       :where "POINT(1 2)"^^<http://www.opengis.net/ont/geosparql#wktLiteral> } }"""


def test_hostile_literals_run_nothing(museum: Service, page: Chromium) -> None:
    museum.update(HOSTILE)
    text = "SELECT * { GRAPH <urn:hostile> { ?s ?p ?o } }"
    try:
        for view in ("table", "chart", "map", "graph", "raw"):
            open_query(museum, page, text, view)
            status(page)
            time.sleep(1)
            assert page.evaluate("window.hacked") is None
            assert page.evaluate("document.querySelectorAll('#main img[src=x], #main script').length") == 0
            links = page.evaluate("[...document.querySelectorAll('#main a')].map((one) => one.href)")
            assert [one for one in links if not one.startswith("http")] == []
    finally:
        museum.update("DROP GRAPH <urn:hostile>")


def test_a_literal_of_ten_megabytes(museum: Service, page: Chromium) -> None:
    long = "x" * 10_000_000
    answer = httpx.put(
        f"{museum.url}/data?graph=urn:long",
        content=f'<urn:a> <urn:b> "{long}" .',
        headers={"Content-Type": "text/turtle"},
        trust_env=False,
        timeout=HANG_S,
    )
    assert answer.is_success
    try:
        open_query(museum, page, "SELECT * { GRAPH <urn:long> { ?s ?p ?o } }")
        assert "1 row" in status(page)
        assert page.evaluate("document.querySelector('.vbody').innerHTML.length") < 10_000
    finally:
        museum.update("DROP GRAPH <urn:long>")
