"""Profiles: sign-ins to services, stored in a file that only their owner can read; their tokens, renewed."""

import fcntl
import os
import stat
import tempfile
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from serve.cli.console import CommandError, UsageError
from serve.cli.profiles_file import PROFILES_FILE, profiles_directory
from serve.cli.provider import Granted, GrantRefused, Provider, ProviderAway

__all__ = ["Profile", "ProfileAuth", "ProfileStore", "Profiles", "granted_to", "valid_profile"]

# `profiles_directory` says where the file is. It holds tokens.

_LOCK = "profiles.lock"


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
        self._directory = profiles_directory() if directory is None else directory

    def read(self) -> Profiles:
        """The profiles in the file; empty without one. Raises CommandError if others can read it, or it is
        damaged.
        """
        with suppress(PermissionError):  # as in the home of another user
            return self._read()
        return Profiles()

    def _read(self) -> Profiles:
        path = self._directory / PROFILES_FILE
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
        # for its owner alone
        descriptor, draft = tempfile.mkstemp(prefix=f".{PROFILES_FILE}.", dir=self._directory)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(profiles.model_dump_json(indent=2) + "\n")
                file.flush()
                os.fsync(file.fileno())
            Path(draft).replace(self._directory / PROFILES_FILE)
        except BaseException:
            with suppress(FileNotFoundError):
                Path(draft).unlink()
            raise


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
