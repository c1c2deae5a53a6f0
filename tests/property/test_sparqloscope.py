"""The queries of `benchmarks.sparqloscope_queries` over a part of the real data: the columns answer them, and
as the engine does.
"""

from collections import Counter
from pathlib import Path

import pytest
from pyoxigraph import RdfFormat, Store

from benchmarks.service import BenchmarkError
from benchmarks.shared_data import DATA_SETS, write_copies
from benchmarks.sparqloscope_queries import queries_for
from graphdb.columns.catalog import Catalog
from graphdb.columns.counting import counted
from graphdb.columns.results import TermTexts, answer_of
from graphdb.config.limits import GateLimits
from graphdb.planning.gate import read_query
from graphdb.sparql.translation import abstract_query
from tests.support.array_bounds import array_bounds
from tests.support.column_answers import Refused, engine_rows, rows_of, view_rows
from tests.support.column_tables import column_tables

SCALE = 0.05
# in this part most strings are of a predicate that has some with a language too
REFUSED = dict.fromkeys(("string-min", "string-max"), "an order of literals of several kinds")
# of the groups whose rows tie, the engine takes others; and SAMPLE takes any
ANY_ROWS = ("rows-", "group-many-groups", "group-four-aggregates")


@pytest.fixture(scope="module")
def triples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sparqloscope") / "all.nt"
    try:
        write_copies(path, dict.fromkeys(DATA_SETS, 1), SCALE)
    except BenchmarkError as error:
        pytest.skip(str(error))
    return path


@pytest.fixture(scope="module")
def loaded(triples: Path) -> tuple[Store, Catalog]:
    store = Store()
    store.bulk_load(path=str(triples), format=RdfFormat.N_TRIPLES)
    return store, column_tables(store)


def test_counts_without_rows_are_those_of_the_engine(triples: Path, loaded: tuple[Store, Catalog]) -> None:
    """In one piece each, and in many."""
    store, catalog = loaded
    by_pieces = Catalog(catalog.connection)
    differing, found = [], 0
    for one in queries_for(triples):
        asked = read_query(one.text, None, GateLimits())
        query = abstract_query(asked)
        with array_bounds(1_000, 1_000):
            pieced = counted(query, by_pieces)
        ours = counted(query, catalog)
        assert (ours is None) == (pieced is None)
        if ours is None or pieced is None:
            continue
        found += 1
        expected = engine_rows(store, asked)
        assert isinstance(expected, Counter)
        for each in (ours, pieced):
            answer = rows_of(answer_of(*each.answer(), TermTexts(catalog.connection)))
            assert isinstance(answer, Counter)
            same = answer.total() == expected.total() if one.name.startswith(ANY_ROWS) else answer == expected
            if not same:
                differing.append(one.text)
    assert differing == []
    assert found >= 85


def test_the_columns_answer_as_the_engine_does(triples: Path, loaded: tuple[Store, Catalog]) -> None:
    store, catalog = loaded
    made = queries_for(triples)
    assert len(made) == 105
    refused, differing = {}, []
    for one in made:
        asked = read_query(one.text, None, GateLimits())
        ours, engines = view_rows(catalog, asked), engine_rows(store, asked)
        if isinstance(ours, Refused):
            refused[one.name] = ours.reason
            continue
        assert isinstance(ours, Counter)
        assert isinstance(engines, Counter)
        if one.name.startswith(ANY_ROWS):
            ours, engines = Counter({(): ours.total()}), Counter({(): engines.total()})
        if ours != engines:
            differing.append(one.text)
    assert refused == REFUSED
    assert differing == []
