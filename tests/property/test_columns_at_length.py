"""Thousands of random queries: whatever the column view answers is what the engine answers."""

import gzip
import os
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyoxigraph import Literal, RdfFormat, Store, parse

from graphdb.columns.catalog import Catalog
from graphdb.errors import GraphDBError
from graphdb.sparql.parser import parse_query
from tests.support.column_answers import Refused, column_of, engine_answer, engine_rows, view_read, view_rows
from tests.support.column_tables import column_tables
from tests.support.wide_sparql_texts import WIDE, Vocabulary, wide_quads, wide_queries

SHARED = Path(os.environ.get("GRAPHDB_SHARED", Path(__file__).parents[2].parent / "shared"))
OLYMPICS = SHARED / "data" / "olympics-medals.nt.gz"
A_STORE = 12  # queries on each store, as a view takes longer to make than to ask
# the same ones each time: so many that chance would find what is new, in a run that is about something else
_ANY = settings(deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))

pytestmark = [pytest.mark.long, pytest.mark.timeout(1200)]


def agrees(store: Store, catalog: Catalog, parts: tuple[str, str, str]) -> bool:
    """Whether the view answers. With a LIMIT any rows are right that could come first."""
    text, order, limit = parts
    try:
        cut = parse_query(f"{text} {order} {limit}")
        expected = engine_rows(store, parse_query(text))
    except GraphDBError:
        return False  # no query, or one that the engine cannot answer: a reader says so
    ours = view_rows(catalog, cut)
    if isinstance(ours, Refused):
        return False
    if not limit:
        assert ours == expected, text
    else:
        as_many = engine_rows(store, parse_query(f"{text} {limit}"))
        assert isinstance(ours, Counter)
        assert isinstance(expected, Counter)
        assert isinstance(as_many, Counter)
        assert ours.total() == as_many.total(), text
        assert ours <= expected, text
    variable = order.removeprefix("ORDER BY ").removeprefix("DESC(")[1:3]
    if variable and f"?{variable}" in text.partition("{")[0].replace("*", f"?{variable}"):
        keys = view_read(catalog, cut, lambda answer: column_of(answer, variable))
        assert not isinstance(keys, Refused)
        assert keys == column_of(engine_answer(store, cut), variable), text
    return True


def test_random_queries_on_random_data() -> None:
    answered: list[bool] = []

    @settings(_ANY, max_examples=200)
    @given(wide_quads, st.lists(wide_queries(WIDE), min_size=A_STORE, max_size=A_STORE))
    def run(data: str, queries: list[tuple[str, str, str]]) -> None:
        store = Store()
        store.update(data)
        catalog = column_tables(store)
        answered.extend(agrees(store, catalog, parts) for parts in queries)

    run()
    assert sum(answered) > len(answered) / 4


@pytest.mark.skipif(not OLYMPICS.exists(), reason="no ../shared/data/olympics-medals.nt.gz")
def test_random_queries_on_real_data() -> None:
    answered: list[bool] = []
    store = sample()
    catalog = column_tables(store, frequent=300)

    @settings(_ANY, max_examples=600)
    @given(wide_queries(vocabulary(store)))
    def run(parts: tuple[str, str, str]) -> None:
        answered.append(agrees(store, catalog, parts))

    run()
    assert sum(answered) > len(answered) / 4


def sample() -> Store:
    """Each hundredth medal, and what is said of its athlete, games and event."""
    with gzip.open(OLYMPICS, "rt") as file:
        lines = [line.split(" ", 2) for line in file]
    medals = {subject for subject, _, _ in lines if subject.endswith("00>")}
    named = {rest.removesuffix(" .\n") for subject, _, rest in lines if subject in medals}
    kept = [" ".join(line) for line in lines if line[0] in medals or line[0] in named]
    store = Store()
    store.extend(parse("".join(kept), format=RdfFormat.N_TRIPLES))
    return store


def vocabulary(store: Store) -> Vocabulary:
    quads = sorted(store, key=str)
    predicates = sorted({str(quad.predicate) for quad in quads})
    literals = [str(quad.object) for quad in quads if isinstance(quad.object, Literal)]
    iris = [str(quad.object) for quad in quads if not isinstance(quad.object, Literal)]
    return Vocabulary(iris[:: len(iris) // 8], predicates, literals[:: len(literals) // 12], free=False)
