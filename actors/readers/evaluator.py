"""One evaluator: a process that queries and validates checkpoints, one task at a time, for a `StoreReader`.

`python -m actors.readers.evaluator FD MEMORY_LIMIT_MB` talks over the socket of this number, in
`EVALUATOR_MESSAGES`.
Whatever a query does to the engine, crash, run for ever or fill the memory, it does here: `StoreReader` kills
this process and starts another, so it imports little. It ends when its parent ends.
"""

import os
import resource
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from time import monotonic

from pyoxigraph import NamedNode, Store

from actors.process_bounds import limit, settle
from actors.readers.protocol import (
    EVALUATOR_MESSAGES,
    Begun,
    FunctionTask,
    ReaderTask,
    Ready,
    ReleaseCheckpoint,
    ValidationTask,
)
from actors.wire.blocking import BlockingStream
from actors.wire.messages import Done, Piece
from graphdb.errors import QueryMemoryExceeded, UnavailableError
from graphdb.geometry.evaluate import evaluation_json
from graphdb.public_text import fault_text
from graphdb.sparql.results import ResultFormat, write_answer
from graphdb.store.engine_errors import request_failures
from graphdb.store.engine_query import engine_query, first_full
from graphdb.store.explaining import explain
from graphdb.store.seen_dataset import seen_dataset

__all__ = ["Evaluator"]

_FORMATS = {fmt.value: fmt for fmt in ResultFormat}
_STACK_BYTES = 64 << 20


class Evaluator:
    """Answers the messages that come in, until there are no more. It keeps the last checkpoint open."""

    def __init__(self, connection: socket.socket) -> None:
        self._stream = BlockingStream(EVALUATOR_MESSAGES, connection)
        self._path: str | None = None
        self._store: Store | None = None

    def run(self) -> None:
        """Return when the other end is gone."""
        self._send(Ready())
        while (message := self._stream.read()) is not None:
            self._perform(message)

    def _perform(self, request: object) -> None:
        try:
            if isinstance(request, ReleaseCheckpoint):
                self._release(request.path)
            else:
                self._send(Begun())
                if isinstance(request, ValidationTask):
                    self._validate(request)
                elif isinstance(request, FunctionTask):
                    self._call(request)
                else:
                    assert isinstance(request, ReaderTask)
                    self._evaluate(request)
        except MemoryError:
            self._fail(QueryMemoryExceeded("the query ran out of memory"))
        except Exception as error:  # noqa: BLE001 whoever asked gets it
            self._fail(error)
        else:
            self._send(Done())

    def _evaluate(self, task: ReaderTask) -> None:
        store = self._opened(task.checkpoint)
        default_graphs, named_graphs = seen_dataset(
            store,
            frozenset(map(NamedNode, task.hidden_graphs)),
            _nodes(task.default_graphs),
            _nodes(task.named_graphs),
            union_default_graph=task.union_default_graph,
        )
        ask = partial(
            engine_query,
            store,
            base_iri=task.base_iri,
            default_graph=default_graphs,
            named_graphs=named_graphs,
            union_default_graph=task.union_default_graph,
            calls_geometry=task.calls_geometry,
        )
        sink = self._send_piece
        evaluate = partial(first_full, ask, task.attempts, task.attempt_rows, task.text)
        if task.operation == "explain":
            explain(ask, evaluate, task.count_queries, sink, monotonic, task.lookups)
            return
        with request_failures():
            write_answer(evaluate(), _FORMATS[task.format], sink)

    def _validate(self, task: ValidationTask) -> None:
        # at the top, each evaluator would load the parser of SPARQL at its start, and few validate
        from actors.readers.validating import perform

        perform(task, self._opened(task.checkpoint), self._send_piece, monotonic)

    def _call(self, task: FunctionTask) -> None:
        for piece in evaluation_json(task.function, task.args):
            self._send_piece(piece)

    def _opened(self, path: str) -> Store:
        if self._store is None or self._path != path:
            self._store = None  # closed before the next is opened
            try:
                self._store = Store.read_only(path)
            except OSError as error:
                raise UnavailableError(f"the checkpoint cannot be opened: {fault_text(error)}") from error
            self._path = path
        return self._store

    def _release(self, path: str) -> None:
        if self._path == path:
            self._path = self._store = None

    def _send_piece(self, data: bytes) -> None:
        self._send(Piece(data))

    def _send(self, message: object) -> None:
        with _ending_alone():
            self._stream.send(message)

    def _fail(self, error: BaseException) -> None:
        with _ending_alone():
            self._stream.fail(error)


@contextmanager
def _ending_alone() -> Iterator[None]:
    """The process ends where nobody is there any more: the engine may be in the midst of its work."""
    try:
        yield
    except OSError:
        os._exit(0)


def _nodes(iris: list[str] | None) -> list[NamedNode] | None:
    return None if iris is None else [NamedNode(iri) for iri in iris]


def _main() -> None:
    fd, memory_limit_mb = map(int, sys.argv[1:])
    settle(memory_limit_mb)
    limit(resource.RLIMIT_STACK, _STACK_BYTES)  # of the main thread, which evaluates
    with socket.socket(fileno=fd) as connection:
        Evaluator(connection).run()


if __name__ == "__main__":
    _main()
