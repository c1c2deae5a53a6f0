"""IP addresses as terms that sort as the addresses do.

The term is the IPv6 address with all its digits; an IPv4 address is its mapped IPv6 address
(`::ffff:1.2.3.4`), as in Lucene's InetAddressPoint. So a range, and a network, is a range of terms.
"""

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from graphdb.search.errors import illegal_argument

__all__ = ["address_of", "address_term", "network_terms"]

_MAPPED = 0xFFFF << 32
_TEXT_LENGTH_MAX = 100


def address_term(text: str) -> str:
    """Errors: illegal_argument_exception."""
    try:
        if len(text) > _TEXT_LENGTH_MAX or "%" in text:
            raise ValueError
        return _term(ip_address(text))
    except ValueError:
        raise illegal_argument(f"'{text[:_TEXT_LENGTH_MAX]}' is not an IP string literal.") from None


def network_terms(text: str) -> tuple[str, str]:
    """The first and the last term of `10.0.0.0/8`, or of one address. Errors: illegal_argument_exception."""
    if "/" not in text:
        return address_term(text), address_term(text)
    try:
        if len(text) > _TEXT_LENGTH_MAX or not text.rpartition("/")[2].isdecimal():
            raise ValueError
        network = ip_network(text, strict=False)
    except ValueError:
        raise illegal_argument(f"'{text[:_TEXT_LENGTH_MAX]}' is not an IP string literal.") from None
    return _term(network[0]), _term(network[-1])


def address_of(term: str) -> str:
    """The address as it is shown: `1.2.3.4`, `2001:db8::1`."""
    address = IPv6Address(term)
    return str(address.ipv4_mapped or address)


def _term(address: IPv4Address | IPv6Address) -> str:
    number = int(address)
    return IPv6Address(number | _MAPPED if address.version == 4 else number).exploded
