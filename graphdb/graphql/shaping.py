"""Shaping the rows of the queries into the answer of an operation."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from graphql import FieldNode, GraphQLError
from pyoxigraph import Literal, NamedNode

from graphdb.graphql.cursors import Cursor, OrderKey, comparable, key_value
from graphdb.graphql.demand import TYPES, Level, RootLevel
from graphdb.graphql.failures import COMPLEXITY_EXCEEDED, Refused, failure
from graphdb.graphql.model import EnumType, Field, Scalar
from graphdb.graphql.scalars import UnfitValue, Value, is_resource, json_value, read_value, resource_id
from graphdb.graphql.schema import Schema
from graphdb.graphql.selection import (
    Choices,
    DeletionEntry,
    IdEntry,
    Member,
    ObjectEntry,
    ObjectsEntry,
    TypenameEntry,
    ValueEntry,
)

__all__ = ["Cells", "Nulled", "Shaper", "Table", "tables"]

# The rows of the query, sorted by branch: what the answer is shaped from.

Cells = dict[str, None]  # cells of tab-separated values, each once, in the order in which they came
Table = dict[str, Cells]  # by the cell of the resource; "" where a row has none


def tables(answer: bytes | Iterable[bytes], branches: int, rows_max: int) -> list[Table]:
    """A table for each branch, of SPARQL's tab-separated values with the columns ?b, ?s and ?v.

    Cells stay as they are written: the same term is always the same text, and most are never read. Raises
    Refused with COMPLEXITY_EXCEEDED for more than rows_max rows.
    """
    whole = answer if isinstance(answer, bytes) else b"".join(answer)
    lines = whole.decode().split("\n")
    if len(lines) - 2 > rows_max:
        message = (
            f"The answer takes more than {rows_max} rows of the graph; ask for less, or filter nested lists."
        )
        raise Refused([failure(COMPLEXITY_EXCEEDED, message, details={"max_rows": rows_max})])
    found: list[Table] = [{} for _ in range(branches)]
    for line in lines[1:]:
        if line:
            branch, subject, value = line.split("\t")
            if branch:
                table = found[int(branch)]
                cells = table.get(subject)
                if cells is None:
                    table[subject] = {value: None}
                else:
                    cells[value] = None
    return found


# From the rows of the one query to the answer, in the order of the selection.
#
# Errors are GraphQL's: a value that its type cannot show, or none where one is required, makes the nearest
# field null that may be null (section 6.4.4). Of several values where the model says one, the first counts:
# the smallest, of texts one in no language before one in English before others. Lists are in the order of
# their values.

_ERRORS_MAX = 100
_Path = tuple[str | int, ...]


class Nulled(Exception):
    """A field that must not be null is: what it stands in is null, or what that stands in."""


class Shaper:
    """Of one answer. errors: what was found wrong so far."""

    def __init__(self, schema: Schema, tables: Sequence[Table]) -> None:
        self._schema, self._tables = schema, tables
        self._types = {
            f"<{one.class_iri.value}>": one
            for one in schema.model.types.values()
            if one.class_iri is not None
        }
        self._read: dict[str, Value] = {}
        self._shown: dict[Any, Any] = {}  # objects and values of fields that were shown without errors
        self.errors: list[GraphQLError] = []

    def connection(self, entry: ObjectsEntry, path: _Path) -> dict[str, Any]:
        """A root field that is a connection. Raises Nulled."""
        return self._members(entry.members, _Part(self, entry.level), path)

    def objects(self, entry: ObjectsEntry, path: _Path) -> list[dict[str, Any]]:
        """A root field that is a list. Raises Nulled."""
        assert entry.choices is not None
        found = _Part(self, entry.level).resources
        return [
            self._object(entry.level, entry.choices, one, (*path, number)) for number, one in enumerate(found)
        ]

    def resource(self, entry: ObjectsEntry, path: _Path) -> dict[str, Any] | None:
        """A root field that is one object or null. Raises Nulled."""
        assert entry.choices is not None
        for one in self._tables[entry.level.branch]:
            return self._object(entry.level, entry.choices, one, path)
        return None

    def deletion(self, entry: DeletionEntry) -> dict[str, Any]:
        """A root field that tells of a resource which is gone, as it is wherever there is an answer."""
        return {one.key: one.type_name if one.name == "__typename" else True for one in entry.members}

    # Connections

    def _members(self, members: Sequence[Member], part: "_Part", path: _Path) -> dict[str, Any]:
        return {one.key: self._member(one, part, (*path, one.key)) for one in members}

    def _member(self, member: Member, part: "_Part", path: _Path) -> Any:
        if member.name == "edges":
            return [
                self._edge(member.members, part, one, (*path, number))
                for number, one in enumerate(part.resources)
            ]
        if member.name == "pageInfo":
            return self._members(member.members, part, path)
        return member.type_name if member.name == "__typename" else part.figure(member.name)

    def _edge(self, members: Sequence[Member], part: "_Part", cell: str, path: _Path) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for one in members:
            if one.name == "node":
                assert one.choices is not None
                made[one.key] = self._object(part.level, one.choices, cell, (*path, one.key))
            else:
                made[one.key] = one.type_name if one.name == "__typename" else part.cursor(cell)
        return made

    # Objects

    def _object(self, level: Level, choices: Choices, cell: str, path: _Path) -> dict[str, Any]:
        """The same object wherever it is shown, but for its errors, which say where."""
        known = (id(choices), cell)
        if known in self._shown:
            shown: dict[str, Any] = self._shown[known]
            return shown
        errors = len(self.errors)
        made = self._members_of(level, choices, cell, path)
        if len(self.errors) == errors:
            self._shown[known] = made
        return made

    def _members_of(self, level: Level, choices: Choices, cell: str, path: _Path) -> dict[str, Any]:
        name = self._type_name(level, choices, cell)
        made: dict[str, Any] = {}
        for entry in choices[name]:
            if isinstance(entry, ValueEntry):
                made[entry.key] = self._value_field(entry, cell, path)
            elif isinstance(entry, ObjectEntry):
                made[entry.key] = self._object_field(entry, cell, path)
            elif isinstance(entry, IdEntry):
                made[entry.key] = resource_id(cell)
            else:
                assert isinstance(entry, TypenameEntry)
                made[entry.key] = name
        return made

    def _type_name(self, level: Level, choices: Choices, cell: str) -> str:
        """The most special type that the resource is of; that of the field where it is of none below that."""
        if len(choices) == 1:
            return next(iter(choices))
        branch = level.branch if isinstance(level, RootLevel) else level.values[TYPES]
        found = [self._types[one] for one in self._tables[branch].get(cell, ()) if one in self._types]
        fitting = [one for one in found if one.concrete_name in choices]
        if fitting:
            return min(fitting, key=lambda one: (-len(one.interfaces), one.name)).concrete_name
        assert level.type is not None
        return level.type.concrete_name

    def _object_field(self, entry: ObjectEntry, cell: str, path: _Path) -> Any:
        try:
            return self._objects_of(entry, cell, (*path, entry.key))
        except Nulled:
            if entry.field.is_required:
                raise
            return None

    def _objects_of(self, entry: ObjectEntry, cell: str, path: _Path) -> Any:
        cells = [one for one in self._tables[entry.level.branch].get(cell, ()) if is_resource(one)]
        if len(cells) > 1:
            cells = self.sorted(entry.level, cells)
        if entry.field.is_list:
            return [
                self._object(entry.level, entry.choices, one, (*path, number))
                for number, one in enumerate(cells[: entry.first])
            ]
        if cells:
            return self._object(entry.level, entry.choices, cells[0], path)
        return self._missing(entry, path)

    # Values

    def _value_field(self, entry: ValueEntry, cell: str, path: _Path) -> Any:
        cells = self._tables[entry.branch].get(cell)
        if cells is not None and len(cells) == 1:
            known = (id(entry), next(iter(cells)))
            if known in self._shown:
                return self._shown[known]
        else:
            known = None
        errors = len(self.errors)
        try:
            made = self._values_of(entry, cells or {}, (*path, entry.key))
        except Nulled:
            if entry.field.is_required and (entry.field.is_list or not entry.field.takes_language):
                raise
            return None
        if known is not None and len(self.errors) == errors:
            self._shown[known] = made
        return made

    def _values_of(self, entry: ValueEntry, cells: Cells, path: _Path) -> Any:
        field = entry.field
        values = [self.read(one) for one in cells if one[:2] != "<<"]
        if field.value is Scalar.ID:
            values = [one for one in values if one.datatype is None]
        if field.takes_language:
            values = _in_languages(values, entry.languages)
        if len(values) > 1:
            values.sort(key=lambda one: _rank(field, one))
        if field.is_list:
            return [
                self._shown_value(entry, one, (*path, number))
                for number, one in enumerate(values[: entry.first])
            ]
        if values:
            return self._shown_value(entry, values[0], path)
        return None if field.takes_language else self._missing(entry, path)

    def _shown_value(self, entry: ValueEntry, value: Value, path: _Path) -> Any:
        try:
            return _shown(entry.field, value)
        except UnfitValue as error:
            self._fail(str(error), entry.node, path)
            raise Nulled from None

    def _missing(self, entry: ValueEntry | ObjectEntry, path: _Path) -> None:
        if entry.field.is_required:
            self._fail(f"The required field {entry.field.name!r} has no value.", entry.node, path)
            raise Nulled

    def _fail(self, message: str, node: FieldNode, path: _Path) -> None:
        if len(self.errors) < _ERRORS_MAX:
            self.errors.append(GraphQLError(message, node, path=list(path)))

    # Orders

    def read(self, cell: str) -> Value:
        """A cell's term; each is read once."""
        found = self._read.get(cell)
        if found is None:
            found = self._read[cell] = read_value(cell)
        return found

    def keys(self, level: Level, cell: str) -> tuple[Value | None, ...]:
        """What a resource is ordered by, but for its IRI."""
        return tuple(
            key_value(
                one, (self.read(value) for value in self._tables[level.values[one.field.path]].get(cell, ()))
            )
            for one in level.orders
            if one.field is not None
        )

    def sorted(self, level: Level, cells: Sequence[str]) -> list[str]:
        """Resources in the order of their level."""
        found = sorted(cells, key=resource_id, reverse=bool(level.orders) and level.orders[-1].descending)
        keyed = [one for one in level.orders if one.field is not None]
        for number, order in reversed(list(enumerate(keyed))):
            keys = {one: _sort_key(order, self.keys(level, one)[number]) for one in found}
            found.sort(key=keys.__getitem__, reverse=order.descending)
        return found

    def table(self, branch: int) -> Table:
        return self._tables[branch]


class _Part:
    """The page of a root field, as the rows have it."""

    def __init__(self, shaper: Shaper, level: RootLevel) -> None:
        self._shaper, self.level = shaper, level
        page, found = level.page, [*shaper.table(level.branch)]
        if page is not None and not page.limit:
            found = []
        found = shaper.sorted(level, found)
        self._is_cut = page is not None and len(found) > page.limit
        if page is not None and self._is_cut:
            found = found[: page.limit] if page.forward else found[-page.limit :]
        self.resources = found

    def cursor(self, cell: str) -> str:
        values = self._shaper.keys(self.level, cell)
        return Cursor(values, resource_id(cell)).text(self.level.orders)

    def figure(self, name: str) -> Any:
        """totalCount, or a member of pageInfo."""
        level, page, found = self.level, self.level.page, self.resources
        assert page is not None
        if name == "totalCount":
            assert level.counted is not None
            counts = self._shaper.table(level.counted).get("", {"0": None})
            return int(next(iter(counts)))
        if name == "hasNextPage":
            return (page.forward and self._is_cut) or self._is_there(level.after)
        if name == "hasPreviousPage":
            return (not page.forward and self._is_cut) or self._is_there(level.before)
        assert name in ("startCursor", "endCursor")
        return self.cursor(found[0 if name == "startCursor" else -1]) if found else None

    def _is_there(self, branch: int | None) -> bool:
        return branch is not None and bool(self._shaper.table(branch))


def _shown(field: Field, value: Value) -> Any:
    if isinstance(field.value, EnumType):
        return _names(field.value).get((value.text, value.datatype, value.language)) or _unfit(field, value)
    assert isinstance(field.value, Scalar)
    if value.datatype is None and field.value not in (Scalar.ID, Scalar.STRING):
        _unfit(field, value)
    return json_value(field.value, value.text, value.datatype or "")


def _names(enum: EnumType) -> Mapping[tuple[str, str | None, str], str]:
    return {_identity(term): name for name, term in enum.values.items()}


def _identity(term: NamedNode | Literal) -> tuple[str, str | None, str]:
    if isinstance(term, NamedNode):
        return (term.value, None, "")
    return (term.value, term.datatype.value, (term.language or "").lower())


def _unfit(field: Field, value: Value) -> str:
    assert isinstance(field.value, EnumType | Scalar)
    name = field.value.name if isinstance(field.value, EnumType) else field.value.value
    raise UnfitValue(f'{name} cannot represent "{value.text}"')


def _rank(field: Field, value: Value) -> tuple[Any, ...]:
    """Values in their order, those that are not of the field's type last."""
    scalar = field.value if isinstance(field.value, Scalar) else Scalar.STRING
    key = comparable(scalar, value)
    language = (value.language != "", value.language.split("-")[0] != "en", value.language)
    if key is None:
        return (1, value.text, language)
    return (0, key, language) if field.is_list or scalar is not Scalar.STRING else (0, language, key)


def _sort_key(order: OrderKey, value: Value | None) -> tuple[Any, ...]:
    """None before all others."""
    if value is None:
        return (0,)
    assert order.field is not None
    scalar = order.field.value if isinstance(order.field.value, Scalar) else Scalar.STRING
    return (1, comparable(scalar, value))


def _in_languages(values: list[Value], wanted: tuple[str, ...] | None) -> list[Value]:
    """Those in the first of the languages that has any (RFC 4647, basic filtering)."""
    if wanted is None:
        return values
    for language in wanted:
        found = [one for one in values if _is_in(one.language, language)]
        if found:
            return found
    return []


def _is_in(tag: str, wanted: str) -> bool:
    return wanted == "*" or tag == wanted or tag.startswith(f"{wanted}-")
