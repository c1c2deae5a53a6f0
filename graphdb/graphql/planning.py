"""Planning an operation: its cost, and its queries."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from graphql import (
    BooleanValueNode,
    DocumentNode,
    ExecutionResult,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLError,
    InlineFragmentNode,
    NoSchemaIntrospectionCustomRule,
    OperationDefinitionNode,
    OperationType,
    SelectionNode,
    SelectionSetNode,
    VariableNode,
    execute_sync,
    get_variable_values,
    parse,
    specified_rules,
    validate,
)

from graphdb.graphql.demand import Demand
from graphdb.graphql.failures import (
    COMPLEXITY_EXCEEDED,
    DEPTH_EXCEEDED,
    VALIDATION_FAILED,
    Limits,
    Refused,
    coded,
    failure,
)
from graphdb.graphql.schema import RootKind, Schema
from graphdb.graphql.selection import DeletionEntry, RootEntry, Selector
from graphdb.graphql.shaping import Nulled, Shaper, tables
from graphdb.graphql.translation import translate

__all__ = ["Operation", "Plan", "plan", "read_operation"]

# Whether a document is too deep or too dear, told before it is validated.
#
# The cost of an operation is 1 for each field that it selects, and 10 more for each connection, with
# fragments and aliases expanded and what `@skip` and `@include` leave out left out. Expanding stops at the
# limit, so that a document of fragments within fragments costs no more to refuse than a plain one to allow.

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


# The way of one operation: its text becomes a `Plan`, one SPARQL query and what to make of the rows.
#
# Pure: whoever serves runs `Plan.query` and hands the rows to `Plan.answer`.

_TOKENS_A_COST = 15  # of a document, for each that an operation may cost
_NESTED_MAX = 200  # braces, brackets and parentheses within each other


@dataclass(frozen=True)
class Operation:
    """One operation of a document, valid and within the limits; variable_values are graphql-core's."""

    schema: Schema
    limits: Limits
    document: DocumentNode
    definition: OperationDefinitionNode
    variable_values: Any
    variables: Mapping[str, Any]  # as they came

    @property
    def type(self) -> OperationType:
        return self.definition.operation

    def selector(self, demand: Demand) -> Selector:
        """Reads what the operation selects."""
        fragments = {
            one.name.value: one
            for one in self.document.definitions
            if isinstance(one, FragmentDefinitionNode)
        }
        return Selector(self.schema, fragments, self.variable_values, self.limits, demand)


@dataclass(frozen=True)
class Plan:
    """query: SPARQL whose answer as tab-separated values `answer` takes; None where none is needed."""

    operation: Operation
    demand: Demand
    roots: Sequence[RootEntry]
    query: str | None

    @property
    def introspects(self) -> bool:
        """Whether the schema itself is asked about: the answer may take a while, if it is a large one."""
        return any(one.nodes[0].name.value in ("__schema", "__type") for one in self.roots)

    def answer(self, rows: bytes | Iterable[bytes] = b"") -> ExecutionResult:
        """The answer, with the fields in the order in which they are selected. Never raises Refused."""
        try:
            found = tables(rows, self.demand.branches, self.operation.limits.max_rows)
        except Refused as refused:
            return ExecutionResult(None, refused.errors)
        shaper = Shaper(self.operation.schema, found)
        data: dict[str, Any] | None = {}
        try:
            for entry in self.roots:
                data[entry.key] = self._shown(shaper, entry)  # type: ignore[index]
        except Nulled:
            data = None
        return ExecutionResult(data, shaper.errors or None)

    def _shown(self, shaper: Shaper, entry: RootEntry) -> Any:
        if entry.shown is None or entry.root is None:
            return self._introspected(entry)
        path = (entry.key,)
        if isinstance(entry.shown, DeletionEntry):
            return shaper.deletion(entry.shown)
        if entry.root.kind is RootKind.COLLECTION:
            return shaper.connection(entry.shown, path)
        if entry.root.kind is RootKind.SINGULAR:
            return shaper.objects(entry.shown, path)
        try:
            return shaper.resource(entry.shown, path)
        except Nulled:
            return None

    def _introspected(self, entry: RootEntry) -> Any:
        """`__schema`, `__type` and `__typename`: graphql-core knows."""
        operation = self.operation
        alone = OperationDefinitionNode(
            operation=operation.type,
            variable_definitions=operation.definition.variable_definitions,
            directives=(),
            selection_set=SelectionSetNode(selections=tuple(entry.nodes)),
        )
        fragments = [one for one in operation.document.definitions if isinstance(one, FragmentDefinitionNode)]
        document = DocumentNode(definitions=(alone, *fragments))
        result = execute_sync(operation.schema.graphql, document, variable_values=dict(operation.variables))
        return (result.data or {}).get(entry.key)


def read_operation(
    schema: Schema,
    text: str,
    variables: Mapping[str, Any] | None,
    operation_name: str | None,
    limits: Limits,
) -> Operation:
    """Parse, bound and validate. Raises Refused with everything that is wrong."""
    _check_texts(text, variables)
    tokens_max = _TOKENS_A_COST * limits.max_complexity
    document = _parsed(text, tokens_max)
    definition = _chosen(document, operation_name)
    given = dict(variables or {})
    for one in document.definitions:  # all of them are validated, so all are bounded
        if isinstance(one, OperationDefinitionNode):
            check_cost(schema, document, one, given, limits)
    errors = _validated(schema, text, tokens_max, limits.introspection)
    if errors:
        raise Refused([coded(one) for one in errors])
    values = get_variable_values(schema.graphql, definition.variable_definitions or (), given, max_errors=20)
    if isinstance(values, list):
        raise Refused([coded(one) for one in values])
    return Operation(schema, limits, document, definition, values, given)


def plan(operation: Operation) -> Plan:
    """The plan of an operation of type query. Raises Refused."""
    assert operation.type is OperationType.QUERY
    demand = Demand()
    try:
        roots = operation.selector(demand).roots(operation.definition)
        query = translate(operation.schema.model, demand, operation.limits.max_rows)
    except RecursionError:
        raise Refused([failure(COMPLEXITY_EXCEEDED, "A filter is nested too deeply.")]) from None
    return Plan(operation, demand, roots, query)


@lru_cache(maxsize=256)
def _parsed(text: str, tokens_max: int) -> DocumentNode:
    if _nesting(text) > _NESTED_MAX:
        raise Refused([failure(DEPTH_EXCEEDED, f"The document is nested deeper than {_NESTED_MAX}.")])
    try:
        return parse(text, max_tokens=tokens_max)
    except GraphQLError as error:
        raise Refused([coded(error)]) from None
    except RecursionError:
        raise Refused([failure(DEPTH_EXCEEDED, "The document is nested too deeply.")]) from None


@lru_cache(maxsize=256)
def _validated(schema: Schema, text: str, tokens_max: int, introspection: bool) -> Sequence[GraphQLError]:
    """By text: a document is dear to compare."""
    rules = [*specified_rules, *(() if introspection else (NoSchemaIntrospectionCustomRule,))]
    return validate(schema.graphql, _parsed(text, tokens_max), rules, max_errors=20)


def _nesting(text: str) -> int:
    """An upper bound: brackets in texts and comments count too."""
    depth = most = 0
    for one in text:
        if one in "{[(":
            depth += 1
            most = max(most, depth)
        elif one in "}])":
            depth -= 1
    return most


def _chosen(document: DocumentNode, name: str | None) -> OperationDefinitionNode:
    """GraphQL section 6.1."""
    operations = [one for one in document.definitions if isinstance(one, OperationDefinitionNode)]
    if name is not None:
        operations = [one for one in operations if one.name is not None and one.name.value == name]
    if len(operations) == 1:
        return operations[0]
    if name is not None:
        message = f"There is no operation named {name!r}."
    else:
        message = "`operationName` must say which of several operations." if operations else "No operation."
    raise Refused([failure(VALIDATION_FAILED, message)])


def _check_texts(text: str, variables: Any) -> None:
    """A lone surrogate cannot stand in any IRI or literal."""
    try:
        text.encode()
        for one in _texts(variables):
            one.encode()
    except UnicodeEncodeError:
        message = "A text holds half of a character: a surrogate without its pair."
        raise Refused([failure(VALIDATION_FAILED, message)]) from None


def _texts(given: Any) -> Iterator[str]:
    """All texts in a value of JSON."""
    waiting = [given]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, Mapping):
            waiting += [*one.keys(), *one.values()]
        elif isinstance(one, list):
            waiting += one
