"""RDF Thrift, `application/rdf+thrift`, and its terms: what Apache Jena calls its binary format.

A document is a stream of structures, each a prefix, a triple or a quad, in the compact protocol of Apache
Thrift: a field is a byte, of the distance to the number of the field before and a kind, and its value; a
structure ends with 0. Texts are UTF-8 behind their length, which is a varint: seven bits a byte, the low ones
first, each byte but the last with its high bit set.

Source: Jena 5, `BinaryRDF.thrift`; Apache Thrift, "Thrift Compact protocol encoding".
"""

import struct
from collections.abc import Iterable, Iterator
from typing import IO, Any

from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad, Triple

from graphdb.errors import NotAcceptable, RdfSyntaxError

__all__ = ["THRIFT_TYPE", "read_thrift_quads", "varint", "write_thrift_quads", "written_term"]

THRIFT_TYPE = "application/rdf+thrift"

_XSD = "http://www.w3.org/2001/XMLSchema#"
_XSD_STRING = NamedNode(_XSD + "string")
_TEXT, _LIST, _STRUCT = 8, 9, 12  # kinds of the compact protocol
_STOP = b"\x00"
_FIRST_TEXT, _THIRD_TEXT = b"\x18", b"\x28"  # heads of fields: 1, and 3 behind 1
_IRI, _BLANK, _LITERAL, _TRIPLE_TERM = b"\x1c", b"\x2c", b"\x3c", b"\x9c"
_NEXT_STRUCT = b"\x1c"
_TRIPLE_ROW, _QUAD_ROW = b"\x2c", b"\x3c"

Term = NamedNode | BlankNode | Literal | Triple


# Writing.


def varint(number: int) -> bytes:
    """A number that is not negative."""
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)


def written_term(term: Term) -> bytes:
    """The structure of a term. Raises NotAcceptable for a text with a base direction."""
    match term:
        case NamedNode(value=value):
            return _IRI + _FIRST_TEXT + _text(value) + _STOP + _STOP
        case BlankNode(value=value):
            return _BLANK + _FIRST_TEXT + _text(value) + _STOP + _STOP
        case Triple(subject=subject, predicate=predicate, object=object_):
            return _TRIPLE_TERM + _terms((subject, predicate, object_)) + _STOP
    if term.direction is not None:
        raise NotAcceptable(f"{THRIFT_TYPE} (a text has a base direction)", ("application/n-triples",))
    lexical = _LITERAL + _FIRST_TEXT + _text(term.value)
    if term.language is not None:
        return lexical + _FIRST_TEXT + _text(term.language) + _STOP + _STOP
    if term.datatype == _XSD_STRING:
        return lexical + _STOP + _STOP
    return lexical + _THIRD_TEXT + _text(term.datatype.value) + _STOP + _STOP


def write_thrift_quads(quads: Iterable[Quad]) -> Iterator[bytes]:
    """A piece for each quad. Raises as `written_term`."""
    for quad in quads:
        graph = quad.graph_name
        if isinstance(graph, DefaultGraph):
            yield _TRIPLE_ROW + _terms(quad.triple) + _STOP
        else:
            yield _QUAD_ROW + _terms((*quad.triple, graph)) + _STOP


def _terms(terms: Iterable[Term]) -> bytes:
    """A structure whose fields are terms."""
    return b"".join([_NEXT_STRUCT + written_term(term) for term in terms]) + _STOP


def _text(text: str) -> bytes:
    encoded = text.encode()
    return varint(len(encoded)) + encoded


# Reading.

_TEXT_BYTES_MAX = 16 << 20
_DEPTH_MAX = 50
_ROW_FIELDS_MAX = 10_000  # of one row, with those of its terms; what is not known is skipped, and counts
_DOUBLE = struct.Struct("<d")


def read_thrift_quads(document: IO[bytes]) -> Iterator[Quad]:
    """The quads of a document, as they are read; a blank node has a label made of that of the document.

    Raises RdfSyntaxError for a document that is malformed or goes on without end: for texts of more than 16
    MB, terms nested in more than 50 others, and rows of more than 10,000 parts.
    """
    prefixes: dict[str, str] = {}
    while head := document.read(1):
        row = _Reader(document)
        fields = row.fields(head[0], 0)
        for number, value in fields.items():
            try:
                if number == 1:
                    prefixes[_str(value[1])] = _str(value[2])
                elif number in (2, 3):
                    terms = [_term(value[place], prefixes) for place in sorted(value)]
                    yield _quad(terms)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                raise RdfSyntaxError(f"RDF Thrift with a row that is none: {error}"[:300]) from None


class _Reader:
    """The structures of one row, each as its fields by number."""

    def __init__(self, document: IO[bytes]) -> None:
        self._document = document
        self._left = _ROW_FIELDS_MAX

    def fields(self, head: int, depth: int) -> dict[int, Any]:
        """Of a structure that begins with this byte."""
        if depth > _DEPTH_MAX:
            raise RdfSyntaxError(f"RDF Thrift nested deeper than {_DEPTH_MAX}")
        found: dict[int, Any] = {}
        number = 0
        while head:
            self._left -= 1
            if self._left < 0:
                raise RdfSyntaxError(f"RDF Thrift with more than {_ROW_FIELDS_MAX} parts in a row")
            distance, kind = head >> 4, head & 0x0F
            number = number + distance if distance else _zigzag(self._varint())
            found[number] = self._value(kind, depth)
            head = self._bytes(1)[0]
        return found

    def _value(self, kind: int, depth: int) -> Any:
        match kind:
            case 1 | 2:
                return kind == 1
            case 3:
                return self._bytes(1)[0]
            case 4 | 5 | 6:
                return _zigzag(self._varint())
            case 7:
                return _DOUBLE.unpack(self._bytes(8))[0]
            case 8:
                return self._bytes(self._length())
            case 12:
                return self.fields(self._bytes(1)[0], depth + 1)
        raise RdfSyntaxError(f"RDF Thrift with a part of the unknown kind {kind}")

    def _length(self) -> int:
        length = self._varint()
        if length > _TEXT_BYTES_MAX:
            raise RdfSyntaxError(f"RDF Thrift with a text of more than {_TEXT_BYTES_MAX} bytes")
        return length

    def _varint(self) -> int:
        found = shift = 0
        while shift < 70:
            byte = self._bytes(1)[0]
            found |= (byte & 0x7F) << shift
            if byte < 0x80:
                return found
            shift += 7
        raise RdfSyntaxError("RDF Thrift with a number of more than ten bytes")

    def _bytes(self, count: int) -> bytes:
        found = self._document.read(count)
        if len(found) < count:
            raise RdfSyntaxError("RDF Thrift that ends within a row")
        return found


def _zigzag(number: int) -> int:
    return number >> 1 ^ -(number & 1)


def _term(union: dict[int, Any], prefixes: dict[str, str]) -> Term:
    """Raises ValueError for what is no term, and for one that stands in no RDF."""
    ((kind, value),) = union.items()
    match kind:
        case 1:
            return NamedNode(_str(value[1]))
        case 2:
            return BlankNode("b" + _str(value[1]).encode().hex())  # whatever characters a label has
        case 3:
            return _literal(value, prefixes)
        case 4:
            return NamedNode(prefixes[_str(value[1])] + _str(value[2]))
        case 9:
            subject, predicate, object_ = (_term(value[place], prefixes) for place in (1, 2, 3))
            return Triple(subject, predicate, object_)  # type: ignore[arg-type] # it checks them
        case 10:
            return Literal(str(value), datatype=NamedNode(_XSD + "integer"))
        case 11:
            return Literal(_double(value), datatype=NamedNode(_XSD + "double"))
        case 12:
            return Literal(_decimal(value[1], value[2]), datatype=NamedNode(_XSD + "decimal"))
    raise ValueError(f"a term of kind {kind}")


def _literal(value: dict[int, Any], prefixes: dict[str, str]) -> Literal:
    text = _str(value[1])
    if value.get(2):
        return Literal(text, language=_str(value[2]))
    if 4 in value:
        return Literal(text, datatype=NamedNode(prefixes[_str(value[4][1])] + _str(value[4][2])))
    return Literal(text, datatype=NamedNode(_str(value[3]))) if value.get(3) else Literal(text)


def _double(value: float) -> str:
    return {"inf": "INF", "-inf": "-INF", "nan": "NaN"}.get(str(value), str(value))


def _decimal(value: int, scale: int) -> str:
    if not 0 <= scale <= 100:
        raise ValueError(f"a decimal of scale {scale}")
    digits = str(abs(value)).rjust(scale + 1, "0")
    whole, rest = digits[: len(digits) - scale], digits[len(digits) - scale :]
    return f"{'-' if value < 0 else ''}{whole}.{rest or '0'}"


def _quad(terms: list[Term]) -> Quad:
    return Quad(*terms)  # type: ignore[arg-type] # it checks them


def _str(value: Any) -> str:
    if not isinstance(value, bytes):
        raise TypeError("a text is missing")
    return value.decode()
