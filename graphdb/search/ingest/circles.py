"""The processor `circle`: a circle as the regular polygon that a field of shapes takes.

Source: Elasticsearch's documentation of the processor. Its vertices stand on spokes that are evenly spaced in
degrees, each as far from the centre as the radius is on the sphere; here they are exact, there within 0.1 m.
"""

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from graphdb.search.errors import SearchError, illegal_argument
from graphdb.search.ingest.document import IngestDocument, plain_text
from graphdb.search.ingest.options import ProcessorOptions
from graphdb.search.query.geo import EARTH_RADIUS_M, distances_m, meters

__all__ = ["circle_processor"]

_Step: TypeAlias = Callable[[IngestDocument], None]
_Points: TypeAlias = list[list[float]]

_SIDES_MIN, _SIDES_MAX = 4, 1_000
_HALVINGS = 60  # of a spoke: beyond what a double tells apart
_WKT = re.compile(r"\s*CIRCLE\s*\(\s*(\S+)\s+(\S+)\s+([^\s)]+)(?:\s+[^\s)]+)?\s*\)\s*", re.IGNORECASE)


def circle_processor(options: ProcessorOptions, reading: Any) -> _Step:
    """See `graphdb.search.ingest.processors`. Errors: parse_exception."""
    field, target = options.text("field"), options.text("target_field", None)
    ignores, error = options.flag("ignore_missing", False), _real(options)
    kind = options.text("shape_type")
    if kind not in ("shape", "geo_shape"):
        raise options.error(
            "shape_type", f"illegal [shape_type] value [{kind[:50]}]. valid values are [SHAPE, GEO_SHAPE]"
        )

    def step(document: IngestDocument) -> None:
        value = document.wanted(field, ignores)
        if value is None:
            return
        x, y, radius = _circle(value, kind)
        points = _polygon(x, y, radius, _sides(radius, error), kind)
        document.make(2 * len(points))
        is_text = isinstance(value, str)
        document.set(
            target or field, _wkt(points) if is_text else {"type": "Polygon", "coordinates": [points]}
        )

    return step


def _real(options: ProcessorOptions) -> float:
    given = options.take("error_distance")
    try:
        error = math.nan if isinstance(given, bool) else float(given)
    except (TypeError, ValueError):
        error = math.nan
    if not math.isfinite(error):
        raise options.error("error_distance", "property cannot be converted to a double")
    if error <= 0:
        raise options.error("error_distance", "must be greater than 0")
    return error


def _circle(value: Any, kind: str) -> tuple[float, float, float]:
    """Centre and radius: degrees and metres, or what a plane has. Errors: illegal_argument_exception."""
    try:
        if isinstance(value, str):
            found = _WKT.fullmatch(value)
            if found is None:
                raise illegal_argument("invalid circle definition: this is not the WKT of a circle")
            x, y, radius = float(found[1]), float(found[2]), float(found[3])
        elif isinstance(value, Mapping):
            if str(value.get("type")).lower() != "circle":
                raise illegal_argument(f"found [{str(value.get('type'))[:50]}] instead of circle")
            x, y = (float(one) for one in value["coordinates"][:2])
            given = value["radius"]
            radius = meters(given) if kind == "geo_shape" else float(given)
        else:
            raise illegal_argument(f"invalid circle definition: [{plain_text(value)[:100]}]")
    except (KeyError, TypeError, ValueError):
        raise illegal_argument("invalid circle definition: it needs [coordinates] and [radius]") from None
    except SearchError as error:
        raise illegal_argument(error.reason) from None
    if not (math.isfinite(x) and math.isfinite(y) and math.isfinite(radius) and radius > 0):
        raise illegal_argument(
            "invalid circle definition: its centre and radius must be finite, its radius positive"
        )
    if kind == "geo_shape" and not (abs(y) <= 90 and abs(x) <= 180):
        raise illegal_argument(f"invalid circle definition: there is no longitude {x:g} or latitude {y:g}")
    return x, y, radius


def _sides(radius: float, error: float) -> int:
    """Of the polygon whose sides are nowhere further than the error from the circle."""
    if error >= radius:
        return _SIDES_MIN
    step = math.acos(1 - error / radius)
    return max(_SIDES_MIN, min(_SIDES_MAX, math.ceil(2 * math.pi / step))) if step else _SIDES_MAX


def _polygon(x: float, y: float, radius: float, sides: int, kind: str) -> _Points:
    """Counterclockwise from the east, closed. Errors: illegal_argument_exception."""
    angles = np.radians(np.arange(sides) * (360 / sides))
    across, up = np.cos(angles), np.sin(angles)
    if kind == "shape":
        lengths = np.full(sides, radius)
    else:
        if radius >= EARTH_RADIUS_M * math.radians(90 - abs(y)):
            raise illegal_argument(
                "a circle that has a pole in it is not supported: no polygon in degrees is like it"
            )
        lengths = _spokes(x, y, radius, across, up)
    points: _Points = np.stack([x + across * lengths, y + up * lengths], axis=1).tolist()
    return [*points, points[0]]


def _spokes(x: float, y: float, radius: float, across: Any, up: Any) -> Any:
    """How many degrees long each spoke is, by bisection: at its far end it is on the parallel of a pole, or
    half around the Earth.
    """
    with np.errstate(divide="ignore"):
        far = np.minimum((90 - np.sign(up) * y) / np.abs(up), 180 / np.abs(across))
    near = np.zeros_like(far)
    for _ in range(_HALVINGS):
        middle = (near + far) / 2
        is_beyond = distances_m(y + up * middle, x + across * middle, y, x) >= radius
        near, far = np.where(is_beyond, near, middle), np.where(is_beyond, middle, far)
    return near


def _wkt(points: _Points) -> str:
    return f"POLYGON (({', '.join(f'{x!r} {y!r}' for x, y in points)}))"
