"""Calls of GeoSPARQL's functions by real evaluators: what they answer, and what ends them."""

from pathlib import Path
from random import Random

import orjson
import pytest

from actors.readers.protocol import READER_MESSAGES, FunctionTask
from graphdb.errors import BadGeometry, InvalidParameter, QueryTimeout, UnknownFunction
from tests.support.reader_tasks import FEW, in_process, task
from tests.support.readers import readers, wait_gone
from tests.support.travelling import travelled

pytestmark = pytest.mark.anyio

DEEP = "GEOMETRYCOLLECTION(" * 200_000 + "POINT(0 0)" + ")" * 200_000


def tangle(count: int) -> str:
    """A line whose buffer takes GEOS minutes."""
    rng = Random(1)
    places = ",".join(f"{rng.random()} {rng.random()}" for _ in range(count))
    return f"<http://www.opengis.net/def/crs/EPSG/0/27700> LINESTRING({places})"


def test_the_wire_keeps_a_task() -> None:
    sent = FunctionTask("geof:x", ("POINT(1 2)", "\n\u00e9"))
    assert travelled(READER_MESSAGES, sent) == FunctionTask("geof:x", list(sent.args))


async def test_answers_and_refusals(tmp_path: Path) -> None:
    async with readers(tmp_path, count=1) as there:
        before = await there.pids()
        answer = orjson.loads(await there.answer(FunctionTask("dimension", ["POINT(1 2)"])))
        assert (answer["function"], answer["result"]) == ("geof:dimension", 0)
        for called, error in (
            (FunctionTask("nothing", []), UnknownFunction),
            (FunctionTask("dimension", []), InvalidParameter),
            (FunctionTask("dimension", [DEEP]), BadGeometry),
            (FunctionTask("dimension", ["<a>" * 100_000]), BadGeometry),
        ):
            with pytest.raises(error):
                await there.answer(called)
        assert await there.pids() == before


async def test_one_that_takes_long_ends_at_its_deadline(tmp_path: Path) -> None:
    async with readers(tmp_path, count=1) as there:
        pids = await there.pids()
        with pytest.raises(QueryTimeout):
            await there.answer(FunctionTask("metricBuffer", [tangle(4000), "0.01"]), timeout_s=2)
        await wait_gone(pids)
        assert await there.answer(FunctionTask("isEmpty", ["POINT EMPTY"]))


async def test_a_call_leaves_the_checkpoint_open_that_was(tmp_path: Path, checkpoint: Path) -> None:
    async with readers(tmp_path, count=1) as there:
        assert await there.answer(task(checkpoint, FEW)) == in_process(task(checkpoint, FEW))
        await there.answer(FunctionTask("isEmpty", ["POINT EMPTY"]))
        await there.client.release_checkpoint(str(checkpoint))  # the evaluator is known to have it open still
        assert await there.answer(task(checkpoint, FEW)) == in_process(task(checkpoint, FEW))
