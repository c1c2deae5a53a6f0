"""Which addresses have failed too often, and for how long they are locked out."""

from collections import OrderedDict, deque
from ipaddress import IPv4Address, ip_network

from graphdb.access.client_address import parsed_address
from graphdb.config.access import RateLimiting

__all__ = ["CountedAddresses", "Lockout", "client_key"]

_ADDRESSES_MAX = 100_000
_PREFIX_V6 = 64  # what one client of IPv6 has to choose its addresses from


def client_key(address: str) -> str:
    """Under which the failures of an address are counted; an address that is none counts as it is."""
    found = parsed_address(address)
    if found is None:
        return address
    if isinstance(found, IPv4Address) or found.is_loopback:
        return str(found)
    return str(ip_network((found, _PREFIX_V6), strict=False))


class CountedAddresses:
    """Whose failures are counted at all."""

    def __init__(self, limits: RateLimiting) -> None:
        self._is_enabled = limits.enabled
        self._whitelist = [ip_network(one, strict=False) for one in limits.whitelist]

    def counts(self, address: str) -> bool:
        """Not those of the whitelist, and none where counting is off."""
        if not self._is_enabled:
            return False
        found = parsed_address(address) if self._whitelist else None
        return found is None or all(found not in network for network in self._whitelist)


class Lockout:
    """Failures counted by address, over a window that slides; times are seconds of one clock.

    An address is either counted or locked out. Once its time is over, counting begins anew.
    """

    def __init__(self, limits: RateLimiting) -> None:
        self._limits, self._counted = limits, CountedAddresses(limits)
        # In the order of the last failure, so that the oldest make room.
        self._failures: OrderedDict[str, deque[float]] = OrderedDict()
        self._locked_until: OrderedDict[str, float] = OrderedDict()

    def wait_s(self, address: str, now_s: float) -> float:
        """How long an address is locked out yet; 0 where it is not."""
        if not self._locked_until:
            return 0.0
        key = client_key(address)
        until = self._locked_until.get(key)
        if until is None:
            return 0.0
        if until <= now_s:
            self._locked_until.pop(key, None)  # another thread may have
            return 0.0
        return until - now_s

    def counts(self, address: str) -> bool:
        """See `CountedAddresses.counts`."""
        return self._counted.counts(address)

    def note_failure(self, address: str, now_s: float) -> bool:
        """Count a failed attempt, made at now_s; whether the address is counted at all."""
        if not self.counts(address):
            return False
        key = client_key(address)
        if self.wait_s(address, now_s) > 0:
            return True
        failures = self._failures.setdefault(key, deque())
        self._failures.move_to_end(key)
        while failures and failures[0] <= now_s - self._limits.window_seconds:
            failures.popleft()
        failures.append(now_s)
        if len(failures) >= self._limits.max_attempts:
            del self._failures[key]
            self._locked_until[key] = now_s + self._limits.lockout_duration
        for table in (self._failures, self._locked_until):
            if len(table) > _ADDRESSES_MAX:
                table.popitem(last=False)
        return True
