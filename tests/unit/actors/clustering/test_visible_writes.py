"""Writing at any node by whoever does not see everything: the leader plans by the visibility that came with
it."""

import asyncio
from pathlib import Path

import pytest
from pyoxigraph import NamedNode

from graphdb.access.visibility import FULL_VISIBILITY, Visibility
from graphdb.errors import Forbidden
from graphdb.model import Confirmation
from graphdb.node import Consistency
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import parse_update
from tests.support.clustered_shards import nodes
from tests.support.shards import Shard
from tests.support.timing import HANG_S

pytestmark = pytest.mark.anyio

OPEN, SECRET = NamedNode("urn:open"), NamedNode("urn:secret")
SOME = Visibility(patterns=frozenset({"urn:open"}))
ONE = Visibility(patterns=frozenset({"urn:open"}), sids=frozenset({"S-1"}))
DATA = """INSERT DATA {
    GRAPH <urn:secret> { <urn:s> <urn:p> 1 }
    GRAPH <urn:open> { <urn:s> <urn:p> 1 , 2 .
        << <urn:s> <urn:p> 2 >> <urn:graphdb:acl#allowedSid> "S-1" } }"""


async def update(node: Shard, text: str, visibility: Visibility) -> Confirmation:
    return await asyncio.wait_for(node.writes(visibility).update(parse_update(text), Dataset()), HANG_S)


async def test_at_every_node_a_write_is_one_of_its_own_visibility(tmp_path: Path) -> None:
    async with nodes(tmp_path, 1, 2, 3) as cluster:
        await cluster.start(1, 2, 3)
        await update(cluster.shards[1], DATA, FULL_VISIBILITY)
        hidden = "INSERT DATA { GRAPH <urn:open> { <urn:s> <urn:p> 2 } }"
        secret = "INSERT DATA { GRAPH <urn:secret> { <urn:s> <urn:p> 3 } }"
        for node in cluster.shards.values():
            writes = (update(node, hidden, visibility) for visibility in (SOME, ONE, FULL_VISIBILITY))
            counted = await asyncio.gather(*writes)
            assert [one.affected_triples for one in counted] == [1, 0, 0]
            for text in (secret, secret.replace(" DATA", "", 1) + " WHERE { }"):
                with pytest.raises(Forbidden, match="urn:secret"):
                    await update(node, text, SOME)
            with pytest.raises(Forbidden):
                await node.writes(SOME).delete_graph(SECRET)
            await node.reach(Consistency.LINEARIZABLE, 5)
            assert len(list(node.graph_quads(SECRET))) == 1
        gone = "DELETE { GRAPH ?g { ?s ?p ?o } } WHERE { GRAPH ?g { ?s ?p ?o } }"
        assert (await update(cluster.shards[2], gone, SOME)).affected_triples == 1
        assert (await update(cluster.shards[3], gone, ONE)).affected_triples == 1
        await cluster.shards[1].reach(Consistency.LINEARIZABLE, 5)
        assert len(list(cluster.shards[1].graph_quads(OPEN))) == 2, "what annotates"
        assert len(list(cluster.shards[1].graph_quads(SECRET))) == 1
