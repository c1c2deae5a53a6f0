"""Queries in the manner of Sparqloscope, made from the data that they are asked of: each measures one feature
of SPARQL on predicates that are chosen for it by their sizes and by the sizes of their joins.

The features, and by what predicates are chosen, are those of the paper (H. Bast et al., Sparqloscope: A
generic benchmark for the comprehensive and concise performance evaluation of SPARQL engines, ISWC 2025); the
queries and the choices are stated here anew.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from pyoxigraph import Literal, RdfFormat, parse

from benchmarks.service import BenchmarkError

__all__ = ["AskedQuery", "queries_for"]

_XSD = "http://www.w3.org/2001/XMLSchema#"
_NUMBERS = tuple(_XSD + name for name in ("integer", "int", "decimal", "double", "float", "long", "short"))
_STRINGS = (_XSD + "string", "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString")
_MANY_SMALL = 25
_GROUPS_MAX = 1_000

# Of every two predicates that are not the same: how large their join is on subjects, on objects, and from the
# objects of the first to the subjects of the second.
_VIEWS = f"""
CREATE TABLE t AS SELECT * FROM triples;
CREATE TABLE terms AS SELECT * FROM named;
CREATE TABLE size AS SELECT p, count(*) AS n, count(DISTINCT o) AS objects FROM t GROUP BY p;
CREATE TABLE by_s AS SELECT s AS x, p, count(*) AS n FROM t GROUP BY s, p;
CREATE TABLE by_o AS SELECT o AS x, p, count(*) AS n FROM t GROUP BY o, p;
CREATE MACRO joined(one, other) AS TABLE
    SELECT j.*, size1.n AS n1, size2.n AS n2 FROM (
        SELECT a.p AS p1, b.p AS p2, sum(a.n * b.n)::BIGINT AS n
        FROM query_table(one) a JOIN query_table(other) b USING (x) WHERE a.p <> b.p GROUP BY a.p, b.p
    ) j JOIN size size1 ON size1.p = p1 JOIN size size2 ON size2.p = p2;
CREATE TABLE star AS FROM joined('by_s', 'by_s');
CREATE TABLE meet AS FROM joined('by_o', 'by_o');
CREATE TABLE chain AS FROM joined('by_o', 'by_s');
CREATE TABLE kind AS SELECT p, count(*) AS n,
    count(*) FILTER (datatype IN {_NUMBERS}) AS numbers,
    count(*) FILTER (datatype IN {_STRINGS}) AS strings,
    count(*) FILTER (datatype = '{_XSD}date') AS dates
FROM t JOIN terms ON terms.id = o GROUP BY p;
CREATE TABLE far AS SELECT p, sum(a.n * b.n) / any_value(size.n) AS times
FROM by_o a JOIN by_s b USING (x, p) JOIN size USING (p) GROUP BY p ORDER BY times DESC, p LIMIT 1;
"""
_OF_NUMBERS = (
    "SELECT p FROM kind JOIN size USING (p) WHERE numbers = kind.n AND objects > 100 ORDER BY kind.n DESC, p"
)
_LARGEST = "SELECT p FROM size ORDER BY n DESC, p"
_SMALLEST = "SELECT p FROM size WHERE n <= 1000 ORDER BY n DESC, p"
_BOUNDED = "n <= 3 * (n1 + n2)"  # a join that is large, but no product


@dataclass(frozen=True, slots=True)
class AskedQuery:
    """A query. counted: which rows it gives is left to the engine, so only their number can be compared."""

    name: str
    text: str
    counted: bool = False


class _Chooser:
    """The triples of a file as numbers, in DuckDB, and what is chosen of them."""

    def __init__(self, triples: Path) -> None:
        ids: dict[Any, int] = {}
        columns: tuple[list[int], ...] = ([], [], [])
        for quad in parse(path=str(triples), format=RdfFormat.N_TRIPLES):
            for column, term in zip(columns, (quad.subject, quad.predicate, quad.object), strict=True):
                column.append(ids.setdefault(term, len(ids)))
        self._texts = [str(term) for term in ids]
        datatypes = [term.datatype.value if isinstance(term, Literal) else None for term in ids]
        values = [term.value if isinstance(term, Literal) else None for term in ids]
        self._connection = duckdb.connect()
        self._connection.register("triples", dict(zip("spo", map(np.array, columns), strict=True)))
        as_objects = {"datatype": datatypes, "value": values}
        named = {name: np.array(column, dtype=object) for name, column in as_objects.items()}
        self._connection.register("named", named | {"id": np.arange(len(ids))})
        self._connection.execute(_VIEWS)

    def terms(self, sql: str) -> list[str]:
        """The terms of its first row, in N-Triples. Raises BenchmarkError where there is none."""
        return self.rows(f"{sql} LIMIT 1")[0]

    def rows(self, sql: str) -> list[list[str]]:
        found = self._connection.execute(sql).fetchall()
        if not found:
            raise BenchmarkError(f"the data has nothing to choose from: {sql}")
        return [[self._texts[number] for number in row] for row in found]


def queries_for(triples: Path) -> list[AskedQuery]:
    """The queries for a file of N-Triples. Raises BenchmarkError where the data lacks what they ask for."""
    choose = _Chooser(triples)
    made = [
        *_joins(choose),
        *_unions(choose),
        *_groups(choose),
        *_paths(choose),
        *_texts(choose),
        *_numbers(choose),
        *_filters(choose),
        *_sizes(choose),
        *_whole(),
    ]
    assert len({one.name for one in made}) == len(made)
    return made


def _count(name: str, pattern: str) -> AskedQuery:
    return AskedQuery(name, f"SELECT (COUNT(*) AS ?n) WHERE {{ {pattern} }}")


def _joins(choose: _Chooser) -> Iterator[AskedQuery]:
    """Patterns side by side, and one part of them optional, taken away, required, excluded."""
    large, other = (row[0] for row in choose.rows(f"{_LARGEST} LIMIT 2"))
    [small] = choose.terms(_SMALLEST)
    pairs = {
        "small-large": (small, large),
        "large-small": (large, small),
        "large-large": (large, other),
        "largest": choose.terms("SELECT p1, p2 FROM star ORDER BY n DESC, p1, p2"),
        "large-result": choose.terms(f"SELECT p1, p2 FROM star WHERE {_BOUNDED} ORDER BY n DESC, p1, p2"),
        "small-result": choose.terms(
            "SELECT p1, p2 FROM star WHERE n > 1000 AND n1 < n2 ORDER BY n1 / n DESC, p1, p2"
        ),
    }
    pairs["small-result-turned"] = (pairs["small-result"][1], pairs["small-result"][0])
    stars = choose.terms(
        """SELECT a.p1, a.p2, b.p2 FROM star a JOIN star b ON a.p2 = b.p1
        JOIN star c ON c.p1 = a.p1 AND c.p2 = b.p2
        WHERE a.n <= a.n1 + a.n2 AND b.n <= b.n1 + b.n2 AND c.n <= c.n1 + c.n2
        ORDER BY a.n + b.n DESC, a.p1, a.p2, b.p2"""
    )
    chains = choose.terms(
        """SELECT a.p1, a.p2, b.p2 FROM chain a JOIN chain b ON a.p2 = b.p1
        WHERE a.p1 <> b.p2 AND a.n <= 3 * (a.n1 + a.n2) AND b.n <= 3 * (b.n1 + b.n2)
        ORDER BY a.n + b.n DESC, a.p1, a.p2, b.p2"""
    )
    triples = {
        "star": [f"?s {predicate} ?o{place}" for place, predicate in enumerate(stars)],
        "chain": [f"?v{place} {predicate} ?v{place + 1}" for place, predicate in enumerate(chains)],
    }
    for name, (one, two) in pairs.items():
        first, second = f"?s {one} ?o1", f"?s {two} ?o2"
        if name != "small-result-turned":
            yield _count(f"join-{name}", f"{first} . {second}")
        if name != "largest":
            yield from _parts(name, first, second)
        if name in ("large-small", "large-large"):
            yield _count(f"not-exists-{name}", f"{first} FILTER NOT EXISTS {{ {second} }}")
    for name, patterns in triples.items():
        yield _count(f"join-{name}", " . ".join(patterns))
        yield from _parts(f"{name}-last", " . ".join(patterns[:2]), patterns[2])
        yield from _parts(f"{name}-rest", patterns[0], " . ".join(patterns[1:]))
    many = [row[0] for row in choose.rows(f"{_SMALLEST} LIMIT {_MANY_SMALL}")]
    yield _count("join-many-star", " . ".join(f"?s {one} ?o{place}" for place, one in enumerate(many)))
    yield _count(
        "join-many-chain", " . ".join(f"?v{place} {one} ?v{place + 1}" for place, one in enumerate(many))
    )
    both = """SELECT p1, p2 FROM star JOIN meet USING (p1, p2)
        WHERE least(star.n, meet.n) >= 1000 ORDER BY least(star.n, meet.n)"""
    for name, order in (("large", "DESC"), ("small", "ASC")):
        one, two = choose.terms(f"{both} {order}, p1, p2")
        yield _count(f"join-on-two-{name}", f"?s {one} ?o . ?s {two} ?o")


def _parts(name: str, kept: str, part: str) -> Iterator[AskedQuery]:
    yield _count(f"optional-{name}", f"{kept} OPTIONAL {{ {part} }}")
    yield _count(f"minus-{name}", f"{kept} MINUS {{ {part} }}")
    yield _count(f"exists-{name}", f"{kept} FILTER EXISTS {{ {part} }}")


def _unions(choose: _Chooser) -> Iterator[AskedQuery]:
    large, other = (row[0] for row in choose.rows(f"{_LARGEST} LIMIT 2"))
    either = f"{{ ?s {large} ?o }} UNION {{ ?s {other} ?o }}"
    yield _count("union", either)
    yield _count("union-few", f"{either} FILTER (?s = ?o)")
    pairs = "SELECT a.p1, b.p2, a.p2 FROM star a JOIN star b ON a.p2 = b.p1 WHERE a.p1 <> b.p2 AND a.n > 1000"
    for name, chosen in {
        "small-join": f"{pairs} AND a.n1 < a.n2 ORDER BY a.n1 / a.n DESC",
        "large-join": f"""{pairs} AND a.n <= 3 * (a.n1 + a.n2) AND b.n <= 3 * (b.n1 + b.n2)
            AND a.n2 < a.n1 AND a.n2 < b.n2 ORDER BY a.n DESC""",
    }.items():
        one, two, joined = choose.terms(f"{chosen}, a.p1, b.p2, a.p2")
        yield _count(f"union-{name}", f"{{ ?s {one} ?o }} UNION {{ ?s {two} ?o }} ?s {joined} ?j")


def _groups(choose: _Chooser) -> Iterator[AskedQuery]:
    [few] = choose.terms("SELECT p FROM size ORDER BY n / objects DESC, p")
    [many] = choose.terms("SELECT p FROM size ORDER BY objects DESC, p")
    one, two = choose.terms(
        "SELECT p1, p2 FROM star JOIN size ON size.p = p1 ORDER BY star.n / objects DESC, p1, p2"
    )
    shapes = {
        "few-groups": f"?s {few} ?o",
        "many-groups": f"?s {many} ?o",
        "joined": f"?s {one} ?o . ?s {two} ?o2",
    }
    for name, pattern in shapes.items():
        text = f"SELECT ?o (COUNT(?s) AS ?n) WHERE {{ {pattern} }} GROUP BY ?o ORDER BY DESC(?n)"
        yield AskedQuery(f"group-{name}", f"{text} LIMIT {_GROUPS_MAX}", counted=True)
        yield AskedQuery(f"distinct-{name}", f"SELECT (COUNT(DISTINCT ?o) AS ?n) WHERE {{ {pattern} }}")
    yield AskedQuery(
        "group-four-aggregates",
        f"""SELECT ?o (COUNT(?s) AS ?n) (MIN(?s) AS ?least) (MAX(?s) AS ?most) (SAMPLE(?s) AS ?any)
        WHERE {{ {shapes["joined"]} }} GROUP BY ?o ORDER BY DESC(?n) LIMIT {_GROUPS_MAX}""",
        counted=True,
    )
    [strings] = choose.terms("SELECT p FROM kind WHERE strings = n ORDER BY n DESC, p")
    yield from _aggregates("string", strings, ("COUNT", "MIN", "MAX"))
    yield AskedQuery(
        "group-concatenated",
        f"""SELECT (SUM(STRLEN(?all)) AS ?n) WHERE {{
        {{ SELECT (GROUP_CONCAT(?o; SEPARATOR=" ") AS ?all) WHERE {{ ?s {strings} ?o }} GROUP BY ?s }} }}""",
    )


def _aggregates(name: str, predicate: str, functions: Sequence[str]) -> Iterator[AskedQuery]:
    for function in functions:
        yield AskedQuery(
            f"{name}-{function.lower()}", f"SELECT ({function}(?o) AS ?n) WHERE {{ ?s {predicate} ?o }}"
        )


def _paths(choose: _Chooser) -> Iterator[AskedQuery]:
    """Along the predicate that leads furthest: whose join with itself is largest for its size."""
    [along] = choose.terms("SELECT p FROM far")
    into = "SELECT p1 FROM chain JOIN far ON far.p = p2"
    [large] = choose.terms(f"{into} ORDER BY n DESC, p1")
    [small] = choose.terms(f"{into} ORDER BY n < 1000, n, p1")
    [start] = choose.terms(
        """SELECT s FROM t JOIN far USING (p) JOIN by_s ON x = o AND by_s.p = t.p
        GROUP BY s ORDER BY sum(by_s.n) DESC, s"""
    )
    yield _count("path", f"?s {along}+ ?o")
    yield _count("path-from-one", f"{start} {along}+ ?o")
    yield _count("path-large-join", f"?s {large}/{along}+ ?o")
    yield _count("path-small-join", f"?s {small}/{along}+ ?o")


def _texts(choose: _Chooser) -> Iterator[AskedQuery]:
    [labels] = choose.terms(
        "SELECT p FROM kind JOIN size USING (p) WHERE strings = kind.n ORDER BY objects DESC, p"
    )
    tests = {
        "contains": 'CONTAINS(?o, "com")',
        "regex-fixed": 'REGEX(?o, "com")',
        "regex-any": 'REGEX(?o, "c.m")',
        "regex-prefix-1": 'REGEX(?o, "^C")',
        "regex-prefix-2": 'REGEX(?o, "^Co")',
        "regex-prefix-3": 'REGEX(?o, "^Com")',
        "language": 'LANG(?o) = "en"',
    }
    for name, test in tests.items():
        yield _count(f"filter-{name}", f"?s {labels} ?o FILTER ({test})")
    values = {
        "strlen": "STRLEN(?o)",
        "strbefore": 'STRLEN(STRBEFORE(?o, "a"))',
        "strafter": 'STRLEN(STRAFTER(?o, "a"))',
        "strstarts": f'<{_XSD}integer>(STRSTARTS(?o, "a"))',
        "strends": f'<{_XSD}integer>(STRENDS(?o, "a"))',
    }
    yield from _sums(labels, values)


def _numbers(choose: _Chooser) -> Iterator[AskedQuery]:
    [numbers] = choose.terms(_OF_NUMBERS)
    yield from _aggregates("number", numbers, ("COUNT", "SUM", "MIN", "MAX", "AVG"))
    values = {name.lower(): f"{name}(?o)" for name in ("ABS", "CEIL", "FLOOR", "ROUND")}
    yield from _sums(numbers, values | {"add": "?o + ?o", "greater": f"<{_XSD}integer>(?o > 0)"})
    [dates] = choose.terms("SELECT p FROM kind WHERE dates = n ORDER BY n DESC, p")
    yield from _sums(dates, {name.lower(): f"{name}(?o)" for name in ("YEAR", "MONTH", "DAY")})


def _sums(predicate: str, values: dict[str, str]) -> Iterator[AskedQuery]:
    for name, value in values.items():
        yield AskedQuery(f"sum-{name}", f"SELECT (SUM({value}) AS ?n) WHERE {{ ?s {predicate} ?o }}")


def _filters(choose: _Chooser) -> Iterator[AskedQuery]:
    [numbers] = choose.terms(_OF_NUMBERS)
    for percent in (50, 70, 95):
        [value] = choose.terms(
            f"""SELECT o FROM t JOIN terms ON terms.id = o
            WHERE p = ({_OF_NUMBERS} LIMIT 1)
            QUALIFY row_number() OVER (ORDER BY value::DOUBLE, o)
                = 1 + floor(count(*) OVER () * {percent} / 100)"""
        )
        yield _count(f"filter-number-{percent}", f"?s {numbers} ?o FILTER (?o >= {value})")
    [large] = choose.terms(_LARGEST)
    yield _count("filter-few", f"?s {large} ?o FILTER (?s = ?o)")
    yield _count("filter-many", f"?s {large} ?o FILTER (?s != ?o)")


def _sizes(choose: _Chooser) -> Iterator[AskedQuery]:
    [large] = choose.terms(_LARGEST)
    for rows in (10, 1_000, 100_000, 1_000_000, 10_000_000):
        yield AskedQuery(f"rows-{rows}", f"SELECT ?s ?o WHERE {{ ?s {large} ?o }} LIMIT {rows}", counted=True)


def _whole() -> Iterable[AskedQuery]:
    every = "?s ?p ?o"
    yield _count("all-triples", every)
    for name in ("subject", "predicate", "object"):
        yield AskedQuery(f"all-{name}s", f"SELECT (COUNT(DISTINCT ?{name[0]}) AS ?n) WHERE {{ {every} }}")
    yield _count("all-literals", f"{every} FILTER ISLITERAL(?o)")
    yield _count("all-blank-subjects", f"{every} FILTER ISBLANK(?s)")
