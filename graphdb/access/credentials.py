"""Credentials as they come: read from headers or from the members of a message, not yet believed."""

import binascii
from base64 import b64decode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from graphdb.errors import NotAuthenticated

__all__ = [
    "MEMBER_NAMES",
    "PASSWORD_BYTES_MAX",
    "Credentials",
    "KeyGiven",
    "PasswordGiven",
    "TokenGiven",
    "credentials_of_headers",
    "credentials_of_members",
]

_LENGTH_MAX = 16_384  # of anything that is taken for credentials
PASSWORD_BYTES_MAX = 1_024
MEMBER_NAMES = ("token", "api_key", "user", "password")
"""Of credentials in a query string or a message."""

_MEMBERS = ({"token"}, {"api_key"}, {"user", "password"})


@dataclass(frozen=True, slots=True)
class KeyGiven:
    """An API key."""

    key: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class TokenGiven:
    """A bearer token."""

    token: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class PasswordGiven:
    """A user's name and password."""

    user: str
    password: str = field(repr=False)


Credentials: TypeAlias = KeyGiven | TokenGiven | PasswordGiven


def credentials_of_headers(keys: Sequence[bytes], authorizations: Sequence[bytes]) -> Credentials | None:
    """What the headers X-API-Key and Authorization say, each as often as it was sent; the key goes before.

    None where neither is there. Raises NotAuthenticated for what cannot be read, or stands twice.
    """
    if len(keys) > 1 or len(authorizations) > 1:
        raise NotAuthenticated("credentials are given more than once")
    if keys:
        return KeyGiven(_text(keys[0], "the API key"))
    return _authorization(_text(authorizations[0], "the header Authorization")) if authorizations else None


def credentials_of_members(members: Mapping[str, Any]) -> Credentials:
    """`token`, `api_key`, or `user` and `password`, nothing else. Raises NotAuthenticated."""
    if set(members) not in _MEMBERS or not all(isinstance(value, str) for value in members.values()):
        raise NotAuthenticated("credentials are token, or api_key, or user and password: each a text")
    texts = {name: _checked(value, name) for name, value in members.items()}
    if "token" in texts:
        return TokenGiven(texts["token"])
    if "api_key" in texts:
        return KeyGiven(texts["api_key"])
    return _password(texts["user"], texts["password"])


def _authorization(header: str) -> Credentials:
    scheme, _, value = header.partition(" ")
    value = value.strip(" ")
    match scheme.lower():
        case "bearer":
            return TokenGiven(_present(value))
        case "basic":
            user, colon, password = _decoded(value).partition(":")
            if not colon:
                raise NotAuthenticated("the header Authorization is malformed")
            return _password(user, password)
        case "apikey":  # Elasticsearch's: base64 of the key's id and the key, or the key alone
            return KeyGiven(_key_alone(_present(value)))
    raise NotAuthenticated("only Bearer, Basic and ApiKey are understood in the header Authorization")


def _key_alone(value: str) -> str:
    try:
        _, colon, key = _decoded(value).partition(":")
    except NotAuthenticated:
        return value
    return key if colon else value


def _password(user: str, password: str) -> PasswordGiven:
    if len(password.encode()) > PASSWORD_BYTES_MAX:
        raise NotAuthenticated(f"a password has {PASSWORD_BYTES_MAX} bytes at most")
    return PasswordGiven(user, password)


def _decoded(value: str) -> str:
    try:
        return b64decode(value.encode("ascii"), validate=True).decode()
    except (binascii.Error, UnicodeError):
        raise NotAuthenticated("the header Authorization is malformed") from None


def _present(value: str) -> str:
    if not value:
        raise NotAuthenticated("the header Authorization is malformed")
    return value


def _text(value: bytes, what: str) -> str:
    try:
        return _checked(value.decode("ascii").strip(), what)
    except UnicodeDecodeError:
        raise NotAuthenticated(f"{what} is malformed") from None


def _checked(text: str, what: str) -> str:
    """Bounded, and encodable: a lone surrogate is not."""
    if not text or len(text) > _LENGTH_MAX:
        raise NotAuthenticated(f"{what} is empty, or longer than {_LENGTH_MAX} characters")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise NotAuthenticated(f"{what} is malformed") from None
    return text
