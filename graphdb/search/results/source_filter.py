"""Which parts of a document's source a hit shows: `_source` with includes and excludes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from graphdb.search.errors import illegal_request, parsing
from graphdb.search.mapping.lookup import FieldLookup
from graphdb.search.mapping.wildcards import wildcard_match

__all__ = ["EVERYTHING", "SourceFilter", "keeps_source", "parse_source_filter"]

PATTERNS_MAX = 1_000


@dataclass(frozen=True, slots=True)
class SourceFilter:
    """A pattern stands for all paths it matches and all below them; `*` matches dots too. Excludes win."""

    enabled: bool = True
    includes: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()

    def applied(self, source: dict[str, Any]) -> dict[str, Any]:
        if not self.includes and not self.excludes:
            return source
        return self._object(source, "", not self.includes)

    def _object(self, value: Mapping[str, Any], prefix: str, accepted: bool) -> dict[str, Any]:
        kept = {}
        for key, member in value.items():
            path = prefix + key
            if any(wildcard_match(pattern, path) for pattern in self.excludes):
                continue
            inside = accepted or any(wildcard_match(pattern, path) for pattern in self.includes)
            left = self._value(member, path, inside)
            if left is not _NOTHING:
                kept[key] = left
        return kept

    def _value(self, value: Any, path: str, accepted: bool) -> Any:
        """What stays of a value: of objects and arrays that are not asked for, only what is asked for."""
        if isinstance(value, dict):
            inner = self._object(value, path + ".", accepted)
            return inner if inner or accepted else _NOTHING
        if isinstance(value, list):
            items = [self._value(item, path, accepted) for item in value]
            items = [item for item in items if item is not _NOTHING]
            return items if items or accepted else _NOTHING
        return value if accepted else _NOTHING


_NOTHING = object()
EVERYTHING = SourceFilter()


def keeps_source(mapping: FieldLookup) -> bool:
    """Whether a mapping shows the documents of its index."""
    return mapping.source_options.get("enabled") not in (False, "false")


def parse_source_filter(value: Any) -> SourceFilter:
    """A boolean, a pattern, patterns, or an object with includes and excludes."""
    if value is None or value is True or value == "true":
        return SourceFilter()
    if value is False or value == "false":
        return SourceFilter(False)
    if isinstance(value, Mapping):
        known = {"includes": "includes", "include": "includes", "excludes": "excludes", "exclude": "excludes"}
        lists: dict[str, tuple[str, ...]] = {}
        for key, patterns in value.items():
            if key not in known:
                raise parsing(f"Unknown key for a VALUE_STRING in [{key}].")
            lists[known[key]] = _patterns(patterns)
        return SourceFilter(True, lists.get("includes", ()), lists.get("excludes", ()))
    return SourceFilter(True, _patterns(value))


def _patterns(value: Any) -> tuple[str, ...]:
    found = value if isinstance(value, list) else [value]
    if len(found) > PATTERNS_MAX:
        raise illegal_request(f"[_source] takes at most [{PATTERNS_MAX}] patterns")
    for pattern in found:
        if not isinstance(pattern, str):
            raise parsing(
                "Expected one of [VALUE_BOOLEAN, VALUE_STRING, START_ARRAY, START_OBJECT] for [_source]"
            )
    return tuple(found)
