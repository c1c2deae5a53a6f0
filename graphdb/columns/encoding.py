"""N-Quads lines, and rows of a store, made into quads of numbers, in SQL; terms that are new get theirs.

Lines are those that pyoxigraph writes. What their few shapes do not cover (triple terms, IRIs that a strict
parser would refuse) is read by its own parser: rare and slow, and exact.
"""

from collections.abc import Iterator, Sequence
from os import SEEK_CUR
from pathlib import Path
from typing import Final

from duckdb import DuckDBPyConnection
from pyoxigraph import DefaultGraph, RdfFormat, parse

from graphdb.columns.entry_lines import SEPARATOR
from graphdb.columns.numbering import IDS, OddTerms, Row, insert_rows, number_terms, parsed_terms
from graphdb.columns.store_rows import HEADER

__all__ = [
    "DELTA",
    "NAMED",
    "TURNS",
    "encode",
    "encode_names",
    "encode_predicates",
    "encode_rows",
    "forget_predicates",
]

DELTA = "delta"  # a temporary table, the net effect: s, p, o, g, added
TURNS = "turns"  # a temporary table: s, p, o, g, turns (of each quad, as text; see `NetLines`)
NAMED = "named"  # a temporary table: number (the place among names), spelt, id
_PREDICATES: Final = "predicate_ids"  # a temporary table: spelt (as rows have it), id
_LINE_BYTES_MAX = 1 << 21


def encode(connection: DuckDBPyConnection, lines: Path) -> None:
    """Make `delta` and `turns` of a file of `NetLines`, within a transaction of the caller's.

    Terms that are new go into `terms` and `triple_terms`, and `next_term` in `meta` on.
    """
    run = connection.execute
    parts = _read(lines, "turns", "s", "p", "rest", delimiter=SEPARATOR)
    run(f"CREATE OR REPLACE TEMP TABLE split AS {_SPLIT.format(lines=parts)}")
    odd = OddTerms()
    odd_quads = list(_odd_quads(run("SELECT line, turns FROM split WHERE NOT is_plain").fetchall(), odd))
    number_terms(connection, _TERMS_OF_LINES, odd)
    run(f"CREATE OR REPLACE TEMP TABLE {TURNS} AS {_QUADS_OF_LINES.format(source='split WHERE is_plain')}")
    if odd_quads:
        run(
            "CREATE OR REPLACE TEMP TABLE odd_quads (s VARCHAR, p VARCHAR, o VARCHAR, g VARCHAR, "
            "turns VARCHAR)"
        )
        insert_rows(connection, "odd_quads", odd_quads)
        run(f"INSERT INTO {TURNS} {_QUADS_OF_LINES.format(source='odd_quads')}")
    run(f"CREATE OR REPLACE TEMP TABLE {DELTA} AS {_DELTA}")
    for table in ("split", IDS):
        run(f"DROP TABLE {table}")


def encode_names(connection: DuckDBPyConnection, names: Sequence[str], scratch: Path) -> None:
    """Make `named` of N-Triples terms, each once, in a transaction; new terms as `encode` has them."""
    run = connection.execute
    path = scratch / "names.tsv"
    path.write_text("".join(f"{number}\t{name}\n" for number, name in enumerate(names)))
    run(f"CREATE OR REPLACE TEMP TABLE split AS FROM {_read(path, 'number', 'spelt')}")
    path.unlink()
    number_terms(connection, "SELECT spelt FROM split", OddTerms())
    run(
        f"CREATE OR REPLACE TEMP TABLE {NAMED} AS "
        f"SELECT number, spelt, id FROM split JOIN {IDS} USING (spelt)"
    )
    for table in ("split", IDS):
        run(f"DROP TABLE {table}")


def encode_predicates(connection: DuckDBPyConnection, predicates: Sequence[str], scratch: Path) -> None:
    """Have these, all that a store has, known to `encode_rows`, by the number of each and by its name."""
    encode_names(connection, predicates, scratch)
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE {_PREDICATES} AS "
        f"SELECT number AS spelt, id FROM {NAMED} UNION ALL SELECT spelt, id FROM {NAMED}"
    )
    connection.execute(f"DROP TABLE {NAMED}")


def forget_predicates(connection: DuckDBPyConnection) -> None:
    """There are no more rows."""
    connection.execute(f"DROP TABLE {_PREDICATES}")


def encode_rows(connection: DuckDBPyConnection, path: Path, table: str) -> None:
    """Append the quads of a file of `StoreRows` to a table of s, p, o, g; terms as `encode` has them."""
    run = connection.execute
    rows = _read(path, "s", "p", "o", "g")
    run(f"CREATE OR REPLACE TEMP TABLE split AS FROM {rows} WHERE s <> '{HEADER}'")
    run(f"CREATE OR REPLACE TEMP TABLE spellings AS {_TERMS_OF_ROWS}")
    odd = OddTerms()
    spelt = [text for (text,) in run("SELECT spelt FROM spellings WHERE NOT is_plain").fetchall()]
    for text, term in zip(spelt, parsed_terms(spelt), strict=True):
        odd.add(term, text)
    number_terms(connection, "SELECT spelt FROM spellings WHERE is_plain", odd)
    has_graphs = run("SELECT 1 FROM split WHERE g IS NOT NULL LIMIT 1").fetchone()
    run(f"INSERT INTO {table} {_QUADS_OF_ROWS if has_graphs else _TRIPLES_OF_ROWS}")
    for each in ("split", "spellings", IDS):
        run(f"DROP TABLE {each}")


def _read(path: Path, *columns: str, delimiter: str = "\t") -> str:
    """SQL for the columns of a file of lines."""
    longest = max(_LINE_BYTES_MAX, _longest_line(path))
    name = str(path).replace("'", "''")
    types = ", ".join(f"'{column}': 'VARCHAR'" for column in columns)
    return (
        f"read_csv('{name}', columns = {{{types}}}, delim = '{delimiter}', quote = '', escape = '', "
        f"comment = '', header = false, auto_detect = false, new_line = '\\n', max_line_size = {longest}, "
        f"buffer_size = {4 * longest})"
    )


def _longest_line(path: Path) -> int:
    """Looked for only where one is so long that DuckDB would refuse it; else 0."""
    with path.open("rb") as lines:
        while some := lines.read(_LINE_BYTES_MAX):
            end = some.rfind(b"\n") + 1
            if end == 0:
                lines.seek(0)
                return max(map(len, lines)) + 1
            lines.seek(end - len(some), SEEK_CUR)
    return 0


# A line is `s p o .` or `s p o g .`; only literals contain spaces, and never after their last quote.
_SPLIT = """
WITH tails AS (SELECT turns, s, p, left(rest, -2) AS tail FROM {lines}),
ends AS (
    SELECT *, CASE WHEN tail[1] = '"' THEN split_part(tail, '"', -1) END AS suffix FROM tails
),
graphs AS (SELECT *, split_part(coalesce(suffix, tail), ' ', 2) AS g FROM ends),
parts AS (
    SELECT *, CASE WHEN g = '' THEN tail ELSE tail[1 : length(tail) - length(g) - 1] END AS o FROM graphs
)
SELECT s, p, o, g, turns,
    (s LIKE '<%>' OR starts_with(s, '_:')) AND p LIKE '<%>'
    AND (g = '' OR g LIKE '<%>' OR starts_with(g, '_:'))
    AND split_part(coalesce(suffix, tail), ' ', 3) = ''
    AND CASE tail[1]
        WHEN '"' THEN suffix = '' OR suffix[1] IN (' ', '@') OR split_part(suffix, ' ', 1) LIKE '^^<%>'
        WHEN '<' THEN o LIKE '%>' AND o[2] <> '<'
        ELSE starts_with(o, '_:') END AS is_plain,
    CASE WHEN NOT is_plain THEN concat_ws(' ', s, p, tail, '.') END AS line
FROM parts"""

_TERMS_OF_LINES = """
SELECT DISTINCT spelt FROM (
    SELECT s AS spelt FROM split WHERE is_plain UNION ALL SELECT o FROM split WHERE is_plain
    UNION ALL SELECT DISTINCT p FROM split WHERE is_plain
    UNION ALL SELECT DISTINCT g FROM split WHERE is_plain AND g <> ''
)"""

# what was added first and removed last, or the other way round, is as it was
_DELTA = f"""
SELECT s, p, o, g, turns[1] <> '-' AS added FROM {TURNS}
WHERE (turns[1] <> '-') = (split_part(turns, ',', -1)[1] <> '-')"""

_QUADS_OF_LINES = f"""
SELECT s.id AS s, p.id AS p, o.id AS o, coalesce(g.id, 0) AS g, quad.turns AS turns
FROM (SELECT * FROM {{source}}) quad
JOIN {IDS} s ON s.spelt = quad.s JOIN {IDS} p ON p.spelt = quad.p JOIN {IDS} o ON o.spelt = quad.o
LEFT JOIN {IDS} g ON g.spelt = quad.g"""

# TSV escapes no other control characters than tabs and ends of lines, and `terms` has all of them escaped.
_TERMS_OF_ROWS = """
WITH texts AS (
    SELECT DISTINCT spelt FROM (
        SELECT s AS spelt FROM split UNION ALL SELECT o FROM split UNION ALL SELECT DISTINCT g FROM split
    ) WHERE spelt IS NOT NULL
),
ends AS (SELECT spelt, CASE WHEN spelt[1] = '"' THEN split_part(spelt, '"', -1) END AS suffix FROM texts)
SELECT spelt, CASE spelt[1]
    WHEN '"' THEN (suffix = '' OR suffix[1] = '@' OR suffix LIKE '^^<%>')
        AND NOT regexp_matches(spelt, '[\\x00-\\x1F\\x7F\\x{FFFE}\\x{FFFF}]')
    WHEN '<' THEN spelt LIKE '%>' AND spelt[2] <> '<'
    WHEN '_' THEN true
    ELSE regexp_full_match(spelt, 'true|false|[+-]?[0-9]+(\\.[0-9]+)?') END AS is_plain
FROM ends"""

_OF_ROWS = f"""
SELECT s.id, p.id, o.id, {{graph}}
FROM split quad JOIN {IDS} s ON s.spelt = quad.s JOIN {_PREDICATES} p ON p.spelt = quad.p
JOIN {IDS} o ON o.spelt = quad.o """
_TRIPLES_OF_ROWS = _OF_ROWS.format(graph="0")
_QUADS_OF_ROWS = f"{_OF_ROWS.format(graph='coalesce(g.id, 0)')} LEFT JOIN {IDS} g ON g.spelt = quad.g"


def _odd_quads(lines: Sequence[tuple[str, str]], odd: OddTerms) -> Iterator[Row]:
    """Their quads, as the engine's own parser reads them."""
    for line, turns in lines:
        for quad in parse(line.encode(), format=RdfFormat.N_QUADS, lenient=True):
            graph = quad.graph_name
            name = "" if isinstance(graph, DefaultGraph) else odd.add(graph)
            yield odd.add(quad.subject), odd.add(quad.predicate), odd.add(quad.object), name, turns
