"""What a view keeps of its past: at which indexes of the log quads have come and gone, and named graphs. The
tables of the present have nothing of it, so queries of the present read no more.

It is written as the log is: rows are appended to `past_turns`, and no row is looked for or changed before the
history forgets it. Whoever asks for a state finds out what has changed since.
"""

from collections.abc import Sequence
from typing import Final

from duckdb import DuckDBPyConnection

from graphdb.columns.encoding import NAMED, TURNS
from graphdb.columns.schema import GRAPH_SPANS, PAST_TURNS

__all__ = [
    "PAST_TURNS_MIN",
    "keep_past",
    "keeps_past",
    "note_graph_turns",
    "note_turns",
    "oldest_within_bound",
    "past_from",
    "trim_past",
]

PAST_TURNS_MIN: Final = 2_000_000  # that are kept in any case
_TURNS_A_QUAD: Final = 20  # or as many times the quads of the present, if these are more
_ONE_EACH = f"SELECT s, p, o, g, turns::BIGINT AS turn FROM {TURNS}"
_SEVERAL = f"SELECT s, p, o, g, unnest(string_split(turns, ',')::BIGINT[]) AS turn FROM {TURNS}"


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
    _forget_turns(connection, "true")
    run(f"DELETE FROM {GRAPH_SPANS}")
    if is_wanted:
        run(f"INSERT INTO {GRAPH_SPANS} SELECT g, 0, NULL FROM graphs")
    _set_past_from(connection, log_index if is_wanted else None)


def note_turns(connection: DuckDBPyConnection) -> None:
    """Take in `turns`, after all that was noted before; `graphs` is as it is after them."""
    run = connection.execute
    ((several, graphs),) = run(
        f"SELECT count(*) FILTER (contains(turns, ',')), count(*) FILTER (g <> 0) FROM {TURNS}"
    ).fetchall()
    turns = _SEVERAL if several else _ONE_EACH
    # in this order a turn of a large change takes 4.4 bytes on the disk, and 12 in none
    run(
        f"INSERT INTO {PAST_TURNS} SELECT s, p, o, g, abs(turn), turn > 0 FROM ({turns}) "
        "ORDER BY p, s, o, g, abs(turn)"
    )
    if graphs:  # one may come with its first quad
        run(
            f"INSERT INTO {GRAPH_SPANS} SELECT g, min(turn), NULL FROM ({turns}) WHERE g <> 0 AND turn > 0 "
            f"AND g NOT IN (SELECT g FROM {GRAPH_SPANS} WHERE until IS NULL) GROUP BY g"
        )


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
    """Forget all states before an index, in a transaction; how many removals are forgotten."""
    known = past_from(connection)
    if known is None or oldest_index <= known:
        return 0
    gone = _forget_turns(connection, f"log_index <= {oldest_index}")
    connection.execute(f"DELETE FROM {GRAPH_SPANS} WHERE until <= ?", [oldest_index])
    _set_past_from(connection, oldest_index)
    return gone


def oldest_within_bound(connection: DuckDBPyConnection, turns_min: int = PAST_TURNS_MIN) -> int:
    """The oldest log index whose state is to be known, so that no more turns are kept than turns_min, or
    twenty for each quad of the present: the terms of removed quads are kept with them, and are read when the
    view is opened. 0 where all may stay.
    """
    run = connection.execute
    ((quads,),) = run("SELECT value::BIGINT FROM meta WHERE key = 'quads'").fetchall()
    ((turns,),) = run(f"SELECT count(*) FROM {PAST_TURNS}").fetchall()
    most = max(turns_min, _TURNS_A_QUAD * quads)
    if turns <= most:
        return 0
    # a quarter at a time: a deletion is not worth it for a few
    left = most - most // 4
    ((index,),) = run(
        f"SELECT log_index FROM {PAST_TURNS} ORDER BY log_index DESC LIMIT 1 OFFSET {left}"
    ).fetchall()
    return int(index)


def _forget_turns(connection: DuckDBPyConnection, which: str) -> int:
    """How many removals were among them: nothing has the terms of these quads for their sake any more (see
    `applying.is_worth_collecting`).
    """
    run = connection.execute
    ((removals,),) = run(f"SELECT count(*) FROM {PAST_TURNS} WHERE NOT added AND {which}").fetchall()
    run(f"DELETE FROM {PAST_TURNS} WHERE {which}")
    run("UPDATE meta SET value = value::BIGINT + ? WHERE key = 'removed'", [removals])
    return int(removals)


def _set_past_from(connection: DuckDBPyConnection, log_index: int | None) -> None:
    value = "" if log_index is None else str(log_index)
    connection.execute("UPDATE meta SET value = ? WHERE key = 'past_from'", [value])
