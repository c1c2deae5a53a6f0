"""A LIVE SELECT over a table: which resources it is about, what it shows of them, and what a change means."""

from dataclasses import dataclass, field
from typing import Any

from graphdb.live.conditions import AnyCondition, Compare, Every, Field, OneOf, is_same
from graphdb.live.records import Record, Star, local_name

__all__ = ["Difference", "Table", "TableQuery"]


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


@dataclass(frozen=True, slots=True)
class Difference:
    """What becomes of one record: CREATE, UPDATE (the record as it is now) or DELETE (its id)."""

    action: str
    result: Record


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
        """What a change tells of one resource; None where nothing of what is shown has changed."""
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
