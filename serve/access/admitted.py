"""The principal of a request, in its scope: put there by the gate, asked for by whoever needs to know."""

import time

from starlette.types import Scope

from graphdb.access.principal import EVERYONE, Principal
from graphdb.access.visibility import Visibility

__all__ = ["PRINCIPAL", "principal_of", "remaining_s", "visibility_of"]

PRINCIPAL = "graphdb.principal"


def principal_of(scope: Scope) -> Principal:
    """Whoever asks; `EVERYONE` while authentication is off, for then there is no gate."""
    principal: Principal = scope.get(PRINCIPAL, EVERYONE)
    return principal


def visibility_of(scope: Scope) -> Visibility:
    """What of the graph whoever asks may see."""
    return principal_of(scope).visibility


def remaining_s(scope: Scope) -> float | None:
    """How long the credentials of a request hold yet; None where they have no end."""
    expires_at = principal_of(scope).expires_at
    return None if expires_at is None else max(0.0, expires_at - time.time())
