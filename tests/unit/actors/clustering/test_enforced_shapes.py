"""Enforced shapes in a cluster: whichever node is asked, the one that leads refuses, with the report."""

from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from pyoxigraph import NamedNode

from actors.readers.write_evaluation import WriteChecks
from graphdb.access.visibility import FULL_VISIBILITY
from graphdb.config.service import Shacl
from graphdb.errors import ShapesViolated
from graphdb.node import Consistency
from graphdb.rdf.formats import RdfSyntax
from graphdb.shacl.change_check import check_report
from graphdb.shacl.shapes import read_shapes
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import parse_update
from graphdb.store.quad_store import QuadStore
from graphdb.store.view import Term
from tests.support.clustered_shards import Nodes, nodes
from tests.support.shards import Shard

pytestmark = pytest.mark.anyio

SHAPES_GRAPH = NamedNode("urn:shapes")
SHAPES = (
    b"PREFIX sh: <http://www.w3.org/ns/shacl#> "
    b"<urn:S> sh:targetSubjectsOf <urn:p> ; sh:property <urn:P> . <urn:P> sh:path <urn:p> ; sh:maxCount 1 ."
)


async def put_shapes(node: Shard) -> None:
    async def body() -> AsyncIterator[bytes]:
        yield SHAPES

    await node.writes(FULL_VISIBILITY).write_graph(
        body(), RdfSyntax.TURTLE, graph=SHAPES_GRAPH, whole_dataset=False, replace=True, base_iri=None
    )


async def insert(node: Shard, subject: str, value: int) -> None:
    await node.writes(FULL_VISIBILITY).update(
        parse_update(f"INSERT DATA {{ <urn:{subject}> <urn:p> {value} }}"), Dataset()
    )


def validate_here(
    _self: WriteChecks, shapes_graph: NamedNode, _data: str, store: QuadStore, focus: Iterable[Term] | None
) -> dict[str, Any]:
    """In place of a reader, of which these nodes have none."""
    shapes = read_shapes(quad.triple for quad in store.graph_quads(shapes_graph))
    return check_report(store._store, None, shapes, focus, monotonic)


async def refused_everywhere(cluster: Nodes, subject: str) -> None:
    for node in cluster.shards.values():
        with pytest.raises(ShapesViolated) as raised:
            await insert(node, subject, 2)
        report = raised.value.report
        assert report is not None
        assert [result["focusNode"] for result in report["results"]] == [f"urn:{subject}"]


async def test_every_node_answers_with_the_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WriteChecks, "validate", validate_here)
    async with nodes(tmp_path, 1, 2, 3) as cluster:
        settings = cluster.logs.settings
        enforced = {"shacl": Shacl(enforce_graph=SHAPES_GRAPH.value)}
        monkeypatch.setattr(cluster.logs, "settings", lambda each: settings(each).model_copy(update=enforced))
        await cluster.start(1, 2, 3)
        await insert(cluster.shards[1], "s", 1)
        await put_shapes(cluster.shards[2])
        await refused_everywhere(cluster, "s")
        await cluster.shards[await cluster.logs.leader()].hand_over_lead()
        await insert(cluster.shards[3], "t", 1)
        await refused_everywhere(cluster, "t")
        for node in cluster.shards.values():
            await node.reach(Consistency.LINEARIZABLE, 5)
            assert len([*node.graph_quads(None)]) == 2
