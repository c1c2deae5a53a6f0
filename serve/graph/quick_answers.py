"""`QuickAnswers`: requests for queries, without a task: cheap ones are answered within the call that receives
them, others begun (`BegunAnswer`).

A task, its ASGI messages and the router cost such a request as much as the engine does. Only requests without
a special header are answered here, on a port without authentication, audit log and CORS, and only queries
whose plan is known by their text or its shape. All others go to the application, which answers the same.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from time import perf_counter
from typing import Any

from starlette.requests import Request

from graphdb.errors import RequestError
from graphdb.node import Consistency
from graphdb.planning.gate import SHORT_TEXT_CHARACTERS
from graphdb.sparql.results import CELL_FORMATS
from graphdb.store.word_searches import PROBES, WordSearch
from serve.backend import Queries
from serve.bodies import content_type
from serve.graph.asked_query import AskedQuery, QueryReader
from serve.graph.query_accounts import Account
from serve.graph.query_answers import QueryAnswers
from serve.graph.query_parameters import QueryParameters
from serve.graph.sparql import FORM_TYPE, QUERY_TYPE
from serve.graph.word_requests import Cut, KnownSearch, WordRequests, cut_form, cut_text
from serve.parameters import request_iri
from serve.port.application import PLAIN_HEADERS, LaterAnswer, WholeAnswer
from serve.routing import Responding

__all__ = ["QUERY_PATH", "Head", "QuickAnswers", "read_head"]

QUERY_PATH = b"/sparql"
_TYPES = (QUERY_TYPE, FORM_TYPE)
# With any other header the request goes the usual way.
_KNOWN_HEADERS = PLAIN_HEADERS | {b"x-consistency"}

_Headers = tuple[tuple[bytes, bytes], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Head:
    """What follows from a head without its address's query string and its body's length."""

    request: Request  # in place of each with this head
    base_iri: str
    media_type: str  # of the body; empty for GET


class QuickAnswers:
    """Owned by the application. Used on the port's event loop."""

    def __init__(
        self, queries: Queries, reader: QueryReader, answers: QueryAnswers, responding: Responding
    ) -> None:
        """responding: see `BegunAnswer`."""
        self._queries, self._reader, self._answers = queries, reader, answers
        self._responding = responding
        self._word_requests = WordRequests()
        self._head = lru_cache(maxsize=256)(lambda *head: read_head(QUERY_PATH, _TYPES, *head))

    @staticmethod
    def may_answer(method: bytes, target: bytes, body_bytes: int) -> bool:
        """Whether it is worth waiting for the body of a request, of so many bytes."""
        return (method == b"POST" and body_bytes <= 3 * SHORT_TEXT_CHARACTERS) or (
            method == b"GET" and body_bytes == 0
        )

    def understood(
        self, method: bytes, target: bytes, scheme: str, headers: list[tuple[bytes, bytes]]
    ) -> Callable[[bytes], WholeAnswer | LaterAnswer | None] | None:
        """What answers requests with a head of which `may_answer` holds; None if they have to go the usual
        way.
        """
        kept = tuple([header for header in headers if header[0] != b"content-length"])
        head = self._head(method, scheme, kept)
        return None if head is None else partial(self.answer, head, target.partition(b"?")[2])

    def answer(self, head: Head, query_string: bytes, body: bytes) -> WholeAnswer | LaterAnswer | None:
        """The answer to a request; None if it has to go the usual way."""
        began = perf_counter()
        try:
            return self._answer(head, query_string, body, began)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:  # noqa: BLE001 also a panic of the engine; the application says what is wrong
            return None

    def _answer(
        self, head: Head, query_string: bytes, body: bytes, began: float
    ) -> WholeAnswer | LaterAnswer | None:
        cut = _cut(head, query_string, body)
        known = None if cut is None else self._word_requests.find(cut[0])
        if cut is not None and known is not None:
            answer = self._answers.words_answer(known, cut[1], began)
            if answer is not None:
                return answer
        found = self._read(head, query_string, body)
        if found is None:
            return None
        parameters, text = found
        reader = self._reader
        understood = reader.known(text, head.base_iri, parameters.entailment)
        if understood is None:
            return None
        account = Account(text, understood.plan.like.form, began)
        asked = reader.asked(head.request, parameters, understood, account)
        if asked.consistency is not Consistency.LOCAL:
            return None
        if asked.as_of is not None:
            return self._answers.quick_past_answer(asked, asked.as_of, self._responding)
        made = self._answers.quick_answer(asked, self._queries.whole_reads(), self._responding)
        if cut is not None and isinstance(made, WholeAnswer) and not self._word_requests.is_settled(cut[0]):
            self._note_search(cut, head, query_string, asked)
        return made

    def _read(self, head: Head, query_string: bytes, body: bytes) -> tuple[QueryParameters, str] | None:
        """The parameters and the text of a query; None for one that waits, or is to be explained."""
        if head.media_type == QUERY_TYPE:
            parameters = self._reader.parameters(query_string)
            text = None if parameters.query is not None else body.decode()
        else:
            form = (body,) if head.media_type == FORM_TYPE else ()
            parameters = self._reader.parameters(query_string, *form)
            text = parameters.query
        if text is None or parameters.min_index or parameters.explain:
            return None
        return parameters, text

    def _note_search(self, cut: Cut, head: Head, query_string: bytes, asked: AskedQuery) -> None:
        """For the requests that seek other words, if this seeks some."""
        join, form = asked.plan.join, CELL_FORMATS.get(asked.format)
        if asked.dataset or join is None or join.star is None or form is None:
            return
        quote = b'"' if head.media_type == QUERY_TYPE else b"%22"
        (_, _, front, back), _ = cut

        def read(words: str) -> str | None:
            source = quote.join((front, words.encode(), back))
            found = self._read(head, *((query_string, source) if head.media_type else (source, b"")))
            return None if found is None else found[1]

        def search() -> KnownSearch | None:
            star = self._reader.search_of_any(read, head.base_iri)
            if star is None:
                return None
            before, _, behind = (read(PROBES[0]) or "").partition(PROBES[0])
            has_tag = asked.request.method == "GET" and asked.is_repeatable
            return KnownSearch(WordSearch(star, form), asked.format, has_tag, before, behind)

        self._word_requests.note(cut[0], search)


def _cut(head: Head, query_string: bytes, body: bytes) -> Cut | None:
    if head.media_type == QUERY_TYPE:
        return cut_text(head, query_string, body)
    return cut_form(head, query_string, body) if head.media_type else cut_form(head, b"", query_string)


def read_head(
    path: bytes, types: tuple[str, ...], method: bytes, scheme: str, headers: _Headers
) -> Head | None:
    """The head of a request to a path, which reads bodies of these types; None for one that may need more
    than is done without the application.
    """
    names = [name for name, _ in headers]
    if len(set(names)) < len(names) or not _KNOWN_HEADERS.issuperset(names):
        return None
    scope: dict[str, Any] = {
        "type": "http",
        "method": method.decode("ascii"),
        "scheme": scheme,
        "path": path.decode(),
        "raw_path": path,
        "headers": list(headers),
    }
    request = Request(scope)
    try:
        media_type = content_type(request, types).name if method == b"POST" else ""
        if media_type and media_type not in types:
            return None
        return Head(request, request_iri(request), media_type)
    except RequestError:  # the application says what is wrong
        return None
