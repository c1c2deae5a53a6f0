"""`SavedQueryStore`: the queries that users keep in a node, in one small file of SQLite."""

import sqlite3
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

from graphdb.errors import Forbidden, LimitExceeded, NotFound
from graphdb.node import QueryDraft, SavedQuery

__all__ = ["SavedQueryStore"]

QUERIES_MAX = 500  # of one owner
_COLUMNS = "id, owner, name, description, query, view, shared, changed_at"
_SCHEMA = """
CREATE TABLE IF NOT EXISTS queries (
    id TEXT PRIMARY KEY, owner TEXT NOT NULL, name TEXT NOT NULL, description TEXT NOT NULL,
    query TEXT NOT NULL, view TEXT, shared INTEGER NOT NULL, changed_at TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS by_owner ON queries (owner);
"""


class SavedQueryStore:
    """Of one node. It is opened at the first call; a change is on disk when its call returns. Any thread.

    An owner sees its own queries and those that others share. It changes its own only; who may administer
    also changes those that are shared.
    """

    def __init__(self, path: Path | None) -> None:
        """path None: in memory, until its end."""
        self._path = path
        self._lock = threading.Lock()
        self._opened: sqlite3.Connection | None = None

    def list(self, owner: str) -> list[SavedQuery]:
        """The owner's own and the shared ones, by name."""
        with self._lock:
            rows = self._database().execute(
                f"SELECT {_COLUMNS} FROM queries WHERE owner = ? OR shared ORDER BY lower(name), id", (owner,)
            )
            return [_read(row) for row in rows]

    def show(self, query_id: str, owner: str) -> SavedQuery:
        """One of `list`. Raises NotFound."""
        with self._lock:
            return self._visible(query_id, owner)

    def create(self, draft: QueryDraft, owner: str) -> SavedQuery:
        """Keep a new one. Raises LimitExceeded."""
        made = _made(uuid4().hex, draft, owner)
        with self._lock, self._database() as database:
            [count] = database.execute("SELECT count(*) FROM queries WHERE owner = ?", (owner,)).fetchone()
            if count >= QUERIES_MAX:
                raise LimitExceeded("saved queries", count + 1, QUERIES_MAX)
            self._put(database, made)
        return made

    def replace(self, query_id: str, draft: QueryDraft, owner: str, *, may_administer: bool) -> SavedQuery:
        """Change one; its owner stays. Raises NotFound, Forbidden."""
        with self._lock, self._database() as database:
            known = self._changeable(query_id, owner, may_administer)
            made = _made(query_id, draft, known.owner)
            self._put(database, made)
        return made

    def delete(self, query_id: str, owner: str, *, may_administer: bool) -> None:
        """Raises NotFound, Forbidden."""
        with self._lock, self._database() as database:
            self._changeable(query_id, owner, may_administer)
            database.execute("DELETE FROM queries WHERE id = ?", (query_id,))

    def close(self) -> None:
        """Let go of the file. Closing twice is allowed."""
        with self._lock:
            if self._opened is not None:
                self._opened.close()
                self._opened = None

    def _database(self) -> sqlite3.Connection:
        if self._opened is None:
            opened = sqlite3.connect(self._path or ":memory:", check_same_thread=False)
            opened.execute("PRAGMA synchronous = FULL")
            opened.executescript(_SCHEMA)
            self._opened = opened
        return self._opened

    def _visible(self, query_id: str, owner: str) -> SavedQuery:
        row = (
            self._database()
            .execute(
                f"SELECT {_COLUMNS} FROM queries WHERE id = ? AND (owner = ? OR shared)", (query_id, owner)
            )
            .fetchone()
        )
        if row is None:
            raise NotFound("saved query", query_id)
        return _read(row)

    def _changeable(self, query_id: str, owner: str, may_administer: bool) -> SavedQuery:
        found = self._visible(query_id, owner)
        if found.owner != owner and not may_administer:
            raise Forbidden(owner, "Admin", f"this query is {found.owner}'s")
        return found

    def _put(self, database: sqlite3.Connection, query: SavedQuery) -> None:
        values = (
            *(query.id, query.owner, query.name, query.description),
            *(query.query, query.view, query.shared, query.changed_at),
        )
        database.execute(
            f"INSERT OR REPLACE INTO queries ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values
        )


def _made(query_id: str, draft: QueryDraft, owner: str) -> SavedQuery:
    changed_at = datetime.now(UTC).isoformat(timespec="milliseconds")
    return SavedQuery(
        query_id, owner, draft.name, draft.description, draft.query, draft.view, draft.shared, changed_at
    )


def _read(row: Any) -> SavedQuery:
    """row has _COLUMNS."""
    query_id, owner, name, description, query, view, shared, changed_at = row
    return SavedQuery(query_id, owner, name, description, query, view, bool(shared), changed_at)
