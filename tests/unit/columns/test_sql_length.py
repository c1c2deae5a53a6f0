"""A query whose SQL would be much longer than itself is left to a reader, before that SQL is made."""

from collections.abc import Iterator

import duckdb
import pytest
from duckdb import DuckDBPyConnection

from graphdb.columns import schema
from graphdb.columns.catalog import Catalog
from graphdb.columns.compiler import CompiledQuery, NotCompiled, compile_query
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import parse_query
from graphdb.sparql.translation import abstract_query


@pytest.fixture
def connection() -> Iterator[DuckDBPyConnection]:
    with duckdb.connect() as made:
        schema.create(made)
        yield made


def doubled(first: str, function: str, steps: int) -> str:
    binds = " ".join(f"BIND({function.format(f'?s{i}')} AS ?s{i + 1})" for i in range(steps))
    return f"SELECT ?s{steps} {{ BIND({first} AS ?s0) {binds} }}"


@pytest.mark.parametrize(
    ("first", "function"),
    [
        ("'0123456789'", "CONCAT({0}, {0})"),
        ("STR(<urn:s>)", "IF(STRLEN({0}) > 5, CONCAT({0}, 'x'), STR({0}))"),
        ("1", "{0} + {0}"),
    ],
)
def test_columns_made_of_each_other(connection: DuckDBPyConnection, first: str, function: str) -> None:
    def compiled(steps: int) -> CompiledQuery | NotCompiled:
        query = abstract_query(parse_query(doubled(first, function, steps)))
        return compile_query(query, Dataset(), Catalog(connection))

    assert isinstance(compiled(3), CompiledQuery)
    assert compiled(60) == NotCompiled("an expression that is too long in SQL")


def test_many_rows_of_values(connection: DuckDBPyConnection) -> None:
    rows = " ".join(map(str, range(20_000)))
    query = abstract_query(parse_query(f"SELECT * {{ VALUES ?a {{ {rows} }} ?s ?p ?a }}"))
    refused = compile_query(query, Dataset(), Catalog(connection))
    assert refused == NotCompiled("a query that is too long in SQL")
