"""Group graph patterns, and the rules on the scope of variables and blank node labels within them."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Any

from graphdb.sparql.building.expressions import ExpressionBuilder
from graphdb.sparql.patterns import (
    Bind,
    Filter,
    GraphPattern,
    GroupGraphPattern,
    InlineData,
    MinusPattern,
    OptionalPattern,
    PatternElement,
    ServicePattern,
    TriplesBlock,
    UnionPattern,
    variables_of_element,
)
from graphdb.sparql.search_requests import search_index_of
from graphdb.sparql.searches import with_pattern_apart
from graphdb.sparql.terms import Iri, Span, Variable

__all__ = ["PatternBuilder"]


class PatternBuilder(ExpressionBuilder):
    def __init__(self, text: str, base_iri: str | None) -> None:
        super().__init__(text, base_iri)
        self.service_hosts: list[Iri | Variable] = []
        # By label, the start of the basic graph pattern that it belongs to, and the label's own place.
        self.label_owners: dict[str, tuple[int, int]] = {}

    def group_graph_pattern(self, parts: list[Any], start: int, end: int) -> GroupGraphPattern:
        elements = tuple(part for part in parts if part is not None)
        scope: set[str] = set()
        for element in elements:
            if isinstance(element, Bind):
                self._refuse_bound(element.variable, scope)
            scope.update(variables_of_element(element))
        if self.labels:
            self._own_labels(elements)
        return GroupGraphPattern(elements, frozenset(scope), Span(start, end))

    def optional_graph_pattern(self, parts: list[Any], start: int, end: int) -> OptionalPattern:
        return OptionalPattern(parts[0], Span(start, end))

    def minus_graph_pattern(self, parts: list[Any], start: int, end: int) -> MinusPattern:
        return MinusPattern(parts[0], Span(start, end))

    def graph_graph_pattern(self, parts: list[Any], start: int, end: int) -> GraphPattern:
        return GraphPattern(parts[0], parts[1], Span(start, end))

    def service_graph_pattern(
        self, parts: list[Any], start: int, end: int
    ) -> ServicePattern | GroupGraphPattern:
        silent, endpoint, pattern = parts
        made = ServicePattern(endpoint, silent is not None, pattern, Span(start, end))
        if search_index_of(endpoint) is not None:
            return with_pattern_apart(made)
        self.service_hosts.append(endpoint)
        return made

    def group_or_union_graph_pattern(
        self, parts: list[Any], start: int, end: int
    ) -> GroupGraphPattern | UnionPattern:
        if len(parts) == 1:
            group: GroupGraphPattern = parts[0]
            return group
        return UnionPattern(tuple(parts), Span(start, end))

    def filter(self, parts: list[Any], start: int, end: int) -> Filter:
        self.refuse_aggregates(start, "FILTER")
        return Filter(parts[0], Span(start, end))

    def bind(self, parts: list[Any], start: int, end: int) -> Bind:
        self.refuse_aggregates(start, "BIND")
        return Bind(parts[0], parts[1], Span(start, end))

    # VALUES

    def inline_data_one_var(self, parts: list[Any], start: int, end: int) -> InlineData:
        return InlineData(
            (parts[0],), tuple((value,) for value in self._defined(parts[1:])), Span(start, end)
        )

    def inline_data_full(self, parts: list[Any], start: int, end: int) -> InlineData:
        variables: tuple[Variable, ...] = parts[0]
        names = [variable.name for variable in variables]
        for index, variable in enumerate(variables):
            if variable.name in names[:index]:
                raise self.fault(f"VALUES names ?{variable.name} twice", variable.span.start)
        for row, place in parts[1:]:
            if len(row) != len(variables):
                raise self.fault(f"a row of {len(row)} values for {len(variables)} variables", place)
        return InlineData(variables, tuple(row for row, _ in parts[1:]), Span(start, end))

    def data_variables(self, parts: list[Any], start: int, end: int) -> tuple[Variable, ...]:
        return tuple(part for part in parts if isinstance(part, Variable))

    def data_row(self, parts: list[Any], start: int, end: int) -> tuple[tuple[Any, ...], int]:
        return tuple(self._defined(part for part in parts if not isinstance(part, str))), start

    def undef(self, parts: list[Any], start: int, end: int) -> type[None]:
        """UNDEF is a class of its own until its row is made, for None means a part that is absent."""
        return type(None)

    def _defined(self, values: Iterable[Any]) -> Iterator[Any]:
        return (None if value is type(None) else value for value in values)

    # Scope

    def _refuse_bound(self, variable: Variable, scope: set[str]) -> None:
        if variable.name in scope:
            raise self.fault(f"BIND to ?{variable.name}, which has a value before it", variable.span.start)

    def _own_labels(self, elements: tuple[PatternElement, ...]) -> None:
        """Give the labels of each basic graph pattern to it alone; FILTERs do not end one (section 5.1.1)."""
        owner = -1
        for element in elements:
            if isinstance(element, TriplesBlock):
                owner = element.span.start if owner < 0 else owner
                for place, label in self._labels_within(element.span):
                    self._own_label(label, owner, place)
            elif not isinstance(element, Filter):
                owner = -1

    def _labels_within(self, span: Span) -> list[tuple[int, str]]:
        """Labels are noted in the order of the text."""
        return self.labels[bisect_left(self.labels, (span.start,)) : bisect_left(self.labels, (span.end,))]

    def _own_label(self, label: str, owner: int, place: int) -> None:
        first_owner, first_place = self.label_owners.setdefault(label, (owner, place))
        if first_owner != owner:  # groups end from within, so the later place may have come first
            raise self.fault(f"_:{label} stands in two basic graph patterns", max(place, first_place))
