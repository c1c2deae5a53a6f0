"""Values of a mutation's input, to terms of RDF."""

from calendar import monthrange
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from pyoxigraph import Literal, NamedNode

from graphdb.graphql.edits import EditTerm
from graphdb.graphql.model import EnumType, Field, Reference, Scalar
from graphdb.graphql.scalars import DATATYPES, TIMES
from graphdb.graphql.terms import is_iri
from graphdb.shacl.vocabulary import XSD

__all__ = ["UnfitInput", "resource", "terms_of"]

_BITS = {"byte": 8, "short": 16, "int": 32, "long": 64}
_LEAST: Mapping[str, int] = {
    **{name: -(2 ** (bits - 1)) for name, bits in _BITS.items()},
    "nonNegativeInteger": 0,
    "positiveInteger": 1,
    **{f"unsigned{name.capitalize()}": 0 for name in _BITS},
}
_MOST: Mapping[str, int] = {
    **{name: 2 ** (bits - 1) - 1 for name, bits in _BITS.items()},
    "nonPositiveInteger": 0,
    "negativeInteger": -1,
    **{f"unsigned{name.capitalize()}": 2**bits - 1 for name, bits in _BITS.items()},
}


class UnfitInput(Exception):
    """A value that GraphQL's type allows, but that is none of the field's values in RDF."""


def resource(given: Any, what: str) -> NamedNode:
    """An IRI. Raises UnfitInput, which says what is none."""
    text = str(given)
    try:
        if is_iri(text):
            return NamedNode(text)
    except ValueError:
        pass
    raise UnfitInput(f"`{what}` must be an absolute IRI, not {text[:200]!r}.")


def terms_of(field: Field, given: Any) -> tuple[EditTerm, ...]:
    """The values of a field, coerced by graphql-core; None is no value. Raises UnfitInput."""
    values = [] if given is None else given if isinstance(given, list) else [given]
    return tuple(dict.fromkeys(_term(field, one) for one in values))


def _term(field: Field, given: Any) -> EditTerm:
    if isinstance(field.value, EnumType):
        return field.value.values[given]
    if isinstance(field.value, Reference) or field.value is Scalar.ID:
        return resource(given, field.name)
    if field.takes_language:
        return _text(field, given)
    datatype = field.datatype.value if field.datatype is not None else DATATYPES[field.value]
    text = _TEXTS.get(field.value, _plain)(given, datatype.removeprefix(XSD))
    if text is None:
        raise UnfitInput(f"`{field.name}`: {str(given)[:200]!r} is no value of <{datatype}>.")
    return Literal(text, datatype=NamedNode(datatype))


def _text(field: Field, given: Any) -> Literal:
    if isinstance(given, str):
        return Literal(given)
    if given.get("lang") is None:
        return Literal(given["value"])
    try:
        return Literal(given["value"], language=given["lang"])
    except ValueError:
        raise UnfitInput(f"`{field.name}`: {given['lang'][:200]!r} is no language tag.") from None


def _plain(given: Any, _datatype: str) -> str | None:
    return str(given)


def _integer(given: Any, datatype: str) -> str | None:
    fits = _LEAST.get(datatype, given) <= given <= _MOST.get(datatype, given)
    return str(int(given)) if fits else None


def _float(given: Any, datatype: str) -> str | None:
    return format(Decimal(repr(given)), "f") if datatype == "decimal" else repr(float(given))


def _boolean(given: Any, _datatype: str) -> str | None:
    return "true" if given else "false"


def _time(given: Any, datatype: str) -> str | None:
    """A text in the scalar's form; here the calendar (XML Schema part 2, section 3.3.7) has its say."""
    date, _, clock = given.rpartition("T")
    if datatype == "date":
        date, clock = given, ""
    if clock.startswith("24") and clock[2:].rstrip("Z").split("+")[0].split("-")[0].strip(":0."):
        return None
    if datatype == "dateTimeStamp" and not (clock.endswith("Z") or "+" in clock or "-" in clock):
        return None
    if not date:
        return str(given)
    year, month, day = date.lstrip("-").split("-")[:3]
    days = monthrange(2000 + int(year[-4:]) % 400, int(month))[1]
    return str(given) if int(day[:2]) <= days else None


_TEXTS: Mapping[Scalar, Callable[[Any, str], str | None]] = {
    Scalar.INT: _integer,
    Scalar.FLOAT: _float,
    Scalar.BOOLEAN: _boolean,
    **dict.fromkeys(TIMES, _time),
}
