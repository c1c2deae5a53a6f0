"""Futures are answered once, and their callers may have gone."""

from collections.abc import Callable
from concurrent.futures import Future

import pytest

from actors.futures import answer, fail

ANSWERS: dict[str, Callable[["Future[int]"], None]] = {
    "answer": lambda future: answer(future, 2),
    "fail": lambda future: fail(future, KeyError("late")),
}


def test_who_waits_is_told() -> None:
    good: Future[int] = Future()
    bad: Future[int] = Future()
    answer(good, 1)
    error = KeyError("x")
    fail(bad, error)
    assert good.result(0) == 1
    assert bad.exception(0) is error


@pytest.mark.parametrize("late", ANSWERS.values(), ids=ANSWERS)
def test_the_first_answer_counts(late: Callable[["Future[int]"], None]) -> None:
    future: Future[int] = Future()
    answer(future, 1)
    late(future)
    assert future.result(0) == 1
    failed: Future[int] = Future()
    error = ValueError("first")
    fail(failed, error)
    late(failed)
    assert failed.exception(0) is error


@pytest.mark.parametrize("late", ANSWERS.values(), ids=ANSWERS)
def test_whoever_has_left_stays_gone(late: Callable[["Future[int]"], None]) -> None:
    future: Future[int] = Future()
    told: list[bool] = []
    future.add_done_callback(lambda done: told.append(done.cancelled()))
    future.cancel()
    late(future)
    late(future)
    assert future.cancelled()
    assert told == [True]


@pytest.mark.parametrize("late", ANSWERS.values(), ids=ANSWERS)
def test_an_answered_future_can_no_longer_be_cancelled(late: Callable[["Future[int]"], None]) -> None:
    future: Future[int] = Future()
    late(future)
    assert not future.cancel()
