"""Queries that take more memory than the column view has."""

import asyncio
from pathlib import Path

import duckdb
import pytest
from pyoxigraph import Store

from actors.columns.database import ViewFiles
from actors.columns.protocol import ViewSettings
from graphdb.config.service import Columns
from graphdb.errors import QueryMemoryExceeded
from tests.support.columns import ColumnNode, open_columns

pytestmark = pytest.mark.anyio

SUBJECTS = 2_400
PREFIX = "PREFIX : <http://example.org/> "
LITTLE = {"memory_limit_mb": 64, "queries_max": 2}
COUNTED = PREFIX + "SELECT ?kind (COUNT(*) AS ?n) { ?s :kind ?kind ; :value ?value } GROUP BY ?kind"
COUNTS = f"kind,n\r\nhttp://example.org/k,{SUBJECTS}\r\n".encode()
PAIRS = (  # each a string of its own
    PREFIX + "SELECT (COUNT(*) AS ?n) { SELECT DISTINCT (CONCAT(STR(?a), STR(?b)) AS ?pair) "
    "{ ?a :kind ?k ; :value ?value . ?b :kind ?k FILTER(?value < 800) } }"
)
PAIRED = f"n\r\n{800 * SUBJECTS}\r\n".encode()
# one string of all pairs, which no spilling makes smaller
ONE_STRING = (
    PREFIX + "SELECT (STRLEN(GROUP_CONCAT(CONCAT(STR(?a), STR(?b)))) AS ?n) { ?a :kind ?k . ?b :kind ?k }"
)


async def fill(node: ColumnNode) -> None:
    await node.following()
    lines = " ".join(f":subject{number} :kind :k ; :value {number} ." for number in range(SUBJECTS))
    await node.update(f"{PREFIX} INSERT DATA {{ {lines} }}")


async def test_what_does_not_fit_into_memory_is_spilled(tmp_path: Path) -> None:
    async with open_columns(tmp_path, columns=LITTLE) as node:
        await fill(node)
        assert await node.query(PAIRS, timeout_s=60) == ("columns", PAIRED)


async def test_a_query_that_cannot_be_spilled_ends_as_with_a_reader(tmp_path: Path) -> None:
    async with open_columns(tmp_path, columns=LITTLE, readers={"memory_limit_mb": 64}) as node:
        await fill(node)
        before = await node.columns.status()
        greedy = asyncio.create_task(node.query(ONE_STRING, timeout_s=60))
        while not greedy.done():
            assert (await node.query(COUNTED, timeout_s=60))[1] == COUNTS
            await asyncio.sleep(0.05)
        with pytest.raises(QueryMemoryExceeded):
            await greedy
        assert await node.query(COUNTED) == ("columns", COUNTS)
        await node.update(PREFIX + "INSERT DATA { :more :kind :other ; :value 1 }")
        where, answer = await node.query(COUNTED)
        assert (where, answer.count(b"other")) == ("columns", 1)
        after = await node.columns.status()
        assert (after.state, after.running) == ("following", before.running) == ("following", 0)


def test_no_more_is_spilled_than_may_be(tmp_path: Path) -> None:
    Store(str(tmp_path / "store")).flush()
    groups = "SELECT count(*) FROM (SELECT hash(i) AS number, count(*) FROM range({}) t(i) GROUP BY number)"
    settings = ViewSettings.of(Columns(memory_limit_mb=64, spill_limit_mb=64))
    with ViewFiles(tmp_path / "columns", settings).load(tmp_path / "store", 1) as connection:
        with pytest.raises(duckdb.OutOfMemoryException):
            connection.execute(groups.format(16_000_000))
        assert connection.execute(groups.format(1_000_000)).fetchone() == (1_000_000,)


def test_a_limit_is_one_of_each_connection() -> None:
    """What the share of a query stands on: DuckDB takes it for one connection, not for the database."""
    with duckdb.connect() as connection:
        query = connection.cursor()
        query.execute("SET operator_memory_limit = '40MB'")
        setting = "SELECT current_setting('operator_memory_limit')"
        assert query.execute(setting).fetchall() != connection.execute(setting).fetchall()
