"""The address of a client, also of one behind proxies that are trusted; and how an address is read."""

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

__all__ = ["TrustedProxies", "parsed_address"]


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
