"""Signed tokens, and what those may try who have no key to sign with."""

import hmac
import json
from base64 import urlsafe_b64encode
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from joserfc import jwt
from joserfc.jwk import ECKey, OctKey, OKPKey, RSAKey

from graphdb.access.permissions import Permission, Roles
from graphdb.access.tokens import LEEWAY_S, SignedTokens
from graphdb.config.access import Jwt
from graphdb.errors import ConfigError, NotAuthenticated

NOW = 1_800_000_000
KEY = RSAKey.generate_key(2048)
OTHER = RSAKey.generate_key(2048)
PUBLIC = KEY.as_pem(private=False)
CLAIMS = {
    "iss": "https://issuer.example",
    "aud": "graphdb",
    "sub": "ada",
    "exp": NOW + 60,
    "roles": ["writer", "unknown"],
    "sids": ["S-1-5-21-1-2-3"],
}


def settings_of(directory: Path, algorithm: str, pem: bytes) -> Jwt:
    file = directory / "key.pem"
    file.write_bytes(pem)
    return Jwt.model_validate(
        {
            "algorithm": algorithm,
            "public_key_file": file,
            "audience": "graphdb",
            "issuer": "https://issuer.example",
        }
    )


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> SignedTokens:
    return SignedTokens(settings_of(tmp_path_factory.mktemp("jwt"), "RS256", PUBLIC), PUBLIC, Roles(None))


def signed(key: Any = KEY, algorithm: str = "RS256", header: Any = None, **claims: Any) -> str:
    made = {name: value for name, value in (CLAIMS | claims).items() if value is not ...}
    return jwt.encode({"alg": algorithm, **(header or {})}, made, key, [algorithm])


def part(value: object) -> str:
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return urlsafe_b64encode(raw).decode().rstrip("=")


def test_a_token_says_who_it_is(tokens: SignedTokens) -> None:
    found = tokens.principal(signed(), NOW)
    assert (found.name, found.provider, found.permission) == ("ada", "jwt", Permission.WRITE)
    assert found.roles == {"writer", "unknown"}
    assert found.sids == {"S-1-5-21-1-2-3"}
    assert found.expires_at == NOW + 60


def test_a_token_signed_by_hand_is_one(tokens: SignedTokens) -> None:
    assert tokens.principal(signed_by_hand({"alg": "RS256", "kid": "x", "own": 1}), NOW).name == "ada"


ACCESS_TYPES = [
    "JWT",
    "jwt",
    "Jwt",
    "at+jwt",
    "AT+JWT",
    "application/jwt",
    "application/at+jwt",
    "Application/AT+Jwt",
]
OTHER_TYPES: list[object] = [
    "logout+jwt",
    "LOGOUT+JWT",
    "application/logout+jwt",
    "dpop+jwt",
    "secevent+jwt",
    "id+jwt",
    "JOSE",
    "at+jwt ",
    "text/jwt",
    "application/application/jwt",
    "application/",
    "",
    None,
    7,
    ["JWT"],
]


@pytest.mark.parametrize("media_type", ACCESS_TYPES)
def test_types_of_access_tokens(tokens: SignedTokens, media_type: str) -> None:
    assert tokens.principal(signed_by_hand({"alg": "RS256", "typ": media_type}), NOW).name == "ada"


@pytest.mark.parametrize("media_type", OTHER_TYPES)
def test_a_token_of_another_type_is_no_access_token(tokens: SignedTokens, media_type: object) -> None:
    with pytest.raises(NotAuthenticated, match=r"of another kind|malformed"):
        tokens.principal(signed_by_hand({"alg": "RS256", "typ": media_type}), NOW)


def test_a_logout_token_without_a_type(tokens: SignedTokens) -> None:
    """OpenID Connect Back-Channel Logout 1.0, section 2.4: `typ` is only recommended."""
    events: dict[str, object] = {"http://schemas.openid.net/event/backchannel-logout": {}}
    with pytest.raises(NotAuthenticated, match="no access token") as raised:
        tokens.principal(signed(events=events), NOW)
    assert not raised.value.is_attempt
    assert tokens.principal(signed(events=["a claim of one's own"]), NOW).name == "ada"


def test_roles_and_sids_need_not_be_there(tokens: SignedTokens) -> None:
    found = tokens.principal(signed(roles=..., sids=..., aud=["x", "graphdb"]), NOW)
    assert (found.roles, found.sids, found.permission) == (frozenset(), frozenset(), Permission.NONE)


def signed_by_hand(header: Any) -> str:
    """By the right key, with a header that a library would not sign."""
    text = f"{part(header)}.{part(CLAIMS)}"
    private = KEY.private_key
    assert private is not None
    return f"{text}.{part(private.sign(text.encode(), PKCS1v15(), SHA256()))}"


HS_WITH_PUBLIC_KEY = f"{part({'alg': 'HS256', 'typ': 'JWT'})}.{part(CLAIMS)}"
HS_WITH_PUBLIC_KEY += "." + part(hmac.new(PUBLIC, HS_WITH_PUBLIC_KEY.encode(), sha256).digest())
OWN_KEY = {"jwk": OTHER.as_dict(private=False)}


@pytest.mark.parametrize(
    "token",
    [
        f"{part({'alg': 'none'})}.{part(CLAIMS)}.",
        f"{part({'alg': 'None'})}.{part(CLAIMS)}.{part(b'x')}",
        f"{part({'typ': 'JWT'})}.{part(CLAIMS)}.{part(b'x')}",
        f"{part({'alg': ['RS256']})}.{part(CLAIMS)}.{part(b'x')}",
        f"{part(['alg'])}.{part(CLAIMS)}.{part(b'x')}",
        HS_WITH_PUBLIC_KEY,
        signed(OctKey.import_key(sha256(PUBLIC).digest()), "HS256"),
        signed(OTHER),
        signed(OTHER, header=OWN_KEY),
        signed(OTHER, header={"jku": "https://evil.example/jwks"}),
        signed(OTHER, header={"x5u": "https://evil.example/x"}),
        signed(OTHER, header={"kid": "../../dev/null"}),
        signed(KEY, "RS512"),
        signed(KEY, "PS256"),
        signed().rpartition(".")[0] + ".",
        signed().rpartition(".")[0],
        signed() + ".x.y",
        signed().replace(".", ".."),
        signed()[:-4] + "AAAA",
        part(CLAIMS),
        "",
        ".",
        "..",
        "a.b.c",
        "\u20ac.b.c",
        f"{part(b'[' * 10_000)}.{part(CLAIMS)}.{part(b'x')}",
        f"{part({'alg': 'RS256', 'x': 'x' * 10_000})}.{part(CLAIMS)}.{part(b'x')}",
        "x" * 1_000_000,
        signed_by_hand({"alg": "RS256", "crit": ["exp"], "exp": 1}),
        signed_by_hand({"alg": "RS256", "crit": ["b64"], "b64": False}),
    ],
)
def test_a_token_that_nobody_with_the_key_has_signed(tokens: SignedTokens, token: str) -> None:
    with pytest.raises(NotAuthenticated, match="malformed, or not of its issuer") as raised:
        tokens.principal(token, NOW)
    assert raised.value.is_attempt


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ({"exp": NOW - LEEWAY_S}, "expired"),
        ({"exp": ...}, "exp"),
        ({"exp": "tomorrow"}, "exp"),
        ({"exp": float("nan")}, "NumericDate"),
        ({"exp": float("inf")}, "NumericDate"),
        ({"exp": 10**400}, "no time"),
        ({"nbf": NOW + LEEWAY_S + 1}, "not yet valid"),
        ({"iat": NOW + LEEWAY_S + 1}, "future"),
        ({"iss": "https://evil.example"}, "iss"),
        ({"iss": ...}, "iss"),
        ({"aud": "other"}, "aud"),
        ({"aud": []}, "aud"),
        ({"aud": ...}, "aud"),
        ({"sub": ...}, "sub"),
        ({"sub": ""}, "sub"),
        ({"sub": 7}, "sub"),
        ({"sub": "x" * 1_000}, "sub"),
        ({"roles": "admin"}, "roles is no list"),
        ({"roles": {"admin": True}}, "roles is no list"),
        ({"roles": [["admin"]]}, "roles is no list"),
        ({"roles": ["x"] * 1_001}, "more than"),
        ({"sids": ["Everyone"]}, "no SID"),
        ({"sids": ["S-1-5-21-1\n"]}, "no SID"),
    ],
)
def test_claims_that_do_not_hold(tokens: SignedTokens, claims: dict[str, Any], reason: str) -> None:
    with pytest.raises(NotAuthenticated, match=reason) as raised:
        tokens.principal(signed(**claims), NOW)
    assert not raised.value.is_attempt


def test_clocks_may_differ_by_the_leeway_and_no_more(tokens: SignedTokens) -> None:
    tokens.principal(signed(exp=NOW - LEEWAY_S + 1), NOW)
    tokens.principal(signed(nbf=NOW + LEEWAY_S, iat=NOW + LEEWAY_S), NOW)


KEYS: dict[str, RSAKey | ECKey | OKPKey] = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), KEY),
    "ES256": ECKey.generate_key("P-256"),
    "ES384": ECKey.generate_key("P-384"),
    "EdDSA": OKPKey.generate_key("Ed25519"),
}


@pytest.mark.filterwarnings("ignore:EdDSA is deprecated")  # said where the test signs
@pytest.mark.parametrize("algorithm", KEYS)
def test_every_algorithm_of_the_configuration(algorithm: str, tmp_path: Path) -> None:
    pem = KEYS[algorithm].as_pem(private=False)
    made = SignedTokens(settings_of(tmp_path, algorithm, pem), pem, Roles(None))
    assert made.principal(signed(KEYS[algorithm], algorithm), NOW).name == "ada"


SHORT = (
    generate_private_key(65537, 1024)
    .public_key()
    .public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
)


@pytest.mark.parametrize(
    ("algorithm", "pem", "reason"),
    [
        ("RS256", b"nothing", "no PEM public key for RS256"),
        ("RS256", KEYS["ES256"].as_pem(private=False), "no PEM public key for RS256"),
        ("RS256", KEY.as_pem(private=True), "a private key"),
        ("RS256", SHORT, "2048 bits"),
        ("ES256", KEYS["ES384"].as_pem(private=False), "needs a key on P-256"),
        ("ES384", PUBLIC, "no PEM public key for ES384"),
        ("EdDSA", OKPKey.generate_key("X25519").as_pem(private=False), "needs a key on Ed25519"),
    ],
)
def test_a_key_that_does_not_fit_is_refused_at_the_start(
    algorithm: str, pem: bytes, reason: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=reason):
        SignedTokens(settings_of(tmp_path, algorithm, pem), pem, Roles(None))
