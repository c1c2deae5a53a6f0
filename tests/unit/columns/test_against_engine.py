"""What the compiler has a shorter way for gives the engine's rows, in the engine's order."""

import pytest
from pyoxigraph import QuerySolutions, Store

from graphdb.columns.catalog import Catalog
from graphdb.columns.compiler import CompiledQuery, compile_query
from graphdb.columns.results import TermTexts, answer_of
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import parse_query
from graphdb.sparql.translation import abstract_query
from tests.support.column_tables import column_tables

PREFIXES = "PREFIX : <http://e/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> "
INTEGERS = ("0", "1", "-1", "5", "6", "36028797018963967", "36028797018963968", "36028797018963969")
DECIMALS = ("0.1", "-0.1", "5.0", "5.5", "0.123456", "9999999999.999999")
LONG_DECIMALS = ("0.1234567", "5.000000000000000001", "4.999999999999999999", "36028797018963968.5")

CONSTANTS = ("0", "5", "36028797018963968", "-0.1", "5.5", "5.000000000000000001", "36028797018963968.5")


def stored(data: str) -> tuple[Store, Catalog]:
    store = Store()
    store.update(f"{PREFIXES} INSERT DATA {{ {data} }}")
    return store, column_tables(store)


def listed(answer: object) -> list[tuple[str, ...]]:
    assert isinstance(answer, QuerySolutions)
    return [tuple(map(str, row)) for row in answer]


def columns_rows(catalog: Catalog, text: str) -> list[tuple[str, ...]]:
    query = compile_query(abstract_query(parse_query(PREFIXES + text)), Dataset(), catalog)
    assert isinstance(query, CompiledQuery)
    cursor = catalog.connection.execute(query.sql)
    return listed(answer_of(query, cursor.fetchmany, TermTexts(catalog.connection)))


@pytest.fixture(scope="module")
def counted() -> tuple[Store, Catalog]:
    """:k0 to :k11, the objects of three subjects, two, or one; a weight for those of two."""
    pairs = [(subject, number) for number in range(12) for subject in range(number % 3 + 1)]
    weights = " ".join(f":k{number} :w {number % 2} ." for number in range(12) if number % 3 == 1)
    return stored(" ".join(f":s{subject} :p :k{number} ." for subject, number in pairs) + weights)


@pytest.mark.parametrize("limit", ["LIMIT 2", "LIMIT 6", "LIMIT 3 OFFSET 4", "LIMIT 50", "LIMIT 0"])
@pytest.mark.parametrize("first", ["DESC(?n)", "?n"])
@pytest.mark.parametrize("second", ["?k", "DESC(?k)"])
@pytest.mark.parametrize(
    "select",
    [
        "SELECT ?k (COUNT(?s) AS ?n) { ?s :p ?k } GROUP BY ?k",
        "SELECT DISTINCT ?k ?n { ?s :p ?k OPTIONAL { ?k :w ?n } }",
        "SELECT ?k { SELECT ?k (COUNT(?s) AS ?n) { ?s :p ?k } GROUP BY ?k",
    ],
)
def test_rows_that_tie_on_the_first_condition(
    counted: tuple[Store, Catalog], select: str, first: str, second: str, limit: str
) -> None:
    store, catalog = counted
    text = f"{select} ORDER BY {first} {second} {limit}" + " }" * (select.count("{") - select.count("}"))
    answer = listed(store.query(PREFIXES + text))
    ours = columns_rows(catalog, text)
    if text.endswith("}"):  # a sub-select's order is not that of the rows
        answer, ours = sorted(answer), sorted(ours)
    assert ours == answer


@pytest.fixture(scope="module")
def numbers() -> tuple[Store, Catalog]:
    """:all of each kind, and :i :I :d :D of some kinds, with what is no number beside them in :mixed."""
    sets = {
        "i": INTEGERS[:5],
        "I": INTEGERS,
        "d": (*INTEGERS[:5], *DECIMALS),
        "D": LONG_DECIMALS,
        "all": (*INTEGERS, *DECIMALS, *LONG_DECIMALS),
        "mixed": (*INTEGERS, *DECIMALS, *LONG_DECIMALS, '"x"', ":x", "true"),
    }
    return stored(
        " ".join(f":s{n} :{name} {each} ." for name, all_ in sets.items() for n, each in enumerate(all_))
    )


@pytest.mark.parametrize("operator", ["<", "<=", ">", ">=", "=", "!="])
@pytest.mark.parametrize("predicate", ["i", "I", "d", "D", "all", "mixed"])
def test_numbers_compare_with_a_constant(
    numbers: tuple[Store, Catalog], predicate: str, operator: str
) -> None:
    store, catalog = numbers
    for constant in CONSTANTS:
        for test in (f"?o {operator} {constant}", f"!({constant} {operator} ?o)"):
            text = f"SELECT ?s ?o {{ ?s :{predicate} ?o FILTER({test}) }}"
            expected = listed(store.query(PREFIXES + text))
            assert sorted(columns_rows(catalog, text)) == sorted(expected), text


ROUNDED = ("2.5", "-2.5", "-2.4", "-0.2", "0.5", "-0.5", "1.5", "7.0", "-0.000001", "9999999999.999999")
DOUBLES = (
    *("2.5e0", "-2.5e0", "-0.4e0", "0.5e0", "-0.5e0", "0.49999999999999994e0", "4503599627370497e0", "1e300"),
    *('"INF"^^xsd:double', '"NaN"^^xsd:double', '"-0"^^xsd:double'),
)


@pytest.fixture(scope="module")
def rounded() -> tuple[Store, Catalog]:
    """:d decimals, :i integers, :f doubles, :g floats; :b booleans."""
    sets = {
        "d": ROUNDED,
        "i": INTEGERS,
        "f": DOUBLES,
        "b": ("true", "false"),
    }
    return stored(
        " ".join(f":s{n} :{name} {each} ." for name, all_ in sets.items() for n, each in enumerate(all_))
    )


@pytest.mark.parametrize("function", ["ROUND", "CEIL", "FLOOR", "ABS", "xsd:integer"])
@pytest.mark.parametrize("predicate", ["d", "i", "f"])
def test_numbers_are_rounded(rounded: tuple[Store, Catalog], predicate: str, function: str) -> None:
    store, catalog = rounded
    text = f"SELECT ?s ({function}(?o) AS ?n) {{ ?s :{predicate} ?o }}"
    assert sorted(columns_rows(catalog, text)) == sorted(listed(store.query(PREFIXES + text)))


@pytest.mark.parametrize("value", ["?o > 0", 'STRSTARTS(STR(?o), "2")', "!BOUND(?o)", "?o = ?unbound"])
def test_truth_becomes_an_integer(rounded: tuple[Store, Catalog], value: str) -> None:
    store, catalog = rounded
    text = f"SELECT ?s (xsd:integer({value}) AS ?n) {{ ?s :d ?o }}"
    if "STR(" in value:
        text = text.replace(":d", ":b")
    assert sorted(columns_rows(catalog, text)) == sorted(listed(store.query(PREFIXES + text)))


TEXTS = (
    '"abc"',
    '"abc"@en',
    '"abcb"@de',
    '"xyz"@en',
    '"éàb→c"',
    '""',
    '""@en',
    '"👨‍👩‍👧b"',
    "1",
    "<urn:abc>",
    "true",
)


@pytest.mark.parametrize("needle", ['"b"', '"b"@en', '""', '""@en', '"éà"', '"zz"', "?n", "1", '"👩"'])
@pytest.mark.parametrize("function", ["STRBEFORE", "STRAFTER"])
@pytest.mark.parametrize("whole", ["{}", "STRLEN({})", "LANG({})"])
def test_what_stands_before_and_after(function: str, needle: str, whole: str) -> None:
    data = " ".join(f":s{n} :p {each} ; :n {TEXTS[-1 - n]} ." for n, each in enumerate(TEXTS))
    store, catalog = stored(data)
    call = whole.format(f"{function}(?o, {needle})")
    if whole == "{}":  # a column is of one kind of strings: with a language, or without
        call = f"CONCAT({call}, LANG({call}))" if "lang" in call else f"STR({call})"
    text = f"SELECT ?s ({call} AS ?r) {{ ?s :p ?o ; :n ?n }}"
    assert sorted(columns_rows(catalog, text)) == sorted(listed(store.query(PREFIXES + text)))
