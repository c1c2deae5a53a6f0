"""The functions of function_score: weights, random scores, field values, decay."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from graphdb.search.errors import SearchError, illegal_argument, illegal_request
from graphdb.search.fields import FieldSpec, Storage
from graphdb.search.leaf_reader import Bools, Doubles, Ints, Leaf, unsigned_numbers
from graphdb.search.mapping.readers import point_of
from graphdb.search.mapping.units import DURATIONS_MS
from graphdb.search.mapping.value_formats import range_of
from graphdb.search.query.clause import Clause, QueryContext, malformed
from graphdb.search.query.geo import distances_m, meters
from graphdb.search.query.kernels import any_within
from graphdb.search.query.term_queries import column_of
from graphdb.search.scripts.scoring import random_numbers

__all__ = [
    "Decay",
    "FieldValueFactor",
    "RandomScore",
    "ScoreFunction",
    "Weight",
    "duration_ms",
    "first_values",
    "parse_decay",
    "parse_field_value_factor",
    "parse_random_score",
]

# The functions of `function_score` but for the decaying ones: a weight, a field's number, a random number.


class ScoreFunction(Protocol):
    """Frozen, and printed as Elasticsearch explains it."""

    def values(self, leaf: Leaf, wanted: Bools, scores: Doubles) -> Doubles:
        """One for each document of a leaf; what stands where a document is not wanted means nothing.
        scores are those of the query.
        """


@dataclass(frozen=True, slots=True)
class Weight:
    """1 everywhere: only the weight beside it tells."""

    def values(self, leaf: Leaf, wanted: Bools, scores: Doubles) -> Doubles:
        return np.ones(leaf.segment.size)

    def __str__(self) -> str:
        return "constant score 1.0 - no function provided"


def first_values(leaf: Leaf, path: str, is_unsigned: bool = False) -> Doubles:
    """The least number of each document; nan where it has none."""
    column = unsigned_numbers(leaf.segment, path) if is_unsigned else column_of(leaf, path)
    values = np.full(leaf.segment.size, np.nan)
    if column is None:
        return values
    if column.starts is None:
        return column.values.astype(np.float64)
    having = column.starts[1:] > column.starts[:-1]
    values[having] = column.values[column.starts[:-1][having]]
    return values


MODIFIERS: dict[str, Callable[[Doubles], Doubles]] = {
    "none": lambda x: x,
    "log": np.log10,
    "log1p": lambda x: np.log10(x + 1),
    "log2p": lambda x: np.log10(x + 2),
    "ln": np.log,
    "ln1p": np.log1p,
    "ln2p": lambda x: np.log(x + 2),
    "square": np.square,
    "sqrt": np.sqrt,
    "reciprocal": np.reciprocal,
}


@dataclass(frozen=True, slots=True)
class FieldValueFactor:
    """modifier(factor * the field's number); fails where a wanted document has none, and missing is None."""

    path: str
    factor: float
    modifier: str
    missing: float | None
    is_unsigned: bool = False  # an unsigned_long

    def values(self, leaf: Leaf, wanted: Bools, scores: Doubles) -> Doubles:
        numbers = first_values(leaf, self.path, self.is_unsigned)
        lacking = np.isnan(numbers)
        if self.missing is not None:
            numbers = np.where(lacking, self.missing, numbers)
        elif (lacking & wanted & leaf.roots).any():
            raise SearchError("exception", f"Missing value for field [{self.path}]")
        with np.errstate(all="ignore"):
            result: Doubles = MODIFIERS[self.modifier](numbers * self.factor)
        self._check(result, numbers, wanted & leaf.roots)
        return result

    def _check(self, result: Doubles, numbers: Doubles, wanted: Bools) -> None:
        bad = np.flatnonzero(wanted & ~(result >= 0))
        if len(bad):
            what = "negative scores" if result[bad[0]] < 0 else "NaN"
            raise illegal_argument(
                f"field value function must not produce {what}, but got: [{result[bad[0]]}] for field value: "
                f"[{numbers[bad[0]]}]"
            )

    def __str__(self) -> str:
        modifier = "" if self.modifier == "none" else self.modifier
        missing = "" if self.missing is None else f"?:{self.missing}"
        value = f"doc['{self.path}'].value{missing}"
        return f"field value function: {modifier or 'none'}({value} * factor={self.factor})"


@dataclass(frozen=True, slots=True)
class RandomScore:
    """A number in [0, 1) from a seed and the sequence number: the same until the document is changed."""

    seed: int

    def values(self, leaf: Leaf, wanted: Bools, scores: Doubles) -> Doubles:
        return random_numbers(self.seed, leaf.segment.seq_nos)

    def __str__(self) -> str:
        return f"random score function (seed: {self.seed}, field: _seq_no)"


def parse_field_value_factor(clause: Clause, context: QueryContext) -> ScoreFunction:
    path = clause.string("field")
    factor = clause.number("factor", 1.0)
    modifier = clause.word("modifier", "none").lower()
    missing = clause.number("missing", 0.0) if "missing" in clause else None
    clause.done()
    if path is None:
        raise malformed("[field_value_factor] required field 'field' missing")
    if modifier not in MODIFIERS:
        raise illegal_request(f"No enum constant for modifier [{modifier}]")
    spec = context.mapping.field(path)
    if spec is None and missing is None:
        raise SearchError(
            "exception", f"Unable to find a field mapper for field [{path}]. No 'missing' value defined."
        )
    if spec is not None and spec.storage not in (Storage.INTS, Storage.FLOATS):
        raise illegal_argument(f"Field [{path}] of type [{spec.type}] is not a numeric field")
    if spec is None:
        return FieldValueFactor(path, factor, modifier, missing)
    return FieldValueFactor(spec.path, factor, modifier, missing, spec.type == "unsigned_long")


def parse_random_score(clause: Clause, context: QueryContext) -> ScoreFunction:
    """Without a seed the time that is handed in is one, as it is another for each request."""
    seed = clause.take("seed")
    clause.ignore("field")
    clause.done()
    if isinstance(seed, str):
        seed = sum(ord(character) * 31**place for place, character in enumerate(seed[:64]))
    if seed is not None and not isinstance(seed, int | float):
        raise malformed("random_score seed must be an int/long or string")
    return RandomScore(int(context.now_ms if seed is None else seed))


# The decaying functions of `function_score`: the farther from an origin, the less.


@dataclass(frozen=True, slots=True)
class Decay:
    """1 up to offset from the origin, decay at scale beyond that; 1 where a document has no value.

    origin is a number, or (latitude, longitude). mode: of the distances of several values, min, max, avg
    or sum.
    """

    kind: str  # gauss, exp, linear
    path: str
    origin: float | tuple[float, float]
    scale: float
    offset: float
    decay: float
    is_unsigned: bool = False  # an unsigned_long
    mode: str = "min"

    def values(self, leaf: Leaf, wanted: Bools, scores: Doubles) -> Doubles:
        away = self.distances(leaf)
        with np.errstate(over="ignore"):
            scales = away / self.scale
            if self.kind == "gauss":
                result = np.exp(scales**2 * math.log(self.decay))
            elif self.kind == "exp":
                result = np.exp(scales * math.log(self.decay))
            else:
                result = np.maximum(0.0, 1 - scales * (1 - self.decay))
        return np.where(np.isfinite(away), result, 1.0)

    def distances(self, leaf: Leaf) -> Doubles:
        """From the offset on; infinity where a document has no value."""
        if isinstance(self.origin, tuple):
            points = leaf.segment.points(self.path)
            if points is None:
                return np.full(leaf.segment.size, np.inf)
            return self._of_each(
                distances_m(points.latitudes, points.longitudes, *self.origin), points.starts
            )
        column = column_of(leaf, self.path)
        if self.is_unsigned:
            column = unsigned_numbers(leaf.segment, self.path)
        if column is None:
            return np.full(leaf.segment.size, np.inf)
        away = np.abs(column.values - self.origin).astype(np.float64)
        return self._of_each(away, column.starts)

    def _of_each(self, distances: Doubles, starts: Ints | None) -> Doubles:
        """Of each document. starts: of its values, None where each has one."""
        away: Doubles = np.maximum(0.0, distances - self.offset)
        if starts is None:
            return away
        if self.mode == "min":
            return any_within(away, starts)
        if self.mode == "max":
            return -any_within(-away, starts) * np.where(np.diff(starts), 1.0, -1.0)
        sums, counts = np.concatenate([[0.0], np.cumsum(away)]), np.diff(starts)
        totals = sums[starts[1:]] - sums[starts[:-1]]
        totals = totals if self.mode == "sum" else totals / np.maximum(counts, 1)
        return np.where(counts > 0, totals, np.inf)

    def __str__(self) -> str:
        return f"Function for field {self.path}: {self.kind}(origin={self.origin}, scale={self.scale})"


def duration_ms(value: Any) -> float:
    """A time such as 10d, 12h, 30m, 5s, 100ms or 100micros."""
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
    mode = str(body.get("multi_value_mode", "min")).lower()
    if mode not in ("min", "max", "avg", "sum"):
        raise illegal_request(f"Illegal sort mode: {mode[:100]}")
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
    return Decay(kind, spec.path, center, width, margin, decay, spec.type == "unsigned_long", mode)


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
        return float(center), duration_ms(scale), duration_ms(offset) if offset else 0.0
    if spec.storage not in (Storage.INTS, Storage.FLOATS):
        raise malformed(
            f"field [{spec.path}] is of type [{spec.type}], but only numeric types are supported."
        )
    try:
        return float(origin), float(scale), float(offset)
    except (TypeError, ValueError):
        raise SearchError("parsing_exception", f"[{kind}] requires origin and scale to be numbers") from None
