"""Entries of a directory: names that compare, SIDs of octets, and the principal that an entry is."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ldap3.core.exceptions import LDAPInvalidDnError
from ldap3.operation.search import parse_filter
from ldap3.utils.dn import parse_dn

from graphdb.access.directory_users import DirectoryUsers, UserEntry, security_identifier, user_filter
from graphdb.access.permissions import Permission, Roles
from graphdb.config.access import Ldap
from graphdb.config.distinguished_names import canonical_name
from tests.support.slapd import sid_octets

EQUAL = [
    ("cn=admins,ou=groups,dc=example,dc=org", "CN=Admins, OU=Groups , DC=example,DC=ORG"),
    ("cn=a;ou=b", "cn=a,ou=b"),
    (r"cn=Smith\, John", r"cn=smith\2c john"),
    (r"cn=Smith\, John", r"cn=Smith\2C  John"),
    (r"cn=\ lead", r"cn=\20lead"),
    (r"cn=L\C3\BCneburg", "cn=l\u00fcneburg"),
    ("cn=Lu\u0308neburg", "cn=L\u00fcneburg"),
    ("cn=a+uid=b,dc=x", "uid=b + cn=a,dc=x"),
    ("2.5.4.3=a,0.9.2342.19200300.100.1.25=x", "cn=a,dc=x"),
    ("commonName=a,organizationalUnitName=b", "cn=a,ou=b"),
    ("cn=#0C0141", "cn=a"),
    ("cn=a=b", r"cn=a\=b"),
    ("", ""),
    ("cn=", "cn="),
]
DIFFERENT = [
    ("cn=admins,dc=x", "cn=admins,dc=y"),
    ("cn=admins,dc=x", "cn=admins"),
    ("cn=admins,dc=x", "dc=x,cn=admins"),
    (r"cn=a\,dc=x", "cn=a,dc=x"),
    (r"cn=a\+uid=b", "cn=a+uid=b"),
    ("cn=a,cn=b", "cn=a+cn=b"),
    ("cn=a b", "cn=ab"),
    (r"cn=\23414243", "cn=#414243"),
]


@pytest.mark.parametrize(("one", "other"), EQUAL)
def test_names_of_one_entry(one: str, other: str) -> None:
    assert canonical_name(one) == canonical_name(other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_names_of_two_entries(one: str, other: str) -> None:
    assert canonical_name(one) != canonical_name(other)


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "=x",
        "cn=a,",
        ",cn=a",
        "cn=a,,dc=x",
        'cn=a"b',
        r"cn=a\x",
        "cn=a\\",
        r"cn=\C3",
        "cn=a<b",
        "c n=a",
        "cn=a\0",
    ],
)
def test_what_is_no_name(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        canonical_name(text)


@pytest.mark.parametrize("text", ["2.5.4.3=a", "cn=#0C0141", "cn=a=b", "cn=", "cn=a;ou=b"])
def test_names_that_ldap3_does_not_read(text: str) -> None:
    """The reason why names are read here; all but the last are of RFC 4514, that one of RFC 2253."""
    canonical_name(text)
    with pytest.raises(LDAPInvalidDnError):
        parse_dn(text)


VALUES = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1, max_size=12)


@given(st.lists(VALUES, min_size=1, max_size=4))
def test_whatever_is_escaped_is_the_value(values: list[str]) -> None:
    """All of it as octets, or only what has to be: the names are equal; and what another library splits."""
    octets = ["cn=" + "".join(f"\\{octet:02x}" for octet in value.encode()) for value in values]
    signs = ["cn=" + re.sub(r"""([ "#+,;<=>\\])""", r"\\\1", value) for value in values]
    assert canonical_name(",".join(octets)) == canonical_name(",".join(signs))
    assert len(canonical_name(",".join(octets))) == len(parse_dn(",".join(octets))) == len(values)


def test_keys_about_a_profile_are_ignored() -> None:
    profile = {"display_name_attribute": "displayName", "email_attribute": "mail"}
    assert users(**profile).attributes == users().attributes


SIDS = st.builds(
    lambda authority, parts: f"S-1-{authority}" + "".join(f"-{part}" for part in parts),
    st.integers(0, 2**48 - 1),
    st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=15),
)


@given(SIDS)
def test_sids_of_octets(text: str) -> None:
    assert security_identifier(sid_octets(text)) == text
    assert security_identifier(text.encode()) == text


def test_the_sid_of_the_specification_s_example() -> None:
    octets = bytes.fromhex("010500000000000515000000dcf4dc3b833d2b46828ba62800020000")
    assert security_identifier(octets) == "S-1-5-21-1004336348-1177238915-682003330-512"


@given(st.binary(max_size=80))
def test_octets_that_are_no_sid(octets: bytes) -> None:
    is_one = len(octets) >= 12 and octets[0] == 1 and len(octets) == 8 + 4 * octets[1] and octets[1] <= 15
    try:
        assert sid_octets(security_identifier(octets)) == octets
    except ValueError:
        assert not is_one
    else:
        assert is_one


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_name_in_a_filter_says_nothing_but_itself(name: str) -> None:
    text = user_filter("(&(uid={0})(objectClass=person))", name)
    assert re.fullmatch(r"\(&\(uid=[^()*\0]*\)\(objectClass=person\)\)", text, re.DOTALL)
    back = re.sub(r"\\([0-9a-f]{2})", lambda found: chr(int(found[1], 16)), text[7:-22])
    assert back == name
    parse_filter(text, None, False, False, None, False)  # type: ignore[no-untyped-call]


def users(**changed: object) -> DirectoryUsers:
    usual = {
        "server_url": "ldaps://directory.example",
        "bind_dn": "cn=service",
        "bind_password": "x",
        "user_search_base": "dc=example",
        "group_role_mapping": {"CN=Admins,DC=example": "admin", "cn=readers,dc=example": "reader"},
        "group_sid_mapping": {"cn=admins,dc=example": "S-1-5-32-544"},
    }
    return DirectoryUsers(Ldap.model_validate(usual | changed), Roles(None))


def test_a_user() -> None:
    entry = UserEntry(
        "uid=ada,dc=example",
        {
            "uid": [b"ada"],
            "memberof": [b"cn=admins, dc=example", b"cn=unknown,dc=example", b"no name", b"\xff\xfe"],
            "objectsid": [sid_octets("S-1-5-21-1-2-3-1001")],
        },
    )
    found = users().principal("ADA", entry, ["S-1-5-21-1-2-3-512"])
    assert (found.name, found.provider, found.permission) == ("ada", "ldap", Permission.ADMIN)
    assert found.roles == {"admin"}
    assert found.sids == {"S-1-5-32-544", "S-1-5-21-1-2-3-1001", "S-1-5-21-1-2-3-512"}


def test_a_user_of_no_group_and_a_filter_that_names_no_attribute() -> None:
    found = users(user_search_filter="(|(cn=*{0})(x={0}y))").principal("ada", UserEntry("cn=x", {}), [])
    assert (found.name, found.permission, found.roles) == ("ada", Permission.NONE, frozenset())


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("server_url", "http://x", "an address of a directory"),
        ("server_url", "ldap://user@x", "an address of a directory"),
        ("server_url", "ldap://x:0", "an address of a directory"),
        ("server_url", "ldap://x/dc=y", "an address of a directory"),
        ("server_url", "ldap://x:99999", "Port out of range"),
        ("user_search_base", "people", "is no distinguished name"),
        ("user_search_filter", "uid", "pattern"),
        ("group_role_mapping", {"admins": "admin"}, "is no distinguished name"),
        ("group_sid_mapping", {"cn=a": "S-1"}, "pattern"),
        ("bind_password", "", "at least 1"),
        ("ca_cert_file", __file__, "holds no certificates"),
    ],
)
def test_settings_that_cannot_be(key: str, value: object, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        users(**{key: value})
