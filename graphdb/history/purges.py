"""What was purged from the past, and which nodes have still to write their files anew: the commands in the
log, and `PurgeBook`, all of them as the log has them.

The IRI of what was purged is kept for as long as a node needs it, and no longer: what remains tells when, by
whom, and a salted digest, by which somebody who knows the IRI can tell that it was this one.

In bytes, for the data directory: `graphdb.checked_json` with the mark "GLPU": `through` and the purges.
"""

import hashlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import orjson

from graphdb.checked_json import ExpectedJson, from_checked_json, read_command, to_checked_json
from graphdb.errors import LimitExceeded, NotFound, RequestError
from graphdb.history.purging import PurgedUpTo, PurgeScope, ScopeKind

__all__ = [
    "OPEN_MAX",
    "NodePurged",
    "Purge",
    "PurgeBook",
    "PurgeCommand",
    "PurgeRecord",
    "decode_purge_command",
    "encode_purge_command",
    "is_purge",
    "scope_digest",
]

OPEN_MAX = 100  # that are under way at once: each file is looked through for all of them
_KEPT_MAX = 1_000  # that are done: all are in memory, and written whole with each checkpoint

_MARK = b"GLPU"


def scope_digest(scope: PurgeScope, salt: str) -> str:
    """SHA-256 of the salt, the kind and the IRI, with line feeds between them; hexadecimal."""
    return hashlib.sha256(f"{salt}\n{scope.kind}\n{scope.iri}".encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Purge:
    """From here on no state up to the log index of this entry has the scope. It stands where the present has
    nothing of it. nodes: which have to write their files anew. purged_by: `Principal.qualified_name`.
    """

    kind: ScopeKind
    iri: str
    salt: str
    purged_by: str
    purged_at_ms: int
    nodes: tuple[int, ...]
    do: Literal["purge"] = "purge"

    @property
    def scope(self) -> PurgeScope:
        return PurgeScope(self.kind, self.iri)


@dataclass(frozen=True, slots=True)
class NodePurged:
    """A node has done with all purges up to a log index, or is no member any more."""

    log_index: int
    node_id: int
    do: Literal["node_purged"] = "node_purged"


PurgeCommand: TypeAlias = Purge | NodePurged
_COMMANDS = ExpectedJson[PurgeCommand](PurgeCommand, "do")


def encode_purge_command(command: PurgeCommand) -> bytes:
    """The payload of an entry. Raises TypeError for text that is no Unicode (a lone surrogate)."""
    return orjson.dumps(command)


def decode_purge_command(payload: bytes) -> PurgeCommand:
    """See `read_command`."""
    return read_command(payload, _COMMANDS, "purges")


def is_purge(payload: bytes) -> bool:
    """Whether an entry takes something from all states before it. Raises CorruptionError."""
    return isinstance(decode_purge_command(payload), Purge)


@dataclass(frozen=True, slots=True)
class PurgeRecord:
    """One purge. iri: None once no node waits."""

    log_index: int
    kind: ScopeKind
    iri: str | None
    salt: str
    digest: str
    purged_by: str
    purged_at_ms: int
    waiting: tuple[int, ...]  # nodes

    @property
    def is_done(self) -> bool:
        """Whether all nodes have written their files anew."""
        return not self.waiting


@dataclass(frozen=True, slots=True)
class _State:
    through: int  # the log index of the last entry that was taken
    purges: tuple[PurgeRecord, ...]  # by log index


_STATES = ExpectedJson[_State](_State)


class PurgeBook:
    """Fed by a `Replayer` with every entry that concerns it, in order, on one thread; any may read.

    The same entries make the same book everywhere; a command that does not fit has no effect.
    """

    def __init__(self) -> None:
        """Empty."""
        self.on_change: Callable[[], None] = lambda: None  # after each, on the thread of `apply`
        self._state = _State(0, ())  # another one after each change, so that readers need no lock

    @property
    def purges(self) -> Sequence[PurgeRecord]:
        """In the order of the log."""
        return self._state.purges

    @property
    def last_index(self) -> int:
        """Of the newest purge; 0 without one. States before it lack something that they had."""
        purges = self._state.purges
        return purges[-1].log_index if purges else 0

    def find(self, log_index: int) -> PurgeRecord:
        """Raises NotFound."""
        for record in self._state.purges:
            if record.log_index == log_index:
                return record
        raise NotFound("purge", str(log_index))

    @property
    def open(self) -> list[PurgedUpTo]:
        """What some node has to write its files anew for."""
        return [
            PurgedUpTo(PurgeScope(record.kind, record.iri), record.log_index)
            for record in self._state.purges
            if record.iri is not None
        ]

    def plan(self, command: PurgeCommand) -> bytes:
        """The payload of the entry that makes a command true. Raises LimitExceeded, NotFound."""
        self._changed(0, command)
        if isinstance(command, Purge) and len(self.open) >= OPEN_MAX:
            raise LimitExceeded("number of purges under way", OPEN_MAX + 1, OPEN_MAX)
        return encode_purge_command(command)

    def apply(self, log_index: int, payload: bytes) -> None:
        """Take the entry at log_index. Raises CorruptionError."""
        if log_index <= self._state.through:
            return
        command, purges = decode_purge_command(payload), self._state.purges
        with suppress(RequestError):  # on every node: it fitted nowhere
            purges = self._changed(log_index, command)
        self._state = _State(log_index, purges)
        self.on_change()

    def _changed(self, log_index: int, command: PurgeCommand) -> tuple[PurgeRecord, ...]:
        """All of them behind a command. Raises NotFound where it does not fit."""
        purges = self._state.purges
        if isinstance(command, Purge):
            new = PurgeRecord(
                log_index,
                command.kind,
                command.iri if command.nodes else None,
                command.salt,
                scope_digest(command.scope, command.salt),
                command.purged_by,
                command.purged_at_ms,
                command.nodes,
            )
            return (*_newest(purges), new)
        changed = tuple(_without_node(record, command) for record in purges)
        if changed == purges:
            raise NotFound("purge that waits for node", str(command.node_id))
        return changed

    def to_bytes(self) -> bytes:
        """All of it, as of one moment."""
        return to_checked_json(_MARK, self._state)

    @classmethod
    def from_bytes(cls, data: bytes) -> "PurgeBook":
        """What to_bytes has written. Raises CorruptionError."""
        book = cls()
        book._state = from_checked_json(_MARK, data, _STATES, "the file of purges", "purges")
        return book


def _newest(purges: Sequence[PurgeRecord]) -> Sequence[PurgeRecord]:
    """Without the oldest of those that are done, where there are too many."""
    too_many = sum(record.is_done for record in purges) - _KEPT_MAX + 1
    kept = []
    for record in purges:
        if record.is_done and too_many > 0:
            too_many -= 1
        else:
            kept.append(record)
    return kept


def _without_node(record: PurgeRecord, command: NodePurged) -> PurgeRecord:
    if record.log_index > command.log_index or command.node_id not in record.waiting:
        return record
    waiting = tuple(node for node in record.waiting if node != command.node_id)
    return replace(record, waiting=waiting, iri=record.iri if waiting else None)
