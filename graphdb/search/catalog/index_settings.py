"""The settings of indexes: which are known, how they are read, merged and written."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from graphdb.search.analysis import Analyzers
from graphdb.search.errors import SearchError, illegal_argument
from graphdb.search.mapping import MappingLimits
from graphdb.search.mapping.wildcards import wildcard_match
from graphdb.search.segments.shard_routing import ShardRouting

__all__ = [
    "CLOSED_SETTINGS",
    "FILLED_BY",
    "KNOWN",
    "MOVED_TO",
    "PREFIXES",
    "PRIVATE",
    "REPLACES",
    "STATIC_PREFIXES",
    "TREES",
    "VERSION_CREATED_TEXT",
    "Setting",
    "Settings",
    "analyzers_of",
    "check_new_settings",
    "duration_ms",
    "flag_setting",
    "flat_settings",
    "in_one_shard",
    "known_setting",
    "limits_of",
    "nested",
    "nested_settings",
    "number_setting",
    "read_settings",
    "refresh_interval_ms",
    "routing_of",
    "shown_settings",
    "static_names",
    "updated_settings",
    "words_setting",
]

# The table of index settings: what kind of value each takes, its default, and whether it may change.

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
    "allocation.max_retries": _number(5),
    "analyze.max_token_count": _number(10_000, 1),
    "auto_expand_replicas": Setting("text", "false"),
    "blocks.metadata": _flag(),
    "blocks.read": _flag(),
    "blocks.read_only": _flag(),
    "blocks.read_only_allow_delete": _flag(),
    "blocks.write": _flag(),
    "codec": Setting("text", "default", dynamic=False),
    "default_pipeline": Setting("text", "_none"),
    "fielddata.cache": Setting("text", "node", dynamic=False),
    "final_pipeline": Setting("text", "_none"),
    "gc_deletes": Setting("time", "60s"),
    "hidden": _flag(),
    "highlight.max_analyzed_offset": _number(1_000_000, 1),
    "lifecycle.indexing_complete": _flag(),
    "lifecycle.name": Setting("text"),
    "lifecycle.origination_date": Setting("integer", "-1", True, -1, 2**63 - 1),
    "lifecycle.prefer_ilm": _flag("true"),
    "lifecycle.rollover_alias": Setting("text"),
    "mapping.coerce": _flag("true", dynamic=False),
    "mapping.depth.limit": _number(20, 1),
    "mapping.dimension_fields.limit": _number(32_768),
    "mapping.field_name_length.limit": Setting("integer", str(2**63 - 1), True, 1, 2**63 - 1),
    "mapping.ignore_above": _number(_INT_MAX, dynamic=False),
    "mapping.ignore_malformed": _flag(dynamic=False),
    "mapping.nested_fields.limit": _number(50),
    "mapping.nested_objects.limit": _number(10_000),
    "mapping.source.mode": Setting("text", "stored", dynamic=False),
    "mapping.synthetic_source_keep": Setting("text", "none", dynamic=False),
    "mapping.total_fields.ignore_dynamic_beyond_limit": _flag(),
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
    "mode": Setting("text", "standard", dynamic=False),
    "number_of_replicas": _number(1),
    "number_of_routing_shards": _number(1, 1, dynamic=False),
    "number_of_shards": _number(1, 1, 1024, dynamic=False),
    "priority": _number(1),
    "query.default_field": Setting("words", ("*",)),
    "query_string.lenient": _flag(dynamic=False),
    "refresh_interval": Setting("time", "1s"),
    "requests.cache.enable": _flag("true"),
    "routing_partition_size": _number(1, 1, dynamic=False),
    "routing_path": Setting("words", (), dynamic=False),
    "search.idle.after": Setting("time", "30s"),
    "soft_deletes.enabled": _flag("true", dynamic=False),
    "soft_deletes.retention.operations": Setting("integer", "0", True, 0, 2**63 - 1),
    "soft_deletes.retention_lease.period": Setting("time", "12h"),
    "sort.field": Setting("words", (), dynamic=False),
    "sort.missing": Setting("words", (), dynamic=False),
    "sort.mode": Setting("words", (), dynamic=False),
    "sort.order": Setting("words", (), dynamic=False),
    "store.preload": Setting("words", (), dynamic=False),
    "store.type": Setting("text", "fs", dynamic=False),
    "translog.durability": Setting("text", "REQUEST"),
    "translog.flush_threshold_size": Setting("text", "10gb"),
    "translog.generation_threshold_size": Setting("text", "64mb"),
    "translog.sync_interval": Setting("time", "5s"),
    "unassigned.node_left.delayed_timeout": Setting("time", "1m"),
    "write.wait_for_active_shards": Setting("text", "1"),
}
PREFIXES = (
    "bloom_filter_for_id_field.",
    "flush_after_merge",
    "format",
    "indexing.slowlog.",
    "lifecycle.parse_origination_date",
    "load_fixed_bitset_filters_eagerly",
    "merge.",
    "queries.cache.",
    "routing.allocation.",
    "routing.rebalance.",
    "search.slowlog.",
    "shard.check_on_startup",
    "store.",
    "time_series.",
    "translog.retention.",
    "warmer.",
)
"""Kept and shown, without effect: they tune what is not there."""
STATIC_PREFIXES = (
    "load_fixed_bitset_filters_eagerly",
    "queries.cache.",
    "shard.check_on_startup",
    "store.fs.",
)
"""Those of them that no open index takes from a request."""

FILLED_BY = "resize.filled_by"
"""The number of the node that copies the documents of another index to this one."""
REPLACES = "resize.replaces"
"""The uuid of a closed index of the same name, whose place this one takes once it is filled."""
MOVED_TO = "lifecycle.moved_to"
"""The phase of its policy that an index was moved to, whatever its age."""
PRIVATE = frozenset(
    {"creation_date", "provided_name", "uuid", "version.created", FILLED_BY, REPLACES, MOVED_TO}
)
TREES = frozenset({"analysis", "graph", "similarity"})
"""Kept as they were given, as trees: their rooms read them."""
CLOSED_SETTINGS = frozenset({"analysis", "codec", "query_string.lenient", "similarity"})
"""Those that are not dynamic and that a closed index takes."""


def known_setting(name: str) -> Setting | None:
    """By its name under `index`."""
    found = KNOWN.get(name)
    return Setting("text") if found is None and name.startswith(PREFIXES) else found


# The settings of an index: their normal form, what is wrong with them, and how they are shown.
#
# Normal form: what stands under `index`, by flat names without that prefix (`number_of_replicas`,
# `mapping.total_fields.limit`), each a text or a list of texts, None where a client resets one; but
# `analysis`, `graph` and `similarity` are trees.

Settings: TypeAlias = Mapping[str, Any]

_VERSION_CREATED, VERSION_CREATED_TEXT = "8536000", "8.19.0"  # what an index made by 8.19 says
_SETTINGS_MAX = 2000
_DEPTH_MAX = 50
_DURATION = re.compile(r"(-?\d{1,15}(?:\.\d{1,6})?)(nanos|micros|ms|s|m|h|d)")
_UNIT_MS = {"nanos": 1e-6, "micros": 1e-3, "ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def read_settings(body: object) -> dict[str, Any]:
    """The normal form of any spelling: nested or dotted, with `index.` or without. Names are not checked.

    Errors: illegal_argument_exception.
    """
    if not isinstance(body, Mapping):
        raise illegal_argument("[settings] must be an object")
    values: dict[str, Any] = {}
    pending: list[tuple[str, int, Mapping[str, Any]]] = [("", 0, body)]
    while pending:
        prefix, depth, members = pending.pop()
        for key, value in members.items():
            name = f"{prefix}{key}".removeprefix("index.")
            depth = max(depth, name.count("."))
            if name == "index" and isinstance(value, Mapping):
                pending.append(("", depth + 1, value))
            elif name.partition(".")[0] in TREES:
                _put_tree(values, name, value)
            elif isinstance(value, Mapping):
                pending.append((f"{name}.", depth + 1, value))
            else:
                values[name] = _text_or_list(name, value)
        if depth > _DEPTH_MAX or len(values) > _SETTINGS_MAX:
            raise illegal_argument(f"settings are deeper than [{_DEPTH_MAX}] or more than [{_SETTINGS_MAX}]")
    return dict(sorted(values.items()))


def _put_tree(values: dict[str, Any], name: str, value: Any) -> None:
    """`analysis.analyzer.a.type` into the tree of `analysis`; what is there already is merged."""
    root, *path = name.split(".")
    for part in reversed(path):
        value = {part: value}
    there = values.get(root)
    values[root] = merged_tree(there, value) if isinstance(there, Mapping) else value


def merged_tree(existing: Mapping[str, Any], update: Any) -> Any:
    """Objects into objects; anything else takes the place of what is there."""
    if not isinstance(update, Mapping):
        return update
    merged = dict(existing)
    for key, value in update.items():
        there = merged.get(key)
        both = isinstance(there, Mapping) and isinstance(value, Mapping)
        merged[key] = merged_tree(there, value) if both and there is not None else value
    return merged


def _text_or_list(name: str, value: Any) -> str | list[str] | None:
    if value is None:
        return None
    if isinstance(value, list):
        if any(isinstance(item, Mapping | list) for item in value):
            raise illegal_argument(f"Failed to parse value {_shown(value)} for setting [index.{name}]")
        return [_shown(item) for item in value]
    return _shown(value)


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)[:10_000]


def check_new_settings(values: Settings) -> None:
    """Of an index to be made, or of a template. Errors: illegal_argument_exception, validation_exception."""
    private = sorted(PRIVATE & values.keys())
    if private:
        problems = (
            f"{number}: private index setting [index.{name}] can not be set explicitly;"
            for number, name in enumerate(private, 1)
        )
        raise SearchError("validation_exception", "Validation Failed: " + "".join(problems))
    check_setting_values(values)
    if str(values.get("soft_deletes.enabled", True)).lower() == "false":
        raise illegal_argument(
            "Creating indices with soft-deletes disabled is no longer supported. Please do not specify a "
            "value for setting [index.soft_deletes.enabled]."
        )


def check_setting_values(values: Settings) -> None:
    """Errors: illegal_argument_exception for a name or a value that cannot be."""
    for name, value in values.items():
        if name in TREES:
            if value is not None and not isinstance(value, Mapping):
                raise illegal_argument(f"Failed to parse value [{_shown(value)}] for setting [index.{name}]")
            continue
        setting = known_setting(name)
        if setting is None:
            raise _unknown(name)
        if value is not None:
            _check_value(f"index.{name}", setting, value)


def _unknown(name: str) -> SearchError:
    return illegal_argument(
        f"unknown setting [index.{name[:200]}] please check that any required plugins are installed, or "
        "check the breaking changes documentation for removed settings"
    )


def _check_value(name: str, setting: Setting, value: Any) -> None:
    if setting.kind == "words":
        return
    if isinstance(value, list):
        raise illegal_argument(f"Failed to parse value {value} for setting [{name}]")
    if setting.kind == "integer":
        _integer(name, setting, value)
    elif setting.kind == "boolean" and value not in ("true", "false"):
        raise illegal_argument(
            f"Failed to parse value [{value[:200]}] as only [true] or [false] are allowed."
        )
    elif setting.kind == "time":
        duration_ms(value, name)


def _integer(name: str, setting: Setting, value: str) -> int:
    try:
        number = int(value[:20])
    except ValueError:
        raise illegal_argument(f"Failed to parse value [{value[:200]}] for setting [{name}]") from None
    if number < setting.low:
        raise illegal_argument(
            f"Failed to parse value [{value}] for setting [{name}] must be >= {setting.low}"
        )
    if number > setting.high:
        raise illegal_argument(
            f"Failed to parse value [{value}] for setting [{name}] must be <= {setting.high}"
        )
    return number


def duration_ms(text: str, name: str) -> float:
    """`1s`, `500ms`, 0, -1 (which means: never); name is of the setting or parameter.

    Errors: illegal_argument_exception.
    """
    if text in ("0", "-1"):
        return float(text)
    found = _DURATION.fullmatch(text.strip().lower())
    if found is None:
        raise illegal_argument(
            f"failed to parse setting [{name}] with value [{text[:200]}] as a time value: unit is missing or "
            "unrecognized"
        )
    return float(found[1]) * _UNIT_MS[found[2]]


def updated_settings(existing: Settings, update: Settings, preserve: bool) -> dict[str, Any]:
    """With an update in normal form put in, None taking one away; preserve: those that are set stay.

    Errors: illegal_argument_exception.
    """
    for name in sorted(PRIVATE & update.keys()):
        raise illegal_argument(
            f"can not update private setting [index.{name}]; this setting is managed by Elasticsearch"
        )
    check_setting_values(update)
    changes = {name: value for name, value in update.items() if not (preserve and name in existing)}
    for name in TREES & changes.keys() & existing.keys():
        changes[name] = merged_tree(existing[name], changes[name])
    return {name: value for name, value in {**existing, **changes}.items() if value is not None}


def static_names(update: Settings) -> list[str]:
    """Those of an update that no open index takes."""
    return [name for name in update if name in TREES or not (known_setting(name) or Setting("text")).dynamic]


def _value(settings: Settings, name: str) -> Any:
    value = settings.get(name)
    return KNOWN[name].default if value is None else value


def number_setting(settings: Settings, name: str) -> int:
    """The value of an integer setting, or its default."""
    return int(_value(settings, name))


def flag_setting(settings: Settings, name: str) -> bool:
    return bool(_value(settings, name) == "true")


def words_setting(settings: Settings, name: str) -> tuple[str, ...]:
    value = _value(settings, name)
    return tuple(value.split(",")) if isinstance(value, str) else tuple(value)


def refresh_interval_ms(settings: Settings) -> float:
    """How often what was written is to become findable; negative: never by itself."""
    return duration_ms(_value(settings, "refresh_interval"), "index.refresh_interval")


def limits_of(settings: Settings) -> MappingLimits:
    """How large the index's mapping may grow."""
    tree: dict[str, Any] = {}
    for name, value in settings.items():
        if name.startswith("mapping.") and name.endswith(".limit"):
            tree[name.split(".")[1]] = {"limit": value}
    tree |= {name: settings.get(f"mapping.{name}") for name in ("ignore_above", "ignore_malformed", "coerce")}
    tree["source_mode"] = settings.get("mapping.source.mode")
    beyond = "ignore_dynamic_beyond_limit"
    tree["total_fields"] = {
        **tree.get("total_fields", {}),
        beyond: settings.get(f"mapping.total_fields.{beyond}"),
    }
    return MappingLimits.of(tree)


def routing_of(index: str, settings: Settings) -> ShardRouting:
    """Which shard each document of an index is in. Errors: illegal_argument_exception."""
    given = settings.get("number_of_routing_shards")
    return ShardRouting.checked(
        index,
        number_setting(settings, "number_of_shards"),
        None if given is None else int(given),
        number_setting(settings, "routing_partition_size"),
    )


def in_one_shard(settings: Settings) -> dict[str, Any]:
    """Of an index of the time when `number_of_shards` was only shown: every index was in one piece."""
    names = ("number_of_shards", "number_of_routing_shards")
    kept = {name: value for name, value in settings.items() if name not in names}
    return {**kept, "number_of_shards": "1"} if "number_of_shards" in settings else kept


def analyzers_of(settings: Settings) -> Analyzers:
    """Errors: illegal_argument_exception."""
    return Analyzers.of(
        settings.get("analysis") or {},
        number_setting(settings, "max_ngram_diff"),
        number_setting(settings, "max_shingle_diff"),
        settings.get("similarity") or {},
    )


def shown_settings(
    settings: Settings,
    metadata: Mapping[str, str],
    pattern: str = "*",
    flat: bool = False,
    include_defaults: bool = False,
) -> dict[str, Any]:
    """As GET /{index}/_settings shows them: `settings`, and `defaults` where they are asked for.

    metadata: what stands beside those that were given (`uuid`, `creation_date`, `provided_name`); pattern: of
    full names, `index.number_of_*`, several between commas.
    """
    given = _flat({**settings, **metadata, "version.created": _VERSION_CREATED})
    for name in ("number_of_shards", "number_of_replicas"):
        given.setdefault(f"index.{name}", KNOWN[name].default)
    result = {"settings": _form(given, pattern, flat)}
    if include_defaults:
        defaults = {f"index.{name}": setting.default for name, setting in KNOWN.items()}
        defaults["index.number_of_routing_shards"] = given["index.number_of_shards"]
        missing = {name: value for name, value in defaults.items() if name not in given}
        result["defaults"] = _form(missing, pattern, flat)
    return result


def nested_settings(settings: Settings) -> dict[str, Any]:
    """As a template's are shown: nested under `index`, without those that every index has."""
    return nested(dict(sorted(_flat(settings).items())))


def flat_settings(settings: Settings) -> dict[str, Any]:
    """The same by full names."""
    return dict(sorted(_flat(settings).items()))


def _flat(values: Settings) -> dict[str, Any]:
    """Full names, trees too."""
    result: dict[str, Any] = {}
    pending: list[tuple[str, Any]] = [(f"index.{name}", value) for name, value in values.items()]
    while pending:
        name, value = pending.pop()
        if isinstance(value, Mapping) and "synonyms_set" in value:  # whose rules are kept beside it
            value = {key: one for key, one in value.items() if key != "synonyms"}
        if isinstance(value, Mapping) and value:
            pending += [(f"{name}.{key}", member) for key, member in value.items()]
        elif isinstance(value, list | tuple):
            result[name] = [item if isinstance(item, Mapping | list) else _shown(item) for item in value]
        elif value is not None:
            result[name] = {} if isinstance(value, Mapping) else _shown(value)
    return result


def _form(values: Mapping[str, Any], pattern: str, flat: bool) -> dict[str, Any]:
    patterns = ["*" if part == "_all" else part for part in pattern.split(",")]
    chosen = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in sorted(values.items())
        if any(wildcard_match(part, name) for part in patterns)
    }
    return chosen if flat else nested(chosen)


def nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values by dotted names as objects. A name that goes on below a value (`a` and `a.b`) stays dotted, as
    in Elasticsearch.
    """
    root: dict[str, Any] = {}
    for name, value in values.items():
        at, parts = root, name.split(".")
        while len(parts) > 1 and isinstance(at.get(parts[0], {}), dict):
            at = at.setdefault(parts.pop(0), {})
        at[".".join(parts)] = value
    return root
