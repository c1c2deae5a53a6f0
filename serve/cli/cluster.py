"""`graphdb health` and `graphdb cluster`: the state of a running node; the members of its cluster."""

import json
import re
from datetime import timedelta
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from serve.cli.client import Client
from serve.cli.console import RecordFormat, UsageError, out, print_table
from serve.cli.options import Endpoint, ProfileName

__all__ = ["cluster", "health"]

cluster = typer.Typer(help="Show the cluster, change its members, choose who leads.", no_args_is_help=True)
NodeId = Annotated[int, typer.Argument(help="Number of the node.", metavar="NODE_ID", min=1)]
_NODE_AT = re.compile(r"([1-9][0-9]*)@(.+)", re.ASCII)


def health(
    output: Annotated[
        RecordFormat, typer.Option("--format", help="How the record is printed.")
    ] = RecordFormat.TABLE,
    endpoint: Endpoint = None,
    profile: ProfileName = None,
) -> None:
    """Say how the service is; the exit code is 0 only if it is healthy."""
    with Client(endpoint, profile) as client:
        record = client.health()
    if output is RecordFormat.JSON:
        out.print(json.dumps(record), markup=False)
    else:
        print_table(_health_table(record))
    if record["status"] != "healthy":
        raise typer.Exit(1)


def _health_table(record: dict[str, Any]) -> Table:
    table = Table(show_header=False, show_edge=False, pad_edge=False, box=None)
    for key, value in record.items():
        table.add_row(
            key.replace("_", " "), Text(_show_member(key, value))
        )  # no markup: [::1]:7002 is an address
    return table


def _show_member(key: str, value: Any) -> str:
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case int() if key == "uptime_seconds":
            return str(timedelta(seconds=value))
        case list():
            return "\n".join(", ".join(_parts(member)) for member in value) or "-"
        case dict():
            return "\n".join(_parts(value))
        case "":
            return "-"
    return str(value)


def _parts(record: dict[str, Any]) -> list[str]:
    return [f"{name.replace('_', ' ')}: {_show_member(name, part)}" for name, part in record.items()]


@cluster.command()
def status(
    output: Annotated[
        RecordFormat, typer.Option("--format", help="How the report is printed.")
    ] = RecordFormat.TABLE,
    endpoint: Endpoint = None,
    profile: ProfileName = None,
) -> None:
    """Show the members, as the queried node knows them."""
    with Client(endpoint, profile) as client:
        report = client.cluster("GET")
    if output is RecordFormat.JSON:
        out.print(json.dumps(report), markup=False)
        return
    print_table(_members_table(report))
    out.print(_summary(report), markup=False)


@cluster.command()
def add(
    member: Annotated[
        str, typer.Argument(help="The node's number and address, such as 4@10.0.0.4:7002.", metavar="NODE")
    ],
    endpoint: Endpoint = None,
    profile: ProfileName = None,
) -> None:
    """Expect a new node, or a known one at another address; it gets its vote when it has caught up."""
    found = _NODE_AT.fullmatch(member)
    if not found:
        raise UsageError(f"{member}: not NODE_ID@HOST:PORT, such as 4@10.0.0.4:7002")
    node_id, address = int(found[1]), found[2]
    with Client(endpoint, profile) as client:
        client.cluster("POST", "/members", {"node_id": node_id, "address": address})
    out.print(f"node {node_id} at {address} may come; it votes when it has caught up", markup=False)


@cluster.command()
def remove(node_id: NodeId, endpoint: Endpoint = None, profile: ProfileName = None) -> None:
    """Take a node out. It must be wiped before it may come back."""
    with Client(endpoint, profile) as client:
        client.cluster("DELETE", f"/members/{node_id}")
    out.print(f"node {node_id} is no member now", markup=False)


@cluster.command()
def lead(node_id: NodeId, endpoint: Endpoint = None, profile: ProfileName = None) -> None:
    """Hand leadership over, as before a planned stop of the node that leads."""
    with Client(endpoint, profile) as client:
        client.cluster("POST", "/leader", {"node_id": node_id})
    out.print(f"node {node_id} leads", markup=False)


def _members_table(report: dict[str, Any]) -> Table:
    table = Table(show_edge=False, pad_edge=False)
    for name in ("node", "address", "role", "reachable", "log index", "behind"):
        table.add_column(name, justify="left" if name in ("address", "role", "reachable") else "right")
    for member in report["members"]:
        index = _log_index(member, report)
        behind = None if index is None else max(0, report["commit_index"] - index)
        reachable = "yes" if member["reachable"] else "no"
        address = Text(member["address"])  # an IPv6 address would be read as markup
        table.add_row(
            str(member["node_id"]),
            address,
            member["role"],
            reachable,
            _show_index(index),
            _show_index(behind),
        )
    return table


def _log_index(member: dict[str, Any], report: dict[str, Any]) -> int | None:
    """The last log index of a member. Only the leader knows those of other members."""
    own = member["node_id"] == report["node_id"]
    index: int | None = report["last_index"] if own else member["matched_index"]
    return index


def _summary(report: dict[str, Any]) -> str:
    leader = "nobody leads" if report["leader_id"] is None else f"node {report['leader_id']} leads"
    cluster_is = f"{leader} in term {report['term']}, index {report['commit_index']} is committed"
    node_is = f"node {report['node_id']}: index {report['applied_index']} applied"
    return f"{cluster_is}; {node_is}, elections seen: {report['elections']}"


def _show_index(value: int | None) -> str:
    return "-" if value is None else str(value)
