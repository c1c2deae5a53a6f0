"""Applying ChangeSets to a pyoxigraph store in one atomic call.

pyoxigraph has no transaction object, and a few atomic calls: `extend` adds quads; `bulk_extend` adds very
many, in files of their own that become visible together; `update` runs SPARQL text. A change that both adds
and removes goes through `update`: its first quads as DELETE DATA and INSERT DATA, up to a bound on the text.
What text cannot name, the blank nodes of the store, and what is beyond the bound come in through custom
functions, at four times the cost: for each row of a grid of numbers the engine asks for the next quad, whose
parts land in the variables of four templates (remove or add, default or named graph). These rows are pulled
one by one, so that a stream of changes is never in Python's memory as a whole; the engine's own memory holds
all of an `extend` or `update` until its end, about a kilobyte for each quad.

pyoxigraph takes an exception in a custom function for an unbound variable. A stream that fails half-way must
not be taken for a short one, so the text ends in a check: a guard graph is made only if the rows ended well,
then dropped, and to drop a graph that does not exist fails the whole update.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import chain, count, groupby, islice
from typing import TypeAlias

from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad, RdfFormat, Store, Triple

from graphdb.errors import CorruptionError
from graphdb.model import ChangeSet, GraphName, NamedGraph
from graphdb.rdf.quad_lines import MANY_QUADS, AddedLines, ClearedLines, parse_lines, triples_of
from graphdb.store.engine_errors import storage_failures

__all__ = [
    "add_lines",
    "apply_changes",
    "clear_graphs",
    "is_cleared_at_once",
    "may_clear",
    "remove_lines",
]

Term: TypeAlias = NamedNode | BlankNode | Literal | Triple
Row: TypeAlias = tuple[bool, Quad]  # a quad and whether it is removed
CustomFunction: TypeAlias = Callable[..., Term | None]

GRID_SIDE = 1000
NUMBERS = " ".join(map(str, range(GRID_SIDE)))
WRITTEN_QUADS_MAX = 400_000  # that are taken for text, with those between them that text cannot name
WRITTEN_CHARS_MAX = 32_000_000  # of their objects
# Of more quads, the name of a dropped graph goes just after them: DROP GRAPH looks in the transaction whether
# it has left any, and takes twice to three times as long as removing them.
DROPPED_QUADS_MAX = 10_000
# Three nested levels: up to a billion rows, and no more than three thousand idle ones after the last quad.
GRID = (
    f"{{ VALUES ?a {{ {NUMBERS} }} FILTER(<fn:more>(?a)) }} "
    f"LATERAL {{ VALUES ?b {{ {NUMBERS} }} FILTER(<fn:more>(?b)) }} "
    f"LATERAL {{ VALUES ?c {{ {NUMBERS} }} }}"
)
TEMPLATES = """
DELETE { ?defaultRemoved ?p ?o . GRAPH ?graphRemoved { ?s ?p ?o } }
INSERT { ?defaultAdded ?p ?o . GRAPH ?graphAdded { ?s ?p ?o } }
WHERE { %s
  BIND(<fn:next>(?c) AS ?p) FILTER(BOUND(?p))
  BIND(<fn:subject>(?p) AS ?s) BIND(<fn:object>(?p) AS ?o)
  BIND(<fn:default-removed>(?p) AS ?defaultRemoved) BIND(<fn:graph-removed>(?p) AS ?graphRemoved)
  BIND(<fn:default-added>(?p) AS ?defaultAdded) BIND(<fn:graph-added>(?p) AS ?graphAdded)
};
INSERT { GRAPH %s { <fn:guard> <fn:guard> <fn:guard> } } WHERE { FILTER(<fn:complete>()) };
DROP GRAPH %s"""
DEFAULT_GRAPH = DefaultGraph()
_EMPTY = "DELETE WHERE { GRAPH %s { ?s ?p ?o } }"
_EMPTY_ALL = "DELETE { GRAPH ?g { ?s ?p ?o } } WHERE { VALUES ?g { %s } GRAPH ?g { ?s ?p ?o } }"
# So many quads of other graphs are put back after the engine's deletion of all, which costs nothing for each.
_PUT_BACK_MAX = 10_000
_PUT_BACK_TIMES = 3  # what one costs that is put back, beside one that is removed by itself
_LINES_BYTES_MAX = 2 * WRITTEN_CHARS_MAX  # of lines that are taken for text


def apply_changes(
    store: Store,
    changes: Iterable[ChangeSet],
    bulk_loading: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> None:
    """Apply the parts of one net change, all or nothing; see `QuadStore.apply_many`.

    bulk_loading is entered around a bulk load, which flushes what the engine holds in memory.
    Raises StorageFull, CorruptionError, and whatever the iterable raises; then the store is as it was.
    """
    alone = isinstance(changes, tuple) and len(changes) == 1
    parts = iter(changes)
    first = next(parts) if alone else _first(parts)
    if alone and _only_adds_few(first):
        with storage_failures():
            store.extend(first.added)
        return
    names = _Names(first)
    rest = names.watch(parts)
    with storage_failures():
        if first.removed or first.dropped_graphs or (alone and _creates_empty(first)):
            _update(store, first, rest)
        else:
            _extend(store, chain(first.added, _only_added(rest)), bulk_loading)
        names.settle(store)


def add_lines(
    store: Store,
    lines: AddedLines,
    bulk_loading: Callable[[], AbstractContextManager[None]],
    pause: Callable[[], None],
) -> None:
    """The same for a change in this form, in native code alone where no quad has a blank node; else pause is
    called each millisecond or so.
    """
    with storage_failures(), bulk_loading():
        try:
            if lines.may_have_blank_nodes:  # to which `bulk_load` would give other labels
                store.bulk_extend(lines.quads(pause))
            else:
                store.bulk_load(path=lines.path, format=RdfFormat.N_QUADS, lenient=True)
        except SyntaxError as error:
            raise CorruptionError(f"a change that cannot be read: {error}", "update log entry") from error
        for graph in lines.created_graphs:
            if not store.contains_named_graph(graph):
                store.add_graph(graph)


def may_clear(lines: ClearedLines) -> bool:
    """Whether `clear_graphs` takes this change: what it adds has to be written as text."""
    return lines.added is None or _may_be_text(lines.added)


def clear_graphs(store: Store, lines: ClearedLines) -> None:
    """Take all quads of some graphs away and add others, in one atomic call; then see to names of graphs.

    The engine deletes the default graph, and all named graphs together, as ranges of keys, in no time. Of
    some of the named graphs it deletes a quad at a time, unless the others have few quads: then all are
    deleted, and those put back. A quad that the text names costs it two thirds of one that it has to find.
    A graph that text cannot name has a call of its own.
    Raises StorageFull, CorruptionError.
    """
    graphs = lines.cleared_graphs
    named = [graph for graph in graphs if not isinstance(graph, DefaultGraph)]
    default = ["CLEAR DEFAULT"] if len(named) < len(graphs) else []
    more = [] if lines.added is None else [*_data("INSERT", lines.added.triples())]
    created = () if lines.added is None else lines.added.created_graphs
    with storage_failures():
        for operations in _ways_to_clear(store, named, lines):
            if _reads(store, [*operations, *default, *more]):
                break
        else:
            for graph in graphs:
                store.clear_graph(graph)
            store.extend(quad for part in lines.added or () for quad in part.added)
        _Names(ChangeSet(dropped_graphs=lines.dropped_graphs, created_graphs=created)).settle(store)


def _ways_to_clear(store: Store, graphs: Sequence[NamedGraph], lines: ClearedLines) -> Iterator[list[str]]:
    """Operations that empty these graphs, the named ones, the best first. Only the first of them reads: so
    the engine keeps no index of its transaction, which takes longer to make than to write the transaction.
    """
    if not graphs:
        yield []
        return
    kept = _put_back(store, graphs, lines.count)
    if kept is not None:
        everything = (
            "DROP NAMED" if set(lines.dropped_graphs).issuperset(store.named_graphs()) else "CLEAR NAMED"
        )
        yield [everything, *_written((False, quad) for quad in kept)]
    if any(isinstance(graph, BlankNode) for graph in graphs):
        return
    if lines.count and _may_be_text(lines):
        yield [*_data("DELETE", (run for run in lines.triples() if run[1]))]
    yield [_EMPTY % graphs[0] if len(graphs) == 1 else _EMPTY_ALL % " ".join(map(str, graphs))]


def is_cleared_at_once(store: Store, lines: ClearedLines) -> bool:
    """Whether these named graphs go with the engine's deletion of all, which takes no time a quad."""
    return _put_back(store, lines.cleared_graphs, lines.count) is not None


def remove_lines(store: Store, block: bytes) -> None:
    """Take the quads of some lines out of the store, in one call where text can name them all. Raises
    OSError.
    """
    lines = block.splitlines(keepends=True)
    rest = [line for line in lines if b"_:" in line]
    text = block if not rest else b"".join(line for line in lines if b"_:" not in line)
    if text and not _reads(store, [*_data("DELETE", triples_of(text))]):
        rest = lines
    for quad in parse_lines(b"".join(rest)):
        store.remove(quad)


def _put_back(store: Store, graphs: Sequence[GraphName], count: int) -> list[Quad] | None:
    """The quads of other named graphs, where it takes less to insert them again than to delete `count`."""
    put_back_max = min(_PUT_BACK_MAX, count // _PUT_BACK_TIMES)
    kept = list(islice(_quads_beside(store, frozenset(graphs)), put_back_max + 1))
    return kept if len(kept) <= put_back_max and all(map(_has_text, kept)) else None


def _may_be_text(lines: AddedLines | ClearedLines) -> bool:
    is_short = lines.count <= WRITTEN_QUADS_MAX and lines.path.stat().st_size <= _LINES_BYTES_MAX
    return is_short and not lines.may_have_blank_nodes


def _data(operation: str, runs: Iterable[tuple[bytes, bytes]]) -> Iterator[str]:
    """Triples and the graph they are in, as operations on data."""
    for triples, graph in runs:
        block = f"GRAPH{graph.decode()} {{\n{triples.decode()}}}" if graph else triples.decode()
        yield f"{operation} DATA {{ {block} }}"


def _quads_beside(store: Store, graphs: frozenset[GraphName]) -> Iterator[Quad]:
    """Those of all named graphs but these."""
    for graph in store.named_graphs():
        if graph not in graphs:
            yield from store.quads_for_pattern(None, None, None, graph)


def _reads(store: Store, operations: Sequence[str]) -> bool:
    """Run operations in one call; False where the engine does not read them: see `_update`."""
    try:
        store.update(";".join(operations))
    except SyntaxError:
        return False
    return True


def _only_adds_few(change: ChangeSet) -> bool:
    """Whether it adds some quads and does nothing else, as most writes do."""
    if change.removed or change.dropped_graphs or change.created_graphs:
        return False
    return len(change.added) <= MANY_QUADS


def _first(parts: Iterator[ChangeSet]) -> ChangeSet:
    """The first part that has quads, with the names of those before it."""
    first = ChangeSet()
    for part in parts:
        first = ChangeSet(
            part.removed,
            part.added,
            first.dropped_graphs + part.dropped_graphs,
            first.created_graphs + part.created_graphs,
        )
        if part.removed or part.added:
            break
    return first


class _Names:
    """The graph names of all parts, as they go by."""

    def __init__(self, first: ChangeSet) -> None:
        self._created = list(first.created_graphs)
        self._dropped = list(first.dropped_graphs)

    def watch(self, parts: Iterator[ChangeSet]) -> Iterator[ChangeSet]:
        for part in parts:
            self._created += part.created_graphs
            self._dropped += part.dropped_graphs
            yield part

    def settle(self, store: Store) -> None:
        """Make and drop what the atomic call did not, all empty: names of blank nodes, of later parts and of
        large graphs.
        """
        for graph in self._dropped:
            if store.contains_named_graph(graph):
                store.remove_graph(graph)
        for graph in self._created:
            if not store.contains_named_graph(graph):
                store.add_graph(graph)


class _Rows:
    """The rows of a change, handed to the engine term by term through custom functions."""

    def __init__(self, rows: Iterator[Row]) -> None:
        self._rows = rows
        self._removes = False
        self._quad: Quad | None = None
        self._ended = False
        self.failure: BaseException | None = None

    def functions(self) -> dict[NamedNode, CustomFunction]:
        """The custom functions that the templates name."""
        return {
            NamedNode("fn:more"): lambda _: Literal(not self._ended),
            NamedNode("fn:next"): self._next,
            NamedNode("fn:subject"): lambda _: self._now().subject,
            NamedNode("fn:object"): lambda _: self._now().object,
            NamedNode("fn:default-removed"): lambda _: self._subject_if(removes=True),
            NamedNode("fn:graph-removed"): lambda _: self._graph_if(removes=True),
            NamedNode("fn:default-added"): lambda _: self._subject_if(removes=False),
            NamedNode("fn:graph-added"): lambda _: self._graph_if(removes=False),
            NamedNode("fn:complete"): lambda: Literal(
                self.failure is None and next(self._rows, None) is None
            ),
        }

    def _next(self, _: Term) -> NamedNode | None:
        """Go to the next quad and give its predicate; None at the end."""
        try:
            row = next(self._rows, None)
        except BaseException as error:  # noqa: BLE001 - the engine would swallow it; apply_changes raises it again
            self.failure, row = error, None
        if row is None:
            self._ended = True
            return None
        self._removes, self._quad = row
        return self._quad.predicate

    def _now(self) -> Quad:
        assert self._quad is not None
        return self._quad

    def _subject_if(self, *, removes: bool) -> Term | None:
        quad = self._now()
        return quad.subject if self._removes is removes and quad.graph_name == DEFAULT_GRAPH else None

    def _graph_if(self, *, removes: bool) -> Term | None:
        graph = self._now().graph_name
        return None if isinstance(graph, DefaultGraph) or self._removes is not removes else graph


def _rows(changes: Iterable[ChangeSet], dropped: frozenset[NamedGraph]) -> Iterator[Row]:
    """All quads but those of dropped graphs, which go as a whole."""
    for change in changes:
        for quad in change.removed:
            if quad.graph_name not in dropped:
                yield True, quad
        for quad in change.added:
            yield False, quad


def _extend(
    store: Store, quads: Iterator[Quad], bulk_loading: Callable[[], AbstractContextManager[None]]
) -> None:
    head = list(islice(quads, MANY_QUADS))  # fewer are not worth the half second that a bulk load takes
    following = next(quads, None)
    if following is None:
        store.extend(head)
    else:
        with bulk_loading():
            store.bulk_extend(chain(head, (following,), quads))


def _update(store: Store, first: ChangeSet, rest: Iterator[ChangeSet]) -> None:
    """Apply in one call of `update`."""
    dropped = frozenset(graph for graph in first.dropped_graphs if isinstance(graph, NamedNode))
    created = [graph for graph in first.created_graphs if isinstance(graph, NamedNode)]
    rows = _rows(chain((first,), rest), dropped)
    head = list(_few(rows))
    following = list(islice(rows, 1))
    drop = "DROP SILENT GRAPH %s" if len(first.removed) <= DROPPED_QUADS_MAX else _EMPTY
    drops = [drop % graph for graph in dropped]
    creates = [f"CREATE SILENT GRAPH {graph}" for graph in created]
    written = _written(row for row in head if _has_text(row[1]))
    unwritten = [row for row in head if not _has_text(row[1])]
    try:
        _run(
            store,
            [*drops, *written],
            chain(unwritten, following, rows),
            creates,
            None if following else len(unwritten),
        )
    except SyntaxError:  # the store may hold terms that the engine does not read, such as IRIs with a space
        _run(store, drops, chain(head, following, rows), creates, None if following else len(head))


def _few(rows: Iterator[Row]) -> Iterator[Row]:
    """As many rows as may become text."""
    size = 0
    for row in islice(rows, WRITTEN_QUADS_MAX):
        yield row
        size += len(str(row[1].object))
        if size > WRITTEN_CHARS_MAX:
            return


def _run(store: Store, before: list[str], rows: Iterator[Row], after: list[str], size: int | None) -> None:
    """Operations, then so many rows by functions (None: unknown), then operations, in one call."""
    functions = _Rows(rows)
    by_function = []
    if size != 0:
        guard = _guard(store)
        by_function = [TEMPLATES % (_grid(size), guard, guard)]
    try:
        store.update(";".join([*before, *by_function, *after]), custom_functions=functions.functions())
    except RuntimeError as error:
        raise functions.failure or error from None


def _written(rows: Iterable[Row]) -> Iterator[str]:
    """The rows as operations on data, one for all that follow each other with one graph."""
    for (removes, graph), run in groupby(rows, lambda row: (row[0], row[1].graph_name)):
        triples = "".join([f"{quad.triple} .\n" for _, quad in run])
        block = triples if isinstance(graph, DefaultGraph) else f"GRAPH {graph} {{ {triples} }}"
        yield f"{'DELETE' if removes else 'INSERT'} DATA {{ {block} }}"


def _has_text(quad: Quad) -> bool:
    """Whether text can name a quad: not if it has a blank node."""
    if isinstance(quad.subject, BlankNode) or isinstance(quad.graph_name, BlankNode):
        return False
    term = quad.object
    while isinstance(term, Triple):
        if isinstance(term.subject, BlankNode):
            return False
        term = term.object
    return not isinstance(term, BlankNode)


def _grid(size: int | None) -> str:
    """As many rows as there are quads, where they are few: a long grid takes milliseconds to parse."""
    if size is None or size > GRID_SIDE:
        return GRID
    return f"VALUES ?c {{ {' '.join(map(str, range(size)))} }}"


def _guard(store: Store) -> NamedNode:
    """A name that no graph has."""
    names = (NamedNode(f"fn:guard-{number}") for number in count())
    return next(name for name in names if not store.contains_named_graph(name))


def _creates_empty(change: ChangeSet) -> bool:
    """Whether a new graph is not brought into being by its quads."""
    return bool(set(change.created_graphs).difference(quad.graph_name for quad in change.added))


def _only_added(parts: Iterator[ChangeSet]) -> Iterator[Quad]:
    for part in parts:
        assert not part.removed, "parts that remove come before parts that only add"
        yield from part.added
