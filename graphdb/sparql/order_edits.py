"""ORDER BY, MIN and MAX in the engine's text: sorted and chosen by the keys of `term_order`.

A SELECT that is ordered becomes a sub-select without its order, around which BINDs give the rows their keys:

    SELECT ?a (STRLEN(?b) AS ?c) WHERE { P } ORDER BY ?b LIMIT 5
    SELECT ?a ?c WHERE { { SELECT ?a (STRLEN(?b) AS ?c) ?b WHERE { P } } BINDs } ORDER BY keys LIMIT 5

So every condition is evaluated once for each row, and RAND() orders at random instead of differently at each
comparison. What is known to be of one kind that the engine compares well, such as a COUNT, is left to it.
"""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from graphdb.sparql.lexer import tokens
from graphdb.sparql.patterns import (
    Aggregate,
    BuiltInCall,
    Expression,
    Projection,
    SubSelect,
)
from graphdb.sparql.syntax import Query
from graphdb.sparql.tables import load_tables
from graphdb.sparql.term_order import MAXIMUM, MINIMUM, key_bindings, key_conditions
from graphdb.sparql.terms import Iri, RdfLiteral, Span, Variable
from graphdb.sparql.text_edits import TextEdits, names_besides
from graphdb.sparql.tree_walk import has_aggregate, nodes_below

__all__ = ["choose_by_keys", "sort_by_keys", "sorts_by_keys"]

_Ordered: TypeAlias = Query | SubSelect

# What these give is of one kind, in which the engine's comparison is total: integers, simple texts or IRIs.
_OF_ONE_KIND = frozenset(
    {"COUNT", "DAY", "HOURS", "MINUTES", "MONTH", "STRLEN", "YEAR"}
    | {"DATATYPE", "LANG", "MD5", "SHA1", "SHA256", "SHA384", "SHA512", "STRUUID", "TZ"}
)
_CHOOSERS = {"MIN": MINIMUM, "MAX": MAXIMUM}


def sorts_by_keys(node: _Ordered) -> bool:
    """Whether `sort_by_keys` changes the text of a query or sub-select."""
    columns = _computed(node)
    return any(not _is_of_one_kind(each.expression, columns) for each in node.modifiers.order_by)


def choose_by_keys(text: str, aggregate: Aggregate, edits: TextEdits) -> None:
    """Have MIN or MAX choose in the order of terms. Other aggregates stay as they are."""
    name, expression = _CHOOSERS.get(aggregate.name), aggregate.expression
    if name is None or expression is None or _is_of_one_kind(expression, {}):
        return
    start = aggregate.span.start
    edits.replace(Span(start, start + 3), f"<{name}>")
    if aggregate.distinct:  # which makes no difference, and the engine takes it for its own aggregates only
        head = tokens(load_tables(), text[start : expression.span.start])
        word = next(each for each in head if each.terminal == "DISTINCT")
        edits.replace(Span(start + word.start, start + word.end), "")


def sort_by_keys(
    text: str, node: _Ordered, shown: Sequence[str], names: Mapping[str, str], edits: TextEdits
) -> None:
    """Have a query or sub-select sort by keys, after all other changes to its text.

    shown: the columns of a SELECT as the text has them now; of another form, what its template may read.
    names: the new names of variables that have one.
    """
    if not sorts_by_keys(node):
        return
    clause = _order_clause(text, node)
    assert node.where is not None or isinstance(node, Query)
    if node.where is None or not shown or (isinstance(node, Query) and node.form == "ASK"):
        edits.replace(clause, "")  # one row, rows of nothing, or a word: they have no order
        return
    fresh = f"{next(names_besides(text, 'order'))}_"
    sorting = _Sorting(text, node, names, fresh, edits)
    items, binds, keys = sorting.items(shown), sorting.bindings, sorting.conditions
    values = _written_values(text, node, edits)
    inner = (
        f"{{ SELECT {items} WHERE {edits.written(node.where.span)} "
        f"{edits.written(Span(node.where.span.end, clause.start))} {values}}}"
    )
    pattern = f"{{ {inner} {' '.join(binds)} }} ORDER BY {key_conditions(keys, fresh)}{_slice(node)}"
    end = len(text) if isinstance(node, Query) else node.span.end
    if node.select is None:
        edits.replace(Span(node.where.span.start, end), pattern)
        return
    word = " DISTINCT" if node.select.distinct else " REDUCED" if node.select.reduced else ""
    columns = " ".join(f"?{name}" for name in shown)
    edits.replace(Span(node.select.span.start, end), f"SELECT{word} {columns} WHERE {pattern}")


class _Sorting:
    """The conditions of one ORDER BY: where each gets its value, and its keys."""

    def __init__(
        self, text: str, node: _Ordered, names: Mapping[str, str], fresh: str, edits: TextEdits
    ) -> None:
        self._text, self._node, self._names, self._fresh, self._edits = text, node, names, fresh, edits
        self._computed = _computed(node)
        columns = () if node.select is None else (node.select,)
        self._is_grouped = bool(node.modifiers.group_by) or has_aggregate(node.modifiers, *columns)
        keys = (key.variable or key.expression for key in node.modifiers.group_by)
        self._group_keys = {self._name(key.name) for key in keys if isinstance(key, Variable)}
        self.bindings: list[str] = []
        self.conditions: list[tuple[str, bool]] = []

    def items(self, shown: Sequence[str]) -> str:
        """What the sub-select projects: the columns, and what the conditions read of its rows besides."""
        select, more = self._node.select, dict[str, None]()
        for number, condition in enumerate(self._node.modifiers.order_by):
            variable = self._variable(condition.expression, number, shown, more)
            if variable is not None:
                self.bindings.append(key_bindings(variable, len(self.conditions), self._fresh))
                self.conditions.append((variable, condition.descending))
        if select is None or select.projections is None:
            columns = " ".join(f"?{name}" for name in shown)
        else:
            columns = self._edits.written(Span(select.projections[0].span.start, select.span.end))
        return " ".join((columns, *more))

    def _variable(
        self, expression: Expression, number: int, shown: Sequence[str], more: dict[str, None]
    ) -> str | None:
        """The variable that has a condition's value around the sub-select. None where it never has one."""
        if isinstance(expression, Variable):
            name = self._name(expression.name)
            if name not in shown:
                if self._is_grouped and name not in self._group_keys:
                    return None
                more[f"?{name}"] = None
            return name
        name = f"{self._fresh}o{number}"
        if self._is_grouped and not has_aggregate(expression):
            more.update({f"?{key}": None for key in sorted(self._group_keys.difference(shown))})
            self.bindings.append(f"BIND(({self._written(expression)}) AS ?{name})")
            return name
        if self._is_grouped:  # the engine reads no column in another one of a group
            for part in nodes_below(expression):
                if isinstance(part, Variable) and (column := self._computed.get(part.name)) is not None:
                    self._edits.replace(part.span, f"({self._written(column)})")
        more[f"({self._written(expression)} AS ?{name})"] = None
        return name

    def _written(self, expression: Expression) -> str:
        return self._edits.written(expression.span)

    def _name(self, old: str) -> str:
        return self._names.get(old, old)


def _computed(node: _Ordered) -> dict[str, Expression]:
    """The columns that AS names."""
    columns: Sequence[Projection] = (node.select.projections or ()) if node.select is not None else ()
    return {each.variable.name: each.expression for each in columns if each.expression is not None}


def _is_of_one_kind(expression: Expression | None, columns: Mapping[str, Expression]) -> bool:
    if isinstance(expression, Variable):
        expression = columns.get(expression.name)
    match expression:
        case Aggregate(name=name) | BuiltInCall(name=name):
            return name in _OF_ONE_KIND
        case Iri() | RdfLiteral():
            return True
    return False


def _order_clause(text: str, node: _Ordered) -> Span:
    """ORDER BY and its conditions."""
    first, last = node.modifiers.order_by[0].span, node.modifiers.order_by[-1].span
    begin = _last_end(node)
    found = [each for each in tokens(load_tables(), text[begin : first.start]) if each.terminal == "ORDER"]
    return Span(begin + found[-1].start, last.end)


def _last_end(node: _Ordered) -> int:
    """Where the last clause before ORDER BY ends, or an earlier one."""
    modifiers = node.modifiers
    if modifiers.having:
        return modifiers.having[-1].span.end
    if modifiers.group_by:
        return modifiers.group_by[-1].span.end
    if node.where is not None:
        return node.where.span.end
    return 0


def _written_values(text: str, node: _Ordered, edits: TextEdits) -> str:
    """The VALUES at the end, without what other changes put behind it."""
    if node.values is None:
        return ""
    start, end = node.values.span
    return f"VALUES {edits.written(Span(start, end - 1))}{text[end - 1]} "


def _slice(node: _Ordered) -> str:
    limit, offset = node.modifiers.limit, node.modifiers.offset
    return (f" OFFSET {offset}" if offset is not None else "") + (
        f" LIMIT {limit}" if limit is not None else ""
    )
