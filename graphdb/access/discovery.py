"""What an OpenID Connect provider says of itself (OpenID Connect Discovery 1.0, sections 3 and 4)."""

from dataclasses import dataclass
from typing import Any

import orjson

from graphdb.addresses import provider_url

__all__ = ["DOCUMENT_BYTES_MAX", "Discovered", "discovery_url", "read_discovery"]

DOCUMENT_BYTES_MAX = 512 * 1024  # of whatever a provider answers


@dataclass(frozen=True, slots=True)
class Discovered:
    """Addresses of one provider, each fit for secrets; None where it does not offer that."""

    jwks_uri: str
    token_endpoint: str | None
    device_authorization_endpoint: str | None  # RFC 8628, section 4
    authorization_endpoint: str | None = None  # where a person signs in with a browser


def discovery_url(issuer: str) -> str:
    """Where the document is (section 4.1)."""
    return issuer.rstrip("/") + "/.well-known/openid-configuration"


def read_discovery(document: bytes, issuer: str) -> Discovered:
    """Raises ValueError, a sentence, for what is no such document, or is another issuer's (section 4.3)."""
    try:
        found = orjson.loads(document)
    except orjson.JSONDecodeError:
        raise ValueError("its discovery document is no JSON") from None
    if not isinstance(found, dict):
        raise ValueError("its discovery document is no object")
    if found.get("issuer") != issuer:
        raise ValueError(f"its discovery document is not of the issuer {issuer}")
    jwks_uri = _address(found, "jwks_uri")
    if jwks_uri is None:
        raise ValueError("its discovery document has no jwks_uri")
    others = ("token_endpoint", "device_authorization_endpoint", "authorization_endpoint")
    return Discovered(jwks_uri, *(_address(found, name) for name in others))


def _address(document: dict[str, Any], name: str) -> str | None:
    found = document.get(name)
    if found is None:
        return None
    if not isinstance(found, str):
        raise ValueError(f"the {name} of its discovery document is no text")
    try:
        return provider_url(found)
    except ValueError as error:
        raise ValueError(f"the {name} of its discovery document is {error}") from None
