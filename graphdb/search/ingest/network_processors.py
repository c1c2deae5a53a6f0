"""Processors of network traffic: `community_id`, `network_direction`.

Sources: the specification of Community ID, version 1; Elasticsearch's documentation of both processors.
"""

import hashlib
from base64 import b64encode
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from struct import pack
from typing import Any, TypeAlias

from graphdb.search.errors import illegal_argument
from graphdb.search.ingest.document import IngestDocument, Template, plain_text
from graphdb.search.ingest.options import ProcessorOptions

__all__ = ["NETWORK_PROCESSORS"]

Step = Callable[[IngestDocument], None]
Address: TypeAlias = IPv4Address | IPv6Address

_TRANSPORTS = {
    "icmp": 1, "igmp": 2, "tcp": 6, "udp": 17, "gre": 47, "icmp6": 58, "icmpv6": 58, "ipv6-icmp": 58,
    "eigrp": 88, "ospf": 89, "pim": 103, "sctp": 132,
}  # fmt: skip
_WITH_PORTS = (6, 17, 132)
# The type of the answer to a message of ICMP. What has none goes one way: it has its code in this place.
_ANSWERS = {
    1: {0: 8, 8: 0, 9: 10, 10: 9, 13: 14, 14: 13, 15: 16, 16: 15, 17: 18, 18: 17},
    58: {128: 129, 129: 128, 130: 131, 131: 130, 133: 134, 134: 133, 135: 136, 136: 135, 139: 140, 140: 139,
         144: 145, 145: 144},
}  # fmt: skip


def _community_id(options: ProcessorOptions, reading: Any) -> Step:
    names = {
        "source_ip": "source.ip", "source_port": "source.port", "destination_ip": "destination.ip",
        "destination_port": "destination.port", "iana_number": "network.iana_number",
        "icmp_type": "icmp.type", "icmp_code": "icmp.code", "transport": "network.transport",
    }  # fmt: skip
    fields = {name: options.text(name, default) for name, default in names.items()}
    target, seed = options.text("target_field", "network.community_id"), options.number("seed", 0)
    ignores = options.flag("ignore_missing", True)
    if not 0 <= seed < 2**16:
        raise options.error("seed", f"seed must be a value between 0 and 65535, not [{seed}]")

    def step(document: IngestDocument) -> None:
        found = {name: document.find(field) for name, field in fields.items()}
        transport = found["iana_number"] if found["iana_number"] is not None else found["transport"]
        if found["source_ip"] is None or found["destination_ip"] is None or transport is None:
            if ignores:
                return
            raise illegal_argument("unable to construct flow from document")
        document.set(target, _flow_hash(found, _transport(transport), seed))

    return step


def _transport(value: Any) -> int:
    text = plain_text(value).lower()
    number = _TRANSPORTS.get(text, int(text) if text.isdecimal() and len(text) < 4 else 0)
    if not 0 < number < 256:
        raise illegal_argument(f"could not convert string [{text[:100]}] to transport protocol")
    return number


def _flow_hash(found: dict[str, Any], transport: int, seed: int) -> str:
    """Of both directions of a flow it is the same."""
    source, destination = _address(found["source_ip"]), _address(found["destination_ip"])
    ports, one_way = _ports(found, transport)
    ends = [(source.packed, ports[:1]), (destination.packed, ports[1:])]
    if not one_way:
        ends.sort()
    (first, low), (second, high) = ends
    flow = pack(">H", seed) + first + second + bytes((transport, 0))
    flow += b"".join(pack(">H", port) for port in (*low, *high))
    return "1:" + b64encode(hashlib.sha1(flow, usedforsecurity=False).digest()).decode()


def _ports(found: dict[str, Any], transport: int) -> tuple[tuple[int, ...], bool]:
    """What stands for the ports of both ends, if anything; and whether the flow has no other direction."""
    if transport in _WITH_PORTS:
        return (_port(found["source_port"], "source"), _port(found["destination_port"], "destination")), False
    answers = _ANSWERS.get(transport)
    if answers is None:
        return (), False
    kind = _number(found["icmp_type"], "icmp type", 0, 255)
    if kind in answers:
        return (kind, answers[kind]), False
    return (kind, _number(found["icmp_code"], "icmp code", 0, 255)), True


def _port(value: Any, which: str) -> int:
    return _number(value, f"{which} port", 1, 65_535)


def _number(value: Any, what: str, least: int, most: int) -> int:
    text = "" if value is None else plain_text(value)
    if not (text.isdecimal() and len(text) < 6 and least <= int(text) <= most):
        raise illegal_argument(f"invalid {what} [{text[:100]}]")
    return int(text)


def _address(value: Any) -> Address:
    try:
        return ip_address(plain_text(value))
    except ValueError:
        raise illegal_argument(f"'{plain_text(value)[:200]}' is not an IP string literal.") from None


_PRIVATE = [ip_network(text) for text in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7")]
_NAMED: dict[str, Callable[[Address], bool]] = {
    "loopback": lambda one: one.is_loopback,
    "multicast": lambda one: one.is_multicast,
    "interface_local_multicast": lambda one: (
        one.version == 6 and one.is_multicast and one.packed[1] & 15 == 1
    ),
    "link_local_unicast": lambda one: one.is_link_local,
    "link_local_multicast": lambda one: (
        one in ip_network("224.0.0.0/24")
        if one.version == 4
        else one.is_multicast and one.packed[1] & 15 == 2
    ),
    "unspecified": lambda one: one.is_unspecified,
    "private": lambda one: any(one in network for network in _PRIVATE if network.version == one.version),
}
_NAMED["unicast"] = _NAMED["global_unicast"] = lambda one: (
    not (
        one.is_loopback
        or one.is_multicast
        or one.is_link_local
        or one.is_unspecified
        or str(one) == "255.255.255.255"
    )
)
_NAMED["public"] = lambda one: (
    not any(
        _NAMED[name](one)
        for name in ("loopback", "multicast", "link_local_unicast", "unspecified", "private")
    )
)


def _network_direction(options: ProcessorOptions, reading: Any) -> Step:
    source, destination = (
        options.text("source_ip", "source.ip"),
        options.text("destination_ip", "destination.ip"),
    )
    target, ignores = options.text("target_field", "network.direction"), options.flag("ignore_missing", True)
    networks, field = options.texts("internal_networks", None), options.text("internal_networks_field", None)
    if networks is None and field is None:
        raise options.error(
            "internal_networks", "and [internal_networks_field] cannot both be unset: one of them is required"
        )
    if networks is not None and field is not None:
        raise options.error("internal_networks", "and [internal_networks_field] cannot both be used")

    def step(document: IngestDocument) -> None:
        ends = document.find(source), document.find(destination)
        wanted = networks if field is None else document.find(field)
        if None in ends or wanted is None:
            if ignores:
                return
            raise illegal_argument("unable to calculate network direction from document")
        listed = wanted if isinstance(wanted, list) else [wanted]
        from_inside, to_inside = (_is_inside(_address(end), listed, document) for end in ends)
        if from_inside:
            document.set(target, "internal" if to_inside else "outbound")
        else:
            document.set(target, "inbound" if to_inside else "external")

    return step


def _is_inside(address: Address, networks: list[Any], document: IngestDocument) -> bool:
    for network in networks:
        text = Template(plain_text(network)).render(document)
        named = _NAMED.get(text)
        if named is not None:
            if named(address):
                return True
            continue
        try:
            if address in ip_network(text, strict=False):
                return True
        except ValueError:
            raise illegal_argument(f"'{text[:200]}' is not a network: neither a name nor CIDR") from None
    return False


NETWORK_PROCESSORS: dict[str, Callable[[ProcessorOptions, Any], Step]] = {
    "community_id": _community_id,
    "network_direction": _network_direction,
}
