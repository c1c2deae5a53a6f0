"""Aggregates, groups, filters and paths that are computed from arrays against the engine and against SQL, on
random data and queries.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyoxigraph import Store

from graphdb.columns import relations
from graphdb.columns.catalog import Catalog
from graphdb.columns.counting import counted
from graphdb.columns.pieces import ending_by
from graphdb.columns.results import TermTexts, answer_of
from graphdb.sparql.parser import parse_query
from graphdb.sparql.translation import abstract_query
from tests.support.array_bounds import BOUNDS, array_bounds
from tests.support.column_answers import Refused, engine_rows, rows_of, view_rows
from tests.support.column_tables import column_tables

_PREFIX = "PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> "
_XSD = "^^<http://www.w3.org/2001/XMLSchema#"
_NODES = ("<x:1>", "<x:2>", "<x:3>", "<x:4>", "<x:ab>", "_:b")
_WHOLE = ("0", "1", "-1", "7", "36028797018963967", "9000000000000000000")
_FRACTIONS = ("0.0", "1.5", "-1.5", "-0.5", "2.5", "77.33333333", "-2.0000001", "1000000000.5")
_STRINGS = ('"a"', '""', '"ab"', '"Comb"', '"co m"', '"xa\\na"', '"caé"', '"a\U0001f600m"', '"c m"', '"aXa"')
_TAGGED = ('"a"@en', '"ab"@en', '"Comb"@de', '"c.m"@en-us')
_DATES = tuple(f'"{day}"{_XSD}date>' for day in ("2020-02-29", "1999-12-31", "1969-07-20", "2020-03-01"))
_TIMES = tuple(f'"{day}"{_XSD}dateTime>' for day in ("2020-02-29T23:59:59Z", "1969-12-31T23:00:00Z"))
_OTHERS = ("true", "1.0e1", f'"x"{_XSD}integer>', "<x:1>", "_:b")
_KINDS = {
    "<x:whole>": _WHOLE,
    "<x:fraction>": _FRACTIONS,
    "<x:number>": _WHOLE[:4] + _FRACTIONS[:6],
    "<x:string>": _STRINGS,
    "<x:text>": _STRINGS + _TAGGED,
    "<x:date>": _DATES,
    "<x:time>": _TIMES + _DATES,
    "<x:any>": _WHOLE + _FRACTIONS + _STRINGS + _TAGGED + _DATES + _OTHERS,
    "<x:p>": _NODES,
    "<x:q>": (*_NODES, "1", '"a"'),
}
_VALUES = (
    "?o", "?o + ?o", "?o * ?o", "?o - 1", "-?o", "ABS(?o)", "CEIL(?o)", "FLOOR(?o)", "ROUND(?o)",
    "STRLEN(?o)",
    'STRLEN(STRBEFORE(?o, "a"))', 'STRLEN(STRAFTER(?o, "a"))', 'STRLEN(STRAFTER(?o, "aX"))', "YEAR(?o)",
    "MONTH(?o)", "DAY(?o)", 'xsd:integer(STRSTARTS(?o, "a"))', 'xsd:integer(STRENDS(?o, "a"))',
    "xsd:integer(?o > 0)", "xsd:integer(?o = 1.5)",
)  # fmt: skip
_TESTS = (
    "?o > 1", "?o >= 1.5", "?o = 1", "?o != 2.5", "1 < ?o", "?o < 0.3 || ?o > 5", "!(?o > 1)",
    "?o IN (1, 1.5)",
    '?o < "ab"', '?o >= "a"', '?o = "ab"', '?o != "ab"', 'STRSTARTS(?o, "a")', 'STRSTARTS(STR(?o), "a")',
    'STRENDS(?o, "m")', 'CONTAINS(?o, "om")', 'CONTAINS(?o, "a")', 'REGEX(?o, "c.m")', 'REGEX(?o, "^Co")',
    'REGEX(?o, "com")', 'LANG(?o) = "en"', 'LANG(?o) != ""', "ISLITERAL(?o)", "ISIRI(?o) && ISIRI(?s)",
    "ISBLANK(?s)", "ISNUMERIC(?o)", f'?o > "2000-01-01"{_XSD}date>', f'?o = "2020-02-29"{_XSD}date>',
    "?s = ?o", "?s != ?o", "YEAR(?o) = 2020", "STRLEN(?o) > 1", 'STRSTARTS(STR(?s), "x:a")', "?o + 1 > ?o",
)  # fmt: skip
_SHAPES = (
    "?s {0} ?o", "?s {0} ?o . ?s {1} ?x", "?s {0} ?o OPTIONAL {{ ?s {1} ?x }}", "?s {0} ?o . ?s {1} ?o",
    "?s {0} ?o . ?o {1} ?s", "?s {0} ?o . ?x {1} ?s", "?s {0} ?o . ?s <x:p> <x:1>",
    "?s {0} ?o . <x:2> <x:p> ?s",
    "?s {0} ?o MINUS {{ ?s {1} <x:1> }}", "{{ ?s {0} ?o }} UNION {{ ?s {1} ?o }}", "?s <x:p>+ ?o",
    "?s <x:q>/<x:p>+ ?o", "?s ^<x:p>/{0} ?o", "<x:1> <x:p>+ ?o . ?s {0} ?o",
    "?s {0} ?o FILTER EXISTS {{ ?s {1} ?x }}",
)  # fmt: skip
_GROUPED = (
    "COUNT(*)", "COUNT(?o)", "COUNT(DISTINCT ?s)", "COUNT(DISTINCT ?o)", "MIN(?s)", "MAX(?o)", "MIN(?o)",
    "SUM(?o)", "AVG(?o)", "SUM(STRLEN(?o))", "SAMPLE(?s)",
)  # fmt: skip


@st.composite
def _data(draw: st.DrawFn) -> list[tuple[str, str, str]]:
    """Triples whose objects are of the kind of their predicate."""
    nodes, found = st.sampled_from(_NODES), []
    for _ in range(draw(st.integers(1, 30))):
        predicate = draw(st.sampled_from(list(_KINDS)))
        found.append((draw(nodes), predicate, draw(st.sampled_from(_KINDS[predicate]))))
    return found


@st.composite
def _queries(draw: st.DrawFn) -> str:
    predicates = [draw(st.sampled_from(list(_KINDS))) for _ in range(2)]
    pattern = draw(st.sampled_from(_SHAPES[:1] * 6 + _SHAPES)).format(*predicates)
    for _ in range(draw(st.sampled_from([0, 0, 1, 1, 2]))):
        pattern += f" FILTER ({draw(st.sampled_from(_TESTS))})"
    if draw(st.booleans()):
        aggregates = [
            draw(st.sampled_from(["COUNT(*)", "COUNT(DISTINCT ?o)", "SUM", "SUM", "AVG", "MIN", "MAX"]))
            for _ in range(draw(st.integers(1, 2)))
        ]
        texts = [
            one if "(" in one else f"{one}({draw(st.sampled_from(_VALUES[:1] * 4 + _VALUES))})"
            for one in aggregates
        ]
        columns = " ".join(f"({text} AS ?k{place})" for place, text in enumerate(texts))
        return f"{_PREFIX}SELECT {columns} {{ {pattern} }}"
    key = draw(st.sampled_from(["?s", "?o"]))
    texts = [draw(st.sampled_from(_GROUPED)) for _ in range(draw(st.integers(1, 2)))]
    columns = " ".join(f"({text} AS ?k{place})" for place, text in enumerate(texts))
    order = draw(st.sampled_from(["", " ORDER BY DESC(?k0)", " ORDER BY ?k0 LIMIT 2"]))
    return f"{_PREFIX}SELECT {key} {columns} {{ {pattern} }} GROUP BY {key}{order}"


def _loaded(data: Sequence[tuple[str, ...]], frequent: int) -> tuple[Store, Catalog]:
    store = Store()
    store.update(f"INSERT DATA {{ {' . '.join(map(' '.join, data))} }}")
    return store, column_tables(store, frequent)


def _agrees(store: Store, catalog: Catalog, text: str) -> bool:
    """Whether it is computed from arrays."""
    query = parse_query(text)
    found = counted(abstract_query(query), catalog)
    if found is None:
        return False
    answer = rows_of(answer_of(*found.answer(), TermTexts(catalog.connection)))
    engines, in_sql = engine_rows(store, query), view_rows(catalog, query)
    assert isinstance(answer, Counter)
    assert isinstance(engines, Counter)
    if "LIMIT" in text or "SAMPLE" in text:  # any of the groups that tie, any of the terms
        assert answer.total() == engines.total(), text
        return True
    assert answer == engines, text
    assert isinstance(in_sql, Refused) or answer == in_sql, text
    return True


def test_what_is_computed_from_arrays_is_that_of_the_engine_and_of_sql() -> None:
    answered: list[bool] = []

    @settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(_data(), st.lists(_queries(), min_size=12, max_size=12), st.integers(1, 6), BOUNDS)
    def run(data: list[tuple[str, ...]], texts: list[str], frequent: int, bounds: tuple[int, int]) -> None:
        store, catalog = _loaded(data, frequent)
        with array_bounds(*bounds):
            answered.extend(_agrees(store, catalog, text) for text in texts)

    run()
    assert sum(answered) > len(answered) / 20


_EACH = [(f"<x:n{n}>", kind, value) for kind, values in _KINDS.items() for n, value in enumerate(values)]
_EACH += [(f"<x:n{n}>", "<x:p>", f"<x:n{n + 1}>") for n in range(6)]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT (SUM(?o) AS ?k) { ?s <x:fraction> ?o }",
        "SELECT (AVG(?o) AS ?k) { ?s <x:fraction> ?o FILTER (?o != 2.5) }",
        "SELECT (MIN(?o) AS ?k) (MAX(?o) AS ?l) { ?s <x:fraction> ?o }",
        "SELECT (MIN(?o) AS ?k) (MAX(?o) AS ?l) { ?s <x:string> ?o }",
        "SELECT (SUM(ROUND(?o)) AS ?k) (SUM(CEIL(?o)) AS ?l) (SUM(FLOOR(?o)) AS ?m) { ?s <x:fraction> ?o }",
        "SELECT (SUM(DAY(?o)) AS ?k) (SUM(MONTH(?o)) AS ?l) (SUM(YEAR(?o)) AS ?m) { ?s <x:time> ?o }",
        'SELECT (SUM(STRLEN(STRAFTER(?o, "a"))) AS ?k) { ?s <x:text> ?o }',
        'SELECT (COUNT(*) AS ?k) { ?s <x:text> ?o FILTER (CONTAINS(?o, "a") && LANG(?o) = "") }',
        'SELECT (COUNT(*) AS ?k) { ?s <x:text> ?o FILTER (REGEX(?o, "c.m") || STRENDS(?o, "b")) }',
        "SELECT (COUNT(*) AS ?k) { ?s <x:number> ?o FILTER (?o <= 1.5) }",
        "SELECT (COUNT(*) AS ?k) { ?s <x:p>+ ?o }",
        "SELECT (COUNT(*) AS ?k) { <x:n0> <x:p>+ ?o }",
        "SELECT (COUNT(*) AS ?k) { ?s <x:p> ?o . ?s <x:q> ?o }",
        "SELECT (COUNT(*) AS ?k) { ?s <x:p> ?o . ?o <x:p> ?s }",
        "SELECT (COUNT(*) AS ?k) { { ?s <x:p> ?o } UNION { ?s <x:q> ?o } FILTER (?s != ?o) }",
        "SELECT ?o (COUNT(DISTINCT ?s) AS ?k) (MIN(?s) AS ?l) { ?s <x:text> ?o } GROUP BY ?o",
        "SELECT ?s (SUM(DAY(?o)) AS ?k) (AVG(YEAR(?o)) AS ?l) { ?s <x:date> ?o } GROUP BY ?s ORDER BY ?k",
        "SELECT (COUNT(*) AS ?k) { ?s ?p ?o FILTER (ISLITERAL(?o)) }",
        "SELECT (COUNT(*) AS ?k) { ?s ?p ?o FILTER (ISBLANK(?s)) }",
        "SELECT (COUNT(DISTINCT ?p) AS ?k) { ?s ?p ?o }",
    ],
)
def test_each_form_is_computed_from_arrays(text: str) -> None:
    assert _agrees(*_loaded(_EACH, 1), text), text
    with array_bounds(2, 1):
        _ends_between_pieces(text)


class _EndedError(Exception):
    """A query that is interrupted."""


def _ends_between_pieces(text: str) -> None:
    """It ends wherever it is interrupted, and what it leaves behind is right."""
    store, catalog = _loaded(_EACH, 1)
    query = abstract_query(parse_query(text))
    for turn in count():
        looks = iter(range(turn))

        def interrupted(left: Iterator[int] = looks) -> None:
            if next(left, None) is None:
                raise _EndedError

        try:
            with ending_by(interrupted):
                counted(query, catalog)
        except _EndedError:
            continue
        assert turn or "?s ?p ?o" in text, text  # whose counts are statistics
        break
    assert _agrees(store, catalog, text), text


def test_a_path_of_too_many_pairs_is_left_to_sql(monkeypatch: pytest.MonkeyPatch) -> None:
    chain = [(f"<x:n{n}>", "<x:p>", f"<x:n{n + 1}>") for n in range(40)]
    text = "SELECT (COUNT(*) AS ?k) { ?s <x:p>+ ?o }"
    assert _agrees(*_loaded(chain, 1), text)
    monkeypatch.setattr(relations, "_CLOSURE_MAX", 819)
    store, catalog = _loaded(chain, 1)
    assert not _agrees(store, catalog, text)
    monkeypatch.setattr(relations, "_closed", None)  # it is not tried again
    assert not _agrees(store, catalog, text)
