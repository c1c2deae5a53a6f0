"""The Service page in a browser, and what somebody who may only read is shown."""

import hashlib
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.chromium import Chromium, browser, why_no_browser
from tests.support.service import Service
from tests.support.timing import HANG_S

pytestmark = [pytest.mark.ray, pytest.mark.slow]

SLOW = "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l FILTER(?c < ?l) }"
READER, ADMIN = "gdb_reader", "gdb_admin"


def test_the_state_of_the_service(museum: Service, page: Chromium) -> None:
    page.open(f"{museum.url}/#/service")
    page.wait_for("document.querySelectorAll('.figure').length === 4")
    text = page.evaluate("document.querySelector('.page').textContent")
    for wanted in (
        "healthy",
        "Log index",
        "Memory of the host",
        "Disk of the data",
        "standalone",
        "everyone",
    ):
        assert wanted in text
    for number in range(20):
        museum.select(f"SELECT * {{ ?s ?p ?o }} LIMIT {number + 1}")
    page.wait_for("!!document.querySelector('.spark:nth-child(2) .line[d^=M]')")


FRAMED = pytest.mark.parametrize(
    ("name", "inside"), [("graphql", ".graphiql-container"), ("reference", ".swagger-ui .opblock")]
)


@FRAMED
def test_graphiql_and_the_reference_are_framed(
    museum: Service, page: Chromium, name: str, inside: str
) -> None:
    page.open(f"{museum.url}/#/service")
    page.click(f".page a[href='#/{name}']")
    page.wait_for(f"!!document.querySelector('iframe')?.contentDocument?.querySelector('{inside}')")


def test_a_running_query_is_cancelled(museum: Service, page: Chromium) -> None:
    answers: list[httpx.Response] = []

    def ask() -> None:
        answers.append(
            httpx.post(f"{museum.url}/sparql", data={"query": SLOW}, timeout=HANG_S, trust_env=False)
        )

    asking = threading.Thread(target=ask)
    asking.start()
    page.open(f"{museum.url}/#/service")
    page.click(".running .button.danger")
    page.click("dialog .danger")
    asking.join(30)
    assert answers[0].status_code == 503
    assert "cancelled" in answers[0].text
    page.wait_for("document.querySelector('.running .state h2')?.textContent === 'Nothing runs'")


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service with two keys: one may read, the other may do everything."""
    keys = [
        {"name": name, "key_sha256": hashlib.sha256(key.encode()).hexdigest(), "roles": [role]}
        for name, key, role in (("viewer", READER, "reader"), ("<b>chief</b>", ADMIN, "admin"))
    ]
    directory: Path = tmp_path_factory.mktemp("guarded")
    settings = {
        "GRAPHDB_AUTHENTICATION__ENABLED": "true",
        "GRAPHDB_AUTHENTICATION__API_KEYS": json.dumps(keys),
        "GRAPHDB_SERVER__PUBLIC_PROBES": "true",
    }
    service = Service(directory / "data", environment=settings)
    try:
        yield service.start()
    finally:
        service.close()


def sign_in(service: Service, page: Chromium, key: str, place: str) -> None:
    page.open(f"{service.url}/#/{place}")
    page.click("input[name=key]")
    page.write(key)
    page.press("Enter")
    page.wait_for("!!document.querySelector('.main .page h1')")


@pytest.fixture
def window() -> Iterator[Chromium]:
    """A browser for the guarded service."""
    if (reason := why_no_browser()) is not None:
        pytest.skip(reason)
    with browser() as opened:
        opened.resize(1280, 800)
        yield opened
        assert opened.complaints == []


def buttons(page: Chromium) -> list[str]:
    found = "[...document.querySelectorAll('.page button')].map((one) => one.textContent || one.title)"
    names: list[str] = page.evaluate(found)
    return names


def test_a_viewer_sees_no_buttons_to_write(guarded: Service, window: Chromium) -> None:
    guarded_update(guarded, 'INSERT DATA { GRAPH <urn:g> { <urn:a> <urn:b> "c" } }')
    sign_in(guarded, window, READER, "data")
    window.wait_for("document.querySelectorAll('.graph-row').length === 2")
    assert not {"Load", "Clear", "Delete urn:g"} & set(buttons(window))
    window.evaluate("location.hash = '#/live?tab=alerts'")
    window.wait_for("document.querySelector('.state h2')?.textContent === 'No alerts'")
    assert "New alert" not in buttons(window)
    window.evaluate("location.hash = '#/service'")
    window.wait_for("document.querySelectorAll('.figure').length === 4")
    assert "Running queries" not in window.evaluate("document.querySelector('.page').textContent")
    assert "viewer" in window.evaluate("document.querySelector('.facts').textContent")
    # live queries sign in over the socket
    window.evaluate("location.hash = '#/live?tab=query'")
    window.click(".card .button.primary")
    window.wait_for("document.querySelector('.card .badge.good')?.textContent.includes('Following')")
    guarded_update(guarded, 'INSERT DATA { <urn:a> <urn:b> "for the viewer" }')
    window.wait_for("document.querySelector('.live-row.create')?.textContent.includes('for the viewer')")


def test_a_viewer_edits_nothing_on_explore(guarded: Service, window: Chromium) -> None:
    guarded_update(guarded, 'INSERT DATA { <urn:viewed> a <urn:Thing> ; <urn:says> "hello" }')
    for key, may_write in ((READER, False), (ADMIN, True)):
        window.open(f"{guarded.url}/?{key}")
        # A page that is still signing in keeps its credentials again when that is done.
        window.wait_for("!!document.querySelector('.main .page h1, input[name=key]')")
        window.evaluate("sessionStorage.clear()")
        window.open(f"{guarded.url}/?{key}-again")
        sign_in(guarded, window, key, "explore?iri=urn:viewed")
        window.wait_for("/hello/.test(document.querySelector('.property .value, .property')?.textContent)")
        window.wait_for("!document.querySelector('.spinner')")
        writing = window.evaluate(
            "[...document.querySelectorAll('.page button')].map((one) => one.title || one.textContent)"
            ".filter((one) => /^(Add|Edit|Delete|Remove|Change)/.test(one)).length"
        )
        assert (writing > 0) == may_write


def test_an_admin_sees_the_keys(guarded: Service, window: Chromium) -> None:
    sign_in(guarded, window, ADMIN, "service")
    window.wait_for("document.querySelector('.page').textContent.includes('<b>chief</b>')")
    for path, key, status in (("/api_keys", READER, 403), ("/api_keys", ADMIN, 200)):
        answer = httpx.get(guarded.url + path, headers={"X-API-Key": key}, trust_env=False)
        assert answer.status_code == status


def guarded_update(service: Service, text: str) -> None:
    answer = httpx.post(
        f"{service.url}/update",
        content=text,
        headers={"Content-Type": "application/sparql-update", "X-API-Key": ADMIN},
        trust_env=False,
    )
    assert answer.is_success, answer.text


@FRAMED
def test_the_framed_pages_have_the_credentials_of_the_tab(
    guarded: Service, window: Chromium, name: str, inside: str
) -> None:
    sign_in(guarded, window, READER, "service")
    window.click(f".page a[href='#/{name}']")
    window.wait_for(f"!!document.querySelector('iframe')?.contentDocument?.querySelector('{inside}')")
    if name == "graphql":  # it asks for the schema
        deadline = time.monotonic() + 30
        while f"{guarded.url}/graphql" not in window.requested:
            assert time.monotonic() < deadline
            window.evaluate("new Promise((done) => setTimeout(done, 100))")
    # without the workbench around them, the pages need credentials
    for path in ("/docs", "/openapi.json", "/graphql"):
        assert httpx.get(guarded.url + path, headers={"Accept": "*/*"}, trust_env=False).status_code == 401
