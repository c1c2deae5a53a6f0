"""Well-known text, with the IRI of a reference system before it (GeoSPARQL 1.1, section 8.5.1)."""

import re

import numpy as np
import shapely
from shapely.geometry.base import BaseGeometry

from graphdb.errors import BadGeometry
from graphdb.geo.limits import check_brackets, check_length, check_vertices
from graphdb.geo.wkt_curves import has_curves, read_curves

__all__ = ["read_wkt", "write_wkt"]

_DIGITS = 30  # as many as may be needed after the point; GEOS writes no more than it takes
_SYSTEM = re.compile(r"<([^<>\s]*)>\s*")


def read_wkt(text: str) -> tuple[str | None, BaseGeometry]:
    """The IRI of the reference system, if there is one, and the shape, its coordinates as they are written.

    A text without a shape stands for an empty one. Raises BadGeometry, LimitExceeded.
    """
    check_length(text)
    text = text.strip()
    match = _SYSTEM.match(text)
    shape_text = text[match.end() :] if match else text
    return match[1] if match else None, _read_shape(shape_text)


def write_wkt(shape: BaseGeometry, system: str | None) -> str:
    """The text, with as many digits as it takes to read the same coordinates from it."""
    text: str = shapely.to_wkt(shape, rounding_precision=_DIGITS)
    return f"<{system}> {text}" if system is not None else text


def _read_shape(text: str) -> BaseGeometry:
    if not text:
        return shapely.GeometryCollection()
    check_brackets(text, "(", ")")
    check_vertices(text.count(",") + 1)
    try:
        if has_curves(text):
            return read_curves(text)
        with np.errstate(all="ignore"):  # of numbers too large: whoever reads the geometry refuses infinity
            return shapely.from_wkt(text)
    except (shapely.GEOSException, NotImplementedError, UnicodeError) as error:
        raise BadGeometry(f"malformed WKT: {_reason(error)}: {_shortened(text)}") from None


def _reason(error: Exception) -> str:
    """What GEOS says, without the name of its exception."""
    return str(error).rpartition("Exception: ")[2].strip()


def _shortened(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:77]}..."
