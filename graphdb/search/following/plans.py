"""`Plan`: work that needs answers of the graph, without knowing how the graph is asked.

A plan is a generator: it yields the text of a SELECT, is sent its rows, and returns what it has made of them.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

__all__ = ["Plan", "Row", "Term", "batches", "carried_out"]

T = TypeVar("T")

Term: TypeAlias = Mapping[str, Any]
"""As SPARQL 1.1 results JSON has it: type, value, datatype, xml:lang."""
Row: TypeAlias = Mapping[str, Term]
"""By variable, without those that are unbound."""
Plan: TypeAlias = Generator[str, Sequence[Row], T]


def carried_out(plan: Plan[T], select: Callable[[str], Sequence[Row]]) -> T:
    """What a plan returns, with a graph that answers at once."""
    try:
        query = next(plan)
        while True:
            query = plan.send(select(query))
    except StopIteration as end:
        result: T = end.value
        return result


def batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """The items in order, at most so many at a time."""
    batch: list[T] = []
    for item in items:
        batch.append(item)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch
