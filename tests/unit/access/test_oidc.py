"""Access tokens of a provider, and what those may try who have none of its keys."""

import hmac
import json
from base64 import urlsafe_b64encode
from hashlib import sha256
from typing import Any

import orjson
import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, OctKey, OKPKey, RSAKey

from graphdb.access.discovery import discovery_url, read_discovery
from graphdb.access.keys import KeyRing, KeySet, read_key_set
from graphdb.access.oidc import AccessTokens
from graphdb.access.permissions import Permission, Roles
from graphdb.access.principal import Principal
from graphdb.access.tokens import VerifiedTokens
from graphdb.config.access import Oidc
from graphdb.errors import NotAuthenticated

NOW = 1_800_000_000
ISSUER = "https://issuer.example/realms/graphs"
RSA, EC, ED = RSAKey.generate_key(2048), ECKey.generate_key("P-256"), OKPKey.generate_key("Ed25519")
OTHER = RSAKey.generate_key(2048)
CLAIMS: dict[str, Any] = {
    "iss": ISSUER,
    "aud": ["account", "graphdb"],
    "sub": "ada",
    "exp": NOW + 60,
    "realm_access": {"roles": ["writers", "offline_access"]},
    "https://claims.example/sids": ["S-1-5-21-1-2-3"],
}


def published(key: RSAKey | ECKey | OKPKey, **members: Any) -> dict[str, Any]:
    return {**key.as_dict(private=False), **members}


def key_set(*keys: Any) -> KeySet:
    return read_key_set(orjson.dumps({"keys": keys}))


KEYS = key_set(
    published(RSA, kid="rsa"), published(EC, kid="ec", alg="ES256"), published(ED, kid="ed", use="sig")
)


def settings(**changed: Any) -> Oidc:
    return Oidc.model_validate(
        {
            "issuer_url": ISSUER,
            "client_id": "cli",
            "audience": "graphdb",
            "roles_claim": "realm_access.roles",
            "sids_claim": "https://claims.example/sids",
            **changed,
        }
    )


def signed(key: Any = RSA, algorithm: str = "RS256", header: Any = None, **claims: Any) -> str:
    made = {name: value for name, value in (CLAIMS | claims).items() if value is not ...}
    return jwt.encode({"alg": algorithm, "kid": "rsa", **(header or {})}, made, key, [algorithm])


def principal(token: str, keys: KeySet = KEYS, **changed: Any) -> Principal:
    """As the service goes about it, with keys that are at hand."""
    tokens = AccessTokens(settings(**changed), Roles(None))
    header = tokens.header(token, NOW)
    key = keys.find(header.kid, header.algorithm)
    if key is None:
        raise NotAuthenticated("no such key")
    return tokens.principal(token, header, key, NOW)


def part(value: object) -> str:
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return urlsafe_b64encode(raw).decode().rstrip("=")


def test_a_token_says_who_it_is() -> None:
    found = principal(signed(), role_mapping={"writers": "writer"})
    assert (found.name, found.provider, found.permission) == ("ada", "oidc", Permission.WRITE)
    assert found.roles == {"writer"}
    assert found.sids == {"S-1-5-21-1-2-3"}
    assert found.expires_at == NOW + 60


@pytest.mark.parametrize(
    ("claims", "changed", "roles"),
    [
        ({}, {}, {"writers", "offline_access"}),
        ({}, {"role_mapping": {"others": "admin"}}, set()),
        ({"realm_access": {"roles": "writers"}}, {}, {"writers"}),
        ({"realm_access": {"roles": None}}, {}, set()),
        ({"realm_access": ["roles"]}, {}, set()),
        ({"realm_access": ...}, {}, set()),
        ({"realm_access.roles": ["flat"]}, {}, {"flat"}),
        ({"a": {"b": {"c": ["deep"]}}}, {"roles_claim": "a.b.c"}, {"deep"}),
    ],
)
def test_where_roles_are_found(claims: dict[str, Any], changed: dict[str, Any], roles: set[str]) -> None:
    assert principal(signed(**claims), **changed).roles == roles


@pytest.mark.filterwarnings("ignore:EdDSA is deprecated")  # said where the test signs
@pytest.mark.parametrize(
    ("key", "algorithm", "kid"),
    [(RSA, "RS512", "rsa"), (RSA, "PS256", "rsa"), (EC, "ES256", "ec"), (ED, "EdDSA", "ed")],
)
def test_the_key_is_found_by_kid_and_algorithm(key: Any, algorithm: str, kid: str) -> None:
    assert principal(signed(key, algorithm, {"kid": kid})).name == "ada"


def test_a_token_without_kid_means_the_only_key_of_its_algorithm() -> None:
    token = jwt.encode({"alg": "RS256"}, CLAIMS, RSA)
    assert principal(token).name == "ada"
    with pytest.raises(NotAuthenticated, match="no such key"):
        principal(token, key_set(published(RSA, kid="a"), published(OTHER, kid="b")))


@pytest.mark.parametrize("media_type", ["JWT", "at+jwt", "application/at+JWT"])
def test_types_of_access_tokens(media_type: str) -> None:
    assert principal(signed(header={"typ": media_type})).name == "ada"


def test_a_logout_token_without_a_type() -> None:
    events: dict[str, object] = {"http://schemas.openid.net/event/backchannel-logout": {}}
    with pytest.raises(NotAuthenticated, match="no access token") as raised:
        principal(signed(events=events))
    assert not raised.value.is_attempt


PUBLIC = RSA.as_pem(private=False)
HS_WITH_PUBLIC_KEY = f"{part({'alg': 'HS256', 'kid': 'rsa'})}.{part(CLAIMS)}"
HS_WITH_PUBLIC_KEY += "." + part(hmac.new(PUBLIC, HS_WITH_PUBLIC_KEY.encode(), sha256).digest())


@pytest.mark.parametrize(
    "token",
    [
        f"{part({'alg': 'none', 'kid': 'rsa'})}.{part(CLAIMS)}.",
        f"{part({'alg': 'None', 'kid': 'rsa'})}.{part(CLAIMS)}.{part(b'x')}",
        f"{part({'alg': ['RS256'], 'kid': 'rsa'})}.{part(CLAIMS)}.{part(b'x')}",
        f"{part({'alg': 'RS256', 'kid': 7})}.{part(CLAIMS)}.{part(b'x')}",
        f"{part({'alg': 'RS256', 'kid': 'rsa', 'typ': 7})}.{part(CLAIMS)}.{part(b'x')}",
        f"{part(['alg'])}.{part(CLAIMS)}.{part(b'x')}",
        HS_WITH_PUBLIC_KEY,
        signed(OctKey.import_key(sha256(PUBLIC).digest()), "HS256"),
        signed(OTHER),
        signed(OTHER, header={"jwk": OTHER.as_dict(private=False)}),
        signed(OTHER, header={"jku": "https://evil.example/jwks"}),
        signed(header={"typ": "logout+jwt"}),
        signed(header={"typ": "dpop+jwt"}),
        signed(header={"typ": "application/logout+jwt"}),
        signed(header={"typ": ""}),
        signed(header={"typ": "application/application/jwt"}),
        signed(iss="https://evil.example"),
        signed(iss=ISSUER + "/"),
        signed(iss=[ISSUER]),
        signed(iss=...),
        signed()[:-4] + "AAAA",
        signed().rpartition(".")[0] + ".",
        f"{part({'alg': 'RS256', 'kid': 'rsa'})}.{part([CLAIMS])}.{part(b'x')}",
        f"{part({'alg': 'RS256', 'kid': 'rsa'})}.{part(b'[' * 10_000)}.{part(b'x')}",
        f"{part(b'[' * 10_000)}.{part(CLAIMS)}.{part(b'x')}",
        f"{part({'alg': 'RS256', 'kid': 'x' * 20_000})}.{part(CLAIMS)}.{part(b'x')}",
        "\u20ac.b.c",
        "opaque",
        "..",
        "",
    ],
)
def test_a_token_that_nobody_with_a_key_has_signed(token: str) -> None:
    with pytest.raises(NotAuthenticated, match="malformed, or not of its issuer") as raised:
        principal(token)
    assert raised.value.is_attempt


@pytest.mark.parametrize(
    "token",
    [
        signed(EC, "ES256", {"kid": "rsa"}),
        signed(header={"kid": "ec"}),
        signed(header={"kid": "../../dev/null"}),
        signed(header={"kid": ""}),
    ],
)
def test_a_kid_of_no_key_or_of_one_for_another_algorithm(token: str) -> None:
    with pytest.raises(NotAuthenticated, match="no such key"):
        principal(token)


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ({"exp": NOW - 30}, "expired"),
        ({"exp": ...}, "exp"),
        ({"nbf": NOW + 31}, "not yet valid"),
        ({"iat": NOW + 31}, "future"),
        ({"aud": "other"}, "aud"),
        ({"aud": ...}, "aud"),
        ({"sub": ...}, "sub"),
        ({"realm_access": {"roles": {"admin": True}}}, "no list"),
        ({"realm_access": {"roles": ["x"] * 1_001}}, "more than"),
        ({"https://claims.example/sids": ["Everyone"]}, "no SID"),
    ],
)
def test_claims_that_do_not_hold(claims: dict[str, Any], reason: str) -> None:
    with pytest.raises(NotAuthenticated, match=reason) as raised:
        principal(signed(**claims))
    assert not raised.value.is_attempt


SHORT = {"kty": "RSA", "n": part(b"\xff" * 128), "e": "AQAB", "kid": "short"}


@pytest.mark.parametrize(
    "left_out",
    [
        published(OTHER, use="enc"),
        published(OTHER, key_ops=["encrypt"]),
        published(OTHER, key_ops="verify"),
        published(OTHER, alg="HS256"),
        published(OTHER, alg="ES256"),
        published(OTHER, alg=["RS256"]),
        published(OTHER, kid=7),
        OTHER.as_dict(private=True),
        OctKey.generate_key(256).as_dict(private=True),
        OKPKey.generate_key("X25519").as_dict(private=False),
        ECKey.generate_key("P-521").as_dict(private=False),
        {"kty": "RSA", "n": "AQAB"},
        {"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"},
        {"kty": ["RSA"]},
        SHORT,
        "RSA",
        None,
    ],
)
def test_keys_that_are_left_out(left_out: Any) -> None:
    assert len(key_set(left_out, published(RSA)).keys) == 1
    with pytest.raises(ValueError, match="none of its keys"):
        key_set(left_out)


@pytest.mark.parametrize(
    "document",
    [b"", b"[]", b"null", b"{}", b'{"keys": {}}', b'{"keys": []}', orjson.dumps({"keys": [{}] * 101})],
)
def test_what_is_no_key_set(document: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 each says why in its own words
        read_key_set(document)


def test_discovery() -> None:
    assert discovery_url("https://a.example/x/") == "https://a.example/x/.well-known/openid-configuration"
    found = read_discovery(
        orjson.dumps(
            {"issuer": ISSUER, "jwks_uri": "https://keys.example/", "token_endpoint": "http://[::1]/t"}
        ),
        ISSUER,
    )
    assert (found.jwks_uri, found.token_endpoint) == ("https://keys.example/", "http://[::1]/t")
    assert found.device_authorization_endpoint is None


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"issuer": ISSUER + "/"}, "not of the issuer"),
        ({"jwks_uri": None}, "no jwks_uri"),
        ({"jwks_uri": ["https://keys.example"]}, "no text"),
        ({"jwks_uri": "http://keys.example/"}, "https://"),
        ({"jwks_uri": "https://user:secret@keys.example/"}, "no address"),
        ({"token_endpoint": "https:///x"}, "no address"),
        ({"device_authorization_endpoint": "ftp://x.example/"}, "https://"),
    ],
)
def test_discovery_that_is_not_believed(changed: dict[str, Any], reason: str) -> None:
    document = {"issuer": ISSUER, "jwks_uri": "https://keys.example/"} | changed
    with pytest.raises(ValueError, match=reason):
        read_discovery(orjson.dumps(document), ISSUER)


@pytest.mark.parametrize(
    "issuer", ["http://issuer.example", "https://", "https://a@b.example", "issuer.example"]
)
def test_an_issuer_that_cannot_be_configured(issuer: str) -> None:
    with pytest.raises(ValueError, match="address of a provider"):
        settings(issuer_url=issuer)


def test_when_a_provider_is_asked_for_its_keys() -> None:
    ring = KeyRing(3_600)
    assert ring.wait_s(0) == 0
    ring.fail(0)
    assert (ring.has_failed, ring.wait_s(4), ring.wait_s(10)) == (True, 6, 0)
    ring.learn(KEYS, 20)
    assert (ring.has_failed, ring.wait_s(21), ring.wait_s(30)) == (False, 9, 0)
    assert ring.find("rsa", "RS256", 21) is not None
    assert ring.find("other", "RS256", 21) is None
    assert not ring.is_old(3_619)
    assert ring.is_old(3_620)
    ring.fail(3_620)
    assert ring.find("rsa", "RS256", 7_219) is not None
    assert ring.find("rsa", "RS256", 7_220) is None


def test_verified_tokens_are_kept_for_a_while_and_never_past_their_end() -> None:
    kept = VerifiedTokens()
    for lives_s, last_s in ((None, 59), (1_000, 59), (10, 9)):
        token = f"of {lives_s}"
        ada = Principal("ada", "oidc", expires_at=None if lives_s is None else NOW + lives_s)
        kept.keep(token, ada, NOW)
        assert kept.principal(token, NOW + last_s) is ada
        assert kept.principal(token, NOW + last_s + 1) is None
        assert kept.principal(token, NOW) is None
    kept.keep("again", ada, NOW)
    assert kept.principal("again", NOW - 1) is None  # the clock has been set back


def test_verified_tokens_are_bounded_in_number() -> None:
    kept, ada = VerifiedTokens(), Principal("ada", "oidc")
    for number in range(5_000):
        kept.keep(f"t{number}", ada, NOW)
    assert kept.principal("t0", NOW) is None
    assert kept.principal("t4999", NOW) is ada
