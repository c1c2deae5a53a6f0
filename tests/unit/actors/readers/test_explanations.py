"""EXPLAIN by real evaluators: what they tell before they evaluate, and what of it outlives them."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from actors.readers.client import Lease
from graphdb.access.visibility import FULL_VISIBILITY
from graphdb.errors import (
    EvaluationFailed,
    GraphDBError,
    QueryCancelled,
    QueryMemoryExceeded,
    QueryTimeout,
    UnavailableError,
)
from graphdb.node import QueryRequest
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import parse_query, parse_update
from graphdb.sparql.results import ResultFormat
from tests.support.reader_tasks import CRASHING, ENDLESS, GREEDY, MANY, explanation
from tests.support.readers import readers
from tests.support.shards import open_shard

pytestmark = pytest.mark.anyio

SCANS = ("?s ?p ?o", "?s <urn:p0> ?o", "GRAPH ?g { ?s ?p ?o }")
COUNTS = b'{"quads": [300, 43, 1]}'


async def pieces(lease: Lease) -> list[bytes]:
    found = []
    while (piece := await lease.read()) is not None:
        found.append(piece)
    return found


async def test_counts_then_rows(tmp_path: Path, checkpoint: Path) -> None:
    async with readers(tmp_path, count=1) as there:
        for text, rows in ((MANY, b"90000"), ("ASK { ?s ?p ?o }", b"null"), ("DESCRIBE <urn:s1>", b"1")):
            lease = await there.client.lease("q", 30)
            lease.evaluate(explanation(checkpoint, text, *SCANS))
            assert await pieces(lease) == [COUNTS, b'{"rows": %b}' % rows]
            lease.close()


@pytest.mark.parametrize(
    ("text", "settings", "timeout_s", "error"),
    [
        (ENDLESS, {}, 0.6, QueryTimeout),
        (GREEDY, {"memory_limit_mb": 64}, 30, QueryMemoryExceeded),
        (CRASHING, {}, 30, UnavailableError),
        ("SELECT (a", {}, 30, EvaluationFailed),
    ],
)
async def test_the_counts_are_there_whatever_becomes_of_the_query(
    tmp_path: Path,
    checkpoint: Path,
    text: str,
    settings: dict[str, int],
    timeout_s: float,
    error: type[GraphDBError],
) -> None:
    async with readers(tmp_path, count=1, **settings) as there:
        lease = await there.client.lease("q", timeout_s)
        lease.evaluate(explanation(checkpoint, text, *SCANS))
        assert await lease.read() == COUNTS
        with pytest.raises(error):
            await lease.read()
        lease.close()


async def test_what_has_told_its_counts_is_not_begun_again(tmp_path: Path, checkpoint: Path) -> None:
    async with readers(tmp_path, count=1) as there:
        lease = await there.client.lease("q", 30)
        lease.evaluate(explanation(checkpoint, ENDLESS, *SCANS))
        assert await lease.read() == COUNTS
        os.kill(await there.busy_pid(), signal.SIGKILL)
        with pytest.raises(UnavailableError, match=r"ended \(signal 9\)"):
            await lease.read()
        lease.close()


async def test_an_explanation_is_listed_and_cancelled(tmp_path: Path) -> None:
    data = " ".join(f"<urn:s> <urn:p> {number} ." for number in range(300))
    async with open_shard(tmp_path) as shard:
        await shard.writes(FULL_VISIBILITY).update(parse_update(f"INSERT DATA {{ {data} }}", None), Dataset())
        query = parse_query(ENDLESS)
        stream = await shard.start_query(QueryRequest(query, Dataset(), ResultFormat.JSON, 30, explain=True))
        assert await stream.read() == b'{"quads": [300, 300, 300, 300]}'
        [shown] = shard.running_queries()
        assert (shown.text, shown.state, shown.where) == (ENDLESS, "running", stream.where)
        ending = asyncio.create_task(stream.read())
        await asyncio.sleep(0.05)
        assert shard.cancel_query(stream.query_id)
        with pytest.raises(QueryCancelled):
            await ending
        stream.close()
        assert shard.running_queries() == []
