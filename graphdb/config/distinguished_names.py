"""Distinguished names (RFC 4514), read so that those that name one entry are equal."""

import re
import unicodedata
from typing import TypeAlias

__all__ = ["CanonicalName", "canonical_name"]

CanonicalName: TypeAlias = tuple[tuple[tuple[str, str], ...], ...]
"""The relative names, that of the entry first; each the sorted pairs of type and value that it is made of."""

_PAIR = r"""\\(?:[ "#+,;<=>\\]|[0-9A-Fa-f]{2})"""
_TYPE = r"[A-Za-z][A-Za-z0-9-]*|\d+(?:\.\d+)+"
_VALUE = rf"""#(?P<hex>(?:[0-9A-Fa-f]{{2}})+)|(?P<text>(?:[^\0"+,;<>\\]|{_PAIR})*?)"""
# RFC 2253 and what people write have spaces around the separators.
_ATTRIBUTE = re.compile(rf" *(?:OID\.)?(?P<type>{_TYPE}) *= *(?:{_VALUE}) *(?P<end>[,;+]|\Z)", re.IGNORECASE)
_ESCAPED = re.compile(r"\\(?:([0-9A-Fa-f]{2})|(.))")
_LENGTH_MAX = 8_192

# Short names of RFC 4514, section 3, and the names that directories use for the same.
_TYPES = {
    "2.5.4.3": "cn",
    "commonname": "cn",
    "2.5.4.7": "l",
    "localityname": "l",
    "2.5.4.8": "st",
    "stateorprovincename": "st",
    "2.5.4.10": "o",
    "organizationname": "o",
    "2.5.4.11": "ou",
    "organizationalunitname": "ou",
    "2.5.4.6": "c",
    "countryname": "c",
    "2.5.4.9": "street",
    "streetaddress": "street",
    "0.9.2342.19200300.100.1.25": "dc",
    "domaincomponent": "dc",
    "0.9.2342.19200300.100.1.1": "uid",
    "userid": "uid",
}
# The strings of BER that names are made of, by their tag (X.690).
_ENCODINGS = {0x0C: "utf-8", 0x13: "ascii", 0x16: "ascii", 0x14: "latin-1", 0x1E: "utf-16-be", 0x04: "utf-8"}


def canonical_name(text: str) -> CanonicalName:
    """A distinguished name as it compares: equal names of one entry are equal.

    Types and values without regard to case, runs of spaces as one, Unicode by NFKC (RFC 4518); escaped
    however they are, the parts of a relative name in any order. Raises ValueError for what is no such name.
    """
    if len(text) > _LENGTH_MAX:
        raise ValueError(f"a distinguished name has {_LENGTH_MAX} characters at most")
    if not text:
        return ()
    names: list[tuple[tuple[str, str], ...]] = []
    parts: list[tuple[str, str]] = []
    position, end = 0, ","
    while end:
        found = _ATTRIBUTE.match(text, position)
        if found is None:
            raise ValueError(
                f"{text!r} is no distinguished name (RFC 4514), from character {position + 1} on"
            )
        kind = found["type"].lower()
        value = found["text"] if found["hex"] is None else _decoded(bytes.fromhex(found["hex"]))
        parts.append((_TYPES.get(kind, kind), value if found["hex"] else _prepared(_unescaped(value))))
        position, end = found.end(), found["end"]
        if end != "+":
            names.append(tuple(sorted(parts)))
            parts = []
    return tuple(names)


def _unescaped(value: str) -> str:
    """Pairs of hexadecimal digits are octets of UTF-8, several of which may make one character."""
    octets, position = bytearray(), 0
    for found in _ESCAPED.finditer(value):
        octets += value[position : found.start()].encode()
        octets += bytes.fromhex(found[1]) if found[1] else found[2].encode()
        position = found.end()
    octets += value[position:].encode()
    return octets.decode()  # UnicodeDecodeError is a ValueError


def _prepared(value: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", value).casefold().split())


def _decoded(encoded: bytes) -> str:
    """The string that BER has encoded; what is none compares octet by octet."""
    if len(encoded) >= 2 and encoded[0] in _ENCODINGS and encoded[1] == len(encoded) - 2 < 0x80:
        return _prepared(encoded[2:].decode(_ENCODINGS[encoded[0]]))
    return " #" + encoded.hex()  # no text begins with a space once it is prepared
