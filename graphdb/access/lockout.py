"""Which address a client has, and how long it is locked out after failed attempts."""

from collections import OrderedDict, deque
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from graphdb.config.access import RateLimiting

__all__ = ["CountedAddresses", "Lockout", "TrustedProxies", "client_key"]

# The address of a client, also of one behind proxies that are trusted; and how an address is read.


def parsed_address(text: str) -> IPv4Address | IPv6Address | None:
    """An address without its zone, one of IPv4 also where it is written as IPv6; None for what is none."""
    try:
        found = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return found if mapped is None else mapped


class TrustedProxies:
    """The proxies whose header X-Forwarded-For is believed."""

    def __init__(self, ranges: Sequence[str]) -> None:
        self._ranges = [ip_network(one, strict=False) for one in ranges]

    def client(self, peer: str, forwarded: Sequence[str]) -> str:
        """Who stands before the last proxy that is trusted; peer is at the other end of the connection.

        Each proxy adds to the end whom it heard, so the header is read from there: what stands before an
        address that is not trusted is that client's own word.
        """
        if not forwarded or not self.trusts(peer):
            return peer
        client = peer
        for heard in reversed([one.strip() for line in forwarded for one in line.split(",")]):
            address = _without_port(heard)
            if address is None:
                return client
            client = address
            if not self.trusts(client):
                return client
        return client

    def trusts(self, address: str) -> bool:
        """Whether the address is one of them."""
        found = parsed_address(address) if self._ranges else None
        return found is not None and any(found in network for network in self._ranges)


def _without_port(text: str) -> str | None:
    """An address that may be written with a port; None for what is none."""
    host = text
    if text.startswith("["):
        host = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        host = text.partition(":")[0]
    found = parsed_address(host)
    return None if found is None else str(found)


# Which addresses have failed too often, and for how long they are locked out.

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
