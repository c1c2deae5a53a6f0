"""`graphdb query`."""

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from serve.cli.client import Client, past_params
from serve.cli.console import CommandError, UsageError, out, print_table, say, write_bytes
from serve.cli.options import AsOf, Endpoint, ProfileName
from serve.cli.results import find_prefixes, print_explanation, results_table

__all__ = ["query", "read_text", "update"]

# Where the text of a query or update comes from: the argument, a file, or standard input.

_ENCODING = "utf-8-sig"  # without the byte order mark that some editors write


def read_text(text: str | None, file: Path | None) -> str:
    """The request's text. Without argument and file, or with "-", it is read from standard input."""
    if text is not None and file is not None:
        raise UsageError("give the text or --file, not both")
    if file is not None:
        try:
            return file.read_text(encoding=_ENCODING)
        except OSError as error:
            raise CommandError(f"{file}: {error.strerror}") from None
        except UnicodeDecodeError:
            raise CommandError(f"{file}: not UTF-8") from None
    if text is not None and text != "-":
        return text
    if text is None and sys.stdin.isatty():
        raise UsageError("give the text as argument, with --file, or on standard input")
    try:
        return sys.stdin.buffer.read().decode(_ENCODING)
    except UnicodeDecodeError:
        raise CommandError("standard input: not UTF-8") from None


# `graphdb query` and `graphdb update`.

# a longer table is not read by a person, and its columns cannot be measured while it streams
TABLE_ROWS_MAX = 1000


class QueryFormat(StrEnum):
    """What `query` prints; all but the table are the service's answer as it is."""

    TABLE = "table"
    JSON = "json"
    XML = "xml"
    CSV = "csv"
    TSV = "tsv"
    NDJSON = "ndjson"
    TURTLE = "turtle"
    NTRIPLES = "ntriples"
    CANONICAL = "canonical"


ACCEPT = {
    QueryFormat.TABLE: "application/sparql-results+json",
    QueryFormat.JSON: "application/sparql-results+json",
    QueryFormat.XML: "application/sparql-results+xml",
    QueryFormat.CSV: "text/csv",
    QueryFormat.TSV: "text/tab-separated-values",
    QueryFormat.NDJSON: "application/x-ndjson",
    QueryFormat.TURTLE: "text/turtle",
    QueryFormat.NTRIPLES: "application/n-triples",
    QueryFormat.CANONICAL: 'application/n-triples;profile="http://www.w3.org/ns/rdf-canon#c14n"',
}


class UpdateFormat(StrEnum):
    TEXT = "text"
    JSON = "json"


Text = Annotated[str | None, typer.Argument(help="The request; - or nothing reads it from standard input.")]
File = Annotated[Path | None, typer.Option("--file", "-f", help="Read the request from this file.")]


def query(
    text: Text = None,
    file: File = None,
    output: Annotated[
        QueryFormat,
        typer.Option(
            "--format", help="xml, csv, tsv, ndjson: SELECT; turtle, ntriples, canonical: CONSTRUCT."
        ),
    ] = QueryFormat.TABLE,
    prefixes: Annotated[bool, typer.Option(help="Shorten IRIs in the table by the query's prefixes.")] = True,
    explain: Annotated[
        bool, typer.Option("--explain", help="Evaluate it, but print how that went and why so.")
    ] = False,
    as_of: AsOf = None,
    endpoint: Endpoint = None,
    profile: ProfileName = None,
) -> None:
    """Ask a SPARQL query and print its answer."""
    request = read_text(text, file)
    params = {"explain": "true"} if explain else {}
    with (
        Client(endpoint, profile) as client,
        client.stream(
            "POST",
            "/sparql",
            accept=ACCEPT[output],
            content_type="application/sparql-query",
            content=request.encode(),
            params=params | past_params(as_of),
        ) as response,
    ):
        if output is not QueryFormat.TABLE:  # an explanation too is printed as it is then
            for chunk in response.iter_bytes():
                write_bytes(chunk)
            return
        response.read()
        answer = response.json()
    if explain:
        print_explanation(answer)
    else:
        _print_answer(answer, find_prefixes(request) if prefixes else {})


def _print_answer(answer: Any, prefixes: dict[str, str]) -> None:
    if isinstance(answer, list):  # CONSTRUCT and DESCRIBE: one N-Triples statement a member
        for statement in answer:
            out.print(statement, markup=False)
    elif "boolean" in answer:
        out.print("true" if answer["boolean"] else "false")
    else:
        rows = answer["results"]["bindings"]
        print_table(results_table(answer["head"]["vars"], rows[:TABLE_ROWS_MAX], prefixes))
        if len(rows) > TABLE_ROWS_MAX:
            say(f"the first {TABLE_ROWS_MAX:,} of {len(rows):,} rows; --format csv prints all")


def update(
    text: Text = None,
    file: File = None,
    output: Annotated[
        UpdateFormat, typer.Option("--format", help="How the confirmation is printed.")
    ] = UpdateFormat.TEXT,
    endpoint: Endpoint = None,
    profile: ProfileName = None,
) -> None:
    """Perform a SPARQL update, atomically."""
    request = read_text(text, file)
    with Client(endpoint, profile) as client:
        confirmation = client.update(request)
    if output is UpdateFormat.JSON:
        out.print(json.dumps(confirmation), markup=False)
        return
    try:
        count, index = confirmation["affected_triples"], confirmation["snapshot_index"]
    except KeyError:
        raise CommandError("the service answered without an update confirmation") from None
    out.print(f"{count:,} {'triple' if count == 1 else 'triples'} changed; the store is at index {index}")
