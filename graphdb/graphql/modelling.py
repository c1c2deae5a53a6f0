"""The model of a schema, drafted from ontologies and shapes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyoxigraph import BlankNode, Literal, NamedNode

from graphdb.graphql.model import (
    EnumType,
    Field,
    Model,
    ObjectType,
    Path,
    Reference,
    Scalar,
    different,
    enum_value_name,
    field_name,
    local_name,
    plural_of,
    spelt,
)
from graphdb.shacl.shacl_names import RDF, RDFS, XSD

__all__ = ["Drafts", "FieldDraft", "TypeDraft", "TypeKey", "combined", "inherited", "model_of", "with_field"]

# What the sources of a schema say of classes, before anything has a GraphQL name.

TypeKey = NamedNode | BlankNode  # a class, or a shape that is of no class


@dataclass(frozen=True, slots=True)
class FieldDraft:
    """What is known of one path from one class. None: nothing is said."""

    path: Path
    name: str | None = None  # wished for by `sh:name`
    datatypes: frozenset[NamedNode] = frozenset()
    references: tuple[TypeKey, ...] = ()  # classes or shapes of the values
    values: tuple[NamedNode | Literal, ...] = ()  # `sh:in`
    only_iris: bool = False  # values are resources, of no known class
    at_most_one: bool = False
    at_least_one: bool = False
    description: str | None = None
    order: float | None = None  # `sh:order`


@dataclass(frozen=True, slots=True)
class TypeDraft:
    """What is known of one class."""

    key: TypeKey
    is_class: bool = True  # else key is a shape that is of no class
    parents: tuple[NamedNode, ...] = ()
    shape: NamedNode | BlankNode | None = None
    description: str | None = None
    fields: Mapping[Path, FieldDraft] = field(default_factory=dict)


Drafts = Mapping[TypeKey, TypeDraft]


def combined(first: Drafts, second: Drafts) -> Drafts:
    """Both; where both speak of a field, the second (shapes, which are exacter) has the last word."""
    found = dict(first)
    for key, draft in second.items():
        found[key] = _merged(found[key], draft) if key in found else draft
    return found


def with_field(draft: TypeDraft, given: FieldDraft) -> TypeDraft:
    """The draft with one more field, or with more known of one that it has."""
    known = draft.fields.get(given.path)
    field = given if known is None else _joined(known, given)
    return replace(draft, fields={**draft.fields, given.path: field})


def inherited(line: Sequence[TypeDraft]) -> list[FieldDraft]:
    """The fields of a class and of those above it, nearest first: the nearest has the last word."""
    fields: dict[Path, FieldDraft] = {}
    for draft in reversed(line):
        for path, given in draft.fields.items():
            fields[path] = _joined(fields[path], given) if path in fields else given
    return list(fields.values())


def _merged(first: TypeDraft, second: TypeDraft) -> TypeDraft:
    fields = dict(first.fields)
    for path, given in second.fields.items():
        fields[path] = _joined(fields[path], given) if path in fields else given
    return replace(
        first,
        parents=_distinct((*first.parents, *second.parents)),
        shape=second.shape or first.shape,
        description=second.description or first.description,
        fields=fields,
    )


def _joined(first: FieldDraft, second: FieldDraft) -> FieldDraft:
    """What second says of the kind of values replaces all that first says of it."""
    kind = second if second.datatypes or second.references or second.values or second.only_iris else first
    return replace(
        kind,
        name=second.name or first.name,
        at_most_one=first.at_most_one or second.at_most_one,
        at_least_one=first.at_least_one or second.at_least_one,
        description=second.description or first.description,
        order=second.order if second.order is not None else first.order,
    )


def _distinct(keys: Iterable[NamedNode]) -> tuple[NamedNode, ...]:
    return tuple(dict.fromkeys(keys))


# From drafts to the `Model`: names, what subclasses inherit, what GraphQL makes of the kinds of values.

# What GraphQL and we call types ourselves.
_TAKEN = (
    *(scalar.value for scalar in Scalar),
    *("Query", "Mutation", "Subscription", "PageInfo", "Node", "MutationType", "Direction", "DeleteResult"),
    *("LangString", "SnapshotIndex"),
)
_TAKEN_ROOTS = ("node",)

_SCALARS: Mapping[str, Scalar] = {
    **dict.fromkeys(("integer", "int", "long", "short", "byte"), Scalar.INT),
    **dict.fromkeys(("nonNegativeInteger", "positiveInteger", "nonPositiveInteger"), Scalar.INT),
    **dict.fromkeys(("negativeInteger", "unsignedInt", "unsignedLong", "unsignedShort"), Scalar.INT),
    **dict.fromkeys(("decimal", "float", "double"), Scalar.FLOAT),
    "unsignedByte": Scalar.INT,
    "boolean": Scalar.BOOLEAN,
    "dateTime": Scalar.DATE_TIME,
    "dateTimeStamp": Scalar.DATE_TIME,
    "date": Scalar.DATE,
    "time": Scalar.TIME,
}
_LANG_STRING = NamedNode(RDF + "langString")
_TAGGED = frozenset({_LANG_STRING, NamedNode(RDFS + "Literal")})  # whose values may have a language


def model_of(drafts: Drafts) -> Model:
    """Drafts whose fields refer to what is no draft show those values by their IRI alone."""
    return _Modeller(drafts).model()


class _Modeller:
    def __init__(self, drafts: Drafts) -> None:
        self._drafts = drafts
        ancestors = {key: _ancestors(drafts, key) for key in drafts}
        # Of classes that are each above the other, the one that comes first by name is.
        self._above = {
            key: tuple(one for one in found if key not in ancestors[one] or str(one) < str(key))
            for key, found in ancestors.items()
        }
        self._names = different(drafts, lambda key: _type_name(key), str, _TAKEN)
        self._below: dict[TypeKey, list[TypeKey]] = {key: [] for key in drafts}
        for key, above in self._above.items():
            for one in above:
                self._below[one].append(key)
        self._enums: dict[str, EnumType] = {}

    def model(self) -> Model:
        concrete = different(
            [key for key in self._drafts if self._below[key]],
            lambda key: f"{self._names[key]}Object",
            str,
            (*_TAKEN, *self._names.values()),
        )
        roots = [key for key, draft in self._drafts.items() if draft.is_class]
        singular = different(roots, lambda key: self._names[key].lower(), str, _TAKEN_ROOTS)
        taken = (*_TAKEN_ROOTS, *singular.values())
        collection = different(roots, lambda key: plural_of(self._names[key]), str, taken)
        types = [
            ObjectType(
                name,
                concrete.get(key, name),
                key if isinstance(key, NamedNode) and self._drafts[key].is_class else None,
                self._drafts[key].shape,
                singular.get(key, name.lower()),
                collection.get(key, plural_of(name)),
                self._fields(key),
                tuple(self._names[one] for one in self._above[key]),
                tuple(sorted(self._names[one] for one in self._below[key])),
                description=self._drafts[key].description,
            )
            for key, name in self._names.items()
        ]
        shown = _agreeing({one.name: one for one in types})
        return Model(dict(sorted(shown.items())), dict(sorted(self._enums.items())))

    def _fields(self, key: TypeKey) -> dict[str, Field]:
        """Its own and those of the classes above, the nearest first where several speak of one path."""
        drafts = inherited([self._drafts[one] for one in (key, *self._above[key])])
        order = sorted(drafts, key=lambda one: (one.order is None, one.order or 0.0, one.path))
        names = different(order, _wished, lambda one: f"{one.name is None}{one.path.iri}{one.path.inverse}")
        return {names[one]: self._field(one, names[one], key) for one in order}

    def _field(self, draft: FieldDraft, name: str, key: TypeKey) -> Field:
        value = self._value(draft, name, key)
        datatype = min(draft.datatypes, key=str) if len(draft.datatypes) == 1 else None
        return Field(
            name,
            draft.path,
            value,
            is_list=not draft.at_most_one,
            is_required=draft.at_least_one,
            datatype=datatype if isinstance(value, Scalar) and datatype != _LANG_STRING else None,
            takes_language=value is Scalar.STRING and not _TAGGED.isdisjoint(draft.datatypes or _TAGGED),
            description=draft.description,
        )

    def _value(self, draft: FieldDraft, name: str, key: TypeKey) -> Scalar | EnumType | Reference:
        if draft.values:
            return self._enum(draft, name, key)
        known = [key for key in draft.references if key in self._names]
        if len(known) == 1:
            return Reference(self._names[known[0]])
        if draft.references or draft.only_iris:
            return Scalar.ID
        scalars = {_SCALARS.get(one.value.removeprefix(XSD), Scalar.STRING) for one in draft.datatypes}
        return scalars.pop() if len(scalars) == 1 else Scalar.STRING

    def _enum(self, draft: FieldDraft, name: str, key: TypeKey) -> EnumType:
        """Named for the topmost class that says the same."""
        owner = next((one for one in reversed(self._above[key]) if self._says(one, draft)), key)
        type_name = self._names[owner]
        names = different(draft.values, enum_value_name, str)
        ordered = {names[term]: term for term in draft.values}
        plain = f"{type_name}{name[:1].upper()}{name[1:]}"
        taken = {*_TAKEN, *self._names.values()}
        number, enum_name = 1, plain
        while enum_name in taken or (enum_name in self._enums and self._enums[enum_name].values != ordered):
            number += 1
            enum_name = f"{plain}_{number}"
        made = EnumType(enum_name, ordered, draft.description)
        self._enums[enum_name] = made
        return made

    def _says(self, key: TypeKey, draft: FieldDraft) -> bool:
        own = self._drafts[key].fields.get(draft.path)
        return own is not None and own.values == draft.values


def _type_name(key: TypeKey) -> str:
    return spelt(local_name(key.value)) if isinstance(key, NamedNode) else f"Shape_{spelt(key.value)}"


def _wished(draft: FieldDraft) -> str:
    if draft.name is not None:
        return field_name(draft.name)
    name = local_name(draft.path.iri)
    return field_name(f"{name}Of" if draft.path.inverse else name)


def _ancestors(drafts: Drafts, key: TypeKey) -> tuple[TypeKey, ...]:
    """All classes above one, nearest first; one that stands above itself counts once, and not for itself."""
    found: dict[TypeKey, None] = {}
    waiting: list[TypeKey] = list(drafts[key].parents)
    while waiting:
        one = waiting.pop(0)
        if one != key and one in drafts and one not in found:
            found[one] = None
            waiting += drafts[one].parents
    return tuple(found)


def _agreeing(types: Mapping[str, ObjectType]) -> dict[str, ObjectType]:
    """With what interfaces show: the fields that all types below have alike (GraphQL section 3.6.1).

    Where those below agree with a field of an interface further above only, it is that one's here too.
    """
    shown: dict[str, ObjectType] = {}
    for kind in sorted(types.values(), key=lambda one: len(one.interfaces)):
        below = [types[one] for one in kind.subtypes]
        fields = {
            field.name: field
            for field in kind.fields.values()
            if below and all(_fits(types, field, other) for other in below)
        }
        for above in reversed(kind.interfaces if below else ()):
            fields = {**shown[above].interface_fields, **fields}
        shown[kind.name] = replace(kind, interface_fields=fields)
    return shown


def _fits(types: Mapping[str, ObjectType], field: Field, kind: ObjectType) -> bool:
    """Whether a type below may have its field of this name in place of the interface's."""
    own = kind.fields.get(field.name)
    if own is None or own.path != field.path or own.is_list != field.is_list:
        return False
    if own.takes_language != field.takes_language or (field.is_required and not own.is_required):
        return False
    if isinstance(field.value, Reference) and isinstance(own.value, Reference):
        return own.value in (field.value, *map(Reference, types[field.value.type_name].subtypes))
    return field.value == own.value
