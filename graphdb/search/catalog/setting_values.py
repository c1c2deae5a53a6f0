"""Which values settings of indexes take that come new: those that a log or a disk has stay readable.

Most of these settings tune what is not there, and are kept and shown. Their values are checked all the same,
so that a mistake is found here and not when an index moves to Elasticsearch.

Errors: illegal_argument_exception, as Elasticsearch 8.19 words them.
"""

import ipaddress
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from graphdb.search.catalog.index_settings import duration_ms, number_setting
from graphdb.search.errors import SearchError, illegal_argument

__all__ = ["check_new_values"]

Check: TypeAlias = Callable[[str, str], None]
"""Of a setting's full name and its value."""

_UNITS = {"b": 0, "k": 1, "kb": 1, "m": 2, "mb": 2, "g": 3, "gb": 3, "t": 4, "tb": 4, "p": 5, "pb": 5}
_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,6})?)\s*([kmgtp]?b|[kmgtp])", re.IGNORECASE)
_FRACTION_OF_TIME = re.compile(r"\s*-?\d+\.\d+\s*[a-z]+\s*", re.IGNORECASE)
_TIERS = ("data_frozen", "data_content", "data_cold", "data_hot", "data_warm")
_FORBIDDEN = re.compile(r"indexing\.slowlog\.level|indexing\.slowlog\.include\.(?!user)")


def check_new_values(settings: Mapping[str, Any]) -> None:
    """settings: in normal form, as of a request, so that None resets one."""
    for name, value in settings.items():
        if not isinstance(value, str):
            continue
        if name.startswith("translog.retention."):
            raise illegal_argument(
                "Translog retention settings [index.translog.retention.age] and "
                "[index.translog.retention.size] are no longer supported. Please do not specify values for "
                "these settings"
            )
        if _FORBIDDEN.match(name):
            raise illegal_argument(f"unknown setting [index.{name[:200]}]")
        check = _CHECKS.get(name) or next((one for start, one in _STARTS if name.startswith(start)), None)
        if check is not None:
            check(f"index.{name}", value)
    _check_copies(settings)
    _check_lookup(settings)


def _check_copies(settings: Mapping[str, Any]) -> None:
    """`write.wait_for_active_shards` is met by the copies that there are."""
    wanted, name = settings.get("write.wait_for_active_shards"), "index.write.wait_for_active_shards"
    if not isinstance(wanted, str) or not wanted.isdigit() or "number_of_replicas" not in {*settings}:
        return
    copies = 1 + number_setting(settings, "number_of_replicas")
    if int(wanted[:9]) > copies:
        raise illegal_argument(
            f"invalid {name}[{wanted}]: cannot be greater than number of shard copies [{copies}]"
        )


def _check_lookup(settings: Mapping[str, Any]) -> None:
    shards = settings.get("number_of_shards")
    if str(settings.get("mode")).lower() == "lookup" and shards not in (None, "1"):
        raise illegal_argument(
            "index with [lookup] mode must have [index.number_of_shards] set to 1 or unset; provided "
            f"{shards}"
        )


# Kinds of values.


def _size(low: int = 0) -> Check:
    def check(name: str, value: str) -> None:
        found = _SIZE.fullmatch(value.strip())
        if value in ("0", "-1"):
            return
        if found is None:
            reason = (
                f"failed to parse setting [{name}] with value [{value[:100]}] as a size in bytes: unit is "
            )
            cause = SearchError("parse_exception", f"{reason}missing or unrecognized")
            raise illegal_argument(f"{reason}missing or unrecognized", cause)
        if float(found[1]) * 1024 ** _UNITS[found[2].lower()] < low:
            raise illegal_argument(
                f"failed to parse value [{value}] for setting [{name}], must be >= [{low}b]"
            )

    return check


def _number(low: float, high: float | None = None, kind: type[int] | type[float] = int) -> Check:
    def check(name: str, value: str) -> None:
        try:
            number = kind(value[:30])
        except ValueError:
            raise illegal_argument(f"Failed to parse value [{value[:100]}] for setting [{name}]") from None
        if not number >= low:
            raise illegal_argument(f"Failed to parse value [{value}] for setting [{name}] must be >= {low}")
        if high is not None and number > high:
            raise illegal_argument(f"Failed to parse value [{value}] for setting [{name}] must be <= {high}")

    return check


def _time(low_ms: float | None = None, shown: str = "", may_be_off: bool = True) -> Check:
    """low_ms, shown: the least that it may be."""

    def check(name: str, value: str) -> None:
        if _FRACTION_OF_TIME.fullmatch(value):
            raise illegal_argument(
                f"failed to parse [{value[:100]}], fractional time values are not supported",
                SearchError("number_format_exception", f'For input string: "{value[:100]}"'),
            )
        number = duration_ms(value, name)
        if number < 0 and value != "-1":
            raise illegal_argument(
                f"failed to parse setting [{name}] with value [{value[:100]}] as a time value: negative "
                "durations are not supported"
            )
        is_off = value == "-1" and may_be_off
        if low_ms is not None and number < low_ms and not is_off:
            raise illegal_argument(
                f"failed to parse value [{value}] for setting [{name}], must be >= [{shown}]"
            )

    return check


def _flag(_name: str, value: str) -> None:
    if value not in ("true", "false"):
        raise illegal_argument(
            f"Failed to parse value [{value[:100]}] as only [true] or [false] are allowed."
        )


def _one_of(choices: Sequence[str]) -> Check:
    """Whatever the case."""

    def check(name: str, value: str) -> None:
        if value.lower() not in choices:
            raise illegal_argument(
                f"unknown value for [{name}] must be one of [{', '.join(choices)}] but was: {value[:100]}"
            )

    return check


def _replicas(name: str, value: str) -> None:
    if value == "false":
        return
    low, dash, high = value.partition("-")
    if not dash or not low.isdigit() or not (high.isdigit() or high == "all"):
        raise illegal_argument(
            f"failed to parse [{name}] from value: [{value[:100]}] at index {value.find('-')}"
        )
    if high != "all" and int(low) > int(high):
        raise illegal_argument(f"[{name}] minReplicas must be =< maxReplicas but wasn't {low} > {high}")


def _active_shards(_name: str, value: str) -> None:
    if value != "all" and not value.isdigit():
        raise illegal_argument(
            f"cannot parse ActiveShardCount[{value[:100]}]",
            SearchError("number_format_exception", f'For input string: "{value[:100]}"'),
        )


def _source(_name: str, value: str) -> None:
    if value not in ("true", "false") and not value.lstrip("-").isdigit():
        raise illegal_argument(
            f"Failed to parse value [{value[:100]}] as only [true] or [false] are allowed."
        )


def _tiers(_name: str, value: str) -> None:
    wrong = [one for one in value.split(",") if one and one not in _TIERS]
    if wrong:
        raise illegal_argument(
            f"invalid tier names found in {wrong} allowed values are {list(_TIERS)}".replace("'", "")
        )


def _addresses(name: str, value: str) -> None:
    for one in value.split(","):
        if "*" in one or "/" in one:
            continue
        try:
            ipaddress.ip_address(one.strip())
        except ValueError:
            raise illegal_argument(f"invalid IP address [{one[:100]}] for [{name}]") from None


def _allocation(name: str, value: str) -> None:
    """Of nodes: `include`, `exclude` and `require`, by an attribute."""
    kind, _, attribute = name.removeprefix("index.routing.allocation.").partition(".")
    if kind in ("include", "exclude", "require") and attribute in ("_ip", "_host_ip", "_publish_ip"):
        _addresses(name, value)
    elif kind == "include" and attribute == "_tier_preference":
        _tiers(name, value)


def _mode(name: str, value: str) -> None:
    mode = value.lower()
    if mode not in ("standard", "time_series", "logsdb", "lookup"):
        raise illegal_argument(f"unknown value for [{name}]: [{value[:100]}] is not a mode of an index")
    if mode == "time_series":
        raise illegal_argument(
            f"[{name}] [time_series] is not supported: use [standard], where fields keep and show "
            "[time_series_dimension] and [time_series_metric]"
        )


_CHECKS: dict[str, Check] = {
    "allocation.max_retries": _number(0),
    "auto_expand_replicas": _replicas,
    "codec": _one_of(("default", "lucene_default", "best_compression", "best_speed", "legacy_default")),
    "gc_deletes": _time(),
    "indexing.slowlog.source": _source,
    "load_fixed_bitset_filters_eagerly": _flag,
    "merge.policy.deletes_pct_allowed": _number(5.0, 50.0, float),
    "merge.policy.expunge_deletes_allowed": _number(0.0, None, float),
    "merge.policy.floor_segment": _size(),
    "merge.policy.max_merge_at_once": _number(2),
    "merge.policy.max_merged_segment": _size(),
    "merge.policy.segments_per_tier": _number(2.0, None, float),
    "merge.policy.type": _one_of(("unset", "tiered", "log_byte_size", "time_based", "log_doc")),
    "merge.scheduler.auto_throttle": _flag,
    "merge.scheduler.max_merge_count": _number(1),
    "merge.scheduler.max_thread_count": _number(1),
    "mapping.synthetic_source_keep": _one_of(("none", "arrays", "all")),
    "mode": _mode,
    "queries.cache.enabled": _flag,
    "refresh_interval": _time(),
    "routing.allocation.enable": _one_of(("none", "new_primaries", "primaries", "all")),
    "routing.allocation.total_shards_per_node": _number(-1),
    "routing.rebalance.enable": _one_of(("none", "primaries", "replicas", "all")),
    "search.idle.after": _time(0, "0m", may_be_off=False),
    "search.slowlog.level": _one_of(("trace", "debug", "info", "warn")),
    "shard.check_on_startup": _one_of(("true", "false", "checksum")),
    "soft_deletes.retention_lease.period": _time(0, "0ms", may_be_off=False),
    "store.type": _one_of(("fs", "niofs", "mmapfs", "hybridfs", "simplefs")),
    "translog.durability": _one_of(("request", "async")),
    "translog.flush_threshold_size": _size(56),
    "translog.generation_threshold_size": _size(56),
    "translog.sync_interval": _time(100, "100ms", may_be_off=False),
    "unassigned.node_left.delayed_timeout": _time(),
    "write.wait_for_active_shards": _active_shards,
}
_STARTS: tuple[tuple[str, Check], ...] = (
    ("routing.allocation.", _allocation),
    ("indexing.slowlog.threshold.", _time()),
    ("search.slowlog.threshold.", _time()),
)
