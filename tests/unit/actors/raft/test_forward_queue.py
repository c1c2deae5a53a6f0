"""Requests that wait for the port: who takes them, and what becomes of those who asked."""

import asyncio
from concurrent.futures import Future

import pytest

from actors.raft import forwarding
from actors.raft.forwarding import ForwardQueue
from actors.raft.incoming_links import Forwarded
from actors.raft.log_requests import ForwardedRequest
from actors.wire.messages import encode_error
from graphdb.errors import LogUnavailable, NotLeader, OutcomeUnknown, UnknownGraph
from tests.support.timing import HANG_S

pytestmark = pytest.mark.anyio

PORT, NEXT_PORT = 111, 222


async def ask(queue: ForwardQueue, name: str, body: bytes = b"") -> "asyncio.Task[bytes]":
    """Forward a request with this id."""
    asking = asyncio.create_task(queue.serve(Forwarded(2, "update", name, body)))
    await asyncio.sleep(0)
    return asking


def taken(taking: "Future[list[ForwardedRequest]]") -> list[str]:
    return [request.request_id for request in taking.result(0)]


async def test_what_waits_is_taken_in_order_and_answered_by_its_number() -> None:
    queue = ForwardQueue()
    asking = [await ask(queue, name, name.encode()) for name in "abc"]
    requests = queue.take(PORT).result(0)
    assert requests == [
        ForwardedRequest(1, "update", "a", b"a"),
        ForwardedRequest(2, "update", "b", b"b"),
        ForwardedRequest(3, "update", "c", b"c"),
    ]
    queue.finish(3, True, b"three")
    queue.finish(1, False, encode_error(UnknownGraph("urn:g")))
    queue.finish(2, True, b"")
    with pytest.raises(UnknownGraph, match="urn:g"):
        await asking[0]
    assert [await asking[1], await asking[2]] == [b"", b"three"]


async def test_a_port_that_waits_is_told_at_once() -> None:
    queue = ForwardQueue()
    taking = queue.take(PORT)
    assert not taking.done()
    asking = await ask(queue, "a")
    assert taken(taking) == ["a"]
    queue.finish(1, True, b"done")
    assert await asking == b"done"


async def test_a_request_is_taken_once() -> None:
    queue = ForwardQueue()
    asking = await ask(queue, "a")
    assert taken(queue.take(PORT)) == ["a"]
    again = queue.take(PORT)
    assert not again.done()
    assert not asking.done()
    late = await ask(queue, "b")
    assert taken(again) == ["b"]
    for task in (asking, late):
        task.cancel()


async def test_so_many_in_one_answer() -> None:
    queue = ForwardQueue()
    asking = [await ask(queue, str(number)) for number in range(70)]
    assert [len(taken(queue.take(PORT))) for _ in range(2)] == [64, 6]
    for number in range(1, 71):
        queue.finish(number, True, b"%d" % number)
    assert await asyncio.gather(*asking) == [b"%d" % number for number in range(1, 71)]


async def test_so_many_bytes_in_one_answer() -> None:
    queue = ForwardQueue()
    asking = [await ask(queue, name, bytes(9 << 20)) for name in "abc"]
    assert [taken(queue.take(PORT)) for _ in range(2)] == [["a", "b"], ["c"]]
    for task in asking:
        task.cancel()


async def test_another_port_means_that_the_former_has_died() -> None:
    """What that one had taken is lost, what it had answered is not, and what waited is the next one's."""
    queue = ForwardQueue()
    answered, lost = await ask(queue, "answered"), await ask(queue, "lost")
    assert taken(queue.take(PORT)) == ["answered", "lost"]
    queue.finish(1, True, b"in time")
    waiting = await ask(queue, "waiting")
    assert taken(queue.take(NEXT_PORT)) == ["waiting"]
    with pytest.raises(OutcomeUnknown, match="restarted"):
        await lost
    assert await answered == b"in time"
    queue.finish(2, True, b"too late")  # nobody is there to be told
    queue.finish(3, True, b"done")
    assert await waiting == b"done"


async def test_the_same_port_asking_again_has_lost_nothing() -> None:
    queue = ForwardQueue()
    asking = await ask(queue, "a")
    queue.take(PORT)
    queue.take(PORT)
    await asyncio.sleep(0)
    assert not asking.done()
    queue.finish(1, True, b"done")
    assert await asking == b"done"


async def test_a_port_that_hangs_up_while_it_waits_takes_nothing() -> None:
    queue = ForwardQueue()
    queue.take(PORT).cancel()
    asking = await ask(queue, "a")
    assert taken(queue.take(NEXT_PORT)) == ["a"]
    queue.finish(1, True, b"done")
    assert await asking == b"done"


async def test_who_leaves_takes_along_what_nobody_has_taken_yet() -> None:
    queue = ForwardQueue()
    leaving, staying = await ask(queue, "leaving"), await ask(queue, "staying")
    leaving.cancel()
    await asyncio.wait([leaving])
    assert taken(queue.take(PORT)) == ["staying"]
    staying.cancel()
    await asyncio.wait([staying])
    queue.finish(2, True, b"nobody waits")
    queue.take(NEXT_PORT)  # and nothing is left of it to be lost


async def test_numbers_that_nobody_was_given_are_passed_over() -> None:
    queue = ForwardQueue()
    queue.finish(7, True, b"")


async def test_an_answer_that_comes_twice_counts_once() -> None:
    queue = ForwardQueue()
    asking = await ask(queue, "a")
    queue.take(PORT)
    queue.finish(1, True, b"first")
    queue.finish(1, True, b"second")
    assert await asking == b"first"


async def test_a_port_that_leaves_is_let_go_and_what_comes_then_is_refused() -> None:
    queue = ForwardQueue()
    taken_before = await ask(queue, "taken")
    queue.take(PORT)
    taking = queue.take(PORT)
    queue.leave(PORT)
    assert taken(taking) == taken(queue.take(PORT)) == []
    with pytest.raises(NotLeader, match="stopping"):
        await (await ask(queue, "late"))
    queue.finish(1, True, b"done")
    assert await taken_before == b"done"
    taking = queue.take(NEXT_PORT)
    asking = await ask(queue, "for the next")
    assert taken(taking) == ["for the next"]
    queue.leave(PORT)  # long gone
    queue.finish(2, True, b"done")
    assert await asking == b"done"


async def test_what_waits_is_refused_when_the_port_leaves() -> None:
    queue = ForwardQueue()
    waiting = await ask(queue, "a")
    queue.leave(PORT)
    with pytest.raises(NotLeader, match="stopping"):
        await waiting


async def test_a_port_that_takes_nothing_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forwarding, "_PATIENCE_S", 0.05)
    queue = ForwardQueue()
    in_work = await ask(queue, "in work")
    queue.take(PORT)
    waiting = await ask(queue, "waiting")
    with pytest.raises(LogUnavailable):
        await asyncio.wait_for(waiting, HANG_S)
    assert not in_work.done()  # which may take as long as it takes
    again = queue.take(PORT)
    assert not again.done()
    queue.finish(1, True, b"done")
    assert await in_work == b"done"
