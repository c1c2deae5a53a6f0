"""Security identifiers (SIDs) as directories hold them: octets, or the text already."""

import re

__all__ = ["security_identifier"]

_TEXT = re.compile(rb"S-1-\d{1,15}(?:-\d{1,10}){1,15}")
_HEAD_BYTES = 8
_PARTS_MAX = 15


def security_identifier(value: bytes) -> str:
    """The text of a SID, such as `S-1-5-21-1004336348-1177238915-682003330-512`.

    From [MS-DTYP] 2.4.2.2: revision, number of sub-authorities, authority (6 octets, big-endian), the
    sub-authorities (4 octets each, little-endian). Raises ValueError for what is not exactly that.
    """
    if _TEXT.fullmatch(value):
        return value.decode("ascii")
    if len(value) < _HEAD_BYTES or value[0] != 1:
        raise ValueError(f"{len(value)} octets are no SID")
    parts = value[1]
    if not 1 <= parts <= _PARTS_MAX or len(value) != _HEAD_BYTES + 4 * parts:
        raise ValueError(f"a SID of {parts} sub-authorities does not have {len(value)} octets")
    authority = int.from_bytes(value[2:_HEAD_BYTES], "big")
    numbers = [
        int.from_bytes(value[start : start + 4], "little") for start in range(_HEAD_BYTES, len(value), 4)
    ]
    return "-".join(map(str, ("S-1", authority, *numbers)))
