"""A validated operation as a tree of what its answer holds, in the order of the answer.

Fragments, aliases, `@skip` and `@include` are resolved here. Which fields an object has may depend on its
type; so a selection is kept for each type that may come.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphql import (
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLError,
    GraphQLIncludeDirective,
    GraphQLInterfaceType,
    GraphQLObjectType,
    GraphQLSkipDirective,
    InlineFragmentNode,
    OperationDefinitionNode,
    SelectionSetNode,
    get_argument_values,
    get_directive_values,
)

from graphdb.graphql.cursors import Cursor, orders_of
from graphdb.graphql.demand import TYPES, Demand, Level, Page, RootLevel
from graphdb.graphql.failures import VALIDATION_FAILED, Limits, Refused, coded, failure
from graphdb.graphql.model import Field, ObjectType, Reference
from graphdb.graphql.scalars import is_iri
from graphdb.graphql.schema import Root, RootKind, Schema

__all__ = [
    "Choices",
    "DeletionEntry",
    "IdEntry",
    "Member",
    "ObjectEntry",
    "ObjectsEntry",
    "RootEntry",
    "Selector",
    "TypenameEntry",
    "ValueEntry",
]


@dataclass(frozen=True, slots=True)
class TypenameEntry:
    key: str


@dataclass(frozen=True, slots=True)
class IdEntry:
    key: str


@dataclass(frozen=True, slots=True)
class ValueEntry:
    """Literals, enum values or bare IRIs; languages in order of preference, None where none was asked for."""

    key: str
    field: Field
    branch: int
    languages: tuple[str, ...] | None
    first: int | None
    node: FieldNode


@dataclass(frozen=True, slots=True)
class ObjectEntry:
    """Resources with a selection of their own."""

    key: str
    field: Field
    level: Level
    choices: "Choices"
    first: int | None
    node: FieldNode


Entry = TypenameEntry | IdEntry | ValueEntry | ObjectEntry
Choices = Mapping[str, Sequence[Entry]]  # by the name of the object type in GraphQL


@dataclass(frozen=True, slots=True)
class Member:
    """A field of a connection, of its edges, of `pageInfo` or of an event; type_name: of the object it stands
    in.
    """

    key: str
    name: str
    type_name: str
    members: tuple["Member", ...] = ()
    choices: Choices | None = None


@dataclass(frozen=True, slots=True)
class ObjectsEntry:
    """What a root field shows: the members of a connection or of an event, else objects alone."""

    level: RootLevel
    members: tuple[Member, ...] = ()
    choices: Choices | None = None


@dataclass(frozen=True, slots=True)
class DeletionEntry:
    """What a mutation shows of a resource that is gone."""

    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class RootEntry:
    """A root field: shown None is `__typename`, or a field of introspection."""

    key: str
    nodes: tuple[FieldNode, ...]
    root: Root | None
    arguments: Mapping[str, Any]
    shown: ObjectsEntry | DeletionEntry | None = None


class Selector:
    """Reads one operation. variable_values are graphql-core's, coerced. All methods raise Refused."""

    def __init__(
        self,
        schema: Schema,
        fragments: Mapping[str, FragmentDefinitionNode],
        variable_values: Any,
        limits: Limits,
        demand: Demand,
    ) -> None:
        self._schema, self._fragments, self._variables = schema, fragments, variable_values
        self._limits, self._demand = limits, demand
        self._known: dict[Any, tuple[Entry, ...]] = {}

    def roots(self, operation: OperationDefinitionNode) -> list[RootEntry]:
        """The root fields; of a mutation, what is shown is added by whoever knows the resources."""
        kind = self._schema.graphql.get_root_type(operation.operation)
        assert kind is not None
        found: list[RootEntry] = []
        for key, nodes in self._collected(kind, [operation.selection_set]).items():
            root = self._schema.roots.get(nodes[0].name.value)
            if root is None:
                found.append(RootEntry(key, tuple(nodes), None, {}))
                continue
            arguments = self._arguments(kind, nodes[0])
            field: Any = kind.fields[nodes[0].name.value]
            shown = self._root(root, field.type, arguments, nodes)
            found.append(RootEntry(key, tuple(nodes), root, arguments, shown))
        return found

    def _root(
        self, root: Root, shown: Any, arguments: Mapping[str, Any], nodes: Sequence[FieldNode]
    ) -> ObjectsEntry | None:
        if root.kind not in (RootKind.COLLECTION, RootKind.SINGULAR, RootKind.NODE, RootKind.CHANGED):
            return None
        level = self._root_level(root, arguments, nodes[0])
        if root.kind in (RootKind.COLLECTION, RootKind.CHANGED):
            return ObjectsEntry(level, self._members(level, shown.of_type, nodes))
        return ObjectsEntry(level, choices=self.choices(level, root.type, nodes))

    def resource(
        self, kind: ObjectType, iri: str, graph: str | None, nodes: Sequence[FieldNode]
    ) -> ObjectsEntry:
        """What a mutation shows of the resource that it made, or a subscription of one that changed."""
        key = ("resource", kind.name, iri, graph)
        level = self._demand.roots.get(key)
        if level is None:
            level = RootLevel(self._demand.branch(), kind, iri=iri, graph=graph)
            self._demand.roots[key] = level
        return ObjectsEntry(level, choices=self.choices(level, kind, nodes))

    def deletion(self, nodes: Sequence[FieldNode]) -> DeletionEntry:
        """What a mutation shows of the resource that it deleted."""
        kind: Any = self._schema.graphql.type_map["DeleteResult"]
        sets = [one.selection_set for one in nodes if one.selection_set]
        selected = self._collected(kind, sets).items()
        return DeletionEntry(tuple(Member(key, group[0].name.value, kind.name) for key, group in selected))

    # Levels

    def _root_level(self, root: Root, arguments: Mapping[str, Any], node: FieldNode) -> RootLevel:
        graph, iri = arguments.get("graph"), arguments.get("id")
        if graph is not None and not is_iri(graph):
            raise _refused(f"`graph` is no IRI: {graph!r}.", node)
        key = (root.kind, root.type and root.type.name, _frozen(arguments))
        if key in self._demand.roots:
            return self._demand.roots[key]
        orders = orders_of(root.type, arguments.get("orderBy")) if root.type else ()
        is_paged = iri is None and root.kind is not RootKind.CHANGED
        page = self._page(root, arguments, orders, node) if is_paged else None
        level = RootLevel(
            self._demand.branch(), root.type, arguments.get("filter"), orders, iri=iri, page=page, graph=graph
        )
        self._demand.roots[key] = level
        self._add_orders(level)
        return level

    def _page(self, root: Root, arguments: Mapping[str, Any], orders: Any, node: FieldNode) -> Page:
        first, last = arguments.get("first"), arguments.get("last")
        if first is not None and last is not None:
            raise _refused("`first` and `last` exclude each other.", node)
        limits = self._limits
        is_connection = root.kind is RootKind.COLLECTION
        usual = limits.default_page_size if is_connection else limits.max_page_size
        size = first if first is not None else last if last is not None else usual
        self._check_size("last" if last is not None else "first", size, node)
        cursors = [
            None if arguments.get(one) is None else Cursor.read(arguments[one], orders, one)
            for one in ("after", "before")
        ]
        return Page(size, last is None, *cursors)

    def _check_size(self, argument: str, size: int, node: FieldNode) -> None:
        allowed = self._limits.max_page_size
        if not 0 <= size <= allowed:
            raise _refused(f"`{argument}` must be from 0 to {allowed}, not {size}.", node)

    def _add_orders(self, level: Level) -> None:
        for one in level.orders:
            if one.field is not None:
                self._demand.values(level, one.field.path)

    def _level_below(self, level: Level, field: Field, arguments: Mapping[str, Any]) -> Level:
        assert isinstance(field.value, Reference)
        kind = self._schema.model.types[field.value.type_name]
        wanted = {one: arguments.get(one) for one in ("filter", "orderBy")}
        key = (field.path, kind.name, _frozen(wanted))
        if key not in level.below:
            orders = orders_of(kind, arguments.get("orderBy"))
            below = Level(self._demand.branch(), kind, arguments.get("filter"), orders)
            level.below[key] = (field.path, below)
            self._add_orders(below)
        return level.below[key][1]

    # Objects

    def choices(self, level: Level, kind: ObjectType | None, nodes: Sequence[FieldNode]) -> Choices:
        """The entries of each type that an object of a level may be of."""
        model = self._schema.model
        possible = list(model.types.values()) if kind is None else model.below(kind.name)
        if kind is None or kind.is_interface:
            self._demand.values(level, TYPES)
        known = (level.branch, *map(id, nodes))
        return {one.concrete_name: self._entries(level, one, nodes, known) for one in possible}

    def _entries(
        self, level: Level, kind: ObjectType, nodes: Sequence[FieldNode], known: tuple[int, ...]
    ) -> tuple[Entry, ...]:
        key = (kind.name, *known)
        if key not in self._known:
            shown = self._schema.graphql.type_map[kind.concrete_name]
            assert isinstance(shown, GraphQLObjectType)
            selected = self._collected(shown, [one.selection_set for one in nodes if one.selection_set])
            self._known[key] = tuple(
                self._entry(level, kind, shown, name, group) for name, group in selected.items()
            )
        return self._known[key]

    def _entry(
        self, level: Level, kind: ObjectType, shown: GraphQLObjectType, key: str, nodes: list[FieldNode]
    ) -> Entry:
        node = nodes[0]
        name = node.name.value
        if name == "__typename":
            return TypenameEntry(key)
        if name == "id":
            return IdEntry(key)
        field = kind.fields[name]
        arguments = self._arguments(shown, node)
        first = arguments.get("first")
        if first is not None:
            self._check_size("first", first, node)
        if isinstance(field.value, Reference):
            below = self._level_below(level, field, arguments)
            target = self._schema.model.types[field.value.type_name]
            return ObjectEntry(key, field, below, self.choices(below, target, nodes), first, node)
        branch = self._demand.values(level, field.path)
        return ValueEntry(key, field, branch, _languages(arguments.get("lang")), first, node)

    # Connections

    def _members(self, level: RootLevel, kind: Any, nodes: Sequence[FieldNode]) -> tuple[Member, ...]:
        found: list[Member] = []
        sets = [one.selection_set for one in nodes if one.selection_set]
        for key, group in self._collected(kind, sets).items():
            name = group[0].name.value
            members: tuple[Member, ...] = ()
            choices = None
            if name == "node" and level.type is not None:
                choices = self.choices(level, level.type, group)
            elif name in ("edges", "pageInfo"):
                inner = kind.fields[name].type.of_type
                inner = inner if name == "pageInfo" else inner.of_type.of_type
                members = self._members(level, inner, group)
            self._note(level, name)
            found.append(Member(key, name, kind.name, members, choices))
        return tuple(found)

    def _note(self, level: RootLevel, name: str) -> None:
        """Branches that only some members need."""
        if level.page is None:
            return
        if name == "totalCount" and level.counted is None:
            level.counted = self._demand.branch()
        if name == "hasPreviousPage" and level.page.after is not None and level.before is None:
            level.before = self._demand.branch()
        if name == "hasNextPage" and level.page.before is not None and level.after is None:
            level.after = self._demand.branch()

    # Selections

    def _collected(
        self, kind: GraphQLObjectType, selections: Iterable[SelectionSetNode]
    ) -> dict[str, list[FieldNode]]:
        """The fields of an object by their key in the answer (GraphQL section 6.3.2)."""
        found: dict[str, list[FieldNode]] = {}
        visited: set[str] = set()
        waiting = [one for group in selections for one in group.selections][::-1]
        while waiting:
            one = waiting.pop()
            if not self._is_included(one):
                continue
            if isinstance(one, FieldNode):
                found.setdefault(one.alias.value if one.alias else one.name.value, []).append(one)
            elif isinstance(one, InlineFragmentNode):
                if one.type_condition is None or self._is_of(kind, one.type_condition.name.value):
                    waiting += one.selection_set.selections[::-1]
            elif isinstance(one, FragmentSpreadNode) and one.name.value not in visited:
                visited.add(one.name.value)
                fragment = self._fragments[one.name.value]
                if self._is_of(kind, fragment.type_condition.name.value):
                    waiting += fragment.selection_set.selections[::-1]
        return found

    def _is_included(self, node: Any) -> bool:
        if not node.directives:
            return True
        skip = get_directive_values(GraphQLSkipDirective, node, self._variables)
        include = get_directive_values(GraphQLIncludeDirective, node, self._variables)
        return not (skip and skip["if"]) and not (include and not include["if"])

    def _is_of(self, kind: GraphQLObjectType, name: str) -> bool:
        wanted = self._schema.graphql.type_map[name]
        return wanted is kind or (
            isinstance(wanted, GraphQLInterfaceType) and self._schema.graphql.is_sub_type(wanted, kind)
        )

    def _arguments(self, kind: GraphQLObjectType, node: FieldNode) -> dict[str, Any]:
        try:
            return get_argument_values(kind.fields[node.name.value], node, self._variables)
        except GraphQLError as error:
            raise Refused([coded(error)]) from None


def _languages(given: str | None) -> tuple[str, ...] | None:
    if given is None:
        return None
    return tuple(one.strip().lower() for one in given.split(",") if one.strip())


def _frozen(arguments: Mapping[str, Any]) -> str:
    given = {name: value for name, value in arguments.items() if value is not None}
    return json.dumps(given, sort_keys=False, default=str)


def _refused(message: str, node: FieldNode) -> Refused:
    return Refused([failure(VALIDATION_FAILED, message, node)])
