"""Expressions of one variable, computed of all its terms at once: `computed`, `condition`.

A vector has a value for each term, and none is an error: what could be one, and what is not exact in 64 bits,
is left to SQL.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache, reduce
from typing import Any, Final, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from graphdb.columns.exact_numbers import NUMBER_MAX, ExactNumbers, exact_numbers
from graphdb.columns.expressions import KINDS_OF_TERMS, literal_of
from graphdb.columns.quad_arrays import Ids, NotCounted, distinct_tags
from graphdb.columns.term_ids import OFFSET, PAYLOAD_BITS, PAYLOAD_MASK, XSD, Tag, inline_id
from graphdb.columns.text_column import TextColumn
from graphdb.columns.text_order import Bound, TextOrder, UnorderedError
from graphdb.columns.values import DATES, STRINGS, Rep, Tags
from graphdb.sparql.algebra import Expression
from graphdb.sparql.patterns import (
    And,
    Arithmetic,
    BuiltInCall,
    Comparison,
    FunctionCall,
    In,
    Not,
    Or,
    Signed,
)
from graphdb.sparql.terms import Iri, RdfLiteral, Variable

__all__ = ["Column", "Reader", "Unread", "Vector", "computed", "condition", "number_of", "variables_of"]

Array: TypeAlias = npt.NDArray[Any]
_SCALE_MAX: Final = 18
_PLAIN: Final = frozenset((Tag.IRI, Tag.BLANK_NODE, Tag.STRING, Tag.LANGUAGE_STRING))
_COMPARE: Final = {
    "=": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}
_MIRRORED: Final = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_DATE_TIMES: Final = frozenset((Tag.DATE_TIME, Tag.DATE_TIME_UTC))
_FIXED: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 _")


class Reader(Protocol):
    """What is read of the terms of a column. Each raises NotCounted where there is too much, or no such."""

    def texts(self) -> TextColumn: ...
    def order(self) -> TextOrder: ...
    def numbers(self) -> ExactNumbers: ...


class Column:
    """The terms of a variable, by their numbers in ascending order, and what is read of them if need be."""

    def __init__(self, name: str, ids: Ids, read: Reader) -> None:
        self.name, self.ids, self.read = name, ids, read
        self.tags = distinct_tags(ids)

    def texts(self, tags: Tags) -> TextColumn:
        """Raises NotCounted where not all terms are of these tags."""
        if not self.tags or not self.tags <= tags:
            raise NotCounted
        return self.read.texts()

    def within(self, bound: Bound) -> Array:
        """Which texts are in a bound. Raises NotCounted where not all terms are strings, or there is no
        order, or it does not tell.
        """
        return self._in_order(lambda order: order.within(bound, self.ids))

    def ranks(self) -> Array:
        """What orders the terms by their texts. Raises NotCounted as within() does."""
        return self._in_order(lambda order: order.ranks(self.ids))

    def in_language(self, name: str) -> Array:
        """Which texts have a language, "" for none. Raises NotCounted as within() does."""
        return self._in_order(lambda order: order.in_language(name.__eq__, self.ids))

    def _in_order(self, find: Callable[[TextOrder], Array]) -> Array:
        if not self.tags or not self.tags <= STRINGS:
            raise NotCounted
        try:
            return find(self.read.order())
        except UnorderedError:
            raise NotCounted from None


class Unread:
    """A `Reader` of terms of which nothing is read."""

    def texts(self) -> TextColumn:
        """See `Reader`."""
        raise NotCounted

    def order(self) -> TextOrder:
        """See `Reader`."""
        raise NotCounted

    def numbers(self) -> ExactNumbers:
        """See `Reader`."""
        raise NotCounted


@dataclass(frozen=True, slots=True)
class Vector:
    """A value for each term, or one for all. rep says what they are, as in SQL: numbers of terms, of the
    tags; whole numbers; decimals times 10^scale; truth values.
    """

    rep: Rep
    values: Array
    scale: int = 0
    tags: Tags = frozenset()


def variables_of(expression: Expression) -> frozenset[str]:
    """The names in an expression of the kinds that are computed here. Raises NotCounted of others."""
    match expression:
        case Variable(name=name):
            return frozenset((name,))
        case Iri() | RdfLiteral():
            return frozenset()
        case And(operands=parts) | Or(operands=parts):
            found = parts
        case Not(operand=part) | Signed(operand=part):
            found = (part,)
        case Comparison():
            found = (expression.left, expression.right)
        case Arithmetic():
            found = (expression.first, *(part for _, part in expression.rest))
        case BuiltInCall(arguments=parts) | FunctionCall(arguments=parts):
            found = parts
        case In():
            found = (expression.expression, *expression.options)
        case _:
            raise NotCounted
    return frozenset[str]().union(*map(variables_of, found))


def condition(expression: Expression, column: Column) -> npt.NDArray[np.bool_]:
    """For which terms it is true, (n,) bool. Raises NotCounted."""
    vector = computed(expression, column)
    if vector.rep is not Rep.BOOLEAN:
        raise NotCounted
    return np.broadcast_to(vector.values, column.ids.shape)


def computed(expression: Expression, column: Column) -> Vector:
    """Raises NotCounted."""
    match expression:
        case Variable(name=name) if name == column.name:
            return Vector(Rep.ID, column.ids, tags=column.tags)
        case RdfLiteral(direction=None):
            number = inline_id(literal_of(expression))
            if number is not None:
                return Vector(Rep.ID, np.array(number), tags=distinct_tags(np.array([number])))
        case And(operands=parts):
            return _truth(reduce(np.logical_and, (condition(part, column) for part in parts)))
        case Or(operands=parts):
            return _truth(reduce(np.logical_or, (condition(part, column) for part in parts)))
        case Not(operand=part):
            return _truth(~condition(part, column))
        case Comparison():
            return _truth(_compared(expression, column))
        case In(options=options) if options:
            tests = (_compared(Comparison("=", expression.expression, option), column) for option in options)
            found = reduce(np.logical_or, tests)
            return _truth(~found if expression.negated else found)
        case Arithmetic():
            first = number_of(computed(expression.first, column), column)
            steps = ((sign, number_of(computed(part, column), column)) for sign, part in expression.rest)
            return reduce(lambda left, step: _arithmetic(step[0], left, step[1]), steps, first)
        case Signed():
            operand = number_of(computed(expression.operand, column), column)
            return operand if expression.sign == "+" else replace(operand, values=-operand.values)
        case BuiltInCall(name=name, arguments=arguments):
            return _called(name, arguments, column)
        case FunctionCall(arguments=(part,)):
            return _cast(expression.function.value, computed(part, column), column)
    raise NotCounted


def _truth(values: Array) -> Vector:
    return Vector(Rep.BOOLEAN, values)


def _whole(values: Array) -> Vector:
    return Vector(Rep.INTEGER, values)


def number_of(vector: Vector, column: Column, *, of_any_type: bool = False) -> Vector:
    """An integer or decimal for each term; of any type: those of both types together, for a comparison."""
    if vector.rep in (Rep.INTEGER, Rep.DECIMAL):
        return vector
    if vector.rep is not Rep.ID:
        raise NotCounted
    is_column = vector.values is column.ids
    numbers = column.read.numbers() if is_column else _constant_number(int(vector.values))
    if numbers.rep is None and not of_any_type:
        raise NotCounted
    return Vector(numbers.rep or Rep.DECIMAL, numbers.values, numbers.scale)


@lru_cache(maxsize=1024)
def _constant_number(term: int) -> ExactNumbers:
    """One for all terms. Raises NotCounted."""
    found = exact_numbers(np.array([term]), None)
    if found is None:
        raise NotCounted
    return replace(found, values=found.values.reshape(()))


def _peak(values: Array) -> int:
    return max(abs(int(values.max())), abs(int(values.min()))) if values.size else 0


def _scaled(vector: Vector, scale: int) -> Array:
    factor = 10 ** (scale - vector.scale)
    if _peak(vector.values) * factor >= NUMBER_MAX:
        raise NotCounted
    return np.asarray(vector.values * factor)


def _arithmetic(sign: str, left: Vector, right: Vector) -> Vector:
    rep = Rep.INTEGER if left.rep is right.rep is Rep.INTEGER else Rep.DECIMAL
    if sign == "*":
        scale = left.scale + right.scale
        if scale > _SCALE_MAX or _peak(left.values) * _peak(right.values) >= NUMBER_MAX:
            raise NotCounted
        return Vector(rep, left.values * right.values, scale)
    if sign == "/":
        raise NotCounted
    scale = max(left.scale, right.scale)
    one, other = _scaled(left, scale), _scaled(right, scale)
    if _peak(one) + _peak(other) >= NUMBER_MAX:
        raise NotCounted
    return Vector(rep, one + other if sign == "+" else one - other, scale)


def _compared(comparison: Comparison, column: Column) -> Array:
    operator, left, right = comparison.operator, comparison.left, comparison.right
    if isinstance(left, RdfLiteral) and not isinstance(right, RdfLiteral):
        operator, left, right = _MIRRORED[operator], right, left
    if isinstance(right, RdfLiteral) and _is_plain(right):
        return _compared_with_text(operator, left, right.value, column)
    one, other = computed(left, column), computed(right, column)
    tags = one.tags | other.tags
    if one.rep is other.rep is Rep.ID and len(tags) == 1 and tags <= DATES:
        return np.asarray(_COMPARE[operator](one.values, other.values))
    numbers = [number_of(vector, column, of_any_type=True) for vector in (one, other)]
    scale = max(number.scale for number in numbers)
    return np.asarray(_COMPARE[operator](*(_scaled(number, scale) for number in numbers)))


def _compared_with_text(operator: str, left: Expression, text: str, column: Column) -> Array:
    match left:
        case BuiltInCall(name="LANG", arguments=(Variable(name=name),)) if name == column.name:
            if operator not in ("=", "!="):
                raise NotCounted
            try:
                found = column.in_language(text)
            except NotCounted:
                found = column.texts(STRINGS).in_language(text)
            return found if operator == "=" else ~found
        case Variable(name=name) if name == column.name:
            if operator != "!=" and column.tags == {Tag.STRING}:
                with suppress(NotCounted):
                    return column.within(Bound.compared(operator, text))
            texts = column.texts(frozenset((Tag.STRING,)))
            if operator in ("=", "!="):
                found = texts.compared("<=", text) & texts.compared(">=", text)
                return found if operator == "=" else ~found
            return texts.compared(operator, text)
    raise NotCounted


def _is_plain(literal: RdfLiteral) -> bool:
    return literal.language is None and literal.datatype == XSD + "string"


def _called(name: str, arguments: tuple[Expression, ...], column: Column) -> Vector:
    match name, arguments:
        case "ABS" | "CEIL" | "FLOOR" | "ROUND", (part,):
            return _rounded(name, number_of(computed(part, column), column))
        case "YEAR" | "MONTH" | "DAY", (part,):
            return _whole(_date_part(name, computed(part, column)))
        case "STRLEN", (BuiltInCall(name="STRBEFORE" | "STRAFTER" as beside, arguments=(hay, needle)),):
            return _whole(_length_beside(beside, _texts(hay, column), _needle(needle)))
        case "STRLEN", (part,):
            return _whole(_texts(part, column).lengths())
        case "STRSTARTS", (hay, needle):
            return _truth(_starting(hay, _needle(needle), column))
        case "STRENDS", (hay, needle):
            return _truth(_texts(hay, column).ending(_needle(needle)))
        case "CONTAINS", (hay, needle):
            return _truth(_texts(hay, column).containing(_needle(needle)))
        case "REGEX", (hay, needle):
            return _truth(_matched(hay, _needle(needle), column))
        case _, (Variable(),) if name in KINDS_OF_TERMS:
            vector = computed(arguments[0], column)
            tags = [int(tag) for tag in KINDS_OF_TERMS[name]]
            return _truth(np.isin(vector.values >> PAYLOAD_BITS, tags))
    raise NotCounted


def _texts(expression: Expression, column: Column) -> TextColumn:
    """Those of the variable itself, as strings or by STR."""
    match expression:
        case Variable(name=name) if name == column.name:
            return column.texts(STRINGS)
        case BuiltInCall(name="STR", arguments=(Variable(name=name),)) if name == column.name:
            return column.texts(STRINGS | {Tag.IRI})
    raise NotCounted


def _needle(expression: Expression) -> str:
    """A constant plain string, not empty, without a line end."""
    if not isinstance(expression, RdfLiteral) or not _is_plain(expression):
        raise NotCounted
    if not expression.value or "\n" in expression.value:
        raise NotCounted
    return expression.value


def _starting(hay: Expression, prefix: str, column: Column) -> Array:
    if isinstance(hay, Variable) and hay.name == column.name:
        with suppress(NotCounted):
            return column.within(Bound.of_prefix(prefix))
    return _texts(hay, column).starting(prefix)


def _matched(hay: Expression, pattern: str, column: Column) -> Array:
    """REGEX with characters that stand for themselves, and dots; ^ before."""
    fixed = pattern.removeprefix("^")
    if not fixed or not _FIXED.issuperset(fixed.replace(".", "")):
        raise NotCounted
    if fixed != pattern:
        if "." in fixed:
            raise NotCounted
        return _starting(hay, fixed, column)
    return _texts(hay, column).containing([None if point == "." else point for point in fixed])


def _length_beside(name: str, texts: TextColumn, needle: str) -> Array:
    before = texts.before(needle)
    if name == "STRBEFORE":
        return np.maximum(before, 0)
    return np.where(before < 0, 0, texts.lengths() - before - len(needle))


def _rounded(name: str, number: Vector) -> Vector:
    if name == "ABS":
        return replace(number, values=np.abs(number.values))
    if number.rep is Rep.INTEGER:
        return number
    unit, values = 10**number.scale, number.values
    match name:
        case "FLOOR":
            found = values // unit
        case "CEIL":
            found = -(-values // unit)
        case _:
            found = (values + unit // 2) // unit
    return Vector(Rep.DECIMAL, found)


def _date_part(name: str, vector: Vector) -> Array:
    if vector.rep is not Rep.ID or not vector.tags or not vector.tags <= DATES:
        raise NotCounted
    payload = (vector.values & PAYLOAD_MASK) - OFFSET
    is_time = np.isin(vector.values >> PAYLOAD_BITS, [int(tag) for tag in _DATE_TIMES])
    days = np.where(is_time, payload // 86_400_000_000, payload).astype("datetime64[D]")
    if name == "YEAR":
        return days.astype("datetime64[Y]").astype(np.int64) + 1970
    months = days.astype("datetime64[M]")
    if name == "MONTH":
        return months.astype(np.int64) % 12 + 1
    return np.asarray((days - months).astype(np.int64) + 1)


def _cast(function: str, vector: Vector, column: Column) -> Vector:
    if function == XSD + "integer" and vector.rep is Rep.BOOLEAN:
        return _whole(vector.values.astype(np.int64))
    if function == XSD + "integer" and (vector.rep is Rep.INTEGER or vector.tags == {Tag.INTEGER}):
        return number_of(vector, column)
    raise NotCounted
