"""Settings of the whole cluster, as `PUT /_cluster/settings` takes them, and what they mean.

They are those of `DEFAULTS`; of these `cluster.routing.allocation.enable` is kept without an effect, because
tools for restarts set it, and so are those of `_WITHOUT_EFFECT`, which tune what is not there. A transient
setting wins over a persistent one. Both are kept with the templates, so that every node that applies the same
log decides the same.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from graphdb.search.catalog.catalog_commands import PutClusterSettings
from graphdb.search.catalog.index_settings import duration_ms
from graphdb.search.catalog.state import CatalogState
from graphdb.search.contexts import KEEP_ALIVE_MS_MAX
from graphdb.search.errors import SearchError, illegal_argument
from graphdb.search.mapping.wildcards import wildcard_match

__all__ = [
    "AUTO_CREATE",
    "DEFAULTS",
    "IDLE_DEFAULTS",
    "allows_expensive",
    "balance_threshold",
    "check_auto_create",
    "max_buckets",
    "max_keep_alive_ms",
    "rebalanced_kinds",
    "requires_names",
    "with_cluster_settings",
]

AUTO_CREATE = "action.auto_create_index"
MAX_BUCKETS = "search.max_buckets"
ALLOW_EXPENSIVE = "search.allow_expensive_queries"
DEFAULT_KEEP_ALIVE = "search.default_keep_alive"
MAX_KEEP_ALIVE = "search.max_keep_alive"
ALLOCATION = "cluster.routing.allocation.enable"
REBALANCE = "cluster.routing.rebalance.enable"
BALANCE_THRESHOLD = "cluster.routing.allocation.balance.threshold"
REQUIRES_NAMES = "action.destructive_requires_name"
DEFAULTS = {
    AUTO_CREATE: "true",
    REQUIRES_NAMES: "true",
    MAX_BUCKETS: "65536",
    ALLOW_EXPENSIVE: "true",
    DEFAULT_KEEP_ALIVE: "5m",
    MAX_KEEP_ALIVE: "24h",
    ALLOCATION: "all",
    REBALANCE: "all",
    BALANCE_THRESHOLD: "1.0",
}
IDLE_DEFAULTS = {
    "cluster.max_shards_per_node": "1000",
    "cluster.routing.allocation.disk.threshold_enabled": "false",
    "cluster.routing.allocation.disk.watermark.low": "85%",
    "cluster.routing.allocation.disk.watermark.high": "90%",
    "cluster.routing.allocation.disk.watermark.flood_stage": "95%",
}
"""Of settings without an effect: those that monitoring programs look for."""
_WITHOUT_EFFECT = (
    "cluster.max_shards_per_node",
    "cluster.routing.allocation.cluster_concurrent_rebalance",
    "cluster.routing.allocation.disk.",
    "cluster.routing.allocation.node_concurrent_",
    "cluster.routing.allocation.node_initial_primaries_recoveries",
    "indices.recovery.",
)
"""Beginnings of names."""
_KINDS = ("transient", "persistent")
_LENGTH_MAX = 10_000  # characters of the list of patterns
_VALUE_MAX = 200


def with_cluster_settings(state: CatalogState, command: PutClusterSettings) -> CatalogState:
    """All of them set, or none. null resets a setting, and with wildcards all that fit.

    Errors: illegal_argument_exception.
    """
    after = {kind: dict(state.cluster_settings.get(kind, {})) for kind in _KINDS}
    for kind in _KINDS:
        given: Mapping[str, Any] = getattr(command, kind)
        for name, value in given.items():
            if value is None:
                for known in [known for known in after[kind] if wildcard_match(name, known)]:
                    del after[kind][known]
            elif name.startswith(_WITHOUT_EFFECT) and not isinstance(value, list):
                after[kind][name] = str(value).lower() if isinstance(value, bool) else str(value)[:_VALUE_MAX]
            elif name not in _CHECKS:
                raise illegal_argument(f"{kind} setting [{name[:200]}], not recognized")
            else:
                after[kind][name] = _CHECKS[name](value)
    _check_keep_alives(after)
    return replace(state, cluster_settings={kind: values for kind, values in after.items() if values})


def _patterns(value: Any) -> str:
    text = str(value).lower() if isinstance(value, bool) else value
    if not isinstance(text, str) or len(text) > _LENGTH_MAX:
        raise _unreadable(str(value)[:100], _CHOICES)
    _expressions(text)
    return text


def _count(name: str) -> Callable[[Any], str]:
    def checked(value: Any) -> str:
        text = str(value)
        if isinstance(value, bool) or not re.fullmatch(r"-?[0-9]{1,10}", text):
            raise illegal_argument(f"Failed to parse value [{text[:100]}] for setting [{name}]")
        if not 0 <= int(text) < 2**31:
            rule = ">= 0" if int(text) < 0 else f"<= {2**31 - 1}"
            raise illegal_argument(f"Failed to parse value [{text}] for setting [{name}] must be {rule}")
        return text

    return checked


def _flag(value: Any) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if text not in ("true", "false"):
        raise illegal_argument(f"Failed to parse value [{text[:100]}] as only [true] or [false] are allowed.")
    return text


def _time(name: str) -> Callable[[Any], str]:
    def checked(value: Any) -> str:
        text = str(value)
        if not 0 <= duration_ms(text, name) <= KEEP_ALIVE_MS_MAX:
            raise illegal_argument(
                f"failed to parse value [{text[:100]}] for setting [{name}], must be in [0,1d]"
            )
        return text

    return checked


def _one_of(name: str, words: tuple[str, ...]) -> Callable[[Any], str]:
    def checked(value: Any) -> str:
        text = str(value).lower()
        if text not in words:
            raise illegal_argument(
                f"Illegal value [{text[:100]}] for setting [{name}], must be one of [{', '.join(words)}]"
            )
        return text

    return checked


def _threshold(value: Any) -> str:
    text = str(value)
    if isinstance(value, bool) or not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", text):
        raise illegal_argument(f"Failed to parse value [{text[:100]}] for setting [{BALANCE_THRESHOLD}]")
    if float(text) < 1:  # copies would go to and fro
        raise illegal_argument(
            f"Failed to parse value [{text}] for setting [{BALANCE_THRESHOLD}] must be >= 1.0"
        )
    return text


def _check_keep_alives(settings: Mapping[str, Mapping[str, str]]) -> None:
    default, most = (setting(settings, name) for name in (DEFAULT_KEEP_ALIVE, MAX_KEEP_ALIVE))
    if duration_ms(default, DEFAULT_KEEP_ALIVE) > duration_ms(most, MAX_KEEP_ALIVE):
        raise illegal_argument(
            f"Default keep alive setting for request [{DEFAULT_KEEP_ALIVE}]({default}) should be smaller "
            f"than max keep alive [{MAX_KEEP_ALIVE}]({most})"
        )


# What searches ask.


def setting(settings: Mapping[str, Mapping[str, str]], name: str) -> str:
    """The value that holds, or its default. settings: `CatalogState.cluster_settings`."""
    for kind in _KINDS if settings else ():
        value = settings.get(kind, {}).get(name)
        if value is not None:
            return value
    return DEFAULTS[name]


def max_buckets(settings: Mapping[str, Mapping[str, str]]) -> int:
    """How many buckets an answer may have."""
    return int(setting(settings, MAX_BUCKETS))


def allows_expensive(settings: Mapping[str, Mapping[str, str]]) -> bool:
    """Whether queries are answered that read many terms or run scripts."""
    return setting(settings, ALLOW_EXPENSIVE) == "true"


def max_keep_alive_ms(settings: Mapping[str, Mapping[str, str]]) -> int:
    """How long a search context may be kept between two requests."""
    return int(duration_ms(setting(settings, MAX_KEEP_ALIVE), MAX_KEEP_ALIVE))


def requires_names(settings: Mapping[str, Mapping[str, str]]) -> bool:
    """Whether indexes are deleted by their names only, not by patterns."""
    return setting(settings, REQUIRES_NAMES) == "true"


# What moving copies of shards asks.


def balance_threshold(settings: Mapping[str, Mapping[str, str]]) -> float:
    """See `graphdb.search.sharded.allocation`."""
    return float(setting(settings, BALANCE_THRESHOLD))


def rebalanced_kinds(settings: Mapping[str, Mapping[str, str]]) -> str:
    """Which copies are moved to spread them: all, primaries, replicas or none."""
    return setting(settings, REBALANCE)


# Which indexes are made for a document.

_CHOICES = "must be either [true, false, or a comma separated list of index patterns]"


def _expressions(text: str) -> list[tuple[bool, str]]:
    """(whether it allows, pattern) in the order given: the first that fits a name decides."""
    found = []
    for part in text.split(",") if text else ():
        pattern = part.strip()
        if not pattern:
            raise _unreadable(text[:100], _CHOICES)
        sign = pattern[0] if pattern[0] in "+-" else ""
        if pattern == sign:
            raise _unreadable(text[:100], f"must contain an index name after [{sign}]")
        found.append((sign != "-", pattern.removeprefix(sign)))
    return found


def _unreadable(value: str, rule: str) -> SearchError:
    return illegal_argument(f"Can't parse [{value}] for setting [{AUTO_CREATE}] {rule}")


def check_auto_create(state: CatalogState, name: str) -> None:
    """Errors: index_not_found_exception, where an index of that name is not to be made for a document."""
    text = next(
        (found for kind in _KINDS if (found := state.cluster_settings.get(kind, {}).get(AUTO_CREATE))), "true"
    )
    if text == "true":
        return
    if text == "false":
        raise _forbidden(name, f"[{AUTO_CREATE}] is [false]")
    for allows, pattern in _expressions(text):
        if wildcard_match(pattern, name):
            if allows:
                return
            reason = f"[{AUTO_CREATE}] contains [-{pattern}] which forbids automatic creation of the index"
            raise _forbidden(name, reason)
    raise _forbidden(name, f"[{AUTO_CREATE}] ([{text}]) doesn't match")


def _forbidden(name: str, reason: str) -> SearchError:
    return SearchError(
        "index_not_found_exception",
        f"no such index [{name}] and {reason}",
        404,
        {"index_uuid": "_na_", "index": name},
    )


_CHECKS: Mapping[str, Callable[[Any], str]] = {
    AUTO_CREATE: _patterns,
    REQUIRES_NAMES: _flag,
    MAX_BUCKETS: _count(MAX_BUCKETS),
    ALLOW_EXPENSIVE: _flag,
    DEFAULT_KEEP_ALIVE: _time(DEFAULT_KEEP_ALIVE),
    MAX_KEEP_ALIVE: _time(MAX_KEEP_ALIVE),
    ALLOCATION: _one_of(ALLOCATION, ("all", "primaries", "new_primaries", "none")),
    REBALANCE: _one_of(REBALANCE, ("all", "primaries", "replicas", "none")),
    BALANCE_THRESHOLD: _threshold,
}
