"""`GuardedFetch`: one HTTP call to a host that the rules allow, within limits of time and size.

What is checked is what is connected to: a name is resolved once, its addresses are checked, and the
connection goes to one of them. Each redirect is a destination like the first. Nothing else decides where a
call goes: no proxy of the environment, no second resolution.
"""

import asyncio
import functools
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import httpcore
import httpx

from actors.egress.rules import Address, Destination, HostRules
from graphdb.content_coding import content_decoder
from graphdb.errors import EvaluationFailed, HostNotAllowed, InvalidParameter, UnsupportedMediaType

__all__ = ["Bounds", "Call", "Fetched", "GuardedFetch", "Resolve", "resolve"]

REDIRECTS_MAX = 5
_REDIRECTS = (301, 302, 303, 307, 308)
_AGENT = "graphdb"

Resolve: TypeAlias = Callable[[str], Awaitable[Sequence[str]]]  # the addresses of a name; OSError for none


@dataclass(frozen=True, slots=True)
class Call:
    """What to ask for. headers have no Host, Accept-Encoding, User-Agent or Content-Length."""

    url: str
    method: str = "GET"
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = field(default=b"", repr=False)
    wants_body: bool = True  # else the answer is its status, and what follows that is not waited for
    follows_redirects: bool = True  # else a redirect is the answer: no other host gets the headers


@dataclass(frozen=True, slots=True)
class Fetched:
    """The answer of the last host, whatever its status; body is whole and decompressed, if it was wanted."""

    url: str
    status: int
    content_type: str
    body: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a call may take, and the settings that say so, for whoever meets them."""

    timeout_s: float  # redirects and all
    timeout_setting: str
    bytes_max: int  # decompressed
    bytes_setting: str


async def resolve(name: str) -> list[str]:
    """All addresses of a name, as the system tells them. Raises OSError."""
    found = await asyncio.get_running_loop().getaddrinfo(name, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


class GuardedFetch:
    """Calls hosts by the rules of one operation. For any number of calls at a time, on one event loop."""

    def __init__(
        self,
        rules: HostRules,
        bounds: Bounds,
        *,
        resolve: Resolve = resolve,
        tls: Callable[[], ssl.SSLContext] = httpx.create_ssl_context,
    ) -> None:
        """tls makes the context that certificates are checked with, when the first is."""
        self.rules = rules
        self.bounds = bounds
        self._resolve = resolve
        self._tls = functools.cache(tls)

    async def fetch(self, call: Call, bytes_max: int | None = None) -> Fetched:
        """The answer to a call, redirects followed. bytes_max: below that of the bounds.

        Raises HostNotAllowed for a host or redirect that is not allowed, before it is connected to;
        EvaluationFailed where no answer comes that is whole and within the bounds.
        """
        allowed = self.bounds.bytes_max if bytes_max is None else bytes_max
        try:
            async with asyncio.timeout(self.bounds.timeout_s):
                return await self._follow(call, allowed)
        except TimeoutError:
            reason = f"no answer within {self.bounds.timeout_s:g} s ({self.bounds.timeout_setting})"
        except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException) as error:
            reason = str(error) or type(error).__name__
        except (InvalidParameter, UnsupportedMediaType) as error:  # of the decoder
            reason = str(error)
        except _CallFailed as failed:
            reason = str(failed)
        raise EvaluationFailed(f"{self.rules.operation} <{call.url}>: {reason}")

    async def check(self, url: str) -> None:
        """Raises HostNotAllowed where a call would be refused, by what is known now: a name that has no
        address yet may have one later, which the call looks at.
        """
        destination = self.rules.destination(url)
        with suppress(TimeoutError, _CallFailed):
            async with asyncio.timeout(self.bounds.timeout_s):
                await self._addresses(destination)

    async def _follow(self, call: Call, bytes_max: int) -> Fetched:
        destination = self.rules.destination(call.url)
        for _ in range(REDIRECTS_MAX + 1):
            answer = await self._call(destination, call, bytes_max)
            if isinstance(answer, Fetched):
                return answer
            call, destination = self._redirected(call, destination, answer)
        raise _CallFailed(f"more than {REDIRECTS_MAX} redirects")

    def _redirected(self, call: Call, before: Destination, redirect: "_Redirect") -> tuple[Call, Destination]:
        """The next call. A query that was posted is posted again: only 303 says to get something else."""
        if redirect.status == 303 and call.method != "GET":
            raise _CallFailed(f"the host answers 303 (see other) to {call.method}")
        try:
            target = str(before.url.join(redirect.location))
        except (httpx.InvalidURL, ValueError) as error:
            raise _CallFailed(f"the host redirects to what is no URL: {error}") from None
        try:
            destination = self.rules.destination(target)
        except HostNotAllowed as refused:
            raise self._of_redirect(refused, before) from None
        if before.url.scheme == "https" and destination.url.scheme != "https":
            raise self._of_redirect(HostNotAllowed(self.rules.operation, target, "not from https"), before)
        return replace(call, url=target), destination

    def _of_redirect(self, refused: HostNotAllowed, before: Destination) -> HostNotAllowed:
        return HostNotAllowed(
            refused.operation, refused.host, f"{refused.reason} (<{before.url}> redirects there)"
        )

    async def _call(self, destination: Destination, call: Call, bytes_max: int) -> "Fetched | _Redirect":
        addresses = await self._addresses(destination)
        secure = destination.url.scheme == "https"
        async with (
            httpcore.AsyncConnectionPool(
                ssl_context=self._tls() if secure else None,
                network_backend=_Pinned(addresses, self.bounds.timeout_s),
            ) as connections,
            connections.stream(
                call.method,
                _target(destination),
                headers=_headers(destination, call),
                content=call.body or None,
            ) as response,
        ):
            location = _header(response, b"location")
            if response.status in _REDIRECTS and location and call.follows_redirects:
                return _Redirect(response.status, location)
            body = await self._body(response, bytes_max) if call.wants_body else b""
            content_type = _header(response, b"content-type")
            return Fetched(call.url, response.status, content_type, body)

    async def _addresses(self, destination: Destination) -> list[Address]:
        """What may be connected to. Raises HostNotAllowed, _CallFailed."""
        if destination.address is not None:
            return [destination.address]
        try:
            found = await self._resolve(destination.host)
        except OSError as error:
            raise _CallFailed(f"{destination.host} cannot be resolved: {error}") from None
        return self.rules.checked(destination, found)

    async def _body(self, response: httpcore.Response, bytes_max: int) -> bytes:
        decoder = content_decoder(_header(response, b"content-encoding"))
        pieces, size = [], 0
        async for received in response.aiter_stream():
            for piece in decoder.feed(received):
                size += len(piece)
                if size > bytes_max:
                    raise _CallFailed(
                        f"the answer is larger than {bytes_max} bytes ({self.bounds.bytes_setting})"
                    )
                pieces.append(piece)
            await asyncio.sleep(0)  # others have their turn, however fast it comes
        decoder.check_complete()
        return b"".join(pieces)


class _CallFailed(Exception):
    """Why there is no answer."""


@dataclass(frozen=True, slots=True)
class _Redirect:
    status: int
    location: str


class _Pinned(httpcore.AsyncNetworkBackend):
    """Connects to given addresses, one after another until one answers, whatever host is asked for."""

    def __init__(self, addresses: Sequence[Address], timeout_s: float) -> None:
        """timeout_s is for all of them: one that does not answer leaves time for the others."""
        self._addresses = addresses
        self._attempt_s = timeout_s / max(len(addresses), 1)
        self._network = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 # the library's; here each attempt has its own
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        failure: Exception = httpcore.ConnectError(f"{host} has no address")
        for address in self._addresses:
            try:
                return await self._network.connect_tcp(
                    str(address), port, self._attempt_s, local_address, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                reason = str(error) or "it does not answer"
                failure = type(error)(f"cannot connect to {address} port {port}: {reason}")
        raise failure


def _target(destination: Destination) -> httpcore.URL:
    """The URL for the library, with the host that certificates are checked against."""
    url = destination.url
    return httpcore.URL(
        scheme=url.raw_scheme, host=destination.host, port=destination.port, target=url.raw_path
    )


def _headers(destination: Destination, call: Call) -> list[tuple[str, str]]:
    own = [
        ("Host", destination.url.netloc.decode("ascii")),
        ("User-Agent", _AGENT),
        ("Accept-Encoding", "gzip"),
        ("Connection", "close"),
    ]
    if call.method != "GET":
        own.append(("Content-Length", str(len(call.body))))
    return own + list(call.headers)


def _header(response: httpcore.Response, name: bytes) -> str:
    """The value of a header, the last one if there are several; empty if there is none."""
    return {key.lower(): value for key, value in response.headers}.get(name, b"").decode("latin-1")
