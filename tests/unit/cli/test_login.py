"""Signing in at a real OpenID Connect provider, and what the other commands make of it."""

import json
import os
import shutil
import stat
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from graphdb.config import Settings
from serve.cli.console import CommandError, UsageError
from serve.cli.credentials import find_target
from serve.cli.profiles import Profile, ProfileStore
from serve.cli.provider import DeviceCode, GrantRefused, Provider, ProviderAway
from serve.graph_app import build_app
from tests.support.device_login import device_login
from tests.support.http_server import serving
from tests.support.memory_backend import MemoryBackend
from tests.support.oidc_provider import AUDIENCE, CLIENT, OidcProvider
from tests.support.service import COMMAND
from tests.support.timing import HANG_S
from tests.unit.cli.conftest import Run
from tests.unit.serve.access.accounts import KEYS, settings_of


@pytest.fixture(scope="module")
def service(provider: OidcProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    oidc = {
        "issuer_url": provider.issuer,
        "client_id": CLIENT,
        "audience": AUDIENCE,
        "roles_claim": "realm_access.roles",
        "role_mapping": {"graph-writers": "writer"},
    }
    settings: Settings = settings_of(tmp_path_factory.mktemp("service"), oidc=oidc)
    with serving(build_app(MemoryBackend(), settings)) as url:
        yield url


@pytest.fixture(scope="module")
def once_signed_in(provider: OidcProvider, service: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a profile `work`; tests use copies."""
    directory = tmp_path_factory.mktemp("xdg")
    code, said = device_login(
        provider,
        *("--profile", "work", "--endpoint", service, "--default"),
        environment={"XDG_CONFIG_HOME": str(directory)},
    )
    assert code == 0, said
    assert f"Signed in to {service} as the profile work; renewed by itself after 20" in said
    return directory / "graphdb"


@pytest.fixture
def signed_in(once_signed_in: Path, own_profiles: Path) -> ProfileStore:
    shutil.copytree(once_signed_in, own_profiles)
    return ProfileStore()


def work(store: ProfileStore) -> Profile:
    return store.read().profiles["work"]


def age(store: ProfileStore, **members: Any) -> None:
    """As if that time had passed."""
    with store.changing() as profiles:
        changed = {"expires_at": time.time() - 1} | members
        profiles.profiles["work"] = profiles.profiles["work"].model_copy(update=changed)


def test_the_file_is_its_owner_s_alone(signed_in: ProfileStore, own_profiles: Path) -> None:
    file = own_profiles / "profiles.json"
    age(signed_in)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(own_profiles.stat().st_mode) == 0o700
    assert sorted(one.name for one in own_profiles.iterdir()) == ["profiles.json", "profiles.lock"]
    file.chmod(0o640)
    with pytest.raises(CommandError, match="chmod 600"):
        signed_in.read()


def test_commands_sign_in_by_a_profile(
    graphdb: Run, signed_in: ProfileStore, service: str, tmp_path: Path
) -> None:
    """By name, or because it is the default."""
    (tmp_path / "a.nt").write_text("<urn:a> <urn:b> <urn:c> .\n")
    for command in (
        ("query", "ASK {}"),
        ("load", tmp_path / "a.nt"),
        ("dump",),
        ("health",),
        ("update", "CLEAR ALL"),
    ):
        for options in ((), ("--profile", "work"), ("--endpoint", service)):
            done = graphdb(*command, *options)
            assert done.exit_code == 0, (command, options, done.err)


def test_its_roles_are_the_provider_s(graphdb: Run, signed_in: ProfileStore) -> None:
    refused = graphdb("cluster", "lead", 2, "--profile", "work")
    assert "403: ada does not have the permission Admin" in refused.err


def test_a_profile_is_listed_without_its_tokens(graphdb: Run, signed_in: ProfileStore, service: str) -> None:
    profile = work(signed_in)
    table, listed = (
        graphdb("auth", "profiles", "list"),
        graphdb("auth", "profiles", "list", "--format", "json"),
    )
    for done in (table, listed):
        assert profile.access_token not in done.out
        assert str(profile.refresh_token) not in done.out
    assert "work" in table.out
    [record] = json.loads(listed.out)
    assert (record["profile"], record["default"], record["endpoint"]) == ("work", True, service)
    assert (record["client_id"], record["has_refresh_token"]) == (CLIENT, True)
    assert profile.access_token not in repr(profile)
    assert str(profile.refresh_token) not in repr(profile)


@pytest.fixture
def not_copied(once_signed_in: Path, monkeypatch: pytest.MonkeyPatch) -> ProfileStore:
    """Where refresh tokens are used, which this provider takes once: a copy would go on with an old one."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(once_signed_in.parent))
    return ProfileStore()


def test_the_token_is_printed_and_renewed_when_it_is_asked_for(
    graphdb: Run, not_copied: ProfileStore
) -> None:
    before = work(not_copied)
    assert graphdb("auth", "token").out == f"{before.access_token}\n"
    renewed = graphdb("auth", "token", "--refresh", "--profile", "work").out.removesuffix("\n")
    after = work(not_copied)
    assert renewed == after.access_token != before.access_token
    assert after.refresh_token != before.refresh_token  # this provider gives another one each time


def test_an_old_token_is_renewed_once_however_many_come(not_copied: ProfileStore) -> None:
    """A refresh token that is used twice ends the whole grant, at this provider."""
    age(not_copied)
    before = work(not_copied)
    running = [
        subprocess.Popen([COMMAND, "auth", "token"], env=os.environ, stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    said = {process.communicate(timeout=HANG_S)[0] for process in running}
    assert said == {f"{work(not_copied).access_token}\n"}
    assert said != {f"{before.access_token}\n"}


@pytest.fixture
def away(signed_in: ProfileStore) -> ProfileStore:
    with signed_in.changing() as profiles:
        gone = {"issuer": "http://127.0.0.1:1", "expires_at": time.time() + 10}
        profiles.profiles["work"] = profiles.profiles["work"].model_copy(update=gone)
    return signed_in


def test_a_token_is_used_to_its_end_where_it_cannot_be_renewed(graphdb: Run, away: ProfileStore) -> None:
    assert graphdb("query", "ASK {}").exit_code == 0
    assert graphdb("auth", "token", "--refresh").exit_code == 1
    age(away, issuer="http://127.0.0.1:1")
    done = graphdb("query", "ASK {}")
    assert (done.exit_code, "http://127.0.0.1:1 cannot be reached" in done.err) == (1, True)


def test_a_grant_that_has_ended(graphdb: Run, signed_in: ProfileStore) -> None:
    age(signed_in, refresh_token="of nobody")
    done = graphdb("query", "ASK {}")
    assert done.exit_code == 1
    assert done.err.startswith("graphdb: the provider gives no token: ")
    assert done.err.endswith("; sign in again: graphdb auth login --profile work\n")
    age(signed_in, refresh_token=None)
    assert "has no refresh token" in graphdb("query", "ASK {}").err


def test_a_profile_shows_its_token_to_its_own_service_alone(signed_in: ProfileStore, service: str) -> None:
    assert find_target(None, None, {}).auth is not None
    assert find_target(service + "/", None, {}).auth is not None
    assert find_target(None, None, {"GRAPHDB_ENDPOINT": service}).auth is not None
    elsewhere = find_target("http://127.0.0.1:1", None, {})
    assert (elsewhere.endpoint, elsewhere.auth, elsewhere.headers) == ("http://127.0.0.1:1", None, {})
    key = find_target(None, None, {"GRAPHDB_API_KEY": "k"})
    assert (key.endpoint, key.auth, key.headers) == ("http://127.0.0.1:7001", None, {"X-API-Key": "k"})
    named = find_target(None, "work", {"GRAPHDB_API_KEY": "k", "GRAPHDB_ENDPOINT": "http://127.0.0.1:1"})
    assert (named.endpoint, named.headers) == (service, {})
    assert named.auth is not None
    with pytest.raises(UsageError, match="https://"):
        find_target("http://service.example", "work", {})
    with pytest.raises(UsageError, match="no profile home"):
        find_target(None, "home", {})


def test_a_person_who_declines(provider: OidcProvider, service: str, own_profiles: Path) -> None:
    environment = {"XDG_CONFIG_HOME": str(own_profiles.parent)}
    code, said = device_login(provider, "--endpoint", service, environment=environment, consents=False)
    assert (code, "the provider gives no token" in said) == (1, True)
    assert not ProfileStore(own_profiles).read().profiles


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ((), "the profile default is new: give --issuer and --client-id"),
        (("--issuer", "http://issuer.example", "--client-id", "x"), "begins with https://"),
        (("--issuer", "x", "--client-id", "x"), "no address of a provider"),
        (
            ("--issuer", "http://127.0.0.1:1", "--client-id", "x", "--endpoint", "http://x.example"),
            "https://",
        ),
    ],
)
def test_what_is_no_login(graphdb: Run, options: tuple[str, ...], reason: str) -> None:
    done = graphdb("auth", "login", *options)
    assert (done.exit_code, reason in done.err) == (2, True), done.err


def test_nobody_has_signed_in(graphdb: Run, own_profiles: Path) -> None:
    assert graphdb("auth", "token").exit_code == 2
    assert graphdb("auth", "profiles", "list", "--format", "json").out == "[]\n"
    assert graphdb("auth", "profiles", "list").exit_code == 0
    assert not own_profiles.exists()
    own_profiles.mkdir(parents=True)
    (own_profiles / "profiles.json").write_text("{")
    (own_profiles / "profiles.json").chmod(0o600)
    assert "is damaged" in graphdb("auth", "token").err


def test_a_key_of_the_environment_goes_before_the_default_profile(
    graphdb: Run, signed_in: ProfileStore, service: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAPHDB_API_KEY", KEYS["reader"])
    monkeypatch.setenv("GRAPHDB_ENDPOINT", service)
    assert "403: reader does not have" in graphdb("update", "CLEAR ALL").err
    assert graphdb("update", "CLEAR ALL", "--profile", "work").exit_code == 0


class Scripted:
    """A provider whose token endpoint answers what a test has listed, one after the other."""

    def __init__(self, *answers: Callable[[], Response]) -> None:
        self._answers = list(answers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        base = str(request.base_url).rstrip("/")
        if request.url.path == "/token":
            answer = self._answers.pop(0)()
        else:
            known = {"issuer": base, "jwks_uri": f"{base}/keys", "token_endpoint": f"{base}/token"}
            answer = JSONResponse(known)
        await answer(scope, receive, send)


def refused(code: str) -> Callable[[], Response]:
    return lambda: JSONResponse({"error": code}, 400)


def given(**changed: Any) -> Callable[[], Response]:
    made = {"access_token": "a.b.c", "token_type": "Bearer", "expires_in": 60} | changed
    return lambda: JSONResponse({name: value for name, value in made.items() if value is not None})


CODE = DeviceCode("d", "u", "https://x.example", None, 60, 1)


def test_polling_slows_down_as_it_is_told() -> None:
    waits: list[float] = []
    scripted = Scripted(
        refused("authorization_pending"),
        refused("slow_down"),
        refused("authorization_pending"),
        lambda: Response(b"<html>", 502),
        given(),
    )
    with serving(scripted) as issuer, Provider(issuer, "cli") as provider:
        assert provider.wait(CODE, waits.append).access_token == "a.b.c"
    assert waits == [1, 1, 6, 6, 12]


@pytest.mark.parametrize("code", ["access_denied", "expired_token", "invalid_grant"])
def test_polling_ends_where_it_is_refused(code: str) -> None:
    with (
        serving(Scripted(refused(code))) as issuer,
        Provider(issuer, "cli") as provider,
        pytest.raises(GrantRefused, match=code),
    ):
        provider.wait(CODE, lambda _: None)


@pytest.mark.parametrize(
    "changed",
    [
        {"access_token": None},
        {"access_token": "a\r\nX: y"},
        {"access_token": "\u20ac"},
        {"access_token": "x" * 20_000},
        {"access_token": ["x"]},
        {"token_type": "DPoP"},
        {"token_type": None},
        {"expires_in": "soon"},
        {"expires_in": -1},
        {"expires_in": True},
        {"refresh_token": 7},
        {"padding": "x" * 600_000},
    ],
)
def test_tokens_that_cannot_be_used(changed: dict[str, Any]) -> None:
    with serving(Scripted(given(**changed))) as issuer, Provider(issuer, "cli") as provider:
        with pytest.raises(ProviderAway) as raised:
            provider.refresh("r")
        assert "a.b.c" not in str(raised.value)
