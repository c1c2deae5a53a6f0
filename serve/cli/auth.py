"""`graphdb auth`: what authentication is configured with, and how a person signs in."""

import getpass
import json
import secrets
import sys
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from graphdb.access.api_keys import key_digest
from graphdb.access.credentials import PASSWORD_BYTES_MAX
from graphdb.access.passwords import hash_password
from graphdb.config.access import ApiKey
from serve.cli.console import RecordFormat, UsageError, out, print_table, say
from serve.cli.credentials import DEFAULT_ENDPOINT, check_safe
from serve.cli.options import ProfileName
from serve.cli.profiles import Profile, Profiles, ProfileStore, granted_to, valid_profile
from serve.cli.provider import DeviceCode, Provider

__all__ = ["auth", "login", "profiles", "token"]

# `graphdb auth`: what the configuration of authentication is made of.

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


# `graphdb auth login`, `auth token` and `auth profiles`: a person signs in at an OpenID Connect provider.

_NAME, _SCOPE = "default", "openid offline_access"

profiles = typer.Typer(help="Show where you have signed in.", no_args_is_help=True)
auth.add_typer(profiles, name="profiles")


@auth.command()
def login(
    profile: Annotated[
        str | None, typer.Option(help=f"Name to sign in by, `{_NAME}` unless given.", metavar="NAME")
    ] = None,
    endpoint: Annotated[str | None, typer.Option(help="Address of the service.", metavar="URL")] = None,
    issuer: Annotated[
        str | None, typer.Option(help="Address of the provider, as the service knows it.", metavar="URL")
    ] = None,
    client_id: Annotated[
        str | None, typer.Option(help="The provider's name for this client.", metavar="ID")
    ] = None,
    scope: Annotated[
        str | None, typer.Option(help=f"What is asked for, `{_SCOPE}` unless given.", metavar="SCOPES")
    ] = None,
    default: Annotated[bool, typer.Option("--default", help="Sign in so without --profile too.")] = False,
) -> None:
    """Sign in with a browser, on this machine or another; a known profile remembers the other options."""
    store, name = ProfileStore(), profile or _NAME
    if not name.isprintable():
        raise UsageError("a name of a profile is printable")
    wanted = _wanted(store.read(), name, endpoint, issuer, client_id, scope)
    check_safe(wanted.endpoint)
    with Provider(wanted.issuer, wanted.client_id) as provider:
        code = provider.begin(wanted.scope)
        _tell(code)
        made = granted_to(wanted, provider.wait(code))
    with store.changing() as found:
        found.profiles[name] = made
        if default or profile is None:
            found.default = name
    say(f"Signed in to {made.endpoint} as the profile {name}{_until(made)}.")


@auth.command()
def token(
    profile: ProfileName = None,
    refresh: Annotated[
        bool, typer.Option("--refresh", help="Have a new one, though the old one holds.")
    ] = False,
) -> None:
    """Print the access token of a profile; one that has expired is renewed before."""
    store = ProfileStore()
    name = store.read().chosen(profile)
    out.print(valid_profile(store, name, refresh).access_token, markup=False)


@profiles.command("list")
def list_profiles(
    output: Annotated[
        RecordFormat, typer.Option("--format", help="How the list is printed.")
    ] = RecordFormat.TABLE,
) -> None:
    """List the profiles, without their tokens."""
    found = ProfileStore().read()
    if output is RecordFormat.JSON:
        out.print(json.dumps([_record(found, name) for name in sorted(found.profiles)]), markup=False)
        return
    if not found.profiles:
        say("there are none: graphdb auth login")
        return
    table = Table(show_edge=False, pad_edge=False)
    for column in ("profile", "default", "endpoint", "issuer", "client", "token until"):
        table.add_column(column)
    for name in sorted(found.profiles):
        one, until = found.profiles[name], _end(found.profiles[name])
        cells = (name, "yes" if name == found.default else "", one.endpoint, one.issuer, one.client_id)
        table.add_row(*(Text(cell) for cell in cells), "-" if until is None else until)
    print_table(table)


def _wanted(
    known: Profiles,
    name: str,
    endpoint: str | None,
    issuer: str | None,
    client_id: str | None,
    scope: str | None,
) -> Profile:
    """The profile to sign in to, without tokens yet."""
    before = known.profiles.get(name)
    if before is not None:
        issuer, client_id = issuer or before.issuer, client_id or before.client_id
    if not issuer or not client_id:
        raise UsageError(f"the profile {name} is new: give --issuer and --client-id")
    return Profile(
        endpoint=(endpoint or (before.endpoint if before else DEFAULT_ENDPOINT)).rstrip("/"),
        issuer=issuer,
        client_id=client_id,
        scope=scope or (before.scope if before else _SCOPE),
        access_token="",
        refresh_token=None,
        expires_at=None,
    )


def _tell(code: DeviceCode) -> None:
    say(f"Open {code.verification_uri} and enter the code {code.user_code}")
    if code.verification_uri_complete:
        say(f"or open {code.verification_uri_complete}")
    say("Waiting ...")


def _record(found: Profiles, name: str) -> dict[str, object]:
    one = found.profiles[name]
    return {
        "profile": name,
        "default": name == found.default,
        "endpoint": one.endpoint,
        "issuer": one.issuer,
        "client_id": one.client_id,
        "scope": one.scope,
        "expires_at": _end(one),
        "has_refresh_token": one.refresh_token is not None,
    }


def _end(profile: Profile) -> str | None:
    if profile.expires_at is None:
        return None
    return datetime.fromtimestamp(profile.expires_at, UTC).isoformat(timespec="seconds")


def _until(profile: Profile) -> str:
    end = _end(profile)
    if end is None:
        return ""
    return f"; renewed by itself after {end}" if profile.refresh_token else f", until {end}"
