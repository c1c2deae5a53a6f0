"""The values of fields in a hit: `fields`, read from the source, and `docvalue_fields`, read from columns."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphdb.search.aggregations.options import Options
from graphdb.search.aggregations.scope import Scope
from graphdb.search.errors import SearchError, illegal_argument
from graphdb.search.fields import FieldSpec, Storage
from graphdb.search.mapping import Mapping as IndexMapping
from graphdb.search.mapping.readers import reader_of
from graphdb.search.mapping.values import shown
from graphdb.search.mapping.wildcards import flat
from graphdb.search.query import QueryContext
from graphdb.search.results.sort_keys import short_float

__all__ = ["FieldPattern", "docvalue_fields", "parse_field_patterns", "source_fields", "values_at"]

PATTERNS_MAX = 1_000
DOCVALUES_MAX = 100  # index.max_docvalue_fields_search


@dataclass(frozen=True, slots=True)
class FieldPattern:
    """A name with wildcards, and the format that its dates are shown in."""

    name: str
    format: str | None = None


def parse_field_patterns(entries: list[Any], key: str) -> tuple[FieldPattern, ...]:
    """Strings, or objects with `field` and `format`."""
    if len(entries) > (DOCVALUES_MAX if key == "docvalue_fields" else PATTERNS_MAX):
        raise illegal_argument(
            f"Trying to retrieve too many {key}. Must be less than or equal to: [{DOCVALUES_MAX}] but was "
            f"[{len(entries)}]."
        )
    patterns = []
    for entry in entries:
        options = Options("field", {"field": entry} if isinstance(entry, str) else entry)
        name, shape = options.text("field"), options.text("format")
        options.ignore("include_unmapped")
        options.done()
        if name is None:
            raise illegal_argument("Required [field]")
        patterns.append(FieldPattern(name, shape))
    return tuple(patterns)


def source_fields(
    patterns: tuple[FieldPattern, ...],
    context: QueryContext,
    source: dict[str, Any],
    inside: str | None = None,
) -> dict[str, list[Any]]:
    """By path the values as their types show them; nested objects in groups under their own path."""
    found: dict[str, list[Any]] = {}
    groups: set[str] = set()
    for pattern in patterns:
        for spec in context.mapping.match(pattern.name):
            if spec.type in ("object", "nested"):
                continue
            group = _group_below(context.mapping, spec, inside)
            if group is not None:
                groups.add(group)
                continue
            values = list(_read(context, spec, pattern.format, source, inside))
            if values:
                found[spec.path] = values
    for group in groups:
        objects = [item for item in values_at(source, _relative(group, inside)) if isinstance(item, dict)]
        inner = [source_fields(patterns, context, item, group) for item in objects]
        inner = [{_relative(path, group): values for path, values in one.items()} for one in inner]
        if any(inner):
            found[_relative(group, inside)] = [one for one in inner if one]
    return found


def _relative(path: str, inside: str | None) -> str:
    return path if inside is None else path.removeprefix(inside + ".")


def _group_below(mapping: IndexMapping, spec: FieldSpec, inside: str | None) -> str | None:
    """The outermost nested path around a field that is further in than `inside`."""
    path = spec.nested
    if path is None or path == inside:
        return None
    if inside is not None and not path.startswith(inside + "."):
        return None
    parts = path.split(".")
    for length in range(1, len(parts)):
        outer = ".".join(parts[:length])
        spec_above = mapping.field(outer)
        if (
            spec_above is not None
            and spec_above.type == "nested"
            and (inside is None or outer.startswith(inside + "."))
        ):
            return outer
    return path


def _read(
    context: QueryContext, spec: FieldSpec, shape: str | None, source: dict[str, Any], inside: str | None
) -> Iterator[Any]:
    """Values that do not fit the type, and those too long for it, are left out."""
    parent = spec.path.rpartition(".")[0]
    above = context.mapping.field(parent) if parent else None
    is_multi_field = above is not None and above.type not in ("object", "nested")
    path = _relative(parent if is_multi_field else spec.path, inside)
    read = reader_of(spec.type, spec.path, spec.options)
    limit = spec.options.get("ignore_above")
    for value in values_at(source, path, spec.storage is Storage.POINTS):
        if value is None or (limit is not None and len(str(value)) > limit):
            continue
        if spec.storage in (Storage.TEXT, Storage.NONE, Storage.VECTORS):
            yield value if spec.storage is not Storage.TEXT or isinstance(value, str) else str(value)
            continue
        try:
            stored = read(value)
        except SearchError:
            continue
        if stored is not None:
            yield shown(spec, stored, shape)


def values_at(source: Any, path: str, points: bool = False) -> Iterator[Any]:
    """What stands at a path, through arrays of objects, and through keys with dots in them.

    points: an array of numbers is one value.
    """
    if isinstance(source, list):
        for item in flat(source):
            yield from values_at(item, path, points)
    elif isinstance(source, dict):
        for key, value in source.items():
            if key == path:
                yield from [value] if points and _is_point(value) else flat(value)
            elif path.startswith(key + "."):
                yield from values_at(value, path[len(key) + 1 :], points)


def _is_point(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], (int, float))


def docvalue_fields(patterns: tuple[FieldPattern, ...], scope: Scope, doc: int) -> dict[str, list[Any]]:
    """By path the values of one document as its columns have them: ascending, terms without doubles."""
    found: dict[str, list[Any]] = {}
    docs = np.array([doc], np.int64)
    for pattern in patterns:
        for spec in scope.context.mapping.match(pattern.name):
            if spec.doc_values and (values := _stored(scope, spec, docs)):
                found[spec.path] = [_column_value(spec, value, pattern.format) for value in values]
    return found


def _stored(scope: Scope, spec: FieldSpec, docs: "np.typing.NDArray[np.int64]") -> list[Any]:
    if spec.storage is Storage.TERMS:
        dictionary = scope.columns.dictionary(spec)
        return [dictionary.term(number) for number in scope.columns.ordinals(spec, docs).data.tolist()]
    if spec.storage in (Storage.INTS, Storage.FLOATS):
        return list(scope.columns.numbers(spec, docs).data.tolist())
    if spec.storage is Storage.POINTS:
        points = scope.columns.points(spec, docs)
        return list(zip(points.latitudes.tolist(), points.longitudes.tolist(), strict=True))
    return []


def _column_value(spec: FieldSpec, value: Any, shape: str | None) -> Any:
    if spec.type in ("float", "half_float"):
        return short_float(value)
    return shown(spec, value, shape)
