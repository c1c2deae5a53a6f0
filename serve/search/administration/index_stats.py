"""Statistics of indexes: documents, segments, the state of shards."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from graphdb.config import Settings
from graphdb.node import NodeStatus
from graphdb.search.catalog.state import Index
from graphdb.search.catalog.visible_catalog import VisibleIndex
from graphdb.search.contexts import SearchContexts
from graphdb.search.errors import illegal_argument
from graphdb.search.mapping import Mapping
from graphdb.search.mapping.wildcards import wildcard_match
from graphdb.search.near_names import did_you_mean
from graphdb.search.segments.index_counters import IndexCounters
from graphdb.search.segments.index_shard import IndexShard, ShardStats
from graphdb.search.segments.shard_view import array_segment
from serve.search.administration.allocation import copies_of
from serve.search.administration.indices import CHOICE, chosen_indexes
from serve.search.administration.not_counted import with_not_counted
from serve.search.administration.vector_stats import dense_vector_json
from serve.search.backend import SearchBackend, ShardSearch
from serve.search.frame.exchange import Endpoint, Exchange, endpoint
from serve.search.frame.identity import LUCENE_VERSION, Identity, NodeName
from serve.search.frame.parameters import Parameters

__all__ = [
    "INDEX_METRICS",
    "STATUSES",
    "Placement",
    "SegmentInfo",
    "ShardCounts",
    "by_shard",
    "check_metrics",
    "chosen_sections",
    "count_all",
    "count_each",
    "count_shards",
    "fielddata_bytes",
    "list_segments",
    "metrics_asked",
    "nodes_reached",
    "routes",
    "shards_json",
    "stats_json",
    "with_file_sizes",
]

# How the copies of indexes are: what the healths of indexes and of the cluster are made of.
#
# Every node has all shards of an index. It is shown with as many replicas of each as its settings ask for; a
# replica has its place where there are nodes enough (`serve.search.administration.allocation`). Where shards
# are searched on a Ray cluster, their copies there count.

STATUSES = ("green", "yellow", "red")  # from good to bad


@dataclass(frozen=True, slots=True)
class ShardCounts:
    """Of one index, or of many."""

    primaries: int = 0  # that are active
    replicas: int = 0  # likewise
    unassigned: int = 0  # copies without a place
    initializing: int = 0  # copies that are being filled
    lost: int = 0  # primaries that are not active

    @property
    def active(self) -> int:
        return self.primaries + self.replicas

    @property
    def wanted(self) -> int:
        return self.active + self.unassigned + self.initializing

    @property
    def status(self) -> str:
        if self.lost:
            return "red"
        return "yellow" if self.unassigned or self.initializing else "green"

    def __add__(self, other: "ShardCounts") -> "ShardCounts":
        return ShardCounts(
            self.primaries + other.primaries,
            self.replicas + other.replicas,
            self.unassigned + other.unassigned,
            self.initializing + other.initializing,
            self.lost + other.lost,
        )


@dataclass(frozen=True, slots=True)
class Placement:
    """Where copies may be. nodes: database nodes that can be reached, this one too; elsewhere: who searches
    the shards, if not these.
    """

    nodes: int
    elsewhere: ShardSearch | None = None

    @classmethod
    def of(cls, node: SearchBackend) -> "Placement":
        return cls(nodes_reached(node.status()), node.shards)

    @property
    def data_nodes(self) -> int:
        """Those that have shards which are searched."""
        return self.nodes if self.elsewhere is None else len(self.elsewhere.nodes())


def count_shards(index: Index, placement: Placement) -> ShardCounts:
    """Of one index."""
    return sum(count_each(index, placement), ShardCounts())


def count_each(index: Index, placement: Placement) -> list[ShardCounts]:
    """By shard."""
    if placement.elsewhere is None:
        replicas = index.number("number_of_replicas")
        placed = min(replicas, placement.nodes - 1)
        return [ShardCounts(1, placed, replicas - placed) for _ in index.shards]
    counts = [ShardCounts() for _ in index.shards]
    for copy in placement.elsewhere.copies(index):
        is_active = copy.state == "STARTED"
        counts[copy.number] += ShardCounts(
            int(is_active and copy.is_primary),
            int(is_active and not copy.is_primary),
            int(copy.state == "UNASSIGNED"),
            int(copy.state == "INITIALIZING"),
            int(copy.is_primary and not is_active),
        )
    return counts


def count_all(indexes: Iterable[Index], placement: Placement) -> ShardCounts:
    """Added up."""
    return sum((count_shards(index, placement) for index in indexes), ShardCounts())


def nodes_reached(status: NodeStatus) -> int:
    """This node, and the others that it reaches."""
    others = (member for member in status.cluster_members if member.node_id != status.node_id)
    return 1 + sum(member.reachable for member in others)


def shards_json(indexes: Iterable[Index], placement: Placement) -> dict[str, int]:
    """The `_shards` of an answer that all copies of indexes have had a part in."""
    counts = count_all(indexes, placement)
    return {"total": counts.wanted, "successful": counts.active, "failed": 0}


# The segments of an index, as `_segments` and `_cat/segments` show them.


@dataclass(frozen=True, slots=True)
class SegmentInfo:
    """documents and deleted count nested ones, too."""

    name: str
    generation: int
    documents: int
    deleted: int
    size_bytes: int
    on_disk: bool
    version: str


def list_segments(index: Index) -> list[list[SegmentInfo]]:
    """The statistics of what a search may see now, by shard."""
    return [_segments_of(index, shard) for shard in index.shards]


def _segments_of(index: Index, shard: IndexShard[Mapping]) -> list[SegmentInfo]:
    found = []
    for number, leaf in enumerate(shard.leaves()):
        segment, live = array_segment(leaf), int(np.count_nonzero(leaf.live))
        # with restricted visibility the number of former segments is not disclosed
        name = f"_0_{number}" if isinstance(index, VisibleIndex) else segment.name
        found.append(
            SegmentInfo(
                name=name,
                generation=int(name.rpartition("_")[2]),
                documents=live,
                deleted=leaf.count - live,
                size_bytes=segment.size_bytes,
                on_disk=shard.log_index > 0,
                version=LUCENE_VERSION,
            )
        )
    return found


# What indexes hold: `_stats`, `_segments`.

_STATS = f"""{CHOICE} completion_fields fielddata_fields fields forbid_closed_indices groups
    include_segment_file_sizes include_unloaded_segments level"""
_LEVELS = ("cluster", "indices", "shards")
_SECTIONS = {"merge": "merges"}
INDEX_METRICS = frozenset(
    {
        "bulk",
        "completion",
        "dense_vector",
        "docs",
        "fielddata",
        "flush",
        "get",
        "indexing",
        "mappings",
        "merge",
        "query_cache",
        "recovery",
        "refresh",
        "request_cache",
        "search",
        "segments",
        "shard_stats",
        "sparse_vector",
        "store",
        "suggest",
        "translog",
        "warmer",
    }
)


def routes(node: SearchBackend, settings: Settings) -> list[Endpoint]:
    identity = Identity(node, settings)

    async def stats(exchange: Exchange) -> dict[str, Any]:
        return await asyncio.to_thread(_stats, exchange, identity)

    async def segments(exchange: Exchange) -> dict[str, Any]:
        return await asyncio.to_thread(_segments, exchange, identity)

    paths = ["/_stats", "/_stats/{metric}", "/{index}/_stats", "/{index}/_stats/{metric}"]
    return [
        *endpoint("GET", paths, stats, _STATS),
        *endpoint("GET", ["/_segments", "/{index}/_segments"], segments, CHOICE + " verbose"),
    ]


def stats_json(indexes: Sequence[Index], contexts: SearchContexts, copies: int = 1) -> dict[str, Any]:
    """Statistics of several indexes together. What is counted, is counted on this node, whatever copies."""
    contents = _stats_json([shard.stats() for index in indexes for shard in index.shards], copies)
    counted = _counted([index.shards.counters for index in indexes])
    counted["search"]["open_contexts"] = contexts.count_on(index.name for index in indexes)
    fields = {name: {**one, size: sum(by_field(indexes).values())} for name, one, size, by_field in _BY_FIELD}
    vectors = {"dense_vector": dense_vector_json(indexes, copies)}
    return with_not_counted(contents | counted | fields | vectors)


# What some kinds of fields take on this node.


def fielddata_bytes(indexes: Sequence[Index]) -> Counter[str]:
    """Of text fields by whose tokens somebody has sorted or aggregated."""
    sizes: Counter[str] = Counter()
    for leaf in (leaf for index in indexes for leaf in index.shards.leaves()):
        sizes.update(array_segment(leaf).loaded_bytes())
    return sizes


def _completion_bytes(indexes: Sequence[Index]) -> Counter[str]:
    """Of fields for suggestions."""
    sizes: Counter[str] = Counter()
    for index in indexes:
        paths = [spec.path for spec in index.mapping.match("*") if spec.type == "completion"]
        for leaf in index.shards.leaves() if paths else ():
            sizes.update({path: array_segment(leaf).bytes_of(path) for path in paths})
    return sizes


_BY_FIELD: tuple[tuple[str, dict[str, int], str, Callable[[Sequence[Index]], Counter[str]]], ...] = (
    ("fielddata", {"evictions": 0}, "memory_size_in_bytes", fielddata_bytes),
    ("completion", {}, "size_in_bytes", _completion_bytes),
)


def _with_fields(shown: dict[str, Any], indexes: Sequence[Index], parameters: Parameters) -> dict[str, Any]:
    """The same with the sizes of those fields that the request names."""
    shown = dict(shown)
    for name, _, size, by_field in _BY_FIELD:
        patterns = [*parameters.strings("fields"), *parameters.strings(f"{name}_fields")]
        if name in shown and patterns:
            fitting = {
                path: {size: taken}
                for path, taken in sorted(by_field(indexes).items())
                if any(pattern == "_all" or wildcard_match(pattern, path) for pattern in patterns)
            }
            shown[name] = {**shown[name], "fields": fitting}
    return shown


def _counted(counters: Sequence[IndexCounters]) -> dict[str, Any]:
    """What has been done with indexes. Nothing warms or recovers shards."""

    def total(name: str) -> int:
        return sum(getattr(one, name) for one in counters)

    read, not_found = total("read"), total("not_found")
    return {
        "indexing": {
            "index_total": total("indexed"),
            "index_failed": total("failed"),
            "delete_total": total("deleted"),
            "noop_update_total": total("unchanged"),
            "is_throttled": False,
        },
        "get": {"total": read + not_found, "exists_total": read, "missing_total": not_found},
        "search": {
            "query_total": total("searches"),
            "query_time_in_millis": int(total("search_ms")),
            "scroll_total": total("scrolls"),
        },
        "merges": {"total": total("merges")},
        "refresh": {"total": total("refreshes")},
        "flush": {"total": total("flushes") + total("periodic"), "periodic": total("periodic")},
        "warmer": {"current": 0, "total": 0},
        "query_cache": {"memory_size_in_bytes": 0},
        "translog": {
            "operations": total("uncommitted"),
            "uncommitted_operations": total("uncommitted"),
        },
        "request_cache": {"hit_count": total("cache_hits"), "miss_count": total("cache_misses")},
        "recovery": {"current_as_source": 0, "current_as_target": 0},
    }


def with_file_sizes(
    shown: dict[str, Any], indexes: Sequence[Index], parameters: Parameters
) -> dict[str, Any]:
    """The same with the sizes of files, if the request wants them: a segment is one."""
    if "segments" not in shown or not parameters.boolean("include_segment_file_sizes", False):
        return shown
    sizes = [one.size_bytes for index in indexes for shard in list_segments(index) for one in shard]
    of_kind = {
        "description": "Segments",
        "size_in_bytes": sum(sizes),
        "min_size_in_bytes": min(sizes, default=0),
        "max_size_in_bytes": max(sizes, default=0),
        "average_size_in_bytes": sum(sizes) // max(1, len(sizes)),
        "count": len(sizes),
    }
    return {**shown, "segments": {**shown["segments"], "file_sizes": {"segment": of_kind} if sizes else {}}}


def _with_groups(shown: dict[str, Any], indexes: Sequence[Index], patterns: Sequence[str]) -> dict[str, Any]:
    """The same with the searches of the groups that fit."""
    if "search" not in shown or not patterns:
        return shown
    groups: Counter[str] = Counter()
    for index in indexes:
        groups.update(index.shards.counters.groups)
    fitting = {
        group: {"query_total": count}
        for group, count in sorted(groups.items())
        if any(pattern == "_all" or wildcard_match(pattern, group) for pattern in patterns)
    }
    return {**shown, "search": {**shown["search"], "groups": fitting}} if fitting else shown


def _stats_json(stats: Sequence[ShardStats], copies: int = 1) -> dict[str, Any]:
    """Of these shards together, and of so many copies of each."""
    size = sum(one.size_bytes for one in stats) * copies
    return {
        "docs": {
            "count": sum(one.documents for one in stats) * copies,
            "deleted": sum(one.deleted for one in stats) * copies,
            "total_size_in_bytes": size,
        },
        "shard_stats": {"total_count": len(stats) * copies},
        "store": {"size_in_bytes": size, "total_data_set_size_in_bytes": size, "reserved_in_bytes": 0},
        "segments": {"count": sum(one.segments for one in stats) * copies},
    }


def metrics_asked(exchange: Exchange, known: Iterable[str], part: str = "metric") -> list[str]:
    """Those that the path names; `_all` where it names none. Errors: illegal_argument_exception."""
    metrics = (exchange.get(part) or "_all").split(",")
    check_metrics(exchange, metrics, known)
    return metrics


def check_metrics(exchange: Exchange, metrics: Iterable[str], known: Iterable[str]) -> None:
    """Errors: illegal_argument_exception for one that is not known."""
    for name in metrics:
        if name != "_all" and name not in known:
            hint = did_you_mean(name, known)
            raise illegal_argument(
                f"request [{exchange.path}] contains unrecognized metric: [{name[:100]}]"
                f"{' ->' if hint else ''}{hint}"
            )


def _stats(exchange: Exchange, identity: Identity) -> dict[str, Any]:
    metrics = metrics_asked(exchange, INDEX_METRICS)
    level = exchange.parameters.text("level") or "indices"
    if level not in _LEVELS:
        raise illegal_argument(
            f"level parameter must be one of [cluster] or [indices] or [shards] but was [{level}]"
        )
    status = exchange.node.status()
    takes_closed = not exchange.parameters.boolean("forbid_closed_indices", True)
    indexes, nodes = chosen_indexes(exchange, closed=takes_closed), Placement.of(exchange.node)
    reachable = [node for node in identity.members(status) if node.reachable]
    both = partial(
        _both,
        nodes=nodes,
        contexts=exchange.node.contexts,
        metrics=metrics,
        parameters=exchange.parameters,
    )
    shown: dict[str, Any] = {"_shards": shards_json(indexes, nodes), "_all": both(indexes)}
    if level != "cluster":
        shown["indices"] = {
            index.name: {
                "uuid": index.uuid,
                "health": count_shards(index, nodes).status,
                "status": "close" if index.is_closed else "open",
                **both([index]),
                **_following(exchange, index),
                **({"shards": by_shard(index, reachable, nodes, metrics)} if level == "shards" else {}),
            }
            for index in indexes
        }
    return shown


def by_shard(
    index: Index, nodes: Sequence[NodeName], placement: Placement, metrics: Sequence[str]
) -> dict[str, list[dict[str, Any]]]:
    """Of each shard the copies that have a node."""
    stats = [
        chosen_sections(with_not_counted(_stats_json([shard.stats()])), metrics) for shard in index.shards
    ]
    shown: dict[str, list[dict[str, Any]]] = {}
    for copy in copies_of(index, nodes, placement.elsewhere):
        if copy.node is not None:
            routing = {name: copy.routing()[name] for name in ("state", "primary", "node", "relocating_node")}
            shown.setdefault(str(copy.number), []).append({"routing": routing, **stats[copy.number]})
    return shown


def _following(exchange: Exchange, index: Index) -> dict[str, Any]:
    following = exchange.node.following(index)
    return {} if following is None else {"graph": following}


def _both(
    indexes: Sequence[Index],
    *,
    nodes: Placement,
    contexts: SearchContexts,
    metrics: Sequence[str],
    parameters: Parameters,
) -> dict[str, Any]:
    """Of the primaries, and of all copies."""
    total: dict[str, Any] = {}
    for index in indexes:
        shards = count_shards(index, nodes)
        total = _sum(total, stats_json([index], contexts, shards.active // len(index.shards)))
    both = {"primaries": stats_json(indexes, contexts), "total": total or stats_json([], contexts)}
    groups = parameters.strings("groups")
    shown = {
        name: _with_groups(chosen_sections(stats, metrics), indexes, groups) for name, stats in both.items()
    }
    return {
        name: with_file_sizes(_with_fields(stats, indexes, parameters), indexes, parameters)
        for name, stats in shown.items()
    }


def chosen_sections(stats: dict[str, Any], metrics: Sequence[str]) -> dict[str, Any]:
    named = {_SECTIONS.get(metric, metric) for metric in metrics}
    return {metric: value for metric, value in stats.items() if "_all" in metrics or metric in named}


def _sum(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    if not one:
        return other
    return {
        section: {name: _sum_of_members(one[section][name], value) for name, value in values.items()}
        for section, values in other.items()
    }


def _sum_of_members(one: Any, other: Any) -> Any:
    if isinstance(other, dict):
        return {name: _sum_of_members(one[name], value) for name, value in other.items()}
    # what is no count is the same everywhere
    return other if isinstance(other, bool) or other < 0 else one + other


def _segments(exchange: Exchange, identity: Identity) -> dict[str, Any]:
    status = exchange.node.status()
    indexes, here = chosen_indexes(exchange, closed=False), identity.here(status)
    shown = {}
    for index in indexes:
        shards = {str(number): [_copy(found, here)] for number, found in enumerate(list_segments(index))}
        shown[index.name] = {"shards": shards}
    return {"_shards": shards_json(indexes, Placement.of(exchange.node)), "indices": shown}


def _copy(found: Sequence[SegmentInfo], here: NodeName) -> dict[str, Any]:
    """A shard on this node."""
    segments = {
        one.name: {
            "generation": one.generation,
            "num_docs": one.documents,
            "deleted_docs": one.deleted,
            "size_in_bytes": one.size_bytes,
            "committed": one.on_disk,
            "search": True,
            "version": one.version,
            "compound": True,
            "attributes": {},
        }
        for one in found
    }
    return {
        "routing": {"state": "STARTED", "primary": True, "node": here.id},
        "num_committed_segments": sum(one["committed"] is True for one in segments.values()),
        "num_search_segments": len(segments),
        "segments": segments,
    }
