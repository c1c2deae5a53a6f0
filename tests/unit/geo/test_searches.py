"""Where constants are: what is told of calls encloses what they make, and nothing is called for it."""

import math
from collections.abc import Iterator

import pytest
import shapely
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode

from graphdb.errors import RequestError
from graphdb.geo.lookups import Constant
from graphdb.geo.searches import NoSearch, constant_extent
from graphdb.geometry.calls import call
from graphdb.geometry.functions import Term
from graphdb.geometry.geometry import read_geometry
from graphdb.geometry.geosparql_names import GEOF, WKT
from graphdb.sparql.patterns import FunctionCall
from graphdb.sparql.terms import Iri, RdfLiteral, Span

UOM = "http://www.opengis.net/def/uom/OGC/1.0/"
XSD = "http://www.w3.org/2001/XMLSchema#"
NOWHERE = Span(0, 0)


def wkt(text: str) -> RdfLiteral:
    return RdfLiteral(text, WKT, None, None, NOWHERE)


def number(value: float) -> RdfLiteral:
    return RdfLiteral(repr(value), XSD + "double", None, None, NOWHERE)


def called(name: str, *arguments: Constant) -> FunctionCall:
    return FunctionCall(Iri(GEOF + name, NOWHERE), arguments, False, NOWHERE)


def unit(name: str) -> Iri:
    return Iri(UOM + name, NOWHERE)


POINT = wkt("POINT(8 47)")
LINE = wkt("LINESTRING(1 1, 3 5)")


def value(constant: Constant) -> Term:
    """What a constant is, by calling what it calls."""
    match constant:
        case RdfLiteral(value=text, datatype=datatype):
            return Literal(text, datatype=NamedNode(datatype))
        case Iri(value=iri):
            return NamedNode(iri)
        case FunctionCall(function=function, arguments=arguments):
            return call(function.value.removeprefix(GEOF), [value(each) for each in arguments])  # type: ignore[arg-type]


corners = st.tuples(
    st.integers(-180, 180) | st.sampled_from([-180, 179, 180]),
    st.integers(-90, 90) | st.sampled_from([-89, 88]),
)
sides = st.tuples(st.integers(-4, 4), st.integers(-4, 4)).filter(any)


def line(begin: tuple[int, int], to: tuple[int, int]) -> str:
    """Short: a buffer around a long one takes seconds."""
    (x, y), (east, north) = begin, to
    y = max(-80, min(80, y))
    return f"({x} {y}, {x + east} {y + north})"


geometries = corners.map(lambda at: wkt(f"POINT({at[0]} {at[1]})")) | st.builds(
    lambda kind, begin, to: wkt(kind + line(begin, to)),
    st.sampled_from(["LINESTRING", "MULTIPOINT"]),
    corners,
    sides,
)
metres = st.sampled_from([100_000.0, 3e6, 1e7])
degrees = st.sampled_from([1e-6, 0.5, 3.0])


def more(inner: st.SearchStrategy[Constant]) -> st.SearchStrategy[Constant]:
    return (
        st.builds(lambda of, by: called("buffer", of, number(by), unit("metre")), inner, metres)
        | st.builds(lambda of, by: called("metricBuffer", of, number(by)), inner, metres)
        | st.builds(lambda of, by: called("buffer", of, number(by), unit("degree")), inner, degrees)
        | st.builds(
            called, st.sampled_from(["envelope", "convexHull", "centroid", "boundingCircle", "asWKT"]), inner
        )
        | st.builds(lambda one, other: called("union", one, other), inner, inner)
    )


@given(constant=st.recursive(geometries, more, max_leaves=2))
@settings(max_examples=50, deadline=None)
def test_it_encloses_what_the_functions_make(constant: Constant) -> None:
    try:
        made = read_geometry(value(constant))  # type: ignore[arg-type]
    except RequestError:
        assume(False)
    extent = constant_extent(constant)
    assert extent.is_plain
    assert extent.bounds is not None
    west, south, east, north = shapely.bounds(made.shape)
    assert extent.bounds.west <= west
    assert extent.bounds.south <= south
    assert extent.bounds.east >= east
    assert extent.bounds.north >= north


def test_it_is_about_as_large() -> None:
    bounds = constant_extent(called("buffer", POINT, number(10), unit("kilometre"))).bounds
    assert bounds is not None
    assert math.isclose(bounds.north, 47 + 10 / 111.2, abs_tol=0.01)
    assert math.isclose(bounds.east, 8 + 10 / 75.9, abs_tol=0.01)


@pytest.fixture
def nothing_is_called(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def refuse(*arguments: object) -> None:
        raise AssertionError("a function was called")

    monkeypatch.setattr("graphdb.geometry.calls.call", refuse)
    constant_extent.cache_clear()
    yield
    constant_extent.cache_clear()


def deep(count: int) -> Constant:
    constant: Constant = POINT
    for _ in range(count):
        constant = called("buffer", constant, number(100_000), unit("metre"))
    return constant


@pytest.mark.usefixtures("nothing_is_called")
@pytest.mark.parametrize(
    "constant",
    [
        called("buffer", called("union", LINE, POINT), number(9e6), unit("metre")),
        called("boundingCircle", called("convexHull", LINE)),
        called("transform", LINE, Iri("http://www.opengis.net/def/crs/EPSG/0/4326", NOWHERE)),
        deep(30),
    ],
)
def test_no_function_is_called(constant: Constant) -> None:
    assert constant_extent(constant).bounds is not None


@pytest.mark.usefixtures("nothing_is_called")
@pytest.mark.parametrize(
    "constant",
    [
        called("intersection", LINE, LINE),
        called("difference", LINE, LINE),
        called("boundary", LINE),
        called("buffer", LINE, number(-1), unit("metre")),
        called("buffer", LINE, number(0), unit("metre")),
        called("buffer", LINE, number(1e300), unit("metre")),
        called("buffer", LINE, number(1e-30), unit("degree")),
        called("buffer", LINE, number(math.inf), unit("degree")),
        called("buffer", LINE, number(math.nan), unit("degree")),
        called("buffer", LINE, number(1), unit("square_metre")),
        called("buffer", LINE, number(1), unit("ell")),
        called("buffer", LINE, called("metricArea", LINE), unit("metre")),
        called("union", LINE, wkt("<http://www.opengis.net/def/crs/EPSG/0/3857> POINT(1 1)")),
        called("transform", LINE, Iri("http://www.opengis.net/def/crs/EPSG/0/3857", NOWHERE)),
        called("transform", LINE, Iri("urn:none", NOWHERE)),
        called("envelope", wkt("POINT EMPTY")),
        wkt("POINT(1"),
        deep(33),
        unit("metre"),
    ],
)
def test_what_cannot_be_told(constant: Constant) -> None:
    with pytest.raises(NoSearch):
        constant_extent(constant)
