"""Quads to RDF documents, as a stream: pyoxigraph's serialisers, a batch at a time.

A batch is serialised as a document of its own, which loses its beginning and end; what is left of all of them
stands between one beginning and one end. So a subject may be described in several places: no syntax minds.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby, islice
from operator import attrgetter
from typing import Any, TypeVar

from pyoxigraph import BlankNode, DefaultGraph, NamedNode, Quad, RdfFormat, Triple, serialize

from graphdb.errors import NotAcceptable
from graphdb.rdf.formats import RdfSyntax
from graphdb.rdf.pieces import mended_xml

__all__ = ["write_quads", "write_triples"]

_Item = TypeVar("_Item", Quad, Triple)

_BATCH_QUADS = 1_000  # some 64 kB


def write_quads(
    quads: Iterable[Quad], syntax: RdfSyntax, *, prefixes: Mapping[str, str] | None = None
) -> Iterator[bytes]:
    """The document in chunks of some 64 kB, at least one, while quads are taken; memory stays constant.

    A syntax that does not carry graphs gets the triples of all quads. prefixes, without their colons, are for
    the syntaxes that have them. An error after the first chunk leaves the document incomplete.
    Raises NotAcceptable at the first quad that the syntax cannot express: a triple term in JSON-LD, a control
    character or a predicate that is no XML name in RDF/XML.
    """
    items = quads if syntax in _TAKES_QUADS else map(_TRIPLE, quads)
    return _Writer(syntax, dict(prefixes or {})).document(items)


def write_triples(
    triples: Iterable[Triple], syntax: RdfSyntax, *, prefixes: Mapping[str, str] | None = None
) -> Iterator[bytes]:
    """The same for a graph; not for TriG."""
    return _Writer(syntax, dict(prefixes or {})).document(triples)


class _Writer:
    """The beginning and the end of documents in one syntax, and how to get the quads between them."""

    def __init__(self, syntax: RdfSyntax, prefixes: dict[str, str]) -> None:
        self._syntax, self._prefixes = syntax, prefixes
        self._separator, self._tail = _SEPARATORS_AND_TAILS.get(syntax, (b"", b""))
        if syntax in _PREFIX_LINES_FIRST:
            self._head = _prefix_lines(self._native([_ANY_TRIPLE]))
        else:
            self._head = self._native([]).removesuffix(self._tail)

    def document(self, items: Iterable[_Item]) -> Iterator[bytes]:
        """The chunks of the whole document."""
        before = self._head
        if self._syntax is RdfSyntax.RDF_XML:
            items = map(_with_xml_names, items)
        for batch in _batches(items):
            yield before + self._body(batch)
            before = self._separator
        yield (self._head if before is self._head else b"") + self._tail

    def _body(self, batch: list[_Item]) -> bytes:
        if self._syntax is RdfSyntax.TRIG:
            return b"".join(self._graph_blocks(batch))
        return self._native(batch).removeprefix(self._head).removesuffix(self._tail)

    def _graph_blocks(self, batch: list[_Item]) -> Iterator[bytes]:
        """TriG with the word GRAPH, which the native serialiser leaves out."""
        for graph, quads in groupby(batch, key=attrgetter("graph_name")):
            triples = self._native(map(_TRIPLE, quads)).removeprefix(self._head)
            yield (
                triples
                if isinstance(graph, DefaultGraph)
                else b"GRAPH %s {\n%s}\n" % (str(graph).encode(), triples)
            )

    def _native(self, items: Iterable[Quad] | Iterable[Triple]) -> bytes:
        """The items as a document of their own."""
        native = RdfFormat.TURTLE if self._syntax is RdfSyntax.TRIG else self._syntax.rdf_format
        try:
            document: bytes | None = serialize(items, format=native, prefixes=self._prefixes)
            assert document is not None  # no output was given
            return _checked_xml(document) if self._syntax is RdfSyntax.RDF_XML else document
        except (OSError, ValueError) as error:
            raise NotAcceptable(f"{self._syntax.media_type} ({error})", _ALWAYS_FIT) from None


_TRIPLE = attrgetter("triple")
_TAKES_QUADS = frozenset({RdfSyntax.N_QUADS, RdfSyntax.JSON_LD, RdfSyntax.TRIG})
_PREFIX_LINES_FIRST = frozenset({RdfSyntax.TURTLE, RdfSyntax.TRIG})
_ALWAYS_FIT = tuple(
    syntax.media_type for syntax in (RdfSyntax.TURTLE, RdfSyntax.N_TRIPLES, RdfSyntax.TRIG, RdfSyntax.N_QUADS)
)
_SEPARATORS_AND_TAILS = {RdfSyntax.JSON_LD: (b",", b"]"), RdfSyntax.RDF_XML: (b"", b"\n</rdf:RDF>")}
_ANY_TRIPLE = Triple(
    NamedNode("urn:s"), NamedNode("urn:p"), NamedNode("urn:o")
)  # prefixes are not written without one


def _with_xml_names(item: _Item) -> _Item:
    """The same, with labels of blank nodes that are XML names: they do not begin with a digit. The labels
    that the store makes often do, and the engine writes them as they are. Different ones stay different.
    """
    before, after = item.subject, item.object
    if not (isinstance(before, BlankNode) or isinstance(after, BlankNode | Triple)):
        return item
    subject, object_ = _named_in_xml(before), _named_in_xml(after)
    if isinstance(item, Quad):
        return Quad(subject, item.predicate, object_, item.graph_name)
    return Triple(subject, item.predicate, object_)


def _named_in_xml(term: Any) -> Any:
    if isinstance(term, BlankNode) and term.value[0] in "_0123456789":
        return BlankNode("_" + term.value)
    return _with_xml_names(term) if isinstance(term, Triple) else term


def _checked_xml(document: bytes) -> bytes:
    """`mended_xml`; raises ValueError too for an element without a name, as some predicates come out."""
    if b"<oxprefix: " in document:
        raise ValueError("a predicate does not end in an XML name")
    return mended_xml(document)


def _prefix_lines(document: bytes) -> bytes:
    end = document.rfind(b"@prefix ")
    return document[: document.find(b"\n", end) + 1] if end >= 0 else b""


def _batches(items: Iterable[_Item]) -> Iterator[list[_Item]]:
    rest = iter(items)
    while batch := list(islice(rest, _BATCH_QUADS)):
        yield batch
