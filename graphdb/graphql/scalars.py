"""GraphQL's scalars of dates and times, and how JSON and literals become each other.

Times are texts in the form of XML Schema. One without a time zone is taken for UTC where it is compared.
"""

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from math import isfinite
from typing import Any

from graphql import (
    GraphQLBoolean,
    GraphQLError,
    GraphQLFloat,
    GraphQLID,
    GraphQLInt,
    GraphQLScalarType,
    GraphQLString,
)

from graphdb.graphql.model import Scalar
from graphdb.shacl.vocabulary import XSD

__all__ = [
    "DATATYPES",
    "GRAPHQL_SCALARS",
    "LANG_STRING",
    "NUMBERS",
    "SNAPSHOT_INDEX",
    "TIMES",
    "UnfitValue",
    "json_value",
]

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
