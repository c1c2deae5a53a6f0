"""Terms as text given their numbers, in SQL; those that are new are put into the dictionary.

A term is spelt as in N-Triples or as in SPARQL's TSV, where literals may be bare (`1`, `1.5`, `true`) and
strings have fewer escapes; in `terms` all are as in N-Triples. What is not of these shapes, triple terms and
what callers say, is read by the engine's own parser: rare and slow, and exact.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from duckdb import DuckDBPyConnection
from pyoxigraph import BlankNode, Literal, NamedNode, RdfFormat, Triple, parse

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
    XSD,
    Tag,
    Term,
    inline_id,
    tag_of_term,
    text_of,
)

__all__ = ["IDS", "OddTerms", "Row", "insert_rows", "number_terms", "parsed_terms"]

Row: TypeAlias = tuple[Any, ...]
IDS = "ids"  # the temporary table of the result: spelt, id, is_new


class OddTerms:
    """Terms that SQL does not take apart, and what triple terms are made of."""

    def __init__(self) -> None:
        self._terms: dict[str, Term] = {}
        self._spelt: dict[str, str] = {}
        self.triples: list[Row] = []

    def __bool__(self) -> bool:
        return bool(self._terms)

    def add(self, term: Term, spelt: str | None = None) -> str:
        """The term's text, which is also how it is spelt where that is not given."""
        text = text_of(term)
        if spelt is not None:
            self._spelt[text] = spelt
        if text not in self._terms:
            self._terms[text] = term
            if isinstance(term, Triple):
                parts = (self.add(term.subject), self.add(term.predicate), self.add(term.object))
                self.triples.append((text, *parts))
        return text

    def names(self) -> list[Row]:
        """Rows of `odd_names`."""
        return [_name(self._spelt.get(text, text), text, term) for text, term in self._terms.items()]


def number_terms(connection: DuckDBPyConnection, spelt: str, odd: OddTerms) -> None:
    """Make `ids` of those that are odd and of others, SQL that gives a column `spelt` without duplicates.

    Terms that are new go into `terms` and `triple_terms`, and `next_term` in `meta` on.
    """
    run = connection.execute
    run(f"CREATE OR REPLACE TEMP TABLE parts AS {_PARTS.format(spelt=spelt)}")
    names = _names(connection)
    if odd:
        run(
            "CREATE OR REPLACE TEMP TABLE odd_names (spelt VARCHAR, text VARCHAR, kind TINYINT, "
            "lexical VARCHAR, datatype VARCHAR, lang VARCHAR, num DOUBLE, inline BIGINT, escaped BOOLEAN)"
        )
        insert_rows(connection, "odd_names", odd.names())
        names += " UNION ALL SELECT * FROM odd_names ANTI JOIN parts USING (text)"
    _number(connection, names)
    if odd.triples:
        run("CREATE OR REPLACE TEMP TABLE odd_triples (text VARCHAR, s VARCHAR, p VARCHAR, o VARCHAR)")
        insert_rows(connection, "odd_triples", odd.triples)
        run(_TRIPLE_TERMS)
    for table in ("parts", "found"):
        run(f"DROP TABLE {table}")


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

_IS_BARE = """spelt[1] NOT IN ('"', '<', '_')"""
# Of literals that are not yet unescaped, `lexical` keeps its backslashes; numbers have none.
_PARTS = f"""
WITH ends AS (
    SELECT spelt, CASE WHEN spelt[1] = '"' THEN split_part(spelt, '"', -1) END AS suffix FROM ({{spelt}})
),
lexicals AS (
    SELECT spelt,
        CASE spelt[1] WHEN '"' THEN spelt[2 : length(spelt) - length(suffix) - 1] WHEN '<' THEN spelt[2 : -2]
            WHEN '_' THEN spelt[3 :] ELSE spelt END AS lexical,
        CASE WHEN {_IS_BARE} THEN '{XSD}' || CASE WHEN spelt IN ('true', 'false') THEN 'boolean'
                WHEN contains(spelt, '.') THEN 'decimal' ELSE 'integer' END
            WHEN starts_with(suffix, '^^') THEN suffix[4 : -2] END AS datatype,
        CASE WHEN starts_with(suffix, '@') THEN suffix[2 :] END AS lang
    FROM ends
)
SELECT spelt, CASE WHEN {_IS_BARE} THEN '"' || spelt || '"^^<' || datatype || '>' ELSE spelt END AS text,
    lexical, datatype, lang
FROM lexicals"""

_NAMES = f"""
WITH kinds AS (
    SELECT *, {{inline}} AS inline,
        CASE text[1] WHEN '<' THEN {int(Tag.IRI)} WHEN '_' THEN {int(Tag.BLANK_NODE)}
            ELSE {{kind}} END AS kind
    FROM parts
)
SELECT spelt, text, CAST(kind AS TINYINT) AS kind, lexical, datatype, lang,
    CASE WHEN kind >= {int(Tag.BIG_INTEGER)} THEN CAST(lexical AS DOUBLE) END AS num,
    CAST(inline AS BIGINT) AS inline,
    text[1] = '"' AND contains(lexical, '\\') AS escaped
FROM kinds"""

_UNESCAPE = """
UPDATE fresh SET lexical = array_to_string(list_transform(string_split(lexical, '\\\\'),
    lambda part: replace(replace(replace(replace(replace(replace(
        part, '\\"', '"'), '\\n', chr(10)), '\\r', chr(13)), '\\t', chr(9)), '\\b', chr(8)),
        '\\f', chr(12))), '\\')
WHERE escaped"""

_TRIPLE_TERMS = """
WITH numbers AS (SELECT text, ids.id, is_new FROM found JOIN ids USING (spelt))
INSERT INTO triple_terms
SELECT t.id, s.id, p.id, o.id FROM odd_triples triple JOIN numbers t USING (text)
JOIN numbers s ON s.text = triple.s JOIN numbers p ON p.text = triple.p JOIN numbers o ON o.text = triple.o
WHERE t.is_new"""


def _names(connection: DuckDBPyConnection) -> str:
    """SQL for what is known of each term of `parts`."""
    found = connection.execute(
        f"SELECT DISTINCT datatype FROM parts WHERE starts_with(datatype, '{XSD}')"
    ).fetchall()
    kinds = sorted(datatype[len(XSD) :] for (datatype,) in found)
    inline = _by_datatype(_INLINE_IDS, kinds, "NULL")
    kind = (
        f"CASE WHEN lang IS NOT NULL THEN {int(Tag.LANGUAGE_STRING)} WHEN datatype IS NULL "
        f"THEN {int(Tag.STRING)} ELSE {_by_datatype(_DICTIONARY_TAGS, kinds, str(int(Tag.TYPED)))} END"
    )
    return _NAMES.format(inline=inline, kind=kind)


def _by_datatype(expressions: Mapping[str, str], kinds: Iterable[str], otherwise: str) -> str:
    cases = [f"WHEN '{XSD}{kind}' THEN {expressions[kind]}" for kind in kinds if kind in expressions]
    return f"CASE datatype {' '.join(cases)} ELSE {otherwise} END" if cases else otherwise


def _number(connection: DuckDBPyConnection, names: str) -> None:
    """Make `ids` of names; those that `terms` does not have go into it."""
    run = connection.execute
    ((following,),) = run("SELECT value::BIGINT FROM meta WHERE key = 'next_term'").fetchall()
    run(
        "CREATE OR REPLACE TEMP TABLE found AS SELECT names.*, coalesce(names.inline, terms.id) AS id "
        f"FROM ({names}) names LEFT JOIN terms ON names.inline IS NULL AND terms.text = names.text"
    )
    run(
        f"CREATE OR REPLACE TEMP TABLE fresh AS SELECT *, (kind::BIGINT << {PAYLOAD_BITS}) "
        f"+ row_number() OVER () + {following - 1} AS number FROM found WHERE id IS NULL"
    )
    _unescape(connection)
    ((count,),) = run(
        "INSERT INTO terms SELECT number, text, kind, lexical, datatype, lang, num FROM fresh ORDER BY number"
    ).fetchall()
    run("UPDATE meta SET value = ? WHERE key = 'next_term'", [str(following + count)])
    run(
        f"CREATE OR REPLACE TEMP TABLE {IDS} AS "
        "SELECT spelt, id, false AS is_new FROM found WHERE id IS NOT NULL "
        "UNION ALL SELECT spelt, number, true FROM fresh"
    )
    run("DROP TABLE fresh")


def _unescape(connection: DuckDBPyConnection) -> None:
    """What is `lexical` in `fresh`."""
    run = connection.execute
    rare = run("SELECT spelt FROM fresh WHERE escaped AND regexp_matches(lexical, '\\\\[uU]')").fetchall()
    if rare:
        run("CREATE OR REPLACE TEMP TABLE rare (spelt VARCHAR, lexical VARCHAR)")
        terms = parsed_terms(spelt for (spelt,) in rare)
        insert_rows(
            connection, "rare", [(spelt, _lexical(term)) for (spelt,), term in zip(rare, terms, strict=True)]
        )
        run(
            "UPDATE fresh SET lexical = rare.lexical, escaped = false FROM rare "
            "WHERE rare.spelt = fresh.spelt"
        )
    if run("SELECT 1 FROM fresh WHERE escaped LIMIT 1").fetchone():
        run(_UNESCAPE)


def _name(spelt: str, text: str, term: Term) -> Row:
    """A row of `odd_names`."""
    tag = tag_of_term(term)
    lexical = _lexical(term)
    is_typed = isinstance(term, Literal) and tag not in (Tag.STRING, Tag.LANGUAGE_STRING)
    lang = text.rpartition("@")[2] if tag is Tag.LANGUAGE_STRING else None
    number = float(lexical) if tag >= Tag.BIG_INTEGER else None
    datatype = term.datatype.value if is_typed and isinstance(term, Literal) else None
    return spelt, text, int(tag), lexical, datatype, lang, number, inline_id(term), False


def _lexical(term: Term) -> str:
    return text_of(term) if isinstance(term, Triple) else term.value


def parsed_terms(spelt: Iterable[str]) -> Iterator[NamedNode | BlankNode | Literal | Triple]:
    """The terms that these are."""
    # Turtle has every term as both N-Triples and TSV spell it
    lines = "".join(f"<a:a> <a:a> {term} .\n" for term in spelt)
    return (quad.object for quad in parse(lines.encode(), format=RdfFormat.TURTLE, lenient=True))


def insert_rows(connection: DuckDBPyConnection, table: str, rows: Sequence[Row]) -> None:
    if rows:
        places = ", ".join("?" * len(rows[0]))
        connection.executemany(f"INSERT INTO {table} VALUES ({places})", rows)
