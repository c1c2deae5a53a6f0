"""How large a mapping may grow."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from graphdb.search.errors import SearchError, illegal_argument

__all__ = ["MappingLimits"]


@dataclass(frozen=True, slots=True)
class MappingLimits:
    """The index settings `index.mapping.*`, with Elasticsearch's defaults."""

    total_fields: int = 1000  # fields, multi-fields, aliases and objects together
    depth: int = 20  # objects within objects; a field at the top is at depth 1
    nested_fields: int = 50  # paths of type nested
    nested_objects: int = 10_000  # nested objects in one document
    field_name_length: int = 2**31 - 1  # UTF-16 units in the last part of a path, as Java counts

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> "MappingLimits":
        """From settings.index.mapping (`{"total_fields": {"limit": 2000}}`)."""
        given: dict[str, int] = {}
        for name in cls.__dataclass_fields__:
            limit = settings.get(name, {}).get("limit") if isinstance(settings.get(name), dict) else None
            if limit is not None:
                given[name] = _limit(name, limit)
        return cls(**given)

    def exceeded(self, what: str, limit: int, because: str = "") -> SearchError:
        """The error of a limit that has been passed; what is the limit's name in words."""
        return illegal_argument(f"Limit of {what} [{limit}] has been exceeded{because}")


def _limit(name: str, value: Any) -> int:
    try:
        number = int(str(value)[:20])
    except ValueError:
        number = -1
    if number < 0:
        raise illegal_argument(
            f"Failed to parse value [{str(value)[:100]}] for setting [index.mapping.{name}.limit]"
        )
    return number
