"""`ObjectRows`: the subjects and objects of a predicate as rows of text, written by the engine while they are
read.

The engine writes to a pipe, on a thread of its own. So it waits for its reader where that is slow, and ends
when the reader closes the pipe.
"""

import os
from contextlib import suppress
from fcntl import F_SETPIPE_SZ, fcntl
from threading import Thread
from typing import Final

from pyoxigraph import NamedNode, QueryResultsFormat, QuerySolutions

from graphdb.store.engine_query import Ask

__all__ = ["ObjectRows"]

_QUERY: Final = "SELECT ?s ?o {{ ?s {predicate} ?o }}"
_PIECE_BYTES: Final = 1 << 16
_PIPE_BYTES: Final = 1 << 20  # some 50 ms of the engine, which a reader may rest


class ObjectRows:
    """The quads of a predicate in a graph, in some state that the store has after this is made.

    A row is what SPARQL's TSV makes of a subject and an object; the first has the names of the variables.
    For one thread. It has to be closed.
    """

    def __init__(self, ask: Ask, predicate: NamedNode) -> None:
        """ask evaluates a text on the graph, as its default graph."""
        self._ask, self._predicate = ask, predicate
        self._failure: BaseException | None = None
        self._read_end, self._write_end = os.pipe()
        with suppress(OSError):  # the user has many pipes: it stays as small as it is
            fcntl(self._write_end, F_SETPIPE_SZ, _PIPE_BYTES)
        self._is_closed = False
        self._thread = Thread(target=self._write, name="object-rows", daemon=True)
        self._thread.start()

    def read(self) -> bytes:
        """The next piece, up to 64 kB, wherever it ends; b"" after the last. Raises what the engine does."""
        piece = os.read(self._read_end, _PIECE_BYTES)
        if not piece:
            self._thread.join()
            if self._failure is not None:
                raise self._failure
        return piece

    def close(self) -> None:
        """Let go of the store. May be called again."""
        if not self._is_closed:
            self._is_closed = True
            os.close(self._read_end)
            self._thread.join()

    def _write(self) -> None:
        try:
            with open(self._write_end, "wb", _PIECE_BYTES) as pipe:
                rows = self._ask(_QUERY.format(predicate=self._predicate))
                assert isinstance(rows, QuerySolutions)
                rows.serialize(pipe, QueryResultsFormat.TSV)
        except BaseException as error:  # noqa: BLE001 the reader raises it
            # without frames: the engine's iterator may end on this thread alone
            error.__context__ = None
            self._failure = error.with_traceback(None)
