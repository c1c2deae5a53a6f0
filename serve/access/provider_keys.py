"""`ProviderKeys`: the keys of an OpenID Connect provider, fetched when they are needed."""

import asyncio
import logging
import math
import ssl
import time

import httpx

from graphdb.access.discovery import DOCUMENT_BYTES_MAX, discovery_url, read_discovery
from graphdb.access.keys import KeyRing, KeySet, VerifyingKey, read_key_set
from graphdb.access.oidc import TokenHeader
from graphdb.addresses import is_loopback
from graphdb.config.access import Oidc
from graphdb.errors import ConfigError, NotAuthenticated, ProviderUnavailable

__all__ = ["ProviderKeys", "trusted_authorities"]

log = logging.getLogger(__name__)


class ProviderKeys:
    """The keys of one provider, on one event loop. Requests that arrive together wait for one fetch."""

    def __init__(self, settings: Oidc) -> None:
        """Raises ConfigError for a `ca_cert_file` that holds no certificates."""
        self._settings = settings
        self._ring = KeyRing(settings.jwks_refresh_interval_secs)
        self._fetching: asyncio.Task[None] | None = None
        self._tls = trusted_authorities(settings)

    async def key(self, header: TokenHeader) -> VerifyingKey:
        """The key that verifies a token.

        Raises NotAuthenticated if the provider has no such key; it counts as a failed attempt only if the
        provider has just been asked. Raises ProviderUnavailable if the provider cannot be reached.
        """
        found = self._find(header)
        if found is not None:
            if self._ring.is_old(time.monotonic()) and self._may_ask():
                self._begin()  # the old keys are used meanwhile
            return found
        has_asked = self._fetching is not None or self._may_ask()
        if has_asked:
            # Other requests may wait for the same fetch, so it continues when one of them is cancelled.
            await asyncio.shield(self._fetching or self._begin())
            found = self._find(header)
        if found is not None:
            return found
        if self._ring.has_failed:
            wait_s = math.ceil(self._ring.wait_s(time.monotonic()))
            raise ProviderUnavailable(
                "the OpenID Connect provider cannot be asked for its keys", max(1, wait_s)
            )
        raise NotAuthenticated("the token is signed by a key that its issuer does not have", has_asked)

    def stop(self) -> None:
        """Cancel a fetch."""
        if self._fetching is not None:
            self._fetching.cancel()

    def _find(self, header: TokenHeader) -> VerifyingKey | None:
        return self._ring.find(header.kid, header.algorithm, time.monotonic())

    def _may_ask(self) -> bool:
        return self._fetching is None and self._ring.wait_s(time.monotonic()) == 0

    def _begin(self) -> "asyncio.Task[None]":
        self._fetching = asyncio.ensure_future(self._fetch())
        self._fetching.add_done_callback(self._done)
        return self._fetching

    def _done(self, _: "asyncio.Task[None]") -> None:
        self._fetching = None

    async def _fetch(self) -> None:
        """Raises nothing; the key ring has the result."""
        issuer = self._settings.issuer_url
        try:
            keys = await self._ask(issuer)
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError, OSError, ValueError) as error:
            self._ring.fail(time.monotonic())
            log.warning(
                "the provider %s cannot be asked for its keys: %s", issuer, error or type(error).__name__
            )
        else:
            self._ring.learn(keys, time.monotonic())

    async def _ask(self, issuer: str) -> KeySet:
        host = httpx.URL(issuer).host
        async with httpx.AsyncClient(
            verify=self._tls,
            headers={"Accept": "application/json", "Accept-Encoding": "identity"},
            timeout=self._settings.http_timeout_secs,
            # A proxy from the environment is not for this host.
            trust_env=not is_loopback(host),
        ) as client:
            discovered = read_discovery(await self._get(client, discovery_url(issuer)), issuer)
            return read_key_set(await self._get(client, discovered.jwks_uri))

    async def _get(self, client: httpx.AsyncClient, url: str) -> bytes:
        """The body of an answer, bounded in time and size as a whole; redirections are not followed."""
        body = bytearray()
        async with asyncio.timeout(self._settings.http_timeout_secs), client.stream("GET", url) as answer:
            if answer.status_code != 200:
                raise ValueError(f"{url} answers {answer.status_code}")
            async for chunk in answer.aiter_raw():
                body += chunk
                if len(body) > DOCUMENT_BYTES_MAX:
                    raise ValueError(f"{url} answers more than {DOCUMENT_BYTES_MAX} bytes")
        return bytes(body)


def trusted_authorities(settings: Oidc) -> ssl.SSLContext:
    """The certificate authorities of the provider."""
    if settings.ca_cert_file is None:
        return httpx.create_ssl_context()
    try:
        return ssl.create_default_context(cafile=settings.ca_cert_file)
    except ssl.SSLError:
        raise ConfigError("authentication.oidc.ca_cert_file: no PEM certificates") from None
