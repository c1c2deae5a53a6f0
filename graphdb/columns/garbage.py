"""Terms that no quad has any more, taken out of a view."""

from typing import Final

from duckdb import DuckDBPyConnection

from graphdb.columns.transactions import transaction

__all__ = ["REMOVED_MIN", "collect_terms", "is_worth_collecting"]

REMOVED_MIN: Final = 100_000  # quads that have to be removed before it is worth a look
_TERMS_A_REMOVED = 8  # or fewer: then half of the terms may be dead, as a quad has four

_DEAD_TRIPLES = """
DELETE FROM triple_terms WHERE id NOT IN (SELECT id FROM live)
AND id NOT IN (SELECT s FROM triple_terms UNION SELECT o FROM triple_terms)"""


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
