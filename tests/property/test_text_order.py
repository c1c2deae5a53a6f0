"""Aggregates and rows with strings in order against the engine, and against the same without, on random
literals: also with some of the strings in the order's rest.
"""

from collections.abc import Callable, Sequence

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyoxigraph import Store

from graphdb.columns.catalog import Catalog
from graphdb.columns.counting import counted
from graphdb.columns.results import TermTexts, answer_of
from graphdb.columns.term_ids import PAYLOAD_MASK
from graphdb.columns.text_order import TextOrders
from graphdb.errors import GraphDBError
from graphdb.sparql.parser import parse_query
from graphdb.sparql.syntax import Query
from graphdb.sparql.translation import abstract_query
from tests.support.column_answers import Refused, Rows, engine_rows, rows_of, view_rows
from tests.support.column_tables import column_tables

_LONG = "a" * 63  # texts are kept in order by their first 64 bytes
_TEXTS = [
    *("", "a", "A", "ab", "abc", "Abc", "b", "é", "éa", "\uffff", "\U00010000", "\U0001f600a", "a\U0001f600"),
    *("a\\u0000", "a\\u0000b", "a b", "1", _LONG, _LONG + "b", _LONG + "bc", _LONG + "é", _LONG + "éa"),
]
_STRINGS = [f'"{text}"' for text in _TEXTS]
_LANGUAGES = ["@en", "@EN", "@en-GB", "@de", "@en--ltr", "@ar--rtl"]
_TAGGED = [f'"{text}"{language}' for text in _TEXTS[:8] for language in _LANGUAGES]
_NUMBERS = [
    "0",
    "1",
    "-7",
    "36028797018963968",
    "9223372036854775807",
    "1.5",
    "-0.25",
    "1234567890123.000000001",
]
_DOUBLES = ["1e0", "0.1e0", '"NaN"^^xsd:double', '"-0"^^xsd:double', '"INF"^^xsd:double', '"1.5"^^xsd:float']
_DATES = [
    f'"{text}"^^xsd:{kind}'
    for kind, text in (
        ("date", "2020-02-29"),
        ("date", "2020-02-29Z"),
        ("date", "2020-02-29+02:00"),
        ("date", "0999-01-01"),
        ("dateTime", "2020-02-29T12:00:00"),
        ("dateTime", "2020-02-29T12:00:00.5Z"),
        ("dateTime", "2020-02-29T12:00:00-05:00"),
        ("gYear", "2020"),
        ("duration", "P1Y"),
    )
]
_OTHERS = ["true", '"x"^^<x:type>', '"x"^^xsd:integer', "<x:1>", "_:b"]
_KINDS = [_STRINGS, [*_STRINGS, *_TAGGED], _NUMBERS[:5], _NUMBERS[5:], _NUMBERS, _DOUBLES, _DATES[:2], _DATES]
_ALL = [term for kind in (*_KINDS, _OTHERS) for term in kind]
_PREFIXES = "PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>"
_Data = list[tuple[int, str]]


def _data() -> st.SearchStrategy[_Data]:
    """Subjects and values of one predicate, mostly of one kind."""
    kinds = st.sampled_from([*_KINDS, *_KINDS, _ALL])
    return kinds.flatmap(
        lambda terms: st.lists(st.tuples(st.integers(1, 9), st.sampled_from(terms)), max_size=25)
    )


_TESTS = st.one_of(
    st.builds(
        "{}(?o, {})".format, st.sampled_from(["STRSTARTS", "STRENDS", "CONTAINS"]), st.sampled_from(_STRINGS)
    ),
    st.builds(
        'REGEX(?o, "{}")'.format, st.sampled_from(["^a", "^A", "^ab", "a", "^a b", "^", "b$", "a.c", _LONG])
    ),
    st.builds("?o {} {}".format, st.sampled_from(["=", "!=", "<", "<=", ">", ">="]), st.sampled_from(_ALL)),
    st.builds("{1} {0} ?o".format, st.sampled_from(["=", "<", ">="]), st.sampled_from([*_STRINGS, *_TAGGED])),
    st.sampled_from(['LANG(?o) = "en"', '"de" = LANG(?o)', 'LANG(?o) = "EN"', 'LANG(?o) = ""']),
    st.sampled_from(['LANGMATCHES(LANG(?o), "en")', "ISLITERAL(?o)", "YEAR(?o) = 2020", "STRLEN(?o) > 2"]),
)
_AGGREGATES = st.one_of(
    st.sampled_from(["COUNT(*)", "COUNT(?o)", "COUNT(?s)", "COUNT(DISTINCT ?o)", "MIN(?o)", "MAX(?o)"]),
    st.sampled_from(
        ["SUM(?o)", "AVG(?o)", "SUM(ABS(?o))", "SUM(?o * 3)", "AVG(CEIL(?o))", "SUM(STRLEN(?o))"]
    ),
    st.sampled_from(["SUM(YEAR(?o))", 'SUM(STRLEN(STRBEFORE(?o, "b")))', "COUNT(DISTINCT ?s)"]),
    st.builds("SUM(xsd:integer({}))".format, _TESTS),
)


@st.composite
def _queries(draw: st.DrawFn) -> str:
    filters = draw(st.lists(_TESTS, max_size=1) | st.lists(_TESTS, max_size=2))
    wanted = draw(st.lists(_AGGREGATES, min_size=1, max_size=draw(st.sampled_from([1, 1, 2]))))
    columns = " ".join(f"({aggregate} AS ?k{place})" for place, aggregate in enumerate(wanted))
    conditions = " ".join(f"FILTER ({'!' if draw(st.booleans()) else ''}({each}))" for each in filters)
    return f"{_PREFIXES} SELECT {columns} {{ ?s <x:p> ?o {conditions} }}"


def _loaded(data: _Data, frequent: int) -> tuple[Store, Catalog]:
    store = Store()
    triples = "".join(f"<x:{subject}> <x:p> {value} . " for subject, value in data)
    store.update(f"{_PREFIXES} INSERT DATA {{ {triples} <x:s> <x:q> 1 }}")
    return store, column_tables(store, frequent)


def _ordered(catalog: Catalog, first_of_rest: int) -> Catalog:
    """With the strings in order, but for those from a number on, which are in the rest."""
    run = catalog.connection.execute
    beyond = f"terms WHERE id & {PAYLOAD_MASK} >= {first_of_rest}"
    run(f"CREATE TABLE later AS FROM {beyond}")
    run(f"DELETE FROM {beyond}")
    run(f"UPDATE meta SET value = '{first_of_rest}' WHERE key = 'next_term'")
    orders = TextOrders(catalog.connection)
    assert orders.of(catalog.connection) is not None
    run("INSERT INTO terms FROM later")
    run("UPDATE meta SET value = '1000' WHERE key = 'next_term'")
    return Catalog(catalog.connection, orders=orders)


def _answer(catalog: Catalog, query: Query) -> Rows | None:
    found = counted(abstract_query(query), catalog)
    return None if found is None else rows_of(answer_of(*found.answer(), TermTexts(catalog.connection)))


def _agrees(store: Store, catalogs: Sequence[Catalog], text: str) -> list[bool]:
    """With which of the catalogs it is answered without SQL."""
    query = parse_query(text)
    answers = [_answer(catalog, query) for catalog in catalogs]
    in_sql = view_rows(catalogs[0], query)
    try:
        expected = engine_rows(store, query)
    except GraphDBError:
        return []
    for answer in answers:
        assert answer is None or answer == expected, text
    assert isinstance(in_sql, Refused) or in_sql == expected, text
    _check_rows(store, catalogs[1], text)
    return [answer is not None for answer in answers]


def _check_rows(store: Store, ordered: Catalog, text: str) -> None:
    """That the same pattern gives the engine's rows in SQL that is made with the order."""
    query = parse_query(f"{_PREFIXES} SELECT * {text[text.index('{') :]}")
    rows = view_rows(ordered, query)
    assert isinstance(rows, Refused) or rows == engine_rows(store, query), text


def test_answers_with_strings_in_order_are_those_of_the_engine_and_of_sql() -> None:
    answered: list[bool] = []

    @settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(_data(), st.lists(_queries(), min_size=8, max_size=8), st.integers(1, 30), st.integers(1, 40))
    def run(data: _Data, texts: list[str], frequent: int, rest: int) -> None:
        store, plain = _loaded(data, frequent)
        catalogs = [plain, _ordered(plain, rest)]
        for text in texts:
            answered.extend(_agrees(store, catalogs, text)[1:])

    run()
    assert sum(answered) > len(answered) / 20


def test_what_strings_are_tested_for_is_found_from_their_order() -> None:
    for terms, tests in (
        (_STRINGS, ('?o < "b"', '"ab" <= ?o', '?o = "a"')),
        ([*_STRINGS, *_TAGGED], ('STRSTARTS(?o, "a")', 'REGEX(?o, "^ab")', 'LANG(?o) = "en"')),
    ):
        store, plain = _loaded([(number % 9, term) for number, term in enumerate(terms)], 1)
        ordered = _ordered(plain, 1_000)
        for test in tests:
            query = parse_query(f"SELECT (COUNT(*) AS ?k) {{ ?s <x:p> ?o FILTER ({test}) }}")
            assert _answer(ordered, query) == engine_rows(store, query), test
            # without a connection no text is read
            assert counted(abstract_query(query), ordered.on(None)) is not None, test
    query = parse_query("SELECT (MIN(?o) AS ?k) (MAX(?o) AS ?m) { ?s <x:p> ?o }")
    store, plain = _loaded([(1, term) for term in _STRINGS], 1)
    assert _answer(_ordered(plain, 1_000), query) == engine_rows(store, query)


def test_more_strings_than_there_is_memory_for_are_not_put_in_order() -> None:
    _, plain = _loaded([(1, '"a"'), (2, '"b"')], 1)
    connection = plain.connection
    connection.execute("UPDATE meta SET value = '100' WHERE key = 'next_term'")
    order = TextOrders(connection).of(connection)
    assert order is not None
    looks: list[None] = []

    def start(make: Callable[[], None]) -> None:
        looks.append(None)
        make()

    enough, little = (TextOrders(connection, start, order.nbytes + more) for more in (16, -40))
    assert enough.of(connection) is not None
    assert little.of(connection) is None
    assert little.of(connection) is None
    assert len(looks) == 2  # in the same state it is not tried again


def test_a_large_rest_is_merged_into_a_new_order() -> None:
    _, plain = _loaded([(1, '"a"')], 1)
    plain.connection.execute("UPDATE meta SET value = '100' WHERE key = 'next_term'")
    orders = TextOrders(plain.connection)
    order = orders.of(plain.connection)
    assert order is not None
    rows = ", ".join(
        f"({(3 << 56) + 100 + n}, '\"t{n}\"', 3, 't{n}', NULL, NULL, NULL)" for n in range(1_001)
    )
    plain.connection.execute(f"INSERT INTO terms VALUES {rows}")
    plain.connection.execute("UPDATE meta SET value = '2000' WHERE key = 'next_term'")
    order = orders.of(plain.connection)
    assert order is not None
    assert len(order.rest) == 1_001
    order = orders.of(plain.connection)
    assert order is not None
    assert not order.rest
    assert len(order.ids) == 1_002
