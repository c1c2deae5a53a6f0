"""What a request needs of a mapping: which fields there are. Also for several indexes at once."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

from graphdb.search.errors import SearchError
from graphdb.search.fields import FieldSpec, Storage

__all__ = ["METADATA", "FieldLookup", "FieldUnion"]

_NUMBERS = frozenset(
    {"long", "integer", "short", "byte", "unsigned_long", "double", "float", "half_float", "scaled_float"}
)
_KEYWORDS = frozenset({"keyword", "constant_keyword", "wildcard"})
_DATES = frozenset({"date", "date_nanos"})

METADATA = {
    spec.path: spec
    for spec in (
        FieldSpec("_id", "_id", Storage.NONE, doc_values=False),
        FieldSpec("_ignored", "_ignored", Storage.TERMS),
        FieldSpec("_index", "_index", Storage.TERMS),
        FieldSpec("_routing", "_routing", Storage.TERMS, doc_values=False),
        FieldSpec("_seq_no", "_seq_no", Storage.INTS),
        FieldSpec("_version", "_version", Storage.INTS, indexed=False),
    )
}
"""The fields that every index has, by path; patterns with `*` do not mean them. All documents of an index
have the same `_index`, which no segment holds.
"""


class FieldLookup(Protocol):
    """A mapping, for its readers."""

    def field(self, path: str) -> FieldSpec | None:
        """The field of a path, one of METADATA too."""

    def match(self, pattern: str) -> list[FieldSpec]: ...
    def names(self, pattern: str) -> list[str]: ...
    @property
    def source_options(self) -> dict[str, Any]: ...


class FieldUnion:
    """The fields of several indexes as of one. Whole numbers and fractions are fractions together."""

    def __init__(self, mappings: Sequence[FieldLookup], index_names: Sequence[str]) -> None:
        self._mappings, self._index_names = mappings, index_names

    def field(self, path: str) -> FieldSpec | None:
        """By the path that is asked for, as an alias may stand for another field in each index.

        Errors: illegal_argument_exception where the types of a field cannot be read as one.
        """
        union: FieldSpec | None = None
        first = ""
        for mapping, index in zip(self._mappings, self._index_names, strict=True):
            spec = mapping.field(path)
            if spec is None:
                continue
            spec = replace(spec, path=path)
            if union is None:
                union, first = spec, index
            elif (both := _common(union, spec)) is not None:
                union = both
            else:
                raise _conflict(path, first, union, index, spec)
        return union

    def match(self, pattern: str) -> list[FieldSpec]:
        specs = [self.field(name) for name in self.names(pattern)]
        return list({spec.path: spec for spec in specs if spec is not None}.values())

    def names(self, pattern: str) -> list[str]:
        return sorted({name for mapping in self._mappings for name in mapping.names(pattern)})

    @property
    def source_options(self) -> dict[str, Any]:
        """Those of an index are its own: a hit is shown with the mapping of its index."""
        return {}


def _common(one: FieldSpec, other: FieldSpec) -> FieldSpec | None:
    """What reads the values of both; None where nothing does."""
    if one.nested != other.nested:
        return None
    types = {one.type, other.type}
    if types == _DATES:
        return replace(one, type="date_nanos", doc_values=one.doc_values and other.doc_values)
    if len(types) == 1 or types <= _KEYWORDS:
        return one if one.doc_values <= other.doc_values else other
    if types <= _NUMBERS:
        if one.storage is other.storage and "unsigned_long" not in types:
            return one if one.type in ("double", "long") else replace(one, type=_widest(one.storage))
        return replace(one, type="double", storage=Storage.FLOATS)
    return None


def _widest(storage: Storage) -> str:
    return "double" if storage is Storage.FLOATS else "long"


def _conflict(path: str, first: str, one: FieldSpec, second: str, other: FieldSpec) -> SearchError:
    return SearchError(
        "illegal_argument_exception",
        f"The field [{path}] has incompatible types across the searched indices: [{one.type}] in [{first}] "
        f"and [{other.type}] in [{second}]",
    )
