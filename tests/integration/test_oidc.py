"""The running service with a real OpenID Connect provider, from signing in to the rotation of keys."""

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from elasticsearch import Elasticsearch

from tests.support.device_login import device_login
from tests.support.oidc_provider import AUDIENCE, CLIENT, OidcProvider
from tests.support.service import COMMAND, Service
from tests.support.timing import HANG_S

pytestmark = [pytest.mark.ray, pytest.mark.slow]

CONFIGURATION = """
[server]
public_probes = true  # by which the test knows that it is ready

[authentication]
enabled = true

[authentication.oidc]
issuer_url = "{issuer}"
client_id = "{client}"
audience = "{audience}"
roles_claim = "realm_access.roles"
role_mapping = {{graph-writers = "writer", graph-readers = "reader"}}
jwks_refresh_interval_secs = 1
"""


@pytest.fixture(scope="module")
def service(provider: OidcProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    directory = tmp_path_factory.mktemp("oidc")
    text = CONFIGURATION.format(issuer=provider.issuer, client=CLIENT, audience=AUDIENCE)
    (directory / "graphdb.toml").write_text(text)
    running = Service(directory / "data", search=True)
    try:
        yield running.start()
    finally:
        running.close()


def asked(url: str, token: str) -> int:
    return httpx.get(url, headers={"Authorization": f"Bearer {token}"}, trust_env=False).status_code


def test_a_person_signs_in_and_works(service: Service, provider: OidcProvider, tmp_path: Path) -> None:
    environment = {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    code, said = device_login(provider, "--endpoint", service.url, environment=environment)
    assert code == 0, said

    def run(*arguments: str) -> tuple[int, str]:
        done = subprocess.run(
            [COMMAND, *arguments],
            env=os.environ | environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=HANG_S,
        )
        return done.returncode, done.stdout + done.stderr

    assert run("update", "INSERT DATA { <urn:a> <urn:b> 1 }")[0] == 0
    assert run("query", "ASK { <urn:a> ?p ?o }", "--format", "json")[0] == 0
    assert "ada does not have the permission Admin" in run("cluster", "lead", "1")[1]
    token = run("auth", "token", "--refresh")[1].strip()
    with Elasticsearch(service.search_url, bearer_auth=token) as search:
        assert search.info()["version"]["number"]


def test_both_ports_follow_the_provider_s_keys(service: Service, provider: OidcProvider) -> None:
    urls = (f"{service.url}/data?default", service.search_url)
    old, reader = provider.token(), provider.token("ES256", "reader")
    assert [asked(url, token) for url in urls for token in (old, reader)] == [200] * 4
    before = provider.token("EdDSA")
    provider.rotate()
    time.sleep(1.1)  # the least time between two fetches, by this configuration
    assert [asked(url, provider.token()) for url in urls] == [200, 200]
    assert [asked(url, before) for url in urls] == [401, 401]
    assert [asked(url, provider.token("elsewhere")) for url in urls] == [401, 401]
