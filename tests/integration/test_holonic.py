"""The holonic interface of a running service: what the docs show, writes at once, and kills."""

import re
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.service import Service
from tests.support.timing import HANG_S

pytestmark = [pytest.mark.ray, pytest.mark.slow]

PAGE = (Path(__file__).parents[2] / "docs/holonic.md").read_text()
CONSTRUCT = "CONSTRUCT { ?s <urn:seen> ?o } WHERE { ?s <urn:p> ?o }"


@pytest.fixture(scope="module")
def holonic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service with /holonic; each test has a tenant of its own and leaves it running."""
    enabled = {"GRAPHDB_HOLONIC__ENABLED": "true"}
    service = Service(tmp_path_factory.mktemp("holonic") / "data", environment=enabled)
    try:
        yield service.start()
    finally:
        service.close()


class Tenant:
    """One tenant's requests."""

    def __init__(self, service: Service, name: str) -> None:
        self._address, self._tenant = f"{service.url}/holonic", {"tenant": name}

    def post(self, path: str, **members: Any) -> httpx.Response:
        return httpx.post(
            f"{self._address}/{path}", params=self._tenant, json=members, timeout=HANG_S, trust_env=False
        )

    def get(self, path: str) -> Any:
        answer = httpx.get(f"{self._address}/{path}", params=self._tenant, timeout=HANG_S, trust_env=False)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def write(self, path: str, **members: Any) -> dict[str, Any]:
        answer = self.post(path, **members)
        assert answer.status_code == 200, answer.text
        confirmation: dict[str, Any] = answer.json()
        return confirmation

    def everything(self) -> dict[str, Any]:
        """All that can be read of it."""
        holons = self.get("holons")["holons"]
        details = [self.get(f"holons/{holon['iri']}") for holon in holons]
        for detail in details:
            for graphs in detail["layers"].values():
                for graph in graphs:
                    graph["ntriples"] = sorted(graph["ntriples"].splitlines())
        return {
            "holons": holons,
            "details": details,
            "portals": self.get("portals"),
            "depth": self.get("depth"),
        }


def examples(url: str) -> str:
    """The shell examples of the page, but for the one that starts a service."""
    blocks = [
        block for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) if "scripts/serve" not in block
    ]
    return "set -e\n" + "\n".join(blocks).replace("http://127.0.0.1:7001", url).replace("curl -s", "curl -sf")


def test_the_examples_of_the_page(holonic: Service) -> None:
    done = subprocess.run(
        ["bash", "-c", examples(holonic.url)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert '"conforms":false' in done.stdout
    assert '<https://example.org/onLoan> "Two chairs"' in done.stdout
    digests = set(re.findall(r"[0-9a-f]{32}(?=:(?:interior|boundary))", PAGE))
    assert all(digest in done.stdout for digest in digests)


def test_of_declarations_at_once_one_succeeds(holonic: Service) -> None:
    tenant = Tenant(holonic, "at-once")
    tenant.write("holons", iri="urn:root")
    with ThreadPoolExecutor(6) as threads:
        for number in range(5):
            members = {"iri": f"urn:h:{number}", "member_of": "urn:root"}
            answers = list(
                threads.map(lambda label, m=members: tenant.post("holons", label=label, **m), "abcdef")
            )
            assert sorted(answer.status_code for answer in answers) == [200, *[409] * 5]
            answers = list(
                threads.map(
                    lambda n, m=members: tenant.post(
                        f"holons/{m['iri']}/interior", turtle=f"<urn:s> <urn:p> {n} ."
                    ),
                    range(6),
                )
            )
            assert sum(answer.json()["affected_triples"] for answer in answers) == 6
    assert tenant.get("depth")["depth"] == 1


def fill(tenant: Tenant, name: str) -> None:
    """Two holons, all layers, a portal that was run; each confirmed."""
    source, target, portal = (f"urn:{kind}:{name}" for kind in ("source", "target", "portal"))
    tenant.write("holons", iri=source, label='"quoted" \\ é\n')
    tenant.write("holons", iri=target, member_of=source)
    for layer in ("interior", "boundary", "context", "projection"):
        turtle = f'@prefix x: <urn:x#> . x:{layer} x:p [ x:q "{name}"@en ] ; <urn:p> 1, 2 .'
        tenant.write(f"holons/{source}/{layer}", turtle=turtle)
        tenant.write(f"holons/{source}/{layer}", turtle=turtle, graph_slug=f"of.{name}")
    tenant.write("portals", iri=portal, source=source, target=target, construct_query=CONSTRUCT)
    assert tenant.write(f"portals/{portal}/run", store=True)["affected_triples"] == 2


def test_what_was_confirmed_survives_kills_and_a_restart(holonic: Service) -> None:
    tenant = Tenant(holonic, "mortal")
    fill(tenant, "1")
    before = tenant.everything()
    assert len(before["details"]) == 2
    holonic.kill("GraphPort")
    holonic.wait_ready()
    assert tenant.everything() == before
    fill(tenant, "2")
    before = tenant.everything()
    holonic.kill()
    holonic.start()
    assert tenant.everything() == before
    fill(tenant, "3")
    assert [holon["iri"] for holon in tenant.get("holons")["holons"]][:3] == [
        "urn:source:1",
        "urn:source:2",
        "urn:source:3",
    ]
    assert tenant.post("holons", iri="urn:source:1").status_code == 409
