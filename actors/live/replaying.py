"""A copy of the graph as it was at an index from which somebody resumes."""

from actors.live.change_log import ChangeStream
from actors.live.live_copy import LiveCopy, Step
from graphdb.errors import ChangesForgotten, LogUnavailable

__all__ = ["go_back_to"]

_WAIT_S = 10.0
REPLAYED_QUADS_MAX = 1_000_000  # that have changed since the index that somebody resumes from


async def go_back_to(copy: LiveCopy, stream: ChangeStream) -> list[Step]:
    """Take the copy back to where the stream is; the steps that lead from there to where the copy was, or a
    little further, which is where the stream is then.

    Raises ChangesForgotten, LogUnavailable.
    """
    since, quads = stream.through, 0
    steps: list[Step] = []
    while stream.through < copy.index:
        changes = await stream.read(_WAIT_S)
        if changes is None:
            raise LogUnavailable("the node is stopping")
        quads += sum(one.change.affected_triples for one in changes)
        if quads > REPLAYED_QUADS_MAX:
            raise ChangesForgotten(since, stream.through)
        steps += copy.whole_steps(changes)
    await copy.go([step for step in steps if step.index > copy.index], stream.through)
    await copy.go_back(steps, since)
    return steps
