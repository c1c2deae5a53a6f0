"""N-Quads lines made into quads of numbers, in SQL; terms that are new get theirs.

Lines are those that pyoxigraph writes. What its few shapes do not cover (triple terms, IRIs that a strict
parser would refuse) is read by its own parser: rare and slow, and exact.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

from duckdb import DuckDBPyConnection
from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, RdfFormat, Triple, parse

from graphdb.columns.term_ids import (
    BIG_DECIMAL_FORM,
    DATE_FORM,
    DATE_TIME_FORM,
    DECIMAL_FORM,
    DECIMAL_MAX,
    DOUBLE_FORM,
    INTEGER_FORM,
    OFFSET,
    PAYLOAD_BITS,
    Tag,
    Term,
    inline_id,
    tag_of_term,
    text_of,
)

__all__ = ["DELTA", "encode"]

Row: TypeAlias = tuple[Any, ...]
DELTA = "delta"  # the temporary table of the result: s, p, o, g, added
_LINE_BYTES_MAX = 1 << 21
_XSD = "http://www.w3.org/2001/XMLSchema#"


def encode(connection: DuckDBPyConnection, added: Path | None, removed: Path | None = None) -> None:
    """Make `delta` of two files of N-Quads, within a transaction of the caller's.

    Terms that are new go into `terms` and `triple_terms`, and `next_term` in `meta` on.
    """
    files = [(path, is_added) for path, is_added in ((added, "true"), (removed, "false")) if path is not None]
    lines = " UNION ALL ".join(
        f"SELECT line, {is_added} AS added FROM {_lines(path)}" for path, is_added in files
    )
    run = connection.execute
    run(f"CREATE OR REPLACE TEMP TABLE split AS {_SPLIT.format(lines=lines)}")
    odd = _OddTerms(run("SELECT line, added FROM split WHERE NOT is_plain").fetchall())
    _name_terms(connection)
    if odd.quads:
        run(
            "CREATE OR REPLACE TEMP TABLE odd_quads (s VARCHAR, p VARCHAR, o VARCHAR, g VARCHAR, "
            "added BOOLEAN)"
        )
        _insert(connection, "odd_quads", odd.quads)
        run("CREATE OR REPLACE TEMP TABLE odd_names AS SELECT * FROM names LIMIT 0")
        _insert(connection, "odd_names", odd.names)
        run("INSERT INTO names SELECT * FROM odd_names ANTI JOIN names USING (text)")
    _unescape(connection)
    _number(connection)
    run(f"CREATE OR REPLACE TEMP TABLE {DELTA} AS {_DELTA.format(source='split WHERE is_plain')}")
    if odd.quads:
        run(f"INSERT INTO {DELTA} {_DELTA.format(source='odd_quads')}")
    if odd.triples:
        run("CREATE OR REPLACE TEMP TABLE odd_triples (text VARCHAR, s VARCHAR, p VARCHAR, o VARCHAR)")
        _insert(connection, "odd_triples", odd.triples)
        run(_TRIPLE_TERMS)
    for table in ("split", "names", "ids"):
        run(f"DROP TABLE {table}")


def _lines(path: Path) -> str:
    longest = max(_LINE_BYTES_MAX, _longest_line(path))
    name = str(path).replace("'", "''")
    return (
        f"read_csv('{name}', columns = {{'line': 'VARCHAR'}}, delim = '\\x01', quote = '', escape = '', "
        f"comment = '', header = false, auto_detect = false, new_line = '\\n', max_line_size = {longest}, "
        f"buffer_size = {4 * longest})"
    )


def _longest_line(path: Path) -> int:
    """Looked for only where the whole file could be one that DuckDB refuses."""
    if path.stat().st_size <= _LINE_BYTES_MAX:
        return 0
    with path.open("rb") as lines:
        return max(map(len, lines)) + 1


# A line is `s p o .` or `s p o g .`; only literals have spaces in them, and behind their last quote none has.
_SPLIT = """
WITH lines AS ({lines}),
heads AS (SELECT line, added, split_part(line, ' ', 1) AS s, split_part(line, ' ', 2) AS p FROM lines),
tails AS (SELECT *, line[length(s) + length(p) + 3 : -3] AS tail FROM heads),
ends AS (
    SELECT *, CASE WHEN tail[1] = '"' THEN split_part(tail, '"', -1) END AS suffix FROM tails
),
graphs AS (SELECT *, split_part(coalesce(suffix, tail), ' ', 2) AS g FROM ends),
parts AS (
    SELECT *, CASE WHEN g = '' THEN tail ELSE tail[1 : length(tail) - length(g) - 1] END AS o FROM graphs
)
SELECT s, p, o, g, added,
    (s LIKE '<%>' OR starts_with(s, '_:')) AND p LIKE '<%>'
    AND (g = '' OR g LIKE '<%>' OR starts_with(g, '_:'))
    AND split_part(coalesce(suffix, tail), ' ', 3) = ''
    AND CASE tail[1]
        WHEN '"' THEN suffix = '' OR suffix[1] IN (' ', '@') OR split_part(suffix, ' ', 1) LIKE '^^<%>'
        WHEN '<' THEN o LIKE '%>' AND o[2] <> '<'
        ELSE starts_with(o, '_:') END AS is_plain,
    CASE WHEN NOT is_plain THEN line END AS line
FROM parts"""


def _inline(value: str, tag: Tag) -> str:
    return f"({value} + ({int(tag)}::BIGINT << {PAYLOAD_BITS}))"


def _ordered(kind: str, bits: str, width: int) -> str:
    """The bits of a DOUBLE or FLOAT in the order of its values."""
    raw = f"CAST(CAST(CAST(lexical AS {kind}) AS BIT) AS {bits})"
    top, every = 1 << (width - 1), (1 << width) - 1
    return f"CASE WHEN {raw} >= {top}::{bits} THEN {every}::{bits} - {raw} ELSE {raw} + {top}::{bits} END"


def _form(form: str) -> str:
    return f"regexp_full_match(lexical, '{form}')"


_IS_ODD = "(lexical = 'NaN' OR lexical = '-0')"
_DOUBLE_BITS = f"({_ordered('DOUBLE', 'UBIGINT', 64)})"
_LOW_BITS = "CAST(CAST(CAST(lexical AS DOUBLE) AS BIT) AS UBIGINT) & 255"
# Of the literals of one datatype: their number, or NULL where they need the dictionary; then their tag there.
# Only what a batch has is put into its SQL, which takes DuckDB longer to plan than a small batch to evaluate.
_INLINE_IDS: Final = {
    "integer": f"""CASE WHEN {_form(INTEGER_FORM)} THEN
    CASE WHEN TRY_CAST(lexical AS BIGINT) BETWEEN {-OFFSET} AND {OFFSET - 1}
    THEN {_inline(f"CAST(lexical AS BIGINT) + {OFFSET}", Tag.INTEGER)} END END""",
    "decimal": f"""CASE WHEN {_form(DECIMAL_FORM)} AND lexical <> '-0'
    THEN {_inline(f"CAST(lexical::DECIMAL(38, 6) * 1000000 AS BIGINT) + {OFFSET}", Tag.DECIMAL)} END""",
    "double": f"""CASE WHEN {_form(DOUBLE_FORM)} AND NOT {_IS_ODD} AND ({_LOW_BITS}) = 0
    THEN {_inline(f"CAST({_DOUBLE_BITS} >> 8 AS BIGINT)", Tag.DOUBLE)} END""",
    "float": f"""CASE WHEN {_form(DOUBLE_FORM)} AND NOT {_IS_ODD}
    THEN {_inline(f"CAST({_ordered('FLOAT', 'UINTEGER', 32)} AS BIGINT)", Tag.FLOAT)} END""",
    "boolean": f"""CASE lexical WHEN 'true' THEN {_inline("1", Tag.BOOLEAN)}
    WHEN 'false' THEN {_inline("0", Tag.BOOLEAN)} END""",
    "dateTime": f"""CASE WHEN {_form(DATE_TIME_FORM)} THEN
    epoch_us(TRY_CAST(rtrim(lexical, 'Z') AS TIMESTAMP)) + {OFFSET} + (CASE WHEN suffix(lexical, 'Z')
    THEN {int(Tag.DATE_TIME_UTC)}::BIGINT ELSE {int(Tag.DATE_TIME)}::BIGINT END << {PAYLOAD_BITS}) END""",
    "date": f"""CASE WHEN {_form(DATE_FORM)} THEN
    (TRY_CAST(rtrim(lexical, 'Z') AS DATE) - DATE '1970-01-01') + {OFFSET} + (CASE WHEN suffix(lexical, 'Z')
    THEN {int(Tag.DATE_UTC)}::BIGINT ELSE {int(Tag.DATE)}::BIGINT END << {PAYLOAD_BITS}) END""",
}
_DICTIONARY_TAGS: Final = {
    "integer": f"""CASE WHEN {_form(INTEGER_FORM)} AND TRY_CAST(lexical AS BIGINT) IS NOT NULL
    THEN {int(Tag.BIG_INTEGER)} ELSE {int(Tag.TYPED)} END""",
    "decimal": f"""CASE WHEN {_form(BIG_DECIMAL_FORM)} AND abs(CAST(lexical AS DOUBLE)) < {DECIMAL_MAX}
    THEN {int(Tag.BIG_DECIMAL)} ELSE {int(Tag.TYPED)} END""",
    "double": f"CASE WHEN {_form(DOUBLE_FORM)} THEN {int(Tag.BIG_DOUBLE)} ELSE {int(Tag.TYPED)} END",
    "float": f"CASE WHEN {_form(DOUBLE_FORM)} THEN {int(Tag.BIG_FLOAT)} ELSE {int(Tag.TYPED)} END",
}

# The names of what is not yet unescaped keep a backslash in `lexical`; numbers have none.
_PARTS = """
WITH texts AS (
    SELECT DISTINCT text FROM (
        SELECT s AS text FROM split WHERE is_plain UNION ALL SELECT o FROM split WHERE is_plain
        UNION ALL SELECT DISTINCT p FROM split WHERE is_plain
        UNION ALL SELECT DISTINCT g FROM split WHERE is_plain AND g <> ''
    )
),
ends AS (SELECT text, CASE WHEN text[1] = '"' THEN split_part(text, '"', -1) END AS suffix FROM texts),
lexicals AS (
    SELECT text,
        CASE text[1] WHEN '"' THEN text[2 : length(text) - length(suffix) - 1] WHEN '<' THEN text[2 : -2]
            ELSE text[3 :] END AS lexical,
        CASE WHEN starts_with(suffix, '^^') THEN suffix[4 : -2] END AS datatype,
        CASE WHEN starts_with(suffix, '@') THEN suffix[2 :] END AS lang
    FROM ends
)
SELECT * FROM lexicals"""

_NAMES = f"""
WITH kinds AS (
    SELECT *, {{inline}} AS inline,
        CASE text[1] WHEN '<' THEN {int(Tag.IRI)} WHEN '_' THEN {int(Tag.BLANK_NODE)}
            ELSE {{kind}} END AS kind
    FROM parts
)
SELECT text, CAST(kind AS TINYINT) AS kind, lexical, datatype, lang,
    CASE WHEN kind >= {int(Tag.BIG_INTEGER)} THEN CAST(lexical AS DOUBLE) END AS num,
    CAST(inline AS BIGINT) AS inline,
    text[1] = '"' AND contains(lexical, '\\') AS escaped
FROM kinds"""

_UNESCAPE = """
UPDATE names SET lexical = array_to_string(list_transform(string_split(lexical, '\\\\'),
    lambda part: replace(replace(replace(replace(replace(replace(
        part, '\\"', '"'), '\\n', chr(10)), '\\r', chr(13)), '\\t', chr(9)), '\\b', chr(8)),
        '\\f', chr(12))), '\\')
WHERE escaped"""

_DELTA = """
SELECT s.id AS s, p.id AS p, o.id AS o, coalesce(g.id, 0) AS g, quad.added AS added
FROM (SELECT * FROM {source}) quad
JOIN ids s ON s.text = quad.s JOIN ids p ON p.text = quad.p JOIN ids o ON o.text = quad.o
LEFT JOIN ids g ON g.text = quad.g"""

_TRIPLE_TERMS = """
INSERT INTO triple_terms
SELECT t.id, s.id, p.id, o.id FROM odd_triples triple JOIN ids t USING (text) JOIN ids s ON s.text = triple.s
JOIN ids p ON p.text = triple.p JOIN ids o ON o.text = triple.o WHERE t.is_new"""


def _name_terms(connection: DuckDBPyConnection) -> None:
    """Make `names` of `split`: each term once, with all that is known of it."""
    run = connection.execute
    run(f"CREATE OR REPLACE TEMP TABLE parts AS {_PARTS}")
    found = run(f"SELECT DISTINCT datatype FROM parts WHERE starts_with(datatype, '{_XSD}')").fetchall()
    kinds = sorted(datatype[len(_XSD) :] for (datatype,) in found)
    inline = _by_datatype(_INLINE_IDS, kinds, "NULL")
    kind = (
        f"CASE WHEN lang IS NOT NULL THEN {int(Tag.LANGUAGE_STRING)} WHEN datatype IS NULL "
        f"THEN {int(Tag.STRING)} ELSE {_by_datatype(_DICTIONARY_TAGS, kinds, str(int(Tag.TYPED)))} END"
    )
    run(f"CREATE OR REPLACE TEMP TABLE names AS {_NAMES.format(inline=inline, kind=kind)}")
    run("DROP TABLE parts")


def _by_datatype(expressions: Mapping[str, str], kinds: Iterable[str], otherwise: str) -> str:
    cases = [f"WHEN '{_XSD}{kind}' THEN {expressions[kind]}" for kind in kinds if kind in expressions]
    return f"CASE datatype {' '.join(cases)} ELSE {otherwise} END" if cases else otherwise


def _unescape(connection: DuckDBPyConnection) -> None:
    run = connection.execute
    rare = run("SELECT text FROM names WHERE escaped AND regexp_matches(lexical, '\\\\[uU]')").fetchall()
    if rare:
        run("CREATE OR REPLACE TEMP TABLE rare (text VARCHAR, lexical VARCHAR)")
        terms = _terms(text for (text,) in rare)
        _insert(
            connection, "rare", [(text, _lexical(term)) for (text,), term in zip(rare, terms, strict=True)]
        )
        run("UPDATE names SET lexical = rare.lexical, escaped = false FROM rare WHERE rare.text = names.text")
    if run("SELECT 1 FROM names WHERE escaped LIMIT 1").fetchone():
        run(_UNESCAPE)


def _number(connection: DuckDBPyConnection) -> None:
    """Make `ids` of `names`; those that `terms` does not have go into it."""
    run = connection.execute
    ((following,),) = run("SELECT value::BIGINT FROM meta WHERE key = 'next_term'").fetchall()
    run(
        "CREATE OR REPLACE TEMP TABLE ids AS SELECT names.text, coalesce(names.inline, terms.id) AS id, "
        "false AS is_new FROM names LEFT JOIN terms ON names.inline IS NULL AND terms.text = names.text"
    )
    run(
        "CREATE OR REPLACE TEMP TABLE fresh AS SELECT names.*, row_number() OVER () - 1 AS number FROM names "
        "WHERE text IN (SELECT text FROM ids WHERE id IS NULL)"
    )
    ((count,),) = run("SELECT count(*) FROM fresh").fetchall()
    if count:
        run(f"UPDATE fresh SET number = (kind::BIGINT << {PAYLOAD_BITS}) + number + {following}")
        run(
            "INSERT INTO terms SELECT number, text, kind, lexical, datatype, lang, num FROM fresh "
            "ORDER BY number"
        )
        run("DELETE FROM ids WHERE id IS NULL")
        run("INSERT INTO ids SELECT text, number, true FROM fresh")
        run("UPDATE meta SET value = ? WHERE key = 'next_term'", [str(following + count)])
    run("DROP TABLE fresh")


class _OddTerms:
    """Lines as the engine's own parser reads them: their quads, the terms in them, their triple terms."""

    def __init__(self, lines: Sequence[tuple[str, bool]]) -> None:
        self.quads: list[Row] = []
        self._terms: dict[str, Term] = {}
        self.triples: list[Row] = []
        for line, is_added in lines:
            for quad in parse(line.encode(), format=RdfFormat.N_QUADS, lenient=True):
                graph = quad.graph_name
                name = "" if isinstance(graph, DefaultGraph) else self._add(graph)
                row = (
                    self._add(quad.subject),
                    self._add(quad.predicate),
                    self._add(quad.object),
                    name,
                    is_added,
                )
                self.quads.append(row)
        self.names = [_name(text, term) for text, term in self._terms.items()]

    def _add(self, term: Term) -> str:
        text = text_of(term)
        if text not in self._terms:
            self._terms[text] = term
            if isinstance(term, Triple):
                parts = (self._add(term.subject), self._add(term.predicate), self._add(term.object))
                self.triples.append((text, *parts))
        return text


def _name(text: str, term: Term) -> Row:
    """A row of `names`."""
    tag = tag_of_term(term)
    lexical = _lexical(term)
    is_typed = isinstance(term, Literal) and tag not in (Tag.STRING, Tag.LANGUAGE_STRING)
    lang = text.rpartition("@")[2] if tag is Tag.LANGUAGE_STRING else None
    number = float(lexical) if tag >= Tag.BIG_INTEGER else None
    datatype = term.datatype.value if is_typed and isinstance(term, Literal) else None
    return text, int(tag), lexical, datatype, lang, number, inline_id(term), False


def _lexical(term: Term) -> str:
    return text_of(term) if isinstance(term, Triple) else term.value


def _terms(texts: Iterable[str]) -> Iterator[NamedNode | BlankNode | Literal | Triple]:
    """Terms from N-Triples."""
    lines = "".join(f"<a:a> <a:a> {text} .\n" for text in texts)
    return (quad.object for quad in parse(lines.encode(), format=RdfFormat.N_QUADS, lenient=True))


def _insert(connection: DuckDBPyConnection, table: str, rows: Sequence[Row]) -> None:
    if rows:
        places = ", ".join("?" * len(rows[0]))
        connection.executemany(f"INSERT INTO {table} VALUES ({places})", rows)
