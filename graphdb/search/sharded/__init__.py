"""One search over shards that are searched apart from one another. See DESIGN.md."""

from graphdb.search.sharded.coordinator import (
    Advise,
    Call,
    Calls,
    Lost,
    NoShard,
    ShardFailures,
    search_shards,
)
from graphdb.search.sharded.narrowing import Asked, Narrowing, all_texts
from graphdb.search.sharded.search_shard import SearchShard, Steps, View
from graphdb.search.sharded.search_task import LookedUp, SearchTask
from graphdb.search.sharded.several_task import IndexPart, SeveralTask

__all__ = [
    "Advise",
    "Asked",
    "Call",
    "Calls",
    "IndexPart",
    "LookedUp",
    "Lost",
    "Narrowing",
    "NoShard",
    "SearchShard",
    "SearchTask",
    "SeveralTask",
    "ShardFailures",
    "Steps",
    "View",
    "all_texts",
    "search_shards",
]
