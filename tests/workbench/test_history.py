"""The past in a browser: the history of a resource, queries of a past state, the difference of two states."""

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlencode

import httpx
import pytest

from tests.support.chromium import Chromium
from tests.support.service import Service
from tests.workbench.test_explore import holds, open_resource, press_button
from tests.workbench.test_query import open_query, status

pytestmark = [pytest.mark.ray, pytest.mark.slow]

GRAPH = "urn:past:graph"
COUNTER = "urn:past:counter"
VALUES = 30  # more than a page of the history
QUERY = f"SELECT ?value {{ GRAPH <{GRAPH}> {{ <{COUNTER}> <urn:past:value> ?value }} }}"
HOSTILE = "<img src=x onerror='window.ran = 1'>"


@pytest.fixture(scope="module")
def indexes(museum: Service) -> Iterator[list[int]]:
    """The log index at which a counter in a graph of its own has the value 0, 1, 2, ..."""
    at = f"GRAPH <{GRAPH}> {{ <{COUNTER}> <urn:past:value> %s }}"
    found = [museum.update(f"INSERT DATA {{ {at % 0} }}")["snapshot_index"]]
    for value in range(1, VALUES):
        text = f"DELETE DATA {{ {at % (value - 1)} }} ; INSERT DATA {{ {at % value} }}"
        found.append(museum.update(text)["snapshot_index"])
    yield found
    museum.update(f"DROP GRAPH <{GRAPH}>")


def value_shown(value: int) -> str:
    """An expression: whether the answer is this value of the counter."""
    return f"document.querySelector('.vbody .vrow .vcell:last-child')?.textContent === '{value}'"


def choose_state(page: Chromium, text: str) -> None:
    """The field may be drawn anew, once the page has heard of the newest state, and take the keys with it."""
    written = f"document.querySelector('.as-of .input')?.value === {json.dumps(text)}"
    for _ in range(5):
        page.click(".as-of .input")
        page.press("a", control=True)
        page.press("Backspace")
        page.write(text)
        if page.evaluate(written):
            break
    page.wait_for(written)
    page.press("Enter")


def time_of(museum: Service, indexes: list[int], value: int) -> tuple[str, int]:
    """When the counter got a value; the last one that it got in the same millisecond."""
    told = {"resource": COUNTER, "from": str(indexes[value] - 1)}
    entries = httpx.get(f"{museum.url}/history", params=told, trust_env=False).json()["entries"]
    when = {entry["index"]: entry["timestamp"] for entry in entries}
    timestamp = when[indexes[value]]
    return timestamp, max(other for other, index in enumerate(indexes) if when.get(index, "") == timestamp)


def lines(page: Chromium) -> Any:
    """What is changed, line by line: its class and its text."""
    return page.evaluate(
        "[...document.querySelectorAll('.changed > li')].map((one) => [one.className, one.textContent])"
    )


def test_the_history_of_a_resource(museum: Service, page: Chromium, indexes: list[int]) -> None:
    open_resource(museum, page, COUNTER, "&view=history")
    page.wait_for("document.querySelectorAll('.change').length === 25")
    newest = "document.querySelector('.change')"
    text = page.evaluate(f"{newest}.textContent")
    assert f"index {indexes[-1]:,}" in text
    assert "sparql-update" in text
    removed, added = lines(page)[:2]
    assert removed[0] == "removed"
    assert removed[1].startswith("−removed")
    assert added[0] == "added"
    assert added[1].startswith("+added")
    assert "28" in removed[1]
    assert "29" in added[1]
    assert GRAPH in added[1]
    press_button(page, "Older changes")
    page.wait_for(f"document.querySelectorAll('.change').length === {VALUES}")
    page.wait_for("!document.querySelector('.change ~ .button, .card > .body .button')")
    press_button(page, "As of then", f".change:nth-child({VALUES - 9})")  # the value was 9
    page.wait_for("location.hash === '#/query'")
    assert "1 row" in status(page)
    page.wait_for(holds(".vbody .vcell", "9"))
    page.wait_for(holds(".rstatus .badge", f"as of index {indexes[9]:,}"))


def test_a_query_of_the_past(museum: Service, page: Chromium, indexes: list[int]) -> None:
    open_query(museum, page, QUERY)
    status(page)
    page.wait_for(value_shown(VALUES - 1))
    page.click("[title='Query a state of the past']")
    page.wait_for("document.querySelector('.as-of [type=range]')?.disabled === false")
    choose_state(page, f"{indexes[5]:,}")
    page.wait_for(value_shown(5))
    page.wait_for(holds(".rstatus .badge", f"as of index {indexes[5]:,}"))
    page.wait_for(holds(".as-of-told", "Made"))
    # the slider goes on from there, by the keyboard too
    page.evaluate("document.querySelector('.as-of [type=range]').focus()")
    page.press("ArrowRight")
    page.wait_for(value_shown(6))
    # a time is the state after the last change that is not later
    timestamp, value = time_of(museum, indexes, 7)
    choose_state(page, timestamp)
    page.wait_for(value_shown(value))
    # the tab keeps it
    page.open(f"{museum.url}/?reloaded")
    page.wait_for(f"document.querySelector('.as-of .input')?.value === {json.dumps(timestamp)}")
    # an update is of the present
    page.click(".cm-content")
    page.press("a", control=True)
    page.press("Backspace")
    page.write("INSERT DATA { <urn:past:never> <urn:past:never> 1 }")
    page.wait_for(holds(".as-of-told", "nothing can be changed in the past"))
    assert page.evaluate("document.querySelector('.as-of [type=range]').disabled")
    press_button(page, "Now", ".as-of")
    page.wait_for("document.querySelector('.as-of .input').value === ''")
    assert museum.select("SELECT * { <urn:past:never> ?p ?o }") == []


def test_a_link_to_a_query_of_the_past(museum: Service, page: Chromium, indexes: list[int]) -> None:
    told = {"query": QUERY, "run": "1", "as_of": str(indexes[3])}
    page.open(f"{museum.url}/#/query?{urlencode(told)}")
    page.wait_for(value_shown(3))
    press_button(page, "Now", ".as-of")
    page.wait_for(value_shown(VALUES - 1))
    page.wait_for("!document.querySelector('.rstatus .badge')")


@pytest.mark.parametrize(
    ("as_of", "reason"),
    [("yesterday", "no state has the name"), ("last week", "is no log index"), ("1999-01-01", "before")],
)
def test_a_state_that_there_is_not(
    museum: Service, page: Chromium, indexes: list[int], as_of: str, reason: str
) -> None:
    open_query(museum, page, QUERY, run=False)
    page.click("[title='Query a state of the past']")
    choose_state(page, as_of)
    page.wait_for(holds(".results .notice.bad", reason))
    page.complaints.clear()  # the browser notes the status


def test_the_difference_of_two_states(museum: Service, page: Chromium, indexes: list[int]) -> None:
    page.open(f"{museum.url}/#/changes")
    page.wait_for("!!document.querySelector('.change')")
    page.evaluate(
        "(() => { const of = document.querySelector('form select'); of.value = 'graph'; "
        "of.dispatchEvent(new Event('change', {bubbles: true})); })()"
    )
    for number, text in ((2, GRAPH), (3, str(indexes[2])), (4, str(indexes[8]))):
        page.click(f"form .field:nth-child({number}) .input")
        page.write(text)
    page.press("Enter")
    page.wait_for(holds(".card h2", f"from index {indexes[2]:,} to {indexes[8]:,}"))
    page.wait_for("document.querySelectorAll('.changed > li').length === 2")
    (sign, removed), (other, added) = lines(page)
    assert (sign, other) == ("removed", "added")
    assert "value2" in removed.replace(" ", "")
    assert "value8" in added.replace(" ", "")
    # the patch makes the one state of the other
    page.evaluate(
        "window.makeURL = URL.createObjectURL; "
        "URL.createObjectURL = (file) => { window.saved = file.text(); return window.makeURL(file); }"
    )
    page.click("button[title='Download the difference']")
    press_button(page, "RDF Patch", ".menu")
    patch = page.wait_for("window.saved")
    assert f"D <{COUNTER}> <urn:past:value>" in patch
    assert f"A <{COUNTER}> <urn:past:value>" in patch
    press_button(page, "Other way round")
    page.wait_for(holds(".card h2", f"from index {indexes[8]:,} to {indexes[2]:,}"))
    page.wait_for("/2/.test(document.querySelector('.changed > .added')?.textContent)")
    press_button(page, "Last changes", "form")
    page.wait_for("document.querySelectorAll('.change').length === 25")


def test_a_state_gets_a_name_and_loses_it(museum: Service, page: Chromium, indexes: list[int]) -> None:
    name = "before-nine"
    suggested = "[...document.querySelectorAll('datalist option')].map((one) => one.value)"
    page.open(f"{museum.url}/#/changes?{urlencode({'graph': GRAPH})}")
    press_button(page, "Name a state")
    for number, text in ((1, name), (2, str(indexes[8]))):
        page.click(f"dialog .field:nth-child({number}) .input")
        page.write(text)
    page.press("Enter")
    page.wait_for(holds(".named-states td", name))
    row = page.evaluate("document.querySelector('.named-states tbody tr').textContent")
    assert f"{indexes[8]:,}" in row
    page.wait_for(f"{suggested}.includes({json.dumps(name)})")
    press_button(page, "Difference to now", ".named-states")
    page.wait_for(holds(".card h2", f"from index {indexes[8]:,}"))
    open_query(museum, page, QUERY, run=False)
    page.click("[title='Query a state of the past']")
    page.wait_for(f"{suggested}.includes({json.dumps(name)})")
    choose_state(page, name)
    page.wait_for(value_shown(8))
    page.open(f"{museum.url}/#/changes")
    press_button(page, f"Delete the name {name}", ".named-states")
    press_button(page, "Delete", "dialog .foot")
    page.wait_for(holds(".card", "No state has a name"))


def test_hostile_changes_run_nothing(museum: Service, page: Chromium) -> None:
    long = "long " * 100_000
    text = f'GRAPH <urn:past:hostile> {{ <urn:past:hostile> <urn:past:text> "{HOSTILE}", "{long}" }}'
    museum.update(f"INSERT DATA {{ {text} }}")
    try:
        page.open(f"{museum.url}/#/changes?{urlencode({'graph': 'urn:past:hostile'})}")
        page.wait_for(holds(".changed .added", "<img src=x"))
        assert page.evaluate("window.ran === undefined")
        assert page.evaluate("document.querySelectorAll('.main img').length") == 0
        assert page.evaluate("document.querySelector('.changes').textContent.length") < 10_000
    finally:
        museum.update("DROP GRAPH <urn:past:hostile>")


@pytest.mark.parametrize("address", ["explore?iri={}&view=history", "changes?resource={}&from=1"])
def test_it_fits_a_narrow_screen(museum: Service, page: Chromium, indexes: list[int], address: str) -> None:
    page.resize(360, 640)
    page.open(f"{museum.url}/#/{address.format(quote(COUNTER, safe=''))}")
    page.wait_for("!!document.querySelector('.changed > li')")
    width = page.evaluate("document.documentElement.clientWidth")  # without the bar beside the page
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert page.evaluate("document.querySelector('.main').scrollWidth") <= width
