"""Permissions, each of which includes those below it, and the roles that give them."""

from collections.abc import Iterable
from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the settings take long to import, and a permission needs none of them
    from graphdb.config.access import Authorization

__all__ = ["Permission", "Roles"]


class Permission(IntEnum):
    """What may be done; a higher one includes the lower."""

    NONE = 0
    READ = 1
    WRITE = 2
    ADMIN = 3

    @property
    def word(self) -> str:
        """As the configuration writes it."""
        return self.name.capitalize()


_ALWAYS = {"admin": Permission.ADMIN, "writer": Permission.WRITE, "reader": Permission.READ}


class Roles:
    """The roles of one configuration."""

    def __init__(self, authorization: "Authorization | None") -> None:
        further = {} if authorization is None else authorization.role_permissions
        self._permissions = _ALWAYS | {role: Permission[word.upper()] for role, word in further.items()}

    def permission(self, roles: Iterable[str]) -> Permission:
        """The highest that one of these gives; a role that nobody knows gives none."""
        return max((self._permissions.get(role, Permission.NONE) for role in roles), default=Permission.NONE)
