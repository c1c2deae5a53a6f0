"""What the door needs of others: counts that outlive an application, directories, a file to write to."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from graphdb.access.credentials import PasswordGiven
from graphdb.access.principal import Principal

__all__ = ["AccessBackend", "AuditLog", "Directory", "Failures", "SharedFailures"]


class Failures(Protocol):
    """Failed attempts by address, as `Lockout` counts them; times are those of time.monotonic."""

    def wait_s(self, address: str, now_s: float) -> float: ...
    def note_failure(self, address: str, now_s: float) -> bool: ...


class SharedFailures(Protocol):
    """Those of all nodes. Where they cannot be reached nobody is locked out by them; nothing is raised."""

    @property
    def is_reached(self) -> bool:
        """As far as it is known from the last time that they were asked."""
        ...

    async def wait_s(self, address: str) -> float: ...
    async def note_failure(self, address: str) -> None: ...
    async def close(self) -> None: ...


class Directory(Protocol):
    """Users and passwords that are kept elsewhere."""

    async def principal(self, given: PasswordGiven, check: Callable[[], Awaitable[None]]) -> Principal:
        """Whose password it is; check is awaited once it is its turn, and raises where it is not to be tried.

        Raises NotAuthenticated; UnavailableError, of which Overloaded is one, where it cannot be told now;
        what check raises.
        """
        ...

    def stop(self) -> None: ...


class AuditLog(Protocol):
    """Lines of JSON. Nobody who notes one waits for a disk."""

    @property
    def dropped(self) -> int:
        """How many lines of this process there was no room for."""
        ...

    def note(self, line: Mapping[str, Any]) -> None: ...
    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class AccessBackend:
    """Of one application, which closes them; without failures it counts by itself."""

    failures: Failures | None = None
    shared_failures: SharedFailures | None = None
    directory: Directory | None = None
    audit: AuditLog | None = None
