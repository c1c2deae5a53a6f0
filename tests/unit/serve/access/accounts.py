"""Accounts of every kind for the tests of the door, and the headers that show their credentials."""

import time
from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from argon2 import PasswordHasher
from joserfc import jwt
from joserfc.jwk import ECKey

from graphdb.access.api_keys import key_digest
from graphdb.config import Settings

__all__ = ["KEYS", "ROLES", "basic", "key", "settings_of", "token"]

ROLES = ("admin", "writer", "reader", "stranger")
KEYS = {role: f"gdb_{role}" for role in ROLES}
_SIGNING = ECKey.generate_key("P-256")
_CHEAP = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)


def settings_of(directory: Path, server: dict[str, Any] | None = None, **authentication: Any) -> Settings:
    """Each role has a user of its name (the password is `of ROLE`), a key and tokens."""
    public_key = directory / "public.pem"
    public_key.write_bytes(_SIGNING.as_pem(private=False))
    users = [
        {"username": role, "password_hash": _CHEAP.hash(f"of {role}"), "roles": [role]} for role in ROLES
    ]
    keys = [{"name": role, "key_sha256": key_digest(KEYS[role]), "roles": [role]} for role in ROLES]
    jwt_settings = {
        "algorithm": "ES256",
        "public_key_file": public_key,
        "audience": "graphdb",
        "issuer": "tests",
    }
    providers = {"basic": {"enabled": True, "users": users}, "api_keys": keys, "jwt": jwt_settings}
    return Settings.model_validate(
        {
            "server": {"data_dir": directory, **(server or {})},
            "holonic": {"enabled": True},
            "authorization": {},
            "authentication": {"enabled": True, **providers, **authentication},
        }
    )


def basic(user: str, password: str | None = None) -> dict[str, str]:
    text = f"{user}:{f'of {user}' if password is None else password}"
    return {"Authorization": "Basic " + b64encode(text.encode()).decode()}


def key(role: str) -> dict[str, str]:
    return {"X-API-Key": KEYS[role]}


def token(role: str, lives_s: float = 86_400, bare: bool = False, sids: Sequence[str] = ()) -> Any:
    """The header, or the token alone; some are made long before their tests run, when these are collected."""
    claims = {"iss": "tests", "aud": "graphdb", "sub": role, "roles": [role], "exp": time.time() + lives_s}
    claims["sids"] = list(sids)
    made = jwt.encode({"alg": "ES256"}, claims, _SIGNING, ["ES256"])
    return made if bare else {"Authorization": f"Bearer {made}"}
