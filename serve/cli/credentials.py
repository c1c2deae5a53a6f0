"""To which service commands come, and with which credentials: a profile's, or those of the environment."""

import getpass
import os
import sys
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import httpx

from graphdb.addresses import provider_url
from serve.cli.console import UsageError
from serve.cli.profiles_file import PROFILES_FILE, profiles_directory

if TYPE_CHECKING:
    from serve.cli.profiles import ProfileStore

__all__ = [
    "DEFAULT_ENDPOINT",
    "Target",
    "check_safe",
    "credential_headers",
    "find_target",
]

DEFAULT_ENDPOINT = "http://127.0.0.1:7001"

_CHOICES = ("GRAPHDB_API_KEY", "GRAPHDB_TOKEN", "GRAPHDB_USER")


@dataclass(frozen=True, slots=True)
class Target:
    """A service, and how requests to it show who asks: by headers, or as auth does."""

    endpoint: str
    headers: dict[str, str] = field(default_factory=dict, repr=False)
    auth: httpx.Auth | None = None


def find_target(
    endpoint: str | None, profile: str | None, environ: Mapping[str, str] | None = None
) -> Target:
    """What the options mean, each None where it was not given. Raises CommandError.

    A profile that was not asked for shows its token to its own service alone.
    """
    environ = os.environ if environ is None else environ
    if profile is not None:
        return _signed_in(_profiles(), profile, endpoint)
    endpoint, headers = endpoint or environ.get("GRAPHDB_ENDPOINT"), credential_headers(environ)
    if not headers and _has_profiles():
        store = _profiles()
        profiles = store.read()
        name = profiles.default
        found = profiles.profiles.get(name) if name else None
        if name and found and (endpoint is None or endpoint.rstrip("/") == found.endpoint):
            return _signed_in(store, name, None)
    return Target(endpoint or DEFAULT_ENDPOINT, headers)


def _has_profiles() -> bool:
    try:
        return (profiles_directory() / PROFILES_FILE).exists()
    except PermissionError:  # as in the home of another user
        return False


def _profiles() -> "ProfileStore":
    # at the top, every command would load pydantic, 50 ms, for a file that most people do not have
    from serve.cli.profiles import ProfileStore

    return ProfileStore()


def _signed_in(store: "ProfileStore", name: str, endpoint: str | None) -> Target:
    profiles = store.read()
    found = endpoint or profiles.profiles[profiles.chosen(name)].endpoint
    check_safe(found)
    from serve.cli.profiles import ProfileAuth  # as in `_profiles`

    return Target(found, auth=ProfileAuth(store, name))


def check_safe(endpoint: str) -> None:
    """Raises UsageError where others could read a token on its way (RFC 6750, section 5.3)."""
    try:
        provider_url(endpoint)
    except ValueError:
        raise UsageError(
            f"--endpoint {endpoint}: tokens of profiles go to https:// addresses, or loopback"
        ) from None


def credential_headers(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """By GRAPHDB_API_KEY, or GRAPHDB_TOKEN, or GRAPHDB_USER and GRAPHDB_PASSWORD, which is asked for where it
    is not set; empty without any. Raises UsageError.
    """
    environ = os.environ if environ is None else environ
    given = [name for name in _CHOICES if environ.get(name)]
    if len(given) > 1:
        raise UsageError(f"{' and '.join(given)} are both set; which one is meant?")
    if not given:
        return {}
    value = environ[given[0]]
    if not value.isprintable() or (given[0] != "GRAPHDB_USER" and not value.isascii()):
        raise UsageError(f"{given[0]} holds characters that it cannot have")
    match given[0]:
        case "GRAPHDB_API_KEY":
            return {"X-API-Key": value}
        case "GRAPHDB_TOKEN":
            return {"Authorization": f"Bearer {value}"}
    password = environ.get("GRAPHDB_PASSWORD")
    if password is None:
        if not sys.stdin.isatty():
            raise UsageError("GRAPHDB_USER is set, and GRAPHDB_PASSWORD is not")
        password = getpass.getpass(f"Password of {value}: ")
    return {"Authorization": "Basic " + b64encode(f"{value}:{password}".encode()).decode()}
