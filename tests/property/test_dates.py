"""Dates of all forms compared in SQL against the engine: with and without a time zone, with other zones and
years, beside durations and literals of other kinds.
"""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyoxigraph import Store

from graphdb.columns import typed_literals
from graphdb.sparql.parser import parse_query
from tests.support.column_answers import Refused, engine_rows, view_rows
from tests.support.column_tables import column_tables

_PREFIXES = "PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>"
_ZONES = st.sampled_from(["", "", "Z", "Z", "+14:00", "-14:00", "+02:00", "-00:30"])
_DAYS = st.builds(
    "{}-{:02}-{:02}".format, st.sampled_from(["2020", "2020", "0999", "3000"]), st.just(3), st.integers(8, 12)
)
_TIMES = st.sampled_from(["00:00:00", "01:59:59", "02:00:00", "12:00:00.5", "22:00:00", "21:59:59.9999999"])
_DATE = st.builds('"{}{}"^^xsd:date'.format, _DAYS, _ZONES)
_DATE_TIME = st.builds('"{}T{}{}"^^xsd:dateTime'.format, _DAYS, _TIMES, _ZONES)
_OTHERS = st.sampled_from(
    [
        '"2020"^^xsd:gYear',
        '"P1Y"^^xsd:duration',
        '"12:00:00Z"^^xsd:time',
        '"x"^^xsd:date',
        '"x"^^<x:t>',
        '"a"',
        "1",
    ]
)
_TERMS = _DATE | _DATE_TIME | _OTHERS
_OPERATORS = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])
_COMPARISONS = st.one_of(
    st.builds("?o {} {}".format, _OPERATORS, _DATE | _DATE_TIME),
    st.builds("{1} {0} ?o".format, _OPERATORS, _DATE | _DATE_TIME),
    st.builds("?o {} {}".format, _OPERATORS, _TERMS),
    st.builds("?o {} ?o2".format, _OPERATORS),
)
_PATTERNS = st.sampled_from(["?s ?p ?o", "?s <x:p> ?o", "?s <x:p> ?o . ?s <x:q> ?o2"])


def _dates() -> st.SearchStrategy[list[str]]:
    return st.lists(_TERMS, max_size=8) | st.lists(_DATE, max_size=8) | st.lists(_DATE_TIME, max_size=8)


def test_dates_compare_as_in_the_engine_switched_on_and_off() -> None:
    with_all, with_few = list[bool](), list[bool]()

    @settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(_dates(), _dates(), st.lists(st.tuples(_PATTERNS, _COMPARISONS), min_size=8, max_size=8))
    def run(one: list[str], other: list[str], asked: list[tuple[str, str]]) -> None:
        store = Store()
        lines = [f"<x:s{n % 3}> <x:p> {term} ." for n, term in enumerate(one)]
        lines += [f"<x:s{n % 3}> <x:q> {term} ." for n, term in enumerate(other)]
        store.update(f"{_PREFIXES} INSERT DATA {{ {' '.join(lines)} <x:s> <x:r> <x:o> }}")
        catalog = column_tables(store)
        for pattern, comparison in asked:
            query = parse_query(f"{_PREFIXES} SELECT * {{ {pattern} BIND(({comparison}) AS ?is) }}")
            expected = engine_rows(store, query)
            for switched_on, answered in ((True, with_all), (False, with_few)):
                catalog.compares_dates = switched_on
                found = view_rows(catalog, query)
                answered.append(not isinstance(found, Refused))
                assert isinstance(found, Refused) or found == expected, (comparison, switched_on)

    run()
    assert sum(with_few) < sum(with_all)
    assert sum(with_all) > len(with_all) / 2


def test_a_filter_on_dates_over_all_predicates_is_compiled() -> None:
    store = Store()
    terms = (
        '"2020-03-09"^^xsd:date, "2020-03-09Z"^^xsd:date, "2020-03-08+05:00"^^xsd:date, "P1Y"^^xsd:duration'
    )
    store.update(
        f'{_PREFIXES} INSERT DATA {{ <x:s> <x:p> {terms}, "x"^^<x:t>, 1, 1.5e0, "a"@en, <x:o>, _:b }}'
    )
    query = parse_query(f'{_PREFIXES} SELECT * {{ ?s ?p ?o FILTER (?o <= "2020-03-09"^^xsd:date) }}')
    assert view_rows(column_tables(store), query) == engine_rows(store, query)


def test_many_literals_that_only_the_engine_knows_are_a_readers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(typed_literals, "TERMS_MAX", 1)
    store = Store()
    store.update(f'{_PREFIXES} INSERT DATA {{ <x:s> <x:p> "P1Y"^^xsd:duration, "P2Y"^^xsd:duration }}')
    query = parse_query(f'{_PREFIXES} SELECT * {{ ?s ?p ?o FILTER (?o <= "2020-03-09"^^xsd:date) }}')
    assert isinstance(view_rows(column_tables(store), query), Refused)
