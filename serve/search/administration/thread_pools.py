"""The thread pools of a node, for `_cat/thread_pool`, `_nodes/thread_pool` and `_nodes/stats/thread_pool`.

Searches have a pool of threads here, and writes are appended to the log, a few at once. Elasticsearch's other
pools have no workers of their own here: they are listed, as monitoring expects them, with nothing in them.

Source: the pools and their types are those of Elasticsearch 8's `ThreadPool`.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from graphdb.search.mapping.wildcards import wildcard_match
from graphdb.search.pool_use import PoolUse
from serve.search.administration.cat_table import CatView, Column, Listing, Row

__all__ = ["LISTING", "pool_infos", "pool_stats"]

_FIXED = """analyze auto_complete get search search_coordination search_throttled system_critical_read
    system_critical_write system_read system_write write"""
_SCALING = """cluster_coordination fetch_shard_started fetch_shard_store flush force_merge generic management
    refresh snapshot snapshot_meta warmer"""
_TYPES: Mapping[str, str] = {
    name: "fixed" if name in _FIXED.split() else "scaling" for name in sorted(f"{_FIXED} {_SCALING}".split())
}
_NOTHING = PoolUse(0)

_COLUMNS = (
    Column("node_name", ("nn",), "node name"),
    Column("node_id", ("id",), "persistent node id", on=False),
    Column("ephemeral_node_id", ("eid",), "ephemeral node id", on=False),
    Column("pid", ("p",), "process id", on=False),
    Column("host", ("h",), "host name", on=False),
    Column("ip", ("i",), "ip address", on=False),
    Column("port", ("po",), "bound transport port", on=False),
    Column("name", ("n",), "thread pool name"),
    Column("type", ("t",), "thread pool type", on=False),
    Column("active", ("a",), "number of active threads", right=True),
    Column("pool_size", ("psz",), "number of threads", on=False, right=True),
    Column("queue", ("q",), "number of tasks currently in queue", right=True),
    Column("queue_size", ("qs",), "maximum number of tasks permitted in queue", on=False, right=True),
    Column("rejected", ("r",), "number of rejected tasks", right=True),
    Column("largest", ("l",), "highest number of seen active threads", on=False, right=True),
    Column("completed", ("c",), "number of completed tasks", on=False, right=True),
    Column("core", ("cr",), "core number of threads in a scaling pool", on=False, right=True),
    Column("max", ("mx",), "maximum number of threads in a scaling pool", on=False, right=True),
    Column("size", ("sz",), "number of threads in a fixed pool", on=False, right=True),
    Column("keep_alive", ("ka",), "thread keep alive time", on=False, right=True),
)


def pool_stats(used: Mapping[str, PoolUse]) -> dict[str, Any]:
    """As `_nodes/stats/thread_pool` shows them. used: of the pools that are here, by name."""
    return {
        name: {
            "threads": use.size,
            "queue": use.queue,
            "active": use.active,
            "rejected": use.rejected,
            "largest": use.largest,
            "completed": use.completed,
        }
        for name, use in _each(used)
    }


def pool_infos(used: Mapping[str, PoolUse]) -> dict[str, Any]:
    """As `_nodes/thread_pool` shows them."""
    shown = {}
    for name, use in _each(used):
        kind = _TYPES[name]
        sizes = {"size": use.size} if kind == "fixed" else {"core": 0, "max": use.size}
        shown[name] = {"type": kind, **sizes, "queue_size": use.queue_size}
    return shown


def _each(used: Mapping[str, PoolUse]) -> Iterator[tuple[str, PoolUse]]:
    for name in _TYPES:
        yield name, used.get(name, _NOTHING)


def _rows(view: CatView) -> Iterator[Row]:
    """Of this node only, as the others count for themselves."""
    here = view.identity.here(view.status)
    patterns = (view.names or "*").split(",")
    for name, use in _each(view.pools):
        if not any(wildcard_match(pattern, name) for pattern in patterns):
            continue
        is_fixed = _TYPES[name] == "fixed"
        yield {
            "node_name": here.name,
            "node_id": here.id,
            "ephemeral_node_id": here.id,
            "pid": view.process_id,
            "host": here.host,
            "ip": here.host,
            "port": here.transport_address.rpartition(":")[2],
            "name": name,
            "type": _TYPES[name],
            "active": use.active,
            "pool_size": use.size,
            "queue": use.queue,
            "queue_size": use.queue_size,
            "rejected": use.rejected,
            "largest": use.largest,
            "completed": use.completed,
            "core": None if is_fixed else 0,
            "max": None if is_fixed else use.size,
            "size": use.size if is_fixed else None,
        }


LISTING = Listing("thread_pool", _COLUMNS, _rows, "thread_pool_patterns")
