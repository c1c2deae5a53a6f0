"""`QuickUpdates`: plain INSERT DATA and DELETE DATA, begun within the call that receives them.

A task, its ASGI messages, the router and the endpoint cost such a request twice as much as the update itself.
What is answered here, and where, is as for `QuickAnswers`; the application answers the rest, and the same.
"""

import logging
from collections.abc import Callable
from functools import lru_cache, partial
from time import perf_counter

from graphdb.config.limits import GateLimits
from graphdb.errors import GraphDBError
from graphdb.model import Author, Confirmation, ForeseeingOutcome, Interface
from graphdb.planning.gate import SHORT_TEXT_CHARACTERS, read_plain_update
from serve.backend import Writing
from serve.errors import error_response, failure_response
from serve.graph.metrics import Outcome
from serve.graph.query_accounts import Account, QueryAccounts, outcome_of
from serve.graph.quick_answers import Head, read_head
from serve.graph.sparql import FORM_TYPE, UPDATE_TYPE
from serve.graph.writes import confirm, confirmed_bytes
from serve.parameters import Parameters
from serve.port.application import LaterAnswer

__all__ = ["UPDATE_PATH", "QuickUpdates"]

UPDATE_PATH = b"/update"
_TYPES = (UPDATE_TYPE, FORM_TYPE)
_AUTHOR = Author(interface=Interface.SPARQL_UPDATE)  # authentication is off where requests are answered here
log = logging.getLogger(__name__)


class QuickUpdates:
    """Owned by the application. Used on the port's event loop."""

    def __init__(
        self,
        writing: Writing,
        accounts: QueryAccounts,
        body_bytes_max: int,
        limits: GateLimits,
        failure_headers: Callable[[], dict[str, str]],
    ) -> None:
        """failure_headers: see `serve.routing.resource`."""
        self._writing, self.accounts, self._limits = writing, accounts, limits
        self._body_bytes_max = min(body_bytes_max, 3 * SHORT_TEXT_CHARACTERS)
        self._failure_headers = failure_headers
        self._head = lru_cache(maxsize=256)(lambda *head: read_head(UPDATE_PATH, _TYPES, *head))

    def may_answer(self, method: bytes, target: bytes, body_bytes: int) -> bool:
        """Whether it is worth waiting for the body of a request, of so many bytes."""
        return method == b"POST" and target == UPDATE_PATH and body_bytes <= self._body_bytes_max

    def understood(
        self, method: bytes, target: bytes, scheme: str, headers: list[tuple[bytes, bytes]]
    ) -> Callable[[bytes], LaterAnswer | None] | None:
        """What begins requests with a head of which `may_answer` holds; None if they have to go the usual
        way.
        """
        kept = tuple([header for header in headers if header[0] != b"content-length"])
        head = self._head(method, scheme, kept)
        return None if head is None else partial(self.answer, head)

    def answer(self, head: Head, body: bytes) -> LaterAnswer | None:
        """What will be told the answer to a request; None if it has to go the usual way."""
        began = perf_counter()
        try:
            return self._begin(head, body, began)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:  # noqa: BLE001 also a panic of the engine; the application says what is wrong
            return None

    def _begin(self, head: Head, body: bytes, began: float) -> LaterAnswer | None:
        text = body.decode() if head.media_type == UPDATE_TYPE else _only_field(body)
        if text is None or len(text) > SHORT_TEXT_CHARACTERS:
            return None
        update = read_plain_update(text, head.base_iri, self._limits)
        if update is None:
            return None
        answer = _UpdateAnswer(self, text, began)
        return answer if self._writing.begin_update(update, answer, _AUTHOR) else None

    def close(self, text: str, began: float, outcome: Outcome, snapshot_index: int | None = None) -> None:
        """Record the outcome of a slow update."""
        account = Account(text, "UPDATE", began, snapshot_index=snapshot_index)
        self.accounts.close_update(account, outcome)

    def failure_headers(self) -> dict[str, str]:
        """Of the answers to updates that have failed."""
        return self._failure_headers()


class _UpdateAnswer(LaterAnswer, ForeseeingOutcome):
    """The `graphdb.model.Outcome` of one update."""

    __slots__ = ("_began", "_foreseen", "_text", "_updates")

    def __init__(self, updates: QuickUpdates, text: str, began: float) -> None:
        super().__init__()
        self._updates, self._text, self._began = updates, text, began
        self._foreseen: Confirmation | None = None

    def done(self) -> bool:
        return self.response_complete

    def foresee(self, result: Confirmation, /) -> None:
        """See `ForeseeingOutcome.foresee`."""
        self._foreseen = result
        self.prepare(*confirmed_bytes(result))

    def set_result(self, result: Confirmation, /) -> None:
        if result is not self._foreseen or not self.reply_prepared():
            self.reply(confirm(result))
        if self._updates.accounts.is_slow(self._began):
            self._updates.close(self._text, self._began, "ok", result.snapshot_index)

    def set_exception(self, exception: Exception, /) -> None:
        """The same answers as `serve.routing` gives."""
        if self._updates.accounts.is_slow(self._began):
            self._updates.close(self._text, self._began, outcome_of(exception))
        if isinstance(exception, GraphDBError):
            self.reply(failure_response(exception, self._updates.failure_headers()))
        else:
            log.error("POST /update failed", exc_info=exception)
            self.reply(error_response(500, "internal server error"))


def _only_field(form: bytes) -> str | None:
    """The update in a form without other fields."""
    if form.count(b"&"):
        return None
    return Parameters(form).one("update")
