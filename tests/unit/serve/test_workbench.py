"""The page at `/`, its files and its configuration, and who may call port 9200 from a page."""

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, TypeAlias

import httpx
import pytest

from graphdb.config import Settings
from graphdb.errors import ConfigError
from serve.graph_app import build_app
from tests.support.http_server import serving
from tests.support.memory_backend import MemoryBackend

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"
SIGNED_OUT: dict[str, Any] = {
    "authentication": {
        "enabled": True,
        "api_keys": [{"name": "k", "key_sha256": "0" * 64, "roles": ["reader"]}],
    }
}

Opened: TypeAlias = Callable[..., httpx.Client]


@pytest.fixture
def opened() -> Iterator[Opened]:
    """Opens the application with settings; gives a client."""
    with ExitStack() as stack:

        def open_port(**settings: Any) -> httpx.Client:
            app = build_app(MemoryBackend(), Settings.model_validate(settings))
            url = stack.enter_context(serving(app))
            return stack.enter_context(httpx.Client(base_url=url, trust_env=False))

        yield open_port


@pytest.mark.parametrize("accept", [BROWSER, "text/html"])
def test_a_browser_gets_the_page(opened: Opened, accept: str) -> None:
    answer = opened().get("/", headers={"Accept": accept})
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["vary"] == "Accept"
    assert re.findall(r'(?:src|href)="(?!/workbench/assets/|data:)', answer.text) == []


@pytest.mark.parametrize("accept", ["*/*", "application/json", "application/json, text/html;q=0.5", ""])
def test_a_program_gets_json(opened: Opened, accept: str) -> None:
    answer = opened().get("/", headers={"Accept": accept})
    assert answer.json()["service"] == "graphdb"
    assert answer.headers["vary"] == "Accept"


def test_the_policy_lets_in_nothing_but_the_service(opened: Opened) -> None:
    http = opened()
    one, other = (http.get("/", headers={"Accept": BROWSER, "Host": "graph.example:7001"}) for _ in range(2))
    policy = one.headers["content-security-policy"]
    directives = dict(part.split(" ", 1) for part in policy.split("; "))
    assert directives["default-src"] == "'none'"
    assert directives["script-src"] == "'self'"
    assert directives["connect-src"] == "'self' graph.example:9200"
    assert "unsafe" not in policy
    nonce = re.search(r"'nonce-([\w-]+)'", directives["style-src"])
    assert nonce is not None
    assert f'content="{nonce[1]}"' in one.text
    assert one.text != other.text


@pytest.mark.parametrize("host", ["graph.example;script-src *", "a b", "[::1]:7001"])
def test_a_strange_host_is_not_in_the_policy(opened: Opened, host: str) -> None:
    answer = opened().get("/", headers={"Accept": BROWSER, "Host": host})
    if answer.status_code == 200:
        assert "connect-src 'self';" in answer.headers["content-security-policy"]


def test_configured_tiles_and_images_are_in_the_policy(opened: Opened) -> None:
    server = {
        "workbench_tiles": "https://tiles.example/{z}/{x}/{y}.png",
        "workbench_image_hosts": ["https://images.example"],
    }
    policy = opened(server=server).get("/", headers={"Accept": BROWSER}).headers["content-security-policy"]
    assert "img-src 'self' data: blob: https://images.example https://tiles.example;" in policy


@pytest.mark.parametrize("origin", ["https://a.example; script-src *", "javascript:alert(1)", "https://a/b"])
def test_settings_cannot_widen_the_policy(origin: str) -> None:
    with pytest.raises((ConfigError, ValueError)):
        Settings.model_validate({"server": {"workbench_image_hosts": [origin]}})


@pytest.mark.parametrize("coding", ["gzip", "identity"])
def test_its_files_are_kept_for_ever(opened: Opened, coding: str) -> None:
    http = opened()
    page = http.get("/", headers={"Accept": BROWSER}).text
    for name in re.findall(r'(?:src|href)="(/workbench/assets/[^"]+)"', page):
        answer = http.get(name, headers={"Accept-Encoding": coding})
        assert answer.status_code == 200
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert answer.headers.get("content-encoding") == ("gzip" if coding == "gzip" else None)
        assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("name", ["index.html", "manifest.json.gz", "../pages.py", "__init__.py", "x.js"])
def test_nothing_else_is_served(opened: Opened, name: str) -> None:
    assert opened().get(f"/workbench/assets/{name}").status_code == 404


def test_it_can_be_switched_off(opened: Opened) -> None:
    http = opened(server={"workbench": False})
    assert http.get("/", headers={"Accept": BROWSER}).json()["service"] == "graphdb"
    assert http.get("/workbench/config.json").status_code == 404


def test_the_page_is_public_and_the_data_are_not(opened: Opened) -> None:
    http = opened(**SIGNED_OUT)
    assert http.get("/", headers={"Accept": BROWSER}).status_code == 200
    told = http.get("/workbench/config.json").json()
    assert told["authentication"] == {
        "required": True,
        "password": False,
        "api_key": True,
        "token": False,
        "oidc": None,
    }
    for path in ("/", "/whoami", "/workbench/x", "/sparql?query=ASK{}"):
        assert http.get(path).status_code == 401
    assert http.post("/workbench/config.json").status_code == 401


def test_who_i_am(opened: Opened) -> None:
    assert opened().get("/whoami").json() == {
        "name": "everyone",
        "provider": "none",
        "roles": ["admin"],
        "permission": "admin",
        "sees_everything": True,
        "expires_at": None,
    }


def test_the_api_keys_are_listed_without_their_digests(opened: Opened) -> None:
    key = {
        "name": "robot",
        "key_sha256": "0" * 64,
        "roles": ["writer"],
        "expires_at": "2031-01-01T00:00:00+00:00",
    }
    found = opened(authentication={"api_keys": [key]}).get("/api_keys")
    assert found.json() == {
        "api_keys": [
            {"name": "robot", "roles": ["writer"], "sids": [], "expires_at": "2031-01-01T00:00:00+00:00"}
        ]
    }
    assert found.headers["cache-control"] == "no-store"
