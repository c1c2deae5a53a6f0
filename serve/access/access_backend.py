"""What authentication needs of other components: failure counters, directories of users, the audit log."""

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
    """The counters of all nodes. If they are unreachable, they lock out no address, and nothing is raised."""

    @property
    def is_reached(self) -> bool:
        """Whether the last call succeeded."""
        ...

    async def wait_s(self, address: str) -> float: ...
    async def note_failure(self, address: str) -> None: ...
    async def close(self) -> None: ...


class Directory(Protocol):
    """An external directory of users and passwords, such as LDAP."""

    async def principal(self, given: PasswordGiven, check: Callable[[], Awaitable[None]]) -> Principal:
        """The user of this password. check is awaited right before the attempt, and raises to prevent it.

        Raises NotAuthenticated, UnavailableError (Overloaded too), and what check raises.
        """
        ...

    def stop(self) -> None: ...


class AuditLog(Protocol):
    """Lines of JSON. `note` does not wait for the disk."""

    @property
    def dropped(self) -> int:
        """The lines of this process that were dropped because the queue was full."""
        ...

    def note(self, line: Mapping[str, Any]) -> None: ...
    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class AccessBackend:
    """The components of one application, which closes them. Without failures it counts in memory."""

    failures: Failures | None = None
    shared_failures: SharedFailures | None = None
    directory: Directory | None = None
    audit: AuditLog | None = None
