"""Loading into a running service: one request where the document is small, else many."""

import tempfile
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import IO

from pyoxigraph import RdfFormat, serialize

from graphdb.rdf.formats import RdfSyntax
from graphdb.rdf.reading import read_quads
from serve.cli.client import BodyRefused, Client, Refused
from serve.cli.console import CommandError, LoadProgress
from serve.cli.sources import Source

__all__ = ["REQUEST_BYTES", "load_online", "upload"]

# Loading over HTTP: one request for a small document, several for a larger one.
#
# A document that is split must not have its blank nodes split: a label means one node within one request
# only. So statements with blank nodes are set aside and sent last, together, in one request.

REQUEST_BYTES = 64 << 20  # the body of one request; below the service's default limit
BATCH_QUADS = 20_000
LINE_SYNTAXES = {RdfSyntax.N_TRIPLES, RdfSyntax.N_TRIPLES_STAR, RdfSyntax.N_QUADS}


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


def upload(client: Client, source: Source, graph: str | None, progress: LoadProgress) -> None:
    """Add one document to the service's graph; graph None is the default graph and the document's own.

    A document that one request holds is added as a whole or not at all. Of a larger one that fails half-way a
    part is stored already, and loading it again is safe. Raises CommandError.
    """
    with source.open(progress.read) as stream:
        start = _read_fully(stream, REQUEST_BYTES)
        if len(start) < REQUEST_BYTES:
            try:
                _send(client, start, source.syntax, graph, progress)
                return
            except BodyRefused:
                pass  # the service's limit is lower than ours: in pieces, then
        _upload_in_pieces(client, source.syntax, _Joined(start, stream), graph, progress)


def _upload_in_pieces(
    client: Client, syntax: RdfSyntax, stream: "_Joined", graph: str | None, progress: LoadProgress
) -> None:
    if syntax in LINE_SYNTAXES:
        pieces: Iterable[bytes] = _line_pieces(stream)
    else:
        pieces, syntax = _as_lines(stream, syntax, graph or client.data_iri), RdfSyntax.N_QUADS
    with tempfile.TemporaryFile() as aside:
        for piece in pieces:
            _send_splitting(client, _without_blank_nodes(piece, aside), syntax, graph, progress)
        aside.seek(0)
        last = aside.read()
        if not last:
            return
        try:
            _send(client, last, syntax, graph, progress)
        except BodyRefused:
            raise CommandError(
                f"the statements with blank nodes are {len(last):,} bytes, more than the service takes in "
                "one request; they cannot be split: raise server.max_body_bytes, or load with --data-dir"
            ) from None


def _send(client: Client, body: bytes, syntax: RdfSyntax, graph: str | None, progress: LoadProgress) -> None:
    confirmation = client.merge(body, syntax.media_type, graph)
    progress.stored(int(confirmation["affected_triples"]))


def _send_splitting(
    client: Client, body: bytes, syntax: RdfSyntax, graph: str | None, progress: LoadProgress
) -> None:
    """Send lines, in halves where the service's limit is lower than ours."""
    if not body:
        return
    try:
        _send(client, body, syntax, graph, progress)
    except BodyRefused:
        middle = _line_end(body, len(body) // 2)
        if middle in (0, len(body)):
            raise
        _send_splitting(client, body[:middle], syntax, graph, progress)
        _send_splitting(client, body[middle:], syntax, graph, progress)


def _line_pieces(stream: "_Joined") -> Iterator[bytes]:
    """The stream in pieces of about REQUEST_BYTES that end where a line does."""
    rest = b""
    while chunk := stream.read(REQUEST_BYTES - len(rest) if len(rest) < REQUEST_BYTES else REQUEST_BYTES):
        rest += chunk
        end = max(rest.rfind(b"\n"), rest.rfind(b"\r")) + 1
        if end:
            yield rest[:end]
            rest = rest[end:]
    if rest:
        yield rest


def _as_lines(stream: "_Joined", syntax: RdfSyntax, base_iri: str) -> Iterator[bytes]:
    """The document as N-Quads, in pieces of a few megabytes. base_iri: as the service would use it."""
    quads = read_quads(stream, syntax, base_iri=base_iri)
    while batch := list(islice(quads, BATCH_QUADS)):
        yield serialize(batch, format=RdfFormat.N_QUADS) or b""


def _without_blank_nodes(piece: bytes, aside: IO[bytes]) -> bytes:
    """Split off the lines that may contain a blank node; other lines among them do no harm."""
    if b"_:" not in piece:
        return piece
    kept = []
    for line in piece.splitlines(keepends=True):
        if b"_:" in line:
            aside.write(line)
        else:
            kept.append(line)
    return b"".join(kept)


def _line_end(body: bytes, start: int) -> int:
    """The end of the line that position start is in."""
    end = body.find(b"\n", start)
    return end + 1 if end >= 0 else len(body)


def _read_fully(stream: IO[bytes], size: int) -> bytes:
    """size bytes, fewer only at the end of the stream."""
    parts = []
    while size and (part := stream.read(size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


class _Joined:
    """Bytes that were read already, and the stream that they came from."""

    def __init__(self, start: bytes, stream: IO[bytes]) -> None:
        self._start, self._stream = memoryview(start), stream

    def read(self, size: int) -> bytes:
        if self._start:
            part = bytes(self._start[:size])
            self._start = self._start[size:]
            return part
        return self._stream.read(size)
