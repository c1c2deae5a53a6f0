"""Credentials of WebSockets: in the query string, for browsers set no headers; or in a message."""

import asyncio
import contextlib
import time
from collections.abc import Mapping
from typing import Any

from starlette.types import Scope

from graphdb.access.credentials import MEMBER_NAMES, Credentials, credentials_of_members
from graphdb.access.permissions import Permission
from graphdb.access.principal import EVERYONE, Principal
from graphdb.access.visibility import NO_VISIBILITY, Visibility
from graphdb.errors import Forbidden, GraphDBError
from serve.access.audit import Note
from serve.access.doorman import Doorman
from serve.parameters import Parameters

__all__ = ["ADMISSION", "SIGN_IN_S", "SocketAdmission", "admission_of", "credentials_of_query"]

ADMISSION = "graphdb.admission"  # in the scope
_LOOK_S = 60.0
SIGN_IN_S = 10.0  # how long a socket may be open without its client having said who it is


class SocketAdmission:
    """Of one socket: who its client is, once it has said so."""

    def __init__(
        self,
        doorman: Doorman | None,
        address: str,
        principal: Principal | None,
        note: Note | None = None,
    ) -> None:
        """Without a doorman everyone is let in. Who signs in is noted in note."""
        self._doorman, self._address, self._note = doorman, address, note
        self.principal = principal
        self._known = asyncio.Event()

    @property
    def visibility(self) -> Visibility:
        """What of the graph the client may see; nothing before it has said who it is."""
        return NO_VISIBILITY if self.principal is None else self.principal.visibility

    async def hold(self) -> None:
        """Return once the client has not said in time who it is, or its credentials have ended."""
        if self.principal is None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(SIGN_IN_S):
                    await self._known.wait()
        while self.principal is not None:
            expires_at = self.principal.expires_at
            if expires_at is not None and expires_at <= time.time():
                return
            # It may sign in anew meanwhile, and the clock may be set.
            wait_s = _LOOK_S if expires_at is None else min(_LOOK_S, expires_at - time.time())
            await asyncio.sleep(max(0.0, wait_s))

    async def sign_in(self, members: Mapping[str, Any]) -> None:
        """By the members of a message; who has signed in already may only show newer credentials.

        Raises NotAuthenticated, Forbidden, LockedOut, UnavailableError.
        """
        if self._doorman is None:
            return
        try:
            principal = await self._verified(self._doorman, members)
        except GraphDBError as error:
            if self._note is not None:
                self._note.tell("sign_in", outcome="refused", reason=str(error))
            raise
        self.principal = principal
        self._known.set()
        if self._note is not None:
            self._note.principal = principal
            self._note.tell("sign_in", outcome="ok")

    async def _verified(self, doorman: Doorman, members: Mapping[str, Any]) -> Principal:
        await doorman.check_lockout(self._address)
        principal = await doorman.verify(credentials_of_members(members), self._address)
        principal.require(Permission.READ)
        known = self.principal
        if known is not None and (known.name, known.provider) != (principal.name, principal.provider):
            raise Forbidden(principal.name, Permission.READ.word, f"this socket is {known.name}'s")
        return principal


def admission_of(scope: Scope) -> SocketAdmission:
    """The socket's; everyone is admitted while authentication is off."""
    found: SocketAdmission | None = scope.get(ADMISSION)
    return SocketAdmission(None, "", EVERYONE) if found is None else found


def credentials_of_query(query_string: bytes) -> Credentials | None:
    """None where it has none. Raises NotAuthenticated, InvalidParameter, LimitExceeded."""
    parameters = Parameters(query_string)
    members = {name: value for name in MEMBER_NAMES if (value := parameters.one(name)) is not None}
    return credentials_of_members(members) if members else None
