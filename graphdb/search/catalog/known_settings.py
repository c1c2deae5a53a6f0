"""The table of index settings: what kind of value each takes, its default, and whether it may change."""

from dataclasses import dataclass

__all__ = ["KNOWN", "PREFIXES", "PRIVATE", "TREES", "Setting", "known_setting"]

_INT_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Setting:
    """kind: integer, boolean, time, text or words (a list, or one text with commas)."""

    kind: str
    default: str | tuple[str, ...] = ""
    dynamic: bool = True
    low: int = 0
    high: int = _INT_MAX


def _number(default: int, low: int = 0, high: int = _INT_MAX, dynamic: bool = True) -> Setting:
    return Setting("integer", str(default), dynamic, low, high)


def _flag(default: str = "false", dynamic: bool = True) -> Setting:
    return Setting("boolean", default, dynamic)


KNOWN: dict[str, Setting] = {
    "analyze.max_token_count": _number(10_000, 1),
    "auto_expand_replicas": Setting("text", "false"),
    "blocks.read_only": _flag(),
    "blocks.read_only_allow_delete": _flag(),
    "blocks.write": _flag(),
    "codec": Setting("text", "default", dynamic=False),
    "gc_deletes": Setting("time", "60s"),
    "hidden": _flag(),
    "highlight.max_analyzed_offset": _number(1_000_000, 1),
    "mapping.depth.limit": _number(20, 1),
    "mapping.dimension_fields.limit": _number(32_768),
    "mapping.field_name_length.limit": Setting("integer", str(2**63 - 1), True, 1, 2**63 - 1),
    "mapping.nested_fields.limit": _number(50),
    "mapping.nested_objects.limit": _number(10_000),
    "mapping.total_fields.limit": Setting("integer", "1000", True, 0, 2**63 - 1),
    "max_docvalue_fields_search": _number(100),
    "max_inner_result_window": _number(100, 1),
    "max_ngram_diff": _number(1),
    "max_refresh_listeners": _number(1000),
    "max_regex_length": _number(1000, 1),
    "max_rescore_window": _number(10_000, 1),
    "max_result_window": _number(10_000, 1),
    "max_script_fields": _number(32),
    "max_shingle_diff": _number(3),
    "max_slices_per_scroll": _number(1024, 1),
    "max_terms_count": _number(65_536, 1),
    "number_of_replicas": _number(1),
    "number_of_routing_shards": _number(1, 1, 1024, dynamic=False),
    "number_of_shards": _number(1, 1, 1024, dynamic=False),
    "priority": _number(1),
    "query.default_field": Setting("words", ("*",)),
    "refresh_interval": Setting("time", "1s"),
    "requests.cache.enable": _flag("true"),
    "routing_partition_size": _number(1, 1, 1, dynamic=False),
    "search.idle.after": Setting("time", "30s"),
    "soft_deletes.enabled": _flag("true", dynamic=False),
    "soft_deletes.retention_lease.period": Setting("time", "12h"),
    "translog.durability": Setting("text", "REQUEST"),
    "translog.flush_threshold_size": Setting("text", "10gb"),
    "translog.sync_interval": Setting("time", "5s"),
    "unassigned.node_left.delayed_timeout": Setting("time", "1m"),
    "write.wait_for_active_shards": Setting("text", "1"),
}
PREFIXES = ("indexing.slowlog.", "merge.", "routing.allocation.", "search.slowlog.")
"""Kept and shown, without effect: they tune what is not there."""

PRIVATE = frozenset({"creation_date", "provided_name", "uuid", "version.created"})
TREES = frozenset({"analysis", "graph"})
"""Kept as they were given, as trees: their rooms read them."""


def known_setting(name: str) -> Setting | None:
    """By its name under `index`."""
    found = KNOWN.get(name)
    return Setting("text") if found is None and name.startswith(PREFIXES) else found
