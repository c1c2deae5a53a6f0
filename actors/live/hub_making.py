"""The hubs of one node: that of its graph, and those of its views. They share the readers and a directory."""

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from actors.live.change_log import ChangeStream
from actors.live.live_copy import CopiedState, InTurn, StateCopier
from actors.live.subscription_hub import SubscriptionHub
from actors.live.whole_evaluation import ReaderEvaluation
from actors.readers.client import ReaderClient
from actors.readers.running_queries import RunningQueries
from graphdb.config import Settings
from graphdb.store.quad_store import QuadStore

__all__ = ["Follow", "MakeHub", "hub_maker"]

Follow: TypeAlias = Callable[[int | None, float], Awaitable[ChangeStream]]
MakeHub: TypeAlias = Callable[[Follow, Callable[[], QuadStore], InTurn], SubscriptionHub]
"""Of how the changes are followed, the store, and calling something while that stands still."""

_DIRECTORY = "live"  # in the data directory


def hub_maker(settings: Settings, readers: ReaderClient, running: RunningQueries) -> MakeHub:
    """For one node."""
    directory = settings.server.data_dir / _DIRECTORY
    union_default_graph = settings.server.union_default_graph
    copier = StateCopier(directory)
    evaluation = ReaderEvaluation(
        readers,
        running,
        directory,
        at_once=max(1, settings.readers.count - 1),
        timeout_s=settings.live.reevaluation_timeout_seconds,
        union_default_graph=union_default_graph,
    )

    def make(follow: Follow, quads: Callable[[], QuadStore], in_turn: InTurn) -> SubscriptionHub:
        async def copy() -> CopiedState:
            return await copier.copy(quads(), in_turn)

        return SubscriptionHub(
            follow,
            copy,
            evaluation,
            union_default_graph=union_default_graph,
            limits=settings.live,
            timeout_s=settings.server.query_timeout_seconds,
        )

    return make
