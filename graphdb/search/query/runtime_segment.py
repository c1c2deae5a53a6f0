"""`RuntimeSegment`: a segment with the values of runtime fields, computed when they are first asked for.

A script runs for all visible documents of the segment, once for a searcher, whatever else the query says. So
all that reads columns and terms (queries, sorting, aggregations, scripts) reads runtime fields as others.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import orjson

from graphdb.search.deadline import checkpoint
from graphdb.search.errors import SearchError, illegal_argument
from graphdb.search.fields import FieldSpec, Storage
from graphdb.search.leaf_reader import (
    Bools,
    Leaf,
    Longs,
    NumberColumn,
    PointColumn,
    Segment,
    TermIndex,
    TextIndex,
)
from graphdb.search.mapping.field_readers import reader_of
from graphdb.search.mapping.lookup import FieldLookup
from graphdb.search.mapping.readers import address_term, points_of
from graphdb.search.mapping.runtime_fields import RuntimeField
from graphdb.search.mapping.wildcards import flat, members_at, scalars_at
from graphdb.search.scripts.moments import Moment
from graphdb.search.scripts.script import RUNTIME, parse_script
from graphdb.search.segments.array_segment import ArrayTerms
from graphdb.search.segments.field_builders import NumberBuilder, PointBuilder, TermsBuilder

__all__ = ["runtime_leaf"]

_CHECKED_DOCS = 64  # between two looks at the deadline


def runtime_leaf(
    leaf: Leaf, fields: Mapping[str, RuntimeField], mapping: FieldLookup, index_name: str
) -> Leaf:
    """A leaf that has the runtime fields, too. mapping knows them."""
    base = leaf.segment.base if isinstance(leaf.segment, RuntimeSegment) else leaf.segment
    valued = {path: field for path, field in fields.items() if field.lookup is None}
    segment = RuntimeSegment(base, valued, mapping, index_name)
    made = replace(leaf, segment=segment)
    segment.leaf = made
    return made


class RuntimeSegment:
    """A `Segment`: that of the documents, where a field is not a runtime field."""

    leaf: Leaf

    def __init__(
        self, base: Segment, fields: Mapping[str, RuntimeField], mapping: FieldLookup, index_name: str
    ) -> None:
        self.base, self._runtime = base, fields
        self._mapping, self._index_name = mapping, index_name
        self.derived: dict[tuple[str, str], Any] = _Derived(base.derived, frozenset(fields))
        self._columns: dict[str, Any] = {}
        self._pending: list[str] = []
        self._emitted: dict[str, list[list[Mapping[str, Any]]]] = {}  # by composite, of each document

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.base, name)

    def fields(self) -> frozenset[str]:
        return self.base.fields() | frozenset(self._runtime)

    def text(self, path: str) -> TextIndex | None:
        return None if path in self._runtime else self.base.text(path)

    def terms(self, path: str) -> TermIndex | None:
        return self._column(path, Storage.TERMS) if path in self._runtime else self.base.terms(path)

    def ints(self, path: str) -> NumberColumn | None:
        return self._column(path, Storage.INTS) if path in self._runtime else self.base.ints(path)

    def floats(self, path: str) -> NumberColumn | None:
        return self._column(path, Storage.FLOATS) if path in self._runtime else self.base.floats(path)

    def exact(self, path: str) -> NumberColumn | None:
        return None if path in self._runtime else self.base.exact(path)

    def points(self, path: str) -> PointColumn | None:
        return self._column(path, Storage.POINTS) if path in self._runtime else self.base.points(path)

    def having(self, path: str) -> Bools:
        if path in self._runtime:
            return self.having_itself(path)
        having = self.base.having(path)
        for below in self._runtime:
            if below.startswith(f"{path}."):
                having = having | self.having_itself(below)
        return having

    def having_itself(self, path: str) -> Bools:
        if path not in self._runtime:
            return self.base.having_itself(path)
        column = self._column(path, self._runtime[path].spec.storage)
        if column is None:
            return np.zeros(self.base.size, np.bool_)
        starts = column.ordinals.starts if isinstance(column, ArrayTerms) else column.starts
        return np.ones(self.base.size, np.bool_) if starts is None else np.asarray(np.diff(starts) > 0)

    def _column(self, path: str, storage: Storage) -> Any:
        field = self._runtime[path]
        if field.spec.storage is not storage:
            return None
        if path not in self._columns:
            if path in self._pending:
                chain = " -> ".join([*self._pending, path])
                raise illegal_argument(f"Cyclic dependency detected while resolving runtime fields: {chain}")
            self._pending.append(path)
            try:
                self._columns[path] = self._computed(field)
            finally:
                self._pending.remove(path)
        return self._columns[path]

    def _computed(self, field: RuntimeField) -> Any:
        spec, size = field.spec, self.base.size
        builder = _builder(spec.storage)
        docs = np.flatnonzero(self.leaf.roots)
        if field.member is not None:
            values = self._of_maps(field, docs)
        else:
            values = self._of_source(spec, docs) if field.script is None else self._of_script(field, docs)
        for doc, found in zip(docs.tolist(), values, strict=True):
            if found:
                builder.add(doc, found)
        sections = builder.sections(spec.path, size)
        if not sections:
            return None
        if spec.storage is Storage.TERMS:
            return ArrayTerms(sections, spec.path)
        storage = str(spec.storage.value)
        if spec.storage is Storage.POINTS:
            parts = ("latitudes", "longitudes", "starts")
            return PointColumn(*(sections[storage, spec.path, part] for part in parts))
        return NumberColumn(
            sections[storage, spec.path, "values"], sections.get((storage, spec.path, "starts"))
        )

    def _of_script(self, field: RuntimeField, docs: Longs) -> Iterator[list[Any]]:
        script = parse_script(field.script, RUNTIME)
        running = script.on(self.leaf, self._mapping, self._index_name)
        for emitted in running.emitted(docs, field.spec.path):
            yield [_emitted(field.spec, value) for value in emitted]

    def _of_maps(self, field: RuntimeField, docs: Longs) -> Iterator[list[Any]]:
        """What the script of a composite emits for one of its fields: in maps, or as a name and a value. The
        script is run once for all of them. Values that do not fit the type are left out.
        """
        spec, member = field.spec, field.member
        assert member is not None
        composite = spec.path.removesuffix(f".{member}")
        if composite not in self._emitted:
            script = parse_script(field.script, RUNTIME)
            running = script.on(self.leaf, self._mapping, self._index_name)
            self._emitted[composite] = [
                list(map(_map_of, all_of)) for all_of in running.emitted(docs, composite)
            ]
        read = _reader(spec)
        for maps in self._emitted[composite]:
            given = (emitted[member] for emitted in maps if member in emitted)
            values = given if spec.type == "geo_point" else (one for value in given for one in flat(value))
            yield _stored(spec, read, values)

    def _of_source(self, spec: FieldSpec, docs: Longs) -> Iterator[list[Any]]:
        """Values that do not fit the type are left out."""
        read = _reader(spec)
        at = members_at if spec.type == "geo_point" else scalars_at
        for place, doc in enumerate(docs.tolist()):
            if place % _CHECKED_DOCS == 0:
                checkpoint()
            yield _stored(spec, read, at(spec.path, orjson.loads(self.base.source(doc))))


class _Derived(dict[tuple[str, str], Any]):
    """What others make of a segment: of runtime fields it is kept here, of other fields with the segment."""

    def __init__(self, base: dict[tuple[str, str], Any], runtime: frozenset[str]) -> None:
        super().__init__()
        self._base, self._runtime = base, runtime

    def __contains__(self, key: object) -> bool:
        return super().__contains__(key) if self._is_own(key) else key in self._base

    def __getitem__(self, key: tuple[str, str]) -> Any:
        return super().__getitem__(key) if self._is_own(key) else self._base[key]

    def __setitem__(self, key: tuple[str, str], value: Any) -> None:
        if self._is_own(key):
            super().__setitem__(key, value)
        else:
            self._base[key] = value

    def get(self, key: tuple[str, str], default: Any = None) -> Any:
        return super().get(key, default) if self._is_own(key) else self._base.get(key, default)

    def setdefault(self, key: tuple[str, str], default: Any = None) -> Any:
        return super().setdefault(key, default) if self._is_own(key) else self._base.setdefault(key, default)

    def _is_own(self, key: object) -> bool:
        return isinstance(key, tuple) and key[1] in self._runtime


def _builder(storage: Storage) -> TermsBuilder | NumberBuilder | PointBuilder:
    if storage is Storage.TERMS:
        return TermsBuilder()
    return PointBuilder() if storage is Storage.POINTS else NumberBuilder(str(storage.value))


def _reader(spec: FieldSpec) -> Any:
    return _points_of if spec.type == "geo_point" else reader_of(spec.type, spec.path, spec.options)


def _stored(spec: FieldSpec, read: Any, given: Iterable[Any]) -> list[Any]:
    stored = [_read(read, value) for value in given]
    known = [value for value in stored if value is not None]
    return [point for points in known for point in points] if spec.type == "geo_point" else known


def _map_of(emitted: Any) -> Mapping[str, Any]:
    """What a script emits of a composite. Errors: illegal_argument_exception."""
    if isinstance(emitted, Mapping):
        return emitted
    if isinstance(emitted, tuple) and len(emitted) == 2 and isinstance(emitted[0], str):
        return {emitted[0]: emitted[1]}
    raise illegal_argument(f"a composite runtime field emits maps, and not [{str(emitted)[:100]}]")


def _points_of(value: Any) -> list[tuple[float, float]] | None:
    return None if value is None else points_of(value)


def _read(read: Any, value: Any) -> Any:
    try:
        return read(value)
    except SearchError:
        return None


def _emitted(spec: FieldSpec, value: Any) -> Any:
    """What a script has emitted, as it is stored. Errors: illegal_argument_exception."""
    if spec.type == "geo_point":
        if isinstance(value, tuple) and len(value) == 2 and all(map(_is_number, value)):
            latitude, longitude = map(float, value)
            if abs(latitude) <= 90 and abs(longitude) <= 180:
                return latitude, longitude
    elif spec.type == "boolean":
        if isinstance(value, bool):
            return int(value)
    elif spec.type in ("keyword", "ip"):
        if isinstance(value, str):
            return address_term(value) if spec.type == "ip" else value
    elif spec.type == "date" and isinstance(value, Moment):
        return value.ms
    elif _is_number(value):
        if spec.storage is Storage.FLOATS and np.isfinite(value):
            return float(value)
        if spec.storage is Storage.INTS and isinstance(value, int) and -(2**63) <= value < 2**63:
            return value
    raise illegal_argument(
        f"runtime field [{spec.path}] of type [{spec.type}] cannot emit [{str(value)[:100]}]"
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
