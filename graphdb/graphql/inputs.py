"""The input types of a schema: filters, orders, and what mutations take."""

from collections.abc import Iterable, Mapping

from graphql import (
    GraphQLEnumType,
    GraphQLID,
    GraphQLInputField,
    GraphQLInputObjectType,
    GraphQLInputType,
    GraphQLList,
    GraphQLNonNull,
    GraphQLString,
)

from graphdb.graphql.model import EnumType, Field, Model, ObjectType, Reference, Scalar
from graphdb.graphql.naming import different
from graphdb.graphql.scalars import GRAPHQL_SCALARS, LANG_STRING

__all__ = ["CONNECTIVES", "Inputs"]

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
