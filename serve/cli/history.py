"""`graphdb history`: takes what the law, or its owner, wants gone from the present and the past."""

import json
from typing import Annotated

import typer
from rich.table import Table

from serve.cli.client import Client
from serve.cli.console import RecordFormat, UsageError, out, print_table
from serve.cli.options import Endpoint, ProfileName

__all__ = ["history"]

history = typer.Typer(help="Purge a resource or a graph from all states; list purges.", no_args_is_help=True)


@history.command()
def purge(
    resource: Annotated[
        str | None,
        typer.Option("--resource", help="All statements in which this IRI stands.", metavar="IRI"),
    ] = None,
    graph: Annotated[
        str | None, typer.Option("--graph", help="The graph of this name.", metavar="IRI")
    ] = None,
    confirmed: Annotated[bool, typer.Option("--yes", help="Do not ask first.")] = False,
    endpoint: Endpoint = None,
    profile: ProfileName = None,
) -> None:
    """Take a resource or a graph from the present, the history and all files. It cannot be undone."""
    given = [(kind, iri) for kind, iri in (("resource", resource), ("graph", graph)) if iri is not None]
    if len(given) != 1:
        raise UsageError("give --resource or --graph")
    [(kind, iri)] = given
    if not confirmed:
        typer.confirm(f"Purge the {kind} {iri} from all states? This cannot be undone.", abort=True)
    with Client(endpoint, profile) as client:
        made = client.purge(kind, iri)
    if made["done"]:
        out.print(f"purged at log index {made['index']}", markup=False)
    else:
        nodes = ", ".join(map(str, made["waiting_nodes"]))
        out.print(
            f"purged at log index {made['index']}; files are still written anew on node {nodes}", markup=False
        )


@history.command()
def purges(
    output: Annotated[
        RecordFormat, typer.Option("--format", help="How the list is printed.")
    ] = RecordFormat.TABLE,
    endpoint: Endpoint = None,
    profile: ProfileName = None,
) -> None:
    """List the purges. What was purged is not shown."""
    with Client(endpoint, profile) as client:
        found = client.purges()
    if output is RecordFormat.JSON:
        out.print(json.dumps(found), markup=False)
        return
    table = Table("index", "scope", "purged at", "purged by", "done", show_edge=False, pad_edge=False)
    for one in found["purges"]:
        nodes = ", ".join(map(str, one["waiting_nodes"]))
        done = "yes" if one["done"] else f"not on node {nodes}"
        table.add_row(str(one["index"]), one["scope"], one["purged_at"], one["purged_by"] or "-", done)
    print_table(table)
