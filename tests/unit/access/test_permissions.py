"""What roles give, and what of a principal reaches another process."""

import pytest

from graphdb.access.permissions import Permission, Roles
from graphdb.access.principal import EVERYONE, NODE, Principal
from graphdb.config.access import Authorization
from graphdb.errors import Forbidden

ROLES = Roles(Authorization(role_permissions={"curator": "Write", "guest": "None", "boss": "Admin"}))


@pytest.mark.parametrize(
    ("roles", "permission"),
    [
        ((), Permission.NONE),
        (("nobody",), Permission.NONE),
        (("Reader",), Permission.NONE),
        (("guest",), Permission.NONE),
        (("reader",), Permission.READ),
        (("guest", "reader"), Permission.READ),
        (("reader", "curator"), Permission.WRITE),
        (("writer",), Permission.WRITE),
        (("admin",), Permission.ADMIN),
        (("reader", "boss"), Permission.ADMIN),
    ],
)
def test_the_highest_permission_counts(roles: tuple[str, ...], permission: Permission) -> None:
    assert ROLES.permission(roles) is permission


def test_without_a_section_there_are_three_roles() -> None:
    assert [Roles(None).permission([role]) for role in ("reader", "writer", "admin", "boss")] == [1, 2, 3, 0]


def test_a_role_may_be_given_another_permission() -> None:
    assert Roles(Authorization(role_permissions={"writer": "Read"})).permission(["writer"]) is Permission.READ


def test_a_permission_includes_those_below() -> None:
    writer = Principal("ada", "basic", permission=Permission.WRITE)
    writer.require(Permission.READ)
    writer.require(Permission.WRITE)
    with pytest.raises(Forbidden, match=r"^ada does not have the permission Admin, which this needs$"):
        writer.require(Permission.ADMIN)


@pytest.mark.parametrize(
    "principal",
    [
        EVERYONE,
        NODE,
        Principal("a\n\u20ac", "jwt", frozenset({"x", "y"}), frozenset({"S-1-5-21-7"}), Permission.READ, 1.5),
    ],
)
def test_a_principal_is_the_same_in_another_process(principal: Principal) -> None:
    text = principal.to_json()
    assert text.isascii()
    assert text.isprintable()
    assert Principal.from_json(text) == principal


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '["a","b",[],[],"ROOT",null]', '["a","b","c",[],"READ",null]']
)
def test_what_is_no_principal(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - of JSON too
        Principal.from_json(text)
