"""`graphdb health`."""

import json
from datetime import timedelta
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from serve.cli.client import Client, Endpoint
from serve.cli.console import RecordFormat, out, print_table
from serve.cli.credentials import ProfileName

__all__ = ["health"]


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
        table.add_row(key.replace("_", " "), Text(_show(key, value)))  # no markup: [::1]:7002 is an address
    return table


def _show(key: str, value: Any) -> str:
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
    return [f"{name.replace('_', ' ')}: {_show(name, part)}" for name, part in record.items()]
