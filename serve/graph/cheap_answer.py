"""Answers to cheap queries, evaluated where they are asked for: on the event loop."""

from graphdb.rdf.pieces import CHUNK_BYTES
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.results import ResultFormat, write_answer
from graphdb.sparql.syntax import Query
from serve.backend import GraphReads

__all__ = ["answer_here"]

_WHOLE = Dataset()
# A row may be a few bytes here, where a row of the other formats has some forty.
_BYTES_MAX = {ResultFormat.CSV: 8_192, ResultFormat.TSV: 8_192}


class _TooLong(Exception):
    """Raised by the sink: this answer belongs to a reader."""


def answer_here(reads: GraphReads, query: Query, fmt: ResultFormat) -> tuple[bytes, int] | None:
    """Evaluate a cheap query; None once the answer turns out to be longer than one chunk (64 kB, or 8 kB).

    Gives the whole answer, and the log index that it was read at or after.
    Blocks for the time that one chunk takes, a few milliseconds, and as long as the engine takes to read a
    single term, which a literal of megabytes makes longer.
    Raises what `GraphReads.query` and `write_answer` raise.
    """
    body = b""
    bytes_max = _BYTES_MAX.get(fmt, CHUNK_BYTES)

    def sink(chunk: bytes) -> None:
        nonlocal body
        if len(chunk) >= bytes_max:
            raise _TooLong
        body = chunk

    evaluated = reads.query(query, _WHOLE)
    try:
        write_answer(evaluated.answer, fmt, sink, bytes_max)
    except _TooLong:
        return None
    return body, evaluated.snapshot_index
