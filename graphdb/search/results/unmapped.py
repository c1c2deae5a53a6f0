"""What a source has beside its mapped fields, for `fields` with `include_unmapped`."""

from collections.abc import Sequence
from typing import Any

from graphdb.search.mapping.lookup import FieldLookup
from graphdb.search.mapping.wildcards import wildcard_match

__all__ = ["Unmapped"]


class Unmapped:
    """One reading of a source. groups: the paths of the nested objects met on the way, not gone into."""

    def __init__(self, patterns: Sequence[str], mapping: FieldLookup, inside: str | None) -> None:
        """inside: the path of the nested object that the source is."""
        self.groups: set[str] = set()
        self._patterns, self._mapping, self._inside = patterns, mapping, inside
        self._found: dict[str, list[Any]] = {}

    def values(self, source: dict[str, Any]) -> dict[str, list[Any]]:
        """By full path what fits a pattern, in the order of the source."""
        self._members(source, self._inside or "")
        return self._found

    def _members(self, value: dict[str, Any], path: str) -> None:
        for name, member in value.items():
            self._at(member, f"{path}.{name}" if path else name)

    def _at(self, value: Any, path: str) -> None:
        spec = self._mapping.field(path)
        if spec is not None and spec.type == "nested":
            self.groups.add(path)
        elif spec is None or spec.type == "object":
            self._values(value, path)

    def _values(self, value: Any, path: str) -> None:
        if isinstance(value, dict):
            self._members(value, path)
        elif isinstance(value, list):
            for item in value:
                self._values(item, path)
        elif value is not None and any(wildcard_match(pattern, path) for pattern in self._patterns):
            self._found.setdefault(path, []).append(value)
