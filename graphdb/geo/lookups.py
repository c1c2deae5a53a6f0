"""What a spatial index can be asked on behalf of a query: for which values a condition can hold."""

from dataclasses import dataclass
from typing import Final, TypeAlias

from graphdb.geometry.geosparql_names import GEOF, RELATIONS
from graphdb.sparql.patterns import FunctionCall
from graphdb.sparql.terms import Iri, RdfLiteral

__all__ = [
    "MEETING",
    "Binding",
    "Condition",
    "Constant",
    "Lookup",
    "Meets",
    "MeetsResource",
    "Nearest",
    "Ordered",
    "Within",
]

Constant: TypeAlias = RdfLiteral | Iri | FunctionCall
"""Has the same value in every solution; of a call, so have its arguments."""

_DISJOINT = ("sfDisjoint", "ehDisjoint", "rcc8dc")
MEETING: Final = frozenset(GEOF + name for name in RELATIONS if name not in _DISJOINT)
"""The functions that hold only for geometries with a point in common."""


@dataclass(frozen=True, slots=True)
class Meets:
    """The bounds of the value meet those of the geometry."""

    geometry: Constant


@dataclass(frozen=True, slots=True)
class Nearest:
    """What a distance is measured from; unit None is the metre."""

    geometry: Constant
    unit: Constant | None


@dataclass(frozen=True, slots=True)
class Within:
    """The value is at most so far away."""

    place: Nearest
    limit: RdfLiteral


@dataclass(frozen=True, slots=True)
class MeetsResource:
    """The bounds of the value meet those of a geometry, or of one that a feature has."""

    iri: str


Condition: TypeAlias = Meets | MeetsResource | Within


@dataclass(frozen=True, slots=True)
class Binding:
    """A variable that is an object of one of these properties in every solution."""

    variable: str
    properties: frozenset[str]
    values_max: int  # of VALUES before what binds it, that the engine still joins by looking up each


@dataclass(frozen=True, slots=True)
class Lookup:
    """Values of a variable for which all of the conditions hold."""

    binding: Binding
    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Ordered:
    """A query's answer is its first rows by the distance of a variable's value, which a call tells."""

    binding: Binding
    place: Nearest
    call: FunctionCall
    limit: int
    offset: int
