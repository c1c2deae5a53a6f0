"""Quick writes that share their way to the leader: who shares, and what each one is told."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import Any

import pytest

from actors.clustering.forwarded_writes import BATCH, ForwardBatches, encode_outcomes
from actors.raft.log_requests import ForwardedRequest, decode_requests
from actors.wire.messages import encode_error
from graphdb.errors import CorruptionError, LogUnavailable, NotLeader, OutcomeUnknown, UnknownGraph
from tests.support.scripted_log import Forwarding, ScriptedLog, scripted_log
from tests.support.timing import HANG_S

pytestmark = pytest.mark.anyio


@pytest.fixture
async def log(tmp_path: Path) -> AsyncIterator[ScriptedLog]:
    async with scripted_log(tmp_path) as log:
        yield log


@pytest.fixture
async def batches(log: ScriptedLog) -> AsyncIterator[ForwardBatches]:
    client = log.client()
    yield ForwardBatches(client, 2, 7.5)
    await client.close()


def request(name: str, body: bytes = b"") -> ForwardedRequest:
    return ForwardedRequest(0, "update", name, body)


def begin(batches: ForwardBatches, *names: str) -> list["asyncio.Task[bytes]"]:
    return [asyncio.create_task(batches.forward(request(name))) for name in names]


async def outcomes(tasks: list["asyncio.Task[bytes]"]) -> list[bytes | BaseException]:
    waiting: Awaitable[list[Any]] = asyncio.gather(*tasks, return_exceptions=True)
    return await asyncio.wait_for(waiting, HANG_S)


async def call(log: ScriptedLog) -> Forwarding:
    return await asyncio.wait_for(log.forwardings.get(), HANG_S)


def names(forwarding: Forwarding) -> list[str]:
    return [each.request_id for each in decode_requests(forwarding.request.body)]


def answer_all(forwarding: Forwarding) -> None:
    """Each gets its own name back."""
    forwarding.succeed(encode_outcomes((True, name.encode()) for name in names(forwarding)))


async def test_what_is_asked_together_goes_in_one_call(log: ScriptedLog, batches: ForwardBatches) -> None:
    tasks = begin(batches, *"abcde")
    only = await call(log)
    assert (only.node_id, only.timeout_s) == (2, 7.5)
    assert (only.request.operation, only.request.request_id) == (BATCH, "")
    requests = decode_requests(only.request.body)
    assert [(each.number, each.operation) for each in requests] == [(n, "update") for n in range(5)]
    assert names(only) == [*"abcde"]
    answer_all(only)
    assert await outcomes(tasks) == [b"a", b"b", b"c", b"d", b"e"]
    await asyncio.sleep(0.02)
    assert log.forwardings.empty()


async def test_one_call_is_under_way_and_what_comes_meanwhile_shares_the_next(
    log: ScriptedLog, batches: ForwardBatches
) -> None:
    tasks = begin(batches, "a")
    first = await call(log)
    tasks += begin(batches, "b", "c")
    await asyncio.sleep(0.02)
    tasks += begin(batches, "d")
    await asyncio.sleep(0.02)
    assert log.forwardings.empty()
    answer_all(first)
    second = await call(log)
    assert [names(each) for each in (first, second)] == [["a"], ["b", "c", "d"]]
    answer_all(second)
    assert await outcomes(tasks) == [b"a", b"b", b"c", b"d"]


async def test_clients_that_were_answered_are_waited_for(log: ScriptedLog, batches: ForwardBatches) -> None:
    tasks = begin(batches, "a", "b")
    first = await call(log)
    tasks += begin(batches, "c")
    await asyncio.sleep(0.2)  # it takes so long that a while is worth it
    answer_all(first)
    await outcomes(tasks[:2])
    tasks += begin(batches, "d", "e")
    second = await call(log)
    assert names(second) == ["c", "d", "e"]
    answer_all(second)
    assert await outcomes(tasks[2:]) == [b"c", b"d", b"e"]


async def test_a_call_is_bounded_in_requests(log: ScriptedLog, batches: ForwardBatches) -> None:
    tasks = begin(batches, *map(str, range(600)))
    calls = []
    for _ in range(3):
        calls.append(await call(log))
        answer_all(calls[-1])
    assert [len(names(each)) for each in calls] == [256, 256, 88]
    assert [name for each in calls for name in names(each)] == [str(number) for number in range(600)]
    assert await outcomes(tasks) == [b"%d" % number for number in range(600)]


async def test_a_call_is_bounded_in_bytes(log: ScriptedLog, batches: ForwardBatches) -> None:
    body = bytes(3 << 20)
    tasks = [asyncio.create_task(batches.forward(request(name, body))) for name in "abc"]
    for expected in (["a", "b"], ["c"]):
        each = await call(log)
        assert names(each) == expected
        answer_all(each)
    assert await outcomes(tasks) == [b"a", b"b", b"c"]


async def test_one_that_fails_leaves_the_others(log: ScriptedLog, batches: ForwardBatches) -> None:
    tasks = begin(batches, "a", "b", "c", "d")
    failures = encode_error(UnknownGraph("urn:g")), encode_error(NotLeader("gone", 2, 3))
    (await call(log)).succeed(
        encode_outcomes([(True, b"1"), (False, failures[0]), (False, failures[1]), (True, b"4")])
    )
    first, unknown, not_leader, last = await outcomes(tasks)
    assert (first, last) == (b"1", b"4")
    assert type(unknown) is UnknownGraph
    assert unknown.args == ("urn:g",)
    assert type(not_leader) is NotLeader
    assert not_leader.args == ("gone", 2, 3)


@pytest.mark.parametrize(
    "error", [NotLeader("elsewhere", 1, 3), LogUnavailable("no link", 2), OutcomeUnknown("cut off")]
)
async def test_a_call_that_fails_fails_each_with_an_error_of_its_own(
    log: ScriptedLog, batches: ForwardBatches, error: NotLeader | LogUnavailable | OutcomeUnknown
) -> None:
    tasks = begin(batches, "a", "b", "c")
    (await call(log)).fail(error)
    failures = await outcomes(tasks)
    assert [(type(each), each.args) for each in failures if isinstance(each, Exception)] == [
        (type(error), error.args)
    ] * 3
    assert len(set(map(id, failures))) == 3  # one that is raised twice would gather traces


GOOD = encode_outcomes([(True, b"1"), (True, b"2")])


@pytest.mark.parametrize(
    "body",
    [
        b"",
        encode_outcomes([(True, b"1")]),
        encode_outcomes([(True, b"1")] * 3),
        GOOD[:-1],
        GOOD[:-3],
        GOOD + b"\0",
        b"garbage",
        b"\xff" * 64,
    ],
    ids=["nothing", "too few", "too many", "cut in data", "cut in head", "a rest", "garbage", "ones"],
)
async def test_an_answer_that_does_not_fit_leaves_every_outcome_unknown(
    log: ScriptedLog, batches: ForwardBatches, body: bytes
) -> None:
    tasks = begin(batches, "a", "b")
    (await call(log)).succeed(body)
    assert list(map(type, await outcomes(tasks))) == [OutcomeUnknown, OutcomeUnknown]


async def test_an_error_that_cannot_be_understood_leaves_that_outcome_unknown(
    log: ScriptedLog, batches: ForwardBatches
) -> None:
    tasks = begin(batches, "a", "b")
    (await call(log)).succeed(encode_outcomes([(False, b'{"kind": "Nothing"}'), (True, b"2")]))
    failed, good = await outcomes(tasks)
    assert (type(failed), good) == (OutcomeUnknown, b"2")


async def test_a_log_that_goes_away_leaves_outcomes_unknown_and_the_next_call_finds_it_again(
    log: ScriptedLog, batches: ForwardBatches
) -> None:
    tasks = begin(batches, "a", "b")
    await call(log)
    await log.server.close()
    assert list(map(type, await outcomes(tasks))) == [OutcomeUnknown, OutcomeUnknown]
    assert list(map(type, await outcomes(begin(batches, "c")))) == [LogUnavailable]
    await log.server.start()
    tasks = begin(batches, "d")
    answer_all(await call(log))
    assert await outcomes(tasks) == [b"d"]


async def test_who_leaves_before_a_call_is_not_sent_and_who_leaves_during_one_hinders_nobody(
    log: ScriptedLog, batches: ForwardBatches
) -> None:
    tasks = begin(batches, "a", "b")
    first = await call(log)
    tasks += begin(batches, "c", "d")
    await asyncio.sleep(0.02)
    tasks[0].cancel()  # its call is under way
    tasks[2].cancel()  # it waits
    await asyncio.sleep(0)
    answer_all(first)
    second = await call(log)
    assert names(second) == ["d"]
    answer_all(second)
    gone, b, never_sent, d = await outcomes(tasks)
    assert (b, d) == (b"b", b"d")
    assert list(map(type, (gone, never_sent))) == [asyncio.CancelledError] * 2


async def test_where_all_who_wait_have_left_nothing_is_sent(
    log: ScriptedLog, batches: ForwardBatches
) -> None:
    tasks = begin(batches, "a")
    first = await call(log)
    late = begin(batches, "b", "c")
    await asyncio.sleep(0.02)
    for task in late:
        task.cancel()
    await asyncio.sleep(0)
    answer_all(first)
    await outcomes(tasks)
    await asyncio.sleep(0.02)
    assert log.forwardings.empty()
    tasks = begin(batches, "d")
    answer_all(await call(log))
    assert await outcomes(tasks) == [b"d"]


async def test_damage_at_the_leader_is_none_here(log: ScriptedLog, batches: ForwardBatches) -> None:
    tasks = begin(batches, "a")
    error = encode_error(CorruptionError("not what was written", "/data/log"))
    (await call(log)).succeed(encode_outcomes([(False, error)]))
    (outcome,) = await outcomes(tasks)
    assert type(outcome) is OutcomeUnknown
