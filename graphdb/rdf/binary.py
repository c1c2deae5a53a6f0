"""Binary RDF, `application/x-binary-rdf`, as RDF4J reads and writes it: quads from bytes and quads to bytes.

A document is "BRDF", a version (4 bytes, big-endian), from version 2 on the name of a charset, and records:
a namespace (0: prefix and IRI), a statement (1: subject, predicate, object, graph), a comment (2: a text), a
value's declaration (3: a number and the value), the end (127). A value is nothing (0), an IRI (1), a blank
node (2), a literal (3; 4 with a language, 5 with a datatype), the number of a declared one (6), or a triple
(7). Version 2 has UTF-8 texts with their length in bytes, and lengths and numbers in groups of seven bits,
the lowest first; version 1 UTF-16 texts with their length in units, and numbers of 4 bytes. Declarations may
replace each other.

Source: RDF4J 5.1, `BinaryRDFParser` and `BinaryRDFWriter`.
"""

import os
import struct
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from io import BytesIO
from typing import TypeAlias

from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad, Triple

from graphdb.errors import NotAcceptable, RdfSyntaxError
from graphdb.rdf.pieces import CHUNK_BYTES
from graphdb.rdf.reading import TRIPLE_TERM_DEPTH_MAX, ByteSource

__all__ = ["BINARY_RDF_TYPE", "read_binary_quads", "write_binary_quads"]

BINARY_RDF_TYPE = "application/x-binary-rdf"

TEXT_BYTES_MAX = 16_777_216  # as in the other syntaxes
# What declarations may hold at a time. RDF4J's writer looks at 8,192 statements at once, and declares what is
# in more than one of them.
DECLARED_MAX, DECLARED_BYTES_MAX = 1 << 17, 64 << 20

_MARK, _VERSION = b"BRDF", 2
_NAMESPACE, _STATEMENT, _COMMENT, _DECLARATION, _END = 0, 1, 2, 3, 127
_NOTHING, _IRI, _BLANK_NODE, _PLAIN, _TAGGED, _TYPED, _NUMBER, _TRIPLE = range(8)
_FOUR_BYTES = struct.Struct(">I")
_CHARSETS = frozenset({"utf-8", "us-ascii"})
_READ_BYTES = 65_536
_IDENTIFIER_BYTES_MAX = 5  # of 31 bits
_XSD_STRING = NamedNode("http://www.w3.org/2001/XMLSchema#string")

_Value: TypeAlias = NamedNode | BlankNode | Literal | Triple | None


def read_binary_quads(source: ByteSource | bytes, *, fresh_blank_nodes: bool = True) -> Iterator[Quad]:
    """The quads of a document, while it is read. Memory is bounded, whatever the document says.

    Blank nodes are as in `graphdb.rdf.reading.read_quads`. What source raises comes out as it is. What
    follows the end of the document is read and ignored.
    Raises RdfSyntaxError; the quads before an error have been handed out when it is met.
    """
    reader = _Reader(BytesIO(source) if isinstance(source, bytes) else source, fresh_blank_nodes)
    yield from reader.quads()


class _Reader:
    """Of one document. All methods raise RdfSyntaxError."""

    def __init__(self, source: ByteSource, fresh_blank_nodes: bool) -> None:
        self._bytes = _Bytes(source)
        self._key = os.urandom(16) if fresh_blank_nodes else None
        self._declared: dict[int, tuple[_Value, int]] = {}  # with their size
        self._declared_bytes = 0
        self._number: Callable[[], int] = self._bytes.varying_number
        self._text: Callable[[], str] = self._utf_8

    def quads(self) -> Iterator[Quad]:
        """Those of the whole document."""
        self._read_head()
        while (kind := self._bytes.byte()) != _END:
            if kind == _STATEMENT:
                yield self._statement()
            elif kind == _DECLARATION:
                self._declare()
            elif kind == _COMMENT:
                self._text()
            elif kind == _NAMESPACE:
                self._text()
                self._text()
            else:
                raise self._bytes.error(f"no record begins with {kind}")
        self._bytes.drain()

    def _read_head(self) -> None:
        if self._bytes.take(4) != _MARK:
            raise self._bytes.error("not a document of binary RDF")
        version = self._bytes.number()
        if version == 1:
            self._number, self._text = self._bytes.number, self._utf_16
        elif version != _VERSION:
            raise self._bytes.error(f"version {version} of binary RDF is not known")
        elif (charset := self._text()).lower() not in _CHARSETS:
            raise self._bytes.error(f"the charset is {charset[:100]!r}, and has to be UTF-8")

    def _statement(self) -> Quad:
        subject, predicate, object_, graph = (self._value() for _ in range(4))
        if not isinstance(subject, NamedNode | BlankNode):
            raise self._bytes.error(f"{subject} cannot be a subject")
        if not isinstance(predicate, NamedNode):
            raise self._bytes.error(f"{predicate} cannot be a predicate")
        if object_ is None:
            raise self._bytes.error("a statement has no object")
        if not isinstance(graph, NamedNode | BlankNode | None):
            raise self._bytes.error(f"{graph} cannot name a graph")
        return Quad(subject, predicate, object_, DefaultGraph() if graph is None else graph)

    def _declare(self) -> None:
        number = self._number()
        if number >= DECLARED_MAX:
            raise self._bytes.error(f"more than {DECLARED_MAX} values are declared")
        start = self._bytes.place
        value = self._value()
        size = self._bytes.place - start
        self._declared_bytes += size - self._declared.get(number, (None, 0))[1]
        if self._declared_bytes > DECLARED_BYTES_MAX:
            raise self._bytes.error(f"the values that are declared have more than {DECLARED_BYTES_MAX} bytes")
        self._declared[number] = value, size

    def _value(self, depth: int = 0) -> _Value:
        kind = self._bytes.byte()
        try:
            match kind:
                case 0:  # _NOTHING
                    return None
                case 1:  # _IRI
                    return NamedNode(self._text())
                case 2:  # _BLANK_NODE
                    return self._blank_node(self._text())
                case 3:  # _PLAIN
                    return Literal(self._text())
                case 4:  # _TAGGED
                    return Literal(self._text(), language=self._text())
                case 5:  # _TYPED
                    return Literal(self._text(), datatype=NamedNode(self._text()))
                case 6:  # _NUMBER
                    return self._declared_value(depth)
                case 7:  # _TRIPLE
                    return self._triple(depth + 1)
        except ValueError as error:
            raise self._bytes.error(str(error)) from None
        raise self._bytes.error(f"no value begins with {kind}")

    def _declared_value(self, depth: int) -> _Value:
        found = self._declared.get(self._number())
        if found is None:
            raise self._bytes.error("a value that has not been declared")
        value = found[0]
        if depth and isinstance(value, Triple):
            raise self._bytes.error("a declared triple within a triple")  # RDF4J writes those out
        return value

    def _triple(self, depth: int) -> Triple:
        if depth > TRIPLE_TERM_DEPTH_MAX:
            raise self._bytes.error(f"triple terms nested more than {TRIPLE_TERM_DEPTH_MAX} levels deep")
        subject, predicate, object_ = (self._value(depth) for _ in range(3))
        if not isinstance(subject, NamedNode | BlankNode):
            raise self._bytes.error(f"{subject} cannot be the subject of a triple term")
        if not isinstance(predicate, NamedNode):
            raise self._bytes.error(f"{predicate} cannot be a predicate")
        if object_ is None:
            raise self._bytes.error("a triple term has no object")
        return Triple(subject, predicate, object_)

    def _blank_node(self, label: str) -> BlankNode:
        """With a random key, labels of 128 bits are as good as random ones, and none has to be remembered."""
        if self._key is None:
            return BlankNode(label)
        return BlankNode(blake2b(label.encode(), key=self._key, digest_size=16).hexdigest())

    def _utf_8(self) -> str:
        text = self._bytes.take(self._bytes.checked_length(self._number()))
        try:
            return text.decode()
        except UnicodeDecodeError as error:
            raise self._bytes.error(f"not UTF-8: {error.reason}") from None

    def _utf_16(self) -> str:
        text = self._bytes.take(self._bytes.checked_length(2 * self._number()))
        try:
            return text.decode("utf-16-be")
        except UnicodeDecodeError as error:
            raise self._bytes.error(f"not UTF-16: {error.reason}") from None


class _Bytes:
    """A document as bytes and numbers. All methods raise RdfSyntaxError at its end."""

    def __init__(self, source: ByteSource) -> None:
        self._source = source
        self._chunk, self._at = b"", 0
        self._before = 0  # bytes of earlier chunks

    @property
    def place(self) -> int:
        """How many bytes have been read."""
        return self._before + self._at

    def take(self, size: int) -> bytes:
        """The next bytes. They are in memory only as far as the document has them."""
        end = self._at + size
        if end <= len(self._chunk):
            piece = self._chunk[self._at : end]
            self._at = end
            return piece
        pieces, missing = [], size
        while missing:
            if self._at == len(self._chunk):
                self._next_chunk()
            piece = self._chunk[self._at : self._at + missing]
            self._at += len(piece)
            missing -= len(piece)
            pieces.append(piece)
        return b"".join(pieces)

    def byte(self) -> int:
        """The next byte."""
        if self._at == len(self._chunk):
            self._next_chunk()
        self._at += 1
        return self._chunk[self._at - 1]

    def number(self) -> int:
        """Four bytes."""
        found: int = _FOUR_BYTES.unpack(self.take(4))[0]
        return found

    def varying_number(self) -> int:
        """Groups of seven bits, the lowest first; each but the last has its highest bit set."""
        number = 0
        for group in range(_IDENTIFIER_BYTES_MAX):
            byte = self.byte()
            number |= (byte & 0x7F) << (7 * group)
            if byte < 0x80:
                return number
        raise self.error("a number has more than 32 bits")

    def checked_length(self, size: int) -> int:
        """A text's length in bytes, if it may be as long."""
        if size > TEXT_BYTES_MAX:
            raise self.error(f"a text is longer than {TEXT_BYTES_MAX} bytes")
        return size

    def drain(self) -> None:
        """Read to the end of the source."""
        while self._source.read(_READ_BYTES):
            pass

    def error(self, reason: str) -> RdfSyntaxError:
        return RdfSyntaxError(f"{reason} (byte {self.place})")

    def _next_chunk(self) -> None:
        self._before += len(self._chunk)
        self._chunk, self._at = self._source.read(_READ_BYTES), 0
        if not self._chunk:
            raise self.error("the document ends too early")


_IRIS_MAX = 4_096  # that are declared, those that come first


def write_binary_quads(quads: Iterable[Quad]) -> Iterator[bytes]:
    """The document in chunks of some 64 kB, at least one, while quads are taken; memory stays constant.

    An error after the first chunk leaves the document incomplete. Raises NotAcceptable at the first quad that
    the format cannot express: a text with a base direction.
    """
    writer = _Writer()
    for quad in quads:
        writer.write(quad)
        if len(writer.buffer) >= CHUNK_BYTES:
            yield bytes(writer.buffer)
            writer.buffer.clear()
    yield bytes(writer.buffer) + bytes((_END,))


class _Writer:
    """Of one document, whose bytes gather in buffer."""

    def __init__(self) -> None:
        self.buffer = bytearray(_MARK + _FOUR_BYTES.pack(_VERSION) + _text("UTF-8"))
        self._numbers: dict[str, bytes] = {}  # the values of declared IRIs

    def write(self, quad: Quad) -> None:
        """Write one statement, behind the declarations that it needs."""
        graph = quad.graph_name
        subject, predicate = self._resource(quad.subject), self._resource(quad.predicate)
        object_ = quad.object
        parts = [
            subject,
            predicate,
            self._resource(object_) if isinstance(object_, NamedNode) else _value(object_),
            bytes((_NOTHING,)) if isinstance(graph, DefaultGraph) else self._resource(graph),
        ]
        self.buffer.append(_STATEMENT)
        self.buffer += b"".join(parts)

    def _resource(self, term: NamedNode | BlankNode | Triple) -> bytes:
        if not isinstance(term, NamedNode):
            return _value(term)
        iri = term.value
        known = self._numbers.get(iri)
        if known is not None:
            return known
        value = _value(term)
        if len(self._numbers) >= _IRIS_MAX:
            return value
        number = _varying(len(self._numbers))
        self.buffer.append(_DECLARATION)
        self.buffer += number + value
        known = self._numbers[iri] = bytes((_NUMBER,)) + number
        return known


def _value(term: NamedNode | BlankNode | Literal | Triple) -> bytes:
    match term:
        case NamedNode(value=value):
            return bytes((_IRI,)) + _text(value)
        case BlankNode(value=value):
            return bytes((_BLANK_NODE,)) + _text(value)
        case Triple(subject=subject, predicate=predicate, object=object_):
            return bytes((_TRIPLE,)) + _value(subject) + _value(predicate) + _value(object_)
    if term.direction is not None:
        raise NotAcceptable(f"{BINARY_RDF_TYPE} (a text has a base direction)", ("application/n-quads",))
    if term.language is not None:
        return bytes((_TAGGED,)) + _text(term.value) + _text(term.language)
    if term.datatype == _XSD_STRING:
        return bytes((_PLAIN,)) + _text(term.value)
    return bytes((_TYPED,)) + _text(term.value) + _text(term.datatype.value)


def _text(text: str) -> bytes:
    encoded = text.encode()
    return _varying(len(encoded)) + encoded


def _varying(number: int) -> bytes:
    if number < 0x80:
        return bytes((number,))
    groups = bytearray()
    while number >= 0x80:
        groups.append(number & 0x7F | 0x80)
        number >>= 7
    groups.append(number)
    return bytes(groups)
