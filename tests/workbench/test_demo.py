"""`graphdb serve --demo` in a browser: it opens with data and saved queries that have answers."""

from collections.abc import Iterator
from urllib.parse import urlencode

import httpx
import psutil  # type: ignore[import-untyped]
import pytest

from actors.processes import MARKER_VARIABLE
from tests.support.chromium import browser, why_no_browser
from tests.support.service import Service
from tests.workbench.conftest import ROOT

pytestmark = [pytest.mark.ray, pytest.mark.slow]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    service = Service(tmp_path_factory.mktemp("demo") / "data", "--demo", str(ROOT / "examples"), search=True)
    try:
        service.start()
        service.wait_until(lambda: "Stop the service with Ctrl-C" in service.output, 60)
        yield service
    finally:
        service.close()


def test_the_address_of_the_workbench_is_printed_first(demo: Service) -> None:
    first = next(line for line in demo.output.splitlines() if line.strip())
    assert f"{demo.url}/" in first


def test_its_fork_server_has_ray_in_common_with_it(demo: Service) -> None:
    """A fork of the command runs what the command does, which takes the name of the server as a title."""
    (server,) = demo.pids("python -m actors.fork_server")
    assert psutil.Process(server).environ() == {MARKER_VARIABLE: marker_of(demo)}


def marker_of(service: Service) -> str:
    (keeper,) = service.pids("actors.processes")
    *_, marker = psutil.Process(keeper).cmdline()
    return str(marker)


def test_its_saved_queries_have_answers(demo: Service) -> None:
    saved = httpx.get(f"{demo.url}/saved-queries", trust_env=False).json()["queries"]
    assert len(saved) == 5
    if (reason := why_no_browser()) is not None:
        pytest.skip(reason)
    with browser() as page:
        page.resize(1280, 900)
        for number, one in enumerate(saved):
            told = urlencode({"query": one["query"], "view": one["view"] or "table", "run": "1"})
            page.open(f"{demo.url}/?{number}#/query?{told}")
            page.wait_for(
                "/[1-9][\\d,]* (row|triple)/.test(document.querySelector('.rstatus')?.textContent)", 60
            )
            assert page.evaluate("!!document.querySelector('.results .notice.bad')") is False
        page.open(f"{demo.url}/#/query")
        page.click("button[title='Saved queries']")
        page.wait_for("document.querySelectorAll('.saved-item').length === 5")
        assert page.strangers(demo.url + "/", demo.search_url + "/") == []
        assert page.complaints == []
