"""`ProviderSignIn`: the code flow with PKCE for the workbench (RFC 7636; OpenID Connect Core 1.0, 3.1).

The browser goes to the provider's own page, and comes back with a code. It cannot hand that in itself: the
page's policy lets it connect to this service only. So the service hands it in. It keeps nothing of it.
"""

import asyncio
from typing import Annotated, Any

import httpx
import orjson
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from graphdb.access.discovery import DOCUMENT_BYTES_MAX, Discovered, discovery_url, read_discovery
from graphdb.addresses import is_loopback
from graphdb.config.access import Oidc
from graphdb.errors import NotAuthenticated, Overloaded, ProviderUnavailable
from serve.access.provider_keys import trusted_authorities
from serve.bodies import JSON_TYPE, JsonBody, read_json

__all__ = ["ProviderSignIn"]

SCOPE = "openid"
_AT_ONCE = 8  # calls of the provider; anybody may ask for one
_BODY_BYTES_MAX = 32_768
_NOT_STORED = {"Cache-Control": "no-store"}
_Text = Annotated[str, Field(min_length=1, max_length=16_384)]


class _Grant(JsonBody):
    """A code with what belongs to it, or a refresh token."""

    code: _Text | None = None
    code_verifier: _Text | None = None
    redirect_uri: _Text | None = None
    refresh_token: _Text | None = None

    def fields(self) -> dict[str, str]:
        """Of the request for a token (RFC 6749, sections 4.1.3 and 6)."""
        kind = "refresh_token" if self.refresh_token is not None else "authorization_code"
        return {"grant_type": kind, **self.model_dump(exclude_none=True)}


class ProviderSignIn:
    """Of one application, with one provider. Raises ConfigError as `ProviderKeys` does."""

    def __init__(self, settings: Oidc) -> None:
        self._settings = settings
        self._tls = trusted_authorities(settings)
        self._discovered: Discovered | None = None
        self._calls = 0

    async def tell(self, _request: Request) -> Response:
        """GET: where the browser goes to sign in."""
        found = await self._found()
        record = {
            "authorization_endpoint": found.authorization_endpoint,
            "client_id": self._settings.client_id,
            "scope": SCOPE,
            "audience": self._settings.audience,
        }
        return Response(orjson.dumps(record), headers=_NOT_STORED, media_type=JSON_TYPE)

    async def exchange(self, request: Request) -> Response:
        """POST: a code, or a refresh token, for an access token."""
        grant = await read_json(request, _Grant, _BODY_BYTES_MAX)
        address = (await self._found()).token_endpoint
        if address is None:
            raise ProviderUnavailable("the OpenID Connect provider does not say where it gives tokens", 60)
        status, body = await self._ask(
            "POST", address, {"client_id": self._settings.client_id, **grant.fields()}
        )
        answer = _object(body)
        token = answer.get("access_token")
        if status != 200 or not isinstance(token, str):
            said = answer.get("error_description") or answer.get("error") or f"status {status}"
            raise NotAuthenticated(f"the provider refuses: {str(said)[:300]}")
        record = {name: answer.get(name) for name in ("access_token", "refresh_token", "expires_in")}
        return Response(orjson.dumps(record), headers=_NOT_STORED, media_type=JSON_TYPE)

    async def _found(self) -> Discovered:
        if self._discovered is None:
            issuer = self._settings.issuer_url
            status, body = await self._ask("GET", discovery_url(issuer))
            try:
                if status != 200:
                    raise ValueError(f"its discovery document is not there ({status})")
                self._discovered = read_discovery(body, issuer)
            except ValueError as error:
                raise ProviderUnavailable(f"the OpenID Connect provider: {error}", 10) from None
        return self._discovered

    async def _ask(self, method: str, url: str, fields: dict[str, str] | None = None) -> tuple[int, bytes]:
        """Status and body, bounded in time and size. Redirects are not followed: they would get secrets."""
        if self._calls >= _AT_ONCE:
            raise Overloaded("too many users are signing in", 1)
        self._calls += 1
        try:
            async with (
                asyncio.timeout(self._settings.http_timeout_secs),
                httpx.AsyncClient(
                    verify=self._tls,
                    headers={"Accept": "application/json", "Accept-Encoding": "identity"},
                    trust_env=not is_loopback(httpx.URL(url).host),
                ) as client,
                client.stream(method, url, data=fields) as answer,
            ):
                body = bytearray()
                async for chunk in answer.aiter_raw():
                    body += chunk
                    if len(body) > DOCUMENT_BYTES_MAX:
                        raise ProviderUnavailable("the OpenID Connect provider answers too much", 10)
                return answer.status_code, bytes(body)
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError, OSError) as error:
            raise ProviderUnavailable("the OpenID Connect provider cannot be reached", 10) from error
        finally:
            self._calls -= 1


def _object(body: bytes) -> dict[str, Any]:
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError:
        found = None
    if not isinstance(found, dict):
        raise ProviderUnavailable("the OpenID Connect provider does not answer in JSON", 10)
    return found
