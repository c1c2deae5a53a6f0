"""One service with the museum, and a browser for each test that asks no other host."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.chromium import Chromium, browser, why_no_browser
from tests.support.service import Service

ROOT = Path(__file__).parents[2]
_TYPES = {".ttl": "text/turtle", ".trig": "application/trig"}


def load_museum(service: Service) -> None:
    """The files of examples/ that are RDF."""
    for file in sorted((ROOT / "examples").rglob("*")):
        if file.suffix in _TYPES:
            where = "" if file.suffix == ".trig" else "?default"
            answer = httpx.post(
                f"{service.url}/data{where}",
                content=file.read_bytes(),
                headers={"Content-Type": _TYPES[file.suffix]},
                trust_env=False,
            )
            assert answer.is_success, answer.text


@pytest.fixture(scope="session")
def museum(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service with the museum, without authentication."""
    service = Service(tmp_path_factory.mktemp("workbench") / "data", search=True)
    try:
        service.start()
        load_museum(service)
        yield service
    finally:
        service.close()


@pytest.fixture
def page(museum: Service) -> Iterator[Chromium]:
    """A browser. It may ask the two ports only, and its console may say nothing."""
    reason = why_no_browser()
    if reason is not None:
        pytest.skip(reason)
    with browser() as opened:
        opened.resize(1280, 800)
        yield opened
        assert opened.strangers(museum.url + "/", museum.search_url + "/") == []
        assert opened.complaints == []
