"""`_recovery`, `_shard_stores`: how the copies of shards came to their nodes, and where they are stored.

Nothing is copied between nodes shard by shard: every node makes its own copies from the log. So each is shown
as done, with no files, since the index was created; those of an index that is being restored, or made of
another, are not done until its documents are there.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from graphdb.config import Settings
from graphdb.search.catalog.filling import is_filled
from graphdb.search.catalog.state import Index
from graphdb.search.errors import illegal_argument
from serve.search.administration.allocation import (
    ShardCopy,
    allocation_id,
    copies_of,
    node_json,
    transport_address,
)
from serve.search.administration.index_stats import STATUSES, Placement, count_each
from serve.search.administration.indices import CHOICE, chosen_indexes
from serve.search.backend import SearchBackend
from serve.search.frame.exchange import Endpoint, Exchange, endpoint
from serve.search.frame.identity import Identity, NodeName

__all__ = ["recovered_copies", "recovery_stage", "recovery_type", "routes"]


def routes(node: SearchBackend, settings: Settings) -> list[Endpoint]:
    identity = Identity(node, settings)

    async def recovery(exchange: Exchange) -> dict[str, Any]:
        indexes = chosen_indexes(exchange)
        nodes = [one for one in identity.members(exchange.node.status()) if one.reachable]
        is_human = exchange.parameters.boolean("human", False)
        has_details = exchange.parameters.boolean("detailed", False)
        shown: dict[str, Any] = {}
        for index, copy in recovered_copies(exchange.node, indexes, nodes):
            one = _recovery(index, copy, nodes, is_human=is_human, has_details=has_details)
            shown.setdefault(index.name, {"shards": []})["shards"].append(one)
        return shown

    async def stores(exchange: Exchange) -> dict[str, Any]:
        indexes = chosen_indexes(exchange)
        nodes = [one for one in identity.members(exchange.node.status()) if one.reachable]
        return {"indices": _stores(exchange, indexes, nodes)}

    recoveries, shards = (
        ["/_recovery", "/{index}/_recovery"],
        ["/_shard_stores", "/{index}/_shard_stores"],
    )
    return [
        *endpoint("GET", recoveries, recovery, CHOICE + " active_only detailed"),
        *endpoint("GET", shards, stores, CHOICE + " status"),
    ]


def recovered_copies(
    node: SearchBackend, indexes: Sequence[Index], nodes: Sequence[NodeName]
) -> Iterator[tuple[Index, ShardCopy]]:
    """Those that have a node. nodes: that can be reached."""
    for index in indexes:
        for copy in copies_of(index, nodes, node.shards):
            if copy.node is not None:
                yield index, copy


def recovery_type(index: Index, copy: ShardCopy) -> str:
    """As Elasticsearch names where a copy is from."""
    if not copy.is_primary:
        return "PEER"
    shards = list(index.shards)
    return "EXISTING_STORE" if index.is_closed or shards[copy.number].log_index else "EMPTY_STORE"


def recovery_stage(index: Index) -> str:
    """INDEX while documents of a snapshot or of another index are written into it, else DONE."""
    return "DONE" if is_filled(index) else "INDEX"


def _recovery(
    index: Index, copy: ShardCopy, nodes: Sequence[NodeName], *, is_human: bool, has_details: bool
) -> dict[str, Any]:
    time: dict[str, Any] = {
        "start_time_in_millis": index.created_ms,
        "stop_time_in_millis": index.created_ms,
        "total_time_in_millis": 0,
    }
    if is_human:
        at = datetime.fromtimestamp(index.created_ms / 1000, UTC).isoformat(timespec="milliseconds")
        text = at.replace("+00:00", "Z")
        time |= {"start_time": text, "stop_time": text, "total_time": "0s"}
    files: dict[str, Any] = {"total": 0, "reused": 0, "recovered": 0, "percent": "0.0%"}
    size = {"total_in_bytes": 0, "reused_in_bytes": 0, "recovered_in_bytes": 0, "percent": "0.0%"}
    nothing = {"total_time_in_millis": 0}
    return {
        "id": copy.number,
        "type": recovery_type(index, copy),
        "stage": recovery_stage(index),
        "primary": copy.is_primary,
        **time,
        "source": {} if copy.is_primary else _node(nodes[0]),
        "target": _node(copy.node),
        "index": {
            "size": size,
            "files": {**files, "details": []} if has_details else files,
            **nothing,
            "source_throttle_time_in_millis": 0,
            "target_throttle_time_in_millis": 0,
        },
        "translog": {"recovered": 0, "total": 0, "percent": "100.0%", "total_on_start": 0, **nothing},
        "verify_index": {"check_index_time_in_millis": 0, **nothing},
    }


def _node(node: Any) -> dict[str, Any]:
    return {
        "id": node.id,
        "host": node.host,
        "transport_address": transport_address(node),
        "ip": node.host,
        "name": node.name,
    }


def _stores(exchange: Exchange, indexes: Sequence[Index], nodes: Sequence[NodeName]) -> dict[str, Any]:
    """Of shards of the asked healths; unless the request says, of those that lack a copy."""
    wanted = exchange.parameters.strings("status") or ["yellow", "red"]
    for status in wanted:
        if status not in (*STATUSES, "all"):
            raise illegal_argument(f"unknown cluster health status [{status[:100]}]")
    placement, found = Placement.of(exchange.node), dict[str, Any]()
    for index in indexes:
        counts = count_each(index, placement)
        for _, copy in recovered_copies(exchange.node, [index], nodes):
            if not {counts[copy.number].status, "all"} & set(wanted) or copy.node is None:
                continue
            shards = found.setdefault(index.name, {"shards": {}})["shards"]
            shards.setdefault(str(copy.number), {"stores": []})["stores"].append(
                {
                    copy.node.id: node_json(copy.node),
                    "allocation_id": allocation_id(index, copy.number, copy.node),
                    "allocation": "primary" if copy.is_primary else "replica",
                }
            )
    return found
