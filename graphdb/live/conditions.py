"""The WHERE of a LIVE SELECT over a table: conditions on one record.

A condition holds or does not. A field may have several values: a comparison holds where one of them fits, and
`!=` where there is a value and none is equal; of a field without values only IS NULL holds.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import ge, gt, le, lt
from typing import Any, Protocol, TypeAlias

from graphdb.live.records import Star

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
    "Without",
    "is_same",
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
