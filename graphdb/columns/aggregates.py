"""GROUP BY and the aggregates: an error among the values makes all of them unbound but COUNT and SAMPLE."""

from collections.abc import Sequence

from graphdb.columns.blocks import Block, lexical
from graphdb.columns.expressions import Expressions
from graphdb.columns.numbers import as_number, guarded, scaled
from graphdb.columns.ordering import sort_value
from graphdb.columns.term_ids import Tag
from graphdb.columns.values import STRINGS, NotExact, Rep, Value, inexact, quoted
from graphdb.sparql.patterns import Aggregate, BuiltInCall, GroupCondition
from graphdb.sparql.terms import Variable

__all__ = ["grouped"]

_INTEGER = frozenset((Tag.INTEGER,))
_DECIMAL = frozenset((Tag.DECIMAL,))
_DECIMAL_PLACES = 18
_INTEGER_MAX = (1 << 63) - 1


def grouped(
    expressions: Expressions, conditions: Sequence[GroupCondition], aggregates: Sequence[Aggregate]
) -> tuple[Block, dict[Aggregate, Value]]:
    """One solution a group, with its keys as columns, and what stands for each aggregate. Raises NotExact."""
    block = expressions.block
    names = block.names
    alias = names.alias("q")
    items: list[str] = []
    columns: dict[str, Value] = {}
    for condition in conditions:
        value = expressions.value(condition.expression)
        if value.lang is not None:
            raise NotExact("GROUP BY a computed string with a language")
        if condition.variable is not None:
            name = condition.variable.name
        elif isinstance(condition.expression, Variable):
            name = condition.expression.name
        else:
            name = names.alias("_:key")
        columns[name] = value.over(f"{alias}.c{len(items)}")
        items.append(f"{value.sql} AS c{len(items)}")
    keys = ", ".join(str(place + 1) for place in range(len(items)))
    found: dict[Aggregate, Value] = {}
    for aggregate in aggregates:
        value = _aggregated(expressions, aggregate, has_keys=bool(keys))
        found[aggregate] = value.over(f"{alias}.c{len(items)}")
        items.append(f"{value.sql} AS c{len(items)}")
    if not items:
        items.append("count(*) AS c")
    group_by = f" GROUP BY {keys}" if keys else ""
    select = f"SELECT {', '.join(items)}{block.rest()}{group_by}"
    return Block(names, [f"({select}) {alias}"], [], columns), found


def _aggregated(expressions: Expressions, aggregate: Aggregate, *, has_keys: bool) -> Value:
    block = expressions.block
    if aggregate.expression is None:
        return _count_all(block, aggregate.distinct)
    value = expressions.value(aggregate.expression)
    if value.lang is not None:
        raise NotExact("an aggregate of computed strings with a language")
    distinct = "DISTINCT " if aggregate.distinct else ""
    match aggregate.name:
        case "COUNT":
            if not value.nullable and not distinct:
                return Value("count(*)", Rep.INTEGER, _INTEGER, nullable=False)
            counted = f"count({distinct}{value.sql})"
            if isinstance(aggregate.expression, Variable):
                return Value(counted, Rep.INTEGER, _INTEGER, nullable=False)
            if isinstance(aggregate.expression, BuiltInCall) and aggregate.expression.name in (
                "COALESCE",
                "IF",
            ):
                raise NotExact("COUNT of a choice that may be an error or unbound")
            # the engine leaves out what is unbound, but an error it hands on
            return Value(_poisoned(value, counted), Rep.INTEGER, _INTEGER, value.nullable)
        case "SAMPLE":
            if value.rep is Rep.BOOLEAN:
                return value.over(f"any_value({value.sql})", nullable=True)
            return value.over(f"min({value.sql})", nullable=True)
        case "SUM":
            return _sum(block, value, distinct, has_keys)
        case "AVG":
            return _average(block, value, distinct, has_keys)
        case "MIN" | "MAX" as name:
            return _extreme(block, value, name.lower(), has_keys)
        case "GROUP_CONCAT":
            return _concatenated(block, value, aggregate, distinct)
    raise NotExact(f"the aggregate {aggregate.name}")


def _count_all(block: Block, distinct: bool) -> Value:
    if not distinct:
        return Value("count(*)", Rep.INTEGER, _INTEGER, nullable=False)
    if any(name.startswith("_:") for name in block.columns) or not block.columns:
        raise NotExact("COUNT(DISTINCT *) of a pattern with blank nodes")
    row = ", ".join(value.sql for value in block.columns.values())
    sql = f"count(DISTINCT ({row}))" if len(block.columns) > 1 else f"count(DISTINCT struct_pack(a := {row}))"
    return Value(sql, Rep.INTEGER, _INTEGER, nullable=False)


def _poisoned(value: Value, sql: str) -> str:
    """NULL where a value is: an error."""
    return f"CASE WHEN count({value.sql}) = count(*) THEN {sql} END" if value.nullable else sql


def _sum(block: Block, value: Value, distinct: str, has_keys: bool) -> Value:
    number = as_number(block, value)
    nullable = number.nullable
    if number.rep is Rep.INTEGER:
        total = f"coalesce(sum({distinct}{number.sql}), 0)"
        within = f"{total} BETWEEN {-_INTEGER_MAX - 1} AND {_INTEGER_MAX}"
        checked = f"CASE WHEN {within} THEN ({total})::BIGINT ELSE {inexact('sum beyond 64 bits')} END"
        return Value(_poisoned(number, checked), Rep.INTEGER, _INTEGER, nullable)
    total = _added(number, distinct)
    return number.over(_poisoned(number, _unless_empty(total, has_keys)), nullable)


def _average(block: Block, value: Value, distinct: str, has_keys: bool) -> Value:
    number = as_number(block, value)
    total, count = _added(number, distinct), f"count({distinct}{number.sql})"
    if number.rep in (Rep.DOUBLE, Rep.FLOAT):
        average = f"{total} / {count}::{number.rep.name}"
        return number.over(_poisoned(number, _unless_empty(average, has_keys)))
    whole = scaled(Value(total, number.rep, number.tags, scale=number.scale), _DECIMAL_PLACES)
    sql = _unless_empty(f"{whole} // ({count})::HUGEINT", has_keys)
    return Value(_poisoned(number, sql), Rep.DECIMAL, _DECIMAL, number.nullable, scale=_DECIMAL_PLACES)


def _added(number: Value, distinct: str) -> str:
    """A sum; that of floats one by one as floats, as the engine does, which DuckDB's own adds as doubles."""
    if number.rep is Rep.FLOAT:
        return f"list_reduce(list({distinct}{number.sql}), lambda a, b: a + b, 0::FLOAT)"
    return f"sum({distinct}{number.sql})"


def _unless_empty(sql: str, has_keys: bool) -> str:
    """The engine's sum and average of nothing is the integer 0, whatever the type; a group is never empty."""
    return (
        sql if has_keys else f"CASE WHEN count(*) = 0 THEN {inexact('aggregate of nothing')} ELSE {sql} END"
    )


def _extreme(block: Block, value: Value, name: str, has_keys: bool) -> Value:
    key = sort_value(block, value)
    sql = f"{name}({value.sql})" if key == value.sql else f"arg_{name}({value.sql}, {key})"
    return value.over(_poisoned(value, sql), nullable=value.nullable or not has_keys)


def _concatenated(block: Block, value: Value, aggregate: Aggregate, distinct: str) -> Value:
    """Any order is right (section 18.5.1.7): that of the strings."""
    tags = value.tags & STRINGS
    if aggregate.distinct and tags != {Tag.STRING}:
        raise NotExact("GROUP_CONCAT(DISTINCT) of strings that may have a language")
    if value.rep is not Rep.STRING and not tags:
        return Value("CASE WHEN count(*) = 0 THEN '' END", Rep.STRING, frozenset((Tag.STRING,)))
    text = value.sql if value.rep is Rep.STRING else guarded(value, tags, lexical(block, value))
    separator = quoted(" " if aggregate.separator is None else aggregate.separator)
    joined = f"coalesce(string_agg({distinct}{text}, {separator} ORDER BY {text}), '')"
    nullable = value.nullable or value.tags != tags
    poisoned = _poisoned(Value(text, Rep.STRING, tags, nullable), joined)
    return Value(poisoned, Rep.STRING, frozenset((Tag.STRING,)), nullable)
