"""`Principal`: who asks, as authentication has found out; it goes with the request."""

import json
from dataclasses import dataclass, replace

from graphdb.access.permissions import Permission
from graphdb.access.visibility import (
    FULL_VISIBILITY,
    NO_INDEXES,
    NO_VISIBILITY,
    WHOLE_INDEXES,
    IndexVisibility,
    Visibility,
)
from graphdb.errors import Forbidden

__all__ = ["ANYONE", "EVERYONE", "INDEXER", "NOBODY", "NODE", "Principal"]


@dataclass(frozen=True, slots=True)
class Principal:
    """A user, or a program; permission is what its roles give, visibility what it may see of the graph, and
    index_visibility of the search indexes.

    expires_at: when the credentials end, seconds of the Unix epoch; None where they do not.
    """

    name: str
    provider: str  # which one knew the credentials: api_key, jwt, basic
    roles: frozenset[str] = frozenset()
    sids: frozenset[str] = frozenset()
    permission: Permission = Permission.NONE
    expires_at: float | None = None
    visibility: Visibility = NO_VISIBILITY
    index_visibility: IndexVisibility = NO_INDEXES

    @property
    def qualified_name(self) -> str:
        """Of this provider: the same name with two providers may be two users."""
        return f"{self.provider}:{self.name}"

    def require(self, permission: Permission) -> None:
        """Raises Forbidden where the roles do not give it."""
        if self.permission < permission:
            raise Forbidden(self.name, permission.word)

    def to_json(self) -> str:
        """For another process of the service; `from_json` reads it."""
        return json.dumps(
            [
                self.name,
                self.provider,
                sorted(self.roles),
                sorted(self.sids),
                self.permission.name,
                self.expires_at,
                self.visibility.to_json(),
                self.index_visibility.to_json(),
            ]
        )

    @classmethod
    def from_json(cls, text: str) -> "Principal":
        """Raises ValueError for what `to_json` has not written."""
        match json.loads(text):
            case [
                str(name),
                str(provider),
                [*roles],
                [*sids],
                str(permission),
                expires_at,
                str(visibility),
                str(index_visibility),
            ] if permission in Permission.__members__:
                found = Permission[permission]
                return cls(
                    name,
                    provider,
                    frozenset(roles),
                    frozenset(sids),
                    found,
                    expires_at,
                    Visibility.from_json(visibility),
                    IndexVisibility.from_json(index_visibility),
                )
        raise ValueError("no principal")


# Whoever asks while authentication is off.
EVERYONE = Principal(
    "everyone",
    "none",
    frozenset({"admin"}),
    permission=Permission.ADMIN,
    visibility=FULL_VISIBILITY,
    index_visibility=WHOLE_INDEXES,
)
# The node itself, where it asks for no one.
NODE = replace(EVERYONE, name="node", provider="node")
# The node on behalf of an index that follows the graph: whoever sees the index sees what is in it, so that is
# what nobody is kept from by an annotation.
INDEXER = replace(
    NODE,
    name="indexer",
    permission=Permission.READ,
    visibility=Visibility(default_graph=True, patterns=frozenset({"*"})),
)
# Who may read what is public: without credentials.
ANYONE = Principal("anyone", "none", permission=Permission.READ)
# A socket before it signs in.
NOBODY = Principal("nobody", "none")
