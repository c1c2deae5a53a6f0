"""Random calls of GeoSPARQL's functions: right, almost right, and with arguments that nobody meant."""

import json
from random import Random

from graphdb.geometry.geosparql_names import SIGNATURES, Kind
from tests.support.fuzzing.mutations import mutated

__all__ = ["random_geospatial"]

_SYSTEM = b"http://www.opengis.net/def/crs/EPSG/0/"
_GEOMETRIES = (
    b"POINT(1 2)",
    b"POINT ZM (1 2 3 4)",
    b"LINESTRING M(179.9 88 1,180 89 2,180.1 90 3)",
    b"POLYGON((0 0,4 0,4 4,0 4,0 0),(1 1,1 2,2 2,1 1))",
    b"MULTIPOLYGON(((0 0,2 2,2 0,0 2,0 0)),((5 5,6 5,6 6,5 5)))",
    b"GEOMETRYCOLLECTION(POINT EMPTY,LINESTRING(0 0,1 1),CIRCULARSTRING(0 0,1 1,2 0))",
    b"CURVEPOLYGON(COMPOUNDCURVE(CIRCULARSTRING(0 0,1 1,2 0),(2 0,0 0)))",
    b"<" + _SYSTEM + b"4326> POINT(90 180)",
    b"<" + _SYSTEM + b"32633> POLYGON((0 0,1e6 0,1e6 1e6,0 0))",
    b'{"type":"Polygon","coordinates":[[[0,0],[1,0],[1,1],[0,0]]]}',
    b'<gml:Curve xmlns:gml="http://www.opengis.net/gml/3.2"><gml:segments><gml:Arc><gml:posList>0 0 1 1 2 0'
    b"</gml:posList></gml:Arc></gml:segments></gml:Curve>",
    b'<Polygon xmlns="http://www.opengis.net/kml/2.2"><outerBoundaryIs><LinearRing><coordinates>'
    b"0,0 1,0 1,1 0,0</coordinates></LinearRing></outerBoundaryIs></Polygon>",
    b"",
)
_OTHERS: dict[Kind, tuple[bytes, ...]] = {
    Kind.UNIT: (b"http://www.opengis.net/def/uom/OGC/1.0/metre", b"http://qudt.org/vocab/unit/DEG", b"m"),
    Kind.SYSTEM: (_SYSTEM + b"4326", _SYSTEM + b"3857", _SYSTEM + b"1", b"urn:x"),
    Kind.NUMBER: (b"0", b"1", b"-0.5", b"1e5", b"1e999", b"nan"),
    Kind.INTEGER: (b"1", b"0", b"-1", b"9" * 30, b"1.5"),
    Kind.TEXT: (b"T*F**F***", b"FF*FF****", b"3.2", b"2.1.2", b""),
}


def random_geospatial(random: Random) -> tuple[bytes, bytes, bytes, bytes]:
    """Method, target, media type, body."""
    name = random.choice(sorted(SIGNATURES))
    args = [_argument(random, kind).decode("latin-1") for kind in SIGNATURES[name].parameters]
    if random.random() < 0.1:
        args = random.choices([*args, "POINT(1 2)"], k=random.randrange(5))
    fields: dict[str, object] = {"function": random.choice(("", "geof:")) + name, "args": args}
    if random.random() < 0.1:
        fields[random.choice(("function", "args", "nope"))] = random.choice(("x", None, 1, [1], {}))
    body = json.dumps(fields).encode()
    if random.random() < 0.1:
        body = mutated(random, body, _GEOMETRIES)
    return b"POST", b"/geospatial/evaluate", b"application/json", body


def _argument(random: Random, kind: Kind) -> bytes:
    choices = _GEOMETRIES if kind is Kind.GEOMETRY else _OTHERS[kind]
    argument = random.choice(choices)
    return mutated(random, argument, _GEOMETRIES) if random.random() < 0.4 else argument
