"""`QuickPuts`: single documents written as they come, begun within the call that receives them.

A task, its ASGI messages, the router and an answer in two pieces cost more than the document. What is
answered here, and where, is as for `QuickSearches`; the application answers the rest, and the same.
"""

import re
from dataclasses import dataclass
from functools import partial

import orjson

from graphdb.errors import GraphDBError
from graphdb.search.catalog.catalog_commands import DocumentWrite, WriteResult
from graphdb.search.segments.operations import Action, Operation
from serve.port.application import LaterAnswer, WholeAnswer
from serve.search.backend import SearchBackend
from serve.search.documents.documents import location, written
from serve.search.documents.write_options import generated_id, read_document
from serve.search.frame.answer import ENCODE, failure, internal
from serve.search.frame.quick_heads import QuickHead, read_head, whole_answer

__all__ = ["QuickPuts"]

_BODY_BYTES_MAX = 32 << 10
_VALUES_BYTES_MAX = 4 << 20  # of texts whose values are kept until they are stored
_TARGET = re.compile(rb"/([a-z0-9][a-z0-9_.-]*)/_(doc|create)(?:/([a-zA-Z0-9_-][a-zA-Z0-9_.~-]{0,127}))?")
_PIPELINES = ("default_pipeline", "final_pipeline")


@dataclass(frozen=True, slots=True)
class _Request:
    """What a head says. index: its name; doc_id: None where the document gets one."""

    index: str
    action: Action
    doc_id: str | None
    head: QuickHead


class QuickPuts:
    """`QuickAnswers` for `_doc` and `_create` without parameters, over the node as whoever sees everything
    sees it.
    """

    def __init__(self, node: SearchBackend) -> None:
        self._node = node
        self._values_bytes = 0

    @staticmethod
    def may_answer(method: bytes, target: bytes, body_bytes: int) -> bool:
        """See `QuickAnswers.may_answer`."""
        is_write = method in (b"PUT", b"POST") and 0 < body_bytes <= _BODY_BYTES_MAX
        return is_write and (b"/_doc" in target or b"/_create/" in target)

    def understood(
        self, method: bytes, target: bytes, scheme: str, headers: list[tuple[bytes, bytes]]
    ) -> "partial[LaterAnswer | None] | None":
        """See `QuickAnswers.understood`."""
        found = _TARGET.fullmatch(target)
        if found is None or (found[3] is None and (found[2], method) != (b"doc", b"POST")):
            return None
        head = read_head(headers)
        if head is None:
            return None
        doc_id = None if found[3] is None else found[3].decode()
        action = Action.CREATE if doc_id is None or found[2] == b"create" else Action.INDEX
        return partial(self._answer, _Request(found[1].decode(), action, doc_id, head))

    def _answer(self, request: _Request, body: bytes) -> LaterAnswer | None:
        try:
            return self._begun(request, body.strip())
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:  # noqa: BLE001 also a panic of the reader; the application says what is wrong
            return None

    def _begun(self, request: _Request, body: bytes) -> LaterAnswer | None:
        index = self._node.catalog.find(request.index)
        if index is None or any(index.settings.get(name) is not None for name in _PIPELINES):
            return None
        value = read_document(body)
        size = len(body) if self._values_bytes + len(body) <= _VALUES_BYTES_MAX else 0
        doc_id = generated_id() if request.doc_id is None else request.doc_id
        operation = Operation(request.action, doc_id, body, value=value if size else None)
        answer = _PutAnswer(self, request, size)
        if not self._node.begin_write(DocumentWrite(request.index, operation), answer):
            return None
        self._values_bytes += size
        return answer

    def shown(self, head: QuickHead, result: WriteResult) -> WholeAnswer:
        """The answer for a document. Raises its error."""
        done = result.result
        if done.error is not None:
            raise done.error
        text = orjson.dumps(written(self._node.catalog, result), option=ENCODE)
        more = ((b"location", location(result, None).encode()),) if done.status == 201 else ()
        return whole_answer(head, text, done.status, more)

    def release(self, size: int) -> None:
        """So much of what was read of documents is not kept any more."""
        self._values_bytes -= size


class _PutAnswer(LaterAnswer):
    """The `ToldWrite` of one document."""

    __slots__ = ("_puts", "_request", "_size", "repeats_head")

    def __init__(self, puts: QuickPuts, request: _Request, size: int) -> None:
        super().__init__()
        self._puts, self._request, self._size = puts, request, size
        self.repeats_head = request.doc_id is None

    def done(self) -> bool:
        return self.response_complete

    def set_result(self, result: WriteResult, /) -> None:
        try:
            answer = self._puts.shown(self._request.head, result)
        except Exception as error:  # noqa: BLE001 the client is told
            self.set_exception(error)
        else:
            self._end(answer)

    def set_exception(self, exception: Exception, /) -> None:
        """The same answers as `SearchRouter` gives."""
        failed = failure(exception if isinstance(exception, GraphDBError) else internal(exception))
        more = tuple((name.lower().encode(), text.encode()) for name, text in failed.headers.items())
        text = orjson.dumps(failed.value, option=ENCODE)
        self._end(whole_answer(self._request.head, text, failed.status, more))

    def _end(self, answer: WholeAnswer) -> None:
        self._puts.release(self._size)
        self.reply(answer)
