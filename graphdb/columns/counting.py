"""Aggregates of solutions that are found without making the solutions: `counted`.

`pattern_counts` says how many solutions there are for each term of a variable. The aggregates of an
expression of one variable are computed of its terms, each as often as it has solutions, and the groups of
GROUP BY are the terms of its variable.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from graphdb.columns.catalog import Catalog
from graphdb.columns.compiler import MARK, CompiledQuery
from graphdb.columns.exact_numbers import DECIMALS, INTEGERS
from graphdb.columns.pattern_counts import EXACT, Edge, Part, Tree, part_of, whole
from graphdb.columns.pieces import pieces
from graphdb.columns.quad_arrays import Ends, Ids, NotCounted, add_at
from graphdb.columns.results import Fetch, Row
from graphdb.columns.term_ids import PAYLOAD_BITS, XSD, Tag
from graphdb.columns.term_vectors import Column, Unread, Vector, computed, number_of, variables_of
from graphdb.columns.values import DATES, Rep
from graphdb.sparql.algebra import AbstractQuery, Algebra, Bgp, Expression, Filter, Select
from graphdb.sparql.patterns import Aggregate, BuiltInCall, TriplePattern
from graphdb.sparql.terms import Variable

__all__ = ["CountPlan", "Counted", "count_plan", "counted", "is_of_all_quads"]

Cell: TypeAlias = str | int | None
Array: TypeAlias = npt.NDArray[Any]
_ORDERED: Final = DATES | {Tag.INTEGER, Tag.DECIMAL, Tag.DOUBLE, Tag.FLOAT}  # by their numbers
_OF_TEXT: Final = frozenset((Tag.STRING, Tag.IRI))
_DECIMAL_PLACES: Final = 18
_INTEGER_MAX: Final = (1 << 63) - 1
_ENDS: Final = ("subjects", "predicates", "objects")


@dataclass(frozen=True, slots=True)
class Counted:
    """The solutions of a query: cells as `results` reads them, terms by number and computed ones as text."""

    variables: tuple[str, ...]
    rows: Sequence[Row]

    def numbers(self, rows_max: int) -> frozenset[int] | None:
        """The terms that stand in it by number; None of more rows than so many."""
        if len(self.rows) > rows_max:
            return None
        return frozenset(cell for row in self.rows for cell in row if isinstance(cell, int))

    def answer(self) -> tuple[CompiledQuery, Fetch]:
        """A query without SQL, and its rows."""
        left = iter(self.rows)

        def fetch(count: int) -> Sequence[Row]:
            return [row for row, _ in zip(left, range(count), strict=False)]

        return CompiledQuery("SELECT", self.variables, ""), fetch


@dataclass(frozen=True, slots=True)
class CountPlan:
    """A query that may be counted in one state of the view, as often as it is asked there; one thread at a
    time. Nothing that was counted stays in it.
    """

    variables: tuple[str, ...]
    rows: Callable[[], Sequence[Row]]
    part: Part | None  # that the rows are of

    def counted(self) -> Counted | None:
        """The solutions; None where it is left to SQL all the same."""
        try:
            return Counted(self.variables, self.rows())
        except (NotCounted, KeyError, RecursionError):
            return None
        finally:
            if self.part is not None:
                self.part.forget()


def counted(query: AbstractQuery, catalog: Catalog) -> Counted | None:
    """The aggregates that a query asks for over the default graph; None of what is left to SQL."""
    plan = count_plan(query, catalog)
    return None if plan is None else plan.counted()


def count_plan(query: AbstractQuery, catalog: Catalog) -> CountPlan | None:
    """How a query is counted; None of one that is left to SQL."""
    select = query.select
    if query.form != "SELECT" or not select.aggregates or select.variables is None or len(select.keys) > 1:
        return None
    if select.modifier or select.having or select.values or query.dataset or catalog.named_graphs:
        return None
    if not select.keys and (select.order or select.start is not None or select.length is not None):
        return None
    try:
        part, rows = (_grouped if select.keys else _aggregated)(select, catalog)
    except (NotCounted, KeyError, RecursionError):  # the last of a chain of hundreds of patterns
        return None
    return CountPlan(tuple([variable.name for variable in select.variables]), rows, part)


def _aggregated(select: Select, catalog: Catalog) -> tuple[Part | None, Callable[[], Sequence[Row]]]:
    """What gives the one solution of a query without GROUP BY."""
    part, value = None, _of_all_quads(select, catalog)
    if value is None:
        used = [aggregate.expression for _, aggregate in select.aggregates]
        values = frozenset(
            name for expression in used if expression is not None for name in variables_of(expression)
        )
        part = part_of(select.where, catalog, values if _needs_ids(select) else frozenset())
        value = partial(_of_part, part)
    assert select.variables is not None
    of_each, named = dict(select.aggregates), dict[Variable, Any](select.extends)
    wanted = [named[variable] for variable in select.variables]

    def rows() -> Sequence[Row]:
        found = {variable: value(aggregate) for variable, aggregate in of_each.items()}
        return [[found[variable] for variable in wanted]]

    return part, rows


def _needs_ids(select: Select) -> bool:
    return any(aggregate.name != "COUNT" for _, aggregate in select.aggregates)


def _of_part(part: Part, aggregate: Aggregate) -> Cell:
    """An aggregate of all solutions. Raises NotCounted."""
    expression = aggregate.expression
    if aggregate.name == "COUNT":
        if expression is None and not aggregate.distinct:
            return _integer(part.total())
        if not isinstance(expression, Variable) or expression.name not in part.certain:
            raise NotCounted
        return _integer(part.distinct(expression.name) if aggregate.distinct else part.total())
    if aggregate.distinct or expression is None:
        raise NotCounted
    names = variables_of(expression)
    if len(names) != 1 or not names <= part.certain:
        raise NotCounted
    (name,) = names
    column, weights = part.column(name), part.weights(name)
    if weights.terms.ids is not column.ids:
        raise NotCounted
    occurs = weights.values > 0.0
    if not occurs.any():
        raise NotCounted  # what is made of nothing depends on the aggregate
    match aggregate.name:
        case "SUM" | "AVG":
            return _total(aggregate.name, _number(expression, column), weights.values)
        case "MIN" | "MAX":
            return _extreme(aggregate.name, expression, column, occurs)
    raise NotCounted


def _number(expression: Expression, column: Column) -> Vector:
    """An integer or a decimal for each term. Raises NotCounted."""
    return number_of(computed(expression, column), column)


def _total(name: str, number: Vector, weights: npt.NDArray[np.float64]) -> Cell:
    """SUM or AVG."""
    count = whole(weights)
    if int(np.abs(number.values).max()) * count > _INTEGER_MAX:
        raise NotCounted
    total = int(np.dot(np.broadcast_to(number.values, weights.shape), weights.astype(np.int64)))
    return _sum(total, number) if name == "SUM" else _average(total, count, number)


def _sum(total: int, number: Vector) -> str:
    return _integer(total) if number.rep is Rep.INTEGER else _decimal(total, number.scale)


def _average(total: int, count: int, number: Vector) -> str:
    """A decimal, cut off after its last place."""
    scaled = abs(total) * 10 ** (_DECIMAL_PLACES - number.scale) // count
    return _decimal(scaled if total >= 0 else -scaled, _DECIMAL_PLACES)


def _extreme(name: str, expression: Expression, column: Column, occurs: npt.NDArray[np.bool_]) -> Cell:
    is_least = name == "MIN"
    if isinstance(expression, Variable):
        ranks = _ranks_of(column)
        best = np.where(occurs, ranks, np.iinfo(np.int64).max if is_least else -1)
        return int(column.ids[best.argmin() if is_least else best.argmax()])
    number = _number(expression, column)
    values = np.broadcast_to(number.values, occurs.shape)[occurs]
    found = int(values.min() if is_least else values.max())
    return _sum(found, number)


def _ranks_of(column: Column) -> Ids:
    """The places of the terms in the order of their values. Raises NotCounted of terms of several kinds."""
    if len(column.tags) == 1 and column.tags <= _ORDERED:
        return np.arange(len(column.ids))
    if column.tags <= INTEGERS or column.tags <= DECIMALS:
        return np.argsort(np.argsort(column.read.numbers().values))
    if len(column.tags) == 1:
        if column.tags == {Tag.STRING}:
            with suppress(NotCounted):
                return column.ranks()
        return column.texts(_OF_TEXT).ranks()
    raise NotCounted


def _integer(value: int) -> str:
    return f'"{value}"^^<{XSD}integer>'


def _decimal(value: int, scale: int) -> str:
    return f"{MARK}D{value * 10 ** (_DECIMAL_PLACES - scale)}"


def is_of_all_quads(query: AbstractQuery) -> bool:
    """Whether it is counted, if it is, from statistics alone, however many quads fit its pattern."""
    return _all_quads(query.select) is not None


def _all_quads(select: Select) -> tuple[tuple[str, str, str], Expression | None] | None:
    """The variables of a pattern that all quads match, and its filter; None of other patterns."""
    where: Algebra = select.where
    test: Expression | None = None
    if isinstance(where, Filter):
        test, where = where.expression, where.pattern
    match where:
        case Bgp(triples=(TriplePattern(Variable() as s, Variable() as p, Variable() as o),)):
            return (s.name, p.name, o.name), test
    return None


def _of_all_quads(select: Select, catalog: Catalog) -> Callable[[Aggregate], Cell] | None:
    """What gives the counts of a pattern that all quads match, whose variables are three; one of them may be
    filtered by the kind of its terms. None of other patterns. Raises NotCounted.
    """
    found = _all_quads(select)
    if found is None:
        return None
    names, test = found
    if len(set(names)) < 3:
        raise NotCounted

    def value(aggregate: Aggregate) -> Cell:
        if aggregate.name != "COUNT":
            raise NotCounted
        match aggregate.expression:
            case Variable(name=name) if aggregate.distinct and test is None and name in names:
                return _integer(_distinct(catalog, _ENDS[names.index(name)]))
            case None if not aggregate.distinct:
                pass
            case Variable(name=name) if not aggregate.distinct and name in names:
                pass
            case _:
                raise NotCounted
        if test is None:
            return _integer(sum(entry.quads for entry in catalog.predicates.values()))
        tested = variables_of(test)
        for column, name in (("s", names[0]), ("o", names[2])):
            if tested == {name}:
                return _integer(_of_kinds(catalog, column, name, test))
        raise NotCounted

    return value


def _distinct(catalog: Catalog, what: str) -> int:
    if what == "predicates":
        return sum(entry.quads > 0 for entry in catalog.predicates.values())
    found = catalog.distinct(what)
    if found is None:
        raise NotCounted
    return found


def _of_kinds(catalog: Catalog, column: str, name: str, test: Expression) -> int:
    """The quads whose term at an end passes a test that looks at the kind alone: no texts are there."""
    if not isinstance(test, BuiltInCall) or not test.name.startswith("IS"):
        raise NotCounted
    counts = catalog.quads_of_tags(column)
    tags = np.array([int(tag) << PAYLOAD_BITS for tag in sorted(counts)], np.int64)
    passes = computed(test, Column(name, tags, Unread())).values
    return sum(counts[tag] for tag, has_passed in zip(sorted(counts), passes, strict=True) if has_passed)


def _grouped(select: Select, catalog: Catalog) -> tuple[Part, Callable[[], Sequence[Row]]]:
    """What gives the solutions of a query with one key: a variable of the pattern. Raises NotCounted."""
    (key,) = select.keys
    part = part_of(select.where, catalog, frozenset((key.name,)))
    if key.name not in part.certain:
        raise NotCounted
    return part, partial(_rows_of_groups, select, part, key)


def _rows_of_groups(select: Select, part: Part, key: Variable) -> Sequence[Row]:
    """Raises NotCounted."""
    groups = _Groups(part, key.name)
    columns: dict[Variable, _GroupColumn] = {
        variable: groups.column(aggregate) for variable, aggregate in select.aggregates
    }
    columns[key] = _GroupColumn(None, lambda chosen: groups.ids[chosen].tolist())
    for variable, source in select.extends:
        if not isinstance(source, Variable):
            raise NotCounted
        columns[variable] = columns[source]
    chosen = _ordered(select, columns, np.flatnonzero(groups.weights))
    assert select.variables is not None
    return list(zip(*(columns[variable].cells(chosen) for variable in select.variables), strict=True))


@dataclass(frozen=True, slots=True)
class _GroupColumn:
    """order sorts the groups by it, (n,) float64; None where that is not known. cells are those of groups."""

    order: npt.NDArray[np.float64] | None
    cells: Callable[[Ids], list[Cell]]


class _Groups:
    """The terms of a key, by their numbers, and how many solutions each has."""

    def __init__(self, part: Part, key: str) -> None:
        found = part.weights(key)
        if found.terms.ids is None:
            raise NotCounted
        self._part, self._key = part, key
        self.ids, self.weights = found.terms.ids, found.values.astype(np.float64)

    def column(self, aggregate: Aggregate) -> _GroupColumn:
        """The values of an aggregate. Raises NotCounted."""
        expression = aggregate.expression
        if aggregate.name == "COUNT" and not aggregate.distinct:
            if expression is not None:
                self._check_bound(expression)
            return _counts(self.weights)
        names = frozenset() if expression is None else variables_of(expression)
        if expression is None or len(names) != 1 or not isinstance(self._part, Tree):
            raise NotCounted
        edge = next(
            (one for one in self._part.edges if {one.subject, one.object} == {self._key, *names}), None
        )
        if edge is None or names == {self._key}:
            raise NotCounted
        return self._of_edge(self._part, edge, aggregate, expression)

    def _check_bound(self, expression: Expression) -> None:
        if not isinstance(expression, Variable) or expression.name not in self._part.certain:
            raise NotCounted

    def _of_edge(self, tree: Tree, edge: Edge, aggregate: Aggregate, expression: Expression) -> _GroupColumn:
        """Of an expression of the variable at the other end of an edge from the key."""
        other = edge.other(self._key)
        far, column = edge.relation, edge.column(other)
        ends = far.ends(column, by_ids=True)
        values = far.column(column, other)
        quads = self._quads(tree, edge, ends)
        match aggregate.name, expression:
            case "COUNT", Variable() if aggregate.distinct:
                counts = np.zeros(len(self.ids))
                for groups, _, _ in quads:
                    add_at(counts, groups, None)
                return _counts(counts)
            case "SAMPLE" | "MIN" | "MAX" as name, Variable():
                ranks = np.arange(len(values.ids)) if name == "SAMPLE" else _ranks_of(values)
                best = np.full(len(self.ids), -1 if name == "MAX" else len(ranks))
                extreme = np.maximum if name == "MAX" else np.minimum
                for groups, codes, _ in quads:
                    extreme.at(best, groups, ranks[codes])
                by_rank = np.empty_like(values.ids)
                by_rank[ranks] = values.ids
                return _GroupColumn(None, lambda chosen: by_rank[best[chosen]].tolist())
            case "SUM" | "AVG" as name, _ if not aggregate.distinct:
                number = _number(expression, values)
                of_values = np.broadcast_to(number.values, values.ids.shape)
                totals, peak = np.zeros(len(self.ids)), 0.0
                for groups, codes, weights in quads:
                    each = of_values[codes] * weights
                    peak += float(np.abs(each).sum())
                    add_at(totals, groups, each)
                if peak >= EXACT:
                    raise NotCounted
                return self._sums(name, totals, number)
        raise NotCounted

    def _quads(self, tree: Tree, edge: Edge, values: Ends) -> Iterator[tuple[Array, Array, Array]]:
        """Of each quad of an edge that some solution has: its group, the place of its value, its weight."""
        keys = tree.ends(edge, self._key)
        groups = self._places(keys)
        for piece, weights in zip(pieces(len(keys.codes)), tree.of_pieces(edge), strict=True):
            which = np.flatnonzero(weights)
            yield groups[keys.codes[piece][which]], values.codes[piece][which], weights[which]

    def _sums(self, name: str, totals: npt.NDArray[np.float64], number: Vector) -> _GroupColumn:
        if name == "SUM":
            return _GroupColumn(totals, lambda chosen: [_sum(int(one), number) for one in totals[chosen]])
        return _GroupColumn(
            None,
            lambda chosen: [
                _average(int(total), int(count), number)
                for total, count in zip(totals[chosen], self.weights[chosen], strict=True)
            ],
        )

    def _places(self, ends: Ends) -> Ids:
        """The group of each term at an end; that of a term that no solution has does not matter."""
        assert ends.terms.ids is not None
        if ends.terms.ids is self.ids:
            return np.arange(len(self.ids))
        return np.minimum(np.searchsorted(self.ids, ends.terms.ids), max(len(self.ids) - 1, 0))


def _counts(values: npt.NDArray[np.float64]) -> _GroupColumn:
    return _GroupColumn(values, lambda chosen: [_integer(int(one)) for one in values[chosen]])


def _ordered(select: Select, columns: Mapping[Variable, _GroupColumn], places: Ids) -> Ids:
    """The groups of an answer, in their order. Raises NotCounted."""
    start = select.start or 0
    end = None if select.length is None else start + select.length
    for condition in reversed(select.order):
        if not isinstance(condition.expression, Variable):
            raise NotCounted
        order = columns[condition.expression].order
        if order is None:
            raise NotCounted
        values = -order[places] if condition.descending else order[places]
        if len(select.order) == 1 and end is not None and 0 < end < len(places) // 4:
            first = np.argpartition(values, end - 1)[:end]
            places, values = places[first], values[first]
        places = places[np.argsort(values, kind="stable")]
    return places[start:end]
