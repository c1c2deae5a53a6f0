"""`_disk_usage`: what each field of an index takes."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from graphdb.config import Settings
from graphdb.search.catalog.state import Index
from graphdb.search.catalog.visible_catalog import VisibleIndex
from graphdb.search.errors import SearchError, illegal_argument
from graphdb.search.segments.field_sizes import USES, field_sizes
from graphdb.search.segments.shard_view import array_segment
from serve.search.administration.cat_table import size_text
from serve.search.administration.index_stats import Placement, shards_json
from serve.search.administration.indices import CHOICE, chosen_indexes
from serve.search.backend import SearchBackend
from serve.search.frame.exchange import Endpoint, Exchange, endpoint

__all__ = ["routes"]


def routes(_node: SearchBackend, _settings: Settings) -> list[Endpoint]:
    parameters = f"{CHOICE} run_expensive_tasks flush"
    return endpoint("POST", "/{index}/_disk_usage", _disk_usage, parameters)


async def _disk_usage(exchange: Exchange) -> dict[str, Any]:
    """Of the segments that there are; one copy of each shard."""
    if not exchange.parameters.boolean("run_expensive_tasks", False):
        raise illegal_argument(
            "analyzing the disk usage of an index is expensive and resource-intensive, the parameter "
            "[run_expensive_tasks] must be set to [true] in order for the task to be performed."
        )
    indexes = chosen_indexes(exchange, may_be_none=False)
    if any(isinstance(index, VisibleIndex) for index in indexes):
        raise SearchError("security_exception", "Only who sees all documents may see what fields take", 403)
    if exchange.parameters.boolean("flush", True):
        await exchange.node.refresh(indexes)
        await exchange.node.flush(indexes)
    shown = await asyncio.to_thread(lambda: {index.name: _of_index(index) for index in indexes})
    return {"_shards": shards_json(indexes, Placement.of(exchange.node)), **shown}


def _of_index(index: Index) -> dict[str, Any]:
    fields: dict[str, Counter[str]] = {}
    only_searched = {spec.path for spec in index.mapping.match("*") if not spec.doc_values}
    size = 0
    for leaf in index.shards.leaves():
        segment = array_segment(leaf)
        size += segment.size_bytes
        for name, sizes in field_sizes(segment, only_searched).items():
            fields.setdefault(name, Counter()).update(sizes)
    return {
        "store_size": size_text(size),
        "store_size_in_bytes": size,
        "all_fields": _sizes_json(fields.values()),
        "fields": {name: _sizes_json([sizes]) for name, sizes in sorted(fields.items())},
    }


def _sizes_json(parts: Iterable[Mapping[str, int]]) -> dict[str, Any]:
    sizes: Counter[str] = Counter()
    for part in parts:
        sizes.update(part)
    shown = _size_json("total", sum(sizes.values()))
    for use in USES:
        if use == "inverted_index":
            shown[use] = _size_json("total", sizes[use])
        else:
            shown |= _size_json(use, sizes[use])
    return shown


def _size_json(name: str, size: int) -> dict[str, Any]:
    return {name: size_text(size), f"{name}_in_bytes": size}
