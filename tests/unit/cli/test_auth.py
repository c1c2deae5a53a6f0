"""`graphdb auth`, and the credentials with which the other commands come."""

import io
import tomllib
from base64 import b64encode
from pathlib import Path

import pytest
from argon2 import PasswordHasher

from graphdb.access.api_keys import key_digest
from graphdb.config.access import ApiKey
from serve.cli.console import UsageError
from serve.cli.credentials import credential_headers
from serve.graph_app import build_app
from tests.support.http_server import serving
from tests.support.memory_backend import MemoryBackend
from tests.unit.cli.conftest import Run
from tests.unit.serve.access.accounts import KEYS, settings_of, token


def test_a_hash_of_what_standard_input_says(graphdb: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("pass word\nmore"))
    done = graphdb("auth", "hash-password")
    assert done.exit_code == 0
    assert PasswordHasher().verify(done.out.removesuffix("\n"), "pass word")


@pytest.mark.parametrize("text", ["", "\n", "x" * 2_000])
def test_what_is_no_password(graphdb: Run, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    assert graphdb("auth", "hash-password").exit_code == 2


def test_a_key_and_what_the_configuration_knows_of_it(graphdb: Run) -> None:
    options = ("--name", 'the "robot"', "--role", "writer", "--role", "x", "--sid", "S-1-5-21-7")
    done = graphdb("auth", "create-key", *options, "--expires-days", 3)
    key = done.out.removesuffix("\n")
    assert key.startswith("gdb_")
    assert len(key) > 40
    assert key not in done.err
    [table] = tomllib.loads(done.err[done.err.index("[[") :])["authentication"]["api_keys"]
    made = ApiKey.model_validate(table)
    assert (made.name, made.roles, made.sids) == ('the "robot"', ("writer", "x"), ("S-1-5-21-7",))
    assert made.key_sha256 == key_digest(key)
    assert made.expires_at is not None
    assert graphdb("auth", "create-key", "--name", "x").out.removesuffix("\n") != key


@pytest.mark.parametrize(
    "options", [("--name", ""), ("--name", "x", "--sid", "x"), ("--name", "x", "--role", "")]
)
def test_what_is_no_key(graphdb: Run, options: tuple[str, ...]) -> None:
    assert graphdb("auth", "create-key", *options).exit_code == 2


@pytest.mark.parametrize(
    ("environ", "headers"),
    [
        ({}, {}),
        ({"GRAPHDB_API_KEY": "", "GRAPHDB_PASSWORD": "x"}, {}),
        ({"GRAPHDB_API_KEY": "k"}, {"X-API-Key": "k"}),
        ({"GRAPHDB_TOKEN": "a.b"}, {"Authorization": "Bearer a.b"}),
        (
            {"GRAPHDB_USER": "ådå", "GRAPHDB_PASSWORD": "p:q"},
            {"Authorization": "Basic " + b64encode("ådå:p:q".encode()).decode()},
        ),
    ],
)
def test_credentials_of_the_environment(environ: dict[str, str], headers: dict[str, str]) -> None:
    assert credential_headers(environ) == headers


@pytest.mark.parametrize(
    "environ",
    [
        {"GRAPHDB_API_KEY": "k", "GRAPHDB_TOKEN": "t"},
        {"GRAPHDB_API_KEY": "k\r\nX: y"},
        {"GRAPHDB_TOKEN": "\u20ac"},
    ],
)
def test_credentials_that_cannot_be_meant(environ: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        credential_headers(environ)


def test_a_hash_that_is_none_stops_serve(
    graphdb: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    users = "users = [{username = 'ada', password_hash = '$argon2id$x'}]"
    (tmp_path / "graphdb.toml").write_text(
        f"[authentication]\nenabled = true\n[authentication.basic]\nenabled = true\n{users}"
    )
    done = graphdb("serve")
    reason = "is no Argon2id hash; graphdb auth hash-password makes one"
    where = "authentication.basic.users: password_hash of ada"
    assert (done.exit_code, done.err) == (1, f"graphdb: {where} {reason}\n")


def test_commands_show_them(graphdb: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(build_app(MemoryBackend(), settings_of(tmp_path))) as url:
        monkeypatch.setenv("GRAPHDB_ENDPOINT", url)
        refused = "graphdb: the service answered 401: this needs credentials\n"
        for command in (("query", "ASK {}"), ("update", "CLEAR ALL"), ("health",), ("dump",)):
            done = graphdb(*command)
            assert (done.exit_code, done.err) == (1, refused), command
        monkeypatch.setenv("GRAPHDB_TOKEN", token("reader", bare=True))
        for command in (("query", "ASK {}"), ("health",), ("dump",)):
            assert graphdb(*command).exit_code == 0, command
        assert "403: reader does not have" in graphdb("update", "CLEAR ALL").err
        monkeypatch.delenv("GRAPHDB_TOKEN")
        monkeypatch.setenv("GRAPHDB_API_KEY", KEYS["writer"])
        assert graphdb("update", "CLEAR ALL").exit_code == 0
