"""Profiles: services that a person has signed in to, kept in a file that nobody else may read.

`$XDG_CONFIG_HOME/graphdb/profiles.json`, else `~/.config/graphdb/profiles.json`, holds their tokens.
"""

import fcntl
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, TypeAlias

import typer
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from serve.cli.console import CommandError, UsageError

__all__ = ["Profile", "ProfileName", "ProfileStore", "Profiles"]

ProfileName: TypeAlias = Annotated[
    str | None,
    typer.Option("--profile", help="Sign in as `graphdb auth login` has for this profile.", metavar="NAME"),
]
_FILE, _LOCK = "profiles.json", "profiles.lock"


class Profile(BaseModel):
    """One sign-in; expires_at is of the Unix epoch, None where the provider has not said when it ends."""

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
        """The name, else the default one's. Raises UsageError where it is nobody's."""
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
        """Empty where there is no file to be read. Raises CommandError where others may, or it is damaged."""
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
    """Of the XDG Base Directory Specification; what is not absolute does not count."""
    configured = os.environ.get("XDG_CONFIG_HOME", "")
    base = Path(configured) if configured.startswith("/") else Path("~/.config").expanduser()
    return base / "graphdb"
