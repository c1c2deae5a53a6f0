"""The column view against the engine: whatever compiles gives the same multiset of solutions."""

from hypothesis import HealthCheck, assume, given, settings
from pyoxigraph import Store

from graphdb.errors import GraphDBError
from graphdb.sparql.parser import parse_query
from tests.support.column_answers import Refused, engine_rows, view_rows
from tests.support.column_tables import column_tables
from tests.support.sparql_texts import quads, queries


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(quads, queries)
def test_columns_and_engine_agree(data: str, text: str) -> None:
    try:
        query = parse_query(text)
        store = Store()
        store.update(data)
        expected = engine_rows(store, query)
    except GraphDBError:
        assume(False)
    ours = view_rows(column_tables(store), query)
    assert isinstance(ours, Refused) or ours == expected
