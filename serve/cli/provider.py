"""The OpenID Connect provider as the command line meets it: a person signs in on another device (RFC 8628),
and tokens are renewed (RFC 6749, section 6).
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx
import orjson

from graphdb.access.discovery import DOCUMENT_BYTES_MAX, Discovered, discovery_url, read_discovery
from graphdb.addresses import is_loopback, provider_url
from serve.cli.console import CommandError, UsageError

__all__ = ["DeviceCode", "GrantRefused", "Granted", "Provider", "ProviderAway"]

_TIMEOUT_S = 10.0
_TOKEN_LENGTH_MAX = 16_000  # the service accepts no longer token
_DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
_INTERVAL_S = 5.0  # between two polls where the provider does not say; and by how much more after `slow_down`
_WAIT_S_MAX = 1_800.0


class ProviderAway(CommandError):
    """The provider cannot be reached, or its answer is invalid."""


class GrantRefused(CommandError):
    """The provider gives no token; code is one of RFC 6749, section 5.2, or RFC 8628, section 3.5."""

    def __init__(self, code: str, description: str) -> None:
        super().__init__(f"the provider gives no token: {description or code}")
        self.code = code


@dataclass(frozen=True, slots=True)
class Granted:
    """Tokens; lives_s: their lifetime, None if the provider does not send it."""

    access_token: str = field(repr=False)
    refresh_token: str | None = field(repr=False)
    lives_s: float | None


@dataclass(frozen=True, slots=True)
class DeviceCode:
    """The page to open, the code to enter there, and the time for it."""

    device_code: str = field(repr=False)
    user_code: str
    verification_uri: str
    verification_uri_complete: str | None
    expires_s: float
    interval_s: float


class Provider:
    """One provider and one client of it. Use it in a `with` block."""

    def __init__(self, issuer: str, client_id: str) -> None:
        try:
            host = httpx.URL(provider_url(issuer)).host
        except (ValueError, httpx.InvalidURL) as error:
            raise UsageError(f"--issuer {issuer}: {error}") from None
        self._issuer, self._client_id = issuer, client_id
        self._discovered: Discovered | None = None
        self._http = httpx.Client(
            headers={"Accept": "application/json", "Accept-Encoding": "identity"},
            timeout=_TIMEOUT_S,
            # A proxy from the environment is for hosts elsewhere.
            trust_env=not is_loopback(host),
        )

    def __enter__(self) -> "Provider":
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def begin(self, scope: str) -> DeviceCode:
        """Ask for a code (RFC 8628, section 3.1). Raises ProviderAway, GrantRefused."""
        address = self._found().device_authorization_endpoint
        if address is None:
            raise CommandError(f"{self._issuer} does not offer the device flow")
        answer = self._post(address, scope=scope)
        complete = answer.get("verification_uri_complete")
        return DeviceCode(
            self._text(answer, "device_code"),
            self._text(answer, "user_code"),
            self._text(answer, "verification_uri"),
            None if complete is None else self._text(answer, "verification_uri_complete"),
            min(_WAIT_S_MAX, self._seconds(answer, "expires_in") or _WAIT_S_MAX),
            max(1.0, self._seconds(answer, "interval") or _INTERVAL_S),
        )

    def wait(self, code: DeviceCode, sleep: Callable[[float], None] = time.sleep) -> Granted:
        """Poll until the person has decided (RFC 8628, sections 3.4 and 3.5).

        Raises GrantRefused, also where nobody has decided in time; ProviderAway.
        """
        interval_s, until_s = code.interval_s, time.monotonic() + code.expires_s
        while time.monotonic() < until_s:
            sleep(interval_s)
            try:
                return self._granted(grant_type=_DEVICE_GRANT, device_code=code.device_code)
            except GrantRefused as error:
                if error.code == "slow_down":
                    interval_s += _INTERVAL_S
                elif error.code != "authorization_pending":
                    raise
            except ProviderAway:
                if time.monotonic() + 2 * interval_s >= until_s:
                    raise
                interval_s *= 2
        raise GrantRefused("expired_token", "nobody has entered the code in time")

    def refresh(self, refresh_token: str) -> Granted:
        """Raises GrantRefused, ProviderAway."""
        return self._granted(grant_type="refresh_token", refresh_token=refresh_token)

    def _granted(self, **fields: str) -> Granted:
        address = self._found().token_endpoint
        if address is None:
            raise ProviderAway(f"{self._issuer} does not say where it gives tokens")
        answer = self._post(address, **fields)
        if str(answer.get("token_type")).lower() != "bearer":
            raise ProviderAway(f"{self._issuer} gives other tokens than bearer tokens")
        refresh_token = answer.get("refresh_token")
        return Granted(
            self._text(answer, "access_token"),
            None if refresh_token is None else self._text(answer, "refresh_token"),
            self._seconds(answer, "expires_in"),
        )

    def _found(self) -> Discovered:
        if self._discovered is None:
            status, body = self._ask("GET", discovery_url(self._issuer))
            try:
                if status != 200:
                    raise ValueError(f"its discovery document is not there ({status})")
                self._discovered = read_discovery(body, self._issuer)
            except ValueError as error:
                raise ProviderAway(f"{self._issuer}: {error}") from None
        return self._discovered

    def _post(self, address: str, **fields: str) -> dict[str, Any]:
        status, body = self._ask("POST", address, {"client_id": self._client_id, **fields})
        try:
            answer = orjson.loads(body)
        except orjson.JSONDecodeError:
            answer = None
        if not isinstance(answer, dict):
            raise ProviderAway(f"{self._issuer} answers {status}, without an object in JSON")
        if status != 200:
            said = answer.get("error_description")
            described = said if isinstance(said, str) and said.isprintable() else ""
            raise GrantRefused(_shown(answer.get("error")) or str(status), described[:300])
        return answer

    def _ask(self, method: str, address: str, fields: dict[str, str] | None = None) -> tuple[int, bytes]:
        """Status and body of an answer. Redirects are not followed, because they would receive secrets."""
        body, until_s = bytearray(), time.monotonic() + 2 * _TIMEOUT_S
        try:
            with self._http.stream(method, address, data=fields) as answer:
                for chunk in answer.iter_raw():
                    body += chunk
                    if time.monotonic() > until_s:
                        raise ProviderAway(f"{self._issuer} does not answer in time")
                    if len(body) > DOCUMENT_BYTES_MAX:
                        raise ProviderAway(f"{self._issuer} answers more than {DOCUMENT_BYTES_MAX} bytes")
                return answer.status_code, bytes(body)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise ProviderAway(f"{self._issuer} cannot be reached: {error or type(error).__name__}") from None

    def _text(self, answer: dict[str, Any], name: str) -> str:
        found = _shown(answer.get(name))
        if found is None:
            raise ProviderAway(f"{self._issuer} answers without a {name} that could be used")
        return found

    def _seconds(self, answer: dict[str, Any], name: str) -> float | None:
        found = answer.get(name)
        if found is None:
            return None
        if isinstance(found, bool) or not isinstance(found, int | float) or not 0 < found < 1e9:
            raise ProviderAway(f"{self._issuer} answers with a {name} that is no number of seconds")
        return float(found)


def _shown(found: object) -> str | None:
    """A text that is safe in a header and on a terminal, or None."""
    if not isinstance(found, str) or not found or len(found) > _TOKEN_LENGTH_MAX:
        return None
    return found if found.isascii() and found.isprintable() else None
