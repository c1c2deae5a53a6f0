"""The headers of a delivery, after Standard Webhooks: an id, the time, and what both and the body are signed
with.

Source: https://github.com/standard-webhooks/standard-webhooks, spec/standard-webhooks.md.
"""

import base64
import binascii
import hashlib
import hmac

from graphdb.errors import InvalidParameter

__all__ = ["delivery_headers", "signing_key"]

_PREFIX = "whsec_"


def signing_key(secret: str) -> bytes:
    """The key of a secret: what is encoded behind `whsec_`, else its UTF-8. Raises InvalidParameter."""
    if not secret.startswith(_PREFIX):
        return secret.encode()
    try:
        return base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    except binascii.Error:
        raise InvalidParameter("secret", f"what follows {_PREFIX} is not Base64") from None


def delivery_headers(
    delivery_id: str, time_s: int, body: bytes, secret: str | None
) -> tuple[tuple[str, str], ...]:
    """The headers of one attempt; time_s is now, since the Unix epoch. Without a secret it is not signed."""
    headers = [
        ("Content-Type", "application/json"),
        ("Idempotency-Key", delivery_id),
        ("webhook-id", delivery_id),
        ("webhook-timestamp", str(time_s)),
    ]
    if secret is not None:
        signed = b".".join((delivery_id.encode(), b"%d" % time_s, body))
        digest = hmac.digest(signing_key(secret), signed, hashlib.sha256)
        headers.append(("webhook-signature", f"v1,{base64.b64encode(digest).decode()}"))
    return tuple(headers)
