"""A query's text narrowed by a spatial index: few values instead of all values of a property."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from pyoxigraph import BlankNode, Literal, Triple

from graphdb.geo.lookups import NEAR, NEAREST, Condition, EngineText, Lookup, MeetsResource, Ordered, Within
from graphdb.geo.spatial_index import SpatialIndex, Values
from graphdb.geometry.functions import Term

if TYPE_CHECKING:
    from graphdb.geo.geometry_column import GeometryColumn, Place

__all__ = ["Narrowed", "NotUsed", "Report", "candidates", "narrowed"]

GeometriesOf: TypeAlias = Callable[[str], Iterable[Term]]

_CHARACTERS_MAX: Final = 1 << 20  # of values in one text
_WAITING_MAX: Final = 64  # values that the index has not read yet; up to so many count as found
_FEW: Final = 200  # so many values are worth it, whatever share of all they are
_NEAREST_ROWS_MAX: Final = 1_000
_RINGS: Final = (2, 20)  # how many values for each row that the query wants
_MORE: Final = 10  # and so many in addition


@dataclass(frozen=True, slots=True)
class Report:
    """The result of one lookup: how many values it found, or None and the reason why it was not used."""

    variable: str
    sought: str  # "meeting", "within a distance", "nearest"
    values: int | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Narrowed:
    """The text for the engine, and attempts to make before it, in their order.

    If an attempt returns as many rows as the query wants, its rows are the answer.
    """

    text: str
    attempts: tuple[str, ...] = ()
    rows: int = 0
    reports: tuple[Report, ...] = ()


class NotUsed(Exception):
    """A lookup is not used; the reason is for people."""


def narrowed(
    made: EngineText, index: SpatialIndex, at: int | None = None, geometries_of: GeometriesOf | None = None
) -> Narrowed:
    """The text for the present state of the store, or for that of a log index.

    geometries_of returns the geometries of a resource in exactly that state. It is None if that is
    impossible.
    """
    slots: dict[str, str] = {}
    reports = []
    for number, lookup in enumerate(made.lookups):
        variable, sought = lookup.binding.variable, " and ".join(map(_word, lookup.conditions))
        try:
            found = candidates(lookup, index, at, geometries_of)
        except NotUsed as reason:
            reports.append(Report(variable, sought, None, str(reason)))
        else:
            slots[str(number)] = _as_values(variable, found)
            reports.append(Report(variable, sought, len(found)))
    attempts = []
    if made.nearest is not None:
        variable = made.nearest.binding.variable
        try:
            for found, near in _rings(made, made.nearest, index, at):
                attempts.append(made.filled({**slots, NEAREST: _as_values(variable, found), NEAR: near}))
                reports.append(Report(variable, "nearest", len(found)))
        except NotUsed as reason:
            reports.append(Report(variable, "nearest", None, str(reason)))
    rows = made.nearest.limit if made.nearest is not None else 0
    return Narrowed(made.filled(slots), tuple(attempts), rows, tuple(reports))


def candidates(
    lookup: Lookup, index: SpatialIndex, at: int | None = None, geometries_of: GeometriesOf | None = None
) -> list[Term]:
    """All values that can meet the conditions of a lookup, and perhaps others. Raises NotUsed."""
    found: dict[Term, None] = {}
    count = 0
    for iri in sorted(lookup.binding.properties):
        values = _known(index, iri, at)
        found.update(dict.fromkeys(filter(_has_name, values.waiting)))
        if values.column is not None:
            count += values.column.count
            found.update(dict.fromkeys(_in_column(lookup, values.column, geometries_of)))
    if len(found) > min(lookup.binding.values_max, max(_FEW, count // 2)):
        raise NotUsed(f"it finds {len(found):,} values of {count:,}, which is too many")
    _check_characters(found)
    return list(found)


def _in_column(
    lookup: Lookup, column: "GeometryColumn", geometries_of: GeometriesOf | None
) -> Iterator[Term]:
    """The values that can meet all of the conditions. A condition that cannot be looked up is left out."""
    # at the top, every process that reads queries would load the libraries for geometries
    from graphdb.geo.geometry_column import NOTED_MAX
    from graphdb.geo.searches import NoSearch, places_for, places_meeting

    if len(column.unlocated) > NOTED_MAX:
        raise NotUsed("too many geometries are in reference systems without bounds in degrees")
    places: frozenset[Place] | None = None
    why = ""
    for condition in lookup.conditions:
        try:
            if isinstance(condition, MeetsResource):
                if geometries_of is None:
                    raise NoSearch("the store has changed since the state that is queried")
                found = places_meeting(geometries_of(condition.iri), column)
            else:
                found = places_for(condition, column)
        except NoSearch as reason:
            why = str(reason)
        else:
            places = found if places is None else places & found
    if places is None:
        raise NotUsed(why)
    if len(places) > lookup.binding.values_max:
        raise NotUsed(f"it finds {len(places):,} values, which is too many")
    yield from column.unlocated
    yield from _read(places, column)


def _rings(
    made: EngineText, ordered: Ordered, index: SpatialIndex, at: int | None
) -> Iterator[tuple[list[Term], str]]:
    """Values around the origin of the distance, and a filter that keeps those nearer than all other values.

    Values without a distance come first in the order, so every ring has them.
    """
    from graphdb.geo.searches import NoSearch, ring_around

    column, others = _measured(ordered, index, at)
    wanted = ordered.limit + ordered.offset
    try:
        for times in _RINGS:
            least = times * wanted + _MORE
            if 2 * least > column.count:
                return
            ring = ring_around(ordered.place, column, least, ordered.binding.values_max)
            found = dict.fromkeys([*others, *_read(ring.places, column)])
            near = "" if ring.limit is None else f"FILTER(COALESCE({made.call} < {ring.limit!r}, true))"
            yield list(found), near
    except NoSearch as reason:
        raise NotUsed(str(reason)) from None


def _measured(ordered: Ordered, index: SpatialIndex, at: int | None) -> tuple["GeometryColumn", list[Term]]:
    """The column to search, and the values that every ring has. Raises NotUsed."""
    if ordered.limit + ordered.offset > _NEAREST_ROWS_MAX:
        raise NotUsed(f"more than {_NEAREST_ROWS_MAX:,} rows are asked for")
    known = [_known(index, iri, at) for iri in sorted(ordered.binding.properties)]
    columns = [values.column for values in known if values.column is not None]
    if len(columns) != 1:
        raise NotUsed("more than one property has values" if columns else "there are no values")
    column = columns[0]
    waiting = [term for values in known for term in values.waiting]
    if column.nameless or not all(map(_has_name, waiting)):
        raise NotUsed("some values are blank nodes or triples")
    others = [*column.odd, *column.unlocated, *waiting]
    if len(others) > _FEW:
        raise NotUsed("no distance can be told of many values")
    _check_characters(others)
    return column, others


def _known(index: SpatialIndex, iri: str, at: int | None) -> Values:
    values = index.values(iri, at)
    if values is None:
        raise NotUsed(f"the index does not have the values of <{iri}> yet")
    if len(values.waiting) > _WAITING_MAX:
        raise NotUsed("the index is behind the last changes")
    return values


def _read(places: "frozenset[Place]", column: "GeometryColumn") -> Iterator[Term]:
    if sum(size for _, size in places) > _CHARACTERS_MAX:
        raise NotUsed("the values that it finds are too long")
    return column.terms(sorted(places))


def _check_characters(terms: Iterable[Term]) -> None:
    """Raises NotUsed if the values are too long: those that were never read may have megabytes."""
    if sum(len(term.value) for term in terms if isinstance(term, Literal)) > _CHARACTERS_MAX:
        raise NotUsed("the values that it finds, or that may be anywhere, are too long")


def _has_name(term: Term) -> bool:
    return not isinstance(term, BlankNode | Triple)


def _as_values(variable: str, terms: Iterable[Term]) -> str:
    return f"VALUES ?{variable} {{ {' '.join(map(str, terms))} }}"


def _word(condition: Condition) -> str:
    return "within a distance" if isinstance(condition, Within) else "meeting"
