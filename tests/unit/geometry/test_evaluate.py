"""Calls with texts: how functions are named, what the texts are taken for, what is wrong with them."""

import json

import pytest

from graphdb.errors import BadGeometry, InvalidParameter, RequestError, UnknownFunction
from graphdb.geometry.evaluate import evaluate, evaluation_json, function_name
from graphdb.geometry.geosparql_names import GEOF, SIGNATURES, WKT
from tests.unit.geometry.conftest import EPSG, UOM

XSD = "http://www.w3.org/2001/XMLSchema#"
METRE = UOM + "metre"


@pytest.mark.parametrize("function", ["distance", "geof:distance", GEOF + "distance"])
def test_names_of_a_function(function: str) -> None:
    result, datatype = evaluate(function, ["POINT(0 0)", "POINT(0 1)", METRE])
    assert result == pytest.approx(110574.3886)
    assert datatype == XSD + "double"


@pytest.mark.parametrize(
    ("function", "words"),
    [
        ("", "no function"),
        ("buffer2", "no function buffer2"),
        ("Distance", "perhaps geof:distance"),
        ("geof:SFWITHIN", "perhaps geof:sfWithin"),
        ("http://example.org/distance", "no function"),
        ("geof:aggUnion", "aggregate"),
        ("asDGGS", "grids"),
        ("x" * 100_000, "no function"),
    ],
)
def test_no_functions(function: str, words: str) -> None:
    with pytest.raises(UnknownFunction, match=words) as raised:
        evaluate(function, [])
    assert len(str(raised.value)) < 500


@pytest.mark.parametrize("name", SIGNATURES)
def test_a_wrong_number_of_arguments_is_told(name: str) -> None:
    with pytest.raises(InvalidParameter, match=f"args: geof:{name} takes .*, not 0"):
        evaluate(name, [])


@pytest.mark.parametrize(
    "text",
    [
        "POINT(2 48)",
        " POINT Z (2 48 5)",
        f"<{EPSG}4326> POINT(48 2)",
        f"  <{EPSG}4326>POINT(48 2)",
        "<urn:ogc:def:crs:EPSG::4326> POINT(48 2)",
        '{"type": "Point", "coordinates": [2, 48]}',
        '<Point xmlns="http://www.opengis.net/gml"><pos>2 48</pos></Point>',
        '<?xml version="1.0"?><g:Point xmlns:g="http://www.opengis.net/gml"><g:pos>2 48</g:pos></g:Point>',
        '<Point xmlns="http://www.opengis.net/kml/2.2"><coordinates>2,48</coordinates></Point>',
    ],
)
def test_notations_of_a_geometry(text: str) -> None:
    assert evaluate("sfEquals", [text, "POINT(2 48)"]) == (True, XSD + "boolean")


@pytest.mark.parametrize(
    ("function", "args", "result"),
    [
        ("isEmpty", [""], True),
        ("isEmpty", ["POINT(1 2)"], False),
        ("numGeometries", ["MULTIPOINT(1 2,3 4)"], 2),
        ("geometryN", ["MULTIPOINT(1 2,3 4)", "2"], "POINT (3 4)"),
        ("relate", ["POINT(1 2)", "POINT(1 2)", "T********"], True),
        ("minX", ["POINT(1.5 2)"], 1.5),
        ("getSRID", ["POINT(1 2)"], "http://www.opengis.net/def/crs/OGC/1.3/CRS84"),
        ("transform", ["POINT(1 2)", f"<{EPSG}4326>"], f"<{EPSG}4326> POINT (2 1)"),
        ("buffer", ["POINT EMPTY", " 1e3 ", METRE], "POLYGON EMPTY"),
        ("asGML", ["POINT EMPTY"], '<gml:Point xmlns:gml="http://www.opengis.net/gml/3.2" srsName="http://www.opengis.net/def/crs/OGC/1.3/CRS84"></gml:Point>'),
    ],
)  # fmt: skip
def test_results(function: str, args: list[str], result: object) -> None:
    found, _ = evaluate(function, args)
    assert (found, type(found)) == (result, type(result))


@pytest.mark.parametrize(
    ("function", "args", "words"),
    [
        ("distance", ["POINT(0 0)", "POINT(0 1)", "metre"], "no IRI"),
        ("distance", ["POINT(0 0)", "POINT(0 1)", "http://example.org/"], "unit: .* not known"),
        ("buffer", ["POINT(0 0)", "ten", METRE], "'ten' is no number"),
        ("buffer", ["POINT(0 0)", "nan", METRE], "no number"),
        ("buffer", ["POINT(0 0)", "1e999", METRE], "finite"),
        ("geometryN", ["POINT(0 0)", "1.5"], "no integer"),
        ("geometryN", ["POINT(0 0)", "9"], "index"),
        ("transform", ["POINT(0 0)", "http://example.org/"], "reference system"),
        ("asGML", ["POINT(0 0)", "nine"], "gmlProfile"),
        ("relate", ["POINT(0 0)", "POINT(0 0)", "x"], "pattern"),
    ],
)
def test_arguments_that_mean_nothing(function: str, args: list[str], words: str) -> None:
    with pytest.raises(InvalidParameter, match=words):
        evaluate(function, args)


@pytest.mark.parametrize(
    "text", ["POINT(0", "<http://example.org/> POINT(0 0)", "{", "<a", "<!DOCTYPE a>", "<http://x"]
)
def test_geometries_that_are_none(text: str) -> None:
    with pytest.raises(BadGeometry):
        evaluate("isEmpty", [text])


def test_a_number_too_large_for_json() -> None:
    wide = "POLYGON((0 0,1e300 0,1e300 1e300,0 1e300,0 0))"
    with pytest.raises(BadGeometry, match="no finite number"):
        evaluate("metricArea", [f"<{EPSG}27700> {wide}"])


def test_the_answer_as_json() -> None:
    pieces = list(evaluation_json(GEOF + "asWKT", ["LINESTRING(" + "0 0,1 1," * 50_000 + "2 2)"]))
    assert len(pieces) > 5
    answer = json.loads(b"".join(pieces))
    assert list(answer) == ["function", "result", "datatype"]
    assert (answer["function"], answer["datatype"]) == ("geof:asWKT", WKT)
    with pytest.raises(RequestError):
        next(evaluation_json("asWKT", []))


def test_function_name() -> None:
    assert function_name("geof:rcc8eq") == "rcc8eq"
