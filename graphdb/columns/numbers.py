"""Numbers and their order in SQL, as in the engine: integers of 64 bits, decimals of 128, floats and doubles.

What the engine does with an overflow is "error", which is left to it: the SQL fails there, and so the query
goes to a reader.
"""

from dataclasses import replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Final

from graphdb.columns.blocks import Block, lexical
from graphdb.columns.term_ids import OFFSET, PAYLOAD_BITS, PAYLOAD_MASK, Tag
from graphdb.columns.values import (
    DICTIONARY,
    DOUBLES,
    NUMBERS,
    NotExact,
    Rep,
    Value,
    has_tag,
    inexact,
    payload,
    quoted,
)

__all__ = [
    "NO_NUMBER",
    "any_double",
    "arithmetic",
    "as_double",
    "as_float",
    "as_number",
    "compared_numbers",
    "exact_number",
    "guarded",
    "scaled",
]

NO_NUMBER: Final = Value("NULL::BIGINT", Rep.INTEGER, frozenset((Tag.INTEGER,)))
_INTEGERS: Final = frozenset((Tag.INTEGER, Tag.BIG_INTEGER))
_DECIMALS: Final = frozenset((Tag.DECIMAL, Tag.BIG_DECIMAL))
_EXACT: Final = _INTEGERS | _DECIMALS
_HALF: Final = (1 << 55) - 1
_SCALE_MAX: Final = 18
_SCALES: Final = {Tag.INTEGER: 0, Tag.BIG_INTEGER: 0, Tag.DECIMAL: 6, Tag.BIG_DECIMAL: _SCALE_MAX}
_MIRRORED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}
_WIDE: Final = Context(prec=60)
_COMPUTED: Final = {Rep.INTEGER, Rep.DECIMAL, Rep.DOUBLE, Rep.FLOAT}


def guarded(value: Value, tags: frozenset[Tag], sql: str) -> str:
    """sql where the term has one of the tags, else NULL."""
    return sql if value.tags <= tags else f"CASE WHEN {has_tag(value, tags)} THEN {sql} END"


def as_number(block: Block, value: Value) -> Value:
    """A number out of a term, NULL for what is none. Raises NotExact where it may have several types."""
    if value.rep in _COMPUTED:
        return value
    kinds = value.tags & NUMBERS if value.rep is Rep.ID else frozenset()
    if not kinds:
        return NO_NUMBER
    nullable = value.nullable or value.tags != kinds
    if kinds == {Tag.INTEGER}:
        sql = guarded(value, kinds, payload(value))
        return Value(sql, Rep.INTEGER, kinds, nullable)
    if kinds <= _INTEGERS or kinds <= _DECIMALS:
        number = exact_number(block, value)
        assert number is not None
        rep = Rep.INTEGER if kinds <= _INTEGERS else Rep.DECIMAL
        only = frozenset((Tag.INTEGER if rep is Rep.INTEGER else Tag.DECIMAL,))
        return Value(number.sql, rep, only, nullable, scale=number.scale)
    if kinds <= DOUBLES:
        return Value(_double(block, value), Rep.DOUBLE, frozenset((Tag.DOUBLE,)), nullable)
    raise NotExact("arithmetic over numbers of several types, or of more digits than fit")


def as_double(value: Value) -> str:
    """A number as the engine promotes it to xsd:double."""
    match value.rep:
        case Rep.DOUBLE:
            return value.sql
        case Rep.INTEGER | Rep.FLOAT:
            return f"({value.sql})::DOUBLE"
    unscaled = f"({value.sql})::DOUBLE / 1e{value.scale}"
    return (
        f"CASE WHEN abs({value.sql}) < {1 << 53} THEN {unscaled} "
        f"WHEN {value.sql} IS NOT NULL THEN {inexact('decimal of many digits as a double')} END"
    )


def as_float(value: Value) -> str:
    """A number as the engine promotes it to xsd:float, or casts it: decimals by way of xsd:double."""
    match value.rep:
        case Rep.FLOAT:
            return value.sql
        case Rep.INTEGER:
            return f"({value.sql})::BIGINT::FLOAT"
    return f"({as_double(value)})::FLOAT"


def scaled(value: Value, scale: int) -> str:
    """An integer or decimal times 10^scale."""
    missing = scale - value.scale
    return f"(({value.sql})::HUGEINT * {10**missing}::HUGEINT)" if missing else value.sql


def arithmetic(operator: str, left: Value, right: Value) -> Value:
    """Two numbers added, subtracted, multiplied or divided."""
    nullable = left.nullable or right.nullable or operator == "/"
    if Rep.DOUBLE in (left.rep, right.rep):
        sql = f"({as_double(left)} {operator} {as_double(right)})"
        return Value(sql, Rep.DOUBLE, frozenset((Tag.DOUBLE,)), nullable)
    if Rep.FLOAT in (left.rep, right.rep):
        sql = f"({as_float(left)} {operator} {as_float(right)})"
        return Value(sql, Rep.FLOAT, frozenset((Tag.FLOAT,)), nullable)
    decimal = frozenset((Tag.DECIMAL,))
    if operator == "/":
        if right.rep is not Rep.INTEGER:
            raise NotExact("division by a decimal")
        sql = f"CASE WHEN {right.sql} <> 0 THEN {scaled(left, _SCALE_MAX)} // ({right.sql})::HUGEINT END"
        return Value(sql, Rep.DECIMAL, decimal, nullable, scale=_SCALE_MAX)
    if left.rep is Rep.INTEGER and right.rep is Rep.INTEGER:
        sql = f"(({left.sql})::BIGINT {operator} ({right.sql})::BIGINT)"
        return Value(sql, Rep.INTEGER, frozenset((Tag.INTEGER,)), nullable)
    if operator == "*":
        scale = left.scale + right.scale
        if scale > _SCALE_MAX:
            raise NotExact("product of decimals of many digits")
        sql = f"(({left.sql})::HUGEINT * ({right.sql})::HUGEINT)"
        return Value(sql, Rep.DECIMAL, decimal, nullable, scale=scale)
    scale = max(left.scale, right.scale)
    sql = f"(({scaled(left, scale)})::HUGEINT {operator} ({scaled(right, scale)})::HUGEINT)"
    return Value(sql, Rep.DECIMAL, decimal, nullable, scale=scale)


def compared_numbers(block: Block, operator: str, left: Value, right: Value) -> str:
    """Two numbers compared by value; NULL where one is not a number, and for an order of NaN and another."""
    kinds = [value.tags & NUMBERS for value in (left, right)]
    if (
        left.rep is right.rep is Rep.ID
        and kinds[0] == kinds[1]
        and len(kinds[0]) == 1
        and kinds[0] <= {Tag.INTEGER, Tag.DECIMAL, Tag.DOUBLE, Tag.FLOAT}
    ):
        # within a tag the numbers are in the order of the values
        tests = [has_tag(value, kinds[0]) for value in (left, right) if value.tags != kinds[0]]
        plain = f"{left.sql} {operator} {right.sql}"
        return f"CASE WHEN {' AND '.join(tests)} THEN {plain} END" if tests else f"({plain})"
    if Rep.FLOAT in (left.rep, right.rep):
        numbers = [as_number(block, value) for value in (left, right)]
        convert = as_double if any(number.rep is Rep.DOUBLE for number in numbers) else as_float
        sides = [convert(number) for number in numbers]
        compared = _compared_doubles(operator, sides[0], sides[1])
        if operator == "=" or numbers[0].rep is numbers[1].rep:
            return compared
        # NaN of another type is another term, not <= this one
        return f"CASE WHEN NOT isnan({sides[0]}) THEN {compared} END"
    if not (kinds[0] | kinds[1]) <= _EXACT | DOUBLES:
        raise NotExact("comparison of stored xsd:float")
    exact = [exact_number(block, value) for value in (left, right)]
    doubles = [bool(each & DOUBLES) for each in kinds]
    if not any(doubles):
        bounds = [_exact_constant(block, value) for value in (left, right)]
        if bounds[1] is not None and left.rep is Rep.ID and left.constant is None:
            return _compared_with(block, operator, left, bounds[1])
        if bounds[0] is not None and right.rep is Rep.ID and right.constant is None:
            return _compared_with(block, _MIRRORED[operator], right, bounds[0])
        assert exact[0] is not None
        assert exact[1] is not None
        return _compared_exactly(operator, exact[0], exact[1])
    sides = [any_double(block, value) for value in (left, right)]
    compared = _compared_doubles(operator, sides[0], sides[1])
    if exact[0] is not None and exact[1] is not None:
        return (
            f"CASE WHEN {exact[0].sql} IS NOT NULL AND {exact[1].sql} IS NOT NULL "
            f"THEN {_compared_exactly(operator, exact[0], exact[1])} ELSE {compared} END"
        )
    return compared


def _exact_constant(block: Block, value: Value) -> Decimal | None:
    """The integer or decimal that stands in the query."""
    if value.rep is not Rep.ID or value.constant is None or not value.tags <= _EXACT:
        return None
    return Decimal(block.names.lexical_of(value.constant))


def _compared_with(block: Block, operator: str, value: Value, bound: Decimal) -> str:
    """A stored integer or decimal against one of the query: by its id, or first by its rounded value, which
    is on the same side of the rounded bound, or equal to it.
    """
    branches = []
    for tag in sorted(value.tags & _EXACT):
        limit = _limit(operator, bound.scaleb(_SCALES[tag], _WIDE))
        if limit is None:
            test = f"({value.sql} IS NULL AND NULL)"
        elif tag in DICTIONARY:
            rounded, exact = block.lookup(value)["num"], exact_number(block, _narrowed(value, tag))
            assert exact is not None
            double = f"{quoted(str(bound))}::DOUBLE"
            test = (
                f"CASE WHEN {rounded} <> {double} THEN {rounded} {operator} {double} "
                f"ELSE {exact.sql} {operator} {limit}::HUGEINT END"
            )
        else:
            zero = (tag << PAYLOAD_BITS) + OFFSET
            test = f"{value.sql} {operator} {zero + max(-OFFSET - 1, min(OFFSET, limit))}"
        branches.append((tag, test))
    if len(branches) == 1 and value.tags == {branches[0][0]}:
        return f"({branches[0][1]})"
    return f"CASE {' '.join(f'WHEN {has_tag(value, (tag,))} THEN {test}' for tag, test in branches)} END"


def _limit(operator: str, bound: Decimal) -> int | None:
    """The whole number that whole numbers compare with as with the bound; None where none equals it."""
    if operator == "=" and bound != int(bound):
        return None
    return int(bound.to_integral_value(ROUND_FLOOR if operator in (">", "<=") else ROUND_CEILING))


def _narrowed(value: Value, tag: Tag) -> Value:
    return replace(value, tags=frozenset((tag,)))


def _compared_exactly(operator: str, left: Value, right: Value) -> str:
    scale = max(left.scale, right.scale)
    return f"({scaled(left, scale)} {operator} {scaled(right, scale)})"


def _compared_doubles(operator: str, left: str, right: str) -> str:
    """DuckDB takes NaN for greater than all; in the engine it is <= itself, but not equal."""
    if operator == "=":
        return f"({left} = {right} AND NOT isnan({left}))"
    with_nan = f"isnan({left}) OR isnan({right})"
    return f"CASE WHEN ({with_nan}) AND {left} <> {right} THEN NULL ELSE {left} {operator} {right} END"


def exact_number(block: Block, value: Value) -> Value | None:
    """The integer or decimal that a value is, NULL for others; None where it can be none."""
    if value.rep in (Rep.INTEGER, Rep.DECIMAL):
        return value
    kinds = value.tags & _EXACT
    if value.rep is not Rep.ID or not kinds:
        return None
    scale = max(_SCALES[tag] for tag in kinds)
    if len(kinds) == 1 and not kinds & DICTIONARY:
        return Value(guarded(value, kinds, payload(value)), Rep.DECIMAL, kinds, scale=scale)
    branches = []
    for tag in sorted(kinds):
        narrowed = _narrowed(value, tag)
        text = lexical(block, value) if tag in DICTIONARY else ""
        match tag:
            case Tag.BIG_INTEGER:
                number = f"({text})::HUGEINT"
            case Tag.BIG_DECIMAL:
                fraction = f"rpad(split_part({text}, '.', 2), {_SCALE_MAX}, '0')"
                number = f"(split_part({text}, '.', 1) || {fraction})::HUGEINT"
            case _:
                number = f"{payload(narrowed)}::HUGEINT"
        factor = 10 ** (scale - _SCALES[tag])
        branches.append(f"WHEN {has_tag(value, (tag,))} THEN {number} * {factor}::HUGEINT")
    return Value(f"CASE {' '.join(branches)} END", Rep.DECIMAL, kinds, scale=scale)


def any_double(block: Block, value: Value) -> str:
    """Any number as a double, NULL for what is none."""
    if value.rep in _COMPUTED:
        return as_double(value)
    branches = []
    for kinds, rep in ((_INTEGERS, Rep.INTEGER), (_DECIMALS, Rep.DECIMAL)):
        narrowed = replace(value, tags=value.tags & kinds)
        number = exact_number(block, narrowed)
        if number is not None:
            double = as_double(replace(number, rep=rep))
            branches.append(f"WHEN {has_tag(value, kinds)} THEN {double}")
    if value.tags & DOUBLES:
        branches.append(f"WHEN {has_tag(value, DOUBLES)} THEN {_double(block, value)}")
    return f"CASE {' '.join(branches)} END" if branches else "NULL::DOUBLE"


def _double(block: Block, value: Value) -> str:
    """The value of a double: out of its bits, or out of the dictionary."""
    branches = []
    if Tag.DOUBLE in value.tags:
        bits = f"({value.sql} & {PAYLOAD_MASK})"
        branches.append(
            f"WHEN {has_tag(value, (Tag.DOUBLE,))} THEN CASE WHEN {bits} > {_HALF} "
            f"THEN (({bits} & {_HALF}) * 256)::BIT::DOUBLE "
            f"ELSE -((({_HALF} - {bits}) * 256)::BIT::DOUBLE) END"
        )
    if Tag.BIG_DOUBLE in value.tags:
        if value.constant is not None:
            text = block.names.lexical_of(value.constant)
            branches.append(f"WHEN TRUE THEN '{text}'::DOUBLE")
        else:
            branches.append(f"WHEN {has_tag(value, (Tag.BIG_DOUBLE,))} THEN {block.lookup(value)['num']}")
    return f"CASE {' '.join(branches)} END"
