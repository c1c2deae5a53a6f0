"""Inputs as terms of RDF: with the datatype that the sources say, or not at all."""

from typing import Any

import pytest
from pyoxigraph import Literal, NamedNode

from graphdb.graphql.model import EnumType, Field, Path, Reference, Scalar
from graphdb.graphql.mutations import UnfitInput, terms_of

XSD = "http://www.w3.org/2001/XMLSchema#"


def field(
    value: Scalar | EnumType | Reference, datatype: str | None = None, *, takes_language: bool = False
) -> Field:
    named = NamedNode(XSD + datatype) if datatype else None
    path = Path("http://e/p")
    return Field(
        "f", path, value, is_list=True, is_required=False, datatype=named, takes_language=takes_language
    )


def typed(text: str, datatype: str) -> Literal:
    return Literal(text, datatype=NamedNode(XSD + datatype))


@pytest.mark.parametrize(
    ("of", "given", "term"),
    [
        (field(Scalar.STRING), "x", Literal("x")),
        (field(Scalar.STRING, "anyURI"), "http://x", typed("http://x", "anyURI")),
        (field(Scalar.STRING, takes_language=True), "x", Literal("x")),
        (field(Scalar.STRING, takes_language=True), {"value": "x"}, Literal("x")),
        (
            field(Scalar.STRING, takes_language=True),
            {"value": "x", "lang": "de"},
            Literal("x", language="de"),
        ),
        (field(Scalar.INT), 5, typed("5", "integer")),
        (field(Scalar.INT, "unsignedByte"), 255, typed("255", "unsignedByte")),
        (field(Scalar.FLOAT), 1e-7, typed("1e-07", "double")),
        (field(Scalar.FLOAT, "decimal"), 1e-7, typed("0.0000001", "decimal")),
        (field(Scalar.FLOAT, "decimal"), 3, typed("3", "decimal")),
        (field(Scalar.BOOLEAN), False, typed("false", "boolean")),
        (field(Scalar.DATE), "2000-02-29", typed("2000-02-29", "date")),
        (field(Scalar.DATE), "-0004-02-29Z", typed("-0004-02-29Z", "date")),
        (field(Scalar.DATE_TIME), "2024-01-31T24:00:00Z", typed("2024-01-31T24:00:00Z", "dateTime")),
        (field(Scalar.TIME), "24:00:00.00-05:00", typed("24:00:00.00-05:00", "time")),
        (field(Scalar.ID), "urn:x", NamedNode("urn:x")),
        (field(Reference("Person")), "http://x/é", NamedNode("http://x/é")),
        (field(EnumType("E", {"ON": NamedNode("urn:on")})), "ON", NamedNode("urn:on")),
    ],
)
def test_a_value_has_its_datatype(of: Field, given: Any, term: NamedNode | Literal) -> None:
    assert terms_of(of, given) == (term,)


@pytest.mark.parametrize(
    ("of", "given"),
    [
        (field(Scalar.INT, "byte"), 128),
        (field(Scalar.INT, "unsignedShort"), -1),
        (field(Scalar.INT, "positiveInteger"), 0),
        (field(Scalar.INT, "negativeInteger"), 0),
        (field(Scalar.DATE), "1900-02-29"),
        (field(Scalar.DATE), "2024-04-31+02:00"),
        (field(Scalar.DATE_TIME), "2023-02-30T00:00:00"),
        (field(Scalar.DATE_TIME), "2023-02-20T24:00:01"),
        (field(Scalar.DATE_TIME, "dateTimeStamp"), "2023-02-20T00:00:00"),
        (field(Scalar.TIME), "24:30:00"),
        (field(Scalar.ID), "x"),
        (field(Scalar.ID), "http://[x"),
        (field(Reference("Person")), "_:b"),
        (field(Scalar.STRING, takes_language=True), {"value": "x", "lang": "d e"}),
    ],
)
def test_what_is_no_value_is_told(of: Field, given: Any) -> None:
    with pytest.raises(UnfitInput, match="f`"):
        terms_of(of, given)


def test_lists_are_values_each_once_and_null_is_none() -> None:
    assert terms_of(field(Scalar.INT), [2, 1, 2]) == (typed("2", "integer"), typed("1", "integer"))
    assert terms_of(field(Scalar.INT), None) == terms_of(field(Scalar.INT), []) == ()
