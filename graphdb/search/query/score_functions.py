"""The functions of `function_score` but for the decaying ones: a weight, a field's number, chance."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from graphdb.search.errors import SearchError, illegal_argument, illegal_request
from graphdb.search.fields import Storage
from graphdb.search.query.clause import Clause, malformed
from graphdb.search.query.context import QueryContext
from graphdb.search.query.number_queries import column_of
from graphdb.search.segment import Bools, Doubles, Leaf, unsigned_numbers

__all__ = [
    "FieldValueFactor",
    "RandomScore",
    "ScoreFunction",
    "Weight",
    "first_values",
    "parse_field_value_factor",
    "parse_random_score",
]


class ScoreFunction(Protocol):
    """Frozen, and printed as Elasticsearch explains it."""

    def values(self, leaf: Leaf, wanted: Bools) -> Doubles:
        """One for each document of a leaf; what stands where a document is not wanted means nothing."""


@dataclass(frozen=True, slots=True)
class Weight:
    """1 everywhere: only the weight beside it tells."""

    def values(self, leaf: Leaf, wanted: Bools) -> Doubles:
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

    def values(self, leaf: Leaf, wanted: Bools) -> Doubles:
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

    def values(self, leaf: Leaf, wanted: Bools) -> Doubles:
        seed = np.uint64((self.seed * 0x9E3779B97F4A7C15) % 2**64)
        mixed = leaf.segment.seq_nos.astype(np.uint64) + seed
        for factor, shift in ((0xBF58476D1CE4E5B9, 30), (0x94D049BB133111EB, 27)):
            mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
        mixed ^= mixed >> np.uint64(31)
        return (mixed & np.uint64(0xFFFFFF)).astype(np.float64) / 2**24

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
