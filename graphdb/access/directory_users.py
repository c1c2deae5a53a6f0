"""Users of an LDAP directory: security identifiers, groups."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from graphdb.access.permissions import Roles
from graphdb.access.principal import Principal
from graphdb.config.access import Ldap
from graphdb.config.distinguished_names import canonical_name

__all__ = ["DirectoryUsers", "UserEntry", "security_identifier", "user_filter"]

# Security identifiers (SIDs) as directories hold them: octets, or the text already.

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


# Users of a directory (LDAP): how one is searched, and which principal an entry is.
#
# It asks no directory: `actors/access/` does.

_PROVIDER = "ldap"
_ESCAPES = {ord(character): f"\\{ord(character):02x}" for character in "\0()*\\"}
_NAMED_BY = re.compile(r"\(\s*([A-Za-z][\w.;-]*)\s*=\s*\{0\}\s*\)")


def user_filter(template: str, name: str) -> str:
    """The filter that finds a user, whose name cannot say anything but itself in it (RFC 4515, section 3)."""
    return template.replace("{0}", name.translate(_ESCAPES))


@dataclass(frozen=True, slots=True)
class UserEntry:
    """What was found of a user: values are octets, attributes are named in lower case."""

    dn: str
    attributes: Mapping[str, Sequence[bytes]] = field(repr=False)


class DirectoryUsers:
    """What one configuration makes of entries."""

    def __init__(self, configured: Ldap, roles: Roles) -> None:
        self._configured, self._roles = configured, roles
        self._group_roles = {canonical_name(dn): role for dn, role in configured.group_role_mapping.items()}
        self._group_sids = {canonical_name(dn): sid for dn, sid in configured.group_sid_mapping.items()}
        named_by = _NAMED_BY.search(configured.user_search_filter)
        self._name_attribute = None if named_by is None else named_by[1]

    @property
    def attributes(self) -> tuple[str, ...]:
        """Those that `principal` and `groups` read of a user."""
        configured = self._configured
        name = () if self._name_attribute is None else (self._name_attribute,)
        return configured.group_member_attribute, configured.sid_attribute, *name

    def groups(self, user: UserEntry) -> list[str]:
        """The names of the groups that the user says it is in."""
        values = user.attributes.get(self._configured.group_member_attribute.lower(), ())
        return [value.decode(errors="replace") for value in values]

    def sids(self, entry: UserEntry) -> frozenset[str]:
        """Those of an entry, a user's or a group's. Raises ValueError for what is none."""
        values = entry.attributes.get(self._configured.sid_attribute.lower(), ())
        return frozenset(security_identifier(value) for value in values)

    def principal(self, given_name: str, user: UserEntry, group_sids: Iterable[str]) -> Principal:
        """Who this is; group_sids are those that the groups hold themselves. Raises ValueError as `sids`."""
        groups = set()
        for dn in self.groups(user):
            try:
                groups.add(canonical_name(dn))
            except ValueError:
                continue  # nothing is mapped from a name that cannot be read
        roles = frozenset(self._group_roles[group] for group in groups & self._group_roles.keys())
        mapped = {self._group_sids[group] for group in groups & self._group_sids.keys()}
        return Principal(
            self._name(given_name, user),
            _PROVIDER,
            roles,
            self.sids(user) | mapped | frozenset(group_sids),
            self._roles.permission(roles),
        )

    def _name(self, given: str, user: UserEntry) -> str:
        """One for each entry, however it was written: `ADA` finds whom `ada` finds.

        It is the attribute by which the filter searches first; where there is none, as it was given.
        """
        values = user.attributes.get((self._name_attribute or "").lower(), ())
        return min(value.decode(errors="replace") for value in values) if values else given
