"""`_rollover`: an alias or a data stream goes on with a new index, where the old one fulfils conditions."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from graphdb.config import Settings
from graphdb.search.aggregations.histogram import duration_ms
from graphdb.search.catalog.catalog_commands import RollOver
from graphdb.search.catalog.data_streams import next_backing_name
from graphdb.search.catalog.index_names import with_dates
from graphdb.search.catalog.state import Index
from graphdb.search.errors import SearchError, illegal_argument, parsing
from serve.search.administration.cat_table import BYTE_UNITS
from serve.search.administration.indices import new_uuid
from serve.search.backend import SearchBackend
from serve.search.frame.exchange import Body, Endpoint, Exchange, endpoint

__all__ = ["bytes_of_text", "routes"]

_PARAMETERS = "dry_run lazy master_timeout timeout wait_for_active_shards"
_MEMBERS = {"conditions", "settings", "mappings", "aliases"}
_MADE_MEMBERS = _MEMBERS - {"conditions"}
_COUNTED = re.compile(r"(.*-)([0-9]{1,18})")
_BYTES = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)(b|kb|mb|gb|tb|pb)", re.IGNORECASE)


def routes(_node: SearchBackend, _settings: Settings) -> list[Endpoint]:
    paths = ["/{index}/_rollover", "/{index}/_rollover/{target}"]
    return [*endpoint("POST", paths, _roll_over, _PARAMETERS, Body.JSON)]


@dataclass(frozen=True, slots=True)
class _Source:
    """What a condition looks at."""

    documents: int
    largest_shard: int  # documents
    size_bytes: int
    largest_shard_bytes: int
    age_ms: int

    @classmethod
    def of(cls, index: Index, now_ms: int) -> "_Source":
        stats = [shard.stats() for shard in index.shards]
        documents, sizes = [one.documents for one in stats], [one.size_bytes for one in stats]
        age_ms = max(0, now_ms - index.created_ms)
        return cls(sum(documents), max(documents), sum(sizes), max(sizes), age_ms)


def _whole(name: str, value: Any) -> int:
    if isinstance(value, bool) or not re.fullmatch(r"[0-9]{1,18}", str(value)):
        raise illegal_argument(
            f"failed to parse [{name}]: a whole number is expected, not [{str(value)[:100]}]"
        )
    return int(value)


def _milliseconds(name: str, value: Any) -> int:
    found = duration_ms(str(value), name)
    if found < 0:
        raise illegal_argument(f"[{name}] must not be negative, and is [{str(value)[:100]}]")
    return found


def bytes_of_text(name: str, value: Any) -> int:
    """`50gb` as a number of bytes; name: of what has it. Errors: illegal_argument_exception."""
    found = _BYTES.fullmatch(str(value))
    if found is None:
        raise illegal_argument(
            f"failed to parse setting [{name}] with value [{str(value)[:100]}] as a size in bytes: unit is "
            "missing or unrecognized"
        )
    return int(float(found[1]) * BYTE_UNITS[found[2].lower()])


# By the name behind `max_` and `min_`.
_CONDITIONS: Mapping[str, tuple[Callable[[str, Any], int], Callable[[_Source], int]]] = {
    "docs": (_whole, lambda source: source.documents),
    "primary_shard_docs": (_whole, lambda source: source.largest_shard),
    "size": (bytes_of_text, lambda source: source.size_bytes),
    "primary_shard_size": (bytes_of_text, lambda source: source.largest_shard_bytes),
    "age": (_milliseconds, lambda source: source.age_ms),
}


async def _roll_over(exchange: Exchange) -> dict[str, Any]:
    body = await exchange.json() or {}
    unknown = sorted(body.keys() - _MEMBERS)
    if unknown:
        raise parsing(f"unknown key [{unknown[0]}] for rollover")
    alias, now_ms = exchange["index"], exchange.node.now_ms()
    old = _written(exchange, alias)
    given = exchange.get("target")
    is_stream = alias in exchange.node.catalog.data_streams
    if is_stream and (given is not None or _MADE_MEMBERS & body.keys()):
        raise illegal_argument(
            "aliases, mappings, and index settings may not be specified when rolling over a data stream, nor "
            "the name of the new index"
        )
    if is_stream:
        name = next_backing_name(exchange.node.catalog.state, alias, now_ms)
    else:
        name = _next_name(old.name) if given is None else with_dates(given, now_ms)
    met = _met(body.get("conditions", {}), _Source.of(old, now_ms))
    rolls = _suffices(met)
    dry = exchange.parameters.boolean("dry_run", False)
    made = {key: value for key, value in body.items() if key != "conditions"}
    command = RollOver(name, new_uuid(), made, alias, old.uuid)
    exchange.node.catalog.check(command)  # whether the conditions hold or not
    if rolls and not dry:
        await exchange.node.perform(command)
    done = rolls and not dry
    return {
        "acknowledged": done,
        "shards_acknowledged": done,
        "old_index": old.name,
        "new_index": name,
        "rolled_over": done,
        "dry_run": dry,
        "conditions": {
            f"[{condition}: {body['conditions'][condition]}]": holds for condition, holds in met.items()
        },
    }


def _written(exchange: Exchange, alias: str) -> Index:
    """The index that the alias writes to. Errors: illegal_argument_exception."""
    catalog = exchange.node.catalog
    if catalog.find(alias) is not None:
        raise illegal_argument(
            "rollover target is a [concrete index] but one of [alias,data_stream] was expected"
        )
    if alias not in catalog.aliases:
        raise illegal_argument(f"rollover target [{alias}] does not exist")
    try:
        return catalog.write_index(alias)
    except SearchError:
        raise illegal_argument(f"rollover target [{alias}] does not point to a write index") from None


def _next_name(name: str) -> str:
    found = _COUNTED.fullmatch(name)
    if found is None:
        raise illegal_argument(f"index name [{name}] does not match pattern '^.*-\\d+$'")
    return f"{found[1]}{int(found[2]) + 1:06}"


def _met(conditions: Any, source: _Source) -> dict[str, bool]:
    """Which conditions hold. Errors: SearchError."""
    if not isinstance(conditions, Mapping):
        raise parsing("[conditions] must be an object")
    met = {}
    for name, value in conditions.items():
        bound, _, kind = name.partition("_")
        if bound not in ("max", "min") or kind not in _CONDITIONS:
            raise SearchError("x_content_parse_exception", f"[conditions] unknown field [{name[:100]}]")
        read, measure = _CONDITIONS[kind]
        met[name] = measure(source) >= read(name, value)
    return met


def _suffices(met: Mapping[str, bool]) -> bool:
    """One of those that begin with max if there are any, and all that begin with min."""
    most = [holds for name, holds in met.items() if name.startswith("max_")]
    least = [holds for name, holds in met.items() if name.startswith("min_")]
    return all(least) and (any(most) or not most)
