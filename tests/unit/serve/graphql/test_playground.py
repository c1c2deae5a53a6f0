"""GraphiQL from our own files, in a real browser."""

import re
import time
from collections.abc import Callable

import pytest

from serve.graph.browser_pages import PLAYGROUND
from tests.support.chromium import browser, why_no_browser
from tests.support.stored_pages import check_file, check_page, vendored_files
from tests.unit.serve.graphql.conftest import LIBRARY, Port

BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}


@pytest.mark.parametrize("accept", [BROWSER["Accept"], "*/*"])
def test_a_browser_gets_the_page(library: Port, accept: str) -> None:
    answer = library.http.get("/graphql", headers={"Accept": accept})
    assert answer.status_code == 200
    check_page(answer, "graphql/playground")


@pytest.mark.parametrize("name", PLAYGROUND.files)
@pytest.mark.parametrize("coding", ["gzip", "identity"])
def test_its_files_are_served(library: Port, name: str, coding: str) -> None:
    answer = library.http.get(f"/graphql/playground/{name}", headers={"Accept-Encoding": coding})
    check_file(answer, PLAYGROUND, name)


@pytest.mark.parametrize(
    "name", ["playground.html", "__init__.py", "../endpoint.py", "LICENSE.react", "x.js"]
)
def test_nothing_else_is(library: Port, name: str) -> None:
    assert library.http.get(f"/graphql/playground/{name}").status_code == 404


def test_what_is_not_ours_is_what_it_is_said_to_be() -> None:
    assert len(vendored_files(PLAYGROUND)) == 4


def test_it_can_be_switched_off(opened: Callable[..., Port]) -> None:
    port = opened({"playground": False})
    assert port.http.get("/graphql", headers=BROWSER).status_code == 404
    assert port.http.get("/graphql/playground/playground.js").status_code == 404
    asked = port.http.get("/graphql", params={"query": "{ __typename }"}, headers=BROWSER)
    assert asked.json() == {"data": {"__typename": "Query"}}


@pytest.mark.slow
@pytest.mark.skipif(why_no_browser() is not None, reason=str(why_no_browser()))
def test_a_query_can_be_run_in_it(library: Port) -> None:
    own = str(library.http.base_url).rstrip("/")
    with browser() as page:
        page.open(f"{own}/graphql")
        page.wait_for("!!document.querySelector('.graphiql-query-editor .CodeMirror')")
        page.evaluate(
            "document.querySelector('.graphiql-query-editor .CodeMirror').CodeMirror"
            ".setValue('{ books(orderBy: {field: \"title\"}) { edges { node { title } } } }')"
        )
        page.evaluate("document.querySelector('.graphiql-execute-button').click()")
        shown = page.wait_for(
            "((found) => /Emma/.test(found) && found)("
            "document.querySelector('.result-window .CodeMirror')?.CodeMirror.getValue())"
        )
        assert re.findall(r'"title": "(\w+)"', shown) == ["Emma", "Sula"]
        # the schema has come too: its documentation shows the types
        page.evaluate("document.querySelector('[aria-label=\"Show Documentation Explorer\"]').click()")
        page.wait_for("/Query/.test(document.querySelector('.graphiql-plugin')?.textContent)")
        assert page.complaints == []
        assert [one for one in page.requested if not one.startswith((f"{own}/", "data:"))] == []
        assert [one for one in page.requested if one == f"{own}/graphql"] != []


@pytest.mark.slow
@pytest.mark.skipif(why_no_browser() is not None, reason=str(why_no_browser()))
def test_a_subscription_can_be_followed_in_it(opened: Callable[..., Port]) -> None:
    port = opened()
    port.update(f"INSERT DATA {{ {LIBRARY} }}")
    own = str(port.http.base_url).rstrip("/")
    with browser() as page:
        page.open(f"{own}/graphql?query=subscription{{bookChanged{{mutationType node{{title}}}}}}")
        page.wait_for("!!document.querySelector('.graphiql-query-editor .CodeMirror')")
        page.evaluate("document.querySelector('.graphiql-execute-button').click()")
        deadline = time.monotonic() + 30
        while not port.backend.embedded_store().active_listener_count:
            assert time.monotonic() < deadline, page.complaints
            time.sleep(0.05)
        for title in ("Persuasion", "Evelina"):
            port.update(f'INSERT DATA {{ :{title} a :Book ; :title "{title}" }}')
            shown = page.wait_for(
                f"((found) => /{title}/.test(found) && found)("
                "document.querySelector('.result-window .CodeMirror')?.CodeMirror.getValue())"
            )
            assert "CREATED" in shown
        page.evaluate("document.querySelector('.graphiql-execute-button').click()")  # ends it
        while port.backend.embedded_store().active_listener_count:
            assert time.monotonic() < deadline + 30
            time.sleep(0.05)
        assert page.complaints == []
