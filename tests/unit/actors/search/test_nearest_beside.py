"""The nearest that a process beside the port finds are those that the port finds, by the same graphs."""

import asyncio
import os
import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

from actors.search.open_search import SearchConfig
from actors.search.search_node import SearchNode
from actors.search.upkeep import UpkeepConfig
from graphdb.search.catalog.catalog_commands import CreateIndex, DocumentWrite
from graphdb.search.segments.operations import Action, Operation
from graphdb.search.vectors import Graph, build_graph, graphs_of, missing_graphs, upkeep
from tests.support.busy_search import Ask, busy_node, busy_port, processes_of, until_handed_on
from tests.support.search_nodes import index_of

pytestmark = pytest.mark.anyio
DIMS, ROWS, MORE = 24, 2_800, 2_400
AT_REST = SearchConfig(publish_identity_s=None, upkeep=UpkeepConfig(merge_rest_s=3_600.0))
RANDOM = np.random.default_rng(4)
_QUICK = {"m": 4, "ef_construction": 8}  # to build


def _vectors(kind: str, **options: Any) -> dict[str, Any]:
    return {
        "type": "dense_vector",
        "dims": DIMS,
        "similarity": "l2_norm",
        "index_options": {"type": kind, **_QUICK},
        **options,
    }


PROPERTIES = {
    "title": {"type": "text"},
    "number": {"type": "integer"},
    "v": _vectors("hnsw"),
    "bytes": _vectors("int8_hnsw", element_type="byte"),
    "parts": {"type": "nested", "properties": {"v": _vectors("int8_hnsw", similarity="cosine")}},
}


def _bodies() -> list[dict[str, Any]]:
    query = [round(float(value), 3) for value in RANDOM.standard_normal(DIMS)]
    near = {"field": "v", "query_vector": query, "k": 10, "num_candidates": 10}
    some, few = ({"range": {"number": {"lt": most}}} for most in (ROWS // 2, ROWS // 20))
    nearest = {"knn": {**near, "field": "parts.v"}}
    text = {"match": {"title": "seven"}}
    bodies: list[dict[str, Any]] = [
        {"knn": near},
        {"knn": {**near, "filter": some}, "_source": True},
        {"knn": {**near, "filter": [few, {"match": {"title": "book"}}]}},
        {"knn": {**near, "field": "bytes", "query_vector": [round(30 * value) for value in query]}},
        {"knn": {**near, "similarity": 6.0}, "size": 3, "from": 2},
        {"knn": {**near, "field": "parts.v"}},
        {"query": {"nested": {"path": "parts", "query": nearest, "inner_hits": {}}}},
        {"query": {"bool": {"should": [{"knn": near}, text]}}},
        {"query": text, "knn": near},
        {"knn": [near, {**near, "field": "parts.v", "boost": 2}]},
        {"retriever": {"rrf": {"retrievers": [{"knn": near}, {"standard": {"query": text}}]}}},
        {"knn": near, "size": 1, "aggs": {"sum": {"sum": {"field": "number"}}}},
    ]
    return [{"_source": False, **body} for body in bodies]


def _document(number: int) -> DocumentWrite:
    whole = RANDOM.standard_normal((3, DIMS)).round(3)
    body = {
        "title": f"book {'seven' if number % 7 == 0 else 'six'}",
        "number": number,
        "v": whole[0].tolist(),
        "bytes": (30 * whole[0]).astype(int).clip(-128, 127).tolist(),
        "parts": [{"v": whole[1].tolist()}, {"v": whole[2].tolist()}],
    }
    return DocumentWrite("near", Operation(Action.INDEX, str(number), orjson.dumps(body)))


async def _fill(node: SearchNode) -> None:
    """An index of two shards: a segment of each in a file, and one in no file."""
    body = {
        "settings": {"number_of_shards": 2, "refresh_interval": "-1"},
        "mappings": {"properties": PROPERTIES},
    }
    await node.perform(CreateIndex("near", "near", body))
    for first, count in ((0, ROWS), (ROWS, MORE)):
        await node.write([_document(number) for number in range(first, first + count)], "true")
        if not first:
            await node.flush()


def _hasty_graph(*arguments: Any) -> Graph | None:
    """One that looks for few rows, and misses some: whoever compares all rows finds others."""
    graph = build_graph(*arguments)
    return None if graph is None else replace(graph, efforts=(4, 4, 4, 4))


def _make_graphs(node: SearchNode, patch: pytest.MonkeyPatch, saved: bool = True) -> int:
    """Of all fields and segments, in files or in memory; how many there are now."""
    patch.setattr(upkeep, "build_graph", _hasty_graph)
    index = index_of(node, "near")
    assert node._open is not None
    for number, leaves in enumerate(index.shards.view().parts):
        files = node._open.view.graph_files(index, number)
        for job in missing_graphs(leaves, index.mapping, rows_min=1_000):
            assert job.run(files if saved else None)
    return sum(len(graphs_of(leaf.segment)) for leaf in index.shards.view().leaves)


def _remove_graph_files(node: SearchNode) -> int:
    """As a merge does; how many there were."""
    graphs = [
        graph
        for leaf in index_of(node, "near").shards.view().leaves
        for graph in graphs_of(leaf.segment).values()
    ]
    files = [graph.file[0] for graph in graphs if graph.file is not None]
    for file in files:
        os.unlink(file)
    return len(files)


async def _all_asked(ask: Ask, bodies: Sequence[dict[str, Any]]) -> list[list[tuple[int, Any]]]:
    """The answers, each asked four times at once."""
    return [await asyncio.gather(*(ask(body, "near") for _ in range(4))) for body in bodies]


async def _alone(ask: Ask, bodies: Sequence[dict[str, Any]]) -> list[list[tuple[int, Any]]]:
    """What the port answers itself."""
    answers = [await ask(body, "near") for body in bodies]
    assert [status for status, _ in answers] == [200] * len(bodies)
    return [[answer] * 4 for answer in answers]


async def test_the_nearest_of_a_process_are_those_of_the_port(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bodies = [*_bodies(), *_bodies()]
    async with busy_node(tmp_path, monkeypatch, 1, AT_REST) as (node, ask):
        await _fill(node)
        exact = await _alone(ask, bodies)
        await until_handed_on(node, ask, "near")
        assert await _all_asked(ask, bodies) == exact

        # graphs that are made later belong to the state of now
        assert _make_graphs(node, monkeypatch) == 12
        alone = await _alone(ask, bodies)
        assert alone != exact
        before = processes_of(node).searches
        await until_handed_on(node, ask, "near")
        assert await _all_asked(ask, bodies) == alone
        assert processes_of(node).searches > before + len(bodies)

        # what is mapped stays, and what is not there is shared through memory
        assert _remove_graph_files(node) == 12
        assert await _all_asked(ask, bodies) == alone
        (pid,) = processes_of(node).pids
        os.kill(pid, signal.SIGKILL)
        await until_handed_on(node, ask, "near")
        assert await _all_asked(ask, bodies) == alone

        # deletions and a flush go on with the same graphs
        gone = [DocumentWrite("near", Operation(Action.DELETE, str(number))) for number in range(0, ROWS, 20)]
        await node.write(gone, "true")
        await node.flush()
        alone = await _alone(ask, bodies)
        await until_handed_on(node, ask, "near")
        assert await _all_asked(ask, bodies) == alone

        # and a merge with others
        await node.force_merge([index_of(node, "near")], 1)
        _make_graphs(node, monkeypatch)
        alone = await _alone(ask, bodies)
        await until_handed_on(node, ask, "near")
        assert await _all_asked(ask, bodies) == alone


async def test_lent_connections_are_answered_by_graphs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bodies = [*_bodies(), *_bodies()]
    async with (
        busy_node(tmp_path, monkeypatch, 1, AT_REST) as (node, ask),
        busy_port(node, monkeypatch) as port,
    ):
        await _fill(node)
        exact = await _alone(ask, bodies)
        await port.until_lent(bodies[0], "near")
        assert await _all_asked(port.search, bodies) == exact

        assert _make_graphs(node, monkeypatch, saved=False) == 12
        alone = await _alone(ask, bodies)
        assert alone != exact
        processes_of(node).check()  # which is done every 50 ms
        for body, wanted in zip(bodies, alone, strict=True):
            assert await asyncio.gather(*(port.search(body, "near") for _ in range(4))) == wanted
        await port.until_lent(bodies[0], "near")
        assert await _all_asked(port.search, bodies) == alone

        # a process that is killed is missed by nobody
        await port.until_lent(bodies[1], "near")
        (pid,) = processes_of(node).pids
        answering = asyncio.gather(*(port.search(bodies[1], "near") for _ in range(4)))
        await asyncio.sleep(0)
        os.kill(pid, signal.SIGKILL)
        assert await answering == alone[1]
