"""One call of a function with arguments as texts, for `POST /geospatial/evaluate`."""

import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

from pyoxigraph import Literal, NamedNode

from graphdb.errors import BadGeometry, InvalidParameter, UnknownFunction
from graphdb.geometry import geosparql_names
from graphdb.geometry.geosparql_names import AGGREGATES, GEOF, SIGNATURES, Kind

__all__ = ["Result", "evaluate", "evaluation_json", "function_name"]

Result: TypeAlias = bool | int | float | str

_PREFIX = "geof:"
_PIECE_CHARACTERS: Final = 65_536
_XSD = "http://www.w3.org/2001/XMLSchema#"
_SYSTEM = re.compile(r"\s*<(https?://|urn:|EPSG:\d)[^<>\s]*>", re.IGNORECASE)  # what no element begins with
_NUMBER = re.compile(r"\s*[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?\s*")


def evaluate(function: str, args: Sequence[str]) -> tuple[Result, str]:
    """Call a function by its name, with or without `geof:`, or its IRI; the result, and its datatype's IRI.

    A geometry may be given in WKT, with the IRI of a reference system before it or not, in GML, KML or
    GeoJSON; one that is the result is written as the first one was.
    Raises UnknownFunction, InvalidParameter, BadGeometry, LimitExceeded.
    """
    name = function_name(function)
    # at the top, processes that never call a function would also wait for this import
    from graphdb.geometry.calls import call, check_count

    check_count(name, len(args))
    kinds = SIGNATURES[name].parameters
    literal = call(name, [_TERMS[kind](text) for kind, text in zip(kinds, args, strict=False)])
    result = _plain(literal)
    if isinstance(result, float) and not math.isfinite(result):
        raise BadGeometry("the result is no finite number")
    return result, literal.datatype.value


def evaluation_json(function: str, args: Sequence[str]) -> Iterator[bytes]:
    """The same as a JSON object of function (with its prefix), result and datatype, in pieces.

    Raises what evaluate raises, before the first piece.
    """
    result, datatype = evaluate(function, args)
    answer = {"function": _PREFIX + function_name(function), "result": result, "datatype": datatype}
    text = json.dumps(answer, ensure_ascii=False, separators=(",", ":"))
    for begin in range(0, len(text), _PIECE_CHARACTERS):
        yield text[begin : begin + _PIECE_CHARACTERS].encode()


def function_name(function: str) -> str:
    """The name within the namespace geof:. Raises UnknownFunction."""
    name = function.removeprefix(GEOF).removeprefix(_PREFIX)
    if name in SIGNATURES:
        return name
    if name in AGGREGATES:
        raise UnknownFunction(function, "it is an aggregate function, for the solutions of a query")
    if name == "asDGGS":
        raise UnknownFunction(function, "discrete global grids are not offered")
    alike = next((known for known in SIGNATURES if known.lower() == name.lower()), None)
    raise UnknownFunction(function[:100], f"perhaps {_PREFIX}{alike} is meant" if alike else None)


def _geometry(text: str) -> Literal:
    """What it is written in, its first characters tell."""
    begin = text.lstrip()[:1]
    if begin == "{":
        datatype = geosparql_names.GEOJSON
    elif begin == "<" and not _SYSTEM.match(text):
        datatype = geosparql_names.KML if "/kml/" in text[:1000] else geosparql_names.GML
    else:
        datatype = geosparql_names.WKT
    return Literal(text, datatype=NamedNode(datatype))


def _iri(text: str) -> NamedNode:
    iri = text.strip().removeprefix("<").removesuffix(">")
    try:
        return NamedNode(iri)
    except ValueError as error:
        raise InvalidParameter("args", f"{text[:200]!r} is no IRI: {error}") from None


def _number(text: str) -> Literal:
    if not _NUMBER.fullmatch(text):
        raise InvalidParameter("args", f"{text[:50]!r} is no number")
    return Literal(text.strip(), datatype=NamedNode(_XSD + "double"))


_TERMS: dict[Kind, Callable[[str], Literal | NamedNode]] = {
    Kind.GEOMETRY: _geometry,
    Kind.UNIT: _iri,
    Kind.SYSTEM: _iri,
    Kind.NUMBER: _number,
    Kind.INTEGER: _number,
    Kind.TEXT: Literal,
}


def _plain(literal: Literal) -> Result:
    match literal.datatype.value.removeprefix(_XSD):
        case "boolean":
            return literal.value == "true"
        case "integer":
            return int(literal.value)
        case "double":
            return float(literal.value)
    return literal.value
