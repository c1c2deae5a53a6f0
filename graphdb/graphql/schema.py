"""The schema of GraphQL: input types, object types."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property

from graphql import (
    GraphQLArgument,
    GraphQLBoolean,
    GraphQLEnumType,
    GraphQLEnumValue,
    GraphQLField,
    GraphQLID,
    GraphQLInputField,
    GraphQLInputObjectType,
    GraphQLInputType,
    GraphQLInt,
    GraphQLInterfaceType,
    GraphQLList,
    GraphQLNonNull,
    GraphQLObjectType,
    GraphQLScalarType,
    GraphQLSchema,
    GraphQLString,
    print_schema,
)

from graphdb.graphql.model import EnumType, Field, Model, ObjectType, Reference, Scalar, different
from graphdb.graphql.scalars import GRAPHQL_SCALARS, LANG_STRING, SNAPSHOT_INDEX

__all__ = ["Inputs", "Root", "RootKind", "Schema", "schema_of"]

# The input types of a schema: filters, orders, and what mutations take.

CONNECTIVES = ("and", "or", "not")
"""Members of every filter. A field of such a name cannot be filtered by."""

_ORDERED = (Scalar.INT, Scalar.FLOAT, Scalar.DATE_TIME, Scalar.DATE, Scalar.TIME)


class Inputs:
    """filters: by the name of a type. changes: `CreateX` and `UpdateX`. order_by: one for all types."""

    def __init__(self, model: Model, enums: Mapping[str, GraphQLEnumType], taken: Iterable[str]) -> None:
        self._enums = enums
        fixed = ["OrderBy", "Direction", *(f"{one.value}Filter" for one in Scalar)]
        wished = [f"{name}Filter" for name in (*model.types, *enums)]
        made = [f"{verb}{one}Input" for one in model.types for verb in ("Create", "Update")]
        self._names = different([*fixed, *wished, *made], str, lambda one: one, taken)
        self.order_by = self._order_by()
        self._operators = {one: self._comparison(f"{one.value}Filter", one) for one in Scalar}
        self._of_enums = {name: self._enum_filter(name, one) for name, one in enums.items()}
        self.filters = {one.name: self._filter(one) for one in model.types.values()}
        self.changes: dict[str, GraphQLInputObjectType] = {}
        for one in model.types.values():
            self.changes[f"Create{one.name}"] = self._change("Create", one)
            self.changes[f"Update{one.name}"] = self._change("Update", one)

    def _order_by(self) -> GraphQLInputObjectType:
        direction = GraphQLEnumType(self._names["Direction"], {one: one for one in ("ASC", "DESC")})
        members = {
            "field": GraphQLInputField(
                GraphQLNonNull(GraphQLString), description="`id`, or a field whose values are no objects."
            ),
            "direction": GraphQLInputField(direction, default_value="ASC"),
        }
        return GraphQLInputObjectType(self._names["OrderBy"], members)

    def _comparison(self, name: str, scalar: Scalar) -> GraphQLInputObjectType:
        shown = GRAPHQL_SCALARS[scalar]
        members = ["eq", "ne"]
        if scalar in _ORDERED:
            members += ["gt", "gte", "lt", "lte"]
        if scalar is Scalar.STRING:
            members += ["contains", "startsWith", "regex"]
        return self._operators_of(name, members, shown)

    def _enum_filter(self, name: str, enum: GraphQLEnumType) -> GraphQLInputObjectType:
        return self._operators_of(f"{name}Filter", ["eq", "ne"], enum)

    def _operators_of(
        self, name: str, operators: list[str], shown: GraphQLInputType
    ) -> GraphQLInputObjectType:
        members = {one: GraphQLInputField(shown) for one in operators}
        members["in"] = GraphQLInputField(GraphQLList(GraphQLNonNull(shown)))
        return GraphQLInputObjectType(self._names[name], members)

    def _filter(self, kind: ObjectType) -> GraphQLInputObjectType:
        name = self._names[f"{kind.name}Filter"]

        def members() -> dict[str, GraphQLInputField]:
            own = self.filters[kind.name]
            found = {"id": GraphQLInputField(self._operators[Scalar.ID])}
            found |= {one.name: GraphQLInputField(self._filter_of(one)) for one in kind.fields.values()}
            found |= {
                "and": GraphQLInputField(GraphQLList(GraphQLNonNull(own))),
                "or": GraphQLInputField(GraphQLList(GraphQLNonNull(own))),
                "not": GraphQLInputField(own),
            }
            return found

        return GraphQLInputObjectType(name, members)

    def _filter_of(self, field: Field) -> GraphQLInputObjectType:
        if isinstance(field.value, Reference):
            return self.filters[field.value.type_name]
        if isinstance(field.value, EnumType):
            return self._of_enums[field.value.name]
        return self._operators[field.value]

    def _change(self, verb: str, kind: ObjectType) -> GraphQLInputObjectType:
        members = {
            "id": GraphQLInputField(GraphQLNonNull(GraphQLID) if verb == "Update" else GraphQLID),
            **{
                one.name: self._given(one, verb == "Create" and one.is_required)
                for one in kind.fields.values()
                if not one.path.inverse
            },
        }
        return GraphQLInputObjectType(self._names[f"{verb}{kind.name}Input"], members)

    def _given(self, field: Field, is_required: bool) -> GraphQLInputField:
        shown: GraphQLInputType
        if isinstance(field.value, Reference):
            shown = GraphQLID
        elif isinstance(field.value, EnumType):
            shown = self._enums[field.value.name]
        elif field.takes_language:
            shown = LANG_STRING
        else:
            shown = GRAPHQL_SCALARS[field.value]
        if field.is_list:
            shown = GraphQLList(GraphQLNonNull(shown))
        return GraphQLInputField(
            GraphQLNonNull(shown) if is_required else shown, description=field.description
        )


# The schema that GraphQL serves of a `Model`, and what each of its root fields stands for.

_Shown = GraphQLInterfaceType | GraphQLObjectType | GraphQLEnumType | GraphQLScalarType


class RootKind(Enum):
    """What a root field does."""

    COLLECTION = "collection"  # a connection
    SINGULAR = "singular"  # a list; with `id` of at most one
    NODE = "node"
    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class Root:
    """A root field; type is None for `node`, which may be of any."""

    kind: RootKind
    type: ObjectType | None


@dataclass(frozen=True, eq=False)
class Schema:
    """graphql is what graphql-core validates and introspects. roots: by name, of all three operations.

    concrete: by the name of an object type in GraphQL, the type of the model that it shows.
    """

    model: Model
    graphql: GraphQLSchema
    roots: Mapping[str, Root]
    concrete: Mapping[str, ObjectType] = field(default_factory=dict)

    @cached_property
    def sdl(self) -> str:
        """The schema in GraphQL's own language."""
        return print_schema(self.graphql) + "\n"


def schema_of(model: Model, *, subscriptions: bool = True, mutations: bool = True) -> Schema:
    """Pure: the same model gives the same schema."""
    return _SchemaMaker(model, subscriptions, mutations).schema()


class _SchemaMaker:
    def __init__(self, model: Model, subscriptions: bool, mutations: bool) -> None:
        self._model = model
        self._subscriptions, self._mutable = subscriptions, mutations
        roots = [one.name for one in model.types.values() if one.is_root]
        taken = {"Query", "Mutation", "Subscription", "PageInfo", "Node", "MutationType", "DeleteResult"}
        taken |= {*model.types, *model.enums, *(one.concrete_name for one in model.types.values())}
        wished = [f"{one}{end}" for one in roots for end in ("Connection", "Edge", "Changed")]
        self._derived = different(wished, str, str, taken)
        self._enums = {one.name: _enum(one) for one in model.enums.values()}
        self._inputs = Inputs(model, self._enums, {*taken, *self._derived.values()})
        self._node = GraphQLInterfaceType(
            "Node", {"id": GraphQLField(GraphQLNonNull(GraphQLID))}, description="A resource, by its IRI."
        )
        self._page_info = _page_info()
        self._shown: dict[str, GraphQLInterfaceType | GraphQLObjectType] = {}
        self._concrete: dict[str, GraphQLObjectType] = {}
        for one in model.types.values():
            self._add(one)

    def schema(self) -> Schema:
        roots: dict[str, Root] = {"node": Root(RootKind.NODE, None)}
        query = {
            "node": GraphQLField(
                self._node,
                {"id": GraphQLArgument(GraphQLNonNull(GraphQLID)), "graph": _GRAPH},
                description="The resource with this IRI; null where it is of no type of the schema.",
            )
        }
        mutation: dict[str, GraphQLField] = {}
        subscription: dict[str, GraphQLField] = {}
        for one in self._model.types.values():
            if one.is_root:
                query |= self._queries(one)
                roots[one.collection] = Root(RootKind.COLLECTION, one)
                roots[one.singular] = Root(RootKind.SINGULAR, one)
                if self._mutable:
                    mutation |= self._mutations(one, roots)
                if self._subscriptions:
                    subscription |= self._changes(one, roots)
        graphql = GraphQLSchema(
            GraphQLObjectType("Query", query),
            GraphQLObjectType("Mutation", mutation) if mutation else None,
            GraphQLObjectType("Subscription", subscription) if subscription else None,
            types=[*self._shown.values(), *self._concrete.values()],
        )
        return Schema(
            self._model, graphql, roots, {one.concrete_name: one for one in self._model.types.values()}
        )

    def _add(self, kind: ObjectType) -> None:
        def above() -> list[GraphQLInterfaceType]:
            return [*(self._interface(name) for name in kind.interfaces), self._node]

        if not kind.is_interface:
            made = GraphQLObjectType(
                kind.name, lambda: self._fields(kind.fields), above, description=kind.description
            )
            self._shown[kind.name] = self._concrete[kind.name] = made
            return
        self._shown[kind.name] = interface = GraphQLInterfaceType(
            kind.name, lambda: self._fields(kind.interface_fields), above, description=kind.description
        )
        self._concrete[kind.concrete_name] = GraphQLObjectType(
            kind.concrete_name,
            lambda: self._fields(kind.fields),
            lambda: [interface, *above()],
            description=kind.description,
        )

    def _interface(self, name: str) -> GraphQLInterfaceType:
        found = self._shown[name]
        assert isinstance(found, GraphQLInterfaceType)
        return found

    def _fields(self, fields: Mapping[str, Field]) -> dict[str, GraphQLField]:
        made = {"id": GraphQLField(GraphQLNonNull(GraphQLID), description="The resource's IRI.")}
        return made | {name: self._field(one) for name, one in fields.items()}

    def _field(self, field: Field) -> GraphQLField:
        one = self._output(field)
        shown = GraphQLList(GraphQLNonNull(one)) if field.is_list else one
        # What has a value in some language may have none in the one that is asked for.
        is_required = field.is_required and (field.is_list or not field.takes_language)
        arguments: dict[str, GraphQLArgument] = {}
        if field.takes_language:
            arguments["lang"] = GraphQLArgument(
                GraphQLString, description='Languages in order of preference, such as "de,en"; "*" is any.'
            )
        if field.is_list:
            arguments["first"] = GraphQLArgument(GraphQLInt)
        if isinstance(field.value, Reference):
            arguments["filter"] = GraphQLArgument(self._inputs.filters[field.value.type_name])
            if field.is_list:
                arguments["orderBy"] = self._order()
        return GraphQLField(
            GraphQLNonNull(shown) if is_required else shown, arguments, description=field.description
        )

    def _output(self, field: Field) -> _Shown:
        if isinstance(field.value, Reference):
            return self._shown[field.value.type_name]
        if isinstance(field.value, EnumType):
            return self._enums[field.value.name]
        return GRAPHQL_SCALARS[field.value]

    def _order(self) -> GraphQLArgument:
        return GraphQLArgument(GraphQLList(GraphQLNonNull(self._inputs.order_by)))

    def _queries(self, kind: ObjectType) -> dict[str, GraphQLField]:
        shown = self._shown[kind.name]
        arguments = {
            "first": GraphQLArgument(GraphQLInt),
            "after": GraphQLArgument(GraphQLString),
            "last": GraphQLArgument(GraphQLInt),
            "before": GraphQLArgument(GraphQLString),
            "filter": GraphQLArgument(self._inputs.filters[kind.name]),
            "orderBy": self._order(),
            "graph": _GRAPH,
        }
        return {
            kind.collection: GraphQLField(
                GraphQLNonNull(self._connection(kind, shown)), arguments, description=kind.description
            ),
            kind.singular: GraphQLField(
                GraphQLNonNull(GraphQLList(GraphQLNonNull(shown))),
                {"id": GraphQLArgument(GraphQLID), **arguments},
                description=kind.description,
            ),
        }

    def _connection(
        self, kind: ObjectType, shown: GraphQLInterfaceType | GraphQLObjectType
    ) -> GraphQLObjectType:
        edge = GraphQLObjectType(
            self._derived[f"{kind.name}Edge"],
            {
                "cursor": GraphQLField(GraphQLNonNull(GraphQLString)),
                "node": GraphQLField(GraphQLNonNull(shown)),
            },
        )
        return GraphQLObjectType(
            self._derived[f"{kind.name}Connection"],
            {
                "edges": GraphQLField(GraphQLNonNull(GraphQLList(GraphQLNonNull(edge)))),
                "pageInfo": GraphQLField(GraphQLNonNull(self._page_info)),
                "totalCount": GraphQLField(GraphQLNonNull(GraphQLInt)),
            },
        )

    def _mutations(self, kind: ObjectType, roots: dict[str, Root]) -> dict[str, GraphQLField]:
        name = kind.name
        for kind_of in (RootKind.CREATE, RootKind.UPDATE, RootKind.DELETE):
            roots[f"{kind_of.value}{name}"] = Root(kind_of, kind)

        def field(made: str) -> GraphQLField:
            given = self._inputs.changes[f"{made}{name}"]
            arguments = {
                "input": GraphQLArgument(given),
                "data": GraphQLArgument(given, description="The same as `input`."),
                "graph": _WRITTEN_GRAPH,
                "ifSnapshot": _IF_SNAPSHOT,
            }
            return GraphQLField(self._shown[name], arguments)

        deleted = GraphQLField(
            GraphQLNonNull(self._delete_result),
            {
                "id": GraphQLArgument(GraphQLNonNull(GraphQLID)),
                "graph": _WRITTEN_GRAPH,
                "ifSnapshot": _IF_SNAPSHOT,
            },
        )
        return {
            f"create{name}": field("Create"),
            f"update{name}": field("Update"),
            f"delete{name}": deleted,
        }

    @cached_property
    def _delete_result(self) -> GraphQLObjectType:
        return GraphQLObjectType("DeleteResult", {"success": GraphQLField(GraphQLNonNull(GraphQLBoolean))})

    @cached_property
    def _mutation_type(self) -> GraphQLEnumType:
        return GraphQLEnumType("MutationType", {one: one for one in ("CREATED", "UPDATED", "DELETED")})

    def _changes(self, kind: ObjectType, roots: dict[str, Root]) -> dict[str, GraphQLField]:
        name = f"{kind.name[0].lower()}{kind.name[1:]}Changed"
        roots[name] = Root(RootKind.CHANGED, kind)
        event = GraphQLObjectType(
            self._derived[f"{kind.name}Changed"],
            {
                "mutationType": GraphQLField(GraphQLNonNull(self._mutation_type)),
                "node": GraphQLField(self._shown[kind.name]),
            },
        )
        arguments = {"filter": GraphQLArgument(self._inputs.filters[kind.name]), "graph": _GRAPH}
        return {name: GraphQLField(GraphQLNonNull(event), arguments)}


_GRAPH = GraphQLArgument(GraphQLString, description="IRI of the named graph to ask instead of the default.")

_WRITTEN_GRAPH = GraphQLArgument(
    GraphQLString, description="IRI of the named graph to write to instead of the default."
)
_IF_SNAPSHOT = GraphQLArgument(
    SNAPSHOT_INDEX, description="Refuse (CONFLICT) if the resource has changed since this snapshot."
)


def _enum(enum: EnumType) -> GraphQLEnumType:
    values = {name: GraphQLEnumValue(name, description=str(term)) for name, term in enum.values.items()}
    return GraphQLEnumType(enum.name, values, description=enum.description)


def _page_info() -> GraphQLObjectType:
    return GraphQLObjectType(
        "PageInfo",
        {
            "hasNextPage": GraphQLField(GraphQLNonNull(GraphQLBoolean)),
            "hasPreviousPage": GraphQLField(GraphQLNonNull(GraphQLBoolean)),
            "startCursor": GraphQLField(GraphQLString),
            "endCursor": GraphQLField(GraphQLString),
        },
    )
