"""What the sources of a schema say of classes, before anything has a GraphQL name."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyoxigraph import BlankNode, Literal, NamedNode

from graphdb.graphql.model import Path

__all__ = ["Drafts", "FieldDraft", "TypeDraft", "TypeKey", "combined", "inherited", "with_field"]

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
