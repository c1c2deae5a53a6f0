"""Addresses that fail too often, against a naive twin; and whose address it is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphdb.access.lockout import Lockout, TrustedProxies, client_key
from graphdb.config.access import RateLimiting

LIMITS = RateLimiting(max_attempts=3, window_seconds=10, lockout_duration=20, whitelist=("10.0.0.0/8", "::1"))


class Naive:
    """All failures are kept, and asked anew each time."""

    def __init__(self) -> None:
        self.failures: dict[str, list[float]] = {}
        self.until: dict[str, float] = {}

    def wait_s(self, address: str, now: float) -> float:
        return max(0.0, self.until.get(address, 0) - now)

    def note(self, address: str, now: float) -> None:
        if self.wait_s(address, now):
            return
        kept = [one for one in self.failures.get(address, []) if one > now - 10]
        self.failures[address] = [*kept, now]
        if len(self.failures[address]) >= 3:
            self.failures[address], self.until[address] = [], now + 20


@given(st.lists(st.tuples(st.integers(1, 15), st.sampled_from(["192.0.2.1", "192.0.2.2"]), st.booleans())))
def test_the_same_as_the_naive_twin(events: list[tuple[int, str, bool]]) -> None:
    lockout, naive, now = Lockout(LIMITS), Naive(), 0.0
    for step, address, fails in events:
        now += step / 2
        assert lockout.wait_s(address, now) == naive.wait_s(address, now)
        if fails:
            assert lockout.note_failure(address, now)
            naive.note(address, now)
        assert lockout.wait_s(address, now) == naive.wait_s(address, now)


@pytest.mark.parametrize("address", ["10.1.2.3", "::ffff:10.1.2.3", "::1"])
def test_the_whitelist_is_never_limited(address: str) -> None:
    lockout = Lockout(LIMITS)
    assert not any(lockout.note_failure(address, 0) for _ in range(50))
    assert lockout.wait_s(address, 0) == 0


def test_switched_off_nothing_is_counted() -> None:
    lockout = Lockout(RateLimiting(enabled=False, max_attempts=1))
    assert not lockout.note_failure("192.0.2.1", 0)
    assert lockout.wait_s("192.0.2.1", 0) == 0


@pytest.mark.parametrize(
    ("address", "key"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8::1", "2001:db8::/64"),
        ("2001:db8::ffff:1", "2001:db8::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::1", "::1"),
        ("testclient", "testclient"),
    ],
)
def test_what_one_client_can_have_counts_together(address: str, key: str) -> None:
    assert client_key(address) == key


def test_memory_is_bounded() -> None:
    lockout = Lockout(RateLimiting(max_attempts=2))
    for number in range(100_100):
        lockout.note_failure(f"client-{number}", 0)
    for number in (0, 100_050):
        lockout.note_failure(f"client-{number}", 1)
    assert lockout.wait_s("client-0", 1) == 0  # the oldest made room
    assert lockout.wait_s("client-100050", 1) > 0


PROXIES = TrustedProxies(["192.0.2.0/24", "2001:db8::/32"])


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("198.51.100.7", ["203.0.113.5"], "198.51.100.7"),
        ("192.0.2.1", [], "192.0.2.1"),
        ("192.0.2.1", ["203.0.113.5"], "203.0.113.5"),
        ("::ffff:192.0.2.1", ["203.0.113.5"], "203.0.113.5"),
        ("192.0.2.1", ["1.1.1.1, 203.0.113.5"], "203.0.113.5"),
        ("192.0.2.1", ["1.1.1.1", "203.0.113.5, 192.0.2.9"], "203.0.113.5"),
        ("192.0.2.1", ["203.0.113.5:4711"], "203.0.113.5"),
        ("192.0.2.1", ["[2001:dead::5]:4711"], "2001:dead::5"),
        ("192.0.2.1", ["203.0.113.5, unknown"], "192.0.2.1"),
        ("192.0.2.1", ["203.0.113.5, , 192.0.2.9"], "192.0.2.9"),
        ("192.0.2.1", ["192.0.2.7"], "192.0.2.7"),
    ],
)
def test_who_stands_before_the_trusted_proxies(peer: str, forwarded: list[str], client: str) -> None:
    assert PROXIES.client(peer, forwarded) == client
