"""A port whose users a real directory has: what its clients are told."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from actors.access.directory import Directory
from graphdb.access.permissions import Roles
from graphdb.config import Settings
from serve.access.access_backend import AccessBackend
from serve.graph_app import build_app
from tests.support.http_server import serving
from tests.support.memory_backend import MemoryBackend
from tests.support.slapd import BASE, MANAGER, SECRET, Slapd, needs_slapd
from tests.support.timing import HANG_S
from tests.unit.serve.access.accounts import settings_of

pytestmark = needs_slapd


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slapd]:
    slapd = Slapd(tmp_path_factory.mktemp("slapd"))
    try:
        ada = slapd.add_user("ada", "of ada")
        slapd.add_user("reader", "another one of reader")  # so is one of the file called
        slapd.add_user("rob", "of rob")
        slapd.add_group("cn=editors", ada)
        yield slapd
    finally:
        slapd.close()


@pytest.fixture
def port(directory: Slapd, tmp_path: Path) -> Iterator[httpx.Client]:
    ldap = {
        "server_url": directory.url,
        "bind_dn": MANAGER,
        "bind_password": SECRET,
        "user_search_base": BASE,
        "timeout_seconds": 2,
        "group_role_mapping": {f"cn=editors,ou=groups,{BASE}": "writer"},
    }
    settings: Settings = settings_of(tmp_path, ldap=ldap, rate_limiting={"max_attempts": 4})
    assert settings.authentication.ldap is not None
    access = AccessBackend(directory=Directory(settings.authentication.ldap, Roles(settings.authorization)))
    with (
        serving(build_app(MemoryBackend(), settings, access)) as url,
        httpx.Client(base_url=url, trust_env=False, timeout=HANG_S) as client,
    ):
        yield client


def status(port: httpx.Client, *auth: str, update: bool = False) -> int:
    arguments: dict[str, Any] = {"auth": auth}
    if update:
        return port.post(
            "/update", data={"update": "INSERT DATA { <urn:a> <urn:b> 1 }"}, **arguments
        ).status_code
    return port.get("/sparql", params={"query": "ASK {}"}, **arguments).status_code


def test_who_comes_in(port: httpx.Client) -> None:
    assert status(port, "ada", "of ada", update=True) == 200
    assert status(port, "rob", "of rob") == 403  # known, without any role
    # the file first, then the directory: both may have a user of that name
    assert status(port, "reader", "of reader") == 200
    assert status(port, "reader", "another one of reader") == 403
    for _ in range(4):
        assert status(port, "ada", "wrong") == 401
    assert status(port, "ada", "of ada") == 429


def test_while_it_is_away_nobody_is_locked_out_by_it(port: httpx.Client, directory: Slapd) -> None:
    directory.stop()
    try:
        for _ in range(6):
            answer = port.get("/sparql", params={"query": "ASK {}"}, auth=("ada", "of ada"))
            assert answer.status_code == 503
            assert int(answer.headers["retry-after"]) > 0
            assert answer.json()["error"] == "the directory cannot be asked at the moment"
        assert status(port, "reader", "of reader") == 200  # whom the file has
        for _ in range(4):
            assert status(port, "reader", "wrong") == 401  # which is a guess all the same
        assert status(port, "reader", "of reader") == 429
    finally:
        directory.start()
