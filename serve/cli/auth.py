"""`graphdb auth`: what the configuration of authentication is made of."""

import getpass
import json
import secrets
import sys
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from graphdb.access.api_keys import key_digest
from graphdb.access.credentials import PASSWORD_BYTES_MAX
from graphdb.access.passwords import hash_password
from graphdb.config.access import ApiKey
from serve.cli.console import UsageError, out, say

__all__ = ["auth"]

auth = typer.Typer(help="Sign in; make password hashes and API keys.", no_args_is_help=True)


@auth.command("hash-password")
def hash_a_password() -> None:
    """Ask for a password, or read one line of standard input, and print its Argon2id hash."""
    if sys.stdin.isatty():
        password = getpass.getpass("Password: ")
        if getpass.getpass("Again: ") != password:
            raise UsageError("these were two passwords")
    else:
        password = sys.stdin.readline().removesuffix("\n")
    if not password or len(password.encode()) > PASSWORD_BYTES_MAX:
        raise UsageError(f"a password has 1 to {PASSWORD_BYTES_MAX} bytes")
    out.print(hash_password(password), markup=False)


@auth.command("create-key")
def create_key(
    name: Annotated[str, typer.Option(help="Name of the key, for logs.")],
    role: Annotated[list[str] | None, typer.Option(help="A role of its holder; may be repeated.")] = None,
    sid: Annotated[list[str] | None, typer.Option(help="A SID of its holder; may be repeated.")] = None,
    expires_days: Annotated[int | None, typer.Option(min=1, max=36_500, help="Days until it ends.")] = None,
) -> None:
    """Make an API key: print it, once, and what the configuration is to know of it."""
    key = f"gdb_{secrets.token_urlsafe(32)}"
    ends = None
    if expires_days is not None:
        ends = (datetime.now(UTC) + timedelta(days=expires_days)).replace(microsecond=0)
    try:
        made = ApiKey(
            name=name,
            key_sha256=key_digest(key),
            roles=tuple(role or ()),
            sids=tuple(sid or ()),
            expires_at=ends,
        )
    except ValueError:
        raise UsageError("a name and roles are not empty, and SIDs are like S-1-5-21-1-2-3-1001") from None
    say("The key, which nobody can show again:")
    out.print(key, markup=False)
    say("For the configuration:")
    lines = [
        "[[authentication.api_keys]]",
        f"name = {_toml(made.name)}",
        f"key_sha256 = {_toml(made.key_sha256)}",
    ]
    lines += [
        f"{field} = {_toml(values)}" for field in ("roles", "sids") if (values := list(getattr(made, field)))
    ]
    if ends is not None:
        lines.append(f"expires_at = {ends.isoformat()}")
    for line in lines:
        say(line)


def _toml(value: str | list[str]) -> str:
    """JSON's texts and lists of them are TOML's as well."""
    return json.dumps(value, ensure_ascii=False)
