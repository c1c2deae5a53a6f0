"""The frame of the workbench in a browser: it opens, every page of it, from the service alone."""

import pytest

from tests.support.chromium import Chromium
from tests.support.service import Service

pytestmark = [pytest.mark.ray, pytest.mark.slow]

PAGES = ["query", "explore", "search", "live", "changes", "data", "service", "about"]


def test_it_opens(museum: Service, page: Chromium) -> None:
    page.open(museum.url)
    page.wait_for("document.querySelector('.shell nav .link[aria-current=page]')?.textContent === 'Query'")
    assert "Authentication is off" in page.evaluate("document.querySelector('.open-note').textContent")


@pytest.mark.parametrize("name", PAGES)
def test_every_page_opens(museum: Service, page: Chromium, name: str) -> None:
    page.open(f"{museum.url}/#/{name}")
    page.wait_for("!!document.querySelector('.main .page h1, .main .page.full')")
    assert page.evaluate("document.querySelector('.main .notice.bad')?.textContent ?? ''") == ""


def test_it_works_on_a_narrow_screen(museum: Service, page: Chromium) -> None:
    page.resize(360, 640)
    for name in PAGES:
        page.open(f"{museum.url}/#/{name}")
        page.wait_for(f"location.hash === '#/{name}' && !!document.querySelector('.main .page')")
        page.wait_for("!document.querySelector('.main > .state .spinner')")
        # a page that is longer than the screen has a bar beside it
        width = page.evaluate("document.documentElement.clientWidth")
        assert page.evaluate("document.documentElement.scrollWidth") == width, name


def test_the_theme_is_that_of_the_system_until_one_is_chosen(museum: Service, page: Chromium) -> None:
    page.prefer("dark")
    page.open(museum.url)
    page.wait_for("document.documentElement.dataset.theme === 'dark'")
    page.click(".side [title='Light theme']")
    page.wait_for("document.documentElement.dataset.theme === 'light'")
    page.open(f"{museum.url}/?again")
    page.wait_for("document.documentElement.dataset.theme === 'light' && !!document.querySelector('.shell')")
