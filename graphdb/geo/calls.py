"""A call of a function with RDF terms: arguments are read by its signature, its answer becomes a literal."""

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from pyoxigraph import BlankNode, Literal, NamedNode, Triple
from shapely import GEOSException

from graphdb.errors import BadGeometry, InvalidParameter
from graphdb.geo.geometry import Geometry, read_geometry, write_geometry
from graphdb.geo.implementations import IMPLEMENTATIONS, Value
from graphdb.geo.signatures import SIGNATURES, Kind

__all__ = ["Term", "call", "check_count"]

Term: TypeAlias = NamedNode | BlankNode | Literal | Triple

_XSD = "http://www.w3.org/2001/XMLSchema#"
_ANY_URI = NamedNode(_XSD + "anyURI")
_INTEGERS = {_XSD + name for name in ("integer", "int", "long", "short", "byte", "nonNegativeInteger")}
_INTEGERS |= {_XSD + name for name in ("positiveInteger", "unsignedInt", "unsignedLong", "unsignedShort")}
_NUMBERS = _INTEGERS | {_XSD + name for name in ("double", "float", "decimal")}
_TEXTS = {_XSD + "string", _XSD + "anyURI"}


def call(name: str, terms: Sequence[Term]) -> Literal:
    """Call the function of this name in geof:, which has to be one of SIGNATURES.

    Raises InvalidParameter, BadGeometry, LimitExceeded.
    """
    check_count(name, len(terms))
    kinds = SIGNATURES[name].parameters
    with np.errstate(all="ignore"):  # numbers beyond what they can be are infinite, and that is not news
        arguments = [_READERS[kind](term) for kind, term in zip(kinds, terms, strict=False)]
        try:
            return _literal(IMPLEMENTATIONS[name](*arguments))
        except GEOSException as error:
            raise BadGeometry(f"cannot be computed: {error}") from None


def check_count(name: str, count: int) -> None:
    """Raises InvalidParameter for arguments too few or too many."""
    signature = SIGNATURES[name]
    if not signature.takes(count):
        raise InvalidParameter("args", f"geof:{name} takes {signature}, not {count}")


def _literal(value: Value) -> Literal:
    match value:
        case Geometry():
            return write_geometry(value)
        case str():
            return Literal(value, datatype=_ANY_URI)
        case _:
            return Literal(value)


def _read_geometry(term: Term) -> Geometry:
    if not isinstance(term, Literal):
        raise InvalidParameter("args", f"{term} is no literal, where a geometry is needed")
    return read_geometry(term)


def _read_iri(term: Term) -> str:
    if isinstance(term, NamedNode):
        return term.value
    return _lexical(term, _TEXTS, "the IRI")


def _read_number(term: Term) -> float:
    try:
        number = float(_lexical(term, _NUMBERS, "the number"))
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InvalidParameter("args", f"{term} is no finite number")
    return number


def _read_integer(term: Term) -> int:
    number = _read_number(term)
    if number != int(number):
        raise InvalidParameter("args", f"{number:g} is no integer")
    return int(number)


def _read_text(term: Term) -> str:
    return _lexical(term, _TEXTS, "the string")


def _lexical(term: Term, datatypes: set[str], wanted: str) -> str:
    if isinstance(term, Literal) and term.datatype.value in datatypes:
        return term.value
    raise InvalidParameter("args", f"{str(term)[:200]} is not {wanted} that is needed")


_READERS: dict[Kind, Callable[[Term], Any]] = {
    Kind.GEOMETRY: _read_geometry,
    Kind.UNIT: _read_iri,
    Kind.SYSTEM: _read_iri,
    Kind.NUMBER: _read_number,
    Kind.INTEGER: _read_integer,
    Kind.TEXT: _read_text,
}
