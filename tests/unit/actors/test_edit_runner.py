"""Edits in a shard over a real log and real readers: what only a reader can validate."""

from pathlib import Path

import pytest
from pyoxigraph import Literal, NamedNode

from graphdb.access.visibility import FULL_VISIBILITY
from graphdb.errors import EditRefused
from graphdb.graphql.edits import EditKind, Edits, ResourceEdit
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import parse_update
from tests.support.shards import open_shard

pytestmark = pytest.mark.anyio

SHAPES = """
PREFIX sh: <http://www.w3.org/ns/shacl#> PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
INSERT DATA { GRAPH <urn:model> {
    <urn:Poet> rdfs:subClassOf <urn:Person> .
    <urn:Shape> sh:targetClass <urn:Person> ; sh:sparql [ sh:message "nobody is called Jonah" ;
        sh:select "SELECT $this { $this <urn:name> 'Jonah' }" ] } }
"""


def named(name: str) -> Edits:
    values = {NamedNode("urn:name"): (Literal(name),)}
    subject, graph = NamedNode(f"urn:{name}"), NamedNode("urn:graph")
    return Edits((ResourceEdit(EditKind.CREATE, subject, graph, (NamedNode("urn:Poet"),), values),))


async def test_shapes_with_sparql_hold_in_a_graph_whose_ontology_is_elsewhere(tmp_path: Path) -> None:
    async with open_shard(tmp_path) as shard:
        await shard.writes(FULL_VISIBILITY).update(parse_update(SHAPES), Dataset())
        assert (await shard.writes(FULL_VISIBILITY).edit(named("Ann"))).affected_triples == 2
        with pytest.raises(EditRefused, match="nobody is called Jonah"):
            await shard.writes(FULL_VISIBILITY).edit(named("Jonah"))
        assert len(list(shard.graph_quads(NamedNode("urn:graph")))) == 2
