"""`graphdb dump`: the whole dataset, or one graph, as RDF."""

import gzip
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from backports import zstd

from graphdb.errors import InvalidParameter
from graphdb.rdf.formats import RdfSyntax
from serve.cli.client import Client, past_params
from serve.cli.console import CommandError, UsageError, progress, say, write_bytes
from serve.cli.options import AsOf, Endpoint, ProfileName
from serve.cli.sources import named_syntax

__all__ = ["dump"]

Write = Callable[[bytes], object]


def dump(
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File to write; .gz and .zst compress. Else standard output."),
    ] = None,
    syntax: Annotated[
        str | None,
        typer.Option(
            "--format", help="File ending or media type; else the file's name tells, else nq.", metavar="F"
        ),
    ] = None,
    graph: Annotated[
        str | None, typer.Option(help='Only this graph; "default" is the default graph.', metavar="IRI")
    ] = None,
    as_of: AsOf = None,
    endpoint: Endpoint = None,
    profile: ProfileName = None,
) -> None:
    """Write every quad of one consistent state."""
    chosen = _choose_syntax(output, syntax, graph)
    params = _target(graph) | past_params(as_of)
    with (
        Client(endpoint, profile) as client,
        client.stream("GET", "/data", accept=chosen.media_type, params=params) as response,
        _open_output(output) as write,
        progress("dump", None) as shown,
    ):
        for chunk in response.iter_bytes():
            write(chunk)
            shown.read(len(chunk))
    if output:
        say(f"{output}: {output.stat().st_size:,} bytes")


def _target(graph: str | None) -> dict[str, str]:
    if graph is None:
        return {"dataset": "all"}
    return {"default": ""} if graph == "default" else {"graph": graph}


def _choose_syntax(output: Path | None, name: str | None, graph: str | None) -> RdfSyntax:
    if name:
        chosen = named_syntax(name)
    else:
        try:
            chosen = RdfSyntax.from_path(output) if output else _default_syntax(graph)
        except InvalidParameter as error:
            raise UsageError(f"{error}; or say --format") from None
    if graph is None and not chosen.carries_graphs:
        raise UsageError(
            f"{chosen.file_extension} carries no named graphs: take nq, trig or one graph (--graph default)"
        )
    return chosen


def _default_syntax(graph: str | None) -> RdfSyntax:
    return RdfSyntax.N_QUADS if graph is None else RdfSyntax.N_TRIPLES


@contextmanager
def _open_output(path: Path | None) -> Iterator[Write]:
    """A place to write to. A file gets its name only when it is whole: half a dump never looks like one."""
    if path is None:
        yield write_bytes
        return
    draft = path.with_name(f".{path.name}.part")
    try:
        with _open_compressed(draft, path.suffix.lower()) as write:
            yield write
        draft.replace(path)
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}") from None
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def _open_compressed(draft: Path, ending: str) -> Iterator[Write]:
    with draft.open("wb") as file:
        if ending == ".gz":
            with gzip.GzipFile(filename="", fileobj=file, mode="wb", compresslevel=6) as compressed:
                yield compressed.write
        elif ending == ".zst":
            with zstd.ZstdFile(file, "wb") as compressed:
                yield compressed.write
        else:
            yield file.write
