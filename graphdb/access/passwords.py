"""Users and passwords of the configuration, hashed by Argon2id (RFC 9106).

Verifying takes tens of milliseconds of a processor and tens of megabytes, on purpose.
"""

from base64 import b64encode
from collections.abc import Sequence

from argon2 import PasswordHasher, extract_parameters
from argon2.exceptions import InvalidHashError, VerificationError

from graphdb.access.permissions import Roles
from graphdb.access.principal import Principal
from graphdb.config.access import BasicUser
from graphdb.errors import ConfigError, NotAuthenticated

__all__ = ["Passwords", "hash_password"]

_PROVIDER = "basic"


def hash_password(password: str) -> str:
    """As `password_hash` has it, by the parameters that RFC 9106 recommends second (64 MiB)."""
    return PasswordHasher().hash(password)


class Passwords:
    """The users of one configuration. Raises ConfigError for a hash that cannot be read."""

    def __init__(self, users: Sequence[BasicUser], roles: Roles) -> None:
        self._hasher, self._roles = PasswordHasher(), roles
        self._users = {user.username: user for user in users}
        self._nobody = _impossible([_checked(user) for user in users])

    @property
    def has_users(self) -> bool:
        return bool(self._users)

    def has_user(self, name: str) -> bool:
        """Not for those who ask: it takes no time."""
        return name in self._users

    def principal(self, name: str, password: str) -> Principal:
        """Whose password it is. A name that nobody has takes as long as any. Raises NotAuthenticated."""
        user = self._users.get(name)
        is_right = self._verify(self._nobody if user is None else user.password_hash, password)
        if user is None or not is_right:
            raise NotAuthenticated("the user name or the password is wrong", is_attempt=True)
        return Principal(
            user.username,
            _PROVIDER,
            frozenset(user.roles),
            permission=self._roles.permission(user.roles),
        )

    def _verify(self, hashed: str, password: str) -> bool:
        try:
            return self._hasher.verify(hashed, password)
        except VerificationError:
            return False


def _checked(user: BasicUser) -> str:
    try:
        extract_parameters(user.password_hash)
    except InvalidHashError:
        reason = "is no Argon2id hash; graphdb auth hash-password makes one"
        raise ConfigError(f"authentication.basic.users: password_hash of {user.username} {reason}") from None
    return user.password_hash


def _impossible(hashes: Sequence[str]) -> str:
    """A hash of no password that anybody knows, and as slow as the slowest of these."""

    def cost(hashed: str) -> int:
        parameters = extract_parameters(hashed)
        return parameters.memory_cost * parameters.time_cost

    slowest = max(hashes, key=cost, default=_DEFAULT)
    head, salt, digest = slowest.rsplit("$", 2)
    nothing = b64encode(bytes(len(digest) * 3 // 4)).decode().rstrip("=")
    return f"{head}${salt}${nothing}"


_DEFAULT = "$argon2id$v=19$m=65536,t=3,p=4$" + "A" * 22 + "$" + "A" * 43
