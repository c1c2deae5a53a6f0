"""Quads of INSERT DATA and DELETE DATA: of a tree, or read by pyoxigraph's TriG parser from a block left as
text.

The two languages differ a little. What TriG has and SPARQL has not is refused here: directives, graphs
without the word GRAPH, blank graph names. What SPARQL has and TriG has not (dots around GRAPH blocks, TRUE in
capitals) makes the TriG parser refuse, and then the grammar decides.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

from pyoxigraph import (
    BaseDirection,
    BlankNode,
    DefaultGraph,
    Literal,
    NamedNode,
    Quad,
    RdfFormat,
    Triple,
    parse,
)

from graphdb.errors import QuerySyntaxError
from graphdb.sparql.lexer import bound_triple_terms, braces_of_data_block, fault, tokens
from graphdb.sparql.syntax import DeleteData, InsertData, Prologue, QuadPattern, Update
from graphdb.sparql.tables import END, load_tables
from graphdb.sparql.terms import BlankNodeLabel, Iri, PatternTerm, RdfLiteral, TripleTerm

__all__ = ["fault_in_large_blocks", "native_quads", "quads_of_tree", "renamed"]

_DIRECTIVES = frozenset(("@prefix", "@base", "@version"))
_DIRECTIVE_WORDS = frozenset(("PREFIX", "BASE", "VERSION"))


def fault_in_large_blocks(update: Update) -> QuerySyntaxError | None:
    """Why some block that was left as text cannot be read as TriG, or breaks a rule of SPARQL.

    None: `native_quads` reads them all. A block that has a fault may still be SPARQL that is no TriG.
    """
    inserts = [operation for operation in update.operations if isinstance(operation, InsertData)]
    labels: set[str] = set()
    for operation in update.operations:
        if not isinstance(operation, InsertData | DeleteData):
            continue
        try:
            if operation.quads is None:
                _check_block(update.text, operation)
            if len(inserts) > 1 and isinstance(operation, InsertData):
                _add_labels(labels, update.text, operation)
        except QuerySyntaxError as error:
            return error
    return None


def native_quads(
    text: str, operation: InsertData | DeleteData, fresh: Callable[[], BlankNode] | None
) -> Iterator[Quad]:
    """The quads of a block in which `fault_in_large_blocks` found nothing."""
    return renamed(_Document(text, operation).quads(), fresh)


def quads_of_tree(quads: Sequence[QuadPattern], fresh: Callable[[], BlankNode] | None) -> Iterator[Quad]:
    """Ground quads as pyoxigraph's; they hold no variables."""
    ground = (
        Quad(_subject(quad.subject), _iri(quad.predicate), _term(quad.object), _graph(quad.graph))
        for quad in quads
    )
    return renamed(ground, fresh)


def renamed(quads: Iterable[Quad], fresh: Callable[[], BlankNode] | None) -> Iterator[Quad]:
    """The quads of one operation, each of its blank nodes a fresh one; without fresh as they are."""
    return iter(quads) if fresh is None else map(_Renaming(fresh).quad, quads)


def _check_block(text: str, operation: InsertData | DeleteData) -> None:
    """Raises QuerySyntaxError where a block left as text is no TriG, or breaks a rule of DATA."""
    bound_triple_terms(text, *operation.block)
    document = _Document(text, operation)
    deletes = isinstance(operation, DeleteData)
    try:
        for quad in document.quads():
            if deletes and any(isinstance(term, BlankNode) for term in _leaves(quad)):
                raise fault("DELETE DATA cannot hold a blank node", text, operation.block.start)
    except SyntaxError as error:
        raise document.fault(error) from None
    except MemoryError as error:  # of the native parser's own making, for one long term
        if "buffer maximal size" not in str(error):
            raise
        raise fault("a term or comment is too long", text, operation.block.start) from None


def _add_labels(labels: set[str], text: str, operation: InsertData) -> None:
    """Raises QuerySyntaxError where a label of the operation is known already.

    Labels made up for [] are another for each, so they do no harm here.
    """
    tree = operation.quads
    own = {
        term.value
        for quad in (native_quads(text, operation, None) if tree is None else quads_of_tree(tree, None))
        for term in _leaves(quad)
        if isinstance(term, BlankNode)
    }
    if shared := min(own & labels, default=None):
        raise fault(f"_:{shared} stands in two operations", text, operation.block.start)
    labels |= own


class _Document:
    """A block as a TriG document: prefixes first, then the block.

    A block without graphs keeps its braces, for only within them TriG lets the last dot be missing.
    """

    def __init__(self, text: str, operation: InsertData | DeleteData) -> None:
        """Raises QuerySyntaxError where the block has a directive or a graph without the word GRAPH."""
        self._text, self._operation = text, operation
        start, end = operation.block
        if _has_graphs(text, start):
            start, end = start + 1, end - 1
        self._start, self._end = start, end

    def quads(self) -> Iterator[Quad]:
        prologue = self._operation.prologue
        document = _prefixes(prologue) + self._text[self._start : self._end]
        return iter(parse(document, RdfFormat.TRIG, base_iri=prologue.base))

    def fault(self, error: SyntaxError) -> QuerySyntaxError:
        """The TriG parser's complaint, at its place in the whole text."""
        block_line = (error.lineno or 1) - len(self._operation.prologue.prefixes)  # from 1
        line = self._text.count("\n", 0, self._start) + block_line
        column = error.offset or 1
        if block_line == 1:
            column += self._start - (self._text.rfind("\n", 0, self._start) + 1)
        _, _, reason = error.msg.partition(": ")
        return QuerySyntaxError(reason or error.msg, line, column)


def _has_graphs(text: str, start: int) -> bool:
    """Whether there are braces within the block other than of annotations.

    Those right within the block must be of GRAPH <name> {...}, and nothing around them a directive: else
    QuerySyntaxError.
    """
    outside = start + 1  # where the text outside of graphs goes on
    depth, found = 0, False
    for place in braces_of_data_block(text, start):
        opens = text[place] == "{"
        depth += 1 if opens else -1
        if depth == 2 and opens and not text.startswith("{|", place):
            found = True
            _check_outside(text, outside, place, leads_to_graph=True)
        elif depth == 1 and not opens and not text.startswith("|}", place - 1):
            outside = place + 1
    if found:
        _check_outside(text, outside, place, leads_to_graph=False)
    return found


def _check_outside(text: str, start: int, end: int, leads_to_graph: bool) -> None:
    """Text around graphs has no directives, and where it leads to one it ends in GRAPH and an IRI."""
    before, last = "", ""
    for token in tokens(load_tables(), text[start:end]):
        if token.terminal in _DIRECTIVE_WORDS or token.text in _DIRECTIVES:
            raise fault(f"'{token.text}' cannot stand in data", text, start + token.start)
        if token.terminal != END:
            before, last = last, token.terminal
    if leads_to_graph and not (before == "GRAPH" and last in ("IRIREF", "PNAME_LN", "PNAME_NS")):
        raise fault("expected GRAPH and an IRI before '{'", text, end)


def _prefixes(prologue: Prologue) -> str:
    """One line for each prefix."""
    return "".join(f"@prefix {prefix}: <{namespace}> .\n" for prefix, namespace in prologue.prefixes)


# Terms of a tree as pyoxigraph's


def _iri(term: PatternTerm | None) -> NamedNode:
    assert isinstance(term, Iri)
    return NamedNode(term.value)


def _graph(graph: PatternTerm | None) -> NamedNode | DefaultGraph:
    return DefaultGraph() if graph is None else _iri(graph)


def _subject(term: PatternTerm) -> NamedNode | BlankNode:
    return BlankNode(term.label) if isinstance(term, BlankNodeLabel) else _iri(term)


def _term(term: PatternTerm) -> NamedNode | BlankNode | Literal | Triple:
    if isinstance(term, TripleTerm):
        return Triple(_subject(term.subject), _iri(term.predicate), _term(term.object))
    if isinstance(term, RdfLiteral):
        if term.direction is not None:
            return Literal(term.value, language=term.language, direction=_DIRECTIONS[term.direction])
        if term.language is not None:
            return Literal(term.value, language=term.language)
        return Literal(term.value, datatype=NamedNode(term.datatype))
    return _subject(term)


_DIRECTIONS = {"ltr": BaseDirection.LTR, "rtl": BaseDirection.RTL}


# Blank nodes


def _leaves(quad: Quad) -> Iterator[NamedNode | BlankNode | Literal | Triple]:
    """Subject and object of a quad; in place of a triple term, its own."""
    yield quad.subject
    term = quad.object
    while isinstance(term, Triple):
        yield term.subject
        term = term.object
    yield term


class _Renaming:
    """Gives each blank node of one operation a fresh one, the same each time."""

    def __init__(self, fresh: Callable[[], BlankNode]) -> None:
        self._fresh = fresh
        self._renamed: dict[str, BlankNode] = {}

    def quad(self, quad: Quad) -> Quad:
        subject, term = quad.subject, quad.object
        if not isinstance(subject, BlankNode) and not isinstance(term, BlankNode | Triple):
            return quad
        return Quad(self._node(subject), quad.predicate, self._term(term), quad.graph_name)

    def _node(self, term: NamedNode | BlankNode | Triple) -> NamedNode | BlankNode:
        assert not isinstance(term, Triple), "only objects are triple terms"
        if not isinstance(term, BlankNode):
            return term
        label = term.value
        renamed = self._renamed.get(label)
        if renamed is None:
            renamed = self._renamed[label] = self._fresh()
        return renamed

    def _term(
        self, term: NamedNode | BlankNode | Literal | Triple
    ) -> NamedNode | BlankNode | Literal | Triple:
        if isinstance(term, Triple):
            return Triple(self._node(term.subject), term.predicate, self._term(term.object))
        return term if isinstance(term, Literal) else self._node(term)
