"""`SearchShard`: the searches of one shard, each run step by step for a coordinator elsewhere.

A search runs as ordinary code does, on a thread of its own, and rests where it needs something of the other
shards, until the coordinator comes with it. So the coordinator alone calls, and a shard that nobody asks any
more does nothing.
"""

import pickle
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, Protocol, TypeVar

from graphdb.errors import UnavailableError
from graphdb.search.answer_room import one_answer
from graphdb.search.deadline import limited
from graphdb.search.errors import SearchError
from graphdb.search.multi import AllFailed
from graphdb.search.query import QueryContext, Searcher
from graphdb.search.query.peers import Question
from graphdb.search.sharded.search_task import SearchTask
from graphdb.search.sharded.several_task import SeveralTask
from graphdb.search.sharded.steps import Answered, Asking, Consulting, Failed, Gathering, Step

__all__ = ["SearchShard", "Steps", "View"]

Known = TypeVar("Known")
Piece = TypeVar("Piece")


class Steps(Protocol):
    """A shard, as a coordinator calls it. search and task are names that the coordinator gives."""

    def begin(self, search: str, task: int, number: int, work: bytes) -> Step:
        """Start a task of a search: all tasks of one see the same documents. number: of the shard in it."""

    def go_on(self, search: str, task: int, known: bytes) -> Step:
        """With what the task has asked for."""

    def end(self, search: str) -> None:
        """Forget it, whatever its tasks are at."""


@dataclass(frozen=True, slots=True)
class View:
    """What searches see of a shard now. context: for the time of a request.

    other: of an index that is searched beside and has no document here, by its `IndexPart.shape`. visible:
    the searcher of those who have these SIDs.
    """

    searcher: Searcher
    context: Callable[[int], QueryContext]
    other: "Callable[[bytes], View] | None" = None
    visible: Callable[[frozenset[str]], Searcher] | None = None

    def to(self, sids: frozenset[str] | None) -> "View":
        """As those see it who have these SIDs; None: who sees everything."""
        if sids is None:
            return self
        assert self.visible is not None
        return replace(self, searcher=self.visible(sids))


class SearchShard:
    """Implements `Steps`; for any thread. A task that is at rest keeps its thread."""

    def __init__(self, view: Callable[[], View]) -> None:
        self._view = view
        self._searches: dict[str, _Search] = {}
        self._lock = Lock()

    def begin(self, search: str, task: int, number: int, work: bytes) -> Step:
        return self.begin_later(search, task, number, work)()

    def go_on(self, search: str, task: int, known: bytes) -> Step:
        return self.go_on_later(search, task, known)()

    def begin_later(self, search: str, task: int, number: int, work: bytes) -> Callable[[], Step]:
        """`begin`, whose step one can wait for: until then it runs beside others."""
        job = pickle.loads(work)
        whole = job if isinstance(job, SearchTask | SeveralTask) else None
        view = None if whole is None else self._view().to(whole.sids)
        with self._lock:
            known = self._searches.get(search)
            if known is None:
                assert whole is not None, "a search begins with the whole"
                assert view is not None
                known = self._searches[search] = _Search(view, whole)
            known.is_idle = False
            running = known.tasks[task] = _Running(known.view, number, job, known.whole)
        running.start()
        return running.next_step

    def go_on_later(self, search: str, task: int, known: bytes) -> Callable[[], Step]:
        """See `begin_later`. Raises UnavailableError where the search has ended."""
        of_task = self._searches.get(search)
        if of_task is None:
            raise UnavailableError(_ENDED)
        of_task.is_idle = False
        running = of_task.tasks[task]
        running.resume(pickle.loads(known))
        return running.next_step

    def end(self, search: str) -> None:
        with self._lock:
            ended = self._searches.pop(search, None)
        if ended is not None:
            for running in ended.tasks.values():
                running.abandon()

    def end_idle(self) -> None:
        """End the searches that nobody has gone on with since this was called last."""
        with self._lock:
            idle = [name for name, search in self._searches.items() if search.is_idle]
            for search in self._searches.values():
                search.is_idle = True
        for name in idle:
            self.end(name)

    def __len__(self) -> int:
        """How many searches have not ended."""
        return len(self._searches)


@dataclass(slots=True)
class _Search:
    view: View
    whole: SearchTask | SeveralTask
    tasks: "dict[int, _Running]" = field(default_factory=dict)
    is_idle: bool = False


_ENDED = "the search has ended"


class _Abandoned(BaseException):
    """Ends a task that nobody waits for. (No `except Exception` is to stop it.)"""


class _Running:
    """One task on its thread; implements `Peers` for it. Steps are asked for by one thread at a time."""

    def __init__(
        self,
        view: View,
        number: int,
        work: "SearchTask | SeveralTask | Question[Any]",
        whole: SearchTask | SeveralTask,
    ) -> None:
        """whole: the search that it belongs to."""
        self.number = number
        self._view, self._work, self._whole = view, work, whole
        self._steps: SimpleQueue[Step | BaseException] = SimpleQueue()
        self._replies: SimpleQueue[Any] = SimpleQueue()
        self._owners: list[int] = []
        self._is_abandoned = False
        self._thread = Thread(target=self._run, name="search-task", daemon=True)

    # for those who ask

    def start(self) -> None:
        """Let it run until it rests."""
        self._thread.start()

    def resume(self, known: Any) -> None:
        """The same with what it has rested for."""
        self._replies.put(known)

    def next_step(self) -> Step:
        """Wait until it rests. Raises what is no error of the request, UnavailableError where it is ended."""
        step = self._steps.get()
        if isinstance(step, BaseException):
            raise step
        return step

    def abandon(self) -> None:
        """End it: at rest now, else at the next checkpoint."""
        self._is_abandoned = True
        self._replies.put(None)

    # for the task, on its thread

    def gather(self, place: str, piece: Piece) -> list[Piece]:
        return [pickle.loads(each) for each in self._rest(Gathering(place, pickle.dumps(piece)))]

    def everywhere(self, question: Question[Known]) -> list[Known]:
        return [pickle.loads(each) for each in self._rest(Asking(pickle.dumps(question)))]

    def advice(self, asked: Any) -> Any:
        (advised,) = self._rest(Consulting(pickle.dumps(asked)))
        return pickle.loads(advised)

    def place(self, owners: list[int]) -> None:
        self._owners = owners

    def _rest(self, step: Step) -> list[bytes]:
        self._steps.put(step)
        known: list[bytes] = self._replies.get()
        self._check()
        return known

    def _check(self) -> None:
        if self._is_abandoned:
            raise _Abandoned

    def _run(self) -> None:
        try:
            with limited(self._check), one_answer():
                self._steps.put(Answered(pickle.dumps(self._result())))
        except SearchError as error:
            self._steps.put(Failed(error))
        except AllFailed as error:  # of the one index
            self._steps.put(Failed(error.failures[0].error))
        except _Abandoned:
            self._steps.put(UnavailableError(_ENDED))  # somebody may wait for the step
        except BaseException as error:  # noqa: BLE001 - raised again where the step is asked for
            self._steps.put(error)

    def _result(self) -> Any:
        if isinstance(self._whole, SeveralTask):
            return self._result_of_several(self._whole)
        searcher = self._whole.searcher(self._view.searcher, self)
        if isinstance(self._work, SearchTask):
            return self._work.run(searcher, self._view.context(self._work.now_ms)), self._owners
        assert not isinstance(self._work, SeveralTask)
        return self._work.answered(searcher)

    def _result_of_several(self, several: SeveralTask) -> Any:
        own, other = several.index_of(self.number), self._view.other
        assert other is not None
        views = [
            self._view if place == own else other(part.shape) for place, part in enumerate(several.parts)
        ]
        searcher = several.searcher([view.searcher for view in views], self)
        if isinstance(self._work, SeveralTask):
            contexts = [view.context(several.now_ms) for view in views]
            return several.run(searcher, contexts), self._owners
        assert not isinstance(self._work, SearchTask)
        return self._work.answered(searcher)
