"""What clients ask of the node: `_capabilities`, `_info`, `_features`, `_dangling`, `_nodes/hot_threads`."""

from collections.abc import Sequence
from typing import Any

from graphdb.config import Settings
from graphdb.search.errors import illegal_argument
from serve.search.administration.thread_pools import pool_stats
from serve.search.backend import SearchBackend
from serve.search.frame.answer import Answer
from serve.search.frame.exchange import Endpoint, Exchange, endpoint
from serve.search.frame.identity import Identity
from serve.search.frame.parameters import COMMON

__all__ = ["capability_routes", "routes"]

_TARGETS = ("http", "ingest", "script", "thread_pool")
_HOT_THREADS = "ignore_idle_threads interval snapshots sort threads timeout type"
_KINDS = ("cpu", "wait", "block", "gpu", "mem")


def routes(node: SearchBackend, settings: Settings) -> list[Endpoint]:
    identity = Identity(node, settings)
    heads = {"cluster_name": identity.cluster_name}
    counts = {"_nodes": {"total": 1, "successful": 1, "failed": 0}, **heads}

    async def info(exchange: Exchange) -> dict[str, Any]:
        shown = _sections(exchange)
        return {**heads, **{name: shown[name] for name in _asked(exchange)}}

    async def dangling(_exchange: Exchange) -> dict[str, Any]:
        """Indexes are in the log: none is found in a directory that the cluster does not know."""
        return {**counts, "dangling_indices": []}

    return [
        *endpoint("GET", "/_info/{target}", info),
        *endpoint("GET", "/_features", _features, "master_timeout"),
        *endpoint("GET", "/_dangling", dangling),
        *endpoint(
            "GET", ["/_nodes/hot_threads", "/_nodes/{node_id}/hot_threads"], _hot_threads, _HOT_THREADS
        ),
    ]


def _asked(exchange: Exchange) -> Sequence[str]:
    """Errors: illegal_argument_exception."""
    given = exchange["target"].split(",")
    where = f"request [{exchange.path}] contains"
    if "_all" in given and len(given) > 1:
        raise illegal_argument(f"{where} _all and individual target [{','.join(sorted(given))}]")
    unknown = sorted(set(given) - {*_TARGETS, "_all"})
    if unknown:
        plural = "s" if len(unknown) > 1 else ""
        listed = ", ".join(f"[{name[:100]}]" for name in unknown)
        raise illegal_argument(f"{where} unrecognized target{plural}: {listed}")
    return _TARGETS if "_all" in given else [name for name in _TARGETS if name in given]


def _sections(exchange: Exchange) -> dict[str, Any]:
    """Pipelines and scripts are not counted."""
    none = {"count": 0, "time_in_millis": 0, "current": 0, "failed": 0}
    return {
        "http": {"current_open": 0, "total_opened": 0, "clients": [], "routes": {}},
        "ingest": {"total": none, "pipelines": {}},
        "script": {"compilations": 0, "cache_evictions": 0, "compilation_limit_triggered": 0},
        "thread_pool": pool_stats(exchange.pools()),
    }


async def _features(_exchange: Exchange) -> dict[str, Any]:
    """None keeps its state in indexes of its own."""
    return {"features": []}


async def _hot_threads(exchange: Exchange) -> Answer:
    """Threads of Java there are none; the head stands as clients expect it."""
    kind = exchange.parameters.text("type")
    if kind is not None and kind not in _KINDS:
        raise illegal_argument(f"type not supported [{kind[:100]}]")
    return Answer("")


def capability_routes(endpoints: Sequence[Endpoint]) -> list[Endpoint]:
    """`_capabilities`: whether these operations are what a client asks for."""

    async def capabilities(exchange: Exchange) -> dict[str, Any]:
        parameters = exchange.parameters
        path, method = parameters.text("path") or "/", (parameters.text("method") or "GET").upper()
        asked = set(parameters.strings("parameters")) - COMMON
        fitting = [one for one in known if method in one.methods and _fits(one.path, path)]
        has_more = bool(
            parameters.strings("capabilities")
        )  # what Elasticsearch names by words, here has none
        is_there = any(asked <= one.parameters for one in fitting) and not has_more
        return {"_nodes": {"total": 1, "successful": 1, "failed": 0}, "supported": is_there}

    own = endpoint(
        "GET", "/_capabilities", capabilities, "method path parameters capabilities timeout local_only"
    )
    known = [*endpoints, *own]
    return own


def _fits(known: str, asked: str) -> bool:
    """Whether a path, or one with `{names}`, is that of an operation."""
    parts, given = known.strip("/").split("/"), asked.strip("/").split("/")
    return len(parts) == len(given) and all(
        part == one or (part.startswith("{") and not one.startswith("_"))
        for part, one in zip(parts, given, strict=True)
    )
