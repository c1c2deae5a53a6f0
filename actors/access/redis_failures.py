"""`RedisFailures`: failed attempts to authenticate, counted by all nodes together in Redis.

Beside it each node counts its own, so while Redis is away a node goes on alone with what it knows.
"""

import logging
import time
from collections import OrderedDict

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from graphdb.access.lockout import CountedAddresses, client_key
from graphdb.config.access import RateLimiting

__all__ = ["RedisFailures"]

_PREFIX = "graphdb:failures"
_ANSWER_S = 0.5  # a Redis that takes longer is as good as away
_AGAIN_S = 1.0
_FREE_S = (
    1.0  # so long an address that is not locked out is not asked for again; it is when it has failed here
)
_KEPT_MAX = 10_000

# A failure is one moment in a list, by Redis's own clock; so the window slides as `Lockout`'s does. All of it
# is one step: of two nodes that note at once, the second sees what the first has noted.
_NOTE = """
local wait = redis.call('PTTL', KEYS[2])
if wait > 0 then return wait end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local window, most, lockout = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local first = redis.call('LINDEX', KEYS[1], 0)
while first and tonumber(first) <= now - window do
    redis.call('LPOP', KEYS[1])
    first = redis.call('LINDEX', KEYS[1], 0)
end
redis.call('RPUSH', KEYS[1], string.format('%.0f', now))
if redis.call('LLEN', KEYS[1]) < most then
    redis.call('PEXPIRE', KEYS[1], window)
    return 0
end
redis.call('DEL', KEYS[1])
redis.call('SET', KEYS[2], '1', 'PX', lockout)
return lockout
"""

log = logging.getLogger(__name__)


class RedisFailures:
    """See `serve.access.access_backend.SharedFailures`. For one event loop."""

    def __init__(self, limits: RateLimiting) -> None:
        """Nothing is connected before it is needed. Raises ValueError for an address that cannot be one."""
        assert limits.redis_url is not None
        self._limits, self._counted = limits, CountedAddresses(limits)
        self._redis: Redis = Redis.from_url(
            limits.redis_url.get_secret_value(),
            socket_connect_timeout=_ANSWER_S,
            socket_timeout=_ANSWER_S,
            retry=Retry(NoBackoff(), 1),  # at once: the connection may have been gone for long
        )
        self._note = self._redis.register_script(_NOTE)
        self._known: OrderedDict[str, tuple[float, float]] = OrderedDict()  # locked until, believed until
        self._away_until: float | None = None

    @property
    def is_reached(self) -> bool:
        """See `SharedFailures.is_reached`."""
        return self._away_until is None

    async def wait_s(self, address: str) -> float:
        """How long an address is locked out yet; 0 where it is not, or where Redis is away."""
        if not self._counted.counts(address):
            return 0.0
        key, now_s = client_key(address), time.monotonic()
        locked_until, believed_until = self._known.get(key, (0.0, 0.0))
        if believed_until > now_s:
            return max(0.0, locked_until - now_s)
        if self._is_paused(now_s):
            return 0.0
        try:
            wait_ms = await self._redis.pttl(_keys(key)[1])
        except (RedisError, OSError) as error:
            return self._away(error)
        return self._learnt(key, wait_ms)

    async def note_failure(self, address: str) -> None:
        """Count a failed attempt; where Redis is away it is not counted here."""
        if not self._counted.counts(address) or self._is_paused(time.monotonic()):
            return
        key, limits = client_key(address), self._limits
        times_ms = (limits.window_seconds * 1_000, limits.max_attempts, limits.lockout_duration * 1_000)
        try:
            wait_ms = await self._note(keys=_keys(key), args=times_ms)
        except (RedisError, OSError) as error:
            self._away(error)
        else:
            self._learnt(key, wait_ms)

    async def close(self) -> None:
        """It is of no use afterwards."""
        await self._redis.aclose()

    def _is_paused(self, now_s: float) -> bool:
        """While it is away only one request in a second waits for it."""
        if self._away_until is None:
            return False
        if self._away_until > now_s:
            return True
        self._away_until = now_s + _AGAIN_S
        return False

    def _away(self, error: Exception) -> float:
        if self._away_until is None:
            log.error("Redis is away, failed attempts are counted by this node alone: %s", error)
        self._away_until = time.monotonic() + _AGAIN_S
        return 0.0

    def _learnt(self, key: str, wait_ms: int) -> float:
        """Redis says -2 of what is not there."""
        if self._away_until is not None:
            self._away_until = None
            log.warning("Redis is there again, failed attempts are counted by all nodes together")
        wait_s, now_s = max(0, wait_ms) / 1_000, time.monotonic()
        self._known[key] = now_s + wait_s, now_s + _FREE_S
        self._known.move_to_end(key)
        if len(self._known) > _KEPT_MAX:
            self._known.popitem(last=False)
        return wait_s


def _keys(key: str) -> tuple[str, str]:
    """The failures, and the lock; braces keep them on one node of a cluster of Redis."""
    return f"{_PREFIX}:{{{key}}}", f"{_PREFIX}:{{{key}}}:locked"
