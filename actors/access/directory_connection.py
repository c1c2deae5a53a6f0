"""`DirectoryConnection`: one connection to a directory by LDAP (RFC 4511), and what is asked over it.

Blocking; for one thread at a time.
"""

import contextlib
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias
from urllib.parse import urlsplit

import ldap3
from ldap3.core.exceptions import LDAPExceptionError
from ldap3.utils.uri import parse_uri

from graphdb.access.directory_users import UserEntry
from graphdb.config.access import Ldap

__all__ = [
    "BindRefused",
    "DirectoryConnection",
    "DirectoryServer",
    "Found",
    "LostConnection",
    "RefusedOperation",
]

# Results of a bind (RFC 4511, appendix A) that say no to who asks: noSuchObject, inappropriateAuthentication,
# invalidCredentials, insufficientAccessRights, and constraintViolation and unwillingToPerform, which are
# how directories say that an account is locked or disabled.
_REFUSALS = frozenset({32, 48, 49, 50, 19, 53})
_SUCCESS, _SIZE_LIMIT, _NO_SUCH_OBJECT, _REFERRAL = 0, 4, 32, 10
_Scope: TypeAlias = Literal["BASE", "SUBTREE"]
_PORTS = {"ldap": 389, "ldaps": 636}


class LostConnection(Exception):
    """Nobody answers, or not in time, or not by LDAP. The connection is of no use any more."""


class RefusedOperation(Exception):
    """The directory answers, but not with what was asked for."""


class BindRefused(Exception):
    """The directory says no to a name and password."""


@dataclass(frozen=True, slots=True)
class DirectoryServer:
    """Where a directory is."""

    host: str
    port: int
    is_tls: bool

    @classmethod
    def of_url(cls, url: str) -> "DirectoryServer":
        """url is one of `Ldap.server_url`."""
        parts = urlsplit(url)
        return cls(parts.hostname or "", parts.port or _PORTS[parts.scheme], parts.scheme == "ldaps")

    @classmethod
    def of_referral(cls, url: str, is_tls: bool) -> "tuple[DirectoryServer, str | None] | None":
        """The server and the search base of a referral (RFC 4516); None for one that is not to be followed:
        with is_tls those that would send passwords without it.
        """
        parts = parse_uri(url)  # type: ignore[no-untyped-call]
        if not parts or not parts["host"] or (is_tls and not parts["ssl"]):
            return None
        scheme = "ldaps" if parts["ssl"] else "ldap"
        return cls(parts["host"], parts["port"] or _PORTS[scheme], parts["ssl"]), parts["base"] or None


class _Tls(ldap3.Tls):
    """The handshake by the standard library: it checks the certificate and whose it is, and tells the server
    which of its names is meant.
    """

    def __init__(self, context: ssl.SSLContext) -> None:
        super().__init__(validate=ssl.CERT_REQUIRED)
        self._context = context

    def wrap_socket(self, connection: Any, do_handshake: bool = False) -> None:
        """See `ldap3.Tls.wrap_socket`."""
        host = connection.server.host
        connection.socket = self._context.wrap_socket(connection.socket, server_hostname=host)


@dataclass(frozen=True, slots=True)
class Found:
    """What a search has found; referrals are the addresses of where else to search."""

    entries: Sequence[UserEntry]
    referrals: Sequence[str]


class DirectoryConnection:
    """Bound as whoever it was opened for."""

    def __init__(self, server: DirectoryServer, configured: Ldap, dn: str, password: str) -> None:
        """Connect and bind. Raises BindRefused, LostConnection, RefusedOperation."""
        self._timeout_s = configured.timeout_seconds
        tls = None
        if server.is_tls:
            tls = _Tls(ssl.create_default_context(cafile=configured.ca_cert_file))
        # Made anew for each connection, for it remembers for minutes which addresses did not answer.
        at = ldap3.Server(
            server.host,
            server.port,
            use_ssl=server.is_tls,
            get_info=ldap3.NONE,
            tls=tls,
            connect_timeout=self._timeout_s,
        )
        self._connection = ldap3.Connection(
            at,
            user=dn,
            password=password,
            receive_timeout=self._timeout_s,
            auto_referrals=False,  # it would take the password to wherever it is told
            check_names=False,
            raise_exceptions=False,
        )
        try:
            self._connection.open()
            self._connection.bind()
        except (LDAPExceptionError, OSError) as error:
            self.close()
            raise LostConnection(f"{server.host}:{server.port}: {error}") from error
        code, text = self._result()
        if code == _SUCCESS:
            return
        self.close()
        if code in _REFUSALS:
            raise BindRefused(text)
        raise RefusedOperation(f"a bind was answered with: {text}")

    def search(self, base: str, filter: str, attributes: Sequence[str], *, entries_max: int) -> Found:
        """Entries at or below base; one more than entries_max where there are more.

        Raises LostConnection, RefusedOperation.
        """
        return self._search(base, filter, ldap3.SUBTREE, attributes, entries_max + 1)

    def entry(self, dn: str, attributes: Sequence[str]) -> UserEntry | None:
        """The entry of a name; None where there is none that this connection sees.

        Raises LostConnection, RefusedOperation.
        """
        found = self._search(dn, "(objectClass=*)", ldap3.BASE, attributes, 1)
        return found.entries[0] if found.entries else None

    def close(self) -> None:
        """Say good-bye; nothing is raised."""
        opened = self._connection.socket
        with contextlib.suppress(LDAPExceptionError, OSError):
            self._connection.unbind()
        if opened is not None:
            opened.close()  # which the library leaves out where it could not say good-bye

    def _search(self, base: str, filter: str, scope: _Scope, attributes: Sequence[str], size: int) -> Found:
        connection = self._connection
        try:
            connection.search(
                base,
                filter,
                scope,
                attributes=list(attributes),
                size_limit=size,
                time_limit=self._timeout_s,
            )
        except (LDAPExceptionError, OSError) as error:
            raise LostConnection(str(error)) from error
        code, text = self._result()
        response: list[Mapping[str, Any]] = connection.response or []
        if code not in (_SUCCESS, _SIZE_LIMIT, _NO_SUCH_OBJECT, _REFERRAL):
            raise RefusedOperation(f"a search below {base} was answered with: {text}")
        if code == _NO_SUCH_OBJECT and scope == ldap3.SUBTREE:
            raise RefusedOperation(f"there is nothing at {base}, or it may not be seen")
        entries = [_entry(one) for one in response if one["type"] == "searchResEntry"]
        elsewhere = [url for one in response if one["type"] == "searchResRef" for url in one["uri"]]
        return Found(entries, [*elsewhere, *(connection.result.get("referrals") or ())])

    def _result(self) -> tuple[int, str]:
        result = self._connection.result
        return result["result"], f"{result['description']} {result['message']}".strip()


def _entry(response: Mapping[str, Any]) -> UserEntry:
    attributes = {name.lower(): values for name, values in response["raw_attributes"].items()}
    return UserEntry(response["dn"], attributes)
