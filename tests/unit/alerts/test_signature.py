"""The headers of a delivery, checked as a receiver would."""

import base64
import hashlib
import hmac

import pytest

from graphdb.alerts.signature import delivery_headers, signing_key

# the example of the specification of Standard Webhooks
EXAMPLE_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
EXAMPLE_BODY = b'{"test": 2432232314}'
EXAMPLE = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_the_published_example() -> None:
    headers = dict(
        delivery_headers("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, EXAMPLE_BODY, EXAMPLE_SECRET)
    )
    assert headers["webhook-signature"] == EXAMPLE
    assert headers["webhook-id"] == headers["Idempotency-Key"] == "msg_p5jXN8AQM9LWM0D4loKWxJek"


@pytest.mark.parametrize(
    "secret", ["a plain secret, größer", "whsec_" + base64.b64encode(b"k" * 24).decode()]
)
def test_a_receiver_can_check_it(secret: str) -> None:
    headers = dict(delivery_headers("d1", 5, b"{}", secret))
    expected = hmac.new(signing_key(secret), b"d1.5.{}", hashlib.sha256).digest()
    assert headers["webhook-signature"] == "v1," + base64.b64encode(expected).decode()
    assert headers["webhook-timestamp"] == "5"


def test_without_a_secret_it_is_not_signed() -> None:
    assert "webhook-signature" not in dict(delivery_headers("d1", 5, b"{}", None))
