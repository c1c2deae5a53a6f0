"""Bounds on what others can cause: events a second, lines in the log, messages that wait."""

import asyncio
import logging
import time

import pytest

from actors.raft.incoming_links import TokenBucket
from actors.raft.outgoing_link import MailQueue
from actors.raft.rate_limited_log import RateLimitedLog


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr(time, "monotonic", lambda: self.now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def test_a_bucket_lets_a_burst_through_and_then_its_rate(clock: Clock) -> None:
    bucket = TokenBucket(8, 3)
    assert [bucket.try_take() for _ in range(5)] == [True, True, True, False, False]
    clock.now += 0.125
    assert [bucket.try_take() for _ in range(2)] == [True, False]
    clock.now += 1000
    assert [bucket.try_take() for _ in range(4)] == [True, True, True, False]


def test_a_bucket_says_how_long_to_wait(clock: Clock) -> None:
    bucket = TokenBucket(8, 2)
    waits = [bucket.take() for _ in range(4)]
    assert waits == pytest.approx([0, 0, 0.125, 0.25])


def test_a_topic_is_logged_once_a_minute(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    log = RateLimitedLog(logging.getLogger("test"))
    for _ in range(5):
        log.warn("a", "refused %s", "x")
    log.warn("b", "other")
    clock.now += 61
    log.warn("a", "refused %s", "y")
    assert [record.getMessage() for record in caplog.records] == [
        "refused x (0 more like it since the last such line)",
        "other (0 more like it since the last such line)",
        "refused y (4 more like it since the last such line)",
    ]


@pytest.mark.anyio
async def test_the_oldest_message_is_dropped() -> None:
    queue = MailQueue(asyncio.get_running_loop(), messages_max=3, bytes_max=10)
    queue.put([b"1", b"2", b"3", b"4"])
    assert [await queue.take() for _ in range(3)] == [b"2", b"3", b"4"]
    queue.put([b"12345", b"123456"])
    assert await queue.take() == b"123456"
    queue.put([bytes(50)])
    assert await queue.take() == bytes(50)
    assert queue.dropped_count == 2
    waiting = asyncio.ensure_future(queue.take())
    await asyncio.sleep(0)
    assert not waiting.done()
    queue.put([b"late"])
    assert await waiting == b"late"
