"""Coordinate reference systems: finding them by IRI, their axes and units, and transformations between them.

PROJ does this, through pyproj and the database that pyproj contains. It never downloads grids.
"""

import math
import re
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from pyproj import CRS, Geod, Transformer, network
from pyproj.exceptions import CRSError, ProjError

from graphdb.errors import BadGeometry, InvalidParameter
from graphdb.geometry.geosparql_names import CRS84
from graphdb.geometry.shapes import Positions

__all__ = ["ReferenceSystem", "crs84", "reference_system", "transformation"]

network.set_network_enabled(False)  # type: ignore[attr-defined]  # documented, but not in its __all__

_SYSTEMS_MAX = 256  # kept at a time
_NAME_CHARACTERS_MAX = 200
_IRI = re.compile(
    r"https?://www\.opengis\.net/def/(?:crs|srs)/(?P<authority>\w+)/(?P<version>[\w.]+)/(?P<code>\w+)/?"
    r"|urn:(?:ogc|x-ogc):def:crs:(?P<urn_authority>\w+):(?P<urn_version>[\w.]*):(?P<urn_code>\w+)",
    re.IGNORECASE,
)
# names from before axes had an order: always east first
_OLD_NAME = re.compile(r"(?:https?://www\.opengis\.net/gml/srs/(\w+)\.xml#|(EPSG):)(\d+)", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class ReferenceSystem:
    """A system of coordinates in the plane, or of longitudes and latitudes."""

    iri: str
    crs: CRS
    is_north_first: bool  # in literals, northing or latitude is before easting or longitude

    @cached_property
    def is_geographic(self) -> bool:
        """Whether positions are longitudes and latitudes."""
        return bool(self.crs.is_geographic)

    @cached_property
    def unit_factor(self) -> float:
        """One unit of the axes in metres, or in radians if the system is geographic."""
        return float(self.crs.axis_info[0].unit_conversion_factor)

    @cached_property
    def degrees(self) -> float:
        """One unit of the axes of a geographic system in degrees: 1, except for some old systems."""
        degrees = math.degrees(self.unit_factor)
        return 1.0 if math.isclose(degrees, 1) else degrees

    @cached_property
    def geod(self) -> Geod:
        """Its ellipsoid."""
        geod = self.crs.get_geod()
        assert geod is not None, "checked when the system was made"
        return geod

    def is_like(self, other: "ReferenceSystem") -> bool:
        """Whether positions, east first, mean the same in both."""
        return self is other or self.iri == other.iri or _are_alike(self.crs, other.crs)


@lru_cache(_SYSTEMS_MAX)
def reference_system(iri: str) -> ReferenceSystem:
    """The system that an IRI names, as OGC writes it: http://www.opengis.net/def/crs/EPSG/0/4326, or a URN.

    The order of the axes is the authority's. With names of the older kinds ("EPSG:4326",
    http://www.opengis.net/gml/srs/epsg.xml#4326) east is first.
    Raises InvalidParameter.
    """
    found = _parsed(iri)
    if found is None:
        raise InvalidParameter(
            "reference system",
            f"<{iri[:_NAME_CHARACTERS_MAX]}> is not known;"
            " it is named like <http://www.opengis.net/def/crs/EPSG/0/4326>",
        )
    crs, is_older = found
    if not (crs.is_geographic or crs.is_projected) or len(crs.axis_info) < 2 or crs.get_geod() is None:
        raise InvalidParameter("reference system", f"<{iri}> has no plane and no longitudes and latitudes")
    return ReferenceSystem(iri, crs, not is_older and _is_north_first(crs))


def crs84() -> ReferenceSystem:
    """The system of literals that do not name one."""
    return reference_system(CRS84)


def transformation(source: ReferenceSystem, target: ReferenceSystem, positions: Positions) -> Positions:
    """The positions in another system. Raises BadGeometry if one does not exist there."""
    if not len(positions):
        return positions
    try:
        transformer = _transformer(source.crs, target.crs)
        x, y = transformer.transform(positions[:, 0], positions[:, 1])
    except ProjError as error:
        raise BadGeometry(f"cannot go from <{source.iri}> to <{target.iri}>: {error}") from None
    moved = np.column_stack((x, y))
    if not np.isfinite(moved).all():
        raise BadGeometry(
            f"cannot go from <{source.iri}> to <{target.iri}>: the geometry lies outside of what that covers"
        )
    return moved


@lru_cache(_SYSTEMS_MAX)  # PROJ takes milliseconds for an unknown name
def _parsed(iri: str) -> tuple[CRS, bool] | None:
    """The system, and whether its name is of an older kind; None if it is unknown."""
    if len(iri) <= _NAME_CHARACTERS_MAX:
        try:
            if match := _IRI.fullmatch(iri):
                authority = match["authority"] or match["urn_authority"]
                return CRS.from_authority(authority.upper(), match["code"] or match["urn_code"]), False
            if match := _OLD_NAME.fullmatch(iri):
                return CRS.from_authority((match[1] or match[2]).upper(), match[3]), True
        except CRSError:
            pass
    return None


def _is_north_first(crs: CRS) -> bool:
    """By the rule of PROJ's normalize_for_visualization, which `always_xy` uses."""
    first, second = crs.axis_info[:2]
    if (first.direction, second.direction) == ("north", "east"):
        return True
    return (first.name, second.name) == ("Northing", "Easting")


@lru_cache(_SYSTEMS_MAX)
def _are_alike(one: CRS, other: CRS) -> bool:
    return bool(one.equals(other, ignore_axis_order=True))


@lru_cache(_SYSTEMS_MAX)
def _transformer(source: CRS, target: CRS) -> Transformer:
    return Transformer.from_crs(source, target, always_xy=True)
