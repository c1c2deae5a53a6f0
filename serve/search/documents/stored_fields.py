"""`stored_fields`: the values of fields whose mapping says `store`."""

from collections.abc import Sequence
from typing import Any

import orjson

from graphdb.search.catalog.index import Index
from graphdb.search.results.field_values import FieldPattern, source_fields

__all__ = ["stored_values"]


def stored_values(index: Index, source: bytes, names: Sequence[str]) -> dict[str, list[Any]]:
    """By path, for those of the names that are stored."""
    mapping = index.mapping
    fields = [spec for name in names if name != "_source" for spec in mapping.match(name)]
    stored = tuple(FieldPattern(spec.path) for spec in fields if spec.options.get("store") in (True, "true"))
    if not stored:
        return {}
    return source_fields(stored, index.context(0), orjson.loads(source))
