"""Queries that users keep in the service: what they are, the commands that change them in the log, and
`SavedQueryBook`, all of them as the log has them.

In bytes, for the data directory: `graphdb.checked_json` with the mark "GLSQ": `through` and the queries.
"""

from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, TypeAlias

import orjson

from graphdb.access.permissions import Permission
from graphdb.access.principal import Principal
from graphdb.checked_json import ExpectedJson, from_checked_json, read_command, to_checked_json
from graphdb.errors import AlreadyExists, Forbidden, LimitExceeded, NotFound, RequestError
from graphdb.timestamps import iso_timestamp

__all__ = [
    "CreateQuery",
    "DeleteQuery",
    "QueryCommand",
    "QueryDraft",
    "QueryWriter",
    "ReplaceQuery",
    "SavedQuery",
    "SavedQueryBook",
    "decode_query_command",
    "encode_query_command",
]

QUERIES_MAX = 500  # of one owner
# All are in memory, and written whole with each checkpoint.
OWNER_CHARACTERS_MAX, CHARACTERS_MAX = 2 << 20, 64 << 20

_MARK = b"GLSQ"


@dataclass(frozen=True, slots=True)
class QueryDraft:
    """A query to keep. view: how a client shows its answer; shared: whether others see it."""

    name: str
    description: str
    query: str
    view: str | None
    shared: bool


@dataclass(frozen=True, slots=True)
class SavedQuery:
    """A query that is kept. owner: a principal's name, as provider knows it; changed_at: ISO 8601, UTC."""

    id: str
    owner: str
    provider: str
    name: str
    description: str
    query: str
    view: str | None
    shared: bool
    changed_at: str

    @property
    def characters(self) -> int:
        """How much it takes of what an owner, and all, may have."""
        return len(self.name) + len(self.description) + len(self.query) + len(self.view or "")


@dataclass(frozen=True, slots=True)
class QueryWriter:
    """Who changes queries. The same name with two providers is two owners."""

    name: str
    provider: str
    may_administer: bool

    @classmethod
    def of(cls, principal: Principal) -> "QueryWriter":
        return cls(principal.name, principal.provider, principal.permission >= Permission.ADMIN)

    def owns(self, query: SavedQuery) -> bool:
        return (self.name, self.provider) == (query.owner, query.provider)


@dataclass(frozen=True, slots=True)
class CreateQuery:
    """A query is kept. at_ms: the writer's clock, Unix epoch."""

    id: str
    draft: QueryDraft
    by: QueryWriter
    at_ms: int
    do: Literal["create"] = "create"

    def made(self) -> SavedQuery:
        return _made(self.id, self.by.name, self.by.provider, self.draft, self.at_ms)


@dataclass(frozen=True, slots=True)
class ReplaceQuery:
    """It becomes another; its owner stays."""

    id: str
    draft: QueryDraft
    by: QueryWriter
    at_ms: int
    do: Literal["replace"] = "replace"

    def made(self, known: SavedQuery) -> SavedQuery:
        return _made(self.id, known.owner, known.provider, self.draft, self.at_ms)


@dataclass(frozen=True, slots=True)
class DeleteQuery:
    """It is gone."""

    id: str
    by: QueryWriter
    do: Literal["delete"] = "delete"


QueryCommand: TypeAlias = CreateQuery | ReplaceQuery | DeleteQuery
_COMMANDS = ExpectedJson[QueryCommand](QueryCommand, "do")


def encode_query_command(command: QueryCommand) -> bytes:
    """The payload of an entry. Raises TypeError for text that is no Unicode (a lone surrogate)."""
    return orjson.dumps(command)


def decode_query_command(payload: bytes) -> QueryCommand:
    """See `read_command`."""
    return read_command(payload, _COMMANDS, "saved queries")


@dataclass(frozen=True, slots=True)
class _State:
    through: int  # the log index of the last entry that was taken
    queries: dict[str, SavedQuery]  # by id; it is not changed


_STATES = ExpectedJson[_State](_State)


class SavedQueryBook:
    """Fed by a `Replayer` with every entry that concerns it, in order, on one thread; any may read.

    An owner sees its own queries and those that others share. It changes its own only; who may administer
    also changes those that are shared. The same entries make the same queries everywhere; a command that does
    not fit the present state has no effect.
    """

    def __init__(self) -> None:
        """Empty."""
        self._state = _State(0, {})  # another one after each change, so that readers need no lock

    def visible(self, reader: QueryWriter) -> list[SavedQuery]:
        """The reader's own and the shared ones, by name."""
        found = [one for one in self._state.queries.values() if one.shared or reader.owns(one)]
        return sorted(found, key=lambda one: (one.name.lower(), one.id))

    def find(self, query_id: str, reader: QueryWriter) -> SavedQuery:
        """One of `visible`. Raises NotFound."""
        found = self._state.queries.get(query_id)
        if found is None or not (found.shared or reader.owns(found)):
            raise NotFound("saved query", query_id)
        return found

    def plan(self, command: QueryCommand) -> bytes:
        """The payload of the entry that makes a command true in the present state.

        Raises NotFound, Forbidden, AlreadyExists; LimitExceeded where there are too many, or too long ones.
        """
        self._check_bounds(self._changed(command), command.by)
        return encode_query_command(command)

    def apply(self, log_index: int, payload: bytes) -> None:
        """Take the entry at log_index. Raises CorruptionError."""
        if log_index <= self._state.through:
            return
        command, queries = decode_query_command(payload), self._state.queries
        with suppress(RequestError):  # on every node: it fitted nowhere
            queries = self._changed(command)
        self._state = _State(log_index, queries)

    def _changed(self, command: QueryCommand) -> dict[str, SavedQuery]:
        """All queries behind a command. Raises NotFound, Forbidden, AlreadyExists where it does not fit."""
        queries = self._state.queries
        match command:
            case CreateQuery(query_id):
                if query_id in queries:
                    raise AlreadyExists("saved query", query_id)
                return queries | {query_id: command.made()}
            case ReplaceQuery(query_id):
                return queries | {query_id: command.made(self._changeable(query_id, command.by))}
            case DeleteQuery(query_id):
                self._changeable(query_id, command.by)
                return {other: one for other, one in queries.items() if other != query_id}

    def _changeable(self, query_id: str, by: QueryWriter) -> SavedQuery:
        found = self.find(query_id, by)
        if not (by.owns(found) or by.may_administer):
            raise Forbidden(by.name, "Admin", f"this query is {found.owner}'s")
        return found

    def _check_bounds(self, queries: dict[str, SavedQuery], by: QueryWriter) -> None:
        """Raises LimitExceeded where a change makes too much of what there was."""
        own = [one for one in queries.values() if by.owns(one)]
        for limit, value, allowed in (
            ("number of saved queries of one owner", len(own), QUERIES_MAX),
            ("characters of one owner's queries", sum(one.characters for one in own), OWNER_CHARACTERS_MAX),
            ("characters of all queries", sum(one.characters for one in queries.values()), CHARACTERS_MAX),
        ):
            if value > allowed and len(queries) >= len(self._state.queries):  # deleting always helps
                raise LimitExceeded(limit, value, allowed)

    def to_bytes(self) -> bytes:
        """All of it, as of one moment."""
        return to_checked_json(_MARK, self._state)

    @classmethod
    def from_bytes(cls, data: bytes) -> "SavedQueryBook":
        """What to_bytes has written. Raises CorruptionError."""
        book = cls()
        book._state = from_checked_json(_MARK, data, _STATES, "the file of saved queries", "saved-queries")
        return book


def _made(query_id: str, owner: str, provider: str, draft: QueryDraft, at_ms: int) -> SavedQuery:
    return SavedQuery(
        *(query_id, owner, provider, draft.name, draft.description, draft.query, draft.view, draft.shared),
        iso_timestamp(at_ms),
    )
