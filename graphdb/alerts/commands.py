"""What an entry of the log says of alerts, and its bytes: a JSON object whose member `do` tells which."""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import orjson

from graphdb.alerts.definition import Definition, Value
from graphdb.checked_json import ExpectedJson, read_command

__all__ = [
    "Command",
    "Create",
    "Delete",
    "Fire",
    "Note",
    "Pause",
    "Resume",
    "Settle",
    "decode_command",
    "encode_command",
]

# `alert` is an id, or a name where a request says it; `at_ms` is the writer's clock, Unix epoch.


@dataclass(frozen=True, slots=True)
class Create:
    """An alert comes into being."""

    id: str
    definition: Definition
    at_ms: int
    do: Literal["create"] = "create"


@dataclass(frozen=True, slots=True)
class Delete:
    """It is gone, with its history and with what was still to be told."""

    alert: str
    do: Literal["delete"] = "delete"


@dataclass(frozen=True, slots=True)
class Pause:
    """It is not evaluated any more; what has fired is still told."""

    alert: str
    do: Literal["pause"] = "pause"


@dataclass(frozen=True, slots=True)
class Resume:
    """It is evaluated again, and whatever was wrong is forgotten."""

    alert: str
    do: Literal["resume"] = "resume"


@dataclass(frozen=True, slots=True)
class Fire:
    """Its condition held at the evaluation that was due at tick_ms, and is to be told."""

    alert: str
    delivery: str
    at_ms: int
    tick_ms: int
    snapshot_index: int
    value: Value | None
    body: str = field(repr=False)
    do: Literal["fire"] = "fire"


@dataclass(frozen=True, slots=True)
class Note:
    """An evaluation that has told something new, but not to its webhook: what was wrong, that it is well
    again, that the condition has ceased to hold.
    """

    alert: str
    at_ms: int
    tick_ms: int
    value: Value | None
    is_holding: bool
    error: str | None
    do: Literal["note"] = "note"


@dataclass(frozen=True, slots=True)
class Settle:
    """A delivery is done with: told, or given up where there is an error."""

    alert: str
    delivery: str
    at_ms: int
    attempts: int
    status_code: int | None
    error: str | None
    do: Literal["settle"] = "settle"


Command: TypeAlias = Create | Delete | Pause | Resume | Fire | Note | Settle
_COMMANDS = ExpectedJson[Command](Command, "do")


def encode_command(command: Command) -> bytes:
    """The payload of an entry. Raises TypeError for text that is no Unicode (a lone surrogate)."""
    return orjson.dumps(command)


def decode_command(payload: bytes) -> Command:
    """See `read_command`."""
    return read_command(payload, _COMMANDS, "alerts")
