"""Is a history linearizable: could every operation have taken effect at one moment between call and return?

The search is that of Wing and Gong (1993) with Lowe's memory of what was tried (2017), as in Porcupine and
Knossos: from the state after some operations, try each of those that may come next. Keys are checked by
themselves, as linearizability is local (Herlihy and Wing, 1990, theorem 1).
"""

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = [
    "IMPOSSIBLE",
    "NEVER",
    "UNKNOWN",
    "Append",
    "CompareAndSet",
    "Operation",
    "Read",
    "SearchTooLong",
    "Step",
    "Write",
    "find_violation",
    "is_linearizable",
    "list_step",
    "register_step",
]

NEVER = math.inf  # when an operation returned whose answer was lost: it may take effect at any time
UNKNOWN = object()  # what it would have answered
_STEPS_MAX = 1_000_000

IMPOSSIBLE = object()
Step = Callable[[Any, "Operation"], Any]  # the state after an operation, IMPOSSIBLE where it cannot be


class SearchTooLong(Exception):
    """The history can be neither confirmed nor refuted in reasonable time."""


@dataclass(frozen=True, slots=True)
class Read:
    """Answers the value of a register, or the tuple of a list's items."""


@dataclass(frozen=True, slots=True)
class Write:
    """Sets a register; answers nothing."""

    value: Hashable


@dataclass(frozen=True, slots=True)
class CompareAndSet:
    """Sets a register that holds what is expected; answers whether it did."""

    expected: Hashable
    value: Hashable


@dataclass(frozen=True, slots=True)
class Append:
    """Puts an item, one of a kind, at the end of a list; answers nothing."""

    item: Hashable


@dataclass(frozen=True, slots=True)
class Operation:
    """What one client asked, what it was answered, and when. Times are of one clock."""

    key: str
    action: Read | Write | CompareAndSet | Append
    called: float
    returned: float = NEVER
    answer: Any = UNKNOWN

    def __str__(self) -> str:
        times = f"{self.called:.4f} to {self.returned:.4f}"
        return f"{times}: {self.action}" + ("" if self.answer is UNKNOWN else f" -> {self.answer}")


def register_step(_history: Sequence[Operation]) -> Step:
    """A register, at first None."""

    def step(state: Hashable, operation: Operation) -> Any:
        match operation.action:
            case Read():
                return state if operation.answer in (state, UNKNOWN) else IMPOSSIBLE
            case Write(value):
                return value
            case CompareAndSet(expected, value):
                succeeds = state == expected
                if operation.answer not in (succeeds, UNKNOWN):
                    return IMPOSSIBLE
                return value if succeeds else state
            case action:
                raise TypeError(action)

    return step


def list_step(history: Sequence[Operation]) -> Step:
    """A list that only grows. So every state of it agrees with the longest that was read: that saves most of
    the search.
    """
    reads = (operation.answer for operation in history if isinstance(operation.action, Read))
    longest = max((answer for answer in reads if answer is not UNKNOWN), key=len, default=())

    def step(state: tuple[Hashable, ...] | None, operation: Operation) -> Any:
        items = state or ()
        if isinstance(operation.action, Read):
            return state if operation.answer is UNKNOWN or operation.answer == items else IMPOSSIBLE
        assert isinstance(operation.action, Append)
        place = len(items)
        if place < len(longest) and longest[place] != operation.action.item:
            return IMPOSSIBLE
        return (*items, operation.action.item)

    return step


def find_violation(
    history: Iterable[Operation], step_for: Callable[[str], Callable[[Sequence[Operation]], Step]]
) -> str | None:
    """The first key that no order explains, with all that was done to it; None where there is none.

    step_for says of a key what kind of thing it names. Raises SearchTooLong.
    """
    by_key: Mapping[str, list[Operation]] = defaultdict(list)
    for operation in history:
        by_key[operation.key].append(operation)
    for key, operations in by_key.items():
        if not is_linearizable(operations, step_for(key)):
            lines = [str(operation) for operation in sorted(operations, key=lambda done: done.called)]
            return "\n".join([f"{key} is not linearizable:", *lines])
    return None


def is_linearizable(operations: Sequence[Operation], model: Callable[[Sequence[Operation]], Step]) -> bool:
    """Whether one order explains every answer. An operation without answer may be in it or not.

    Raises SearchTooLong.
    """
    return _Search(operations, model(operations)).succeeds()


class _Search:
    """Depth first over (the operations that have taken effect, the state)."""

    def __init__(self, operations: Sequence[Operation], step: Step) -> None:
        useful = [
            done for done in operations if done.answer is not UNKNOWN or not isinstance(done.action, Read)
        ]
        # what returned early is tried first: it has to be early, and what has no answer perhaps never
        self._operations = sorted(useful, key=lambda done: (done.returned, done.called))
        self._answered = sum(1 for done in useful if done.returned != NEVER)
        self._step = step
        # by what has taken effect of the answered, and the state: which of the others it took to get there
        self._seen: dict[tuple[int, Hashable], list[int]] = {}
        self._steps = 0

    def succeeds(self) -> bool:
        if not self._answered:
            return True
        stack = [(0, 0, None)]  # bits of what has taken effect, how many of the first all have, state
        while stack:
            done, first, state = stack.pop()
            for nearer in reversed(list(self._next(done, first, state))):
                bits, begun, _ = nearer
                if begun >= self._answered:
                    return True
                if self._is_new(bits, nearer[2]):
                    stack.append(nearer)
            self._steps += 1
            if self._steps > _STEPS_MAX:
                raise SearchTooLong(f"{len(self._operations)} operations")
        return False

    def _is_new(self, done: int, state: Hashable) -> bool:
        """False where the same was reached before with no operation that this way saves up for later."""
        answered = done & ((1 << self._answered) - 1)
        others = done >> self._answered
        known = self._seen.setdefault((answered, state), [])
        if any(fewer & others == fewer for fewer in known):
            return False
        known.append(others)
        return True

    def _next(self, done: int, first: int, state: Any) -> Iterable[tuple[int, int, Any]]:
        """Each operation that may be the next, as what is then."""
        deadline = self._operations[first].returned  # no call after this return may come before it
        for place in range(first, len(self._operations)):
            operation = self._operations[place]
            if done >> place & 1 or operation.called > deadline:
                continue
            after = self._step(state, operation)
            if after is not IMPOSSIBLE:
                bits = done | 1 << place
                begun = first
                while begun < self._answered and bits >> begun & 1:
                    begun += 1
                yield bits, begun, after
