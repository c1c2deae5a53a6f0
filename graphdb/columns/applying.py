"""Changes of a view: those of the log, many at a time in one transaction, its statistics, and the collection
of terms that no quad has any more.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Protocol

from duckdb import DuckDBPyConnection

from graphdb.columns.encoding import DELTA, NAMED, TURNS, encode, encode_names
from graphdb.columns.entry_lines import EntryLines, NetLines
from graphdb.columns.past_rows import keeps_past, note_graph_turns, note_turns
from graphdb.columns.predicate_tables import TableChange, change_quads, give_table
from graphdb.columns.schema import (
    FREQUENT_QUADS,
    GRAPH_SPANS,
    HASH_BITS,
    PAST_TURNS,
    REST,
    STALE,
    TABLES_MAX,
    predicate_table,
)

__all__ = [
    "REMOVED_MIN",
    "Notes",
    "add_graphs",
    "apply_changes",
    "collect_terms",
    "drop_graphs",
    "is_worth_collecting",
    "take_statistics",
    "transaction",
]

REMOVED_MIN: Final = 100_000  # quads that have to be removed before it is worth a look
_TERMS_A_REMOVED = 8  # or fewer: then half of the terms may be dead, as a quad has four
_DEAD_TRIPLES = """
DELETE FROM triple_terms WHERE id NOT IN (SELECT id FROM live)
AND id NOT IN (SELECT s FROM triple_terms UNION SELECT o FROM triple_terms)"""


class Notes(Protocol):
    """Who wants to know what changes."""

    def note(
        self, connection: DuckDBPyConnection, tables: Mapping[int, TableChange], graphs: Sequence[str]
    ) -> None:
        """Within the transaction, after some changes of the log: `delta` has their quads, if tables are not
        empty, and graphs, N-Triples terms, were made or dropped.
        """
        ...


def apply_changes(
    connection: DuckDBPyConnection, entries: EntryLines, scratch: Path, notes: Notes | None = None
) -> set[int]:
    """Bring the view to where entries has come; the predicates whose quads have changed.

    Afterwards the connection is outside a transaction. Raises CorruptionError where the view does not have
    what is removed, or the errors of DuckDB; then nothing has changed.
    """
    changed = set[int]()
    with transaction(connection):
        for net in entries.lines():
            changed |= _apply(connection, net, scratch, notes)
        _set_meta(connection, "log_index", entries.applied_index)
        _set_meta(connection, "resume_index", entries.resume_index)
    return changed


def take_statistics(connection: DuckDBPyConnection, predicates_max: int = 1) -> bool:
    """Count the distinct subjects and objects of some predicates whose counts are stale, the smallest first,
    or, where none are, the distinct subjects or objects of all quads; whether there was anything stale.
    """
    run = connection.execute
    stale = run(
        "SELECT p, tbl FROM predicates WHERE is_stale ORDER BY quads LIMIT ?", [predicates_max]
    ).fetchall()
    for predicate, table in stale:
        where = f" WHERE p = {predicate}" if table == REST else ""
        run(
            "UPDATE predicates SET subjects = found.subjects, objects = found.objects, is_stale = false FROM "
            f"(SELECT count(DISTINCT s) AS subjects, count(DISTINCT o) AS objects FROM {table}{where}) found "
            f"WHERE p = {predicate}"
        )
    return (
        bool(stale) or _count_whole(connection, "subjects", "s") or _count_whole(connection, "objects", "o")
    )


def _count_whole(connection: DuckDBPyConnection, key: str, column: str) -> bool:
    run = connection.execute
    if run("SELECT 1 FROM meta WHERE key = ? AND value <> ?", [key, STALE]).fetchone():
        return False
    tables = run("SELECT DISTINCT tbl FROM predicates ORDER BY tbl").fetchall()
    ends = " UNION ALL ".join(f"SELECT {column} FROM {table}" for (table,) in tables)
    # not COUNT(DISTINCT), which cannot spill
    ((count,),) = (
        run(f"SELECT count(*) FROM (SELECT DISTINCT * FROM ({ends}))").fetchall() if ends else ((0,),)
    )
    _set_meta(connection, key, count)
    return True


def _apply(connection: DuckDBPyConnection, net: NetLines, scratch: Path, notes: Notes | None) -> set[int]:
    """The predicates whose quads have changed."""
    tables: dict[int, TableChange] = {}
    is_past_kept = keeps_past(connection)
    # created before quads come, dropped after they have gone
    add_graphs(connection, net.created_graphs, scratch)
    if net.has_quads:
        lines = scratch / "changed.nq"
        net.write(lines)
        encode(connection, lines)
        lines.unlink()
        _note_graphs(connection)
        _note_sums(connection, is_past_kept=is_past_kept)
        for predicate, more, less in _per_predicate(connection):
            tables[predicate] = _change_predicate(connection, predicate, more, less)
    drop_graphs(connection, net.dropped_graphs)
    if is_past_kept:
        if net.has_quads:
            note_turns(connection)
        if net.graph_turns:
            encode_names(connection, list(dict.fromkeys(graph for graph, _ in net.graph_turns)), scratch)
            note_graph_turns(connection, net.graph_turns)
            connection.execute(f"DROP TABLE {NAMED}")
    if notes is not None:
        notes.note(connection, tables, [*net.created_graphs, *net.dropped_graphs])
    if net.has_quads:
        for table in (DELTA, TURNS):
            connection.execute(f"DROP TABLE {table}")
    return set(tables)


def _per_predicate(connection: DuckDBPyConnection) -> Sequence[tuple[int, int, int]]:
    return connection.execute(
        f"SELECT p, count(*) FILTER (added), count(*) FILTER (NOT added) FROM {DELTA} GROUP BY p ORDER BY p"
    ).fetchall()


def _note_sums(connection: DuckDBPyConnection, *, is_past_kept: bool) -> None:
    ((more, less, plus, minus),) = connection.execute(
        f"SELECT count(*) FILTER (added), count(*) FILTER (NOT added), coalesce(sum(h) FILTER (added), 0), "
        f"coalesce(sum(h) FILTER (NOT added), 0) FROM (SELECT added, hash(s, p, o, g) AS h FROM {DELTA})"
    ).fetchall()
    meta = dict(connection.execute("SELECT key, value FROM meta").fetchall())
    checksum = (int(meta["checksum"]) + int(plus) - int(minus)) % (1 << HASH_BITS)
    _set_meta(connection, "checksum", checksum)
    _set_meta(connection, "quads", int(meta["quads"]) + more - less)
    if not is_past_kept:  # else they have their terms until they are forgotten
        _set_meta(connection, "removed", int(meta["removed"]) + less)
    for key in ("subjects", "objects"):
        _set_meta(connection, key, STALE)


def _note_graphs(connection: DuckDBPyConnection) -> None:
    run = connection.execute
    changed = run(
        f"SELECT g, sum(CASE WHEN added THEN 1 ELSE -1 END)::BIGINT FROM {DELTA} WHERE g <> 0 GROUP BY g"
    ).fetchall()
    if not changed:
        return
    run(
        f"INSERT INTO graphs SELECT DISTINCT g, 0 FROM {DELTA} WHERE added AND g <> 0 "
        "AND g NOT IN (SELECT g FROM graphs)"
    )
    run(
        "UPDATE graphs SET quads = graphs.quads + more.quads FROM (SELECT g, "
        f"sum(CASE WHEN added THEN 1 ELSE -1 END)::BIGINT AS quads FROM {DELTA} WHERE g <> 0 GROUP BY g) "
        "more WHERE more.g = graphs.g"
    )


def _change_predicate(connection: DuckDBPyConnection, predicate: int, more: int, less: int) -> TableChange:
    run = connection.execute
    known = run("SELECT tbl, quads FROM predicates WHERE p = ?", [predicate]).fetchone()
    if known is None:
        run("INSERT INTO predicates VALUES (?, ?, 0, 0, 0, true)", [predicate, REST])
        known = (REST, 0)
    table, quads = known
    change_quads(connection, predicate, table, more, less)
    quads += more - less
    if quads == 0:
        run("DELETE FROM predicates WHERE p = ?", [predicate])
        if table != REST:
            run(f"DROP TABLE {table}")
        return TableChange(table, None)
    run("UPDATE predicates SET quads = ?, is_stale = true WHERE p = ?", [quads, predicate])
    own = table
    if table == REST and quads >= FREQUENT_QUADS:
        own = _own_table(connection, predicate)
    return TableChange(table, own)


def _own_table(connection: DuckDBPyConnection, predicate: int) -> str:
    """Where the quads are of a predicate that has become frequent."""
    run = connection.execute
    ((tables,),) = run(f"SELECT count(*) FROM predicates WHERE tbl <> '{REST}'").fetchall()
    if tables >= TABLES_MAX:
        return REST
    table = predicate_table(predicate)
    give_table(connection, predicate, table)
    run("UPDATE predicates SET tbl = ? WHERE p = ?", [table, predicate])
    return table


def _set_meta(connection: DuckDBPyConnection, key: str, value: int | str) -> None:
    connection.execute("UPDATE meta SET value = ? WHERE key = ?", [str(value), key])


def add_graphs(connection: DuckDBPyConnection, graphs: Sequence[str], scratch: Path) -> None:
    """Have these graphs, N-Triples terms, exist; those that do already stay as they are."""
    if not graphs:
        return
    encode_names(connection, graphs, scratch)
    connection.execute(f"INSERT INTO graphs SELECT id, 0 FROM {NAMED} WHERE id NOT IN (SELECT g FROM graphs)")
    connection.execute(f"DROP TABLE {NAMED}")


def drop_graphs(connection: DuckDBPyConnection, graphs: Sequence[str]) -> None:
    """Have these graphs not exist any more."""
    for graph in graphs:
        connection.execute("DELETE FROM graphs WHERE g IN (SELECT id FROM terms WHERE text = ?)", [graph])


def is_worth_collecting(connection: DuckDBPyConnection, removed_min: int = REMOVED_MIN) -> bool:
    """Whether so many quads have been removed since the last time that many terms may be dead."""
    run = connection.execute
    ((removed,),) = run("SELECT value::BIGINT FROM meta WHERE key = 'removed'").fetchall()
    ((terms,),) = run("SELECT count(*) FROM terms").fetchall()
    return bool(removed >= removed_min and terms <= _TERMS_A_REMOVED * removed)


def collect_terms(connection: DuckDBPyConnection) -> int:
    """Delete the terms that nothing has; how many they were.

    The connection is outside a transaction, before and afterwards. It takes a scan of all quads. Raises the
    errors of DuckDB; then nothing has changed.
    """
    run = connection.execute
    with transaction(connection):
        _note_live(connection)
        while run(_DEAD_TRIPLES).fetchall() != [(0,)]:  # the inner ones go after those that they are in
            pass
        for column in ("id", "s", "p", "o"):
            run(f"INSERT INTO live SELECT {column} FROM triple_terms")
        ((dead,),) = run("DELETE FROM terms WHERE id NOT IN (SELECT id FROM live)").fetchall()
        run("DROP TABLE live")
        run("UPDATE meta SET value = '0' WHERE key = 'removed'")
        run("UPDATE meta SET value = value::BIGINT + ? WHERE key = 'collected'", [dead])
    return int(dead)


def _note_live(connection: DuckDBPyConnection) -> None:
    """Make `live` of the numbers that quads and graphs have, some of them several times."""
    run = connection.execute
    run("CREATE OR REPLACE TEMP TABLE live AS SELECT p AS id FROM predicates UNION ALL SELECT g FROM graphs")
    for (table,) in run("SELECT DISTINCT tbl FROM predicates").fetchall():
        for column in ("s", "o"):
            run(f"INSERT INTO live SELECT DISTINCT {column} FROM {table}")
    for column in ("s", "p", "o", "g"):
        run(f"INSERT INTO live SELECT DISTINCT {column} FROM {PAST_TURNS}")
    run(f"INSERT INTO live SELECT g FROM {GRAPH_SPANS}")


@contextmanager
def transaction(connection: DuckDBPyConnection) -> Iterator[None]:
    """All of it or nothing; afterwards the connection is outside a transaction."""
    connection.execute("BEGIN")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        _roll_back(connection)
        raise


def _roll_back(connection: DuckDBPyConnection) -> None:
    try:
        connection.execute("ROLLBACK")
    except Exception:  # noqa: BLE001 the error before says what is wrong
        return
