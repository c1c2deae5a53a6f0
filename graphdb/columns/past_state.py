"""`make_past_state`: the tables of a view as they were behind a log index, where queries find them first.

They are in a schema of their own of a database in memory. A connection whose search path has it before that
of the view reads what has changed since from there, and the rest from the view: so whatever is compiled over
a view is right over its past.
"""

from dataclasses import dataclass
from typing import Final

from duckdb import DuckDBPyConnection

from graphdb.columns.past_rows import past_from
from graphdb.columns.schema import GRAPH_SPANS, PAST_TURNS, REST

__all__ = [
    "PAST",
    "ROW_BYTES",
    "NotKept",
    "PastTables",
    "TooLarge",
    "attach_past",
    "drop_past_state",
    "make_past_state",
]

PAST: Final = "past"  # the database in memory
ROW_BYTES: Final = 32  # of a quad there, at most
_CHANGES: Final = "changes"
# A quad comes and goes in turns. So what has come as often as it has gone is as it was, and else it has come,
# or gone, once more. This takes half of what it takes to look for the first turn and the last.
_CHANGED_QUADS = f"""
SELECT s, p, o, g, net < 0 AS was_there FROM (
    SELECT s, p, o, g, sum(CASE WHEN added THEN 1 ELSE -1 END) AS net
    FROM {PAST_TURNS} WHERE log_index > {{index}} GROUP BY s, p, o, g
) WHERE net <> 0"""


class NotKept(Exception):
    """The view does not know the state."""


class TooLarge(Exception):
    """What has changed since is more than may be held."""


@dataclass(frozen=True, slots=True)
class PastTables:
    """Predicates of which the view's tables hold something else than these do. own: of all that had tables
    of their own in the view, those that are copied here. Quads of those without one are in `rest`, which is
    copied if has_rest.
    """

    schema: str
    row_count: int
    had_own: frozenset[int]
    own: frozenset[int]
    has_rest: bool

    @property
    def search_path(self) -> str:
        """Of who reads them, before the view's own."""
        return f"{PAST}.{self.schema}"

    def has(self, predicate: int) -> bool:
        """Whether its quads are here; otherwise the view has them."""
        return predicate in self.own if predicate in self.had_own else self.has_rest

    def stays(self, changed: set[int]) -> bool:
        """Whether all is still as it was where the quads of these predicates have changed in the view."""
        return all(map(self.has, changed))


def attach_past(connection: DuckDBPyConnection) -> None:
    """Have the database in memory. Its tables count as those of the view do, and spill as they do."""
    connection.execute(f"ATTACH IF NOT EXISTS ':memory:' AS {PAST}")


def make_past_state(connection: DuckDBPyConnection, log_index: int, schema: str, rows_max: int) -> PastTables:
    """Make the tables of the state behind log_index, which the view has passed, in a schema that is new. The
    connection is in a transaction. Raises NotKept, TooLarge.
    """
    run = connection.execute
    first = past_from(connection)
    if first is None or log_index < first:
        since = "no past" if first is None else f"the past since log index {first}"
        raise NotKept(f"the column view keeps {since}")
    run(f"CREATE SCHEMA {PAST}.{schema}")
    changes = f"{PAST}.{schema}.{_CHANGES}"
    run(f"CREATE TABLE {changes} AS {_CHANGED_QUADS.format(index=log_index)}")
    each = "CASE WHEN was_there THEN 1 ELSE -1 END"
    changed = dict(run(f"SELECT p, sum({each})::BIGINT FROM {changes} GROUP BY p").fetchall())
    present = {
        row[0]: row[1:]
        for row in run("SELECT p, tbl, quads, subjects, objects, is_stale FROM predicates").fetchall()
    }
    had_own = frozenset(p for p, row in present.items() if row[0] != REST)
    own = had_own & changed.keys()
    has_rest = not changed.keys() <= had_own
    quads = {p: row[1] + changed.get(p, 0) for p, row in present.items()}
    quads |= {p: change for p, change in changed.items() if p not in present}
    rows = sum(quads[p] for p in own)
    if has_rest:
        rows += sum(count for p, count in quads.items() if p not in had_own)
    if rows > rows_max:
        raise TooLarge(f"{rows} quads of predicates that have changed since, of at most {rows_max}")
    for predicate in own:
        table = present[predicate][0]
        _copy(connection, schema, table, "s, o, g", f"p = {predicate}")
    if has_rest:
        of_rest = f"p NOT IN ({', '.join(map(str, sorted(had_own))) or 'NULL::BIGINT'})"
        _copy(connection, schema, REST, "s, p, o, g", of_rest if had_own else "true")
    run(f"DROP TABLE {changes}")
    run(f"CREATE TABLE {PAST}.{schema}.predicates AS FROM predicates LIMIT 0")
    ends = {p: _distinct(connection, f"{PAST}.{schema}.{present[p][0]}") for p in own}
    if has_rest:
        ends |= _distinct_of_each(connection, f"{PAST}.{schema}.{REST}")
    listed = []
    for predicate, count in quads.items():
        if not count:
            continue
        table, _, subjects, objects, is_stale = present.get(predicate, (REST, 0, 0, 0, True))
        if predicate in ends:
            subjects, objects = ends[predicate]
        elif is_stale:  # nobody counts in this state later on
            where = f" WHERE p = {predicate}" if table == REST else ""
            subjects, objects = _distinct(connection, f"{table}{where}")
        listed.append(f"({predicate}, '{table}', {count}, {subjects}, {objects}, false)")
    if listed:
        run(f"INSERT INTO {PAST}.{schema}.predicates VALUES {', '.join(listed)}")
    run(
        f"CREATE TABLE {PAST}.{schema}.graphs AS SELECT DISTINCT g, 0::BIGINT AS quads FROM {GRAPH_SPANS} "
        f"WHERE since <= {log_index} AND (until IS NULL OR until > {log_index})"
    )
    return PastTables(schema, rows, had_own, own, has_rest)


def _copy(connection: DuckDBPyConnection, schema: str, table: str, columns: str, which: str) -> None:
    changes = f"SELECT {columns} FROM {PAST}.{schema}.{_CHANGES} WHERE {which} AND"
    connection.execute(
        f"CREATE TABLE {PAST}.{schema}.{table} AS SELECT {columns} FROM ("
        f"SELECT {columns} FROM {table} ANTI JOIN ({changes} NOT was_there) USING ({columns}) "
        f"UNION ALL {changes} was_there) ORDER BY ALL"
    )


def _distinct_of_each(connection: DuckDBPyConnection, table: str) -> dict[int, tuple[int, int]]:
    """How many subjects and objects each predicate has."""
    sql = f"SELECT p, count(DISTINCT s), count(DISTINCT o) FROM {table} GROUP BY p"
    return {
        predicate: (subjects, objects) for predicate, subjects, objects in connection.execute(sql).fetchall()
    }


def _distinct(connection: DuckDBPyConnection, table: str) -> tuple[int, int]:
    """How many subjects and objects there are."""
    sql = f"SELECT count(DISTINCT s), count(DISTINCT o) FROM {table}"
    ((subjects, objects),) = connection.execute(sql).fetchall()
    return subjects, objects


def drop_past_state(connection: DuckDBPyConnection, schema: str) -> None:
    """Outside of a transaction. Who reads it at the moment still finds it."""
    connection.execute(f"DROP SCHEMA IF EXISTS {PAST}.{schema} CASCADE")
