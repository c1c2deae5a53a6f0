"""N-Triples and N-Quads rewritten a block at a time: canonical N-Quads in the form in which the engine stores
them, with other labels of blank nodes where that is wanted.

A block needs nothing but itself, so blocks of one document may be rewritten on several machines. Parsing and
serialising are the engine's; only what it would store in another form, and blank nodes, cost Python.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TypeAlias

from pyoxigraph import BlankNode, DefaultGraph, Quad, RdfFormat, Store, parse, serialize

from graphdb.model import GraphName, NamedGraph
from graphdb.rdf.formats import RdfSyntax
from graphdb.rdf.reading import TRIPLE_TERM_DEPTH_MAX
from graphdb.store.stored_form import stored_form

__all__ = [
    "Block",
    "Labels",
    "Unusual",
    "check_depth",
    "is_of_lines",
    "numbered_labels",
    "rewritten_block",
    "salted_labels",
    "written_quads",
]

Labels: TypeAlias = Callable[[bytes], bytes]
"""The label that takes the place of one of a document: another one for each."""

_XSD = b'"^^<http://www.w3.org/2001/XMLSchema#'
_VALUE = re.compile(rb'"([^"\\\n]*+"\^\^<http://www\.w3\.org/2001/XMLSchema#[A-Za-z]++)>')
# values that the engine gives back as they are: most of those that there are
_KEPT = re.compile(
    rb'(?:(?:0|-?[1-9][0-9]{0,17})"\^\^<http://www\.w3\.org/2001/XMLSchema#integer'
    rb'|-?(?:0|[1-9][0-9]{0,8})\.[0-9]{0,8}[1-9]"\^\^<http://www\.w3\.org/2001/XMLSchema#decimal'
    rb'|(?:true|false)"\^\^<http://www\.w3\.org/2001/XMLSchema#boolean'
    rb"|[1-9][0-9]{3}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])"
    rb'(?:"\^\^<http://www\.w3\.org/2001/XMLSchema#date'
    rb'|T(?:[01][0-9]|2[0-3])(?::[0-5][0-9]){2}Z?"\^\^<http://www\.w3\.org/2001/XMLSchema#dateTime))'
)
# a blank node stands neither in a literal nor in an IRI
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.|)*+"|<[^ <>]*+>|_:([^ \n]++)')


class Unusual(Exception):
    """The document has to be read a quad at a time."""


@dataclass(frozen=True, slots=True)
class Block:
    """Lines of canonical N-Quads, and the graphs that they name (None: the default graph). A quad that came
    twice may be there twice.
    """

    lines: bytes
    graphs: Collection[NamedGraph | None]


def check_depth(lines: bytes) -> None:
    """Raise Unusual where triple terms nest too deep, for a parser as well. They may look deeper than they
    are, never less deep.
    """
    if b"<<" in lines and any(line.count(b"<<") > TRIPLE_TERM_DEPTH_MAX for line in lines.split(b"\n")):
        raise Unusual("deeply nested triple terms")


def is_of_lines(syntax: RdfSyntax) -> bool:
    """Whether a line of such a document needs nothing but itself."""
    return not syntax.takes_base


def salted_labels(salt: bytes) -> Labels:
    """Labels that follow from the document's and a salt of 16 to 64 bytes: those of two salts never meet.

    They are of the kind that the engine makes, 124 bits in hexadecimal, which it stores as numbers.
    """
    return lambda label: b"f" + blake2b(label, key=salt, digest_size=16).hexdigest()[1:].encode()


def numbered_labels(labels: Labels) -> Labels:
    """The same for a document whose parser makes labels up, others each time: they follow from the order in
    which nodes come. Memory grows with the blank nodes.
    """
    numbers: dict[bytes, int] = {}
    return lambda label: labels(b"%d" % numbers.setdefault(label, len(numbers)))


def rewritten_block(
    block: bytes, syntax: RdfSyntax, *, graph: NamedGraph | None, labels: Labels | None
) -> Block:
    """Whole lines of N-Triples or N-Quads rewritten; without labels theirs are kept.

    graph is where the triples go of a syntax that carries no graphs. Raises Unusual.
    """
    check_depth(block)
    try:
        block.decode()  # the parser does not look into comments
        try:  # most documents name no graphs, and a Python object for each quad would double the cost
            lines = _serialised(_parsed(block, RdfFormat.N_TRIPLES))
        except SyntaxError:
            if not syntax.carries_graphs:
                raise
            return written_quads([*_parsed(block)], graph=graph, labels=labels)
    except (UnicodeDecodeError, SyntaxError, MemoryError) as error:
        raise Unusual(str(error)) from error
    return _finished(lines, {DefaultGraph()} if lines else set(), graph, labels)


def written_quads(quads: Sequence[Quad], *, graph: NamedGraph | None, labels: Labels | None) -> Block:
    """The same for quads that were read already. Those of the default graph go to graph."""
    return _finished(_serialised(quads), {quad.graph_name for quad in quads}, graph, labels)


def _finished(lines: bytes, names: set[GraphName], graph: NamedGraph | None, labels: Labels | None) -> Block:
    if graph is not None and names:
        if names != {DefaultGraph()}:
            raise Unusual("quads of named graphs")
        lines = lines.replace(b" .\n", b" %s .\n" % str(graph).encode())  # in literals newlines are escaped
        names = {graph}
    if labels is not None and b"_:" in lines:
        lines = _TOKEN.sub(lambda token: b"_:" + labels(token[1]) if token[1] else token[0], lines)
        names = {_relabelled(name, labels) for name in names}
    if b"<<(" in lines or not _are_kept(lines):
        lines = _as_stored(lines)
    return Block(lines, [None if isinstance(name, DefaultGraph) else name for name in names])


def _relabelled(name: GraphName, labels: Labels) -> GraphName:
    return BlankNode(labels(name.value.encode()).decode()) if isinstance(name, BlankNode) else name


def _are_kept(lines: bytes) -> bool:
    values = _VALUE.findall(lines)
    return len(values) == lines.count(_XSD) and all(map(_KEPT.fullmatch, set(values)))


def _as_stored(lines: bytes) -> bytes:
    """Put values that the engine stores as such into the form in which it gives them back."""
    kept, values, nested = list[bytes](), list[bytes](), list[bytes]()
    for line in lines.splitlines(keepends=True):
        if b"<<(" in line:
            nested.append(line)
        else:
            (kept if _are_kept(line) else values).append(line)
    store = Store()
    store.extend(_parsed(b"".join(values)))
    kept.append(store.dump(format=RdfFormat.N_QUADS) or b"")
    kept.append(_serialised(stored_form(_parsed(b"".join(nested)))))
    return b"".join(kept)


def _parsed(lines: bytes, format: RdfFormat = RdfFormat.N_QUADS) -> Iterator[Quad]:
    return parse(lines, format, rename_blank_nodes=False)


def _serialised(quads: Iterable[Quad]) -> bytes:
    return serialize(quads, format=RdfFormat.N_QUADS) or b""
