"""Scalars, and the RDF terms that they stand for."""

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from math import isfinite
from typing import Any, NamedTuple

from graphql import (
    GraphQLBoolean,
    GraphQLError,
    GraphQLFloat,
    GraphQLID,
    GraphQLInt,
    GraphQLScalarType,
    GraphQLString,
)
from pyoxigraph import Literal, NamedNode

from graphdb.graphql.model import Scalar
from graphdb.shacl.shacl_names import XSD

__all__ = [
    "DATATYPES",
    "GRAPHQL_SCALARS",
    "LANG_STRING",
    "NUMBERS",
    "SNAPSHOT_INDEX",
    "TIMES",
    "UnfitValue",
    "Value",
    "iri_text",
    "is_iri",
    "is_resource",
    "json_value",
    "read_value",
    "resource_id",
    "string_text",
    "written",
]

# GraphQL's scalars of dates and times, and how JSON and literals become each other.
#
# Times are texts in the form of XML Schema. One without a time zone is taken for UTC where it is compared.

INT_MAX = 2**31 - 1  # GraphQL section 3.5.1

_ZONE = r"(?:Z|[+-](?:0[0-9]|1[0-4]):[0-5][0-9])?"
_DATE = r"-?(?:[1-9][0-9]{3,}|0[0-9]{3})-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"
_CLOCK = r"(?:[01][0-9]|2[0-4]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]+)?"
_FORMS: Mapping[Scalar, re.Pattern[str]] = {
    Scalar.DATE_TIME: re.compile(f"{_DATE}T{_CLOCK}{_ZONE}"),
    Scalar.DATE: re.compile(f"{_DATE}{_ZONE}"),
    Scalar.TIME: re.compile(f"{_CLOCK}{_ZONE}"),
}
_WHAT = {Scalar.DATE_TIME: "2024-05-31T12:00:00Z", Scalar.DATE: "2024-05-31", Scalar.TIME: "12:00:00Z"}

DATATYPES: Mapping[Scalar, str] = {
    Scalar.STRING: XSD + "string",
    Scalar.INT: XSD + "integer",
    Scalar.FLOAT: XSD + "double",
    Scalar.BOOLEAN: XSD + "boolean",
    Scalar.DATE_TIME: XSD + "dateTime",
    Scalar.DATE: XSD + "date",
    Scalar.TIME: XSD + "time",
}
"""What a literal of a scalar has for its datatype where the schema's sources do not say."""

NUMBERS = frozenset({Scalar.INT, Scalar.FLOAT})
TIMES = frozenset(_FORMS)


class UnfitValue(Exception):
    """A value of the graph that GraphQL's type cannot show."""


def _checked(scalar: Scalar) -> Callable[[Any], str]:
    def check(value: Any) -> str:
        if isinstance(value, str) and _FORMS[scalar].fullmatch(value):
            return value
        raise GraphQLError(f"{scalar.value} must be a text such as {_WHAT[scalar]!r}, not {value!r}.")

    return check


def _time_scalar(scalar: Scalar) -> GraphQLScalarType:
    return GraphQLScalarType(
        scalar.value,
        coerce_input_value=_checked(scalar),
        description=f"xsd:{DATATYPES[scalar].removeprefix(XSD)}, such as {_WHAT[scalar]}",
        specified_by_url=f"https://www.w3.org/TR/xmlschema11-2/#{DATATYPES[scalar].removeprefix(XSD)}",
    )


GRAPHQL_SCALARS: Mapping[Scalar, GraphQLScalarType] = {
    Scalar.STRING: GraphQLString,
    Scalar.INT: GraphQLInt,
    Scalar.FLOAT: GraphQLFloat,
    Scalar.BOOLEAN: GraphQLBoolean,
    Scalar.ID: GraphQLID,
    **{scalar: _time_scalar(scalar) for scalar in _FORMS},
}


def _text_or_tagged(value: Any) -> Any:
    """A text, or the members of one in a language."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict) and "value" in value and value.keys() <= {"value", "lang"}:
        language = value.get("lang")
        if isinstance(value["value"], str) and (language is None or isinstance(language, str)):
            return value
    raise GraphQLError('LangString must be a text, or an object such as {value: "Guten Tag", lang: "de"}.')


def _log_index(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63:
        return value
    raise GraphQLError("SnapshotIndex must be a whole number that is not negative.")


LANG_STRING = GraphQLScalarType(
    "LangString",
    coerce_input_value=_text_or_tagged,
    description='A text, such as "Hello", or one in a language: {value: "Guten Tag", lang: "de"}.',
)
"""What mutations take where texts may have a language. Answers show a String."""

SNAPSHOT_INDEX = GraphQLScalarType(
    "SnapshotIndex",
    coerce_input_value=_log_index,
    description="The index of a state of the graph, as the header X-Snapshot-Index tells it.",
)


def json_value(scalar: Scalar, text: str, datatype: str) -> Any:
    """What the answer shows of a literal. Raises UnfitValue.

    A String shows the text of any literal; the others want a literal of their kind.
    """
    if scalar in (Scalar.STRING, Scalar.ID):
        return text
    try:
        return _READERS[scalar](text, datatype.removeprefix(XSD))
    except (ValueError, ArithmeticError):
        raise UnfitValue(f'{scalar.value} cannot represent "{text}"^^<{datatype}>') from None


def _int(text: str, datatype: str) -> int:
    number = Decimal(text) if datatype in ("decimal", "double", "float") else int(text)
    if datatype not in _NUMERIC or not -INT_MAX - 1 <= number <= INT_MAX or number != int(number):
        raise ValueError
    return int(number)


def _float(text: str, datatype: str) -> float:
    number = float(text)
    if datatype not in _NUMERIC or not isfinite(number):
        raise ValueError
    return number


def _boolean(text: str, datatype: str) -> bool:
    if datatype != "boolean" or text not in ("true", "false", "1", "0"):
        raise ValueError
    return text in ("true", "1")


def _time(scalar: Scalar) -> Callable[[str, str], str]:
    def read(text: str, datatype: str) -> str:
        if XSD + datatype != DATATYPES[scalar]:
            raise ValueError
        return text

    return read


_NUMERIC = frozenset({"integer", "decimal", "double", "float", "int", "long", "short", "byte"})
_READERS: Mapping[Scalar, Callable[[str, str], Any]] = {
    Scalar.INT: _int,
    Scalar.FLOAT: _float,
    Scalar.BOOLEAN: _boolean,
    **{scalar: _time(scalar) for scalar in _FORMS},
}


# Terms of an answer, read from tab-separated values, and written into queries.

_LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"(?:@([A-Za-z0-9-]+)|\^\^<([^>]*)>)?', re.DOTALL)
_ESCAPE = re.compile(r"\\(.)")
_ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "b": "\b", "f": "\f"}
_NO_IRI = re.compile(r'[\x00-\x20<>"{}|^`\\]')
_STRING, _INTEGER, _DECIMAL = XSD + "string", XSD + "integer", XSD + "decimal"


class Value(NamedTuple):
    """One object of a triple: datatype None is a resource, text its id."""

    text: str
    datatype: str | None
    language: str = ""


def read_value(cell: str) -> Value:
    """One cell of SPARQL's tab-separated values (section 4 of their recommendation)."""
    if cell[0] == '"':
        if cell[-1] == '"' and "\\" not in cell:  # most
            return Value(cell[1:-1], _STRING)
        found = _LITERAL.fullmatch(cell)
        assert found is not None, cell
        text, language, datatype = found.groups()
        if "\\" in text:
            text = _ESCAPE.sub(lambda escape: _ESCAPED.get(escape[1], escape[1]), text)
        return Value(text, datatype or _STRING, language or "")
    if is_resource(cell):
        return Value(resource_id(cell), None)
    if cell in ("true", "false"):
        return Value(cell, XSD + "boolean")
    if "e" in cell or "E" in cell:
        return Value(cell, XSD + "double")
    return Value(cell, _DECIMAL if "." in cell else _INTEGER)


def is_resource(cell: str) -> bool:
    """Whether a cell is an IRI or a blank node."""
    return (cell[:1] == "<" and cell[:2] != "<<") or cell[:2] == "_:"


def resource_id(cell: str) -> str:
    """What GraphQL shows as `id`: the IRI, or `_:` and the label of a blank node."""
    return cell[1:-1] if cell[0] == "<" else cell


def is_iri(text: str) -> bool:
    """Whether it can stand between `<` and `>`, and is absolute."""
    return _NO_IRI.search(text) is None and re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", text) is not None


def iri_text(iri: str) -> str:
    return f"<{iri}>"


def string_text(text: str) -> str:
    """A plain string in SPARQL."""
    return str(Literal(text))


def written(value: object, scalar: Scalar, datatype: NamedNode | None = None) -> str:
    """A value of GraphQL as a literal in SPARQL; of its own datatype, or of that which is usual."""
    text = (
        str(value).lower() if isinstance(value, bool) else repr(value) if isinstance(value, float) else value
    )
    return str(Literal(str(text), datatype=datatype or NamedNode(DATATYPES[scalar])))
