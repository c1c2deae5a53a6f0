"""`search_shards`: leads the shards of an index through one search.

All shards run the whole search over their own documents. The coordinator hands to each what all have at the
places where they need it, asks all for one what it wants to know, and puts their hits together. A shard that
is lost is replaced by another copy, from the start of the search, or left out.
"""

import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from graphdb.search.answer_room import answer_attempt
from graphdb.search.sharded.search_shard import Steps
from graphdb.search.sharded.search_task import SearchTask, whole_answer
from graphdb.search.sharded.several_task import SeveralTask
from graphdb.search.sharded.steps import Answered, Asking, Consulting, Failed, Gathering, Step

__all__ = ["Advise", "Call", "Calls", "Lost", "NoShard", "ShardFailures", "search_shards"]


@dataclass(frozen=True, slots=True)
class Lost:
    """What came of a call to a shard that does not answer. node: where it was, as clients know that."""

    reason: str
    node: str | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """A method of a copy of a shard."""

    copy: Steps
    method: str
    arguments: tuple[Any, ...]


Calls = Callable[[Sequence[Call]], Sequence[Step | Lost | None]]
"""Does them all, at once if it can, and gives what came of each. What they raise, it raises; a copy that does
not answer is `Lost`.
"""


Advise = Callable[[Sequence[Any]], Any]
"""Answers what all shards ask, by shard."""


@dataclass(frozen=True, slots=True)
class ShardFailures:
    """The shards that are not in an answer, by number, and why: what came of the last copy that was asked."""

    lost: Mapping[int, Lost] = field(default_factory=dict)


class NoShard(Exception):
    """Too few shards answer: all are lost, or one, where no part of an answer is wanted."""

    def __init__(self, failures: ShardFailures) -> None:
        super().__init__(failures)
        self.failures = failures


def search_shards(
    search: str,
    copies: Mapping[int, Sequence[Steps]],
    task: SearchTask | SeveralTask,
    calls: Calls,
    partial: bool = True,
    advise: Advise | None = None,
) -> tuple[dict[str, Any], ShardFailures]:
    """(the answer without `took` and `_shards`, what is not in it).

    search: a name that no other search has. copies: of each shard by its number, the preferred first.
    partial: whether an answer of some shards will do. advise: for a task that narrows. Raises SearchError,
    NoShard, and what advise raises.
    """
    left = {number: list(of_shard) for number, of_shard in sorted(copies.items())}
    failures: dict[int, Lost] = {}
    attempt = 0
    while True:
        chosen = {number: of_shard[0] for number, of_shard in left.items() if of_shard}
        missing = ShardFailures(
            {
                number: failures.get(number, Lost("no copy"))
                for number in left
                if not left[number] and task.needs(number)
            }
        )
        if not any(map(task.needs, chosen)) or (missing.lost and not partial):
            raise NoShard(missing)
        attempt += 1
        leading = _Leading(f"{search}/{attempt}", list(chosen.values()), calls, advise)
        try:
            with answer_attempt():  # a shard may be lost when others have answered
                results = leading.run(pickle.dumps(task.among(list(chosen))))
            parts, owners = zip(*map(pickle.loads, results), strict=True)
            return whole_answer(parts, owners[0], task.options.raw_source), missing
        except _ShardLost as error:
            number = list(chosen)[error.place]
            failures[number] = error.lost
            del left[number][0]
        finally:
            leading.end()


class _ShardLost(Exception):
    def __init__(self, place: int, lost: Lost) -> None:
        super().__init__(place, lost)
        self.place, self.lost = place, lost


class _Leading:
    """One attempt. Shards are numbered by their places in the list."""

    def __init__(self, name: str, shards: Sequence[Steps], calls: Calls, advise: Advise | None) -> None:
        self._name, self._shards, self._calls, self._advise = name, shards, calls, advise
        self._tasks = 0
        self._known: dict[bytes, list[bytes]] = {}  # answers by question

    def run(self, work: bytes) -> list[bytes]:
        """The results of a task, by shard."""
        self._tasks += 1
        task = self._tasks
        every = range(len(self._shards))
        steps = dict(enumerate(self._call("begin", {number: (task, number, work) for number in every})))
        while True:
            for step in steps.values():
                if isinstance(step, Failed):
                    raise step.error
            results = [step.result for step in steps.values() if isinstance(step, Answered)]
            if len(results) == len(steps):
                return results
            replies = self._asked(steps) or self._advised(steps) or self._gathered(steps)
            texts = {id(known): pickle.dumps(known) for known in replies.values()}  # mostly the same for all
            arguments = {number: (task, texts[id(known)]) for number, known in replies.items()}
            steps.update(zip(replies, self._call("go_on", arguments), strict=True))

    def end(self) -> None:
        """All shards may forget the search."""
        self._calls([Call(shard, "end", (self._name,)) for shard in self._shards])

    def _asked(self, steps: Mapping[int, Step]) -> dict[int, list[bytes]]:
        """What the shards that ask have asked for."""
        return {
            number: self._everywhere(step.question)
            for number, step in steps.items()
            if isinstance(step, Asking)
        }

    def _everywhere(self, question: bytes) -> list[bytes]:
        if question not in self._known:
            self._known[question] = self.run(question)
        return self._known[question]

    def _advised(self, steps: Mapping[int, Step]) -> dict[int, list[bytes]]:
        """The same answer for all, where all have come to ask for advice."""
        asked = [pickle.loads(step.asked) for step in steps.values() if isinstance(step, Consulting)]
        if len(asked) < len(steps):
            return {}
        assert self._advise is not None, "the task narrows, and nobody is there to advise"
        advised = [pickle.dumps(self._advise(asked))]
        return dict.fromkeys(steps, advised)

    def _gathered(self, steps: Mapping[int, Step]) -> dict[int, list[bytes]]:
        """What all have at the place to which all have come."""
        found = [step for step in steps.values() if isinstance(step, Gathering)]
        places = {step.place for step in found}
        assert len(found) == len(steps), f"some shards are done, others at {places}"
        assert len(places) == 1, f"the shards have come to different places: {places}"
        pieces = [step.piece for step in found]
        return dict.fromkeys(steps, pieces)

    def _call(self, method: str, arguments: Mapping[int, tuple[Any, ...]]) -> list[Step]:
        calls = [
            Call(self._shards[number], method, (self._name, *of_shard))
            for number, of_shard in arguments.items()
        ]
        steps: list[Step] = []
        for number, step in zip(arguments, self._calls(calls), strict=True):
            if isinstance(step, Lost):
                raise _ShardLost(number, step)
            assert step is not None
            steps.append(step)
        return steps
