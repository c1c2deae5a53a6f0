"""The Live page in a browser: rows that appear and leave, reconnects without a gap, alerts."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from tests.support.chromium import Chromium, browser, why_no_browser
from tests.support.service import Service

pytestmark = [pytest.mark.ray, pytest.mark.slow]

EDITOR = ".field-editor .cm-content"
HOSTILE = '<img src=x onerror=\\"window.harmed = true\\">'


def follow(service: Service, page: Chromium, query: str) -> None:
    page.open(f"{service.url}/#/live")
    write_into(page, EDITOR, query)
    page.press("Enter", control=True)
    page.wait_for("document.querySelector('.card .badge.good')?.textContent.includes('Following')")


def write_into(page: Chromium, selector: str, text: str) -> None:
    """Replace what a field holds."""
    page.click(selector)
    page.press("a", control=True)
    page.press("Backspace")  # an editor would keep the style of what is typed over
    page.write(text)


def row(text: str, action: str) -> str:
    return (
        f"[...document.querySelectorAll('.live-row')].some((one) => one.dataset.action === '{action}' "
        f"&& one.textContent.includes({json.dumps(text)}))"
    )


def test_a_row_appears_and_leaves(museum: Service, page: Chromium) -> None:
    follow(museum, page, "SELECT ?s ?name WHERE { ?s <urn:live:name> ?name }")
    museum.update('INSERT DATA { <urn:live:a> <urn:live:name> "appears" }')
    page.wait_for(row("appears", "CREATE"))
    museum.update('DELETE DATA { <urn:live:a> <urn:live:name> "appears" }')
    page.wait_for(row("appears", "DELETE"))
    page.wait_for("!document.querySelector('.live-row')")
    actions = page.evaluate(
        "[...document.querySelectorAll('.live-log .badge')].map((one) => one.textContent)"
    )
    assert actions == ["left", "appeared"]


def test_a_row_that_was_there_from_the_start_leaves(museum: Service, page: Chromium) -> None:
    museum.update('INSERT DATA { <urn:live:b> <urn:live:old> "from the start", "stays" }')
    follow(museum, page, "SELECT ?name WHERE { ?s <urn:live:old> ?name }")
    page.wait_for(row("from the start", "READ"))
    museum.update('DELETE DATA { <urn:live:b> <urn:live:old> "from the start" }')
    page.wait_for(row("from the start", "DELETE"))
    assert page.evaluate(row("stays", "READ"))
    museum.update("DELETE WHERE { ?s <urn:live:old> ?o }")


def test_a_record_changes_and_leaves(museum: Service, page: Chromium) -> None:
    follow(museum, page, "SELECT * FROM <urn:live:Class> WHERE size > 1")
    museum.update("INSERT DATA { <urn:live:c> a <urn:live:Class> ; <urn:live/size> 2 }")
    page.wait_for(row("urn:live:c", "CREATE"))
    museum.update(
        "DELETE DATA { <urn:live:c> <urn:live/size> 2 } ; INSERT DATA { <urn:live:c> <urn:live/size> 3 }"
    )
    page.wait_for(row("3", "UPDATE"))
    museum.update("DELETE DATA { <urn:live:c> <urn:live/size> 3 }")  # it does not meet the condition any more
    page.wait_for(row("urn:live:c", "DELETE"))


def test_a_reconnect_misses_nothing(museum: Service, page: Chromium) -> None:
    page.open(f"{museum.url}/?sockets#/live")
    page.wait_for(f"!!document.querySelector('{EDITOR}')")
    page.evaluate(
        "(() => { window.sockets = []; const Own = WebSocket; "
        "window.WebSocket = class extends Own { "
        "constructor(...all) { super(...all); sockets.push(this); } }; })()"
    )
    write_into(page, EDITOR, "SELECT ?name WHERE { ?s <urn:live:again> ?name }")
    page.press("Enter", control=True)
    page.wait_for("document.querySelector('.card .badge.good')?.textContent.includes('Following')")
    museum.update('INSERT DATA { <urn:live:d> <urn:live:again> "before" }')
    page.wait_for(row("before", "CREATE"))
    page.evaluate("sockets[0].close()")
    museum.update('INSERT DATA { <urn:live:d> <urn:live:again> "meanwhile" }')
    museum.update('DELETE DATA { <urn:live:d> <urn:live:again> "before" }')
    page.wait_for("sockets.length > 1")
    page.wait_for(row("meanwhile", "CREATE"))
    page.wait_for("document.querySelectorAll('.live-row').length === 1")
    actions = page.evaluate(
        "[...document.querySelectorAll('.live-log .badge')].map((one) => one.textContent)"
    )
    assert actions == ["left", "appeared", "appeared"]
    museum.update("DELETE WHERE { ?s <urn:live:again> ?o }")


def test_a_wrong_query_says_where(museum: Service, page: Chromium) -> None:
    page.open(f"{museum.url}/#/live")
    write_into(page, EDITOR, "SELECT ?s FROM")
    page.press("Enter", control=True)
    page.wait_for("document.querySelector('.notice.bad')?.textContent.includes('column')")


def test_hostile_values_run_nothing(museum: Service, page: Chromium) -> None:
    museum.update(
        f'INSERT DATA {{ <urn:live:e> <urn:live:hostile> "{HOSTILE}", <javascript:window.harmed=true> }}'
    )
    follow(museum, page, "SELECT ?value WHERE { ?s <urn:live:hostile> ?value }")
    page.wait_for("document.querySelectorAll('.live-row').length === 2")
    assert page.evaluate("document.querySelectorAll('.live-row img, .live-row a').length") == 0
    assert page.evaluate("window.harmed === undefined")
    museum.update("DELETE WHERE { ?s <urn:live:hostile> ?o }")


class Receiver(BaseHTTPRequestHandler):
    """A webhook that takes everything."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@pytest.fixture
def webhook() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Receiver)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/hook"
    server.shutdown()
    server.server_close()


@pytest.mark.skipif(why_no_browser() is not None, reason=str(why_no_browser()))
def test_an_alert_is_made_tested_paused_and_deleted(tmp_path: Path, webhook: str) -> None:
    service = Service(tmp_path / "data", environment={"GRAPHDB_SECURITY__WEBHOOK_ALLOW": '["127.0.0.1"]'})
    try:
        service.start()
        with browser() as page:
            page.resize(1280, 900)
            make_alert(service, page, webhook)
            assert page.complaints == []
    finally:
        service.close()


def make_alert(service: Service, page: Chromium, webhook: str) -> None:
    page.open(f"{service.url}/#/live?tab=alerts")
    page.click(".state .button.primary")
    for name, text in (("input[required]", "<b>no triples</b>"), (".cm-content", "SELECT * { ?s ?p ?o }")):
        write_into(page, f"dialog {name}", text)
    write_into(page, "dialog input[type=number]", "-1")
    write_into(page, "dialog input[type=url]", webhook)
    page.click("dialog .primary")
    page.wait_for("document.querySelector('.alert h2')?.textContent === '<b>no triples</b>'")
    press(page, "Test webhook")
    page.wait_for("document.querySelector('.alert .notice.good')?.textContent.includes('status 204')")
    press(page, "Last firings")
    page.wait_for("!!document.querySelector('.alert tbody tr')")
    press(page, "Pause")
    page.wait_for("document.querySelector('.alert header .badge').textContent === 'paused'")
    press(page, "Delete")
    page.click("dialog .danger")
    page.wait_for("document.querySelector('.state h2')?.textContent === 'No alerts'")


def press(page: Chromium, text: str) -> None:
    """Click the button of the alert that has this text."""
    page.wait_for(
        "(() => { const found = [...document.querySelectorAll('.alert button')]"
        f".find((one) => one.textContent === '{text}' && !one.disabled); found?.click(); "
        "return !!found; })()"
    )
