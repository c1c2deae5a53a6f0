"""`/revert` of real nodes: what it refuses, what it leaves alone, and whoever asks which node."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from pyoxigraph import NamedNode

from actors.node.past_changes import PastChanges
from actors.readers.write_evaluation import WriteChecks
from graphdb.access.visibility import FULL_VISIBILITY
from graphdb.config import Settings
from graphdb.config.access import Acl
from graphdb.history.pages import Difference
from graphdb.model import Author, Interface, NamedGraph
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import parse_update
from serve.graph_app import build_app
from tests.support.clustered_shards import nodes
from tests.support.shards import Shard, stand_alone
from tests.support.timing import HANG_S
from tests.unit.actors.clustering.test_enforced_shapes import SHAPES_GRAPH, put_shapes, validate_here
from tests.unit.serve.access.accounts import key, settings_of

pytestmark = pytest.mark.anyio

SOME = {
    "contexts": {"some": {"visible_graphs": ["urn:open*"], "visible_default_graph": False}},
    "role_contexts": {"writer": "some"},
}


@asynccontextmanager
async def client_of(shard: Shard, settings: Settings) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(build_app(shard, settings))
    async with httpx.AsyncClient(transport=transport, base_url="http://node", timeout=HANG_S) as client:
        yield client


@pytest.fixture
async def shard(tmp_path: Path) -> AsyncIterator[Shard]:
    async with stand_alone(tmp_path) as opened:
        yield opened


@pytest.fixture
async def client(shard: Shard, tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(shard, Settings(server={"data_dir": tmp_path})) as opened:
        yield opened


async def write(shard: Shard, text: str) -> int:
    done = await shard.writes(FULL_VISIBILITY).update(parse_update(text), Dataset())
    return done.snapshot_index


def stored(shard: Shard) -> set[str]:
    return {str(quad) for quad in shard.node.queries.whole.dataset_quads()}


def graphs(shard: Shard) -> set[NamedGraph]:
    return set(shard.opened().quads.named_graphs())


async def revert(client: httpx.AsyncClient, query: str, **headers: str) -> httpx.Response:
    return await client.post(f"/revert?{query}", headers=headers)


async def test_back_and_forth(shard: Shard, client: httpx.AsyncClient) -> None:
    first = await write(
        shard, "INSERT DATA { <urn:s> <urn:p> 1 . GRAPH <urn:g> { <urn:s> <urn:p> <urn:o> } }"
    )
    then = stored(shard)
    second = await write(
        shard, "DELETE DATA { <urn:s> <urn:p> 1 } ; DROP GRAPH <urn:g> ; CREATE GRAPH <urn:h>"
    )
    later = stored(shard)
    answer = await revert(client, f"to={first}")
    assert answer.json() == {
        "success": True,
        "message": "update applied",
        "snapshot_index": second + 1,
        "affected_triples": 2,
    }
    assert stored(shard) == then
    assert graphs(shard) == {NamedNode("urn:g")}
    # the same again changes nothing, and is not an entry of the history
    again = await revert(client, f"to={first}")
    assert (again.status_code, again.json()["affected_triples"]) == (200, 0)
    assert stored(shard) == then
    # and a revert can be reverted
    assert (await revert(client, f"to={second}")).status_code == 200
    assert stored(shard) == later
    assert graphs(shard) == {NamedNode("urn:h")}
    told = (await client.get("/history")).json()["entries"]
    assert [entry["interface"] for entry in told] == ["revert", "revert", None, None]


def meanwhile(monkeypatch: pytest.MonkeyPatch, shard: Shard, text: str) -> None:
    """Have a change come after the node has looked at what is to be undone, before it is."""
    find: Callable[..., Any] = PastChanges.difference

    async def difference(self: PastChanges, *asked: Any) -> Difference:
        found: Difference = await find(self, *asked)
        await write(shard, text)
        return found

    monkeypatch.setattr(PastChanges, "difference", difference)


@pytest.mark.parametrize(
    ("asked", "text", "status"),
    [
        ("", "INSERT DATA { <urn:x> <urn:y> <urn:z> }", 409),
        ("", "CREATE GRAPH <urn:new>", 409),
        ("&resource=urn:s", "INSERT DATA { <urn:s> <urn:q> 2 }", 409),
        ("&resource=urn:s", "INSERT DATA { <urn:x> <urn:s> 2 }", 409),
        ("&resource=urn:s", "INSERT DATA { <urn:x> <urn:q> <urn:s> }", 409),
        ("&resource=urn:s", "INSERT DATA { GRAPH <urn:s> { <urn:x> <urn:q> 1 } }", 409),
        ("&resource=urn:s", "INSERT DATA { <urn:r> <urn:q> <<( <urn:x> <urn:q> <urn:s> )>> }", 409),
        ("&resource=urn:s", "INSERT DATA { <urn:x> <urn:q> <urn:z> }", 200),
        ("&subject=urn:s&predicate=urn:p", "INSERT DATA { <urn:s> <urn:p> 2 }", 409),
        ("&subject=urn:s&predicate=urn:p", "INSERT DATA { <urn:s> <urn:q> 2 }", 200),
        ("&default", "INSERT DATA { GRAPH <urn:g> { <urn:s> <urn:p> 2 } }", 200),
        ("&default", "INSERT DATA { <urn:x> <urn:y> <urn:z> }", 409),
    ],
)
async def test_a_change_that_comes_meanwhile_is_a_conflict(
    shard: Shard,
    client: httpx.AsyncClient,
    monkeypatch: pytest.MonkeyPatch,
    asked: str,
    text: str,
    status: int,
) -> None:
    start = shard.snapshot_index()
    index = await write(shard, "INSERT DATA { <urn:s> <urn:p> 1 }")
    meanwhile(monkeypatch, shard, text)
    answer = await revert(client, f"to={start}{asked}")
    assert answer.status_code == status, answer.text
    assert shard.snapshot_index() == index + (2 if status == 200 else 1)
    assert any('<urn:s> <urn:p> "1"' in quad for quad in stored(shard)) == (status == 409)


async def test_enforced_shapes_refuse_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A state that was there before the shapes, and does not conform to them."""
    monkeypatch.setattr(WriteChecks, "validate", validate_here)
    enforced = {"enforce_graph": SHAPES_GRAPH.value}
    async with (
        stand_alone(tmp_path, shacl=enforced) as shard,
        client_of(shard, shard.node.parts.settings) as client,
    ):
        index = await write(shard, "INSERT DATA { <urn:s> <urn:p> 1, 2 . <urn:other> <urn:q> 1 }")
        await write(shard, "DELETE DATA { <urn:s> <urn:p> 2 . <urn:other> <urn:q> 1 }")
        await put_shapes(shard)
        before, at = stored(shard), shard.snapshot_index()
        answer = await revert(client, f"to={index}&default")
        assert answer.status_code == 409, answer.text
        assert [result["focusNode"] for result in answer.json()["report"]["results"]] == ["urn:s"]
        assert (stored(shard), shard.snapshot_index()) == (before, at)
        assert (await revert(client, f"to={index}&resource=urn:other")).status_code == 200
        assert len(stored(shard)) == len(before) + 1


async def test_a_writer_changes_only_what_it_sees(shard: Shard, tmp_path: Path) -> None:
    settings = settings_of(tmp_path).model_copy(update={"acl": Acl.model_validate(SOME)})
    start = await write(shard, "INSERT DATA { GRAPH <urn:secret> { <urn:s> <urn:p> 0 } }")
    await write(
        shard,
        "INSERT DATA { <urn:s> <urn:p> 1 GRAPH <urn:secret> { <urn:s> <urn:p> 1 } "
        "GRAPH <urn:open> { <urn:s> <urn:p> 1, 2 . "
        "<< <urn:s> <urn:p> 2 >> <urn:graphdb:acl#allowedSid> 'S-1' } }",
    )
    hidden = stored(shard)
    async with client_of(shard, settings) as client:
        assert (await revert(client, f"to={start}", **key("reader"))).status_code == 403
        assert (await revert(client, f"to={start}&graph=urn:secret", **key("writer"))).json()[
            "affected_triples"
        ] == 0
        assert stored(shard) == hidden
        answer = await revert(client, f"to={start}", **key("writer"))
        assert (answer.status_code, answer.json()["affected_triples"]) == (200, 1), answer.text
        [gone] = hidden - stored(shard)
        assert '"1"' in gone
        assert gone.endswith("<urn:open>")
        assert not stored(shard) - hidden
        entry = (await client.get("/history?limit=1", headers=key("admin"))).json()["entries"][0]
        assert (entry["author"], entry["interface"]) == ("api_key:writer", "revert")


async def test_every_node_of_a_cluster_takes_it(tmp_path: Path) -> None:
    async with nodes(tmp_path, 1, 2) as cluster, AsyncExitStack() as stack:
        await cluster.start(1, 2)
        leading = await cluster.logs.leader()
        for number, shard in cluster.shards.items():
            client = await stack.enter_async_context(client_of(shard, cluster.logs.settings(number)))
            first = await write(shard, f"INSERT DATA {{ <urn:s{number}> <urn:p> 1 }}")
            await write(shard, f"DELETE DATA {{ <urn:s{number}> <urn:p> 1 }}")
            answer = await revert(client, f"to={first}&resource=urn:s{number}")
            assert answer.status_code == 200, (number, leading, answer.text)
            index = answer.json()["snapshot_index"]
            for other in cluster.shards.values():
                await other.node.progress.wait_for_index(index, HANG_S)
                assert any(f"<urn:s{number}>" in quad for quad in stored(other))
                entry = await other.node.parts.log.read(index)
                assert entry[0].author == Author("", Interface.REVERT)
