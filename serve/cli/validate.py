"""`graphdb validate`: a graph of the service against SHACL shapes."""

import json
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from pyoxigraph import Literal, RdfFormat, parse
from rich.table import Table
from rich.text import Text

from graphdb.errors import InvalidParameter
from graphdb.rdf.formats import RdfSyntax
from serve.cli.client import Client
from serve.cli.console import CommandError, UsageError, out, print_table, write_bytes
from serve.cli.options import AsOf, Endpoint, ProfileName
from serve.cli.results import find_prefixes, show_term
from serve.cli.sources import Source

__all__ = ["validate"]

RESULTS_MAX = 1000  # in the table
CONFORMS = "http://www.w3.org/ns/shacl#conforms"
_SHACL = {"sh": "http://www.w3.org/ns/shacl#"}


class ReportFormat(StrEnum):
    """What `validate` prints; all but the table are the service's answer as it is."""

    TABLE = "table"
    JSON = "json"
    TURTLE = "turtle"
    NTRIPLES = "ntriples"
    RDFXML = "rdfxml"
    JSONLD = "jsonld"


RDF_FORMATS = {
    ReportFormat.TURTLE: RdfFormat.TURTLE,
    ReportFormat.NTRIPLES: RdfFormat.N_TRIPLES,
    ReportFormat.RDFXML: RdfFormat.RDF_XML,
    ReportFormat.JSONLD: RdfFormat.JSON_LD,
}


def validate(
    shapes: Annotated[
        str | None,
        typer.Argument(help="File with the shapes; - is Turtle from standard input.", metavar="FILE"),
    ] = None,
    graph: Annotated[
        str | None,
        typer.Option(
            help='The graph to validate: IRI, "default", or "union" (all graphs together).',
            metavar="IRI",
        ),
    ] = None,
    shapes_graph: Annotated[
        str | None,
        typer.Option("--shapes-graph", help="Take the shapes from this graph of the service.", metavar="IRI"),
    ] = None,
    output: Annotated[
        ReportFormat, typer.Option("--format", help="How the report is printed.")
    ] = ReportFormat.TABLE,
    as_of: AsOf = None,
    endpoint: Endpoint = None,
    profile: ProfileName = None,
) -> None:
    """Validate a graph against SHACL shapes; the exit code is 0 only if it conforms."""
    if (shapes is None) == (shapes_graph is None):
        raise UsageError("give a file with shapes, or --shapes-graph")
    document, content_type = _read_shapes(shapes) if shapes is not None else (None, None)
    format_name = "json" if output is ReportFormat.TABLE else output.value
    parameters = {"format": format_name, "graph": graph, "shapes_graph": shapes_graph, "as_of": as_of}
    with (
        Client(endpoint, profile) as client,
        client.stream(
            "POST",
            "/shacl/validate",
            content=document,
            content_type=content_type,
            params={name: value for name, value in parameters.items() if value is not None},
        ) as response,
    ):
        answer = response.read()
    if output is ReportFormat.TABLE:
        _print_report(json.loads(answer), find_prefixes((document or b"").decode(errors="replace")) | _SHACL)
    else:
        write_bytes(answer)
    if not _conforms(answer, output):
        raise typer.Exit(1)


def _read_shapes(name: str) -> tuple[bytes, str]:
    """The document and its media type. Raises UsageError, CommandError."""
    source = Source(None, RdfSyntax.TURTLE) if name == "-" else _file(Path(name))
    with source.open(lambda _count: None) as document:
        return document.read(), source.syntax.media_type


def _file(path: Path) -> Source:
    if not path.is_file():
        raise CommandError(f"{path}: no such file")
    try:
        return Source(path, RdfSyntax.from_path(path))
    except InvalidParameter as error:
        raise UsageError(str(error)) from None


def _conforms(answer: bytes, output: ReportFormat) -> bool:
    if (rdf_format := RDF_FORMATS.get(output)) is None:
        return bool(json.loads(answer)["conforms"])
    found = (quad.object for quad in parse(answer, rdf_format) if quad.predicate.value == CONFORMS)
    return Literal(True) in found


def _print_report(report: Mapping[str, Any], prefixes: Mapping[str, str]) -> None:
    results = report["results"]
    if results:
        print_table(_results_table(results[:RESULTS_MAX], prefixes))
    if len(results) > RESULTS_MAX:
        out.print(f"the first {RESULTS_MAX:,} of {len(results):,} results; --format json prints all")
    stats = report["stats"]
    found = [_counted(stats[name], name) for name in ("violations", "warnings", "infos") if stats[name]]
    fault = "does not conform: " + (", ".join(found) or _counted(len(results), "results"))
    verdict = "conforms" if report["conforms"] else fault
    nodes = _counted(stats["focus_nodes_validated"], "focus nodes")
    constraints = _counted(stats["constraints_checked"], "constraints")
    out.print(f"{verdict} ({nodes}, {constraints}, {stats['duration_ms']:,} ms)")


def _counted(count: int, nouns: str) -> str:
    return f"{count:,} {nouns.removesuffix('s') if count == 1 else nouns}"


def _results_table(results: list[dict[str, str | None]], prefixes: Mapping[str, str]) -> Table:
    table = Table(show_edge=False, pad_edge=False)
    for heading in ("focus node", "path", "severity", "message", "shape"):
        table.add_column(heading, overflow="fold")
    for result in results:
        node, path, severity, shape = (
            Text(_shown(result[name], prefixes))
            for name in ("focusNode", "resultPath", "severity", "sourceShape")
        )
        table.add_row(node, path, severity, Text(result["message"] or ""), shape)
    return table


def _shown(text: str | None, prefixes: Mapping[str, str]) -> str:
    """IRIs shortened; blank nodes, literals and longer paths as the service writes them."""
    if text is None or text.startswith(("_:", '"')) or not text.isprintable() or set(text) & set('<> ()"|'):
        return text or ""
    return show_term({"type": "uri", "value": text}, prefixes)
