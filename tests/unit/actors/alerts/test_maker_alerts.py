"""Alerts of those who do not see everything: what they see, and who sees them; with real readers."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from graphdb.access.permissions import Permission
from graphdb.access.principal import EVERYONE, Principal
from graphdb.access.visibility import FULL_VISIBILITY, Visibility
from graphdb.alerts.book import AlertBook
from graphdb.alerts.commands import Create, decode_command, encode_command
from graphdb.alerts.definition import Definition
from graphdb.errors import AlreadyExists, NotFound
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import parse_update
from tests.support.remote_host import RemoteHost, answering, remote_host
from tests.support.shards import open_shard
from tests.support.timing import HANG_S

pytestmark = pytest.mark.anyio

EVERY_GRAPH = Visibility(default_graph=True, patterns=frozenset({"*"}))
ADA = Principal("ada", "jwt", permission=Permission.WRITE, visibility=EVERY_GRAPH)
BOB = Principal("bob", "jwt", permission=Permission.WRITE, visibility=Visibility(default_graph=True))
WRITES = (
    "INSERT DATA { <urn:a> <urn:n> 1 . <urn:b> <urn:n> 2 . GRAPH <urn:g> { <urn:c> <urn:n> 3 } "
    "<urn:r> <http://www.w3.org/1999/02/22-rdf-syntax-ns#reifies> <<( <urn:b> <urn:n> 2 )>> ; "
    '<urn:graphdb:acl#allowedSid> "S-1" }'
)
QUERY = "SELECT * { { ?s <urn:n> ?n } UNION { GRAPH ?g { ?s <urn:n> ?n } } }"


@pytest.fixture
def receiver() -> Iterator[RemoteHost]:
    with remote_host(answering()) as host:
        yield host


def made(name: str, receiver: RemoteHost) -> Definition:
    return Definition(name, QUERY, "result > 0", 3600, receiver.url)


async def test_an_alert_sees_what_its_maker_sees(tmp_path: Path, receiver: RemoteHost) -> None:
    security = {"webhook_allow": ["127.0.0.1"]}
    async with open_shard(tmp_path, security=security) as shard:
        await shard.writes(FULL_VISIBILITY).update(parse_update(WRITES), Dataset())
        for principal in (ADA, BOB, EVERYONE):
            await shard.alerts.of(principal).create(made(principal.name, receiver), None)
        values = {"ada": 2, "bob": 1, "everyone": 3}
        async with asyncio.timeout(HANG_S):
            while len(receiver.requests) < 3:  # noqa: ASYNC110 a receiver on threads of its own
                await asyncio.sleep(0.05)
        told = [orjson.loads(one.partition(b"\r\n\r\n")[2]) for one in receiver.requests]
        assert {one["alert"]["name"]: one["result"] for one in told} == values
        assert "urn:b" not in str([one for one in told if one["alert"]["name"] != "everyone"])
        assert (await shard.alerts.of(ADA).test("ada"))["result"] == 2

        own, others = shard.alerts.of(ADA), shard.alerts.of(BOB)
        assert [one["name"] for one in own.show_all()] == ["ada"]
        assert [one["name"] for one in shard.alerts.of(EVERYONE).show_all()] == ["ada", "bob", "everyone"]
        bobs = others.show("bob")["id"]
        for name in ("bob", bobs, "everyone", "nobody"):
            for ask in (own.show, own.history):
                with pytest.raises(NotFound):
                    ask(name)
            with pytest.raises(NotFound):
                await own.delete(name, None)
            for change in (own.pause, own.resume):
                with pytest.raises(NotFound):
                    await change(name, None)
            with pytest.raises(NotFound):
                await own.test(name)
        assert others.history("bob")[0]["result"] == 1
        with pytest.raises(AlreadyExists):
            await own.create(made("bob", receiver), None)
        key = b"k" * 16
        await others.create(made("again", receiver), key)
        with pytest.raises(AlreadyExists):  # another's request, in the same words
            await own.create(made("again", receiver), key)
        assert (await own.pause("ada", None))["status"] == "paused"
        await own.delete("ada", None)
        await shard.alerts.of(EVERYONE).delete("bob", None)
        assert own.show_all() == []
        assert [one["name"] for one in others.show_all()] == ["again"]


def test_what_was_made_before_sees_everything() -> None:
    command = Create("1", Definition("old", QUERY, "result > 0", 60, "http://x"), 1)
    members = orjson.loads(encode_command(command))
    del members["definition"]["maker"], members["definition"]["sight"]
    assert decode_command(orjson.dumps(members)) == command
    kept = Create("2", Definition("new", QUERY, "result > 0", 60, "http://x", maker="a:b", sight="s"), 1)
    book = AlertBook()
    book.apply(1, encode_command(kept))
    again = AlertBook.from_bytes(book.to_bytes()).find("new").definition
    assert (again.maker, again.sight) == ("a:b", "s")
