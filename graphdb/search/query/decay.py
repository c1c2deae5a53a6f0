"""The decaying functions of `function_score`: the farther from an origin, the less."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from graphdb.search.errors import SearchError, illegal_request
from graphdb.search.fields import FieldSpec, Storage
from graphdb.search.mapping.points import point_of
from graphdb.search.mapping.values import range_of
from graphdb.search.query.clause import Clause, malformed
from graphdb.search.query.context import QueryContext
from graphdb.search.query.geo import distances_m, meters
from graphdb.search.query.kernels import any_within
from graphdb.search.query.number_queries import column_of
from graphdb.search.query.score_functions import ScoreFunction
from graphdb.search.segment import Bools, Doubles, Leaf, unsigned_numbers

__all__ = ["Decay", "parse_decay"]

DURATIONS_MS = {"d": 86_400_000, "h": 3_600_000, "ms": 1, "m": 60_000, "s": 1000}


@dataclass(frozen=True, slots=True)
class Decay:
    """1 up to offset from the origin, decay at scale beyond that; 1 where a document has no value.

    origin is a number, or (latitude, longitude); of several values the nearest counts.
    """

    kind: str  # gauss, exp, linear
    path: str
    origin: float | tuple[float, float]
    scale: float
    offset: float
    decay: float
    is_unsigned: bool = False  # an unsigned_long

    def values(self, leaf: Leaf, wanted: Bools) -> Doubles:
        away = np.maximum(0.0, self._distances(leaf) - self.offset)
        with np.errstate(over="ignore"):
            scales = away / self.scale
            if self.kind == "gauss":
                result = np.exp(scales**2 * math.log(self.decay))
            elif self.kind == "exp":
                result = np.exp(scales * math.log(self.decay))
            else:
                result = np.maximum(0.0, 1 - scales * (1 - self.decay))
        return np.where(np.isfinite(away), result, 1.0)

    def _distances(self, leaf: Leaf) -> Doubles:
        """Infinity where a document has no value."""
        if isinstance(self.origin, tuple):
            points = leaf.segment.points(self.path)
            if points is None:
                return np.full(leaf.segment.size, np.inf)
            return any_within(distances_m(points.latitudes, points.longitudes, *self.origin), points.starts)
        column = column_of(leaf, self.path)
        if self.is_unsigned:
            column = unsigned_numbers(leaf.segment, self.path)
        if column is None:
            return np.full(leaf.segment.size, np.inf)
        away = np.abs(column.values - self.origin).astype(np.float64)
        return away if column.starts is None else any_within(away, column.starts)

    def __str__(self) -> str:
        return f"Function for field {self.path}: {self.kind}(origin={self.origin}, scale={self.scale})"


def _duration_ms(value: Any) -> float:
    """A time such as 10d, 12h, 30m, 5s or 100ms."""
    text = str(value)
    for unit, length in DURATIONS_MS.items():
        if text.endswith(unit):
            try:
                return float(text.removesuffix(unit)) * length
            except ValueError:
                break
    raise illegal_request(f"failed to parse setting [DecayFunctionParser.scale] with value [{value}]")


def parse_decay(kind: str, body: Mapping[str, Any], context: QueryContext) -> ScoreFunction:
    """`{field: {origin, scale, offset, decay}}`."""
    members = {key: value for key, value in body.items() if key != "multi_value_mode"}
    if len(members) != 1 or not isinstance(next(iter(members.values())), Mapping):
        raise malformed(f"[{kind}] expects one field name, followed by an object")
    path, inner = next(iter(members.items()))
    clause = Clause(kind, inner)
    origin, scale, offset = clause.take("origin"), clause.take("scale"), clause.take("offset", 0)
    decay = clause.number("decay", 0.5)
    clause.done()
    spec = context.mapping.field(path)
    if spec is None:
        raise malformed(f"unknown field [{path}]")
    if scale is None:
        raise illegal_request(f"[{kind}] requires a scale")
    if not 0 < decay < 1:
        raise illegal_request(f"decay must be set for function {kind} and be in range (0..1)")
    center, width, margin = _measures(spec, kind, origin, scale, offset, context)
    if not width > 0:
        raise illegal_request("scale must be > 0.0.")
    if margin < 0:
        raise illegal_request("offset must be > 0.0")
    return Decay(kind, spec.path, center, width, margin, decay, spec.type == "unsigned_long")


def _measures(
    spec: FieldSpec, kind: str, origin: Any, scale: Any, offset: Any, context: QueryContext
) -> tuple[float | tuple[float, float], float, float]:
    """(origin, scale, offset) in the field's own measure: metres, milliseconds, or as they are."""
    if spec.storage is Storage.POINTS:
        if origin is None:
            raise malformed(f"[{kind}] requires an origin")
        return point_of(origin, spec.path), meters(scale), meters(offset)
    if spec.type.startswith("date"):
        now = context.now_ms
        milliseconds = replace(spec, type="date")
        center = now if origin is None else range_of(milliseconds, origin, False, None, None, now)
        return float(center), _duration_ms(scale), _duration_ms(offset) if offset else 0.0
    if spec.storage not in (Storage.INTS, Storage.FLOATS):
        raise malformed(
            f"field [{spec.path}] is of type [{spec.type}], but only numeric types are supported."
        )
    try:
        return float(origin), float(scale), float(offset)
    except (TypeError, ValueError):
        raise SearchError("parsing_exception", f"[{kind}] requires origin and scale to be numbers") from None
