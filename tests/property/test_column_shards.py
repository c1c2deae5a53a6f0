"""Shards of a column view against the engine: random queries give the same, or are left to a reader."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyoxigraph import Store

from graphdb.columns.sharding.cutting import CutLimits
from graphdb.errors import GraphDBError
from graphdb.sparql.parser import parse_query
from tests.support.column_answers import Refused, engine_rows, rows_of, view_rows
from tests.support.column_shards import ALONE, EXCHANGING, LIMITS, divided, sharded_read
from tests.support.column_tables import column_tables
from tests.support.sparql_texts import quads, queries

QUERIES = 5  # of one set of data
SHARDS = 4


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    quads,
    st.lists(queries, min_size=QUERIES, max_size=QUERIES),
    st.sampled_from((1, 2, 4)),
    st.sampled_from((LIMITS, EXCHANGING, ALONE)),
)
def test_shards_and_engine_agree(data: str, texts: list[str], hosts: int, limits: CutLimits) -> None:
    store = Store()
    store.update(data)
    view = column_tables(store)
    with divided(view.connection, SHARDS, hosts=hosts, has_quads=limits is ALONE) as shards:
        for text in texts:
            try:
                query = parse_query(text)
                expected = engine_rows(store, query)
            except GraphDBError:
                continue
            ours = sharded_read(shards, query, rows_of, limits)
            if isinstance(ours, Refused):  # what one view answers shards answer too, of data that are so few
                assert ours.is_late or isinstance(view_rows(view, query), Refused), (text, ours)
            else:
                assert ours == expected, text
