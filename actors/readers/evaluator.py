"""One evaluator: a process that queries and validates checkpoints, one task at a time, for a `StoreReader`.

`python -m actors.readers.evaluator FD MEMORY_LIMIT_MB` talks over the socket of this number, in the frames of
`protocol`.
Whatever a query does to the engine, crash, run for ever or fill the memory, it does here: `StoreReader` kills
this process and starts another, so it imports little. It ends when its parent ends.
"""

import os
import resource
import socket
import sys
from functools import partial
from time import monotonic

from pyoxigraph import NamedNode, Store

from actors.error_codec import encode_error
from actors.frames import Frame, encode_frame, read_frame_from
from actors.process_bounds import limit, settle
from actors.readers.protocol import FunctionTask, Message, ReaderTask, ValidationTask
from graphdb.errors import QueryMemoryExceeded, UnavailableError
from graphdb.geo.evaluate import evaluation_json
from graphdb.public_text import fault_text
from graphdb.sparql.results import ResultFormat, write_answer
from graphdb.store.engine_errors import request_failures
from graphdb.store.engine_query import engine_query, first_full
from graphdb.store.explaining import explain

__all__ = ["Evaluator"]

_FORMATS = {fmt.value: fmt for fmt in ResultFormat}
_STACK_BYTES = 64 << 20


class Evaluator:
    """Answers the frames that come in, until there are no more. It keeps the last checkpoint open."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._path: str | None = None
        self._store: Store | None = None

    def run(self) -> None:
        """Return when the other end is gone."""
        self._send(Message.READY)
        with self._connection.makefile("rb") as incoming:
            while (frame := read_frame_from(incoming)) is not None:
                self._perform(frame)

    def _perform(self, frame: Frame) -> None:
        try:
            if frame.code == Message.RELEASE:
                self._release(frame.body.decode())
            else:
                self._send(Message.BEGUN)
                if frame.code == Message.VALIDATE:
                    self._validate(ValidationTask.decode(frame.body))
                elif frame.code == Message.CALL:
                    self._call(FunctionTask.decode(frame.body))
                else:
                    self._evaluate(ReaderTask.decode(frame.body))
        except MemoryError:
            self._send(Message.ERROR, encode_error(QueryMemoryExceeded("the query ran out of memory")))
        except Exception as error:  # noqa: BLE001 whoever asked gets it
            self._send(Message.ERROR, encode_error(error))
        else:
            self._send(Message.END)

    def _evaluate(self, task: ReaderTask) -> None:
        ask = partial(
            engine_query,
            self._opened(task.checkpoint),
            base_iri=task.base_iri,
            default_graph=_nodes(task.default_graphs),
            named_graphs=_nodes(task.named_graphs),
            union_default_graph=task.union_default_graph,
            calls_geometry=task.calls_geometry,
        )
        sink = partial(self._send, Message.DATA)
        evaluate = partial(first_full, ask, task.attempts, task.attempt_rows, task.text)
        if task.operation == "explain":
            explain(ask, evaluate, task.count_queries, sink, monotonic, task.lookups)
            return
        with request_failures():
            write_answer(evaluate(), _FORMATS[task.format], sink)

    def _validate(self, task: ValidationTask) -> None:
        # at the top, each evaluator would load the parser of SPARQL at its start, and few validate
        from actors.readers.validating import perform

        perform(task, self._opened(task.checkpoint), partial(self._send, Message.DATA), monotonic)

    def _call(self, task: FunctionTask) -> None:
        for piece in evaluation_json(task.function, task.args):
            self._send(Message.DATA, piece)

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

    def _send(self, message: Message, body: bytes = b"") -> None:
        try:
            self._connection.sendall(encode_frame(message, 0, body))
        except OSError:
            os._exit(0)  # nobody is there any more, and the engine may be in the midst of its work


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
