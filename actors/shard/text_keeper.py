"""`TextKeeper`: keeps the index of a store's literals up, on a thread that gives way, and searches it."""

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from actors.log.applied_index import AppliedIndex
from actors.shard.index_keeper import IndexKeeper
from actors.worker_thread import on_thread
from graphdb.config.service import Text
from graphdb.errors import EvaluationFailed
from graphdb.sparql.algebra import TextSearch
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.results import ResultFormat, write_answer
from graphdb.sparql.text_tables import TextTable
from graphdb.store.quad_store import QuadStore
from graphdb.store.search_tables import Table
from graphdb.store.small_joins import SearchedStar
from graphdb.store.word_searches import WordSearch

if TYPE_CHECKING:  # only a node with an index loads what it is made with
    from graphdb.text.hit_joins import HitJoiner
    from graphdb.text.literal_index import LiteralIndex, State
    from graphdb.text.literal_search import LiteralSearcher
    from graphdb.text.word_answers import WordAnswers

__all__ = ["TextKeeper"]

_WHOLE = Dataset()
_ROWS_AT_ONCE = 1_000  # of an answer on the event loop, which takes some 2 ms
_ROWS_MAX = 100_000  # of an answer that is made in whole
_POSTINGS_AT_ONCE = 100_000  # of a search that takes half a millisecond
_PAST_S = 2.0  # without a change, until older states are forgotten


class TextKeeper(IndexKeeper["LiteralIndex"]):
    """Without predicates there is no index, and searches are refused. That of a view begins with the first
    search.
    """

    def __init__(
        self,
        quads: QuadStore,
        applied: AppliedIndex,
        directory: Path,
        settings: Text,
        *,
        begins_at_once: bool = True,
    ) -> None:
        """directory is for links to files of large changes."""
        super().__init__(applied, "text", "the index of literals failed; it is made anew soon")
        self._quads, self._directory, self._settings = quads, directory, settings
        self._moved = asyncio.Event()  # set, and replaced, with each step
        self._waiting = 0  # searches for the index
        self._index: LiteralIndex | None = None
        self._searcher: LiteralSearcher | None = None
        self._joiner: HitJoiner | None = None
        self._word_answers: WordAnswers | None = None
        if begins_at_once and settings.predicates:
            self._begin()

    # searches

    def is_same(self, since: int, until: int) -> bool:
        """Whether what was found in the state of one log index is found in that of a later one as well."""
        return self._index is not None and self._index.is_same(since, until)

    async def wait_ready(self) -> None:
        """Return once the index has the present state. Raises EvaluationFailed where there is none."""
        if not self._settings.predicates:
            raise EvaluationFailed(
                "the literals of the graph are not indexed: text.predicates says which are (docs/search.md)"
            )
        if not self._has_begun:
            self._begin()
        await self._until_taken_in(self._applied.current)

    async def tables(self, searches: Iterable[TextSearch], dataset: Dataset, index: int) -> dict[str, Table]:
        """What searches find in the state of a log index, by their names.

        Raises InvalidParameter, LimitExceeded, Stale (that state is not known any more).
        """
        await self.wait_ready()
        await self._until_taken_in(index)
        literals, searcher = self._index, self._searcher
        assert literals is not None
        assert searcher is not None
        union = self._quads.unites_graphs

        def timed(search: TextSearch, state: "State") -> Table:
            began = time.perf_counter()
            planned = searcher.planned(search, state, dataset, union_default_graph=union)
            table = searcher.table(planned, index)
            return replace(table, report=replace(table.report, seconds=time.perf_counter() - began))

        def find() -> dict[str, Table]:
            state = literals.state(index)
            return {each.name: timed(each, state) for each in searches}

        return await on_thread(find)

    def tables_at_once(
        self, searches: Iterable[TextSearch], dataset: Dataset, index: int
    ) -> dict[str, Table] | None:
        """The same for the present state, on the event loop; None if it may take long or has to wait.

        Raises InvalidParameter, LimitExceeded.
        """
        literals, searcher = self._index, self._searcher
        if literals is None or searcher is None or not literals.has_all_before(index):
            return None
        state = literals.state(index)
        planned = [
            searcher.planned(each, state, dataset, union_default_graph=self._quads.unites_graphs)
            for each in searches
        ]
        if not all(each.is_short for each in planned):
            return None
        return {each.search.name: searcher.table(each, index) for each in planned}

    def joined_at_once(self, star: SearchedStar, index: int) -> TextTable | None:
        """The answer to a search with patterns about its hits, of the present state, on the event loop; None
        if it may take long or has to wait.

        Raises InvalidParameter, LimitExceeded.
        """
        most = _ROWS_AT_ONCE if star.search.request.limit is None else _POSTINGS_AT_ONCE
        find = self._joining(star, index, most, _ROWS_AT_ONCE)
        return None if find is None else find()

    def words_at_once(self, search: WordSearch, words: str, index: int) -> bytes | None:
        """The answer to a search for words, of the present state, on the event loop; None where
        `joined_at_once` is to be asked.
        """
        literals, answers = self._index, self._word_answers
        if literals is None or answers is None or not literals.has_all_before(index):
            return None
        return answers.answer(search, words, literals.state(index))

    async def joined(self, star: SearchedStar, format: ResultFormat) -> tuple[list[bytes], int] | None:
        """The same on a thread: the answer in a format, in pieces, and its log index; None where it has to
        wait, or is long, or the graph changes meanwhile.
        """
        index = self._applied.exact
        find = None if index is None else self._joining(star, index, None, _ROWS_MAX)
        if find is None or index is None:
            return None

        def written() -> list[bytes] | None:
            table, pieces = find(), list[bytes]()
            if table is None:
                return None
            write_answer(table, format, pieces.append)
            return pieces

        pieces = await on_thread(written)
        return None if pieces is None or self._applied.exact != index else (pieces, index)

    def _joining(
        self, star: SearchedStar, index: int, postings_max: int | None, rows_max: int
    ) -> Callable[[], TextTable | None] | None:
        """What joins on any thread, in the present state, with this log index. postings_max: of a search;
        None for any, also where it is not known how many there are.
        """
        literals, searcher, joiner = self._index, self._searcher, self._joiner
        if literals is None or searcher is None or joiner is None:
            return None
        columns = joiner.columns(star)  # also while the index is built: they are read right after it
        if columns is None or not literals.has_all_before(index):
            return None
        planned = searcher.planned(star.search, literals.state(index), _WHOLE, union_default_graph=False)
        if planned.unites:
            return None
        if postings_max is not None:
            postings = planned.postings
            if postings is None or postings > postings_max:
                return None

        def find() -> TextTable | None:
            docs, scores, _ = searcher.hits(planned, counts=False)
            return joiner.joined(star, columns, planned.searcher, docs, scores, self._quads, rows_max)

        return find

    async def _until_taken_in(self, index: int) -> None:
        self._waiting += 1
        try:
            while self._index is None or not self._index.has_all_before(index):
                self._work.set()
                await self._moved.wait()
        finally:
            self._waiting -= 1

    # the index

    async def _make(self) -> "LiteralIndex":
        return await self._on_thread(self._made)

    def _show(self, index: "LiteralIndex | None") -> None:
        self._quads.text_index = self._index = index

    def _made(self) -> "LiteralIndex":
        # at the top, every node would load what searches are made with
        from graphdb.text.hit_columns import HitColumns
        from graphdb.text.hit_joins import HitJoiner
        from graphdb.text.literal_index import LiteralIndex
        from graphdb.text.literal_search import LiteralSearcher
        from graphdb.text.word_answers import WordAnswers

        settings, quads = self._settings, self._quads
        columns = HitColumns(quads, settings.join_subjects_max, self._has_work)
        index = LiteralIndex(
            quads.quads_of,
            settings.predicates,
            lambda: self._applied.current,
            self._directory,
            self._has_work,
            columns,
        )
        self._joiner = HitJoiner(columns)
        self._searcher = LiteralSearcher(index.analyzers, settings.predicates, settings.max_hits)
        self._word_answers = WordAnswers(self._searcher, columns)
        return index

    def _note_steps(self, _index: "LiteralIndex") -> None:
        self._moved.set()
        self._moved = asyncio.Event()

    @property
    def _is_waited_for(self) -> bool:
        return self._waiting > 0

    async def _wait_for_work(self, index: "LiteralIndex") -> None:
        try:
            async with asyncio.timeout(_PAST_S):
                await self._work.wait()
        except TimeoutError:
            index.forget_past()
            await self._work.wait()
