"""What the log tells of the changes since a state, for a write that depends on them."""

import asyncio
from collections.abc import Callable

from actors.live.change_log import ChangeStream
from graphdb.errors import LogUnavailable, Overloaded
from graphdb.live.changes import LoggedChange

__all__ = ["JUDGED_QUADS_MAX", "REACHED_S", "READ_S", "TURN_S", "read_changes"]

REACHED_S = 2.0  # so long a snapshot may be ahead of this node
READ_S = 10.0  # for what has changed since a snapshot, before the writer's turn
TURN_S = 2.0  # for what has been added to that when it comes
JUDGED_QUADS_MAX = 100_000  # of changes that are judged, in the writer's turn, as a writer saw them


async def read_changes(
    stream: ChangeStream, take: Callable[[LoggedChange], None], index: int, within_s: float, since: str
) -> None:
    """Hand over what stands in the log up to index, in order. since: the name of the state, for an error.

    Raises ChangesForgotten, Overloaded, LogUnavailable.
    """
    try:
        async with asyncio.timeout(within_s):
            while stream.through < index:
                changes = await stream.read(within_s)
                if changes is None:
                    raise LogUnavailable("the node is stopping")
                for one in changes:
                    take(one)
    except TimeoutError:
        raise Overloaded(f"too much has changed since {since}") from None
