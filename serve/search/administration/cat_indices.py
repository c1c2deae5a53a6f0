"""`_cat` listings of what indexes are made of: indices, shards, segments, aliases, count, allocation."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from graphdb.search.catalog.state import Index
from graphdb.search.catalog.stream_aliases import shown_stream_aliases
from graphdb.search.errors import illegal_argument
from graphdb.search.mapping.wildcards import wildcard_match
from serve.search.administration.allocation import UNASSIGNED_REASON, copies_of
from serve.search.administration.cat_table import CatView, Column, Listing, Row, Size
from serve.search.administration.index_stats import (
    Placement,
    count_shards,
    fielddata_bytes,
    list_segments,
)
from serve.search.administration.machine import disk_use
from serve.search.administration.recovery import recovered_copies, recovery_stage, recovery_type

__all__ = ["listings"]

_HEALTHS = ("green", "yellow", "red")


def listings(data_dir: Path) -> list[Listing]:
    """data_dir: of the node, whose disk is shown."""
    return [
        Listing("indices", _INDICES, _indices, "index", _CHOICE + " health pri include_unloaded_segments"),
        Listing("shards", _SHARDS, _shards, "index"),
        Listing("segments", _SEGMENTS, _segments, "index", _CHOICE),
        Listing("aliases", _ALIASES, _aliases, "name", "expand_wildcards"),
        Listing("count", _COUNT, _count, "index"),
        Listing("allocation", _ALLOCATION, lambda view: _allocation(view, data_dir), "node_id"),
        Listing("recovery", _RECOVERY, _recovery, "index", "active_only detailed index"),
        Listing("fielddata", _FIELDDATA, _fielddata, "fields", "fields"),
    ]


_CHOICE = "expand_wildcards allow_no_indices ignore_unavailable ignore_throttled allow_closed"

_INDICES = (
    Column("health", ("h",), "current health status"),
    Column("status", ("s",), "open/close status"),
    Column("index", ("i", "idx"), "index name"),
    Column("uuid", ("id", "uuid"), "index uuid"),
    Column("pri", ("p", "shards.primary", "shardsPrimary"), "number of primary shards", right=True),
    Column("rep", ("r", "shards.replica", "shardsReplica"), "number of replica shards", right=True),
    Column("docs.count", ("dc", "docsCount"), "available docs", right=True),
    Column("docs.deleted", ("dd", "docsDeleted"), "deleted docs", right=True),
    Column("creation.date", ("cd",), "index creation date (millisecond value)", on=False),
    Column("creation.date.string", ("cds",), "index creation date (as string)", on=False),
    Column("store.size", ("ss", "storeSize"), "store size of primaries & replicas", right=True),
    Column("pri.store.size", (), "store size of primaries", right=True),
    Column("dataset.size", (), "total size of dataset", right=True),
    Column("segments.count", ("sc", "segmentsCount"), "number of segments", on=False, right=True),
    Column("pri.segments.count", (), "number of segments", on=False, right=True),
)


def _indices(view: CatView) -> Iterator[Row]:
    health = view.parameters.text("health")
    if health not in (None, *_HEALTHS):
        raise illegal_argument(f"unknown cluster health status [{health}]")
    for index in view.indexes:
        row = _index_row(index, view.placement)
        if health in (None, row["health"]):
            yield row


def _index_row(index: Index, placement: Placement) -> dict[str, str | int | Size | None]:
    """What is in a closed one is not shown."""
    stats, shards = index.shards.stats(), count_shards(index, placement)
    copies = shards.active // len(index.shards)
    created = datetime.fromtimestamp(index.created_ms / 1000, UTC)
    row: dict[str, str | int | Size | None] = {
        "health": shards.status,
        "status": "close" if index.is_closed else "open",
        "index": index.name,
        "uuid": index.uuid,
        "pri": len(index.shards),
        "rep": index.number("number_of_replicas"),
        "creation.date": str(index.created_ms),
        "creation.date.string": created.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
    }
    if index.is_closed:
        return row
    return {
        **row,
        "docs.count": stats.documents,
        "docs.deleted": stats.deleted,
        "store.size": Size(stats.size_bytes * copies),
        "pri.store.size": Size(stats.size_bytes),
        "dataset.size": Size(stats.size_bytes),
        "segments.count": stats.segments * copies,
        "pri.segments.count": stats.segments,
    }


_SHARDS = (
    Column("index", ("i", "idx"), "index name"),
    Column("shard", ("s", "sh"), "shard name"),
    Column("prirep", ("p", "pr", "primaryOrReplica"), "primary or replica"),
    Column("state", ("st",), "shard state"),
    Column("docs", ("d", "dc"), "number of docs in shard", right=True),
    Column("store", ("sto",), "store size of shard (how much disk it uses)", right=True),
    Column("dataset", (), "total size of dataset", right=True),
    Column("ip", (), "ip of node where it lives"),
    Column("id", (), "unique id of node where it lives", on=False),
    Column("node", ("n",), "name of node where it lives"),
    Column("unassigned.reason", ("ur",), "reason shard became unassigned", on=False),
)


def _shards(view: CatView) -> Iterator[Row]:
    nodes = [node for node in view.identity.members(view.status) if node.reachable]
    for index in view.indexes:
        stats = [shard.stats() for shard in index.shards]
        for copy in copies_of(index, nodes, view.node.shards):
            row: Row = {
                "index": index.name,
                "shard": copy.number,
                "prirep": "p" if copy.is_primary else "r",
                "state": copy.state,
            }
            if copy.node is None:
                yield {**row, "unassigned.reason": UNASSIGNED_REASON}
                continue
            size = Size(stats[copy.number].size_bytes)
            yield {
                **row,
                "docs": stats[copy.number].documents,
                "store": size,
                "dataset": size,
                "ip": copy.node.host,
                "id": copy.node.id,
                "node": copy.node.name,
            }


_SEGMENTS = (
    Column("index", ("i", "idx"), "index name"),
    Column("shard", ("s", "sh"), "shard name"),
    Column("prirep", ("p", "pr", "primaryOrReplica"), "primary or replica"),
    Column("ip", (), "ip of node where it lives"),
    Column("id", (), "unique id of node where it lives", on=False),
    Column("segment", ("seg",), "segment name"),
    Column("generation", ("g", "gen"), "segment generation", right=True),
    Column("docs.count", ("dc", "docsCount"), "number of docs in segment", right=True),
    Column("docs.deleted", ("dd", "docsDeleted"), "number of deleted docs in segment", right=True),
    Column("size", ("si",), "segment size in bytes", right=True),
    Column("size.memory", ("sm", "sizeMemory"), "segment memory in bytes", right=True),
    Column("committed", ("ic", "isCommitted"), "is segment committed"),
    Column("searchable", ("is", "isSearchable"), "is segment searched"),
    Column("version", ("v", "ver"), "version"),
    Column("compound", ("ico", "isCompound"), "is segment compound"),
)


def _segments(view: CatView) -> Iterator[Row]:
    here = view.identity.here(view.status)
    for index in view.indexes:
        shards = enumerate(list_segments(index))
        for number, segment in ((number, segment) for number, found in shards for segment in found):
            yield {
                "index": index.name,
                "shard": number,
                "prirep": "p",
                "ip": here.host,
                "id": here.id,
                "segment": segment.name,
                "generation": segment.generation,
                "docs.count": segment.documents,
                "docs.deleted": segment.deleted,
                "size": Size(segment.size_bytes),
                "size.memory": 0,
                "committed": "true" if segment.on_disk else "false",
                "searchable": "true",
                "version": segment.version,
                "compound": "true",
            }


_ALIASES = (
    Column("alias", ("a",), "alias name"),
    Column("index", ("i", "idx"), "index alias points to"),
    Column("filter", ("f", "fi"), "filter"),
    Column("routing.index", ("ri", "routingIndex"), "index routing"),
    Column("routing.search", ("rs", "routingSearch"), "search routing"),
    Column("is_write_index", ("w", "isWriteIndex"), "write index"),
)


def _aliases(view: CatView) -> Iterator[Row]:
    wanted = [name for name in (view.names or "*").split(",") if name]
    states = view.parameters.strings("expand_wildcards")
    with_hidden = not states or "hidden" in states or "all" in states
    catalog = view.node.catalog
    of_streams = {name: shown_stream_aliases(catalog.state, name) for name in catalog.data_streams}
    of_indexes = {index.name: index.aliases for index in catalog.indexes()}
    for name_of_one, aliases in (of_indexes | of_streams).items():
        for alias, options in sorted(aliases.items()):
            if not any(name == "_all" or wildcard_match(name, alias) for name in wanted):
                continue
            if options.get("is_hidden") and not with_hidden and alias not in wanted:
                continue
            yield {
                "alias": alias,
                "index": name_of_one,
                "filter": "*" if options.get("filter") else "-",
                "routing.index": options.get("index_routing") or "-",
                "routing.search": options.get("search_routing") or "-",
                "is_write_index": str(options.get("is_write_index", "-")).lower(),
            }


_COUNT = (
    Column("epoch", ("t", "time"), "seconds since 1970-01-01 00:00:00"),
    Column("timestamp", ("ts", "hms", "hhmmss"), "time in HH:MM:SS"),
    Column("count", ("dc", "docs.count", "docsCount"), "the document count"),
)


def _count(view: CatView) -> Iterator[Row]:
    now = view.node.now_ms() // 1000
    documents = sum(index.shards.stats().documents for index in view.indexes)
    time = datetime.fromtimestamp(now, UTC).strftime("%H:%M:%S")
    yield {"epoch": now, "timestamp": time, "count": documents}


_ALLOCATION = (
    Column("shards", ("s",), "number of shards on node", right=True),
    Column("shards.undesired", ("su",), "number of shards that are scheduled to be moved", right=True),
    Column("disk.indices", ("di", "diskIndices"), "disk used by ES indices", right=True),
    Column("disk.used", ("du", "diskUsed"), "disk used (total, not just ES)", right=True),
    Column("disk.avail", ("da", "diskAvail"), "disk available", right=True),
    Column("disk.total", ("dt", "diskTotal"), "total capacity of all volumes", right=True),
    Column("disk.percent", ("dp", "diskPercent"), "percent disk used", right=True),
    Column("host", ("h",), "host of node"),
    Column("ip", (), "ip of node"),
    Column("node", ("n",), "name of node"),
    Column("node.role", ("r", "role", "nodeRole"), "node roles"),
)


def _allocation(view: CatView, data_dir: Path) -> Iterator[Row]:
    """Of this node: it does not know the disks of others."""
    here = view.identity.here(view.status)
    indexes = view.node.catalog.indexes()
    disk = disk_use(data_dir)
    yield {
        "shards": sum(len(index.shards) for index in indexes),
        "shards.undesired": 0,
        "disk.indices": Size(sum(index.shards.stats().size_bytes for index in indexes)),
        "disk.used": Size(disk.used),
        "disk.avail": Size(disk.free),
        "disk.total": Size(disk.total),
        "disk.percent": round(100 * disk.used / disk.total),
        "host": here.host,
        "ip": here.host,
        "node": here.name,
        "node.role": "dim",
    }
    unassigned = sum(count_shards(index, view.placement).unassigned for index in indexes)
    if unassigned:
        yield {"shards": unassigned, "node": "UNASSIGNED"}


_RECOVERY = (
    Column("index", ("i", "idx"), "index name"),
    Column("shard", ("s", "sh"), "shard name"),
    Column("start_time", ("start",), "recovery start time", on=False),
    Column("start_time_millis", ("start_millis",), "recovery start time in epoch milliseconds", on=False),
    Column("stop_time", ("stop",), "recovery stop time", on=False),
    Column("stop_time_millis", ("stop_millis",), "recovery stop time in epoch milliseconds", on=False),
    Column("time", ("t", "ti"), "recovery time"),
    Column("type", ("ty",), "recovery type"),
    Column("stage", ("st",), "recovery stage"),
    Column("source_host", ("shost",), "source host"),
    Column("source_node", ("snode",), "source node name"),
    Column("target_host", ("thost",), "target host"),
    Column("target_node", ("tnode",), "target node name"),
    Column("repository", ("rep",), "repository"),
    Column("snapshot", ("snap",), "snapshot"),
    Column("files", ("f",), "number of files to recover"),
    Column("files_recovered", ("fr",), "files recovered"),
    Column("files_percent", ("fp",), "percent of files recovered"),
    Column("files_total", ("tf",), "total number of files"),
    Column("bytes", ("b",), "number of bytes to recover"),
    Column("bytes_recovered", ("br",), "bytes recovered"),
    Column("bytes_percent", ("bp",), "percent of bytes recovered"),
    Column("bytes_total", ("tb",), "total number of bytes"),
    Column("translog_ops", ("to",), "number of translog ops to recover"),
    Column("translog_ops_recovered", ("tor",), "translog ops recovered"),
    Column("translog_ops_percent", ("top",), "percent of translog ops recovered"),
)


def _recovery(view: CatView) -> Iterator[Row]:
    """Nothing is copied between nodes: see `serve.search.administration.recovery`."""
    nodes = [node for node in view.identity.members(view.status) if node.reachable]
    named = (view.parameters.text("index") or "*").split(",")
    chosen = [one for one in view.indexes if any(wildcard_match(pattern, one.name) for pattern in named)]
    for index, copy in recovered_copies(view.node, chosen, nodes):
        source = None if copy.is_primary else nodes[0]
        at = datetime.fromtimestamp(index.created_ms / 1000, UTC).isoformat(timespec="milliseconds")
        yield {
            "index": index.name,
            "shard": copy.number,
            **{f"{which}_time": at.replace("+00:00", "Z") for which in ("start", "stop")},
            **{f"{which}_time_millis": str(index.created_ms) for which in ("start", "stop")},
            "time": "0ms",
            "type": recovery_type(index, copy).lower(),
            "stage": recovery_stage(index).lower(),
            "source_host": "n/a" if source is None else source.host,
            "source_node": "n/a" if source is None else source.name,
            "target_host": None if copy.node is None else copy.node.host,
            "target_node": None if copy.node is None else copy.node.name,
            "repository": "n/a",
            "snapshot": "n/a",
            **{f"{what}{part}": 0 for what in ("files", "bytes") for part in ("", "_recovered", "_total")},
            "files_percent": "0.0%",
            "bytes_percent": "0.0%",
            "translog_ops": 0,
            "translog_ops_recovered": 0,
            "translog_ops_percent": "100.0%",
        }


_FIELDDATA = (
    Column("id", (), "node id"),
    Column("host", ("h",), "host name"),
    Column("ip", (), "ip address"),
    Column("node", ("n",), "node name"),
    Column("field", ("f",), "field name"),
    Column("size", ("s",), "field data usage", right=True),
)


def _fielddata(view: CatView) -> Iterator[Row]:
    """Of this node: the text fields whose tokens by document are in memory."""
    here = view.identity.here(view.status)
    named = view.names or view.parameters.text("fields") or "*"
    for path, taken in sorted(fielddata_bytes(view.indexes).items()):
        if any(wildcard_match(pattern, path) for pattern in named.split(",")):
            where = {"id": here.id, "host": here.host, "ip": here.host, "node": here.name}
            yield {**where, "field": path, "size": Size(taken)}
