"""Edits that want a resource unchanged since a snapshot, by whoever sees a part of what changed."""

from dataclasses import replace
from pathlib import Path

import pytest
from pyoxigraph import Literal, NamedNode

from graphdb.access.visibility import FULL_VISIBILITY, Visibility
from graphdb.errors import EditRefused
from graphdb.graphql.edits import EditKind, Edits, ResourceEdit
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import parse_update
from tests.support.shards import Shard, stand_alone

pytestmark = pytest.mark.anyio

EVERY_GRAPH = Visibility(default_graph=True, patterns=frozenset({"*"}))
ONE = replace(EVERY_GRAPH, sids=frozenset({"S-1"}))
VISIBILITIES = {"all": EVERY_GRAPH, "one": ONE, "admin": FULL_VISIBILITY}
PREFIX = "PREFIX : <urn:x:> PREFIX acl: <urn:graphdb:acl#> "
PROTECT = "INSERT DATA { << :a :pay 1 >> acl:allowedSid 'S-1' }"
UNPROTECT = "DELETE { ?r acl:allowedSid ?s } WHERE { ?r acl:allowedSid ?s }"


async def write(shard: Shard, text: str) -> int:
    return (await shard.writes(FULL_VISIBILITY).update(parse_update(PREFIX + text), Dataset())).snapshot_index


async def is_unchanged(shard: Shard, visibility: Visibility, since: int) -> bool:
    """Whether an edit is let through that wants :a unchanged since."""
    edit = ResourceEdit(
        EditKind.UPDATE,
        NamedNode("urn:x:a"),
        None,
        (NamedNode("urn:x:Person"),),
        {NamedNode("urn:x:edited"): (Literal("yes"),)},
        since,
    )
    try:
        await shard.writes(visibility).edit(Edits((edit,)))
    except EditRefused:
        return False
    return True


@pytest.mark.parametrize(
    ("past", "seen_by"),
    [
        (["INSERT DATA { :b :pay 1 }"], set()),
        (["INSERT DATA { :a :pay 2 }"], {"all", "one", "admin"}),
        ([PROTECT, "INSERT DATA { :a :pay 1 }"], {"one", "admin"}),
        ([PROTECT, "INSERT DATA { :a :pay 1 }", "DELETE DATA { :a :pay 1 }", UNPROTECT], {"one", "admin"}),
        (["INSERT DATA { :a :pay 1 }", PROTECT], {"all", "one", "admin"}),
        (["INSERT DATA { :a :pay 1 }", "DELETE DATA { :a :pay 1 }", PROTECT], {"all", "one", "admin"}),
    ],
)
@pytest.mark.parametrize("who", VISIBILITIES)
async def test_a_change_counts_for_those_who_saw_it_then(
    tmp_path: Path, who: str, past: list[str], seen_by: set[str]
) -> None:
    async with stand_alone(tmp_path) as shard:
        since = await write(shard, "INSERT DATA { :a a :Person }")
        for text in past:
            await write(shard, text)
        assert await is_unchanged(shard, VISIBILITIES[who], since) == (who not in seen_by)


async def test_what_becomes_visible_or_hidden_is_a_change(tmp_path: Path) -> None:
    async with stand_alone(tmp_path) as shard:
        since = await write(shard, "INSERT DATA { :a a :Person ; :pay 1 }")
        await write(shard, PROTECT)
        assert not await is_unchanged(shard, EVERY_GRAPH, since)
        assert await is_unchanged(shard, ONE, since)
        since = shard.snapshot_index()
        await write(shard, UNPROTECT)
        assert not await is_unchanged(shard, EVERY_GRAPH, since)
