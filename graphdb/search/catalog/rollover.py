"""When an alias or a data stream goes on with a new index: the conditions, and the name of the new index.

Source: Elasticsearch 8's documentation of `_rollover`.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from graphdb.search.catalog.index_settings import duration_ms
from graphdb.search.catalog.state import Index
from graphdb.search.errors import SearchError, illegal_argument, parsing

__all__ = ["RolloverSource", "bytes_of_text", "check_conditions", "met_conditions", "next_name", "suffices"]

_COUNTED = re.compile(r"(.*-)([0-9]{1,18})")
_BYTES = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)(b|kb|mb|gb|tb|pb)", re.IGNORECASE)
_UNITS = {unit: 1024**power for power, unit in enumerate(("b", "kb", "mb", "gb", "tb", "pb"))}


@dataclass(frozen=True, slots=True)
class RolloverSource:
    """What a condition looks at."""

    documents: int
    largest_shard: int  # documents
    size_bytes: int
    largest_shard_bytes: int
    age_ms: int

    @classmethod
    def of(cls, index: Index, now_ms: int) -> "RolloverSource":
        """Of the documents that a search finds."""
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
    return int(found)


def bytes_of_text(name: str, value: Any) -> int:
    """`50gb` as a number of bytes; name: of what has it. Errors: illegal_argument_exception."""
    found = _BYTES.fullmatch(str(value))
    if found is None:
        raise illegal_argument(
            f"failed to parse setting [{name}] with value [{str(value)[:100]}] as a size in bytes: unit is "
            "missing or unrecognized"
        )
    return int(float(found[1]) * _UNITS[found[2].lower()])


# By the name behind `max_` and `min_`.
_CONDITIONS: Mapping[str, tuple[Callable[[str, Any], int], Callable[[RolloverSource], int]]] = {
    "docs": (_whole, lambda source: source.documents),
    "primary_shard_docs": (_whole, lambda source: source.largest_shard),
    "size": (bytes_of_text, lambda source: source.size_bytes),
    "primary_shard_size": (bytes_of_text, lambda source: source.largest_shard_bytes),
    "age": (_milliseconds, lambda source: source.age_ms),
}


def met_conditions(conditions: Any, source: RolloverSource) -> dict[str, bool]:
    """Which conditions hold. Errors: SearchError."""
    if not isinstance(conditions, Mapping):
        raise parsing("[conditions] must be an object")
    met = {}
    for name, value in conditions.items():
        bound, _, kind = name.partition("_")
        if bound not in ("max", "min") or kind not in _CONDITIONS:
            reason = f"[rollover_conditions] unknown field [{name[:100]}]"
            raise _unread(SearchError("x_content_parse_exception", reason))
        read, measure = _CONDITIONS[kind]
        met[name] = measure(source) >= read(name, value)
    return met


def _unread(cause: SearchError) -> SearchError:
    reason = "[rollover] failed to parse field [conditions]"
    return SearchError("x_content_parse_exception", reason, 400, None, cause)


def check_conditions(conditions: Any) -> None:
    """Errors: SearchError for conditions that cannot be."""
    met_conditions(conditions, RolloverSource(0, 0, 0, 0, 0))


def suffices(met: Mapping[str, bool]) -> bool:
    """One of those that begin with max if there are any, and all that begin with min."""
    most = [holds for name, holds in met.items() if name.startswith("max_")]
    least = [holds for name, holds in met.items() if name.startswith("min_")]
    return all(least) and (any(most) or not most)


def next_name(name: str) -> str:
    """`logs-000002` after `logs-1`. Errors: illegal_argument_exception for a name without a number."""
    found = _COUNTED.fullmatch(name)
    if found is None:
        raise illegal_argument(f"index name [{name}] does not match pattern '^.*-\\d+$'")
    return f"{found[1]}{int(found[2]) + 1:06}"
