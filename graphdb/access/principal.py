"""`Principal`: who asks, as authentication has found out; it goes with the request."""

import json
from dataclasses import dataclass, replace

from graphdb.access.index_sight import NO_INDEXES, WHOLE_INDEXES, IndexSight
from graphdb.access.permissions import Permission
from graphdb.access.sight import NO_SIGHT, WHOLE_SIGHT, Sight
from graphdb.errors import Forbidden

__all__ = ["ANYONE", "EVERYONE", "INDEXER", "NOBODY", "NODE", "Principal"]


@dataclass(frozen=True, slots=True)
class Principal:
    """A user, or a program; permission is what its roles give, sight what it may see of the graph, and
    index_sight of the search indexes.

    expires_at: when the credentials end, seconds of the Unix epoch; None where they do not.
    """

    name: str
    provider: str  # which one knew the credentials: api_key, jwt, basic
    roles: frozenset[str] = frozenset()
    sids: frozenset[str] = frozenset()
    permission: Permission = Permission.NONE
    expires_at: float | None = None
    sight: Sight = NO_SIGHT
    index_sight: IndexSight = NO_INDEXES

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
                self.sight.to_json(),
                self.index_sight.to_json(),
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
                str(sight),
                str(index_sight),
            ] if permission in Permission.__members__:
                found = Permission[permission]
                return cls(
                    name,
                    provider,
                    frozenset(roles),
                    frozenset(sids),
                    found,
                    expires_at,
                    Sight.from_json(sight),
                    IndexSight.from_json(index_sight),
                )
        raise ValueError("no principal")


# Whoever asks while authentication is off.
EVERYONE = Principal(
    "everyone",
    "none",
    frozenset({"admin"}),
    permission=Permission.ADMIN,
    sight=WHOLE_SIGHT,
    index_sight=WHOLE_INDEXES,
)
# The node itself, where it asks for no one.
NODE = replace(EVERYONE, name="node", provider="node")
# The node on behalf of an index that follows the graph: whoever sees the index sees what is in it, so that is
# what nobody is kept from by an annotation.
INDEXER = replace(
    NODE,
    name="indexer",
    permission=Permission.READ,
    sight=Sight(default_graph=True, patterns=frozenset({"*"})),
)
# Who may read what is public: without credentials.
ANYONE = Principal("anyone", "none", permission=Permission.READ)
# A socket before it signs in.
NOBODY = Principal("nobody", "none")
