"""`OidcProvider`: a real OpenID Connect provider, the npm package oidc-provider, in a process of Node."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import httpx
import pytest

from tests.support.npm_packages import npm_directory, why_not_installed

__all__ = ["AUDIENCE", "CLIENT", "OidcProvider", "oidc_provider", "provider"]

AUDIENCE = "https://graphdb.example"
CLIENT = "graphdb-cli"  # for the device flow
_PACKAGES = ("oidc-provider@9.13.3",)
_NODE_MIN = 20
_NAME = "oidc-provider"
_SCRIPT = Path(__file__).with_name("oidc_provider.mjs")


def _why_no_provider() -> str | None:
    """The reason why it cannot run here; None where it can. It is installed at the first call."""
    reason = why_not_installed(_NAME, _PACKAGES)
    return reason or _why_too_old()


@cache
def _why_too_old() -> str | None:
    """Debian's Node may be older than the package."""
    version = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    major = int(version.removeprefix("v").partition(".")[0])
    return None if major >= _NODE_MIN else f"oidc-provider needs Node {_NODE_MIN} or later, this is {version}"


class OidcProvider:
    """One provider; every name and password may sign in."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self.issuer: str = self._line()["issuer"]

    def _line(self) -> Any:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("{"):  # the rest are the package's own words
                return json.loads(line)
        raise AssertionError("the provider has ended")

    def _told(self, command: str) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{command}\n")
        self._process.stdin.flush()
        return self._line()

    def rotate(self) -> None:
        """Sign with new keys from now on; the old ones are not published any more."""
        self._told("rotate")

    def private_keys(self) -> list[dict[str, Any]]:
        """The JWKs that it signs with now."""
        keys: list[dict[str, Any]] = self._told("keys")["keys"]
        return keys

    def token(self, *scopes: str) -> str:
        """An access token for the client `robot`; scopes choose the algorithm, `reader`, `elsewhere`."""
        answer = httpx.post(
            f"{self.issuer}/token",
            data={"grant_type": "client_credentials", "scope": " ".join(scopes)},
            auth=("robot", "of-the-robot"),
            trust_env=False,
        )
        assert answer.status_code == 200, answer.text
        token: str = answer.json()["access_token"]
        return token

    def approve(self, url: str, user: str, consents: bool = True) -> None:
        """Do in a browser's place what the person does who has opened the address of a device flow."""
        with httpx.Client(follow_redirects=True, trust_env=False) as browser:
            page = browser.get(url)
            for _ in range(8):
                form = _form(page)
                if form is None:
                    return
                address, fields = form
                if fields.get("prompt") == "login":
                    fields |= {"login": user, "password": "any"}
                declines = "confirm" in fields and not consents
                if declines:
                    fields["abort"] = fields.pop("confirm")
                page = browser.post(urljoin(str(page.url), address), data=fields)
                if declines:
                    return
        raise AssertionError(f"the provider asks on and on: {page.text}")


def _form(page: httpx.Response) -> tuple[str, dict[str, str]] | None:
    """Where the form of a page goes, and its hidden fields."""
    found = re.search(r"<form[^>]*\baction=\"([^\"]+)\"", page.text)
    if found is None:
        return None
    inputs = re.findall(r"<input[^>]*>", page.text)
    hidden = [one for one in inputs if 'type="hidden"' in one]
    return found[1], {_attribute(one, "name"): _attribute(one, "value") for one in hidden}


def _attribute(element: str, name: str) -> str:
    found = re.search(rf"\b{name}=\"([^\"]*)\"", element)
    return found[1] if found else ""


@contextmanager
def oidc_provider(port: int = 0, access_token_s: int = 600) -> Iterator[OidcProvider]:
    """Where it can run: see `provider`."""
    script = shutil.copy(_SCRIPT, npm_directory(_NAME))  # beside what it imports
    options = json.dumps({"port": port, "audience": AUDIENCE, "accessTokenSeconds": access_token_s})
    with subprocess.Popen(
        ["node", script, options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            yield OidcProvider(process)
        finally:
            process.kill()


@pytest.fixture(scope="module")
def provider() -> Iterator[OidcProvider]:
    """One for all tests of a module, which are skipped where it cannot run. A conftest.py imports it."""
    reason = _why_no_provider()
    if reason is not None:
        pytest.skip(reason)
    with oidc_provider() as running:
        yield running
