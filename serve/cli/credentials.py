"""How a person signs in: profiles, credentials, a provider."""

import fcntl
import getpass
import os
import stat
import sys
import tempfile
import time
from base64 import b64encode
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from graphdb.addresses import provider_url
from serve.cli.console import CommandError, UsageError
from serve.cli.provider import Granted, GrantRefused, Provider, ProviderAway

__all__ = [
    "DEFAULT_ENDPOINT",
    "Profile",
    "ProfileStore",
    "Profiles",
    "Target",
    "check_safe",
    "credential_headers",
    "find_target",
    "granted_to",
    "valid_profile",
]

# Profiles: sign-ins to services, stored in a file that only their owner can read.
#
# `$XDG_CONFIG_HOME/graphdb/profiles.json`, else `~/.config/graphdb/profiles.json`, holds their tokens.

_FILE, _LOCK = "profiles.json", "profiles.lock"


class Profile(BaseModel):
    """One sign-in; expires_at: seconds of the Unix epoch, None if the provider did not send it."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    endpoint: str
    issuer: str
    client_id: str
    scope: str
    access_token: str = Field(repr=False)
    refresh_token: str | None = Field(repr=False)
    expires_at: float | None


class Profiles(BaseModel):
    """All of one person."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    default: str | None = None
    profiles: dict[str, Profile] = {}

    def chosen(self, name: str | None) -> str:
        """The profile with this name, or the default one. Raises UsageError for an unknown name."""
        found = name or self.default
        if found is None:
            raise UsageError("there is no default profile: graphdb auth login --default, or --profile NAME")
        if found not in self.profiles:
            raise UsageError(f"there is no profile {found}: graphdb auth login --profile {found}")
        return found


class ProfileStore:
    """The file. It is replaced as a whole, by one process at a time."""

    def __init__(self, directory: Path | None = None) -> None:
        """directory is the one of the environment unless given."""
        self._directory = _own_directory() if directory is None else directory

    def read(self) -> Profiles:
        """The profiles in the file; empty without one. Raises CommandError if others can read it, or it is
        damaged.
        """
        with suppress(PermissionError):  # as in the home of another user
            return self._read()
        return Profiles()

    def _read(self) -> Profiles:
        path = self._directory / _FILE
        try:
            with path.open("rb") as file:
                found = os.fstat(file.fileno())
                if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
                    raise CommandError(f"{path} holds secrets and is not yours alone: chmod 600 {path}")
                return Profiles.model_validate_json(file.read())
        except (FileNotFoundError, NotADirectoryError):
            return Profiles()
        except ValidationError:
            raise CommandError(
                f"{path} is damaged; remove it, and sign in again: graphdb auth login"
            ) from None

    @contextmanager
    def changing(self) -> Iterator[Profiles]:
        """The profiles, to be changed within the block; they are written when it ends without an error."""
        self._directory.mkdir(parents=True, exist_ok=True)
        self._directory.chmod(0o700)
        with os.fdopen(os.open(self._directory / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            profiles = self._read()
            yield profiles
            self._write(profiles)

    def _write(self, profiles: Profiles) -> None:
        descriptor, draft = tempfile.mkstemp(prefix=f".{_FILE}.", dir=self._directory)  # for its owner alone
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(profiles.model_dump_json(indent=2) + "\n")
                file.flush()
                os.fsync(file.fileno())
            Path(draft).replace(self._directory / _FILE)
        except BaseException:
            with suppress(FileNotFoundError):
                Path(draft).unlink()
            raise


def _own_directory() -> Path:
    """The directory of the XDG Base Directory Specification; a relative path is ignored."""
    configured = os.environ.get("XDG_CONFIG_HOME", "")
    base = Path(configured) if configured.startswith("/") else Path("~/.config").expanduser()
    return base / "graphdb"


# Tokens of profiles: kept when a person has signed in, shown to the service, renewed before they end.

_MARGIN_S = 30.0  # a token that ends sooner is renewed before it is used


class ProfileAuth(httpx.Auth):
    """The credentials of one profile, renewed as long as requests are made."""

    def __init__(self, store: ProfileStore, name: str) -> None:
        self._store, self._name = store, name
        self._profile: Profile | None = None

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Raises CommandError."""
        if self._profile is None or _ends_soon(self._profile):
            self._profile = valid_profile(self._store, self._name)
        request.headers["Authorization"] = f"Bearer {self._profile.access_token}"
        yield request


def granted_to(profile: Profile, granted: Granted) -> Profile:
    """The profile with new tokens; without a new refresh token the old one is kept."""
    return profile.model_copy(
        update={
            "access_token": granted.access_token,
            "refresh_token": granted.refresh_token or profile.refresh_token,
            "expires_at": None if granted.lives_s is None else time.time() + granted.lives_s,
        }
    )


def valid_profile(store: ProfileStore, name: str, renew: bool = False) -> Profile:
    """The profile with its token renewed if it expires soon, or always. Raises CommandError."""
    before = store.read()
    profile = before.profiles[before.chosen(name)]
    if not renew and not _ends_soon(profile):
        return profile
    with store.changing() as profiles:
        current = profiles.profiles[profiles.chosen(name)]
        # Another process may have renewed it while this one waited: its refresh token may be used once only.
        if current.access_token == profile.access_token or _ends_soon(current):
            current = _renewed(current, name, renew)
            profiles.profiles[name] = current
        return current


def _renewed(profile: Profile, name: str, must: bool) -> Profile:
    """Unless it must be renewed, a token that holds for a moment yet is better than none."""
    again = f"sign in again: graphdb auth login --profile {name}"
    will_do = not must and not _has_ended(profile)
    if profile.refresh_token is None:
        if will_do:
            return profile
        raise CommandError(f"the profile {name} has no refresh token (scope offline_access); {again}")
    try:
        with Provider(profile.issuer, profile.client_id) as provider:
            return granted_to(profile, provider.refresh(profile.refresh_token))
    except GrantRefused as error:
        raise CommandError(f"{error}; {again}") from None
    except ProviderAway:
        if not will_do:
            raise
        return profile


def _ends_soon(profile: Profile) -> bool:
    return profile.expires_at is not None and profile.expires_at - time.time() < _MARGIN_S


def _has_ended(profile: Profile) -> bool:
    return profile.expires_at is not None and profile.expires_at <= time.time()


# To which service commands come, and with which credentials: a profile's, or those of the environment.

DEFAULT_ENDPOINT = "http://127.0.0.1:7001"

_CHOICES = ("GRAPHDB_API_KEY", "GRAPHDB_TOKEN", "GRAPHDB_USER")


@dataclass(frozen=True, slots=True)
class Target:
    """A service, and how requests to it show who asks: by headers, or as auth does."""

    endpoint: str
    headers: dict[str, str] = field(default_factory=dict, repr=False)
    auth: ProfileAuth | None = None


def find_target(
    endpoint: str | None, profile: str | None, environ: Mapping[str, str] | None = None
) -> Target:
    """What the options mean, each None where it was not given. Raises CommandError.

    A profile that was not asked for shows its token to its own service alone.
    """
    environ = os.environ if environ is None else environ
    store = ProfileStore()
    if profile is not None:
        return _signed_in(store, profile, endpoint)
    endpoint, headers = endpoint or environ.get("GRAPHDB_ENDPOINT"), credential_headers(environ)
    if not headers:
        profiles = store.read()
        name = profiles.default
        found = profiles.profiles.get(name) if name else None
        if name and found and (endpoint is None or endpoint.rstrip("/") == found.endpoint):
            return _signed_in(store, name, None)
    return Target(endpoint or DEFAULT_ENDPOINT, headers)


def _signed_in(store: ProfileStore, name: str, endpoint: str | None) -> Target:
    profiles = store.read()
    found = endpoint or profiles.profiles[profiles.chosen(name)].endpoint
    check_safe(found)
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
