"""API keys, and passwords by Argon2id."""

import time
from datetime import UTC, datetime

import pytest
from argon2 import PasswordHasher

from graphdb.access.api_keys import ApiKeys, key_digest
from graphdb.access.passwords import Passwords, hash_password
from graphdb.access.permissions import Permission, Roles
from graphdb.access.principal import Principal
from graphdb.config.access import ApiKey, BasicUser
from graphdb.errors import ConfigError, NotAuthenticated

ROLES = Roles(None)
END = datetime(2030, 1, 1, tzinfo=UTC)
KEYS = ApiKeys(
    [
        ApiKey(name="robot", key_sha256=key_digest("one"), roles=("writer",), sids=("S-1-5-21-7",)),
        ApiKey(name="guest", key_sha256=key_digest("two"), roles=("reader",), expires_at=END),
    ],
    ROLES,
)
CHEAP = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
COSTLY = PasswordHasher(time_cost=4, memory_cost=32_768, parallelism=1)


def test_a_key_is_whose_it_is() -> None:
    found = KEYS.principal("one", 0)
    sids = frozenset({"S-1-5-21-7"})
    assert found == Principal("robot", "api_key", frozenset({"writer"}), sids, Permission.WRITE)


def test_a_key_ends() -> None:
    end = END.timestamp()
    assert KEYS.principal("two", end - 1).expires_at == end
    with pytest.raises(NotAuthenticated, match="expired") as raised:
        KEYS.principal("two", end)
    assert not raised.value.is_attempt


@pytest.mark.parametrize("key", ["", "three", key_digest("one"), "One"])
def test_an_unknown_key_is_a_failed_attempt(key: str) -> None:
    with pytest.raises(NotAuthenticated) as raised:
        KEYS.principal(key, 0)
    assert raised.value.is_attempt


def test_the_same_key_twice_is_refused() -> None:
    with pytest.raises(ConfigError, match="same key_sha256"):
        ApiKeys([ApiKey(name=name, key_sha256=key_digest("one")) for name in "ab"], ROLES)


def users(**passwords: str) -> list[BasicUser]:
    return [BasicUser(username=name, password_hash=hashed) for name, hashed in passwords.items()]


def test_a_password_is_its_users_alone() -> None:
    some = Passwords(users(ada=CHEAP.hash("pa:ss"), bob=hash_password("word")), ROLES)
    assert some.principal("ada", "pa:ss").name == "ada"
    assert some.principal("bob", "word").provider == "basic"
    for name, password in [("ada", "word"), ("bob", "pa:ss"), ("ADA", "pa:ss"), ("ada", ""), ("eve", "word")]:
        with pytest.raises(NotAuthenticated, match=r"^the user name or the password is wrong$") as raised:
            some.principal(name, password)
        assert raised.value.is_attempt


def test_without_users_nobody_comes_in() -> None:
    with pytest.raises(NotAuthenticated):
        Passwords([], ROLES).principal("ada", "")


def test_a_name_that_nobody_has_takes_as_long() -> None:
    some = Passwords(users(ada=COSTLY.hash("x"), bob=CHEAP.hash("x")), ROLES)

    def least_s(name: str) -> float:
        took = []
        for _ in range(5):
            began = time.thread_time()
            with pytest.raises(NotAuthenticated):
                some.principal(name, "wrong")
            took.append(time.thread_time() - began)
        return min(took)

    assert 0.5 < least_s("eve") / least_s("ada") < 2


@pytest.mark.parametrize(
    "hashed", ["$argon2id$", "$argon2id$v=19$m=8,t=1$x", "$argon2id$v=19$m=8,t=1,p=1$!!"]
)
def test_a_broken_hash_is_refused_at_once(hashed: str) -> None:
    with pytest.raises(ConfigError, match="password_hash of ada"):
        Passwords(users(ada=hashed), ROLES)
