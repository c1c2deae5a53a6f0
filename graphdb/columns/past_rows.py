"""What a view keeps of its past: the quads and graphs that have come and gone, and between which indexes of
the log they were there. The tables of the present have nothing of it, so queries of the present read no more.

A quad of the view that is not in `added_since` has been there since before the past was kept: since 0.
"""

from collections.abc import Sequence
from typing import Final

from duckdb import DuckDBPyConnection

from graphdb.columns.encoding import NAMED, TURNS
from graphdb.columns.schema import ADDED, GRAPH_SPANS, REMOVED

__all__ = ["keep_past", "keeps_past", "note_graph_turns", "note_turns", "past_from", "trim_past"]

_SPANS: Final = "spans"
_TURN_LISTS = f"SELECT s, p, o, g, string_split(turns, ',')::BIGINT[] AS turns FROM {TURNS}"
# of each quad the times from an addition to the removal after it; until is NULL where there is none yet
_SPANS_OF_TURNS = f"""
SELECT s, p, o, g, turn AS since, -next AS until FROM (
    SELECT s, p, o, g, unnest(turns) AS turn, unnest(list_append(turns[2:], NULL)) AS next
    FROM ({_TURN_LISTS})
) WHERE turn > 0"""
_ENDED = (
    f"SELECT s, p, o, g, split_part(turns, ',', 1)[2:]::BIGINT AS until FROM {TURNS} WHERE turns[1] = '-'"
)


def past_from(connection: DuckDBPyConnection) -> int | None:
    """The oldest log index whose state is known; None where no past is kept."""
    ((value,),) = connection.execute("SELECT value FROM meta WHERE key = 'past_from'").fetchall()
    return int(value) if value else None


def keeps_past(connection: DuckDBPyConnection) -> bool:
    """Whether changes have to be noted."""
    return past_from(connection) is not None


def keep_past(connection: DuckDBPyConnection, log_index: int, *, is_wanted: bool) -> None:
    """Have the past of a view of log_index kept from now on, or on; or let go of it. Within a transaction."""
    run = connection.execute
    if keeps_past(connection) is is_wanted:
        return
    ((gone,),) = run(f"DELETE FROM {REMOVED}").fetchall()
    _count_removed(connection, gone)
    for table in (ADDED, GRAPH_SPANS):
        run(f"DELETE FROM {table}")
    if is_wanted:
        run(f"INSERT INTO {GRAPH_SPANS} SELECT g, 0, NULL FROM graphs")
    _set_past_from(connection, log_index if is_wanted else None)


def note_turns(connection: DuckDBPyConnection) -> None:
    """Take in `turns`, behind all that was noted before; `graphs` is as it is behind them."""
    run = connection.execute
    run(f"CREATE OR REPLACE TEMP TABLE {_SPANS} AS {_SPANS_OF_TURNS}")
    ((ended, over, opened),) = run(
        f"SELECT (SELECT count(*) FROM {TURNS} WHERE turns[1] = '-'), "
        f"count(*) FILTER (until > since), count(*) FILTER (until IS NULL) FROM {_SPANS}"
    ).fetchall()
    if ended:
        run(
            f"INSERT INTO {REMOVED} SELECT s, p, o, g, coalesce(since, 0), until FROM ({_ENDED}) "
            f"LEFT JOIN {ADDED} USING (s, p, o, g) WHERE coalesce(since, 0) < until ORDER BY p, s"
        )
        run(f"DELETE FROM {ADDED} WHERE (s, p, o, g) IN (SELECT (s, p, o, g) FROM ({_ENDED}))")
    if over:
        run(f"INSERT INTO {REMOVED} FROM {_SPANS} WHERE until > since ORDER BY p, s")
    if opened:
        run(f"INSERT INTO {ADDED} SELECT s, p, o, g, since FROM {_SPANS} WHERE until IS NULL ORDER BY p, s")
    # a graph may come with its first quad
    run(
        f"INSERT INTO {GRAPH_SPANS} SELECT g, min(since), NULL FROM {_SPANS} WHERE g <> 0 "
        f"AND g NOT IN (SELECT g FROM {GRAPH_SPANS} WHERE until IS NULL) GROUP BY g"
    )
    run(f"DROP TABLE {_SPANS}")


def note_graph_turns(connection: DuckDBPyConnection, turns: Sequence[tuple[str, int]]) -> None:
    """Take in when graphs were made and dropped (see `NetLines`); `named` has their numbers."""
    run = connection.execute
    ids = dict(run(f"SELECT spelt, id FROM {NAMED}").fetchall())
    rows = run(f"SELECT g, since FROM {GRAPH_SPANS} WHERE until IS NULL").fetchall()
    there: dict[int, int] = dict(rows)
    for name, turn in turns:
        graph = ids[name]
        if turn > 0 and graph in there:
            # it has come with a quad of this or a later change
            there[graph] = min(there[graph], turn)
            run(f"UPDATE {GRAPH_SPANS} SET since = ? WHERE g = ? AND until IS NULL", [there[graph], graph])
        elif turn > 0:
            there[graph] = turn
            run(f"INSERT INTO {GRAPH_SPANS} VALUES (?, ?, NULL)", [graph, turn])
        elif graph in there:
            del there[graph]
            run(f"UPDATE {GRAPH_SPANS} SET until = ? WHERE g = ? AND until IS NULL", [-turn, graph])


def trim_past(connection: DuckDBPyConnection, oldest_index: int) -> int:
    """Forget all states before an index, in a transaction; how many removed quads are forgotten."""
    known = past_from(connection)
    if known is None or oldest_index <= known:
        return 0
    run = connection.execute
    ((gone,),) = run(f"DELETE FROM {REMOVED} WHERE until <= ?", [oldest_index]).fetchall()
    run(f"DELETE FROM {GRAPH_SPANS} WHERE until <= ?", [oldest_index])
    run(f"DELETE FROM {ADDED} WHERE since <= ?", [oldest_index])  # as if always there
    _set_past_from(connection, oldest_index)
    _count_removed(connection, gone)
    return int(gone)


def _count_removed(connection: DuckDBPyConnection, quads: int) -> None:
    """Nothing has their terms for their sake any more: see `applying.is_worth_collecting`."""
    connection.execute("UPDATE meta SET value = value::BIGINT + ? WHERE key = 'removed'", [quads])


def _set_past_from(connection: DuckDBPyConnection, log_index: int | None) -> None:
    value = "" if log_index is None else str(log_index)
    connection.execute("UPDATE meta SET value = ? WHERE key = 'past_from'", [value])
