"""Terms of an answer, read from tab-separated values, and written into queries."""

import re
from typing import NamedTuple

from pyoxigraph import Literal, NamedNode

from graphdb.graphql.model import Scalar
from graphdb.graphql.scalars import DATATYPES
from graphdb.shacl.vocabulary import XSD

__all__ = [
    "Value",
    "iri_text",
    "is_iri",
    "is_resource",
    "read_value",
    "resource_id",
    "string_text",
    "written",
]

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
