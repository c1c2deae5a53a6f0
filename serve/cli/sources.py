"""What `load` is given: files, folders and standard input, found, named and decompressed."""

import io
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from graphdb.content_coding import DAMAGES, CountedReads, decompressed
from graphdb.errors import InvalidParameter, RdfSyntaxError, RequestError
from graphdb.rdf.formats import RdfSyntax
from serve.cli.console import CommandError, UsageError

__all__ = ["Source", "find_sources", "named_syntax"]


@dataclass(frozen=True, slots=True)
class Source:
    """One RDF document to load; path None is standard input."""

    path: Path | None
    syntax: RdfSyntax

    def __str__(self) -> str:
        return str(self.path) if self.path else "standard input"

    @property
    def size_bytes(self) -> int | None:
        """Bytes before decompression; None for standard input."""
        return self.path.stat().st_size if self.path else None

    @contextmanager
    def open(self, report: Callable[[int], None]) -> Iterator[IO[bytes]]:
        """The document's bytes, decompressed; report is told of bytes as they are read from the disk.

        Raises CommandError, also when what is read turns out to be damaged or malformed.
        """
        try:
            with self._open_raw() as raw:
                yield decompressed(CountedReads(raw, report))
        except DAMAGES as error:
            raise CommandError(f"{self}: damaged compressed file: {error}") from None
        except RdfSyntaxError as error:
            raise CommandError(f"{self}: {error}") from None
        except OSError as error:
            raise CommandError(f"{self}: {error.strerror or error}") from None

    def _open_raw(self) -> IO[bytes]:
        # Standard input stays open: it is not ours.
        return (
            self.path.open("rb", buffering=0) if self.path else io.FileIO(sys.stdin.fileno(), closefd=False)
        )


def find_sources(paths: list[str], syntax_name: str | None) -> list[Source]:
    """Every document in the files and folders named; "-" is standard input.

    Folders are searched through and through for endings that we know; what they hold besides is left alone.
    Raises UsageError, CommandError.
    """
    syntax = named_syntax(syntax_name) if syntax_name else None
    sources = [source for path in paths for source in _find(path, syntax)]
    if not sources:
        raise CommandError(f"no RDF files in {', '.join(paths)}")
    return sources


def _find(name: str, syntax: RdfSyntax | None) -> Iterator[Source]:
    if name == "-":
        if syntax is None:
            raise UsageError("standard input needs --format")
        yield Source(None, syntax)
        return
    path = Path(name)
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.is_file() and _syntax_of(file))
        yield from (Source(file, _syntax_of(file) or RdfSyntax.N_QUADS) for file in files)
        return
    if not path.exists():
        raise CommandError(f"{name}: no such file or folder")
    try:
        yield Source(path, syntax or RdfSyntax.from_path(path))
    except InvalidParameter as error:
        raise UsageError(f"{error}; or say --format") from None


def _syntax_of(path: Path) -> RdfSyntax | None:
    try:
        return RdfSyntax.from_path(path)
    except InvalidParameter:
        return None


def named_syntax(name: str) -> RdfSyntax:
    """A syntax by file ending ("ttl") or media type."""
    try:
        return RdfSyntax.from_media_type(name) if "/" in name else RdfSyntax.from_path(Path(f"x.{name}"))
    except RequestError:
        endings = ", ".join(ending for syntax in RdfSyntax for ending in syntax.file_extensions)
        raise UsageError(f"--format {name}: give a media type or one of {endings}") from None
