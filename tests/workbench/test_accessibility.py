"""Every page without violations of axe-core (WCAG 2.2 AA), in light and dark."""

import pytest

from tests.support.chromium import Chromium
from tests.support.npm_packages import npm_directory, why_not_installed
from tests.support.service import Service
from tests.workbench.test_shell import PAGES

pytestmark = [pytest.mark.ray, pytest.mark.slow]

_PACKAGES = ("axe-core@4.14.1",)
_TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


@pytest.fixture(scope="module")
def axe() -> str:
    """Its script."""
    reason = why_not_installed("axe-core", _PACKAGES)
    if reason is not None:
        pytest.skip(reason)
    return (npm_directory("axe-core") / "node_modules/axe-core/axe.min.js").read_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_violation(museum: Service, page: Chromium, axe: str, scheme: str) -> None:
    page.prefer(scheme)
    found = {}
    for name in PAGES:
        page.open(f"{museum.url}/?{name}#/{name}")
        page.wait_for("!!document.querySelector('.main .page') && !document.querySelector('.spinner')")
        page.evaluate("new Promise((done) => setTimeout(done, 1000))")
        page.evaluate(f"{axe}; undefined")
        violations = page.evaluate(
            f"axe.run(document, {{runOnly: {_TAGS}, resultTypes: ['violations']}}).then(({{violations}}) => "
            "violations.map((one) => [one.id, one.nodes.map((node) => node.html.slice(0, 160)).slice(0, 3)]))"
        )
        if violations:
            found[name] = violations
    assert found == {}
