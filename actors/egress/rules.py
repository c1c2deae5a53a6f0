"""Which hosts this node may call: the rules of `[security]` against URLs and the addresses of names."""

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import httpx

from graphdb.errors import HostNotAllowed

__all__ = ["Address", "Destination", "HostRules"]

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
_Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network
_DEFAULT_PORTS = {"http": 80, "https": 443}

_NAME = re.compile(r"[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*")
# Resolvers take such a name for an address, in one of its many spellings (WHATWG URL: "ends in a number").
_ENDS_IN_A_NUMBER = re.compile(r"(?:.*\.)?(?:[0-9]+|0x[0-9a-f]*)")
# Names that no public host has. This machine: RFC 6761, and /etc/hosts of Debian and Red Hat.
_LOOPBACK_NAME = re.compile(r"(?:.*\.)?local(?:host|domain)[46]?|ip6-(?:localhost|loopback)")
# Others in its network: RFC 6762 (mDNS), RFC 8375, ICANN's name for private use, and the rest of /etc/hosts.
_PRIVATE_NAME = re.compile(r"(?:.*\.)?(?:local|internal|home\.arpa)|ip6-[a-z]+|broadcasthost")
_LOOPBACK: tuple[Address, ...] = (ipaddress.IPv4Address("127.0.0.1"), ipaddress.IPv6Address("::1"))
# What `is_global` of Python 3.11 does not know. IANA's special-purpose registries have all but the last.
_NOT_PUBLIC: tuple[_Network, ...] = (
    ipaddress.IPv4Network("192.0.0.0/24"),  # protocol assignments; 192.0.0.192 tells secrets in one cloud
    ipaddress.IPv4Network("192.88.99.0/24"),  # relays of 6to4
    ipaddress.IPv6Network("3fff::/20"),  # documentation
    ipaddress.IPv4Network("168.63.129.16/32"),  # the host of a virtual machine, in another cloud
)


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a URL leads. host is a name in small letters, or an address as it is usually written."""

    url: httpx.URL  # without credentials, its host in ASCII
    host: str
    port: int
    address: Address | None  # None: the host is a name, still to be resolved


class HostRules:
    """The hosts that one operation ("SERVICE", "LOAD", "WEBHOOK", "REINDEX", "RERANK") may call.

    A rule that is a name allows URLs with this very name, in letters of either case. The addresses that the
    name turns out to have must be public, each of them, or be covered by a rule that is an address or range.
    The name localhost, and those that end in it, may have loopback addresses too.

    A rule that is an address or range allows URLs with such an address, and such addresses of allowed names.
    It allows no name by itself: anybody can have one that leads there.

    Where public hosts need no rule, any name and any public address may be called; a rule that is a name lets
    it have addresses that are not public. A name that no public host has, such as localhost.localdomain,
    needs such a rule, or one for the addresses that it stands for, even while it has no address.
    """

    def __init__(self, operation: str, rules: Sequence[str], *, public_allowed: bool = False) -> None:
        """public_allowed: whether public hosts need no rule."""
        self.operation = operation
        self._public_allowed = public_allowed
        self._names: set[str] = set()
        self._networks: list[_Network] = []
        for rule in rules:
            try:
                self._networks.append(_plain_network(ipaddress.ip_network(rule, strict=False)))
            except ValueError:
                self._names.add(rule.lower())

    def __bool__(self) -> bool:
        """Whether there is a rule at all."""
        return bool(self._names or self._networks)

    def allows(self, url: str) -> bool:
        """Whether the URL may be called, as far as it tells by itself."""
        try:
            self.destination(url)
        except HostNotAllowed:
            return False
        return True

    def destination(self, url: str) -> Destination:
        """Where an allowed URL leads. Raises HostNotAllowed, also for what is no http or https URL."""
        try:
            parsed = httpx.URL(url)
        except httpx.InvalidURL as error:
            raise self._refusal(url, f"this is no URL: {error}") from None
        if parsed.scheme not in _DEFAULT_PORTS:
            raise self._refusal(url, "only http and https are")
        if parsed.userinfo:
            raise self._refusal(url, "it holds credentials")
        port = parsed.port if parsed.port is not None else _DEFAULT_PORTS[parsed.scheme]
        if not 0 < port < 65_536:
            raise self._refusal(url, f"there is no port {port}")
        host = parsed.raw_host.decode("ascii").removesuffix(".")
        if not host:
            raise self._refusal(url, "there is no host")
        address = _address(host)
        if address is None and host not in self._names:
            reason = self._why_not_public(host) if self._public_allowed else f"no rule is the name {host!r}"
            if reason is not None:
                raise self._refusal(url, reason)
        if address is not None and not (
            self._covers(address) or (self._public_allowed and _is_public(address))
        ):
            raise self._refusal(url, f"no rule covers the address {address}")
        return Destination(parsed, str(address or host), port, address)

    def checked(self, destination: Destination, addresses: Sequence[str]) -> list[Address]:
        """The addresses that the name of a destination has. Raises HostNotAllowed if any is not allowed."""
        found = [_plain(ipaddress.ip_address(address)) for address in addresses]
        for address in found:
            if not (_is_public(address) or self._covers(address) or self._may_have(destination, address)):
                raise self._refusal(
                    str(destination.url),
                    f"{destination.host} has the address {address}, which is not public; "
                    f"a rule with this address, or a range around it, would allow it",
                )
        return found

    def _why_not_public(self, name: str) -> str | None:
        """Why a name without a rule is not called, whatever its addresses are; None where these decide."""
        if not _NAME.fullmatch(name):
            return f"{name!r} is no name of a host"
        if _ENDS_IN_A_NUMBER.fullmatch(name):
            return f"{name!r} is an address in an unusual spelling; write it as 192.0.2.1 is written"
        if _LOOPBACK_NAME.fullmatch(name):
            if not any(map(self._covers, _LOOPBACK)):
                return f"{name!r} is this machine, which is not public; a rule for 127.0.0.1 would allow it"
        elif _PRIVATE_NAME.fullmatch(name) and not self._networks:
            return (
                f"{name!r} is in a private network, which is not public; a rule with this name would allow it"
            )
        return None

    def _covers(self, address: Address) -> bool:
        return any(address in network for network in self._networks)

    def _may_have(self, destination: Destination, address: Address) -> bool:
        """Whether the rule for the name lets it have this address as well."""
        if destination.host not in self._names:
            return False
        return self._public_allowed or (
            address.is_loopback and destination.host.split(".")[-1] == "localhost"
        )

    def _refusal(self, url: str, reason: str) -> HostNotAllowed:
        return HostNotAllowed(self.operation, url, reason)


def _address(host: str) -> Address | None:
    """The address that a host is, in its one usual form; other spellings (127.1, 0x7f.1) are names."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return None
    return _plain(address)


def _plain(address: Address) -> Address:
    """An IPv4 address that is mapped into IPv6 as what it is: the connection goes there."""
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return address if mapped is None else mapped


def _plain_network(network: _Network) -> _Network:
    first = _plain(network.network_address)
    if first.version == network.version or network.prefixlen < 96:
        return network
    return ipaddress.IPv4Network((int(first), network.prefixlen - 96))


def _is_public(address: Address) -> bool:
    """Whether an address belongs to the Internet at large, neither to a private network nor to none.

    Those that carry an IPv4 address within (NAT64, 6to4) are not, since they may lead to a private one.
    """
    if isinstance(address, ipaddress.IPv6Address) and (address.sixtofour or address.is_site_local):
        return False
    if any(address in network for network in _NOT_PUBLIC):
        return False
    return address.is_global and not (address.is_multicast or address.is_reserved)
