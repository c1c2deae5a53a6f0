"""Queries and sub-selects, and the rules on what SELECT may project."""

from collections.abc import Iterator
from typing import Any

from graphdb.sparql.building.groups import PatternBuilder
from graphdb.sparql.patterns import (
    And,
    Arithmetic,
    BuiltInCall,
    Comparison,
    Expression,
    FunctionCall,
    GroupCondition,
    GroupGraphPattern,
    In,
    InlineData,
    Not,
    Or,
    OrderCondition,
    Projection,
    SelectClause,
    Signed,
    SolutionModifiers,
    SubSelect,
    TriplesBlock,
    variables_of_triples,
)
from graphdb.sparql.syntax import DatasetClause, Query
from graphdb.sparql.terms import Iri, Span, TripleTerm, Variable

__all__ = ["QueryBuilder"]

COUNT_DIGITS_MAX = 18  # of LIMIT and OFFSET


def _parts_of(expression: Expression) -> tuple[Any, ...]:
    """The expressions right within one, but for aggregates and EXISTS, whose variables are their own."""
    match expression:
        case Or() | And():
            return expression.operands
        case Comparison():
            return expression.left, expression.right
        case In():
            return (expression.expression, *expression.options)
        case Arithmetic():
            return (expression.first, *(operand for _, operand in expression.rest))
        case Not() | Signed():
            return (expression.operand,)
        case BuiltInCall() | FunctionCall():
            return expression.arguments
        case TripleTerm():
            return expression.subject, expression.predicate, expression.object
        case _:
            return ()


def _free_variables(expression: Expression) -> Iterator[Variable]:
    waiting = [expression]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Variable):
            yield part
        waiting.extend(_parts_of(part))


class QueryBuilder(PatternBuilder):
    # Forms

    def query_unit(self, parts: list[Any], start: int, end: int) -> Query:
        query: Query = parts[0]
        return query

    def select_query(self, parts: list[Any], start: int, end: int) -> Query:
        prologue, select, dataset, where, modifiers, values = parts
        self._check_select(select, where, modifiers, values, start)
        return self._query("SELECT", prologue, dataset, where, modifiers, values, select=select)

    def construct_query(self, parts: list[Any], start: int, end: int) -> Query:
        prologue, template, dataset, where, modifiers, values = parts
        self.claim_aggregates(start)
        return self._query("CONSTRUCT", prologue, dataset, where, modifiers, values, template=template)

    def construct_short(self, parts: list[Any], start: int, end: int) -> Query:
        prologue, dataset, where, modifiers, values = parts
        self.claim_aggregates(start)
        template = where.elements[0].triples if where.elements else ()
        return self._query("CONSTRUCT", prologue, dataset, where, modifiers, values, template=template)

    def describe_query(self, parts: list[Any], start: int, end: int) -> Query:
        prologue, described, dataset, where, modifiers, values = parts
        self.claim_aggregates(start)
        return self._query("DESCRIBE", prologue, dataset, where, modifiers, values, described=described)

    def ask_query(self, parts: list[Any], start: int, end: int) -> Query:
        prologue, dataset, where, modifiers, values = parts
        self.claim_aggregates(start)
        return self._query("ASK", prologue, dataset, where, modifiers, values)

    def sub_select(self, parts: list[Any], start: int, end: int) -> SubSelect:
        select, where, modifiers, values = parts
        self._check_select(select, where, modifiers, values, start)
        if select.projections is None:
            own = {variable.name for variable in values.variables} if values is not None else set()
            variables = where.variables | own
        else:
            variables = frozenset(projection.variable.name for projection in select.projections)
        return SubSelect(select, where, modifiers, values, variables, Span(start, end))

    def _query(
        self,
        form: str,
        prologue: Any,
        dataset: tuple[DatasetClause, ...],
        where: GroupGraphPattern | None,
        modifiers: SolutionModifiers,
        values: InlineData | None,
        **own: Any,
    ) -> Query:
        return Query(
            text=self.text,
            form=form,
            prologue=prologue,
            dataset=dataset,
            where=where,
            modifiers=modifiers,
            values=values,
            service_hosts=tuple(self.service_hosts),
            base_iri=self.passed_base,
            **own,
        )

    # Clauses

    def select_clause(self, parts: list[Any], start: int, end: int) -> SelectClause:
        word = (parts[0] or "").upper()
        star = parts[1] == "*"
        projections = None if star else tuple(parts[1:])
        return SelectClause(projections, word == "DISTINCT", word == "REDUCED", Span(start, end))

    def projection(self, parts: list[Any], start: int, end: int) -> Projection:
        expression = parts[0] if len(parts) == 2 else None
        return Projection(parts[-1], expression, Span(start, end))

    def construct_template(self, parts: list[Any], start: int, end: int) -> tuple[Any, ...]:
        return tuple(parts[0] or ())

    def construct_where(self, parts: list[Any], start: int, end: int) -> GroupGraphPattern:
        triples = tuple(parts[0] or ())
        block = (TriplesBlock(triples, Span(start + 1, end - 1)),) if triples else ()
        return GroupGraphPattern(block, frozenset(variables_of_triples(triples)), Span(start, end))

    def described(self, parts: list[Any], start: int, end: int) -> tuple[Iri | Variable, ...] | None:
        return None if parts[0] == "*" else tuple(parts)

    def dataset_clauses(self, parts: list[Any], start: int, end: int) -> tuple[DatasetClause, ...]:
        return tuple(parts)

    def dataset_clause(self, parts: list[Any], start: int, end: int) -> DatasetClause:
        return DatasetClause(parts[1], parts[0] is not None)

    def values_clause(self, parts: list[Any], start: int, end: int) -> InlineData | None:
        values: InlineData | None = parts[0]
        return values

    # Solution modifiers

    def solution_modifier(self, parts: list[Any], start: int, end: int) -> SolutionModifiers:
        group_by, having, order_by, (limit, offset) = *parts[:3], parts[3] or (None, None)
        return SolutionModifiers(group_by or (), having or (), order_by or (), limit, offset)

    def group_clause(self, parts: list[Any], start: int, end: int) -> tuple[Any, ...]:
        self.refuse_aggregates(start, "GROUP BY")
        return tuple(parts)

    def having_clause(self, parts: list[Any], start: int, end: int) -> tuple[Any, ...]:
        return tuple(parts)

    order_clause = having_clause

    def group_condition(self, parts: list[Any], start: int, end: int) -> GroupCondition:
        return GroupCondition(parts[0], parts[1] if len(parts) > 1 else None, Span(start, end))

    def order_condition(self, parts: list[Any], start: int, end: int) -> OrderCondition:
        descending = isinstance(parts[0], str) and parts[0].upper() == "DESC"
        return OrderCondition(parts[-1], descending, Span(start, end))

    def limit_offset_clauses(self, parts: list[Any], start: int, end: int) -> tuple[int | None, int | None]:
        counts: dict[str, int] = dict(part for part in parts if part is not None)
        return counts.get("LIMIT"), counts.get("OFFSET")

    def limit_clause(self, parts: list[Any], start: int, end: int) -> tuple[str, int]:
        return "LIMIT", self._count(parts[0], end)

    def offset_clause(self, parts: list[Any], start: int, end: int) -> tuple[str, int]:
        return "OFFSET", self._count(parts[0], end)

    def _count(self, digits: str, end: int) -> int:
        significant = digits.lstrip("0")
        if len(significant) > COUNT_DIGITS_MAX:
            raise self.fault("the number is too large", end - len(digits))
        return int(significant or "0")

    # Rules (SPARQL 1.2 Query, sections 11.4, 18.3.1 and the notes on the grammar)

    def _check_select(
        self,
        select: SelectClause,
        where: GroupGraphPattern,
        modifiers: SolutionModifiers,
        values: InlineData | None,
        start: int,
    ) -> None:
        aggregated = self.claim_aggregates(start)
        grouped = aggregated or bool(modifiers.group_by)
        if select.projections is None:
            if grouped:
                raise self.fault("SELECT * cannot be grouped: name the columns", select.span.start)
            return
        visible = self._group_keys(modifiers) if grouped else set(where.variables)
        visible |= {variable.name for variable in values.variables} if values is not None else set()
        columns: set[str] = set()
        for projection in select.projections:
            if grouped:
                self._check_grouped(projection, visible)
            name = projection.variable.name
            if projection.expression is not None:
                if name in visible or name in columns:
                    reason = f"?{name} has a value already and cannot be set by AS"
                    raise self.fault(reason, projection.variable.span.start)
                visible.add(name)
            columns.add(name)

    def _group_keys(self, modifiers: SolutionModifiers) -> set[str]:
        keys = (condition.variable or condition.expression for condition in modifiers.group_by)
        return {key.name for key in keys if isinstance(key, Variable)}

    def _check_grouped(self, projection: Projection, visible: set[str]) -> None:
        """Only keys of the group and what is made of aggregates has one value in each group."""
        for variable in _free_variables(projection.expression or projection.variable):
            if variable.name not in visible:
                reason = f"?{variable.name} is neither in GROUP BY nor within an aggregate"
                raise self.fault(reason, variable.span.start)
