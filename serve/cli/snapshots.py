"""`graphdb snapshots`: names for states of the past, which are then kept."""

import json
from typing import Annotated

import typer
from rich.table import Table

from serve.cli.client import Client
from serve.cli.console import RecordFormat, out, print_table
from serve.cli.options import Endpoint, ProfileName

__all__ = ["snapshots"]

snapshots = typer.Typer(
    help="Name states of the past, and keep them; list and delete the names.", no_args_is_help=True
)
Name = Annotated[str, typer.Argument(help="Name of the state.", metavar="NAME")]


@snapshots.command("list")
def list_all(
    output: Annotated[
        RecordFormat, typer.Option("--format", help="How the list is printed.")
    ] = RecordFormat.TABLE,
    endpoint: Endpoint = None,
    profile: ProfileName = None,
) -> None:
    """List the named states."""
    with Client(endpoint, profile) as client:
        found = client.named_states("GET")
    if output is RecordFormat.JSON:
        out.print(json.dumps(found), markup=False)
        return
    table = Table(
        "name", "index", "named at", "named by", "kept", "history MB", show_edge=False, pad_edge=False
    )
    for one in found["snapshots"]:
        kept = "yes" if one["kept"] else "no"
        table.add_row(
            one["name"],
            str(one["index"]),
            one["named_at"],
            one["named_by"] or "-",
            kept,
            str(one["history_bytes"] >> 20),
        )
    print_table(table)


@snapshots.command()
def create(
    name: Name,
    at: Annotated[
        str | None,
        typer.Option(
            "--at",
            help="The state: a log index, a time, or another name; else the present.",
            metavar="MOMENT",
        ),
    ] = None,
    endpoint: Endpoint = None,
    profile: ProfileName = None,
) -> None:
    """Name a state, and keep it."""
    with Client(endpoint, profile) as client:
        made = client.named_states("PUT", name, None if at is None else {"at": at})
    out.print(f"{made['name']} is the state at log index {made['index']}", markup=False)


@snapshots.command()
def delete(name: Name, endpoint: Endpoint = None, profile: ProfileName = None) -> None:
    """Take a state's name away. It is then kept for as long as others are."""
    with Client(endpoint, profile) as client:
        client.named_states("DELETE", name)
    out.print(f"{name} names no state now", markup=False)
