"""Credentials read from headers and messages."""

from base64 import b64encode
from typing import Any

import pytest

from graphdb.access.credentials import (
    PASSWORD_BYTES_MAX,
    Credentials,
    KeyGiven,
    PasswordGiven,
    TokenGiven,
    credentials_of_headers,
    credentials_of_members,
)
from graphdb.errors import NotAuthenticated


def basic(text: str | bytes, scheme: bytes = b"Basic") -> bytes:
    return scheme + b" " + b64encode(text.encode() if isinstance(text, str) else text)


@pytest.mark.parametrize(
    ("header", "credentials"),
    [
        (b"Bearer a.b.c", TokenGiven("a.b.c")),
        (b"bearer   a.b.c ", TokenGiven("a.b.c")),
        (basic("ada:pass:word"), PasswordGiven("ada", "pass:word")),
        (basic("ada:"), PasswordGiven("ada", "")),
        (basic("åsa:ö", b"bAsIc"), PasswordGiven("åsa", "ö")),
        (b"ApiKey gdb_secret", KeyGiven("gdb_secret")),
        (basic("id:gdb_secret", b"ApiKey"), KeyGiven("gdb_secret")),
    ],
)
def test_the_header_authorization(header: bytes, credentials: Credentials) -> None:
    assert credentials_of_headers([], [header]) == credentials


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"Basic",
        b"Basic !!!",
        b"Basic " + b64encode(b"no colon"),
        basic(b"\xff:x"),
        b"Bearer ",
        b"ApiKey",
        b"Digest username=x",
        b"Negotiate abc",
        b"Bearer \xe9",
        b"Bearer " + b"x" * 20_000,
        basic("ada:" + "x" * 2_000),
    ],
)
def test_what_cannot_be_read_is_no_attempt(header: bytes) -> None:
    with pytest.raises(NotAuthenticated) as raised:
        credentials_of_headers([], [header])
    assert not raised.value.is_attempt


def test_a_key_goes_before_other_credentials() -> None:
    assert credentials_of_headers([b"k"], [basic("ada:x")]) == KeyGiven("k")


def test_nothing_is_no_credentials() -> None:
    assert credentials_of_headers([], []) is None


@pytest.mark.parametrize("headers", [([b"a", b"b"], []), ([], [b"Bearer a", b"Bearer b"])])
def test_the_same_header_twice_is_refused(headers: tuple[list[bytes], list[bytes]]) -> None:
    with pytest.raises(NotAuthenticated, match="more than once"):
        credentials_of_headers(*headers)


@pytest.mark.parametrize(
    ("members", "credentials"),
    [
        ({"token": "t"}, TokenGiven("t")),
        ({"api_key": "k"}, KeyGiven("k")),
        ({"user": "ada", "password": "p"}, PasswordGiven("ada", "p")),
    ],
)
def test_the_members_of_a_message(members: dict[str, str], credentials: Credentials) -> None:
    assert credentials_of_members(members) == credentials


@pytest.mark.parametrize(
    "members",
    [
        {},
        {"user": "ada"},
        {"token": "t", "api_key": "k"},
        {"token": 1},
        {"token": None},
        {"token": "\ud800"},
        {"token": "x" * 20_000},
        {"user": "", "password": "p"},
        {"user": "ada", "password": "x" * 2_000},
        {"token": "t", "more": "x"},
    ],
)
def test_other_members_are_refused(members: dict[str, Any]) -> None:
    with pytest.raises(NotAuthenticated):
        credentials_of_members(members)


def test_secrets_are_not_shown() -> None:
    shown = [repr(KeyGiven("secret")), repr(TokenGiven("secret")), repr(PasswordGiven("ada", "secret"))]
    assert not any("secret" in text for text in shown)


@pytest.mark.parametrize(
    "password",
    [" Of\tADA: ", "\u00e4\u0308\U0001f511", "x" * PASSWORD_BYTES_MAX],
    ids=["signs", "unicode", "long"],
)
def test_a_password_is_taken_as_it_is(password: str) -> None:
    header = b"Basic " + b64encode(f"ada:{password}".encode())
    assert credentials_of_headers([], [header]) == PasswordGiven("ada", password)
    assert credentials_of_members({"user": "ada", "password": password}) == PasswordGiven("ada", password)


def test_a_password_has_an_end() -> None:
    with pytest.raises(NotAuthenticated, match="1024 bytes at most"):
        credentials_of_members({"user": "ada", "password": "x" * PASSWORD_BYTES_MAX + "x"})
