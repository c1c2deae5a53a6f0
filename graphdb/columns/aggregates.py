"""Groups and their aggregates, and counts that the statistics of the view have already.

An error among the values makes every aggregate unbound but COUNT and SAMPLE.
"""

from typing import Any, Final

from graphdb.columns.blocks import Block, Names, lexical
from graphdb.columns.catalog import Catalog
from graphdb.columns.comparisons import sort_value
from graphdb.columns.expressions import Expressions
from graphdb.columns.numbers import as_number, guarded, scaled
from graphdb.columns.term_ids import Tag
from graphdb.columns.triples import Graphs, GraphScope
from graphdb.columns.values import STRINGS, NotExact, Rep, Value, inexact, quoted
from graphdb.sparql.algebra import Bgp, Extend, Group
from graphdb.sparql.patterns import Aggregate, BuiltInCall, TriplePattern
from graphdb.sparql.terms import Variable

__all__ = ["counted_from_statistics", "grouped"]

_INTEGER = frozenset((Tag.INTEGER,))
_DECIMAL = frozenset((Tag.DECIMAL,))
_IRI = frozenset((Tag.IRI,))
_DISTINCT: Final = ("subjects", "predicates", "objects")
_DECIMAL_PLACES = 18
_INTEGER_MAX = (1 << 63) - 1


def grouped(expressions: Expressions, group: Group, weight: str | None = None) -> Block:
    """One solution for each group, with its keys and the values of its aggregates. Raises NotExact.

    weight is the SQL of the number of solutions that each row of the block stands for; None is 1 each.
    """
    block = expressions.block
    alias = block.names.alias("q")
    items: list[str] = []
    columns: dict[str, Value] = {}

    def column(value: Value) -> Value:
        items.append(f"{value.sql} AS c{len(items)}")
        return value.over(f"{alias}.c{len(items) - 1}")

    for key in group.keys:
        columns[key.name] = column(expressions.value(key))
    keys = ", ".join(str(place + 1) for place in range(len(items)))
    found: dict[Aggregate, Value] = {}
    for variable, aggregate in group.aggregates:
        if aggregate not in found:
            found[aggregate] = column(_aggregated(expressions, aggregate, bool(keys), weight))
        columns[variable.name] = found[aggregate]
    group_by = f" GROUP BY {keys}" if keys else ""
    return Block(block.names, [f"(SELECT {', '.join(items)}{block.rest()}{group_by}) {alias}"], [], columns)


def counted_from_statistics(names: Names, scope: GraphScope, group: Group) -> Block | None:
    """The solutions of a group over `?s ?p ?o` with three variables, without a key or with ?p as its only
    one, where all aggregates are counts that the view's statistics have. None for every other group.
    """
    ends = _ends_of_all_quads(group)
    if ends is None or names.catalog.named_graphs or scope != GraphScope(Graphs()):
        return None
    alias = names.alias("q")
    columns = {key.name: Value(f"{alias}.p", Rep.ID, _IRI, nullable=False) for key in group.keys}
    for variable, aggregate in group.aggregates:
        if aggregate.name != "COUNT" or aggregate.expression not in (None, *ends):
            return None
        counted = "quads"
        if aggregate.distinct:
            if not isinstance(aggregate.expression, Variable):
                return None
            counted = _DISTINCT[ends.index(aggregate.expression)]
        count = _count(names.catalog, alias if group.keys else None, counted)
        if count is None:
            return None
        columns[variable.name] = Value(count, Rep.INTEGER, _INTEGER, nullable=False)
    tables = [f"(SELECT * FROM predicates WHERE quads > 0) {alias}"] if group.keys else []
    return Block(names, tables, [], columns)


def _ends_of_all_quads(group: Group) -> tuple[Variable, Variable, Variable] | None:
    """The variables of the one pattern of a group that all quads match, once each."""
    pattern = group.pattern
    keys: tuple[Any, ...] = group.keys
    if isinstance(pattern, Extend) and keys == (pattern.variable,):
        keys, pattern = (pattern.expression,), pattern.pattern
    match pattern:
        case Bgp(triples=(TriplePattern(Variable() as s, Variable() as p, Variable() as o),)):
            return (s, p, o) if len({s, p, o}) == 3 and keys in ((), (p,)) else None
    return None


def _count(catalog: Catalog, alias: str | None, counted: str) -> str | None:
    """A count for each row of `predicates`, or, where alias is None, over all quads. None where statistics
    do not have it since a change.
    """
    entries = catalog.predicates.values()
    if alias is not None:
        if counted == "predicates":
            return "1::BIGINT"
        is_known = counted == "quads" or not any(entry.is_stale for entry in entries)
        return f"{alias}.{counted}" if is_known else None
    count: int | None
    match counted:
        case "quads":
            count = sum(entry.quads for entry in entries)
        case "predicates":
            count = sum(entry.quads > 0 for entry in entries)
        case _:
            count = catalog.distinct(counted)
    return None if count is None else f"{count}::BIGINT"  # a number alone would be a column's place


def _aggregated(expressions: Expressions, aggregate: Aggregate, has_keys: bool, weight: str | None) -> Value:
    block = expressions.block
    if weight is not None:
        return _weighed(expressions, aggregate, has_keys, weight)
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
            return _sum(as_number(block, value), distinct, has_keys)
        case "AVG":
            return _average(as_number(block, value), distinct, has_keys)
        case "MIN" | "MAX" as name:
            return _extreme(block, value, name.lower(), has_keys)
        case "GROUP_CONCAT":
            return _concatenated(block, value, aggregate, distinct)
    raise NotExact(f"the aggregate {aggregate.name}")


def _weighed(expressions: Expressions, aggregate: Aggregate, has_keys: bool, weight: str) -> Value:
    """An aggregate of rows that stand for several solutions each. Raises NotExact, as well where its value
    depends on the order of the solutions.
    """
    if aggregate.distinct:
        raise NotExact("an aggregate of distinct values, weighed")
    block, count = expressions.block, f"coalesce(sum({weight}), 0)::BIGINT"
    if aggregate.expression is None:
        return Value(count, Rep.INTEGER, _INTEGER, nullable=False)
    value = expressions.value(aggregate.expression)
    match aggregate.name:
        case "COUNT" if isinstance(aggregate.expression, Variable) and not value.nullable:
            return Value(count, Rep.INTEGER, _INTEGER, nullable=False)
        case "SUM":
            return _sum(as_number(block, value), "", has_keys, weight)
        case "AVG":
            return _average(as_number(block, value), "", has_keys, weight)
        case "MIN" | "MAX" as name:
            return _extreme(block, value, name.lower(), has_keys)
    raise NotExact(f"the aggregate {aggregate.name}, weighed")


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


def _sum(number: Value, distinct: str, has_keys: bool, weight: str | None = None) -> Value:
    nullable = number.nullable
    if number.rep is Rep.INTEGER:
        total = f"coalesce({_added(number, distinct, weight)}, 0)"
        within = f"{total} BETWEEN {-_INTEGER_MAX - 1} AND {_INTEGER_MAX}"
        checked = f"CASE WHEN {within} THEN ({total})::BIGINT ELSE {inexact('sum beyond 64 bits')} END"
        return Value(_poisoned(number, checked), Rep.INTEGER, _INTEGER, nullable)
    total = _added(number, distinct, weight)
    return number.over(_poisoned(number, _unless_empty(total, has_keys)), nullable)


def _average(number: Value, distinct: str, has_keys: bool, weight: str | None = None) -> Value:
    total = _added(number, distinct, weight)
    count = f"count({distinct}{number.sql})" if weight is None else f"sum({weight})"  # none is NULL, or all
    if number.rep in (Rep.DOUBLE, Rep.FLOAT):
        average = f"{total} / {count}::{number.rep.name}"
        return number.over(_poisoned(number, _unless_empty(average, has_keys)))
    if number.rep is Rep.INTEGER:  # the engine adds up in 64 bits before it divides
        within = f"coalesce({total}, 0) BETWEEN {-_INTEGER_MAX - 1} AND {_INTEGER_MAX}"
        total = f"(CASE WHEN {within} THEN {total} ELSE {inexact('sum beyond 64 bits')} END)"
    whole = scaled(Value(total, number.rep, number.tags, scale=number.scale), _DECIMAL_PLACES)
    sql = _unless_empty(f"{whole} // ({count})::HUGEINT", has_keys)
    return Value(_poisoned(number, sql), Rep.DECIMAL, _DECIMAL, number.nullable, scale=_DECIMAL_PLACES)


def _added(number: Value, distinct: str, weight: str | None) -> str:
    """A sum; that of floats one by one as floats, as the engine does, which DuckDB's own adds as doubles."""
    if weight is not None:
        if number.rep not in (Rep.INTEGER, Rep.DECIMAL):
            raise NotExact("a sum of doubles or floats, weighed")
        return f"sum(({number.sql})::HUGEINT * {weight})"
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
