"""`graphdb auth login`, `auth token` and `auth profiles`: a person signs in at an OpenID Connect provider."""

import json
from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from serve.cli.console import RecordFormat, UsageError, out, print_table, say
from serve.cli.credentials import DEFAULT_ENDPOINT, check_safe
from serve.cli.profiles import Profile, ProfileName, Profiles, ProfileStore
from serve.cli.provider import DeviceCode, Provider
from serve.cli.sign_in import granted_to, valid_profile

__all__ = ["login", "profiles", "token"]

_NAME, _SCOPE = "default", "openid offline_access"

profiles = typer.Typer(help="Show where you have signed in.", no_args_is_help=True)


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
