"""Prefixes that clients keep in the service: the commands that change them in the log, and `NamespaceBook`,
all of them as the log has them. They say how IRIs may be shortened, and have no effect on any query.

In bytes, for the data directory: `graphdb.checked_json` with the mark "GLNS": `through` and the namespaces.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import orjson

from graphdb.checked_json import ExpectedJson, from_checked_json, read_command, to_checked_json
from graphdb.errors import InvalidParameter, LimitExceeded

__all__ = [
    "ClearNamespaces",
    "NamespaceBook",
    "NamespaceCommand",
    "RemoveNamespace",
    "SetNamespace",
    "decode_namespace_command",
    "encode_namespace_command",
]

# All are in memory, and written whole with each checkpoint.
NAMESPACES_MAX, PREFIX_CHARACTERS_MAX, IRI_CHARACTERS_MAX = 10_000, 200, 2_000

_MARK = b"GLNS"
# PN_PREFIX of SPARQL, or nothing; a little wider: letters and digits of any alphabet
_PREFIX = re.compile(r"(?:[^\W\d_](?:[\w.-]*[\w-])?)?")
_IRI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20<>\"{}|^`\\]*")


@dataclass(frozen=True, slots=True)
class SetNamespace:
    """The prefix stands for the start of IRIs from here on, whatever it stood for before."""

    prefix: str
    iri: str
    do: Literal["set"] = "set"


@dataclass(frozen=True, slots=True)
class RemoveNamespace:
    """The prefix stands for nothing; no error if it did not."""

    prefix: str
    do: Literal["remove"] = "remove"


@dataclass(frozen=True, slots=True)
class ClearNamespaces:
    """No prefix stands for anything."""

    do: Literal["clear"] = "clear"


NamespaceCommand: TypeAlias = SetNamespace | RemoveNamespace | ClearNamespaces
_COMMANDS = ExpectedJson[NamespaceCommand](NamespaceCommand, "do")


def encode_namespace_command(command: NamespaceCommand) -> bytes:
    """The payload of an entry. Raises TypeError for text that is no Unicode (a lone surrogate)."""
    return orjson.dumps(command)


def decode_namespace_command(payload: bytes) -> NamespaceCommand:
    """See `read_command`."""
    return read_command(payload, _COMMANDS, "namespaces")


@dataclass(frozen=True, slots=True)
class _State:
    through: int  # the log index of the last entry that was taken
    namespaces: dict[str, str]  # IRIs by prefix; it is not changed


_STATES = ExpectedJson[_State](_State)


class NamespaceBook:
    """Fed by a `Replayer` with every entry that concerns it, in order, on one thread; any may read.

    The same entries make the same namespaces everywhere.
    """

    def __init__(self) -> None:
        """Empty."""
        self._state = _State(0, {})  # another one after each change, so that readers need no lock

    @property
    def namespaces(self) -> Mapping[str, str]:
        """The IRI of each prefix, in the order of the prefixes."""
        return dict(sorted(self._state.namespaces.items()))

    def plan(self, command: NamespaceCommand) -> bytes:
        """The payload of the entry that makes a command true.

        Raises InvalidParameter for what cannot be a prefix or the start of an IRI; LimitExceeded.
        """
        if isinstance(command, SetNamespace):
            _check(command)
            count = len(_changed(self._state.namespaces, command))
            if count > NAMESPACES_MAX and command.prefix not in self._state.namespaces:
                raise LimitExceeded("number of namespaces", count, NAMESPACES_MAX)
        return encode_namespace_command(command)

    def apply(self, log_index: int, payload: bytes) -> None:
        """Take the entry at log_index. Raises CorruptionError."""
        if log_index > self._state.through:
            command = decode_namespace_command(payload)
            self._state = _State(log_index, _changed(self._state.namespaces, command))

    def to_bytes(self) -> bytes:
        """All of it, as of one moment."""
        return to_checked_json(_MARK, self._state)

    @classmethod
    def from_bytes(cls, data: bytes) -> "NamespaceBook":
        """What to_bytes has written. Raises CorruptionError."""
        book = cls()
        book._state = from_checked_json(_MARK, data, _STATES, "the file of namespaces", "namespaces")
        return book


def _changed(namespaces: dict[str, str], command: NamespaceCommand) -> dict[str, str]:
    match command:
        case SetNamespace(prefix, iri):
            return namespaces | {prefix: iri}
        case RemoveNamespace(prefix):
            return {other: iri for other, iri in namespaces.items() if other != prefix}
        case ClearNamespaces():
            return {}


def _check(command: SetNamespace) -> None:
    if len(command.prefix) > PREFIX_CHARACTERS_MAX or not _PREFIX.fullmatch(command.prefix):
        raise InvalidParameter("prefix", f"{command.prefix[:100]!r} is not a prefix of SPARQL")
    if len(command.iri) > IRI_CHARACTERS_MAX or not _IRI.fullmatch(command.iri):
        raise InvalidParameter("namespace", f"{command.iri[:100]!r} is not the start of an absolute IRI")
