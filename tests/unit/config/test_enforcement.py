"""What is configured and not built yet stops the start, where ignoring it would be dangerous."""

from pathlib import Path

import pytest

from graphdb.config import Settings, load_settings, refuse_unenforced
from graphdb.errors import ConfigError


def test_defaults_start() -> None:
    refuse_unenforced(Settings())


@pytest.mark.parametrize(
    "text", ["[authorization]", "[holonic]\nenabled = true", "[search]\nhybrid_scorer = 'linear'"]
)
def test_what_is_merely_absent_or_idle_is_accepted(tmp_path: Path, text: str) -> None:
    (tmp_path / "graphdb.toml").write_text(text)
    refuse_unenforced(load_settings(environ={}, directory=tmp_path))


BASIC = "[authentication]\nenabled = true\nbasic = {enabled = true}\n"
OIDC = "oidc = {issuer_url = 'https://issuer.example', client_id = 'x', audience = 'y'}\n"
REDIS = "rate_limiting = {backend = 'redis', redis_url = 'redis://localhost'}\n"


@pytest.mark.parametrize("text", [BASIC, "[authentication]\n" + OIDC, "[authentication]\n" + REDIS])
def test_authentication_starts_with_the_providers_that_there_are(tmp_path: Path, text: str) -> None:
    (tmp_path / "graphdb.toml").write_text(text)
    refuse_unenforced(load_settings(environ={}, directory=tmp_path))


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("[acl]", "acl"),
        (BASIC + "[acl]", "acl"),
        (BASIC + OIDC, "authentication.oidc"),
        (
            BASIC
            + "[authentication.ldap]\nserver_url='ldaps://x'\nbind_dn='x'\nbind_password='x'\n"
            + "user_search_base='x'",
            "authentication.ldap",
        ),
        (BASIC + REDIS, "authentication.rate_limiting.backend = redis"),
    ],
)
def test_unkept_promise_is_refused(tmp_path: Path, text: str, key: str) -> None:
    (tmp_path / "graphdb.toml").write_text(text)
    settings = load_settings(environ={}, directory=tmp_path)
    with pytest.raises(ConfigError) as raised:
        refuse_unenforced(settings)
    assert str(raised.value) == f"{key} is configured, but this version does not enforce it yet"
