"""Users of a real directory: who comes in as whom, and what happens when it does not answer."""

import asyncio
import socket
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from actors.access.directory import Directory
from graphdb.access.credentials import PasswordGiven
from graphdb.access.permissions import Permission, Roles
from graphdb.access.principal import Principal
from graphdb.config.access import Authorization, Ldap
from graphdb.errors import LockedOut, NotAuthenticated, Overloaded, UnavailableError
from tests.support.certificate import certificate_and_key, needs_openssl
from tests.support.slapd import BASE, MANAGER, SECRET, Slapd, needs_slapd, sid_octets

pytestmark = [needs_slapd, needs_openssl]

DOMAIN = "S-1-5-21-1004336348-1177238915-682003330"
ROLES = Roles(Authorization(role_permissions={"curator": "Write"}))


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slapd]:
    path = tmp_path_factory.mktemp("slapd")
    slapd = Slapd(path, *certificate_and_key(path))
    try:
        ada = slapd.add_user("ada", "of ada", sid_octets(f"{DOMAIN}-1001"), mail="ada@example.org")
        rob = slapd.add_user("rob", "of rob")
        for name in ("o'neill (x)", "j\u00fcrgen", "star*"):
            slapd.add_user(name, f"of {name}")
        slapd.add_user("mute", None)
        slapd.add_user("twin", "of twin", employeeNumber="7")
        slapd.add_user("other", "of other", employeeNumber="7")
        slapd.add_user("broken", "of broken", b"\x01\x05\x00\x00")
        slapd.add_group("cn=Curators\\, all", ada, rob, sid=sid_octets(f"{DOMAIN}-513"))
        slapd.add_group("cn=admins", ada)
        yield slapd
    finally:
        slapd.close()


def configured(url: str, **changed: Any) -> Ldap:
    usual = {
        "server_url": url,
        "bind_dn": MANAGER,
        "bind_password": SECRET,
        "user_search_base": f"ou=people,{BASE}",
        "timeout_seconds": 30,  # of a directory that answers, on a machine that is busy
        "pool_size": 2,
        # neither escaped nor written as the directory does it
        "group_role_mapping": {f"CN=curators\\2C  ALL, OU=Groups,{BASE.replace('dc', 'DC')}": "curator"},
        "group_sid_mapping": {f"cn=admins,ou=groups,{BASE}": "S-1-5-32-544"},
    }
    return Ldap.model_validate(usual | changed)


async def no_check() -> None:
    return None


def ask(settings: Ldap, *given: tuple[str, str]) -> list[Principal | Exception]:
    """At once, of one directory."""

    async def asked() -> list[Principal | BaseException]:
        asking = Directory(settings, ROLES)
        try:
            each = [asking.principal(PasswordGiven(*one), no_check) for one in given]
            return await asyncio.gather(*each, return_exceptions=True)
        finally:
            asking.stop()

    found = asyncio.run(asked())
    assert all(isinstance(one, Principal | Exception) for one in found)
    return found  # type: ignore[return-value]


def test_roles_and_sids(directory: Slapd) -> None:
    ada, rob = ask(configured(directory.url), ("ada", "of ada"), ("rob", "of rob"))
    sids = {f"{DOMAIN}-1001", f"{DOMAIN}-513", "S-1-5-32-544"}
    assert ada == Principal("ada", "ldap", frozenset({"curator"}), frozenset(sids), Permission.WRITE)
    assert rob == Principal(
        "rob", "ldap", frozenset({"curator"}), frozenset({f"{DOMAIN}-513"}), Permission.WRITE
    )


@pytest.mark.parametrize("written", ["ada", "ADA", "  Ada "])
def test_one_name_however_it_is_written(directory: Slapd, written: str) -> None:
    """Else whoever writes it differently would be somebody of whom no rule speaks."""
    (found,) = ask(configured(directory.url), (written, "of ada"))
    assert isinstance(found, Principal)
    assert found.name == "ada"


def test_a_filter_with_several_attributes(directory: Slapd) -> None:
    settings = configured(directory.url, user_search_filter="(|(uid={0})(mail={0}))")
    (found,) = ask(settings, ("ada@example.org", "of ada"))
    assert isinstance(found, Principal)
    assert found.name == "ada"


@pytest.mark.parametrize("name", ["o'neill (x)", "j\u00fcrgen", "star*"])
def test_names_with_signs_of_filters(directory: Slapd, name: str) -> None:
    right, wrong = ask(configured(directory.url), (name, f"of {name}"), (name, "of ada"))
    assert isinstance(right, Principal)
    assert isinstance(wrong, NotAuthenticated)


@pytest.mark.parametrize(
    ("name", "password"),
    [
        ("ada", "wrong"),
        ("ada", ""),  # would be an anonymous bind, which succeeds
        ("nobody", "of ada"),
        ("nobody", ""),
        ("mute", "x"),
        ("*", "of ada"),
        ("ad*", "of ada"),
        ("x)(uid=ada", "of ada"),
        ("ada)(|(uid=*", "of ada"),
        pytest.param("ada\0", "of ada", id="with a zero"),
        ("\\61da", "of ada"),
        pytest.param("a" * 10_000, "of ada", id="a long name"),
    ],
)
def test_who_is_not_let_in(directory: Slapd, name: str, password: str) -> None:
    (found,) = ask(configured(directory.url), (name, password))
    assert isinstance(found, NotAuthenticated)
    assert found.is_attempt
    assert str(found) == "the user name or the password is wrong"


def test_a_name_of_two_entries_lets_nobody_in(directory: Slapd, caplog: pytest.LogCaptureFixture) -> None:
    settings = configured(directory.url, user_search_filter="(employeeNumber={0})")
    (found,) = ask(settings, ("7", "of twin"))
    assert isinstance(found, NotAuthenticated)
    assert "2 entries of the directory are named '7'" in caplog.text


def test_a_sid_that_cannot_be_read_lets_nobody_in(directory: Slapd) -> None:
    """Without it, what is kept from its holder might be shown, or the other way round."""
    (found,) = ask(configured(directory.url), ("broken", "of broken"))
    assert isinstance(found, UnavailableError)


def test_tls_with_a_private_authority(directory: Slapd, tmp_path_factory: pytest.TempPathFactory) -> None:
    certificate = directory.certificate
    (found,) = ask(configured(directory.tls_url, ca_cert_file=certificate), ("ada", "of ada"))
    assert isinstance(found, Principal)
    # an authority that nobody knows, one that is another's, and a name that is not the server's
    (stranger,) = ask(configured(directory.tls_url), ("ada", "of ada"))
    other, _ = certificate_and_key(tmp_path_factory.mktemp("other"))
    (others,) = ask(configured(directory.tls_url, ca_cert_file=other), ("ada", "of ada"))
    elsewhere = directory.tls_url.replace("localhost", "127.0.0.2")
    (misnamed,) = ask(configured(elsewhere, ca_cert_file=certificate), ("ada", "of ada"))
    for one in (stranger, others, misnamed):
        assert isinstance(one, UnavailableError)


def test_it_comes_back(directory: Slapd, caplog: pytest.LogCaptureFixture) -> None:
    async def asked() -> list[object]:
        asking = Directory(configured(directory.url), ROLES)

        async def one() -> object:
            try:
                return (await asking.principal(PasswordGiven("ada", "of ada"), no_check)).name
            except UnavailableError as error:
                return error.retry_after_s

        try:
            found = [await one()]
            directory.stop()
            found += [await one(), await one()]
            directory.start()
            found.append(await one())
            # a kept connection that is gone costs nobody an answer
            directory.stop()
            directory.start()
            return [*found, await one()]
        finally:
            asking.stop()

    assert asyncio.run(asked()) == ["ada", 5, 5, "ada", "ada"]
    said = [record.message for record in caplog.records if record.name == "actors.access.directory"]
    assert [text.partition(",")[0] for text in said] == [
        "the directory cannot be asked",
        "the directory answers again",
    ]


@pytest.mark.parametrize("scheme", ["ldap", "ldaps"])
def test_a_server_that_says_nothing(scheme: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        url = f"{scheme}://127.0.0.1:{mute.getsockname()[1]}"
        began = time.monotonic()
        (found,) = ask(configured(url, timeout_seconds=1), ("ada", "of ada"))
    assert isinstance(found, UnavailableError)
    assert time.monotonic() - began < 25, "it waited for other than timeout_seconds"


def test_more_than_there_are_connections(directory: Slapd) -> None:
    """They wait for their turn, for a bounded time; the event loop goes on meanwhile."""
    many = ask(configured(directory.url, pool_size=1), *[("ada", "of ada")] * 20)
    assert [isinstance(one, Principal) for one in many] == [True] * 20


def test_a_directory_that_hangs_while_all_connections_are_busy(directory: Slapd) -> None:
    async def asked() -> list[object]:
        asking = Directory(configured(directory.url, pool_size=1, timeout_seconds=1), ROLES)
        is_answered = asyncio.Event()

        async def keeps_its_turn() -> None:
            """Until the other one has its answer, for both wait for the same limit."""
            await is_answered.wait()

        async def waiting() -> Principal:
            try:
                return await asking.principal(PasswordGiven("rob", "of rob"), no_check)
            finally:
                is_answered.set()

        try:
            first = asking.principal(PasswordGiven("ada", "of ada"), keeps_its_turn)
            return [type(one) for one in await asyncio.gather(first, waiting(), return_exceptions=True)]
        finally:
            asking.stop()

    directory.hang()
    try:
        assert asyncio.run(asked()) == [UnavailableError, Overloaded]
    finally:
        directory.wake()


def test_the_lockout_is_asked_when_it_is_one_s_turn(directory: Slapd) -> None:
    async def asked() -> list[object]:
        asking = Directory(configured(directory.url, pool_size=1), ROLES)
        checked = 0

        async def check() -> None:
            nonlocal checked
            checked += 1
            if checked > 1:
                raise LockedOut(9)

        try:
            each = [asking.principal(PasswordGiven("ada", "wrong"), check) for _ in range(3)]
            return [type(one) for one in await asyncio.gather(*each, return_exceptions=True)]
        finally:
            asking.stop()

    assert asyncio.run(asked()) == [NotAuthenticated, LockedOut, LockedOut]


def test_the_service_s_own_password_is_not_tried_again_and_again(
    directory: Slapd, caplog: pytest.LogCaptureFixture
) -> None:
    settings = configured(directory.url, bind_password="wrong", pool_size=1)
    found = ask(settings, *[("ada", "of ada")] * 3)
    assert [type(one) for one in found] == [UnavailableError] * 3
    assert "bind_dn" in caplog.text
    assert SECRET not in caplog.text


def test_a_search_base_that_is_not_there(directory: Slapd, caplog: pytest.LogCaptureFixture) -> None:
    (found,) = ask(configured(directory.url, user_search_base=f"ou=none,{BASE}"), ("ada", "of ada"))
    assert isinstance(found, UnavailableError)
    assert "there is nothing at ou=none" in caplog.text


def test_an_unknown_user_takes_as_long_as_a_known_one(directory: Slapd) -> None:
    async def asked() -> tuple[float, float]:
        asking = Directory(configured(directory.url), ROLES)

        async def seconds(name: str) -> float:
            began = time.perf_counter()
            with pytest.raises(NotAuthenticated):
                await asking.principal(PasswordGiven(name, "wrong"), no_check)
            return time.perf_counter() - began

        try:
            taken: dict[str, list[float]] = {"ada": [], "nobody": []}
            for _ in range(60):
                for name, times in taken.items():
                    times.append(await seconds(name))
            return statistics.median(taken["ada"]), statistics.median(taken["nobody"])
        finally:
            asking.stop()

    known, unknown = asyncio.run(asked())
    assert unknown > known * 0.7


def test_referrals_are_followed_where_that_is_configured(
    directory: Slapd, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    near = Slapd(tmp_path)
    try:
        referral = f"{directory.url}/ou=people,{BASE}??sub"
        near.add(f"ou=far,ou=people,{BASE}", ["referral", "extensibleObject"], ref=referral)
        (found,) = ask(configured(near.url, follow_referrals=True), ("ada", "of ada"))
        (not_found,) = ask(configured(near.url), ("ada", "of ada"))
    finally:
        near.close()
    assert isinstance(found, Principal)
    assert found.name == "ada"
    assert isinstance(not_found, NotAuthenticated)
