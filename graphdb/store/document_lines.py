"""A whole RDF document as lines (`graphdb.rdf.quad_lines`), and what putting it into a store would change.

N-Triples and N-Quads are rewritten a block at a time (`line_rewriting`). With another document the engine
does everything in native code: it parses, gives blank nodes labels of their own, forgets quads that come
twice, and writes all in its own form. `staging` does the same a quad at a time, and says what is wrong with a
document; here whatever is out of the ordinary is refused.
"""

from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pyoxigraph import DefaultGraph, RdfFormat, Store

from graphdb.model import NamedGraph, node_of_text
from graphdb.rdf.formats import RdfSyntax
from graphdb.rdf.quad_lines import line_blocks, parse_lines
from graphdb.rdf.reading import check_guards
from graphdb.store.line_rewriting import Labels, Unusual, check_depth, is_of_lines, rewritten_block

__all__ = ["DocumentLines", "difference", "document_lines", "graph_of_text"]

Target = NamedGraph | None  # None: the default graph
_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class DocumentLines:
    """What the lines of a document hold."""

    count: int
    graphs: tuple[Target, ...]


def document_lines(
    document: Path,
    syntax: RdfSyntax,
    lines: Path,
    store: Store,
    *,
    base_iri: str | None,
    graph: Target,
    labels: Labels | None,
) -> DocumentLines:
    """Write the lines of a document, whose own default graph is graph.

    store is an empty one. labels give blank nodes theirs; with None they keep them, as only documents of
    lines can. Raises Unusual, and whatever the engine raises; it may also end this process, for the guards
    that would prevent that run beside it.
    """
    if is_of_lines(syntax):
        with suppress(Unusual):
            return _rewritten(document, syntax, lines, graph, labels)
    if labels is None:
        raise Unusual("blank nodes keep their labels")
    return _by_the_engine(document, syntax, lines, store, base_iri, graph)


def _rewritten(
    document: Path, syntax: RdfSyntax, lines: Path, graph: Target, labels: Labels | None
) -> DocumentLines:
    # at the top, every node would load NumPy, which only the process needs that does this
    from graphdb.store.distinct_lines import DistinctLines

    graphs: dict[Target, None] = {}
    with document.open("rb") as file, DistinctLines(lines) as distinct:
        for block in line_blocks(file, _BLOCK_BYTES):
            rewritten = rewritten_block(block, syntax, graph=graph, labels=labels)
            distinct.add(rewritten.lines)
            graphs.update(dict.fromkeys(rewritten.graphs))
        distinct.finish()
    return DocumentLines(distinct.count, tuple(graphs))


def _by_the_engine(
    document: Path, syntax: RdfSyntax, lines: Path, store: Store, base_iri: str | None, graph: Target
) -> DocumentLines:
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
            check_depth(block)
    return DocumentLines(count, (*((None,) if next(default, None) else ()), *store.named_graphs()))


def _guard(document: Path, syntax: RdfSyntax) -> None:
    with document.open("rb") as source:
        check_guards(source, syntax)


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
