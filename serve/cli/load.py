"""`graphdb load`: RDF documents into a running service, or into the data directory of a stopped one."""

from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer

from serve.cli.console import UsageError, out, progress, title_of
from serve.cli.options import Endpoint, ProfileName
from serve.cli.sources import Source, find_sources

__all__ = ["load"]


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
    distributed: Annotated[
        bool,
        typer.Option(
            "--distributed", help="Parse on all nodes of the Ray cluster at RAY_ADDRESS, else here."
        ),
    ] = False,
    endpoint: Endpoint = None,
    profile: ProfileName = None,
) -> None:
    """Load RDF documents, compressed by gzip or Zstandard or not."""
    started = perf_counter()
    if distributed:
        if data_dir is not None:
            raise UsageError("--distributed loads into a running service, and --data-dir into a stopped one")
        from serve.cli.distributed_load import load_distributed  # Ray, of which other commands know nothing

        quads, files_read = load_distributed(endpoint, profile, files, syntax, graph)
    else:
        sources = find_sources(files, syntax)
        with progress(title_of(sources), _total_bytes(sources)) as shown:
            # Each knows what the other has no need of: HTTP, and stores.
            if data_dir is None:
                from serve.cli.online_load import load_online

                load_online(endpoint, profile, sources, graph, shown)
            else:
                from serve.cli.offline_load import load_offline

                load_offline(data_dir, sources, graph, shown)
        quads, files_read = shown.quads, len(sources)
    seconds = perf_counter() - started
    done = "read" if data_dir else "added"
    out.print(
        f"{_count(quads, 'quad')} {done} from {_count(files_read, 'file')} in {seconds:.1f} s "
        f"({quads / seconds:,.0f} quads/s)"
    )


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _total_bytes(sources: list[Source]) -> int | None:
    sizes = [source.size_bytes for source in sources]
    return None if None in sizes else sum(size for size in sizes if size is not None)
