"""ORDER BY, MIN and MAX for the engine: sorted and chosen by the keys of `term_order`.

A SELECT that is ordered becomes a sub-select without its order, around which BINDs give the rows their keys:

    SELECT ?a (STRLEN(?b) AS ?c) WHERE { P } ORDER BY ?b LIMIT 5
    SELECT ?a ?c WHERE { { SELECT ?a (STRLEN(?b) AS ?c) ?b WHERE { P } } BINDs } ORDER BY keys LIMIT 5

So every condition is evaluated once for each row, and RAND() orders at random instead of differently at each
comparison. What is known to be of one kind that the engine compares well, such as a COUNT, is left to it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from graphdb.sparql.algebra import Extend, Group, OrderBy, Project, Select, Spelled, variables_in_scope
from graphdb.sparql.patterns import Aggregate, BuiltInCall, OrderCondition
from graphdb.sparql.term_order import KEY, MAXIMUM, MINIMUM, NAN, REST
from graphdb.sparql.terms import Iri, RdfLiteral, Variable
from graphdb.sparql.translation import FreshNames
from graphdb.sparql.tree_walk import all_below, rewritten

__all__ = ["chooses", "choosing_by_keys", "ordered_by_keys", "sorting_by_keys"]

# What these give is of one kind, in which the engine's comparison is total: integers, simple texts or IRIs.
_OF_ONE_KIND = frozenset(
    {"COUNT", "DAY", "HOURS", "MINUTES", "MONTH", "STRLEN", "YEAR"}
    | {"DATATYPE", "LANG", "MD5", "SHA1", "SHA256", "SHA384", "SHA512", "STRUUID", "TZ"}
)
_CHOOSERS = {"MIN": MINIMUM, "MAX": MAXIMUM}

_XSD = "http://www.w3.org/2001/XMLSchema#"
_LAST = f'"INF"^^<{_XSD}double>'  # the first key of infinity, NaN and all dateTimes


def chooses(node: Any) -> bool:
    """Whether a node is a `Group` with MIN or MAX."""
    return isinstance(node, Group) and any(each.name in _CHOOSERS for _, each in node.aggregates)


def choosing_by_keys(node: Any) -> Any:
    """A node; of a `Group` the MIN and MAX choose in the order of terms."""
    if not isinstance(node, Group):
        return node
    return replace(node, aggregates=tuple([(name, _chooser(each)) for name, each in node.aggregates]))


def _chooser(aggregate: Aggregate) -> Aggregate:
    name = _CHOOSERS.get(aggregate.name)
    if name is None or _is_of_one_kind(aggregate.expression, {}):
        return aggregate
    # DISTINCT makes no difference, and the engine takes it for its own aggregates only
    return replace(aggregate, name=name, distinct=False)


def sorting_by_keys(pattern: Any, fresh: FreshNames) -> Any:
    """A pattern in which the ORDER BY of every SELECT goes by keys."""

    def change(node: Any) -> Any:
        if isinstance(node, Project) and isinstance(node.pattern, OrderBy):
            return ordered_by_keys(Select.of(node), fresh).pattern()
        return node

    return rewritten(pattern, change)


def ordered_by_keys(select: Select, fresh: FreshNames) -> Select:
    """A query or sub-select, sorted by keys if by anything that the engine does not compare well."""
    columns = {variable.name: expression for variable, expression in (*select.aggregates, *select.extends)}
    if all(_is_of_one_kind(condition.expression, columns) for condition in select.order):
        return select
    shown = _shown(select)
    if not shown:
        return replace(select, order=())  # rows of nothing have no order
    sorting = _Sorting(select, shown, fresh.prefix("order") + "_")
    inner = replace(
        select,
        extends=sorting.within,
        order=(),
        variables=sorting.variables,
        modifier=None,
        start=None,
        length=None,
    )
    pattern = inner.pattern()
    for variable, expression in sorting.around:
        pattern = Extend(pattern, variable, expression)
    return Select(
        pattern,
        order=sorting.conditions,
        variables=None if select.variables is None else shown,
        modifier=select.modifier,
        start=select.start,
        length=select.length,
    )


def _shown(select: Select) -> tuple[Variable, ...]:
    """The columns of a SELECT; of another form, what its template may read."""
    if select.variables is not None:
        return select.variables
    if select.is_grouped:
        return select.keys
    return tuple(map(Variable, sorted(variables_in_scope(select.pattern()))))


class _Sorting:
    """The conditions of one ORDER BY: where each gets its value, and its keys."""

    def __init__(self, select: Select, shown: Sequence[Variable], fresh: str) -> None:
        self._select, self._fresh = select, fresh
        self._columns = dict.fromkeys(shown)
        self._within = list(select.extends)
        self._around: list[tuple[Variable, Any]] = []
        sorted_by: list[tuple[Variable, bool]] = []
        for number, condition in enumerate(select.order):
            variable = self._variable(condition.expression, number)
            if variable is not None:
                self._around += _keys_of(variable.name, len(sorted_by), fresh)
                sorted_by.append((variable, condition.descending))
        self.conditions: tuple[OrderCondition, ...] = _key_conditions(sorted_by, fresh)

    @property
    def within(self) -> tuple[tuple[Variable, Any], ...]:
        """What the sub-select computes."""
        return tuple(self._within)

    @property
    def variables(self) -> tuple[Variable, ...]:
        """What the sub-select projects: the columns, and what the conditions read of its rows besides."""
        return tuple(self._columns)

    @property
    def around(self) -> tuple[tuple[Variable, Any], ...]:
        """What is computed around the sub-select."""
        return tuple(self._around)

    def _variable(self, expression: Any, number: int) -> Variable | None:
        """The variable that has a condition's value around the sub-select. None where it never has one."""
        if isinstance(expression, Variable):
            if expression not in self._columns and not self._has_value(expression):
                return None
            self._columns[expression] = None
            return expression
        name = Variable(f"{self._fresh}o{number}")
        if not self._select.is_grouped:
            self._within.append((name, expression))
            self._columns[name] = None
            return name
        # The engine reads no column in another one of a group, so the condition is computed around it.
        read = {
            node for node in all_below(expression) if isinstance(node, Variable) and self._has_value(node)
        }
        self._columns.update(dict.fromkeys(sorted(read, key=lambda variable: variable.name)))
        self._around.append((name, expression))
        return name

    def _has_value(self, variable: Variable) -> bool:
        """Whether the sub-select can project it."""
        select = self._select
        if not select.is_grouped:
            return True
        return variable in (*select.keys, *dict(select.aggregates), *dict(select.extends))


def _is_of_one_kind(expression: Any, columns: Mapping[str, Any]) -> bool:
    for _ in range(2):  # a column, which may be an aggregate's value
        if isinstance(expression, Variable):
            expression = columns.get(expression.name)
    match expression:
        case Aggregate(name=name) | BuiltInCall(name=name):
            return name in _OF_ONE_KIND
        case Iri() | RdfLiteral():
            return True
    return False


def _keys_of(v: str, number: int, fresh: str) -> list[tuple[Variable, Any]]:
    """The two keys of one condition of ORDER BY, made from a variable. They are spelled out, for all of the
    time that it takes to make them is the writing.
    """
    v, k, none = f"?{v}", f"?{fresh}k{number}", f"?{fresh}u"
    first = (
        # The engine's own cast of a decimal is not monotonic in the last digit; that of a text is.
        f"COALESCE(IF(ISNUMERIC({v}),IF({v}={v},<{_XSD}double>(IF(DATATYPE({v})=<{_XSD}decimal>,"
        f"STR({v}),{v})),{_LAST}),{none}),"
        # Only a dateTime has a year and hours.
        f"IF(ISNUMERIC(YEAR({v})+HOURS({v})),{_LAST},{none}),<{KEY}>({v}))"
    )
    second = (
        f"IF({k}={_LAST},IF(ISNUMERIC({v}),IF({v}={v},{none},<{NAN}>),"
        f'IF(TZ({v})="",STRDT(CONCAT(STR({v}),"Z"),<{_XSD}dateTime>),{v})),'
        f"IF(ISNUMERIC({k}),COALESCE(IF(DATATYPE({v})=<{_XSD}integer>,IF(ABS({v})<{2**53},0,{none}),"
        f"IF(DATATYPE({v})=<{_XSD}decimal>,{v}-<{_XSD}decimal>(STR({k})),IF(ISNUMERIC({v}),0,{none}))),"
        f"<{REST}>({v})),{none}))"
    )
    return [(Variable(k[1:]), Spelled(first)), (Variable(f"{fresh}x{number}"), Spelled(second))]


def _key_conditions(conditions: Sequence[tuple[Variable, bool]], fresh: str) -> tuple[OrderCondition, ...]:
    """Of ORDER BY, for conditions that have their `_keys_of`, numbered from 0.

    conditions: for each its variable, and whether it descends.
    """
    values, terms = [], []
    for number, (variable, descending) in enumerate(conditions):
        v, k = f"?{variable.name}", f"?{fresh}k{number}"
        values += [OrderCondition(Variable(f"{fresh}{key}{number}"), descending) for key in "kx"]
        # Only for rows that tie in all values is this evaluated.
        last = (
            f"IF(ISNUMERIC({v})&&DATATYPE({v})=<{_XSD}integer>,0,IF(ISNUMERIC({k}),"
            f"COALESCE(TZ({v}),CONCAT(STR(DATATYPE({v})),STR({v}))),?{fresh}u))"
        )
        terms.append(OrderCondition(Spelled(last), descending))  # type: ignore[arg-type]
    return (*values, *terms)
