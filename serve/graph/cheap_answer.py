"""Answers to cheap queries, evaluated where they are asked for: on the event loop."""

from graphdb.rdf.pieces import CHUNK_BYTES
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.results import ResultFormat, write_answer
from graphdb.sparql.syntax import Query
from serve.backend import Backend

__all__ = ["answer_here"]

_WHOLE = Dataset()


class _TooLong(Exception):
    """Raised by the sink: this answer belongs to a reader."""


def answer_here(backend: Backend, query: Query, fmt: ResultFormat) -> tuple[bytes, int] | None:
    """Evaluate a cheap query; None once the answer turns out to be longer than one chunk.

    Gives the whole answer, and the log index that it was read at or after.
    Blocks for the time that one chunk takes, about two milliseconds, whatever the data are.
    Raises what `Backend.query` and `write_answer` raise.
    """
    body = b""

    def sink(chunk: bytes) -> None:
        nonlocal body
        if len(chunk) >= CHUNK_BYTES:
            raise _TooLong
        body = chunk

    evaluated = backend.query(query, _WHOLE)
    try:
        write_answer(evaluated.answer, fmt, sink)
    except _TooLong:
        return None
    return body, evaluated.snapshot_index
