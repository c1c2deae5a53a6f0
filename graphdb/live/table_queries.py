"""A LIVE SELECT over a table: which resources it is about, its conditions, and what a change means to it.

A condition holds or does not. A field may have several values: a comparison holds where one of them fits, and
`!=` where there is a value and none is equal; of a field without values only IS NULL holds.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import ge, gt, le, lt
from typing import Any, Protocol, TypeAlias

from graphdb.live.notifications import Difference
from graphdb.live.records import Record, Star, local_name

__all__ = [
    "AnyCondition",
    "Compare",
    "Condition",
    "Contains",
    "Every",
    "Field",
    "IsNull",
    "OneOf",
    "Scalar",
    "Some",
    "Table",
    "TableQuery",
    "Without",
]

Scalar: TypeAlias = str | int | float | bool

_ORDERS: Mapping[str, Callable[[Any, Any], bool]] = {"<": lt, "<=": le, ">": gt, ">=": ge}


@dataclass(frozen=True, slots=True)
class Field:
    """A member of a record: by its local name, or by the IRI of the property where iri is True."""

    name: str
    is_iri: bool = False

    def values(self, star: Star) -> Sequence[Any]:
        """In the order of the record."""
        return star.values.get(self.name, ()) if self.is_iri else star.named(self.name)


class Condition(Protocol):
    def holds(self, star: Star) -> bool: ...
    def fields(self) -> frozenset[Field]: ...


def is_same(one: Any, other: Any) -> bool:
    """As JSON has it: 1 is 1.0, true is not 1."""
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def _are_comparable(one: Any, other: Any) -> bool:
    if isinstance(one, bool) or isinstance(other, bool):
        return False
    return isinstance(one, str) == isinstance(other, str)


@dataclass(frozen=True, slots=True)
class Compare:
    """field operator value; operator is one of = != < <= > >=. Text compares by its characters."""

    field: Field
    operator: str
    value: Scalar

    def holds(self, star: Star) -> bool:
        values = self.field.values(star)
        if self.operator == "=":
            return any(is_same(value, self.value) for value in values)
        if self.operator == "!=":
            return bool(values) and not any(is_same(value, self.value) for value in values)
        fits = _ORDERS[self.operator]
        return any(_are_comparable(value, self.value) and fits(value, self.value) for value in values)

    def fields(self) -> frozenset[Field]:
        return frozenset({self.field})


@dataclass(frozen=True, slots=True)
class OneOf:
    """field IN [...]."""

    field: Field
    choices: tuple[Scalar, ...]

    def holds(self, star: Star) -> bool:
        return any(is_same(value, choice) for value in self.field.values(star) for choice in self.choices)

    def fields(self) -> frozenset[Field]:
        return frozenset({self.field})


@dataclass(frozen=True, slots=True)
class Contains:
    """field CONTAINS value: a value that is equal, or a text that has this text in it."""

    field: Field
    value: Scalar

    def holds(self, star: Star) -> bool:
        sought = self.value
        return any(
            is_same(value, sought) or (isinstance(value, str) and isinstance(sought, str) and sought in value)
            for value in self.field.values(star)
        )

    def fields(self) -> frozenset[Field]:
        return frozenset({self.field})


@dataclass(frozen=True, slots=True)
class IsNull:
    """field IS NULL: it has no value."""

    field: Field

    def holds(self, star: Star) -> bool:
        return not self.field.values(star)

    def fields(self) -> frozenset[Field]:
        return frozenset({self.field})


@dataclass(frozen=True, slots=True)
class Without:
    """NOT condition."""

    condition: "AnyCondition"

    def holds(self, star: Star) -> bool:
        return not self.condition.holds(star)

    def fields(self) -> frozenset[Field]:
        return self.condition.fields()


@dataclass(frozen=True, slots=True)
class Every:
    """condition AND condition ..."""

    conditions: tuple["AnyCondition", ...]

    def holds(self, star: Star) -> bool:
        return all(condition.holds(star) for condition in self.conditions)

    def fields(self) -> frozenset[Field]:
        return frozenset().union(*(condition.fields() for condition in self.conditions))


@dataclass(frozen=True, slots=True)
class Some:
    """condition OR condition ..."""

    conditions: tuple["AnyCondition", ...]

    def holds(self, star: Star) -> bool:
        return any(condition.holds(star) for condition in self.conditions)

    def fields(self) -> frozenset[Field]:
        return frozenset().union(*(condition.fields() for condition in self.conditions))


AnyCondition: TypeAlias = Compare | OneOf | Contains | IsNull | Without | Every | Some


@dataclass(frozen=True, slots=True)
class Table:
    """The resources of the classes with a local name, or of the class with an IRI."""

    name: str
    is_iri: bool = False

    def holds(self, star: Star) -> bool:
        """Whether a resource is one of its rows."""
        return any(
            self.name == (one if self.is_iri else local_name(one))
            for one in star.classes
            if isinstance(one, str)
        )


@dataclass(frozen=True, slots=True, eq=False)
class TableQuery:
    """Equal where the same was asked, however it was written. fields: None is the star."""

    table: Table
    fields: tuple[Field, ...] | None = None
    condition: AnyCondition | None = None
    _identity: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        # as text, for to Python 1 and true are the same
        object.__setattr__(self, "_identity", repr((self.table, self.fields, self.condition)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TableQuery) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    def matches(self, star: Star) -> bool:
        """Whether a resource is a row of the answer."""
        return self.table.holds(star) and (self.condition is None or self.condition.holds(star))

    def shown(self, star: Star) -> Record:
        """The record with the fields that were asked for, and the id."""
        if self.fields is None:
            return star.record()
        record: Record = {"id": star.id}
        for one, name in zip(self.fields, _member_names(self.fields), strict=True):
            values = one.values(star)
            if values and name != "id":
                record[name] = values[0] if len(values) == 1 else list(values)
        return record

    def difference(self, before: Star, after: Star) -> Difference | None:
        """What a change means to one resource; None where nothing of what is shown has changed."""
        was, is_now = self.matches(before), self.matches(after)
        if not is_now:
            return Difference("DELETE", {"id": before.id}) if was else None
        if not was:
            return Difference("CREATE", self.shown(after))
        shown = self.shown(after)
        return None if _same_record(self.shown(before), shown) else Difference("UPDATE", shown)

    @property
    def anchor(self) -> tuple[Field, tuple[Any, ...]] | None:
        """A field and values of which every row has one, so that other rows need not be looked at."""
        condition = self.condition
        for one in condition.conditions if isinstance(condition, Every) else (condition,):
            if isinstance(one, Compare) and one.operator == "=":
                return one.field, (one.value,)
            if isinstance(one, OneOf):
                return one.field, one.choices
        return None


def _member_names(fields: tuple[Field, ...]) -> list[str]:
    names = [local_name(one.name) if one.is_iri else one.name for one in fields]
    return [
        one.name if names.count(name) > 1 and one.is_iri else name
        for one, name in zip(fields, names, strict=True)
    ]


def _same_record(one: Record, other: Record) -> bool:
    return one.keys() == other.keys() and all(_same(value, other[name]) for name, value in one.items())


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return is_same(one, other)
