"""A whole RDF document as lines (`graphdb.rdf.quad_lines`), and what putting it into a store would change.

The engine does all of it in native code: it parses, gives blank nodes labels of their own, forgets quads that
come twice, and writes all in its own form. `staging` does the same a quad at a time, and says what is wrong
with a document; here whatever is out of the ordinary is refused.
"""

from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from pyoxigraph import DefaultGraph, RdfFormat, Store

from graphdb.model import NamedGraph, node_of_text
from graphdb.rdf.formats import RdfSyntax
from graphdb.rdf.quad_lines import line_blocks, parse_lines
from graphdb.rdf.reading import TRIPLE_TERM_DEPTH_MAX, check_guards

__all__ = ["DocumentLines", "Unusual", "difference", "document_lines", "graph_of_text"]

Target = NamedGraph | None  # None: the default graph


class Unusual(Exception):
    """The document has to be read a quad at a time."""


@dataclass(frozen=True, slots=True)
class DocumentLines:
    """What the lines of a document hold."""

    count: int
    graphs: tuple[Target, ...]


def document_lines(
    document: Path, syntax: RdfSyntax, lines: Path, store: Store, *, base_iri: str | None, graph: Target
) -> DocumentLines:
    """Write the lines of a document, whose own default graph is graph.

    store is an empty one. Raises Unusual, and whatever the engine raises; it may also end this process, for
    the guards that would prevent that run beside it.
    """
    with ThreadPoolExecutor(1) as beside:
        guarding = beside.submit(_guard, document, syntax)
        store.bulk_load(path=document, format=syntax.rdf_format, base_iri=base_iri, to_graph=graph)
        store.dump(lines, RdfFormat.N_QUADS)
        guarding.result()
    default = store.quads_for_pattern(None, None, None, DefaultGraph())
    count = 0
    with lines.open("rb") as file:
        for block in line_blocks(file):
            count += block.count(b"\n")
            _check_depth(block)
    return DocumentLines(count, (*((None,) if next(default, None) else ()), *store.named_graphs()))


def _guard(document: Path, syntax: RdfSyntax) -> None:
    with document.open("rb") as source:
        check_guards(source, syntax)


def _check_depth(block: bytes) -> None:
    """Triple terms may look deeper than they are, never less deep."""
    if b"<<(" in block and any(line.count(b"<<(") > TRIPLE_TERM_DEPTH_MAX for line in block.split(b"\n")):
        raise Unusual("deeply nested triple terms")


def difference(
    lines: Path, store: Store, filled: Collection[Target], added: Path, removed: Path | None
) -> bool:
    """Write which of a document's lines are new to store, and, where removed is given, which quads of the
    filled graphs the document does not have: then those are held in memory. Whether these are all quads of
    the graphs.
    """
    with added.open("wb") as new:
        if removed is None:
            new.writelines(_new_lines(lines, store))
            return False
        old = {line for graph in filled for line in _graph_lines(store, graph)}
        count = len(old)
        with lines.open("rb") as file:
            for block in line_blocks(file):
                for line in block.splitlines(keepends=True):
                    if line in old:
                        old.remove(line)
                    else:
                        new.write(line)
    with removed.open("wb") as gone:
        gone.writelines(old)
    return len(old) == count


def _new_lines(lines: Path, store: Store) -> Iterator[bytes]:
    """Quads of one subject mostly stand together, and of a subject that is not there none is."""
    place, is_there = None, False
    with lines.open("rb") as file:
        for block in line_blocks(file):
            for line, quad in zip(block.splitlines(keepends=True), parse_lines(block), strict=True):
                subject, graph = quad.subject, quad.graph_name
                if (subject, graph) != place:
                    place = subject, graph
                    is_there = next(store.quads_for_pattern(subject, None, None, graph), None) is not None
                if not is_there or quad not in store:
                    yield line


def _graph_lines(store: Store, graph: Target) -> Iterator[bytes]:
    text = store.dump(None, RdfFormat.N_TRIPLES, from_graph=graph or DefaultGraph()) or b""
    name = b"" if graph is None else b" %s" % str(graph).encode()
    return (b"%s%s .\n" % (line.removesuffix(b" ."), name) for line in text.splitlines())


def graph_of_text(text: str | None) -> Target:
    """The graph that str() of it gives, None for None."""
    return None if text is None else node_of_text(text)
