"""Carrying out plans with the graph of this node."""

import asyncio
from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

from graphdb.search.following.shape import Plan, Row

__all__ = ["AskedGraph", "answered"]

T = TypeVar("T")


class AskedGraph(Protocol):
    """What is needed of `serve.search.backend.GraphAccess`."""

    async def select(self, query: str, min_index: int | None = None) -> dict[str, Any]: ...


async def answered(plan: Plan[T], graph: AskedGraph, min_index: int | None = None) -> T:
    """What a plan returns, of states of the graph that have seen the log up to min_index."""
    query, result = await asyncio.to_thread(_advance, plan, None)
    while query is not None:
        answer = await graph.select(query, min_index)
        query, result = await asyncio.to_thread(_advance, plan, answer["results"]["bindings"])
    assert result is not None
    return result[0]


def _advance(plan: Plan[T], rows: Sequence[Row] | None) -> tuple[str | None, tuple[T] | None]:
    """The next query, or in a tuple what the plan returns."""
    try:
        return (next(plan) if rows is None else plan.send(rows)), None
    except StopIteration as end:
        return None, (end.value,)
