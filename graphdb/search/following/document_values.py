"""RDF terms as values of a document, and names of properties as names of its members."""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

import orjson
from pyoxigraph import BlankNode

from graphdb.search.following.shape import Term

__all__ = [
    "RDF_TYPE",
    "Value",
    "document_id",
    "local_name",
    "member_names",
    "merged",
    "resource_id",
    "value_of",
]

RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
_XSD = "http://www.w3.org/2001/XMLSchema#"
_INTEGERS = """integer int long short byte nonNegativeInteger positiveInteger nonPositiveInteger
    negativeInteger unsignedInt unsignedLong unsignedShort unsignedByte"""
_LOCAL = re.compile(r"[^#/:]+\Z")
_DATE = re.compile(r"(\d{4}-\d\d-\d\d)(?:Z|[+-]\d\d:\d\d)?")

Value: TypeAlias = Any
"""A scalar of JSON, an object, or a list of these."""


def document_id(term: Term) -> str | None:
    """The `_id` of the document that a term names; None for a triple term."""
    if term["type"] == "bnode":
        return f"_:{term['value']}"
    return str(term["value"]) if term["type"] in ("uri", "literal") else None


def resource_id(node: Any) -> str:
    """The `_id` of the document that a node of a quad names; empty for a triple term."""
    return f"_:{node.value}" if isinstance(node, BlankNode) else str(getattr(node, "value", ""))


def value_of(term: Term) -> Value:
    """Literals by their datatype, all else as text; what a datatype does not allow stays as it is written."""
    if term["type"] == "bnode":
        return f"_:{term['value']}"
    if term["type"] == "triple":
        return orjson.dumps(term["value"], option=orjson.OPT_SORT_KEYS).decode()
    text = str(term["value"])
    read = _READERS.get(term.get("datatype", "").removeprefix(_XSD))
    if read is None:
        return text
    try:
        return read(text.strip())
    except (ValueError, OverflowError):
        return text


def _integer(text: str) -> int:
    number = int(text[:30])
    if len(text) > 30 or not -(1 << 63) <= number < 1 << 63:
        raise ValueError(text)
    return number


def _number(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):  # JSON has none
        raise ValueError(text)
    return number


def _date(text: str) -> str:
    """Without the time zone, which dates of Elasticsearch do not have."""
    found = _DATE.fullmatch(text)
    return text if found is None else found[1]


_READERS: Mapping[str, Callable[[str], Value]] = {
    **dict.fromkeys(_INTEGERS.split(), _integer),
    **dict.fromkeys(("decimal", "double", "float"), _number),
    "boolean": lambda text: {"true": True, "1": True, "false": False, "0": False}.get(text, text),
    "date": _date,
}


def merged(values: Iterable[Value]) -> Value:
    """One value as it is, several as a list, each once and always in the same order."""
    by_key = {
        (type(value).__name__, orjson.dumps(value, option=orjson.OPT_SORT_KEYS)): value for value in values
    }
    ordered = [by_key[key] for key in sorted(by_key)]
    return ordered[0] if len(ordered) == 1 else ordered


def local_name(iri: str) -> str:
    """What stands after the last `#`, `/` or `:`; the whole where nothing does. Dots, which would nest
    objects, become `_`.
    """
    found = _LOCAL.search(iri)
    return iri if found is None else found[0].replace(".", "_")


def member_names(iris: Iterable[str], taken: Iterable[str] = ()) -> dict[str, str]:
    """By IRI of a property the name of its member: the local one, unless another has the same."""
    names = {iri: local_name(iri) for iri in iris}
    owners: dict[str, int] = dict.fromkeys(taken, 1)
    for name in names.values():
        owners[name] = owners.get(name, 0) + 1
    return {iri: name if owners[name] == 1 else iri for iri, name in names.items()}
