"""Values of fields in hits, as `fields`, `docvalue_fields` and `stored_fields` ask for them."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from graphdb.search.aggregations.aggregation import Scope
from graphdb.search.aggregations.options import Options
from graphdb.search.aggregations.value_sources import DATE_TYPES, DecimalPattern
from graphdb.search.errors import SearchError, illegal_argument, illegal_request
from graphdb.search.fields import FieldSpec, Storage
from graphdb.search.mapping.field_readers import reader_of
from graphdb.search.mapping.lookup import METADATA, FieldLookup
from graphdb.search.mapping.range_fields import RANGE_TYPES, shown_range
from graphdb.search.mapping.readers import Read
from graphdb.search.mapping.shapes import shown_shape
from graphdb.search.mapping.types import READS_OBJECTS
from graphdb.search.mapping.value_formats import shown
from graphdb.search.mapping.weighted_features import FEATURES_TYPES
from graphdb.search.mapping.wildcards import flat, wildcard_match
from graphdb.search.number_text import number_text
from graphdb.search.query import QueryContext
from graphdb.search.results.sort_keys import short_float

__all__ = [
    "FieldPattern",
    "Unmapped",
    "docvalue_fields",
    "malformed_values",
    "parse_field_patterns",
    "runtime_values",
    "source_fields",
    "values_at",
]

# What a source has beside its mapped fields, for `fields` with `include_unmapped`.


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


# The values of fields in a hit: `fields`, read from the source, and `docvalue_fields`, read from columns.

PATTERNS_MAX = 1_000
_AS_GIVEN = FEATURES_TYPES | {"completion", "flattened", "percolator"}  # shown as the source has them
_INTERNAL = ("_seq_no", "_source", "_version")
DEFAULT_FORMAT = "use_field_mapping"  # what older clients write for none


@dataclass(frozen=True, slots=True)
class FieldPattern:
    """A name with wildcards, and the format that its values are shown in.

    unmapped: what the source has under such a name counts too where no field is mapped.
    """

    name: str
    format: str | None = None
    unmapped: bool = False


def parse_field_patterns(entries: list[Any], key: str, context: QueryContext) -> tuple[FieldPattern, ...]:
    """Strings, or objects with `field` and `format`. Errors: illegal_argument_exception."""
    most = context.limits.docvalue_fields_search if key == "docvalue_fields" else PATTERNS_MAX
    if len(entries) > most:
        raise illegal_argument(
            f"Trying to retrieve too many {key}. Must be less than or equal to: [{most}] but was "
            f"[{len(entries)}]. This limit can be set by changing the [index.max_docvalue_fields_search] "
            "index level setting."
        )
    patterns = []
    for entry in entries:
        options = Options("field", {"field": entry} if isinstance(entry, str) else entry)
        name, shape = options.text("field"), options.text("format")
        unmapped = options.flag("include_unmapped")
        options.done()
        if name is None:
            raise illegal_request("Required [field]")
        if key == "fields" and name in _INTERNAL:
            raise illegal_argument(
                f"error fetching [{name}]: Cannot fetch values for internal field [{name}].",
                illegal_argument(f"Cannot fetch values for internal field [{name}]."),
            )
        if shape == DEFAULT_FORMAT and key == "docvalue_fields":
            shape = None
        if shape is not None:
            _check_format(name, key, context)
        patterns.append(FieldPattern(name, shape, unmapped))
    return tuple(patterns)


def _check_format(name: str, key: str, context: QueryContext) -> None:
    """Only dates and points have formats; numbers have them where they come from columns."""
    for spec in context.mapping.match(name):
        shaped = spec.type in ("date", "date_nanos", "date_range", "geo_point", "geo_shape")
        is_number = spec.storage in (Storage.INTS, Storage.FLOATS) and spec.type != "boolean"
        if not (shaped or (is_number and key == "docvalue_fields")):
            refusal = "does not support custom" if key == "docvalue_fields" else "doesn't support"
            raise illegal_argument(f"Field [{spec.path}] of type [{spec.type}] {refusal} formats")


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
        for name, spec in named_fields(pattern.name, context.mapping):
            if inside is not None and not name.startswith(f"{inside}."):
                continue
            if spec.type == "_index":
                found[name] = [context.index_name]
            if spec.type == "constant_keyword":
                if spec.options["value"] is not None:
                    found[name] = [spec.options["value"]]
                continue
            if spec.type in ("object", "nested") or spec.path in METADATA or spec.options.get("runtime"):
                continue
            group = _group_below(context.mapping, spec, inside)
            if group is not None:
                groups.add(group)
                continue
            values = list(_read(spec, pattern.format, source, inside))
            if values:
                found[name] = values
    if names := [pattern.name for pattern in patterns if pattern.unmapped]:
        unmapped = Unmapped(names, context.mapping, inside)
        found |= unmapped.values(source)
        groups |= unmapped.groups
    for group in groups:
        objects = [item for item in values_at(source, _relative(group, inside)) if isinstance(item, dict)]
        inner = [source_fields(patterns, context, item, group) for item in objects]
        inner = [{_relative(path, group): values for path, values in one.items()} for one in inner]
        if any(inner):
            found[_relative(group, inside)] = [one for one in inner if one]
    return found


def named_fields(pattern: str, mapping: FieldLookup) -> list[tuple[str, FieldSpec]]:
    """The fields of a pattern, each under the name that it was asked for by: that of an alias is its own."""
    found = [(name, mapping.field(name)) for name in mapping.names(pattern)]
    return [(name, spec) for name, spec in found if spec is not None]


def _relative(path: str, inside: str | None) -> str:
    return path if inside is None else path.removeprefix(inside + ".")


def _group_below(mapping: FieldLookup, spec: FieldSpec, inside: str | None) -> str | None:
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


def _read(spec: FieldSpec, shape: str | None, source: dict[str, Any], inside: str | None) -> Iterator[Any]:
    """Values that do not fit the type, and those too long for it, are left out."""
    read = reader_of(spec.type, spec.path, spec.options)
    for value in _given(spec, source, inside):
        if spec.storage in (Storage.TEXT, Storage.NONE, Storage.VECTORS) or spec.type in _AS_GIVEN:
            yield value if spec.storage is not Storage.TEXT or isinstance(value, str) else str(value)
            continue
        if _is_malformed(spec, read, value):
            continue
        if spec.type == "geo_shape":
            yield shown_shape(value, shape)
            continue
        if spec.type in RANGE_TYPES:
            yield shown_range(spec, value, shape)
            continue
        stored = read(value)
        if stored is not None:
            yield shown(spec, stored, shape)


def _given(spec: FieldSpec, source: dict[str, Any], inside: str | None) -> Iterator[Any]:
    """What the source has for a field, and for those that are copied to it."""
    values = values_at(source, _relative(spec.value_path, inside), spec.storage is Storage.POINTS)
    if (instead := spec.options.get("null_value")) is not None:
        values = (instead if value is None else value for value in values)
    if spec.copied_from:
        paths = (_relative(path, inside) for path in spec.copied_from)
        values = chain(values, *(values_at(source, path, spec.storage is Storage.POINTS) for path in paths))
    if spec.type not in READS_OBJECTS:  # an object has other fields, in an object with `subobjects: false`
        values = (value for value in values if not isinstance(value, dict))
    return (value for value in values if value is not None)


def _is_malformed(spec: FieldSpec, read: Read, value: Any) -> bool:
    limit = spec.options.get("ignore_above")
    if limit is not None and len(str(value)) > limit:
        return True
    try:
        read(value)
    except SearchError:
        return True
    return False


def malformed_values(
    patterns: tuple[FieldPattern, ...], context: QueryContext, source: dict[str, Any], ignored: Sequence[str]
) -> dict[str, list[Any]]:
    """By path the values that were left out of the index, of the fields in `_ignored` that are asked for."""
    found: dict[str, list[Any]] = {}
    for spec in (spec for pattern in patterns for spec in context.mapping.match(pattern.name)):
        if spec.path in ignored and spec.storage not in (Storage.TEXT, Storage.NONE, Storage.VECTORS):
            read = reader_of(spec.type, spec.path, spec.options)
            values = _given(spec, source, None)
            found[spec.path] = [value for value in values if _is_malformed(spec, read, value)]
    return {path: values for path, values in found.items() if values}


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
        for name, spec in named_fields(pattern.name, scope.context.mapping):
            if spec.storage is Storage.VECTORS:
                if vector := _vector(scope, spec, doc):
                    found[name] = [vector]
            elif spec.doc_values and (values := _stored(scope, spec, docs)):
                found[name] = [_column_value(spec, value, pattern.format) for value in values]
    return found


def runtime_values(patterns: tuple[FieldPattern, ...], scope: Scope, doc: int) -> dict[str, list[Any]]:
    """By path the values of the runtime fields that are asked for."""
    mapping = scope.context.mapping
    own = [
        replace(pattern, name=spec.path)
        for pattern in patterns
        for spec in mapping.match(pattern.name)
        if spec.options.get("runtime")
    ]
    return docvalue_fields(tuple(own), scope, doc)


def _stored(scope: Scope, spec: FieldSpec, docs: "np.typing.NDArray[np.int64]") -> list[Any]:
    if spec.storage in (Storage.TERMS, Storage.TEXT):
        dictionary = scope.columns.dictionary(spec)
        return [dictionary.term(number) for number in scope.columns.ordinals(spec, docs).data.tolist()]
    if spec.storage in (Storage.INTS, Storage.FLOATS):
        read = scope.columns.exact if spec.type == "date_nanos" else scope.columns.numbers
        return list(read(spec, docs).data.tolist())
    if spec.storage is Storage.POINTS:
        points = scope.columns.points(spec, docs)
        return list(zip(points.latitudes.tolist(), points.longitudes.tolist(), strict=True))
    return []


def _vector(scope: Scope, spec: FieldSpec, doc: int) -> list[Any]:
    """The vector as it is indexed, with the fewest digits that mean it; none where there is none."""
    leaf, local = scope.columns.locate(doc)
    column = leaf.segment.vectors(spec.path)
    if column is None:
        return []
    place = int(np.searchsorted(column.docs, local))
    if place == len(column.docs) or column.docs[place] != local:
        return []
    element_type, row = spec.options["element_type"], column.rows[place]
    if element_type == "bit":
        return list(row.view(np.int8).tolist())
    return [int(value) if element_type == "byte" else short_float(value) for value in row.tolist()]


def _column_value(spec: FieldSpec, value: Any, shape: str | None) -> Any:
    if shape is not None and spec.storage in (Storage.INTS, Storage.FLOATS) and spec.type not in DATE_TYPES:
        return DecimalPattern.of(shape).write(value)
    if spec.type in ("float", "half_float"):
        return short_float(value)
    if spec.storage is Storage.POINTS and shape is None:
        return ", ".join(number_text(_indexed(degrees, _STEP[axis])) for axis, degrees in enumerate(value))
    return shown(spec, value, shape)


_STEP = (180 / 2**32, 360 / 2**32)  # in degrees: how exact Lucene keeps latitudes and longitudes


def _indexed(degrees: float, step: float) -> float:
    """As Lucene has it, with 32 bits. Source: Lucene's GeoEncodingUtils."""
    return min(math.floor(degrees / step), 2**31 - 1) * step
