"""Signing in with a browser: with a password, and at an OpenID Connect provider; what a reader sees."""

import time
from collections.abc import Iterator

import pytest

from graphdb.access.passwords import hash_password
from tests.support.chromium import Chromium, browser, why_no_browser
from tests.support.oidc_provider import AUDIENCE, CLIENT, OidcProvider, provider
from tests.support.service import Service

__all__ = ["provider"]
pytestmark = [
    pytest.mark.ray,
    pytest.mark.slow,
    pytest.mark.skipif(why_no_browser() is not None, reason=str(why_no_browser())),
]

CONFIGURATION = """
[server]
public_probes = true

[authentication]
enabled = true

[authentication.basic]
enabled = true
users = [
    {{username = "ada", password_hash = "{hash}", roles = ["admin"]}},
    {{username = "vera", password_hash = "{hash}", roles = ["reader"]}},
]

[authentication.oidc]
issuer_url = "{issuer}"
client_id = "{client}"
audience = "{audience}"
roles_claim = "realm_access.roles"
role_mapping = {{graph-writers = "writer", graph-readers = "reader"}}
"""


@pytest.fixture(scope="module")
def closed(provider: OidcProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service that needs credentials."""
    directory = tmp_path_factory.mktemp("sign-in")
    text = CONFIGURATION.format(
        hash=hash_password("secret"), issuer=provider.issuer, client=CLIENT, audience=AUDIENCE
    )
    (directory / "graphdb.toml").write_text(text)
    running = Service(directory / "data", search=True)
    try:
        yield running.start()
    finally:
        running.close()


def sign_in(page: Chromium, service: Service, user: str, password: str = "secret") -> None:
    page.open(f"{service.url}/#/query")
    page.click("input[name=user]")
    page.write(user)
    page.click("input[name=password]")
    page.write(password)
    page.press("Enter")


def test_a_wrong_password_is_told(closed: Service) -> None:
    with browser() as page:
        sign_in(page, closed, "ada", "wrong")
        page.wait_for("!!document.querySelector('.welcome .notice.bad')")


def test_a_password_survives_a_reload_and_ends_with_signing_out(closed: Service) -> None:
    with browser() as page:
        page.resize(1280, 800)
        sign_in(page, closed, "ada")
        page.wait_for("/ada/.test(document.querySelector('.who')?.textContent ?? '')")
        page.open(f"{closed.url}/?again")
        page.wait_for("/ada/.test(document.querySelector('.who')?.textContent ?? '')")
        page.click("[title='Sign out']")
        page.wait_for("!!document.querySelector('.welcome')")
        assert page.evaluate("sessionStorage.getItem('graphdb.credentials')") is None
        assert page.strangers(closed.url + "/", closed.search_url + "/") == []


def test_a_reader_may_not_apply_an_update(closed: Service) -> None:
    with browser() as page:
        page.resize(1280, 800)
        sign_in(page, closed, "vera")
        page.click(".cm-content")
        page.press("a", control=True)
        page.write("INSERT DATA { <urn:a> <urn:b> 1 }")
        page.wait_for("document.querySelector('.qbar .button.primary')?.disabled === true")


def test_a_user_of_the_provider_signs_in(closed: Service, provider: OidcProvider) -> None:
    with browser() as page:
        page.resize(1280, 800)
        page.open(f"{closed.url}/#/query")
        page.click(".welcome .card > .button.primary")
        page.wait_for(f"location.origin === '{provider.issuer}' && !!document.querySelector('form')")
        deadline = time.monotonic() + 60
        while page.evaluate("location.origin") == provider.issuer:
            assert time.monotonic() < deadline, page.evaluate("document.body.textContent")
            page.evaluate(
                """(() => {
                    const login = document.querySelector('input[name=login]');
                    const password = document.querySelector('input[name=password]');
                    if (login) { login.value = 'grace'; password.value = 'any'; }
                    document.querySelector('form')?.submit();
                })()"""
            )
            time.sleep(0.7)
        page.wait_for("/grace/.test(document.querySelector('.who')?.textContent ?? '')")
        assert page.evaluate("location.pathname + location.search + location.hash") == "/#/query"
        # the font is asked for by the page of the provider
        own = (closed.url + "/", closed.search_url + "/", provider.issuer + "/", "https://fonts.")
        assert page.strangers(*own) == []
