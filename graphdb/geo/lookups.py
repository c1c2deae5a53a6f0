"""Lookups of a spatial index on behalf of a query: the values that can meet a condition.

`EngineText` is the query's text for the engine, with slots for what the lookups find.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from graphdb.geometry.geosparql_names import GEOF, RELATIONS
from graphdb.sparql.algebra import TextSearch
from graphdb.sparql.patterns import FunctionCall
from graphdb.sparql.printing import Filling
from graphdb.sparql.terms import Iri, RdfLiteral

__all__ = [
    "MEETING",
    "NEAR",
    "NEAREST",
    "Binding",
    "Condition",
    "Constant",
    "EngineText",
    "Lookup",
    "Meets",
    "MeetsResource",
    "Nearest",
    "Ordered",
    "Within",
]

Constant: TypeAlias = RdfLiteral | Iri | FunctionCall
"""An expression with the same value in every solution. The arguments of a call are constants too."""

_DISJOINT = ("sfDisjoint", "ehDisjoint", "rcc8dc")
MEETING: Final = frozenset(GEOF + name for name in RELATIONS if name not in _DISJOINT)
"""The functions that hold only for geometries with a point in common."""


@dataclass(frozen=True, slots=True)
class Meets:
    """The bounds of the value meet those of the geometry."""

    geometry: Constant


@dataclass(frozen=True, slots=True)
class Nearest:
    """The origin of a distance. unit None is the metre."""

    geometry: Constant
    unit: Constant | None


@dataclass(frozen=True, slots=True)
class Within:
    """The value is within a distance."""

    place: Nearest
    limit: RdfLiteral


@dataclass(frozen=True, slots=True)
class MeetsResource:
    """The bounds of the value meet those of a geometry, or of a geometry of a feature."""

    iri: str


Condition: TypeAlias = Meets | MeetsResource | Within


@dataclass(frozen=True, slots=True)
class Binding:
    """A variable that is the object of one of these properties in every solution."""

    variable: str
    properties: frozenset[str]
    values_max: int  # of VALUES before the pattern that binds it, which the engine still looks up one by one


@dataclass(frozen=True, slots=True)
class Lookup:
    """The values of a variable that meet all of the conditions."""

    binding: Binding
    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Ordered:
    """A query returns its first rows by the distance of a variable's value, which a call measures."""

    binding: Binding
    place: Nearest
    call: FunctionCall
    limit: int
    offset: int


NEAREST = "nearest"
"""The slot for values, before the triples that bind what a query's order measures."""
NEAR = "near"
"""The slot for a filter, at the end of such a query's pattern."""

_PLAIN = Filling()


@dataclass(frozen=True, slots=True)
class EngineText:
    """The text of a query for the engine, with slots.

    pieces has pieces of the text at even places, and between them names of slots: the number of a lookup,
    NEAREST or NEAR. call is the text of the call of nearest. fillings are by the name of a slot.
    """

    pieces: tuple[str, ...]
    calls_geometry: bool = False  # it needs the functions of GeoSPARQL
    lookups: tuple[Lookup, ...] = ()
    nearest: Ordered | None = None
    call: str = ""
    fillings: Mapping[str, Filling] = field(default_factory=dict)
    searches: tuple[TextSearch, ...] = ()  # what they find has to be put in before the text is evaluated

    def with_tables(self, tables: Mapping[str, str]) -> "EngineText":
        """The text with what the searches found, by their names."""
        pieces = [self.pieces[0]]
        for place in range(1, len(self.pieces), 2):
            name, after = self.pieces[place : place + 2]
            if name in tables:
                pieces[-1] += tables[name] + after
            else:
                pieces += (name, after)
        return replace(self, pieces=tuple(pieces), searches=())

    @property
    def text(self) -> str:
        """The text with all slots empty."""
        return self.pieces[0] if len(self.pieces) == 1 else self.filled({})

    def filled(self, found: Mapping[str, str]) -> str:
        """The text with these in their slots, by name."""
        pieces = list(self.pieces)
        for place in range(1, len(pieces), 2):
            name = pieces[place]
            filling = self.fillings.get(name, _PLAIN)
            pieces[place] = found[name].join(filling.around) if name in found else filling.without
        return "".join(pieces)
