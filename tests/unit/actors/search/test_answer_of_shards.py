"""What the shards of one search show together: bounded as what one shard shows."""

from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from actors.search.host_follower import CopySteps, called
from graphdb.search import answer_room
from graphdb.search.answer_room import one_answer
from graphdb.search.errors import SearchError
from graphdb.search.sharded import Call
from graphdb.search.sharded.steps import Answered, Gathering

ROOM = 1_000


@dataclass
class Process:
    """Of two shards, each of which comes to a step. taken: how often its results were asked for."""

    step: Any
    taken: list[int] = field(default_factory=list)

    def call(self, method: str, *arguments: Any, results: int = 1) -> list["Process"]:
        return [self]

    def value(self, timeout_s: float) -> list[Any]:
        self.taken.append(1)
        return [self.step, self.step]


def calls_of(processes: list[Process]) -> list[Call]:
    nobody = cast(Any, None)
    copies = [CopySteps(cast(Any, process), nobody, "node", "copy", 1) for process in processes]
    return [Call(copy, "begin", ("search", 1, 0, b"")) for copy in copies for _ in range(2)]


@pytest.fixture(autouse=True)
def _room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_room, "ANSWER_BYTES_MAX", ROOM)


def test_the_sum_is_bounded_and_the_rest_stays_where_it_is() -> None:
    processes = [Process(Answered(bytes(300))) for _ in range(4)]
    with one_answer(), pytest.raises(SearchError, match="Data too large") as refused:
        called(calls_of(processes))
    assert refused.value.status == 429
    assert [len(process.taken) for process in processes] == [1, 1, 0, 0]


def test_an_answer_within_the_room_and_what_shards_tell_each_other() -> None:
    with one_answer():
        assert len(called(calls_of([Process(Answered(bytes(240))), Process(Answered(bytes(240)))]))) == 4
        assert len(called(calls_of([Process(Gathering("sort", bytes(ROOM)))]))) == 2
