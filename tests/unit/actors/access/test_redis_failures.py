"""Failed attempts that several nodes count together in a real Redis, and alone where it is away."""

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from actors.access.redis_failures import RedisFailures
from graphdb.access.credentials import PasswordGiven
from graphdb.config import Settings
from graphdb.config.access import RateLimiting
from graphdb.errors import LockedOut, NotAuthenticated
from serve.access.access_backend import AccessBackend
from serve.access.authentication import Authenticator
from tests.support.redis_server import RedisServer, needs_redis
from tests.support.timing import HANG_S, quick_enough

pytestmark = needs_redis

PASSWORD = "of redis"
ADDRESSES = (f"192.0.2.{number}" for number in itertools.count(1))  # of each test its own


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path_factory.mktemp("redis"), PASSWORD)
    try:
        yield server
    finally:
        server.close()


@pytest.fixture
def address() -> str:
    return next(ADDRESSES)


def limits(redis: RedisServer, **changed: Any) -> RateLimiting:
    usual = {"max_attempts": 3, "window_seconds": 60, "lockout_duration": 30, "whitelist": ["10.0.0.0/8"]}
    return RateLimiting.model_validate(usual | {"backend": "redis", "redis_url": redis.url} | changed)


def run(settings: RateLimiting, nodes: int, test: Callable[..., Awaitable[None]]) -> None:
    async def performed() -> None:
        each = [RedisFailures(settings) for _ in range(nodes)]
        try:
            await test(*each)
        finally:
            for one in each:
                await one.close()

    asyncio.run(performed())


def test_nodes_count_together(redis: RedisServer, address: str) -> None:
    async def test(one: RedisFailures, two: RedisFailures, three: RedisFailures) -> None:
        for node in (one, two, one):
            assert await node.wait_s(address) == 0
            await node.note_failure(address)
        for node in (one, three):
            assert 29 < await node.wait_s(address) <= 30
        assert await two.wait_s("192.0.2.250") == 0

    run(limits(redis), 3, test)


def test_what_is_noted_at_once_is_counted_once_each(redis: RedisServer, address: str) -> None:
    async def test(one: RedisFailures, two: RedisFailures, three: RedisFailures) -> None:
        await asyncio.gather(*[node.note_failure(address) for node in (one, two) for _ in range(12)])
        assert await three.wait_s(address) == 0
        await one.note_failure(address)
        assert await one.wait_s(address) > 0

    run(limits(redis, max_attempts=25), 3, test)


def test_the_window_slides_and_the_lock_ends(redis: RedisServer, address: str) -> None:
    async def test(one: RedisFailures) -> None:
        await one.note_failure(address)
        await asyncio.sleep(0.6)
        await one.note_failure(address)
        await asyncio.sleep(0.6)  # the first is out of the window, the second is not
        await one.note_failure(address)
        assert await one.wait_s(address) == 0
        await one.note_failure(address)
        assert 0 < await one.wait_s(address) <= 1
        await one.note_failure(address)  # does not make the lock longer
        await asyncio.sleep(1.05)
        assert await one.wait_s(address) == 0
        await one.note_failure(address)
        assert await one.wait_s(address) == 0  # counting has begun anew

    run(limits(redis, window_seconds=1, lockout_duration=1), 1, test)


def test_another_node_s_lock_is_known_within_a_second(redis: RedisServer) -> None:
    async def test(one: RedisFailures, two: RedisFailures) -> None:
        for took in quick_enough(2):
            locked = next(ADDRESSES)
            assert await two.wait_s(locked) == 0
            for _ in range(3):
                await one.note_failure(locked)
            async with asyncio.timeout(HANG_S):
                with took:
                    while await two.wait_s(locked) == 0:  # noqa: ASYNC110 nobody tells
                        await asyncio.sleep(0.05)

    run(limits(redis), 2, test)


def test_who_is_not_counted(redis: RedisServer) -> None:
    async def test(one: RedisFailures) -> None:
        for _ in range(5):
            await one.note_failure("10.1.2.3")
        assert await one.wait_s("10.1.2.3") == 0

    run(limits(redis), 1, test)


def test_addresses_of_one_network(redis: RedisServer) -> None:
    async def test(one: RedisFailures) -> None:
        for number in range(3):
            await one.note_failure(f"2001:db8:7::{number}")
        assert await one.wait_s("2001:db8:7::ffff") > 0

    run(limits(redis), 1, test)


@pytest.mark.parametrize("how", ["gone", "mute"])
def test_while_redis_is_away_each_node_counts_alone(
    redis: RedisServer, address: str, how: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever guesses is locked out all the same; nobody else notices."""
    settings = Settings.model_validate(
        {
            "server": {"data_dir": tmp_path},
            "authentication": {
                "enabled": True,
                "basic": {"enabled": True},
                "rate_limiting": limits(redis).model_dump(),
            },
        }
    )

    async def attempt(authenticator: Authenticator, where: str = address) -> type[Exception]:
        try:
            await authenticator.check_lockout(where)
            await authenticator.verify(PasswordGiven("ada", "wrong"), where)
        except (NotAuthenticated, LockedOut) as error:
            return type(error)
        raise AssertionError("a wrong password was right")

    async def performed() -> None:
        shared = RedisFailures(settings.authentication.rate_limiting)
        authenticator = Authenticator(settings, AccessBackend(shared_failures=shared))
        try:
            assert await attempt(authenticator) is NotAuthenticated
            assert shared.is_reached
            redis.stop() if how == "gone" else redis.hang()
            try:
                began = time.monotonic()
                assert [await attempt(authenticator) for _ in range(3)] == [
                    NotAuthenticated,
                    NotAuthenticated,
                    LockedOut,
                ]
                assert time.monotonic() - began < 30  # it does not wait for Redis each time
                assert not shared.is_reached
            finally:
                redis.start() if how == "gone" else redis.wake()
            deadline = time.monotonic() + HANG_S
            while not shared.is_reached:
                assert time.monotonic() < deadline
                await shared.wait_s("192.0.2.251")
                await asyncio.sleep(0.1)
            assert await attempt(authenticator) is LockedOut  # here it was, and is
        finally:
            await authenticator.stop()

    asyncio.run(performed())
    said = [record.message for record in caplog.records if record.name == "actors.access.redis_failures"]
    assert [text.partition(",")[0] for text in said] == ["Redis is away", "Redis is there again"]
    assert "of redis" not in caplog.text
    assert "of%20redis" not in caplog.text


@pytest.mark.parametrize("url", ["http://redis.example", "redis://", "127.0.0.1:6379"])
def test_an_address_that_is_none(url: str) -> None:
    with pytest.raises(ValueError, match="an address of Redis begins with"):
        RateLimiting.model_validate({"backend": "redis", "redis_url": url})
