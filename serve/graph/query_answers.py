"""`QueryAnswers`: decides how a parsed query is answered. `serve/DESIGN.md` says why so."""

import asyncio
from collections.abc import Awaitable, Callable

from starlette.requests import ClientDisconnect
from starlette.responses import Response

from graphdb.history.moments import Moment
from graphdb.node import Consistency, Evaluated
from graphdb.rdf.pieces import CHUNK_BYTES
from graphdb.sparql.results import ResultFormat, write_answer
from graphdb.sparql.text_tables import TextTable
from serve.backend import AnswerOrigin, AnswerStream, GraphReads, Progress, QueriedState, Queries
from serve.graph.asked_query import AskedQuery
from serve.graph.begun_answers import BegunAnswer
from serve.graph.caching import EntityTags, ResultCache
from serve.graph.explanation import Explainer, Explanation, explanation_head
from serve.graph.metrics import Metrics, Outcome
from serve.graph.query_accounts import Account, QueryAccounts, outcome_of
from serve.graph.reading_ahead import SpoolRoom
from serve.graph.responses import (
    CACHE,
    HERE,
    Delivery,
    Head,
    KeptStream,
    Limits,
    StreamedAnswer,
    answer_head,
    not_modified_head,
)
from serve.graph.word_requests import KnownSearch
from serve.port.application import WholeAnswer
from serve.routing import Responding

__all__ = ["QueryAnswers", "answer_here"]

# A row may have a few bytes in these formats, and has some forty in the others.
_TABLE_BYTES_MAX = 1 << 20
_BYTES_MAX = {ResultFormat.CSV: 8_192, ResultFormat.TSV: 8_192}


class QueryAnswers:
    """Owned by the application. Every query except HEAD is closed in the accounts."""

    def __init__(
        self,
        queries: Queries,
        progress: Progress,
        cache: ResultCache,
        tags: EntityTags,
        explainer: Explainer,
        metrics: Metrics,
        accounts: QueryAccounts,
    ) -> None:
        self._queries, self._progress, self._cache, self._tags = queries, progress, cache, tags
        self._room = SpoolRoom()
        self._explainer, self._metrics, self._accounts = explainer, metrics, accounts

    async def answer(
        self, asked: AskedQuery, given: GraphReads | None = None, *, unites_graphs: bool = False
    ) -> Response:
        """The answer. Long work is done while it is sent. given: read this, and not what is visible now;
        it is of the state that is asked for. unites_graphs: see `QueriedState.uniting_graphs`.

        Raises what the backend raises.
        """
        try:
            if asked.consistency is not Consistency.LOCAL:
                await self._progress.reach(asked.consistency, asked.left_s)
            if asked.min_index:
                await self._progress.wait_for_index(asked.min_index, asked.left_s)
            unmade = None if given else await self._unmade(asked)
            state: QueriedState
            if unmade is not None:
                state = unmade.uniting_graphs() if unites_graphs else unmade
                answer = self._answer_unread(asked, state, *self._exact_index_and_tag(asked, state))
            else:
                reads = given or await self._queries.reads(asked.visibility, asked.as_of, asked.left_s)
                state = reads = reads.uniting_graphs() if unites_graphs else reads
                if asked.explain:
                    return self._explanation(asked, reads)
                answer = self._answer_at_once(asked, reads)
        except Exception as error:
            self._accounts.close(asked.account, outcome_of(error))
            raise
        return answer or self._kept_answer(asked, state) or self._made_answer(asked, state)

    async def _unmade(self, asked: AskedQuery) -> QueriedState | None:
        if asked.as_of is None or asked.explain:
            return None
        is_look_up = asked.is_cheap(self._queries.whole_reads())  # there, and so probably then
        return await self._queries.unmade(asked.visibility, asked.as_of, asked.left_s, is_look_up=is_look_up)

    def cheap_answer(self, asked: AskedQuery, reads: GraphReads) -> WholeAnswer | None:
        """The answer to a cheap query if it can be made at once; then its account is closed."""
        return self._answer_here(asked, reads, *self._exact_index_and_tag(asked, reads))

    def quick_answer(
        self, asked: AskedQuery, reads: GraphReads, responding: Responding
    ) -> WholeAnswer | BegunAnswer | None:
        """The answer to a query without a task for its request: of a cheap query, from the result cache, or
        begun (`GraphReads.begin_query`); None where it needs one. responding: see `BegunAnswer`.

        Raises what the backend raises.
        """
        return self.cheap_answer(asked, reads) or self._begun_answer(asked, reads, responding)

    def quick_past_answer(
        self, asked: AskedQuery, as_of: Moment, responding: Responding
    ) -> WholeAnswer | BegunAnswer | None:
        """As `quick_answer`, of a state of the past."""
        reads = self._queries.made_at_once(as_of)
        if reads is not None:
            return self.quick_answer(asked, reads, responding)
        if asked.is_cheap(self._queries.whole_reads()):  # a look-up, for which the state is made
            return None
        unmade = self._queries.unmade_at_once(as_of)
        return None if unmade is None else self._begun_answer(asked, unmade, responding)

    def _begun_answer(
        self, asked: AskedQuery, reads: QueriedState, responding: Responding
    ) -> WholeAnswer | BegunAnswer | None:
        kept = self._kept_answer(asked, reads)
        if kept is not None:
            return kept if isinstance(kept, WholeAnswer) else None
        begun = BegunAnswer(
            asked.request, *self._delivery(asked, reads, keeps=self._keeps(asked)), responding
        )
        end = reads.begin_query(asked.for_reader(), begun)
        if end is None:
            return None
        begun.has_begun(end)
        return begun

    def words_answer(self, known: KnownSearch, words: str, began: float) -> WholeAnswer | None:
        """The answer to a search for words in the whole graph; None where `quick_answer` is to be asked.
        began: of perf_counter().
        """
        found = self._queries.whole_reads().search_words(known.search, words)
        if found is None:
            return None
        body, index = found
        account = Account(known.text(words), "SELECT", began, snapshot_index=index, size=len(body))
        self._accounts.close(account, "ok")
        tag = self._tags.tag(index, known.format.value, None) if known.has_tag else None
        return WholeAnswer(answer_head(known.format, index, tag, HERE), body)

    def _answer_at_once(self, asked: AskedQuery, reads: GraphReads) -> Response | None:
        """A 304, the answer to HEAD, or the answer to a cheap query; None if a reader is needed."""
        index, tag = self._exact_index_and_tag(asked, reads)
        return self._answer_unread(asked, reads, index, tag) or self._answer_here(asked, reads, index, tag)

    def _answer_unread(
        self, asked: AskedQuery, state: QueriedState, index: int | None, tag: str | None
    ) -> Response | None:
        """A 304, or the answer to HEAD."""
        if tag is not None and self._tags.is_known(asked.request, tag):
            assert index is not None
            self._accounts.close(asked.account, "not_modified")
            return WholeAnswer(not_modified_head(index, tag), None, 304)
        if asked.request.method == "HEAD":
            self._queries.check_query(asked.query)
            index = state.snapshot_index() if index is None else index
            return WholeAnswer(answer_head(asked.format, index, tag), None)
        return None

    def _exact_index_and_tag(self, asked: AskedQuery, reads: QueriedState) -> tuple[int | None, str | None]:
        """Of the present state, if the answer can be requested again by its URL alone."""
        if asked.request.method not in ("GET", "HEAD") or not asked.is_repeatable:
            return None, None
        index = reads.exact_index()
        return index, None if index is None else self._tag(asked, reads, index)

    def _answer_here(
        self, asked: AskedQuery, reads: GraphReads, index: int | None, tag: str | None
    ) -> WholeAnswer | None:
        """The answer to a cheap query, unless it is long; None to others. It has the tag if the state did not
        change meanwhile.
        """
        evaluated = asked.evaluated(reads)
        if evaluated is None:
            return None
        body, read_at = answer_here(evaluated, asked.format), evaluated.snapshot_index
        if body is None:
            asked.understood.note_long(reads, read_at)
            return None
        if tag is not None and not index == read_at == reads.exact_index():
            tag = None
        account = asked.account
        account.snapshot_index, account.size = read_at, len(body)
        self._accounts.close(account, "ok")
        return WholeAnswer(answer_head(asked.format, read_at, tag, HERE), body)

    def _kept_answer(self, asked: AskedQuery, reads: QueriedState) -> Response | None:
        """The cached answer for exactly the present state, unless the client bypasses the cache."""
        index = reads.exact_index()
        if index is None or not self._is_kept(asked) or asked.wants_fresh:
            return None
        pieces = self._cache.get(asked.key(reads.view_key), index)
        self._metrics.count_lookup(found=pieces is not None)
        if pieces is None:
            return None
        if len(pieces) > 1:

            async def start() -> AnswerStream:
                return KeptStream(pieces, index)

            return self._streamed(asked, reads, start, sum(map(len, pieces)))
        asked.account.where, asked.account.snapshot_index = CACHE, index
        body = b"".join(pieces)
        asked.account.size = len(body)
        self._accounts.close(asked.account, "cached")
        return WholeAnswer(self._head(asked, reads, index, CACHE, is_exact=True), body)

    def _is_kept(self, asked: AskedQuery) -> bool:
        return asked.is_repeatable and self._cache.answer_bytes_max > 0

    def _made_answer(self, asked: AskedQuery, reads: QueriedState) -> Response:
        """The answer from a reader."""

        async def start() -> AnswerStream:
            return await reads.start_query(asked.for_reader())

        return self._streamed(asked, reads, start)

    def _explanation(self, asked: AskedQuery, reads: GraphReads) -> Response:
        """The explanation, once the query has been evaluated."""

        async def start() -> AnswerStream:
            return await self._explainer.start(asked, reads)

        return self._streamed(asked, reads, start)

    def _streamed(
        self,
        asked: AskedQuery,
        reads: QueriedState,
        start: Callable[[], Awaitable[AnswerStream]],
        length: int | None = None,
    ) -> Response:
        keeps = length is None and self._keeps(asked)
        return StreamedAnswer(start, *self._delivery(asked, reads, keeps=keeps), length)

    def _keeps(self, asked: AskedQuery) -> bool:
        return self._is_kept(asked) and not asked.is_secret and not asked.explain

    def _delivery(
        self, asked: AskedQuery, reads: QueriedState, *, keeps: bool
    ) -> tuple[Callable[[AnswerOrigin], Head], Limits, Callable[[Delivery, BaseException | None], None]]:
        """How an answer is delivered: its head, its limits, and what is to be told its outcome."""
        limits = Limits(
            asked.timeout_s,
            deadline=asyncio.get_running_loop().time() + asked.left_s,
            keep_bytes_max=self._cache.answer_bytes_max if keeps else 0,
            room=self._room,
        )

        def head(origin: AnswerOrigin) -> Head:
            return self._head(asked, reads, origin.snapshot_index, origin.where, origin.is_exact)

        def ended(delivery: Delivery, failure: BaseException | None) -> None:
            self._close(asked, reads, delivery, failure)

        return head, limits, ended

    def _head(self, asked: AskedQuery, reads: QueriedState, index: int, where: str, is_exact: bool) -> Head:
        if asked.explain:
            return explanation_head(index)
        has_tag = is_exact and asked.is_repeatable and asked.request.method == "GET"
        return answer_head(asked.format, index, self._tag(asked, reads, index) if has_tag else None, where)

    def _tag(self, asked: AskedQuery, reads: QueriedState, index: int) -> str:
        return self._tags.tag(index, asked.format.value, reads.view_key)

    def _close(
        self, asked: AskedQuery, reads: QueriedState, delivery: Delivery, failure: BaseException | None
    ) -> None:
        """Record the outcome of a streamed answer, and cache it if possible."""
        account, stream = asked.account, delivery.stream
        account.size = delivery.size
        outcome = _outcome(delivery, failure)
        if stream is not None:
            account.where, account.query_id = stream.where, stream.query_id or None
            account.snapshot_index = stream.snapshot_index
            self._metrics.count_kill(outcome)
            if outcome == "ok" and stream.is_exact and delivery.pieces is not None:
                self._cache.put(asked.key(reads.view_key), stream.snapshot_index, delivery.pieces)
        self._accounts.close(account, outcome)


def _outcome(delivery: Delivery, failure: BaseException | None) -> Outcome:
    if failure is None and isinstance(delivery.stream, Explanation):
        return delivery.stream.outcome
    if failure is None:
        return "cached" if isinstance(delivery.stream, KeptStream) else "ok"
    if isinstance(failure, ClientDisconnect):
        return "disconnected"
    outcome = outcome_of(failure)
    return "broken" if outcome == "failed" and delivery.head_sent else outcome


class _TooLong(Exception):
    """Raised by the sink: a reader has to evaluate the query."""


def answer_here(evaluated: Evaluated, fmt: ResultFormat) -> bytes | None:
    """Evaluate a cheap query on this thread; None if the answer is longer than one chunk (64 kB, or 8 kB).

    Blocks for the time of one chunk, a few milliseconds, plus the time in which the engine reads a single
    term, which is longer for a literal of megabytes.
    Raises what `write_answer` raises.
    """
    body = b""
    bytes_max = _BYTES_MAX.get(fmt, CHUNK_BYTES)
    if isinstance(evaluated.answer, TextTable):  # all of it is there, and it has been bounded
        bytes_max = _TABLE_BYTES_MAX

    def sink(chunk: bytes) -> None:
        nonlocal body
        if len(chunk) >= bytes_max:
            raise _TooLong
        body = chunk

    try:
        write_answer(evaluated.answer, fmt, sink, bytes_max)
    except _TooLong:
        return None
    return body
