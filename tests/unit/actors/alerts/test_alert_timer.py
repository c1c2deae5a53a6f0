"""Alerts at work over memory, with a real receiver: when they fire, and what becomes of telling it."""

import asyncio
import base64
import hashlib
import hmac
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest

from graphdb.alerts.book import AlertBook
from graphdb.alerts.definition import Definition
from graphdb.config import Settings
from graphdb.errors import LogUnavailable, NotFound, Overloaded
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import parse_update
from tests.support.alerts import definition
from tests.support.memory_backend import MemoryBackend
from tests.support.remote_host import RemoteHost, answering, remote_host
from tests.support.scripted_backend import ScriptedBackend

pytestmark = pytest.mark.anyio

SETTINGS = Settings.model_validate(
    {
        "security": {"webhook_allow": ["127.0.0.1"]},
        "alerts": {
            "webhook_timeout_seconds": 0.5,
            "webhook_attempts": 4,
            "webhook_backoff_seconds": 0.01,
        },
    }
)
ROW = "INSERT DATA { <urn:a> <urn:b> 1 }"
NO_ROW = "DELETE DATA { <urn:a> <urn:b> 1 }"


class Node(MemoryBackend):
    """One that may stop to lead."""

    def __init__(self) -> None:
        super().__init__(settings=SETTINGS)
        self.is_leading = True

    def leads(self) -> bool:
        return self.is_leading

    def lead(self, is_leading: bool) -> None:
        self.is_leading = is_leading
        self.alerts.timer.wake()

    def take_over(self, other: MemoryBackend) -> None:
        """What the log has told the other one."""
        self.book = AlertBook.from_bytes(other.book.to_bytes())
        self.book.on_change = self.alerts.timer.wake
        self._index = other.snapshot_index()

    async def write(self, text: str) -> None:
        await self.update(parse_update(text), Dataset())

    async def make(self, receiver: RemoteHost, **members: Any) -> Definition:
        usual: dict[str, Any] = {"webhook": receiver.url, "interval_seconds": 1}
        made = definition(**usual | members)
        await self.alerts.create(made, None)
        return made


@asynccontextmanager
async def at_work(node: MemoryBackend) -> AsyncIterator[None]:
    node.alerts.timer.start()
    try:
        yield
    finally:
        await node.alerts.timer.close()


@pytest.fixture
async def node() -> AsyncIterator[Node]:
    node = Node()
    async with at_work(node):
        yield node


@pytest.fixture
def receiver() -> Iterator[RemoteHost]:
    with remote_host(answering()) as host:
        yield host


async def until(holds: Callable[[], object], timeout_s: float = 20) -> None:
    give_up_at = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < give_up_at, "it has not come true"
        await asyncio.sleep(0.01)


def head_and_body(request: bytes) -> tuple[dict[str, str], dict[str, Any]]:
    head, _, body = request.partition(b"\r\n\r\n")
    lines = (line.partition(": ") for line in head.decode().split("\r\n")[1:])
    return {name.lower(): value for name, _, value in lines}, orjson.loads(body)


async def test_it_fires_at_once_and_at_each_interval(node: Node, receiver: RemoteHost) -> None:
    await node.write(ROW)
    await node.make(receiver, secret="a secret of the receiver")
    await until(lambda: len(node.alerts.history("many")) >= 3)
    headers, body = head_and_body(receiver.requests[0])
    shown = node.alerts.show("many")
    assert body["alert"] == {"id": shown["id"], "name": "many"}
    assert (body["result"], body["condition"], body["snapshot_index"]) == (1, "result > 0", 2)
    assert body["rows"][0]["s"] == {"type": "uri", "value": "urn:a"}
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode()
    signed += receiver.requests[0].partition(b"\r\n\r\n")[2]
    digest = hmac.new(b"a secret of the receiver", signed, hashlib.sha256).digest()
    assert headers["webhook-signature"] == "v1," + base64.b64encode(digest).decode()
    keys = [head_and_body(request)[0]["idempotency-key"] for request in receiver.requests]
    assert len(set(keys)) == len(keys), "one for each firing"
    *_, first = node.alerts.history("many")
    assert (first["id"], first["status"], first["attempts"], first["status_code"]) == (
        keys[0],
        "delivered",
        1,
        200,
    )
    assert shown["status"] == "active"
    assert shown["last_fired_at"] == shown["last_evaluated_at"]


async def test_on_change_it_fires_when_it_begins_to_hold(node: Node, receiver: RemoteHost) -> None:
    await node.write(ROW)
    await node.make(receiver, notify="change")
    await until(lambda: receiver.requests)

    def evaluations() -> str:
        shown: str = node.alerts.show("many")["last_evaluated_at"]
        return shown

    before = evaluations()
    await until(lambda: evaluations() > before)
    assert node.alerts.show("many")["fire_count"] == 1
    await node.write(NO_ROW)
    await until(lambda: node.alerts.show("many")["last_value"] == 0)
    await node.write(ROW)
    await until(lambda: len(receiver.requests) == 2)
    assert node.alerts.show("many")["fire_count"] == 2


async def test_evaluations_that_tell_nothing_leave_no_entries(node: Node, receiver: RemoteHost) -> None:
    await node.make(receiver)
    index = node.snapshot_index()
    await until(lambda: node.alerts.show("many")["last_value"] == 0)
    first = node.alerts.show("many")["last_evaluated_at"]
    await until(lambda: node.alerts.show("many")["last_evaluated_at"] > first)
    assert (node.snapshot_index(), receiver.requests) == (index, [])


async def test_it_is_told_again_under_the_same_key_until_it_is_taken(
    node: Node, receiver: RemoteHost
) -> None:
    answers = iter([answering(status=500), lambda connection: time.sleep(0.6), lambda connection: None])
    receiver.answer = lambda connection: next(answers, answering())(connection)
    await node.write(ROW)
    await node.make(receiver, interval_seconds=600)
    await until(lambda: node.alerts.history("many") and node.alerts.history("many")[0]["status"] != "pending")
    (delivery,) = node.alerts.history("many")
    assert (delivery["status"], delivery["attempts"], delivery["error"]) == ("delivered", 4, None)
    assert len(receiver.requests) == 4
    assert len({head_and_body(request)[0]["webhook-id"] for request in receiver.requests}) == 1
    assert len({request.partition(b"\r\n\r\n")[2] for request in receiver.requests}) == 1


async def test_a_webhook_that_takes_nothing(node: Node, receiver: RemoteHost) -> None:
    receiver.answer = answering(status=503)
    await node.write(ROW)
    await node.make(receiver, interval_seconds=600)
    await until(lambda: node.alerts.show("many")["status"] == "error")
    assert node.alerts.show("many")["last_error"] == "the webhook answers 503"
    (delivery,) = node.alerts.history("many")
    assert (delivery["status"], delivery["attempts"], delivery["status_code"]) == ("failed", 4, 503)
    assert delivery["finished_at"] >= delivery["fired_at"]
    receiver.answer = answering()
    assert (await node.alerts.resume("many", None))["status"] == "active"


async def test_gone_is_an_answer(node: Node, receiver: RemoteHost) -> None:
    receiver.answer = answering(status=410)
    await node.write(ROW)
    await node.make(receiver, interval_seconds=600)
    await until(lambda: node.alerts.show("many")["status"] == "error")
    assert len(receiver.requests) == 1


async def test_redirects_are_looked_at(node: Node, receiver: RemoteHost) -> None:
    with remote_host(answering(), "127.0.0.2") as private:
        receiver.answer = answering(status=307, headers=(f"Location: {private.url}",))
        await node.write(ROW)
        await node.make(receiver, interval_seconds=600)
        await until(lambda: node.alerts.show("many")["status"] == "error")
        assert "redirects there" in node.alerts.show("many")["last_error"]
        assert (len(receiver.requests), private.requests) == (1, [])


async def test_a_name_is_looked_at_each_time_it_is_called(
    node: Node, receiver: RemoteHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was public when the alert was made may be private when it fires."""
    found = ["93.184.216.34"]

    async def getaddrinfo(name: str, *_: object, **__: object) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (found[0], 0))]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", getaddrinfo, raising=False)
    await node.make(receiver, interval_seconds=600, webhook=f"http://hooks.example:{receiver.port}/")
    await until(lambda: node.alerts.show("many")["last_value"] == 0)
    found[0] = "127.0.0.2"
    tried = await node.alerts.test("many")
    assert not tried["delivered"]
    assert "hooks.example has the address 127.0.0.2, which is not public" in tried["error"]
    assert receiver.requests == []


async def test_paused_deleted_and_resumed(node: Node, receiver: RemoteHost) -> None:
    await node.write(ROW)
    await node.make(receiver)
    await until(lambda: receiver.requests)
    assert (await node.alerts.pause("many", None))["status"] == "paused"
    await until(lambda: node.alerts.history("many")[0]["status"] == "delivered")
    count = len(receiver.requests)
    await asyncio.sleep(1.5)
    assert len(receiver.requests) == count
    await node.alerts.resume("many", None)
    await until(lambda: len(receiver.requests) > count)
    await node.alerts.delete("many", None)
    with pytest.raises(NotFound):
        node.alerts.show("many")
    await asyncio.sleep(0.3)
    count = len(receiver.requests)
    await asyncio.sleep(1.5)
    assert len(receiver.requests) == count


async def test_who_leads_next_goes_on(node: Node, receiver: RemoteHost) -> None:
    receiver.answer = answering(status=500)
    await node.write(ROW)
    await node.make(receiver, interval_seconds=600, notify="change")
    await until(lambda: receiver.requests)
    node.lead(False)
    await asyncio.sleep(0.2)
    count = len(receiver.requests)
    assert node.alerts.history("many")[0]["status"] == "pending"
    await asyncio.sleep(0.3)
    assert len(receiver.requests) == count, "a node that does not lead tells nothing"
    heir = Node()
    heir.take_over(node)
    receiver.answer = answering()
    async with at_work(heir):
        await until(lambda: heir.alerts.history("many")[0]["status"] == "delivered")
    (key,) = {head_and_body(request)[0]["idempotency-key"] for request in receiver.requests}
    assert heir.alerts.history("many")[0]["id"] == key
    assert heir.alerts.show("many")["fire_count"] == 1


async def test_a_query_that_fails_makes_an_error_that_goes_by_itself(receiver: RemoteHost) -> None:
    node = ScriptedBackend()
    node.alerts = type(node.alerts)(node, node, node, SETTINGS)
    node.book.on_change = node.alerts.timer.wake
    node.answer_with(Overloaded("too much is waiting"))
    async with at_work(node):
        await node.alerts.create(definition(webhook=receiver.url, interval_seconds=1), None)
        await until(lambda: node.alerts.show("many")["status"] == "error")
        assert node.alerts.show("many")["last_error"] == "too much is waiting"
        node.start = None
        await until(lambda: node.alerts.show("many")["status"] == "active")
        assert node.alerts.show("many")["last_error"] is None


async def test_a_log_that_is_away_is_waited_for(receiver: RemoteHost) -> None:
    """What cannot be logged is not told; the outcome of what was told is logged in the end."""

    class Silent(Node):
        is_silent = True

        async def change_alerts(self, *arguments: Any) -> Any:
            if self.is_silent:
                raise LogUnavailable("the log is away")
            return await super().change_alerts(*arguments)

    node = Silent()
    node.is_silent = False
    async with at_work(node):
        await node.write(ROW)
        receiver.answer = lambda connection: setattr(node, "is_silent", True)
        await node.make(receiver)
        await until(lambda: len(receiver.requests) == 4)
        await asyncio.sleep(0.2)
        assert node.alerts.history("many")[0]["status"] == "pending"
        node.is_silent = False
        receiver.answer = answering()
        await until(lambda: node.alerts.history("many")[-1]["status"] == "failed")
        await until(lambda: node.alerts.history("many")[0]["status"] == "delivered")
