"""The checker of histories: it finds what is planted, and agrees with trying every order."""

from collections.abc import Callable, Sequence
from itertools import combinations, permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.linearizability import (
    IMPOSSIBLE,
    NEVER,
    UNKNOWN,
    Append,
    CompareAndSet,
    Operation,
    Read,
    Step,
    Write,
    find_violation,
    is_linearizable,
    list_step,
    register_step,
)

Model = Callable[[Sequence[Operation]], Step]


def did(action: Any, called: float, returned: float = NEVER, answer: Any = UNKNOWN) -> Operation:
    """An operation; one that returned and answers nothing has the answer None."""
    if returned != NEVER and answer is UNKNOWN:
        answer = None
    return Operation("key", action, called, returned, answer)


REGISTER_HISTORIES = {
    "nothing at all": (True, []),
    "read what was written": (True, [did(Write(1), 0, 1), did(Read(), 2, 3, 1)]),
    "stale read": (False, [did(Write(1), 0, 1), did(Write(2), 2, 3), did(Read(), 4, 5, 1)]),
    "read during a write sees either": (True, [did(Write(1), 0, 9), did(Read(), 1, 2, None)]),
    "new, then old again": (
        False,
        [did(Write(1), 0, 9), did(Read(), 1, 2, 1), did(Read(), 3, 4, None)],
    ),
    "lost write": (False, [did(Write(1), 0, 1), did(Read(), 2, 3, None)]),
    "a write without answer shows late": (
        True,
        [did(Write(1), 0), did(Read(), 2, 3, None), did(Read(), 4, 5, 1)],
    ),
    "and does not go away again": (
        False,
        [did(Write(1), 0), did(Read(), 2, 3, 1), did(Read(), 4, 5, None)],
    ),
    "read of what nobody wrote": (False, [did(Write(1), 0), did(Read(), 2, 3, 2)]),
    "read before the write was called": (False, [did(Read(), 0, 1, 1), did(Write(1), 2, 3)]),
    "two win the same comparison": (
        False,
        [did(CompareAndSet(None, 1), 0, 9, True), did(CompareAndSet(None, 2), 0, 9, True)],
    ),
    "one wins": (
        True,
        [did(CompareAndSet(None, 1), 0, 9, True), did(CompareAndSet(None, 2), 0, 9, False)],
    ),
    "a comparison that took effect twice": (
        False,
        [
            did(CompareAndSet(None, 1), 0, 1, True),
            did(CompareAndSet(1, None), 2, 3, True),
            did(Read(), 4, 5, 1),
        ],
    ),
}
LIST_HISTORIES = {
    "in order": (True, [did(Append(1), 0, 1), did(Append(2), 2, 3), did(Read(), 4, 5, (1, 2))]),
    "out of order": (False, [did(Append(1), 0, 1), did(Append(2), 2, 3), did(Read(), 4, 5, (2, 1))]),
    "double effect": (False, [did(Append(1), 0, 1), did(Read(), 2, 3, (1, 1))]),
    "double effect of what had no answer": (False, [did(Append(1), 0), did(Read(), 2, 3, (1, 1))]),
    "lost": (
        False,
        [did(Append(1), 0, 1), did(Append(2), 0, 1), did(Read(), 2, 3, (1,)), did(Read(), 4, 5, (1,))],
    ),
    "two branches": (
        False,
        [did(Append(1), 0), did(Append(2), 0), did(Read(), 1, 9, (1,)), did(Read(), 1, 9, (2,))],
    ),
    "either branch": (
        True,
        [did(Append(1), 0), did(Append(2), 0), did(Read(), 1, 9, (1,)), did(Read(), 1, 9, (1, 2))],
    ),
}


@pytest.mark.parametrize(("expected", "history"), REGISTER_HISTORIES.values(), ids=REGISTER_HISTORIES)
def test_register(expected: bool, history: list[Operation]) -> None:
    assert is_linearizable(history, register_step) is expected


@pytest.mark.parametrize(("expected", "history"), LIST_HISTORIES.values(), ids=LIST_HISTORIES)
def test_list(expected: bool, history: list[Operation]) -> None:
    assert is_linearizable(history, list_step) is expected


def test_a_violation_is_told_with_the_history_of_its_key() -> None:
    fine = Operation("fine", Write(1), 0, 1, None)
    stale = [Operation("stale", Write(1), 0, 1, None), Operation("stale", Read(), 2, 3, None)]
    assert find_violation([fine], lambda _: register_step) is None
    told = find_violation([fine, *stale], lambda _: register_step)
    assert told is not None
    assert told.splitlines()[0] == "stale is not linearizable:"
    assert len(told.splitlines()) == 3


def test_a_long_history_of_many_clients_is_checked_in_time() -> None:
    history = []
    for number in range(80):  # four at a time, each of which may come first; every tenth answer is lost
        called = float(number // 4)
        returned = NEVER if number % 10 == 0 else called + 1.5
        history.append(did(Write(number), called, returned))
    history.append(did(Read(), 200, 201, 79))
    assert is_linearizable(history, register_step)
    assert not is_linearizable([*history, did(Read(), 202, 203, 1)], register_step)


def by_brute_force(history: list[Operation], model: Model) -> bool:
    """Every subset that holds what has an answer, in every order that the times allow."""
    step = model(history)
    answered = [done for done in history if done.returned != NEVER]
    lost = [done for done in history if done.returned == NEVER]
    return any(
        _explains(order, step)
        for count in range(len(lost) + 1)
        for some in combinations(lost, count)
        for order in permutations([*answered, *some])
    )


def _explains(order: tuple[Operation, ...], step: Step) -> bool:
    state = None
    for place, operation in enumerate(order):
        if any(later.returned < operation.called for later in order[place + 1 :]):
            return False
        state = step(state, operation)
        if state is IMPOSSIBLE:
            return False
    return True


VALUES = st.sampled_from([None, 1, 2])
REGISTER_ACTIONS = st.one_of(
    st.tuples(st.just(Read()), VALUES),
    st.tuples(st.builds(Write, VALUES), st.none()),
    st.tuples(st.builds(CompareAndSet, VALUES, VALUES), st.booleans()),
)
LIST_ACTIONS = st.one_of(
    st.tuples(st.just(Read()), st.sampled_from([(), (1,), (2,), (1, 2), (2, 1), (1, 2, 3), (1, 1)])),
    st.tuples(st.builds(Append, st.sampled_from([1, 2, 3])), st.none()),
)


def histories(actions: st.SearchStrategy[tuple[Any, Any]]) -> st.SearchStrategy[list[Operation]]:
    """Up to five operations; moments are few, so that many of them overlap."""

    def make(action: tuple[Any, Any], called: int, lasts: int, lost: bool) -> Operation:
        if lost:
            return did(action[0], called)
        return did(action[0], called, called + lasts + 0.5, action[1])

    operation = st.builds(make, actions, st.integers(0, 6), st.integers(0, 4), st.booleans())
    return st.lists(operation, max_size=5)


@given(histories(REGISTER_ACTIONS))
def test_registers_as_by_brute_force(history: list[Operation]) -> None:
    assert is_linearizable(history, register_step) is by_brute_force(history, register_step)


@given(histories(LIST_ACTIONS))
def test_lists_as_by_brute_force(history: list[Operation]) -> None:
    assert is_linearizable(history, list_step) is by_brute_force(history, unpruned_list_step)


def unpruned_list_step(_history: Sequence[Operation]) -> Step:
    return list_step([])
