"""Groups and their aggregates, and counts that the statistics of the view have already.

An error among the values makes every aggregate unbound but COUNT and SAMPLE.
"""

from dataclasses import dataclass, replace
from typing import Any, Final

from graphdb.columns.blocks import Block, Names
from graphdb.columns.catalog import Catalog
from graphdb.columns.comparisons import sort_value
from graphdb.columns.expressions import Expressions
from graphdb.columns.functions import text_of
from graphdb.columns.numbers import as_number, scaled
from graphdb.columns.term_ids import Tag
from graphdb.columns.triples import Graphs, GraphScope
from graphdb.columns.values import NotExact, Rep, Value, inexact, quoted
from graphdb.sparql.algebra import Bgp, Extend, Group
from graphdb.sparql.patterns import Aggregate, TriplePattern
from graphdb.sparql.terms import Variable

__all__ = ["Parts", "counted_from_statistics", "grouped", "grouped_in_parts"]

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


@dataclass(frozen=True, slots=True)
class Parts:
    """A group that is computed in two steps: sql finds the parts of its groups, of some of the solutions at a
    time; whole is the group over a table that has the parts of all.
    """

    sql: str
    whole: Block


def grouped_in_parts(expressions: Expressions, group: Group, whole: Block, apart: str | None) -> Parts:
    """The same solutions as of `grouped`, out of parts. whole is the table of the parts, under the alias
    `parts`. No two sets of solutions have a value of the variable apart in common. Raises NotExact.

    An aggregate of distinct values is computed of these values, which the parts have then.
    """
    columns = _PartColumns()
    keys = {key.name: columns.carried(expressions.value(key)) for key in group.keys}
    aggregates = dict.fromkeys(aggregate for _, aggregate in group.aggregates)
    distinct = [each for each in aggregates if each.distinct]
    if all(each.name == "COUNT" and each.expression == Variable(apart or "") for each in distinct):
        distinct = []  # each part has values of its own
    found = {each: _of_carried(columns, expressions, each, whole, bool(keys)) for each in distinct}
    by_parts = _grouped_by(len(columns.items))
    for each in aggregates:
        if each not in found:
            found[each] = _aggregated(expressions, each, bool(keys), None, columns)
    sql = f"SELECT {', '.join(columns.items) or '1 AS c0'}{expressions.block.rest()}{by_parts}"
    alias, items, made = whole.names.alias("q"), list[str](), dict[str, Value]()
    for name, value in (keys | {variable.name: found[each] for variable, each in group.aggregates}).items():
        made[name] = value.over(f"{alias}.c{len(items)}")
        items.append(f"{value.sql} AS c{len(items)}")
    select = f"SELECT {', '.join(items) or '1 AS c0'}{whole.rest()}{_grouped_by(len(keys))}"
    return Parts(sql, Block(whole.names, [f"({select}) {alias}"], [], made))


def _grouped_by(first: int) -> str:
    """By so many columns, the first ones."""
    return f" GROUP BY {', '.join(str(place + 1) for place in range(first))}" if first else ""


class _Whole:
    """How aggregates are computed of the rows of a block: all at once."""

    def counted(self, sql: str) -> str:
        """A count."""
        return sql

    def added(self, sql: str, rep: Rep) -> str:
        """A sum of numbers that stand in SQL so."""
        return sql

    def extreme(self, name: str, value: Value, key: str) -> str:
        """The value that has the least or the greatest key (name is min or max), or any (any_value)."""
        return f"{name}({value.sql})" if key == value.sql else f"arg_{name}({value.sql}, {key})"

    def texts(self, sql: str, separator: str) -> str:
        """Texts, one after the other."""
        return sql


_WHOLE: Final = _Whole()


class _PartColumns(_Whole):
    """The columns of parts, and how the values of several parts make one."""

    def __init__(self) -> None:
        self.items: list[str] = []
        self._known: dict[str, str] = {}

    def _column(self, sql: str) -> str:
        if sql not in self._known:
            self._known[sql] = f"parts.c{len(self.items)}"
            self.items.append(f"{sql} AS c{len(self.items)}")
        return self._known[sql]

    def carried(self, value: Value) -> Value:
        """What every part has one value of."""
        return value.over(self._column(value.sql))

    def counted(self, sql: str) -> str:
        return f"coalesce(sum({self._column(sql)}), 0)"

    def added(self, sql: str, rep: Rep) -> str:
        return _added(Value(self._column(sql), rep, frozenset()), "", None)

    def extreme(self, name: str, value: Value, key: str) -> str:
        of_parts = value.over(self._column(super().extreme(name, value, key)))
        key_of_parts = of_parts.sql if key == value.sql else self._column(f"{name}({key})")
        return super().extreme(name, of_parts, key_of_parts)

    def texts(self, sql: str, separator: str) -> str:
        return f"string_agg({self._column(sql)}, {separator})"


def _of_carried(
    columns: _PartColumns, expressions: Expressions, aggregate: Aggregate, whole: Block, has_keys: bool
) -> Value:
    """An aggregate of the distinct values that parts have."""
    if aggregate.expression is None:
        rows = {name: columns.carried(value) for name, value in expressions.block.columns.items()}
        return _count_all(replace(whole, columns=rows), distinct=True)
    value = columns.carried(expressions.value(aggregate.expression))
    return _of_value(whole, value, aggregate, has_keys, _WHOLE)


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


def _aggregated(
    expressions: Expressions,
    aggregate: Aggregate,
    has_keys: bool,
    weight: str | None,
    means: _Whole = _WHOLE,
) -> Value:
    if weight is not None:
        return _weighed(expressions, aggregate, has_keys, weight)
    if aggregate.expression is None:
        return _count_all(expressions.block, aggregate.distinct, means)
    return _of_value(expressions.block, expressions.value(aggregate.expression), aggregate, has_keys, means)


def _of_value(block: Block, value: Value, aggregate: Aggregate, has_keys: bool, means: _Whole) -> Value:
    """An aggregate of what its expression is in each solution."""
    if value.lang is not None:
        raise NotExact("an aggregate of computed strings with a language")
    distinct = "DISTINCT " if aggregate.distinct else ""
    match aggregate.name:
        case "COUNT":
            if not value.nullable and not distinct:
                return Value(means.counted("count(*)"), Rep.INTEGER, _INTEGER, nullable=False)
            counted = means.counted(f"count({distinct}{value.sql})")
            return Value(counted, Rep.INTEGER, _INTEGER, nullable=False)
        case "SAMPLE":
            name = "any_value" if value.rep is Rep.BOOLEAN else "min"
            return value.over(means.extreme(name, value, value.sql), nullable=True)
        case "SUM":
            return _sum(as_number(block, value), distinct, has_keys, means=means)
        case "AVG":
            return _average(as_number(block, value), distinct, has_keys, means=means)
        case "MIN" | "MAX" as name:
            return _extreme(block, value, name.lower(), has_keys, means)
        case "GROUP_CONCAT":
            return _concatenated(block, value, aggregate, distinct, means)
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


def _count_all(block: Block, distinct: bool, means: _Whole = _WHOLE) -> Value:
    if not distinct:
        return Value(means.counted("count(*)"), Rep.INTEGER, _INTEGER, nullable=False)
    if any(name.startswith("_:") for name in block.columns) or not block.columns:
        raise NotExact("COUNT(DISTINCT *) of a pattern with blank nodes")
    row = ", ".join(value.sql for value in block.columns.values())
    sql = f"count(DISTINCT ({row}))" if len(block.columns) > 1 else f"count(DISTINCT struct_pack(a := {row}))"
    return Value(sql, Rep.INTEGER, _INTEGER, nullable=False)


def _poisoned(value: Value, sql: str, means: _Whole) -> str:
    """NULL where a value is: an error."""
    if not value.nullable:
        return sql
    values, rows = means.counted(f"count({value.sql})"), means.counted("count(*)")
    return f"CASE WHEN {values} = {rows} THEN {sql} END"


def _sum(
    number: Value, distinct: str, has_keys: bool, weight: str | None = None, means: _Whole = _WHOLE
) -> Value:
    nullable, total = number.nullable, means.added(_added(number, distinct, weight), number.rep)
    if number.rep is Rep.INTEGER:
        total = f"coalesce({total}, 0)"
        within = f"{total} BETWEEN {-_INTEGER_MAX - 1} AND {_INTEGER_MAX}"
        checked = f"CASE WHEN {within} THEN ({total})::BIGINT ELSE {inexact('sum beyond 64 bits')} END"
        return Value(_poisoned(number, checked, means), Rep.INTEGER, _INTEGER, nullable)
    return number.over(_poisoned(number, _unless_empty(total, has_keys, means), means), nullable)


def _average(
    number: Value, distinct: str, has_keys: bool, weight: str | None = None, means: _Whole = _WHOLE
) -> Value:
    total = means.added(_added(number, distinct, weight), number.rep)
    count = f"sum({weight})"  # none is NULL, or all
    if weight is None:
        count = means.counted(f"count({distinct}{number.sql})")
    if number.rep in (Rep.DOUBLE, Rep.FLOAT):
        average = f"{total} / {count}::{number.rep.name}"
        return number.over(_poisoned(number, _unless_empty(average, has_keys, means), means))
    if number.rep is Rep.INTEGER:  # the engine adds up in 64 bits before it divides
        within = f"coalesce({total}, 0) BETWEEN {-_INTEGER_MAX - 1} AND {_INTEGER_MAX}"
        total = f"(CASE WHEN {within} THEN {total} ELSE {inexact('sum beyond 64 bits')} END)"
    whole = scaled(Value(total, number.rep, number.tags, scale=number.scale), _DECIMAL_PLACES)
    sql = _unless_empty(f"{whole} // ({count})::HUGEINT", has_keys, means)
    poisoned = _poisoned(number, sql, means)
    return Value(poisoned, Rep.DECIMAL, _DECIMAL, number.nullable, scale=_DECIMAL_PLACES)


def _added(number: Value, distinct: str, weight: str | None) -> str:
    """A sum; that of floats one by one as floats, as the engine does, which DuckDB's own adds as doubles."""
    if weight is not None:
        if number.rep not in (Rep.INTEGER, Rep.DECIMAL):
            raise NotExact("a sum of doubles or floats, weighed")
        return f"sum(({number.sql})::HUGEINT * {weight})"
    if number.rep is Rep.FLOAT:
        return f"list_reduce(list({distinct}{number.sql}), lambda a, b: a + b, 0::FLOAT)"
    return f"sum({distinct}{number.sql})"


def _unless_empty(sql: str, has_keys: bool, means: _Whole) -> str:
    """The engine's sum and average of nothing is the integer 0, whatever the type; a group is never empty."""
    if has_keys:
        return sql
    return f"CASE WHEN {means.counted('count(*)')} = 0 THEN {inexact('aggregate of nothing')} ELSE {sql} END"


def _extreme(block: Block, value: Value, name: str, has_keys: bool, means: _Whole = _WHOLE) -> Value:
    sql = means.extreme(name, value, sort_value(block, value))
    return value.over(_poisoned(value, sql, means), nullable=value.nullable or not has_keys)


def _concatenated(block: Block, value: Value, aggregate: Aggregate, distinct: str, means: _Whole) -> Value:
    """Any order is right (section 18.5.1.7): that of the strings."""
    if aggregate.distinct and value.tags != {Tag.STRING}:
        raise NotExact("GROUP_CONCAT(DISTINCT) of what may be no plain string")
    text = text_of(block, value)
    separator = quoted(" " if aggregate.separator is None else aggregate.separator)
    # DuckDB refuses to sort by a constant
    order = "" if text.sql.startswith(("'", "NULL")) else f" ORDER BY {text.sql}"
    joined = means.texts(f"string_agg({distinct}{text.sql}, {separator}{order})", separator)
    poisoned = _poisoned(text, f"coalesce({joined}, '')", means)
    return Value(poisoned, Rep.STRING, frozenset((Tag.STRING,)), text.nullable)
