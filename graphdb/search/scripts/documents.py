"""What scripts see of the documents of a leaf: `doc['field']`, its values, vectors."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from graphdb.search.fields import FieldSpec, Storage
from graphdb.search.leaf_reader import (
    Bools,
    Doubles,
    Leaf,
    Longs,
    NumberColumn,
    exact_numbers,
    unsigned,
)
from graphdb.search.mapping.lookup import FieldLookup
from graphdb.search.mapping.value_formats import shown
from graphdb.search.mapping.vectors import from_hex
from graphdb.search.scripts.faults import ScriptFault, class_cast, unsupported
from graphdb.search.scripts.methods import index_of
from graphdb.search.scripts.moments import Moment
from graphdb.search.scripts.values import equal, type_name

__all__ = ["DOC_FUNCTIONS", "Documents", "FieldValues", "Point", "no_value"]

_EARTH_RADIUS_M = 6_371_008.7714
_DATES = ("date", "date_nanos")


def no_value() -> ScriptFault:
    """Of a document that lacks the field."""
    return ScriptFault(
        "illegal_state_exception",
        "A document doesn't have a value for a field! Use doc[<field>].size()==0 to check if a document is "
        "missing a field!",
    )


@dataclass(frozen=True, slots=True)
class Point:
    """A geo_point, degrees."""

    lat: float
    lon: float

    def script_member(self, name: str) -> Any:
        if name not in ("lat", "lon"):
            raise unsupported(f"dynamic getter [geo_point, {name}] not found")
        return self.lat if name == "lat" else self.lon

    def distance_m(self, latitude: float, longitude: float) -> float:
        """Along the surface of a sphere; degrees in."""
        return _arc_distance(self, latitude, longitude)

    def __str__(self) -> str:
        return f"{self.lat}, {self.lon}"


@dataclass(frozen=True, slots=True)
class FieldValues:
    """The values of one field of one document, ascending."""

    values: Sequence[Any]

    def first(self) -> Any:
        if not self.values:
            raise no_value()
        return self.values[0]

    def script_member(self, name: str) -> Any:
        if name == "value":
            return self.first()
        if name in ("values", "length", "empty"):
            made = {"values": tuple(self.values), "length": len(self.values), "empty": not self.values}
            return made[name]
        if name == "date":
            return self.first()
        first = self.first()
        if isinstance(first, Point):
            return first.script_member(name)
        raise unsupported(f"dynamic getter [field, {name}] not found")

    def script_element(self, index: Any) -> Any:
        if not self.values:
            raise no_value()
        return self.values[index_of(self.values, index)]

    def script_values(self) -> Sequence[Any]:
        return self.values

    def _contains(self, wanted: Any) -> bool:
        return any(equal(value, wanted) for value in self.values)

    def _distance(self, latitude: Any, longitude: Any) -> float:
        """Metres, along the surface of a sphere."""
        point = self.first()
        if not isinstance(point, Point):
            raise class_cast("a distance is asked of a field that is no geo_point")
        return _arc_distance(point, float(latitude), float(longitude))

    script_methods: ClassVar[dict[str, Callable[..., Any]]] = {
        "size": lambda own: len(own.values),
        "isEmpty": lambda own: not own.values,
        "getLength": lambda own: len(own.values),
        "getValue": lambda own: own.first(),
        "getValues": lambda own: tuple(own.values),
        "getDate": lambda own: own.first(),
        "get": lambda own, index: own.script_element(index),
        "contains": lambda own, wanted: own._contains(wanted),
        "arcDistance": lambda own, latitude, longitude: own._distance(latitude, longitude),
        "arcDistanceWithDefault": lambda own, latitude, longitude, default: (
            own._distance(latitude, longitude) if own.values else default
        ),
        "planeDistance": lambda own, latitude, longitude: own._distance(latitude, longitude),
        "planeDistanceWithDefault": lambda own, latitude, longitude, default: (
            own._distance(latitude, longitude) if own.values else default
        ),
        "getLat": lambda own: own.script_member("lat"),
        "getLon": lambda own: own.script_member("lon"),
    }


def _arc_distance(point: Point, latitude: float, longitude: float) -> float:
    there, here = math.radians(point.lat), math.radians(latitude)
    half = math.sin((there - here) / 2) ** 2
    half += math.cos(there) * math.cos(here) * math.sin(math.radians(point.lon - longitude) / 2) ** 2
    return 2 * _EARTH_RADIUS_M * math.asin(min(1.0, math.sqrt(half)))


class _Field:
    """`field('name')` of a script."""

    def __init__(self, values: Sequence[Any]) -> None:
        self._values = values

    script_methods: ClassVar[dict[str, Callable[..., Any]]] = {
        "get": lambda own, *given: own._get(*given),
        "size": lambda own: len(own._values),
        "isEmpty": lambda own: not own._values,
    }

    def _get(self, *given: Any) -> Any:
        place, default = given if len(given) == 2 else (0, given[0])
        return self._values[place] if type(place) is int and 0 <= place < len(self._values) else default

    def script_values(self) -> Sequence[Any]:
        return self._values


class Documents:
    """`doc` of a script, for one leaf; for one thread. at: the document that it is about now."""

    def __init__(self, leaf: Leaf, mapping: FieldLookup, index_name: str) -> None:
        self.leaf, self.at = leaf, 0
        self._mapping, self._index_name = mapping, index_name
        self._readers: dict[str, Callable[[int], Sequence[Any]]] = {}
        self._firsts: dict[str, tuple[Any, Bools, bool]] = {}

    # Of one document, for the interpreter.

    def script_element(self, name: Any) -> FieldValues:
        if not isinstance(name, str):
            raise class_cast(f"Cannot cast from [{type_name(name)}] to [java.lang.String].")
        reader = self._readers.get(name)
        if reader is None:
            reader = self._readers[name] = self._reader(self.spec(name))
        return FieldValues(reader(self.at))

    def script_member(self, name: str) -> FieldValues:
        return self.script_element(name)

    script_methods: ClassVar[dict[str, Callable[..., Any]]] = {
        "containsKey": lambda own, name: own._mapping.field(str(name)) is not None,
        "get": lambda own, name: own.script_element(name),
    }

    def spec(self, name: str) -> FieldSpec:
        """Raises ScriptFault for a field that is not mapped, or has no columns."""
        spec = self._mapping.field(name)
        if spec is None or spec.type in ("object", "nested"):
            raise unsupported(f"No field found for [{name}] in mapping")
        if spec.storage is Storage.TEXT and not spec.doc_values:
            raise unsupported(
                f"Fielddata is disabled on [{name}] in [{self._index_name}]. Text fields are not optimised "
                "for operations that require per-document field data like aggregations and sorting, so these "
                "operations are disabled by default. Please use a keyword field instead."
            )
        if not spec.doc_values or spec.storage in (Storage.NONE, Storage.CODES):
            raise unsupported(
                f"Can't load fielddata on [{name}] because fielddata is unsupported on fields of type "
                f"[{spec.type}]. Use doc values instead."
            )
        return spec

    def _reader(self, spec: FieldSpec) -> Callable[[int], Sequence[Any]]:
        segment = self.leaf.segment
        if spec.type == "_index":
            return lambda doc: (self._index_name,)
        if spec.type == "constant_keyword":
            constant = spec.options["value"]
            return lambda doc: () if constant is None else (constant,)
        if spec.storage in (Storage.TERMS, Storage.TEXT):
            return self._terms_reader(spec)
        if spec.storage in (Storage.INTS, Storage.FLOATS):
            column = self._column(spec)
            return (lambda doc: ()) if column is None else _number_reader(column, spec)
        if spec.storage is Storage.POINTS and (points := segment.points(spec.path)) is not None:
            starts = points.starts

            def read(doc: int) -> Sequence[Any]:
                places = range(int(starts[doc]), int(starts[doc + 1]))
                return [Point(float(points.latitudes[n]), float(points.longitudes[n])) for n in places]

            return read
        if spec.storage is Storage.VECTORS:
            return self._vector_reader(spec)
        return lambda doc: ()

    def _terms_reader(self, spec: FieldSpec) -> Callable[[int], Sequence[Any]]:
        segment, path = self.leaf.segment, spec.path
        index = segment.text(path) if spec.storage is Storage.TEXT else segment.terms(path)
        if index is None:
            return lambda doc: ()
        ordinals, dictionary, is_coded = index.ordinals, index.dictionary, spec.type in ("ip", "version")

        def read(doc: int) -> Sequence[Any]:
            numbers = ordinals.terms[ordinals.starts[doc] : ordinals.starts[doc + 1]].tolist()
            terms = [dictionary.term(number) for number in numbers]
            return [shown(spec, term) for term in terms] if is_coded else terms

        return read

    def _vector_reader(self, spec: FieldSpec) -> Callable[[int], Sequence[Any]]:
        column = self.leaf.segment.vectors(spec.path)

        def read(doc: int) -> Sequence[Any]:
            if column is None:
                return ()
            place = int(np.searchsorted(column.docs, doc))
            if place == len(column.docs) or column.docs[place] != doc:
                return ()
            return (tuple(_signed(column.rows)[place].tolist()),)

        return read

    def _column(self, spec: FieldSpec) -> NumberColumn | None:
        segment, path = self.leaf.segment, spec.path
        if spec.type == "unsigned_long":
            return exact_numbers(segment, path, "unsigned_long")
        return segment.ints(path) if spec.storage is Storage.INTS else segment.floats(path)

    # Of many documents at once.

    def first_numbers(self, name: str) -> tuple[Any, Bools, bool]:
        """(values, has, is_date): by document its least number, and whether it has one. None as values: the
        field has other values than longs, doubles and dates.
        """
        known = self._firsts.get(name)
        if known is None:
            known = self._firsts[name] = self._first_numbers(self.spec(name))
        return known

    def _first_numbers(self, spec: FieldSpec) -> tuple[Any, Bools, bool]:
        size, is_date = self.leaf.segment.size, spec.type in _DATES
        if spec.storage not in (Storage.INTS, Storage.FLOATS) or spec.type in ("boolean", "unsigned_long"):
            return None, np.zeros(0, np.bool_), is_date
        column = self._column(spec)
        kind = np.int64 if spec.storage is Storage.INTS else np.float64
        if column is None:
            return np.zeros(size, kind), np.zeros(size, np.bool_), is_date
        if column.starts is None:
            return column.values.astype(kind, copy=False), np.ones(size, np.bool_), is_date
        has = column.starts[1:] > column.starts[:-1]
        values = np.zeros(size, kind)
        values[has] = column.values[column.starts[:-1][has]]
        return values, has, is_date

    def counts(self, name: str) -> Longs | None:
        """By document how many values it has in a field of numbers, None where it has other ones."""
        spec = self.spec(name)
        if spec.storage not in (Storage.INTS, Storage.FLOATS):
            return None
        column = self._column(spec)
        if column is None:
            return np.zeros(self.leaf.segment.size, np.int64)
        if column.starts is None:
            return np.ones(self.leaf.segment.size, np.int64)
        return np.diff(column.starts).astype(np.int64)

    def element_type(self, name: Any) -> str:
        """Of a field of vectors."""
        return str(self._vector_field(name).options["element_type"])

    def vectors(self, name: Any, query: Any, docs: Longs) -> tuple[Doubles, Doubles]:
        """(rows, query): the vectors of these documents in a field, and one as a script has it; of a field of
        bits one for each, 0 or 1, where the query is not of bytes.
        """
        spec, given = self._vector_field(name), _numbers(query)
        rows = self._rows(spec, docs)
        if spec.options["element_type"] == "bit":
            rows = np.unpackbits(rows, axis=1)
            if 8 * len(given) == rows.shape[1]:
                given = np.unpackbits(_bytes(given)).astype(np.float64)
        _check_dims(len(given), rows.shape[1])
        return rows.astype(np.float64), given

    def packed(self, name: Any, query: Any, docs: Longs) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        """The same of bytes, or of bits, eight in a byte."""
        spec = self._vector_field(name)
        if spec.options["element_type"] == "float":
            raise unsupported("hamming distance is only supported for byte or bit vectors")
        rows, given = self._rows(spec, docs), _bytes(_numbers(query))
        packed: NDArray[np.uint8] = rows if rows.dtype == np.uint8 else rows.astype(np.int8).view(np.uint8)
        _check_dims(len(given), packed.shape[1])
        return packed, given

    def _vector_field(self, name: Any) -> FieldSpec:
        spec = self._mapping.field(str(name))
        if spec is None or spec.storage is not Storage.VECTORS:
            raise unsupported(f"[{name}] is not a field of type [dense_vector]")
        return spec

    def _rows(self, spec: FieldSpec, docs: Longs) -> NDArray[Any]:
        column = self.leaf.segment.vectors(spec.path)
        places = np.zeros(0, np.int64) if column is None else np.searchsorted(column.docs, docs)
        if column is None or (places == len(column.docs)).any() or (column.docs[places] != docs).any():
            raise unsupported("A document doesn't have a value for a vector field!")
        return column.rows[places]

    def functions(self) -> dict[str, Callable[..., Any]]:
        """Those that a script calls by their bare names, about the document that it is about."""

        def of_one(name: str) -> Callable[..., Any]:
            return lambda query, field: float(DOC_FUNCTIONS[name](self, np.array([self.at]), query, field)[0])

        named = {name: of_one(name) for name in DOC_FUNCTIONS}

        def value_or(name: Any, default: Any) -> Any:
            values = self.script_element(name).values
            return values[0] if values else default

        return {**named, "field": lambda name: _Field(self.script_element(name).values), "$": value_or}


def _number_reader(column: NumberColumn, spec: FieldSpec) -> Callable[[int], Sequence[Any]]:
    convert: Callable[[Any], Any] | None = None
    if spec.type in _DATES:
        convert = Moment
    elif spec.type == "boolean":
        convert = bool
    values, starts = column.values, column.starts
    if spec.type == "unsigned_long":
        values = unsigned(column.values)  # type: ignore[assignment]

    def read(doc: int) -> Sequence[Any]:
        first, last = (doc, doc + 1) if starts is None else (starts[doc], starts[doc + 1])
        found = values[first:last].tolist()
        return found if convert is None else [convert(value) for value in found]

    return read


def _signed(rows: NDArray[Any]) -> NDArray[Any]:
    """Of bits the bytes as they are written."""
    return rows.view(np.int8) if rows.dtype == np.uint8 else rows


def _numbers(query: Any) -> Doubles:
    """A vector as a script has it: numbers, or bytes in hexadecimal digits."""
    if isinstance(query, str):
        query = from_hex(query)
    if not isinstance(query, (list, tuple)) or not all(type(one) in (int, float) for one in query):
        raise class_cast("a query vector is a list of numbers")
    return np.array(query, np.float64)


def _bytes(given: Doubles) -> NDArray[np.uint8]:
    if ((given % 1 != 0) | (given < -128) | (given > 127)).any():
        raise unsupported("element_type [byte] vectors only support integers between [-128, 127]")
    return given.astype(np.int8).view(np.uint8)


def _check_dims(given: int, dims: int) -> None:
    if given != dims:
        raise unsupported(
            f"The query vector has a different number of dimensions [{given}] than the document vectors "
            f"[{dims}]."
        )


def _hamming(own: Documents, docs: Longs, query: Any, name: Any) -> Doubles:
    rows, wanted = own.packed(name, query, docs)
    return np.asarray(np.bitwise_count(rows ^ wanted).sum(axis=1), np.float64)


def _cosine(own: Documents, docs: Longs, query: Any, name: Any) -> Doubles:
    if own.element_type(name) == "bit":
        raise unsupported("cosineSimilarity is not supported for bit vectors")
    rows, wanted = own.vectors(name, query, docs)
    lengths = np.linalg.norm(rows, axis=1) * np.linalg.norm(wanted)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(rows @ wanted / lengths)


def _dot(own: Documents, docs: Longs, query: Any, name: Any) -> Doubles:
    rows, wanted = own.vectors(name, query, docs)
    return np.asarray(rows @ wanted)


def _l1(own: Documents, docs: Longs, query: Any, name: Any) -> Doubles:
    if own.element_type(name) == "bit":
        return _hamming(own, docs, query, name)
    rows, wanted = own.vectors(name, query, docs)
    return np.asarray(np.abs(rows - wanted).sum(axis=1))


def _l2(own: Documents, docs: Longs, query: Any, name: Any) -> Doubles:
    if own.element_type(name) == "bit":
        return np.sqrt(_hamming(own, docs, query, name))
    rows, wanted = own.vectors(name, query, docs)
    return np.asarray(np.sqrt(((rows - wanted) ** 2).sum(axis=1)))


DOC_FUNCTIONS: dict[str, Callable[[Documents, Longs, Any, Any], Doubles]] = {
    "cosineSimilarity": _cosine,
    "dotProduct": _dot,
    "hamming": _hamming,
    "l1norm": _l1,
    "l2norm": _l2,
}
"""Functions of vectors for scripts that score: (documents, which of them, query vector, field)."""
