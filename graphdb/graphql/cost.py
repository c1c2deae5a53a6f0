"""Whether a document is too deep or too dear, told before it is validated.

The cost of an operation is 1 for each field that it selects, and 10 more for each connection, with fragments
and aliases expanded and what `@skip` and `@include` leave out left out. Expanding stops at the limit, so that
a document of fragments within fragments costs no more to refuse than a plain one to allow.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from graphql import (
    BooleanValueNode,
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    InlineFragmentNode,
    OperationDefinitionNode,
    SelectionNode,
    SelectionSetNode,
    VariableNode,
)

from graphdb.graphql.failures import COMPLEXITY_EXCEEDED, DEPTH_EXCEEDED, Refused, failure
from graphdb.graphql.limits import Limits
from graphdb.graphql.schema import RootKind, Schema

__all__ = ["check_cost"]

_CONNECTION_COST = 10
_INTROSPECTION = ("__schema", "__type")
_INTROSPECTION_DEPTH = 20  # GraphiQL's question is 14 deep and costs 200, whatever is configured
_INTROSPECTION_COST = 400  # each may be of every type of the schema
_STEPS_A_COST = 10  # fragments and fields looked at for each that may be counted


def check_cost(
    schema: Schema,
    document: DocumentNode,
    operation: OperationDefinitionNode,
    variables: Mapping[str, Any],
    limits: Limits,
) -> None:
    """Raise Refused with DEPTH_EXCEEDED or COMPLEXITY_EXCEEDED. The document need not be valid."""
    fragments = {
        one.name.value: one.selection_set
        for one in document.definitions
        if isinstance(one, FragmentDefinitionNode)
    }
    _Walk(schema, fragments, _given(operation, variables), limits).operation(operation)


class _Walk:
    def __init__(
        self,
        schema: Schema,
        fragments: Mapping[str, SelectionSetNode],
        variables: Mapping[str, Any],
        limits: Limits,
    ) -> None:
        self._schema, self._fragments, self._variables, self._limits = schema, fragments, variables, limits
        self._steps = 0

    def operation(self, operation: OperationDefinitionNode) -> None:
        roots = list(self._fields(operation.selection_set))
        asked = [one for one in roots if one.name.value not in _INTROSPECTION]
        about = [one for one in roots if one.name.value in _INTROSPECTION]
        limits = self._limits
        self._measure(asked, limits.max_depth, limits.max_complexity)
        self._measure(
            about,
            max(limits.max_depth, _INTROSPECTION_DEPTH),
            _INTROSPECTION_COST,
        )

    def _measure(self, roots: list[FieldNode], depth_max: int, cost_max: int) -> None:
        cost = 0
        waiting = [(one, 1) for one in reversed(roots)]
        while waiting:
            field, depth = waiting.pop()
            if depth > depth_max:
                details = {"max_depth": depth_max}
                raise Refused(
                    [
                        failure(
                            DEPTH_EXCEEDED,
                            f"The query is nested deeper than {depth_max}.",
                            field,
                            None,
                            details,
                        )
                    ]
                )
            cost += 1
            if depth == 1 and self._is_connection(field):
                cost += _CONNECTION_COST
            if cost > cost_max:
                raise _too_complex(field, cost_max)
            if field.selection_set is not None:
                waiting += [(one, depth + 1) for one in self._fields(field.selection_set)]

    def _is_connection(self, field: FieldNode) -> bool:
        root = self._schema.roots.get(field.name.value)
        return root is not None and root.kind is RootKind.COLLECTION

    def _fields(self, selections: SelectionSetNode) -> Iterator[FieldNode]:
        """The fields of a selection, those of its fragments too."""
        waiting: list[SelectionNode] = list(reversed(selections.selections))
        allowed = _STEPS_A_COST * max(self._limits.max_complexity, _INTROSPECTION_COST)
        while waiting:
            one = waiting.pop()
            self._steps += 1
            if self._steps > allowed:  # fragments without end, or fields that are all skipped
                raise _too_complex(one, self._limits.max_complexity)
            if self._is_left_out(one):
                continue
            if isinstance(one, FieldNode):
                yield one
            elif isinstance(one, InlineFragmentNode):
                waiting += reversed(one.selection_set.selections)
            elif isinstance(one, FragmentSpreadNode) and one.name.value in self._fragments:
                waiting += reversed(self._fragments[one.name.value].selections)

    def _is_left_out(self, node: SelectionNode) -> bool:
        for directive in node.directives or ():
            if directive.name.value in ("skip", "include"):
                condition = next(
                    (one.value for one in directive.arguments or () if one.name.value == "if"), None
                )
                if isinstance(condition, BooleanValueNode):
                    value: Any = condition.value
                elif isinstance(condition, VariableNode):
                    value = self._variables.get(condition.name.value)
                else:
                    value = None
                if value is (directive.name.value == "skip"):
                    return True
        return False


def _given(operation: OperationDefinitionNode, variables: Mapping[str, Any]) -> dict[str, Any]:
    """The variables, with the defaults of those that are truth values."""
    defaults = {
        one.variable.name.value: one.default_value.value
        for one in operation.variable_definitions or ()
        if isinstance(one.default_value, BooleanValueNode)
    }
    return {**defaults, **variables}


def _too_deep(node: SelectionNode, allowed: int) -> Refused:
    message = f"The query is nested deeper than {allowed}."
    return Refused([failure(DEPTH_EXCEEDED, message, node, None, {"max_depth": allowed})])


def _too_complex(node: SelectionNode, allowed: int) -> Refused:
    message = f"The query costs more than {allowed}: 1 a field, 10 more a connection."
    return Refused([failure(COMPLEXITY_EXCEEDED, message, node, None, {"max_complexity": allowed})])
