"""`GeometryColumn`: the values of one property by where they are. It only grows.

Values that are gone from the store stay: whoever looks one up finds no triple with it. So what is found holds
for every state of the store since the first value came in. When too much of it is gone, a new column is made.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from pyoxigraph import BlankNode, Literal, Triple

from graphdb.errors import RequestError
from graphdb.geo.bounds import Bounds, Extent, extent_of
from graphdb.geo.call_costs import READING_MAX, characters_to_read
from graphdb.geo.functions import Term
from graphdb.geo.geodesic import check_on_globe
from graphdb.geo.geometry import Geometry, read_geometry
from graphdb.geo.literal_file import LiteralFile, Place
from graphdb.geo.placed_values import Placed, PlacedValues, edges
from graphdb.geo.vocabulary import CRS84, WKT

__all__ = ["NOTED_MAX", "GeometryColumn"]

NOTED_MAX: Final = 200
"""How many values without a place are kept; there is one more where there are too many."""

# What most geometries are. It is read so as any other is, a tenth as fast.
_POINT: Final = re.compile(
    rf"(?:<{re.escape(CRS84)}>)?\s*POINT\s*\(\s*(-?\d+(?:\.\d+)?)\s+(-?\d+(?:\.\d+)?)\s*\)", re.ASCII
)


class GeometryColumn:
    """One thread adds, any may look up."""

    def __init__(self, directory: Path | None = None) -> None:
        """directory is where the file of texts is made; None: where temporary files are."""
        self._literals = LiteralFile(directory)
        self._values = PlacedValues()
        self.reach: Bounds | None = None  # what is around all bounds
        self.size_max = 0.0  # of the plain ones, the longer side
        self.foreign_reach: Bounds | None = None  # what is around those that are not plain
        self.anywhere: list[Term] = []  # geometries that may be anywhere
        self.odd: list[Term] = []  # terms that no distance can be measured from: empty, malformed, others
        self.nameless = 0  # how many terms no text can name
        self.count = self.placed = 0  # of all that was added, and of those with bounds

    def add(self, terms: Sequence[Term]) -> None:
        """Add values: some microseconds for a point, some tens of them for another geometry."""
        literals, extents = [], []
        for term in terms:
            extent = _extent_of_point(term) or self._extent(term)
            if extent is not None and isinstance(term, Literal):
                literals.append(term)
                extents.append(extent)
        self.count += len(terms)
        self.placed += len(literals)
        if literals:
            self._values.add(self._placed(literals, extents))

    def meeting(self, plain: Sequence[Bounds], foreign: Sequence[Bounds] | None) -> Placed:
        """See `PlacedValues.meeting`."""
        return self._values.meeting(plain, foreign)

    def terms(self, places: Iterable[Place]) -> Iterator[Term]:
        """The values that are written there."""
        return self._literals.read(places)

    def _placed(self, literals: Sequence[Literal], extents: Sequence[Extent]) -> Placed:
        """Literals with bounds, written down."""
        boxes = []
        for extent in extents:
            bounds = extent.bounds
            assert bounds is not None
            boxes.append(edges(bounds))
            self.reach = bounds.with_(self.reach)
            if extent.is_plain:
                self.size_max = max(self.size_max, bounds.size)
            else:
                self.foreign_reach = bounds.with_(self.foreign_reach)
        places = self._literals.append(literals)
        plain = np.array([extent.is_plain for extent in extents])
        return Placed(np.array(boxes), plain, np.array(places, dtype=np.int64))

    def _extent(self, term: Term) -> Extent | None:
        """Its extent, if it has bounds; a term without is noted as what it is."""
        if isinstance(term, BlankNode | Triple):
            self.nameless += 1
            return None
        if isinstance(term, Literal) and characters_to_read(term.value) > READING_MAX:
            _note(self.anywhere, term)
            return None
        try:
            geometry = read_geometry(term) if isinstance(term, Literal) else None
        except RequestError:
            geometry = None
        if geometry is None or geometry.shape.is_empty:
            _note(self.odd, term)
            return None
        extent = extent_of(geometry)
        if extent.bounds is None:
            _note(self.anywhere, term)
            return None
        if extent.is_plain and not _is_on_globe(geometry):
            _note(self.odd, term)
        return extent


def _extent_of_point(term: Term) -> Extent | None:
    """Of a plain point in degrees, as it is mostly written."""
    if not isinstance(term, Literal) or (match := _POINT.fullmatch(term.value)) is None:
        return None
    longitude, latitude = float(match[1]), float(match[2])
    if abs(longitude) > 180 or abs(latitude) > 90 or term.datatype.value != WKT:
        return None
    return Extent(Bounds(longitude, latitude, longitude, latitude), True)


def _note(kept: list[Term], term: Term) -> None:
    if len(kept) <= NOTED_MAX:
        kept.append(term)


def _is_on_globe(geometry: Geometry) -> bool:
    try:
        check_on_globe(geometry.shape)
    except RequestError:
        return False
    return True
