"""`graphdb load`: RDF documents into a running service, or into the data directory of a stopped one."""

from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer

from serve.cli.client import Client, Endpoint, Refused
from serve.cli.console import CommandError, LoadProgress, out, progress
from serve.cli.profiles import ProfileName
from serve.cli.sources import Source, find_sources
from serve.cli.upload import upload

__all__ = ["load", "load_online"]


def load(
    files: Annotated[
        list[str], typer.Argument(help="Files, folders, or - for standard input.", metavar="FILE...")
    ],
    graph: Annotated[
        str | None, typer.Option(help="Put triples into this named graph.", metavar="IRI")
    ] = None,
    syntax: Annotated[
        str | None,
        typer.Option("--format", help="File ending or media type; else the file's name tells.", metavar="F"),
    ] = None,
    data_dir: Annotated[
        Path | None,
        typer.Option(help="Load offline into this directory; the service must not run.", metavar="DIR"),
    ] = None,
    endpoint: Endpoint = None,
    profile: ProfileName = None,
) -> None:
    """Load RDF documents, compressed by gzip or Zstandard or not."""
    sources = find_sources(files, syntax)
    started = perf_counter()
    with progress(_title(sources), _total_bytes(sources)) as shown:
        if data_dir is None:
            load_online(endpoint, profile, sources, graph, shown)
        else:
            # Opens stores, which the other commands have no need of.
            from serve.cli.offline_load import load_offline

            load_offline(data_dir, sources, graph, shown)
    seconds = perf_counter() - started
    done = "read" if data_dir else "added"
    out.print(
        f"{_count(shown.quads, 'quad')} {done} from {_count(len(sources), 'file')} in {seconds:.1f} s "
        f"({shown.quads / seconds:,.0f} quads/s)"
    )


def load_online(
    endpoint: str | None, profile: str | None, sources: list[Source], graph: str | None, shown: LoadProgress
) -> None:
    """Add the documents, one after the other, to the service (see `find_target`). Raises CommandError."""
    with Client(endpoint, profile) as client:
        for source in sources:
            try:
                upload(client, source, graph, shown)
            except Refused as error:
                raise CommandError(f"{source}: {error}") from None


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _title(sources: list[Source]) -> str:
    return str(sources[0]) if len(sources) == 1 else f"{len(sources):,} files"


def _total_bytes(sources: list[Source]) -> int | None:
    sizes = [source.size_bytes for source in sources]
    return None if None in sizes else sum(size for size in sizes if size is not None)
