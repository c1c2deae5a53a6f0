"""Well-known text, with the IRI of a reference system before it (GeoSPARQL 1.1, section 8.5.1).

GEOS reads and writes it, except for curved and patched geometries. Those are read here and get straight
edges: circular strings, compound curves and what consists of them (ISO 13249-3, section 5.1); triangles, TINs
and polyhedral surfaces (OGC 06-103r4, section 7), as polygons. Measures of these are left out.
"""

import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TypeVar

import numpy as np
import shapely
from shapely.geometry.base import BaseGeometry

from graphdb.errors import BadGeometry
from graphdb.geometry.arcs import arc_string
from graphdb.geometry.shapes import (
    NO_POSITIONS,
    Positions,
    check_brackets,
    check_length,
    check_vertices,
    collection,
    line_string,
    polygon,
)

__all__ = ["read_wkt", "write_wkt"]

_DIGITS = 30  # the most that may be needed after the point; GEOS writes only as many as necessary
_SYSTEM = re.compile(r"<([^<>\s]*)>\s*")


def read_wkt(text: str) -> tuple[str | None, BaseGeometry]:
    """The IRI of the reference system, or None; and the shape, with its coordinates as written.

    A text without a shape is an empty shape. Raises BadGeometry, LimitExceeded.
    """
    check_length(text)
    text = text.strip()
    match = _SYSTEM.match(text)
    shape_text = text[match.end() :] if match else text
    return match[1] if match else None, _read_shape(shape_text)


def write_wkt(shape: BaseGeometry, system: str | None) -> str:
    """The text, with as many digits as necessary to read the same coordinates back."""
    text: str = shapely.to_wkt(shape, rounding_precision=_DIGITS)
    return f"<{system}> {text}" if system is not None else text


def _read_shape(text: str) -> BaseGeometry:
    if not text:
        return shapely.GeometryCollection()
    check_brackets(text, "(", ")")
    check_vertices(text.count(",") + 1)
    try:
        if _has_curves(text):
            return _read_curves(text)
        with np.errstate(all="ignore"):  # numbers that are too large become infinite, and are refused later
            return shapely.from_wkt(text)
    except (shapely.GEOSException, NotImplementedError, UnicodeError) as error:
        raise BadGeometry(f"malformed WKT: {_reason(error)}: {_shortened(text)}") from None


def _reason(error: Exception) -> str:
    """The message of GEOS without the name of its exception."""
    return str(error).rpartition("Exception: ")[2].strip()


def _shortened(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:77]}..."


T = TypeVar("T")

_CURVED = re.compile(r"CURVE|CIRCULAR|SURFACE|TRIANGLE|\bTIN\b", re.IGNORECASE)
_TOKEN = re.compile(r"\s*(?:([(),])|([A-Za-z]+)|([^\s(),]+))")
_TAG = re.compile(r"([A-Z]+?)(ZM|Z|M)?")
_LINEAR = re.compile(r"(?:MULTI)?(?:POINT|LINESTRING|POLYGON)")


def _has_curves(text: str) -> bool:
    """Whether a text contains a word for a geometry that GEOS does not read."""
    return _CURVED.search(text) is not None


def _read_curves(text: str) -> BaseGeometry:
    """The shape; `check_brackets` has passed its text. Raises BadGeometry, GEOSException."""
    reader = _Reader(text)
    shape = reader.tagged()
    if reader.peek():
        raise BadGeometry(f"malformed WKT: {reader.peek()[:50]!r} after the end of the geometry")
    return shape


class _Reader:
    """A recursive descent over the tokens of one text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(_TOKEN.finditer(text))
        self._at = 0

    def peek(self) -> str:
        """The next token, upper case; "" at the end."""
        return self._tokens[self._at].group().strip().upper() if self._at < len(self._tokens) else ""

    def tagged(self) -> BaseGeometry:
        """A geometry that begins with its kind."""
        begin = self._at
        kind, has_z = self._tag()
        if _LINEAR.fullmatch(kind):
            return self._linear(begin)
        reader = _READERS.get(kind)
        if reader is None:
            raise BadGeometry(f"malformed WKT: {kind[:50]!r} is no kind of geometry")
        return reader(self, has_z)

    def curve(self, has_z: bool | None) -> Positions:
        """A curve within another geometry. Without a kind it is a line string."""
        if self.peek() in ("(", "EMPTY"):
            return self.vertices(has_z)
        kind, has_z = self._tag()
        if kind not in _CURVES:
            raise BadGeometry(f"malformed WKT: {kind[:50]!r} is no kind of curve")
        return _CURVES[kind](self, has_z)

    def surface(self, has_z: bool | None) -> BaseGeometry:
        """A surface within another geometry. Without a kind it is a polygon."""
        if self.peek() in ("(", "EMPTY"):
            return polygon(self.members(lambda: self.vertices(has_z)))
        return self.tagged()

    def members(self, read: Callable[[], T]) -> list[T]:
        """The members between brackets, separated by commas; none for EMPTY."""
        if self.peek() == "EMPTY":
            self._at += 1
            return []
        self._expect("(")
        found = [read()]
        while self.peek() == ",":
            self._at += 1
            found.append(read())
        self._expect(")")
        return found

    def vertices(self, has_z: bool | None) -> Positions:
        """Positions between brackets: (n, 2), or (n, 3) with heights. has_z is None if it is not given."""
        rows = self.members(self._numbers)
        if not rows:
            return NO_POSITIONS
        if len({len(row) for row in rows}) > 1 or not 2 <= len(rows[0]) <= 4:
            raise BadGeometry("malformed WKT: positions are of two to four numbers, all of as many")
        keeps_z = len(rows[0]) > 2 if has_z is None else has_z
        return np.array(rows, dtype=np.float64)[:, : 3 if keeps_z else 2]

    def _numbers(self) -> list[float]:
        begin = self._at
        while self.peek() not in ("", ",", "(", ")"):
            self._at += 1
        try:
            return [float(token.group()) for token in self._tokens[begin : self._at]]
        except ValueError as error:
            raise BadGeometry(f"malformed WKT: {error}") from None

    def _tag(self) -> tuple[str, bool | None]:
        """The kind, and whether positions have heights; None if that is not given."""
        word = self._take()
        match = _TAG.fullmatch(word)
        if match is None:
            raise BadGeometry(f"malformed WKT: {word[:50]!r} where a kind of geometry is expected")
        dimensions = match[2]
        if dimensions is None and self.peek() in ("Z", "M", "ZM"):
            dimensions = self._take()
        return match[1], None if dimensions is None else "Z" in dimensions

    def _linear(self, begin: int) -> BaseGeometry:
        """A geometry that GEOS can read, up to its closing bracket."""
        depth = 0
        while self._take() != "EMPTY" or depth:
            depth += {"(": 1, ")": -1}.get(self._tokens[self._at - 1].group().strip(), 0)
            if not depth:
                break
        text = self._text[self._tokens[begin].start() : self._tokens[self._at - 1].end()]
        return shapely.from_wkt(text.strip())

    def _expect(self, token: str) -> None:
        found = self._take()
        if found != token:
            raise BadGeometry(f"malformed WKT: {found[:50]!r} where {token!r} is expected")

    def _take(self) -> str:
        token = self.peek()
        if not token:
            raise BadGeometry("malformed WKT: it ends too early")
        self._at += 1
        return token


def _circular(reader: _Reader, has_z: bool | None) -> Positions:
    vertices = reader.vertices(has_z)
    if len(vertices) and (len(vertices) < 3 or not len(vertices) % 2):
        raise BadGeometry(f"{len(vertices)} positions are no arcs: they are 3, 5, 7 and so on")
    return arc_string(vertices) if len(vertices) else vertices


def _compound(reader: _Reader, has_z: bool | None) -> Positions:
    return _joined([run for run in reader.members(lambda: reader.curve(has_z)) if len(run)])


def _joined(runs: Sequence[Positions]) -> Positions:
    for before, after in pairwise(runs):
        if not np.array_equal(before[-1], after[0]):
            raise BadGeometry("the parts of a curve do not follow each other")
    return np.concatenate([*(run[:-1] for run in runs[:-1]), *runs[-1:]]) if runs else NO_POSITIONS


def _curve_polygon(reader: _Reader, has_z: bool | None) -> BaseGeometry:
    return polygon(reader.members(lambda: reader.curve(has_z)))


def _curves(reader: _Reader, has_z: bool | None) -> BaseGeometry:
    lines = reader.members(lambda: line_string(reader.curve(has_z)))
    return collection("LineString", lines)


def _surfaces(reader: _Reader, has_z: bool | None) -> BaseGeometry:
    return collection("Polygon", reader.members(lambda: reader.surface(has_z)))


_CURVES: dict[str, Callable[[_Reader, bool | None], Positions]] = {
    "LINESTRING": _Reader.vertices,
    "CIRCULARSTRING": _circular,
    "COMPOUNDCURVE": _compound,
}
_READERS: dict[str, Callable[[_Reader, bool | None], BaseGeometry]] = {
    "CIRCULARSTRING": lambda reader, has_z: line_string(_circular(reader, has_z)),
    "COMPOUNDCURVE": lambda reader, has_z: line_string(_compound(reader, has_z)),
    **dict.fromkeys(("CURVEPOLYGON", "TRIANGLE"), _curve_polygon),
    "MULTICURVE": _curves,
    **dict.fromkeys(("MULTISURFACE", "POLYHEDRALSURFACE", "TIN"), _surfaces),
    "GEOMETRYCOLLECTION": lambda reader, _: collection("Geometry", reader.members(reader.tagged)),
}
