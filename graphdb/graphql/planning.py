"""The way of one operation: its text becomes a `Plan`, one SPARQL query and what to make of the rows.

Pure: whoever serves runs `Plan.query` and hands the rows to `Plan.answer`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from graphql import (
    DocumentNode,
    ExecutionResult,
    FragmentDefinitionNode,
    GraphQLError,
    NoSchemaIntrospectionCustomRule,
    OperationDefinitionNode,
    OperationType,
    SelectionSetNode,
    execute_sync,
    get_variable_values,
    parse,
    specified_rules,
    validate,
)

from graphdb.graphql.cost import check_cost
from graphdb.graphql.demand import Demand
from graphdb.graphql.failures import (
    COMPLEXITY_EXCEEDED,
    DEPTH_EXCEEDED,
    VALIDATION_FAILED,
    Refused,
    coded,
    failure,
)
from graphdb.graphql.limits import Limits
from graphdb.graphql.rows import tables
from graphdb.graphql.schema import RootKind, Schema
from graphdb.graphql.selection import DeletionEntry, RootEntry, Selector
from graphdb.graphql.shaping import Nulled, Shaper
from graphdb.graphql.translation import translate

__all__ = ["Operation", "Plan", "plan", "read_operation"]

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
