"""The columns or a reader, by cost; and what is refused before it begins."""

from pathlib import Path
from typing import Any

import pytest

from graphdb.access.visibility import FULL_VISIBILITY
from graphdb.errors import QueryTimeout, QueryTooLong
from graphdb.planning.costs import LearntCosts, Way, Work
from graphdb.sparql.parser import parse_query
from tests.support.columns import ColumnNode, open_columns

pytestmark = pytest.mark.anyio

SUBJECTS = 300
LISTED = "SELECT ?s ?v { ?s <urn:v> ?v ; <urn:w> ?w } LIMIT 3"
PRODUCT = " ".join(f"?s{place} <urn:v> ?v{place} ." for place in range(6))
HOPELESS = f"DESCRIBE ?s0 {{ {PRODUCT} }}"  # which only a reader answers
HOPEFUL = f"DESCRIBE ?s0 {{ {PRODUCT} }} LIMIT 1"


async def filled(node: ColumnNode) -> None:
    await node.following()
    quads = " ".join(f"<urn:s{n}> <urn:v> {n} ; <urn:w> {n} ." for n in range(SUBJECTS))
    await node.update(f"INSERT DATA {{ {quads} }}")


async def ways(node: ColumnNode, text: str) -> dict[str, dict[str, Any]]:
    reads = await node.shard.reads(FULL_VISIBILITY)
    explained = await reads.explain_columns(node.request(text))
    return {way["way"]: way for way in explained["ways"]}


@pytest.fixture
def costs(monkeypatch: pytest.MonkeyPatch) -> LearntCosts:
    """Those of the node that is opened next."""
    made = LearntCosts()
    monkeypatch.setattr("actors.node.graph_node.LearntCosts", lambda: made)
    return made


async def test_the_way_of_least_cost_is_taken_and_shown(tmp_path: Path, costs: LearntCosts) -> None:
    async with open_columns(tmp_path, columns={"chosen_by_cost": True}) as node:
        await filled(node)
        assert (await node.query(LISTED))[0] == "columns"
        shown = await ways(node, LISTED)
        assert shown["columns"]["chosen"]
        assert shown["columns"]["estimated_ms"] < shown["reader"]["estimated_ms"]
        assert shown["reader"]["possible"]

        work = Work("join", 2 * SUBJECTS, SUBJECTS, 3)
        costs.note(Way.COLUMNS, parse_query(LISTED, None).text, work, 30_000, is_whole=False)
        shown = await ways(node, LISTED)
        assert shown["reader"]["chosen"]
        assert shown["columns"]["possible"]
        assert shown["columns"]["took_ms"] == 30_000
        where, answer = await node.query(LISTED)
        assert (where, answer.count(b"\n")) == ("reader", 4)

        await refuses_what_is_hopeless(node)


async def refuses_what_is_hopeless(node: ColumnNode) -> None:
    with pytest.raises(QueryTooLong, match=r"7e\+14 solutions or more.*add LIMIT"):
        await node.query(HOPELESS, timeout_s=10)
    assert "not begun" in (await ways(node, HOPELESS))["reader"]["reason"]
    assert (await node.query(HOPEFUL))[0] == "reader"


async def test_switched_off_the_columns_answer_and_nothing_is_refused(
    tmp_path: Path, costs: LearntCosts
) -> None:
    switches = {"columns": {"chosen_by_cost": False}, "readers": {"refuses_early": False}}
    async with open_columns(tmp_path, **switches) as node:
        await filled(node)
        work = Work("join", 2 * SUBJECTS, SUBJECTS, 3)
        costs.note(Way.COLUMNS, parse_query(LISTED, None).text, work, 30_000, is_whole=False)
        assert (await node.query(LISTED))[0] == "columns"
        with pytest.raises(QueryTimeout):
            await node.query(HOPELESS, timeout_s=1)
