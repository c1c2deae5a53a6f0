"""Paths and expressions, and where aggregates may stand."""

from typing import Any

from graphdb.geometry.geosparql_names import AGGREGATES, GEOF
from graphdb.sparql.building.triples import TripleBuilder
from graphdb.sparql.patterns import (
    Aggregate,
    AlternativePath,
    And,
    Arithmetic,
    BuiltInCall,
    Comparison,
    Exists,
    Expression,
    FunctionCall,
    In,
    InversePath,
    NegatedPropertySet,
    Not,
    Or,
    Path,
    RepeatedPath,
    SequencePath,
    Signed,
)
from graphdb.sparql.terms import RdfLiteral, Span

__all__ = ["ExpressionBuilder"]

GEO_AGGREGATES = frozenset(GEOF + name for name in AGGREGATES)  # called as functions are


class ExpressionBuilder(TripleBuilder):
    def __init__(self, text: str, base_iri: str | None) -> None:
        super().__init__(text, base_iri)
        self.aggregates: list[int] = []  # places of those that no SELECT has claimed yet

    def claim_aggregates(self, start: int) -> bool:
        """Take the aggregates from start on as the business of the query that begins there: whether there are
        any.
        """
        found = False
        while self.aggregates and self.aggregates[-1] >= start:
            self.aggregates.pop()
            found = True
        return found

    def refuse_aggregates(self, start: int, where: str) -> None:
        if self.aggregates and self.aggregates[-1] >= start:
            raise self.fault(f"an aggregate cannot stand in {where}", self.aggregates[-1])

    # Paths

    def path_alternative(self, parts: list[Any], start: int, end: int) -> AlternativePath:
        return AlternativePath(tuple(parts), Span(start, end))

    def path_sequence(self, parts: list[Any], start: int, end: int) -> SequencePath:
        return SequencePath(tuple(parts), Span(start, end))

    def path_inverse(self, parts: list[Any], start: int, end: int) -> InversePath:
        return InversePath(parts[0], Span(start, end))

    def path_elt(self, parts: list[Any], start: int, end: int) -> Path:
        path: Path = parts[0]
        return path if parts[1] is None else RepeatedPath(path, parts[1], Span(start, end))

    def path_negated_property_set(self, parts: list[Any], start: int, end: int) -> NegatedPropertySet:
        members = () if parts and isinstance(parts[0], str) else tuple(parts)  # NIL comes as its text
        return NegatedPropertySet(members, Span(start, end))

    # Operators

    def conditional_or_expression(self, parts: list[Any], start: int, end: int) -> Or:
        return Or(tuple(parts), Span(start, end))

    def conditional_and_expression(self, parts: list[Any], start: int, end: int) -> And:
        return And(tuple(parts), Span(start, end))

    def relational_expression(self, parts: list[Any], start: int, end: int) -> Comparison:
        return Comparison(parts[1], parts[0], parts[2], Span(start, end))

    def in_expression(self, parts: list[Any], start: int, end: int) -> In:
        return In(parts[0], parts[1], False, Span(start, end))

    def not_in_expression(self, parts: list[Any], start: int, end: int) -> In:
        return In(parts[0], parts[1], True, Span(start, end))

    def additive_expression(self, parts: list[Any], start: int, end: int) -> Arithmetic:
        return Arithmetic(parts[0], tuple(parts[1:]), Span(start, end))

    def additive_step(self, parts: list[Any], start: int, end: int) -> tuple[str, Expression]:
        return parts[0], parts[1]

    def signed_step(self, parts: list[Any], start: int, end: int) -> tuple[str, Expression]:
        if len(parts) == 1:
            literal: RdfLiteral = parts[0]
            return "+", literal
        return "+", self.multiplicative_expression(parts, start, end)

    def multiplicative_expression(self, parts: list[Any], start: int, end: int) -> Arithmetic:
        rest = tuple(zip(parts[1::2], parts[2::2], strict=True))
        return Arithmetic(parts[0], rest, Span(start, end))

    def not_expression(self, parts: list[Any], start: int, end: int) -> Not:
        return Not(parts[0], Span(start, end))

    def signed_expression(self, parts: list[Any], start: int, end: int) -> Signed:
        return Signed(parts[0], parts[1], Span(start, end))

    # Calls

    def function_call(self, parts: list[Any], start: int, end: int) -> FunctionCall | Aggregate:
        function, (distinct, arguments) = parts
        if function.value not in GEO_AGGREGATES:
            return FunctionCall(function, arguments, distinct, Span(start, end))
        if len(arguments) != 1 or distinct:
            raise self.fault(f"<{function.value}> takes one argument, without DISTINCT", start)
        self._note_aggregate(start)
        return Aggregate(function.value, arguments[0], False, None, Span(start, end))

    def arg_list(self, parts: list[Any], start: int, end: int) -> tuple[bool, tuple[Expression, ...]]:
        if len(parts) == 1:  # NIL
            return False, ()
        return parts[0] is not None, tuple(parts[1:])

    def expression_list(self, parts: list[Any], start: int, end: int) -> tuple[Expression, ...]:
        return () if isinstance(parts[0], str) else tuple(parts)

    def built_in_call(self, parts: list[Any], start: int, end: int) -> BuiltInCall:
        name, *arguments = parts
        if arguments and isinstance(arguments[0], tuple):  # an expression_list
            arguments = list(arguments[0])
        present = tuple(part for part in arguments if part is not None and not isinstance(part, str))
        return BuiltInCall(name.upper(), present, Span(start, end))

    def exists_func(self, parts: list[Any], start: int, end: int) -> Exists:
        return Exists(parts[0], False, Span(start, end))

    def not_exists_func(self, parts: list[Any], start: int, end: int) -> Exists:
        return Exists(parts[0], True, Span(start, end))

    def aggregate(self, parts: list[Any], start: int, end: int) -> Aggregate:
        self._note_aggregate(start)
        expression = None if isinstance(parts[2], str) else parts[2]  # the star comes as its text
        separator = parts[3] if len(parts) > 3 else None
        return Aggregate(parts[0].upper(), expression, parts[1] is not None, separator, Span(start, end))

    def _note_aggregate(self, start: int) -> None:
        self.refuse_aggregates(start, "another aggregate")
        self.aggregates.append(start)
