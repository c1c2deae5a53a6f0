"""Every page without violations of axe-core (WCAG 2.2 AA), in light and dark."""

from urllib.parse import urlencode

import pytest

from tests.support.chromium import Chromium
from tests.support.npm_packages import npm_directory, why_not_installed
from tests.support.service import Service
from tests.workbench.test_shell import PAGES

pytestmark = [pytest.mark.ray, pytest.mark.slow]

_PACKAGES = ("axe-core@4.14.1",)
_TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


def _query(text: str, view: str) -> str:
    return f"query?{urlencode({'query': text, 'view': view, 'run': '1'})}"


@pytest.fixture(scope="module")
def axe() -> str:
    """Its script."""
    reason = why_not_installed("axe-core", _PACKAGES)
    if reason is not None:
        pytest.skip(reason)
    return (npm_directory("axe-core") / "node_modules/axe-core/axe.min.js").read_text()


def violations(page: Chromium, axe: str) -> list[object]:
    """What axe-core finds on the page as it is: the rule and where."""
    page.evaluate("new Promise((done) => setTimeout(done, 1000))")  # nothing moves any more
    page.evaluate(f"{axe}; undefined")
    found: list[object] = page.evaluate(
        f"axe.run(document, {{runOnly: {_TAGS}, resultTypes: ['violations']}}).then(({{violations}}) => "
        "violations.map((one) => [one.id, one.nodes.map((node) => node.html.slice(0, 160)).slice(0, 3)]))"
    )
    return found


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_violation(museum: Service, page: Chromium, axe: str, scheme: str) -> None:
    page.prefer(scheme)
    found = {}
    for name in PAGES:
        page.open(f"{museum.url}/?{name}#/{name}")
        page.wait_for("!!document.querySelector('.main .page') && !document.querySelector('.spinner')")
        if wrong := violations(page, axe):
            found[name] = wrong
    assert found == {}


_PLACES = """
    PREFIX geo: <http://www.opengis.net/ont/geosparql#>
    PREFIX m: <https://museum.example/ontology#>
    SELECT * { ?work m:depicts ?place ; m:heightCm ?height . ?place geo:asWKT ?where }"""
_TRIPLES = "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o FILTER(isIRI(?o)) }"
_ADA = "https%3A%2F%2Fmuseum.example%2Fid%2Fada-holm"
_VIEWS = {
    "chart": (_query(_PLACES, "chart"), ".drawing svg"),
    "map": (_query(_PLACES, "map"), ".leaflet-interactive"),
    "graph": (_query(_TRIPLES, "graph"), ".legend"),
    "explain": (_query(_PLACES, "explain"), ".figures"),
    "raw": (_query(_PLACES, "raw"), ".rawtext"),
    "wrong": (_query("SELECT * {", "table"), ".notice.bad"),
    "resource": (f"explore?iri={_ADA}", ".property"),
    "resource-graph": (f"explore?iri={_ADA}&view=graph", ".way"),
    "class": ("explore?class=https%3A%2F%2Fmuseum.example%2Fontology%23Painting", ".arrows a"),
    "alerts": ("live?tab=alerts", ".state"),
    "validate": ("data?tab=validate", ".card select"),
    "graphs": ("data?tab=graphs", ".graph-row"),
    "history": (f"explore?iri={_ADA}&view=history", ".changed .added"),
    "difference": (f"changes?resource={_ADA}&from=1&to=0", ".changed .removed, .state"),
    "past": (f"{_query(_PLACES, 'table')}&as_of=1", ".as-of-told:not(:empty)"),
}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_violation_in_a_view(museum: Service, page: Chromium, axe: str, scheme: str) -> None:
    page.prefer(scheme)
    found = {}
    for name, (address, ready) in _VIEWS.items():
        page.open(f"{museum.url}/?{name}#/{address}")
        page.wait_for(f"!!document.querySelector({ready!r})", 60)
        if wrong := violations(page, axe):
            found[name] = wrong
    assert found == {}
    page.complaints[:] = [one for one in page.complaints if "400" not in one]  # of the wrong query


_DIALOGS = {
    "save": ("query", "[title^='Save the query']"),
    "alert": ("live?tab=alerts", ".state .button.primary"),
    "clear": ("data?tab=graphs", ".graph-row .button.quiet:not(.icon):not([aria-haspopup])"),
}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_violation_in_a_dialog(museum: Service, page: Chromium, axe: str, scheme: str) -> None:
    page.prefer(scheme)
    found = {}
    for name, (address, button) in _DIALOGS.items():
        page.open(f"{museum.url}/?{name}#/{address}")
        page.click(button)
        page.wait_for("!!document.querySelector('dialog[open]')")
        if wrong := violations(page, axe):
            found[name] = wrong
    assert found == {}
