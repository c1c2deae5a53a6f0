"""SPARQL of a shapes graph, to `ShapeQuery`: prefixes, $PATH, what pre-binding forbids (SHACL section 5)."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from pyoxigraph import BlankNode, Literal, NamedNode

from graphdb.config.limits import GateLimits
from graphdb.errors import InvalidParameter, LimitExceeded, QuerySyntaxError
from graphdb.planning.gate import check, check_present, read_query
from graphdb.shacl.paths import Path, path_text
from graphdb.shacl.shacl_names import OWL, RDF, RDFS, SH, XSD, Node, Term, sh
from graphdb.shacl.shape_tree import ShapeQuery
from graphdb.shacl.shapes_graph import ShapesGraph
from graphdb.sparql.patterns import (
    Bind,
    FunctionCall,
    GroupCondition,
    GroupGraphPattern,
    InlineData,
    MinusPattern,
    Projection,
    SolutionModifiers,
    SubSelect,
    TriplePattern,
    TriplesBlock,
)
from graphdb.sparql.syntax import Query
from graphdb.sparql.terms import Iri, Variable
from graphdb.sparql.translation import searches_of
from graphdb.sparql.tree_walk import all_below, nodes_below, parts_of, renamed, rewritten

__all__ = ["CURRENT_SHAPE", "SHAPES_GRAPH", "QueryReader"]

CURRENT_SHAPE = "currentShape"
SHAPES_GRAPH = "shapesGraph"
_USUAL_PREFIXES = {"rdf": RDF, "rdfs": RDFS, "xsd": XSD, "owl": OWL, "sh": SH}
_PATH = Variable("PATH")
_OWL_IMPORTS = NamedNode(OWL + "imports")


class QueryReader:
    """Reads the texts of one shapes graph. Every method raises MalformedShapes."""

    def __init__(self, graph: ShapesGraph, limits: GateLimits) -> None:
        self._graph, self._limits = graph, limits
        kinds = ("SPARQLFunction", "SHACLFunction", "Function")
        self._declared = {node for kind in kinds for node in graph.instances(sh(kind))}

    def select(
        self, node: Node, shape: Node, path: Path | None, bindings: tuple[tuple[str, Term], ...] = ()
    ) -> ShapeQuery:
        """sh:select of a constraint, validator or target; it must project ?this."""
        read = self._read(node, "select", shape, path, bindings, ("this",))
        self._check_columns(read.query, node)
        return read

    def target(self, node: Node, target: Node, bindings: tuple[tuple[str, Term], ...]) -> ShapeQuery:
        """sh:select of a target; it must project ?this, which has no value before."""
        read = self._read(node, "select", target, None, bindings, ())
        self._check_columns(read.query, node)
        if read.calls_declared:
            raise self._graph.malformed(node, "select", "of a target cannot call a function declared here")
        return read

    def ask(
        self, node: Node, shape: Node, path: Path | None, bindings: tuple[tuple[str, Term], ...]
    ) -> ShapeQuery:
        """sh:ask of a validator."""
        read = self._read(node, "ask", shape, path, bindings, ("this", "value"))
        if read.query.form != "ASK":
            raise self._graph.malformed(node, "ask", "must be an ASK query")
        if read.query.modifiers != SolutionModifiers():
            raise self._graph.malformed(node, "ask", "must end with its pattern")
        return read

    def body(self, function: NamedNode) -> Query | None:
        """The query of a function that the shapes graph declares; None where there is none to read."""
        text = self._graph.text(function, "ask") or self._graph.text(function, "select")
        if text is None:
            return None
        try:
            return read_query(self._prefixes(function) + text, None, self._limits)
        except (QuerySyntaxError, LimitExceeded):
            return None

    def _check_columns(self, query: Query, node: Node) -> None:
        if query.select is None or query.where is None:
            raise self._graph.malformed(node, "select", "must be a SELECT query")
        projections = query.select.projections
        shown = query.where.variables if projections is None else {each.variable.name for each in projections}
        if "this" not in shown:
            raise self._graph.malformed(node, "select", "must have ?this among its columns")

    def _read(
        self,
        node: Node,
        name: str,
        shape: Node,
        path: Path | None,
        bindings: tuple[tuple[str, Term], ...],
        varying: tuple[str, ...],
    ) -> ShapeQuery:
        text = self._graph.text(node, name)
        if text is None:
            raise self._graph.malformed(node, name, "is missing")
        prefixes = self._prefixes(node)
        try:
            query = self._with_path(read_query(prefixes + text, None, self._limits), node, name, path)
            check(query, self._limits)
            check_present(query)
        except QuerySyntaxError as error:
            line = error.line - prefixes.count("\n")
            in_the_text_given = QuerySyntaxError(error.reason, line, error.column)
            raise self._graph.malformed(node, name, str(in_the_text_given)) from None
        except (LimitExceeded, InvalidParameter) as error:
            raise self._graph.malformed(node, name, str(error)) from None
        bound = {*varying, *(variable for variable, _ in bindings), CURRENT_SHAPE, SHAPES_GRAPH}
        reason = _why_not_prebindable(query, bound)
        if reason is not None:
            raise self._graph.malformed(node, name, reason)
        calls_declared = any(NamedNode(name) in self._declared for name in _called(query))
        return ShapeQuery(query, (*bindings, (CURRENT_SHAPE, shape)), calls_declared)

    def _with_path(self, query: Query, node: Node, name: str, path: Path | None) -> Query:
        """The path in the place of $PATH."""
        if _PATH not in all_below(query):
            return query
        if path is None:
            raise self._graph.malformed(node, name, "uses $PATH, which only property shapes have")
        (found,) = _triples_of(read_query(f"ASK {{ ?this {path_text(path)} ?value }}", None, self._limits))
        query = rewritten(query, lambda each: _with_predicate(each, found.predicate))
        if isinstance(found.predicate, Iri):
            query = renamed(query, {_PATH: found.predicate})
        if _PATH in all_below(query):
            raise self._graph.malformed(node, name, "uses $PATH otherwise than as a predicate")
        # a query is known by its text to what keeps something of it, and other shapes have other paths
        return replace(query, text=f"{query.text}\n# $PATH: {path_text(path)}")

    def _prefixes(self, node: Node) -> str:
        """PREFIX lines: what sh:prefixes declares, and the usual ones (SHACL section 5.2.1)."""
        prefixes = dict(_USUAL_PREFIXES)
        declared: dict[str, str] = {}
        for declaration in self._declarations(node):
            prefix, namespace = self._declaration(declaration)
            if declared.setdefault(prefix, namespace) != namespace:
                raise self._graph.malformed(node, "prefixes", f"declares {prefix!r} twice, differently")
        return "".join(f"PREFIX {prefix}: <{iri}>\n" for prefix, iri in (prefixes | declared).items())

    def _declarations(self, node: Node) -> Iterable[Node]:
        """Along owl:imports."""
        waiting = list(self._graph.nodes(node, "prefixes"))
        seen: set[Node] = set()
        while waiting:
            ontology = waiting.pop()
            if ontology in seen:
                continue
            seen.add(ontology)
            imported = self._graph.objects(ontology, _OWL_IMPORTS)
            waiting += [each for each in imported if isinstance(each, NamedNode | BlankNode)]
            yield from self._graph.nodes(ontology, "declare")

    def _declaration(self, declaration: Node) -> tuple[str, str]:
        prefix, namespace = (
            self._graph.text(declaration, "prefix"),
            self._graph.only(declaration, "namespace"),
        )
        if prefix is None or not isinstance(namespace, Literal):
            raise self._graph.malformed(declaration, "declare", "needs one sh:prefix and one sh:namespace")
        try:
            read_query(f"PREFIX {prefix}: <{namespace.value}> ASK {{}}", None, self._limits)
        except QuerySyntaxError:
            raise self._graph.malformed(
                declaration, "declare", f"{prefix!r} and {namespace.value!r} are no prefix and namespace"
            ) from None
        return prefix, namespace.value


def _why_not_prebindable(query: Query, bound: set[str]) -> str | None:
    """What SHACL (appendix A) forbids, in words; bound are the variables that get their values before."""
    if query.service_hosts:
        return "must not use SERVICE"
    if searches_of(query):
        return "must not use a search"
    if query.values is not None:
        return "must not use VALUES"
    if query.dataset:
        return "must not use FROM"
    waiting: list[Any] = [query]
    while waiting:
        node = waiting.pop()
        match node:
            case MinusPattern():
                return "must not use MINUS"
            case InlineData():
                return "must not use VALUES"
            case SubSelect(values=values) if values is not None:
                return "must not use VALUES"
            case SubSelect() if missing := _not_projected(node, bound):
                return f"has a SELECT within it that does not project ?{missing}"
            case Bind(variable=variable) if variable.name in bound:
                return f"must not assign to ?{variable.name}"
            case Projection(variable=Variable(name=name), expression=given) if (
                given is not None and name in bound
            ):
                return f"must not assign to ?{name}"
            case GroupCondition(variable=Variable(name=name)) if name in bound:
                return f"must not assign to ?{name}"
        waiting.extend(parts_of(node))
    return None


def _triples_of(query: Query) -> Iterator[TriplePattern]:
    for node in nodes_below(query):
        if isinstance(node, TriplesBlock):
            yield from node.triples


def _with_predicate(node: Any, predicate: Any) -> Any:
    """A node of a tree, with a predicate in the place of $PATH, which is no variable then."""
    match node:
        case TriplesBlock(triples=triples):
            made = [
                replace(each, predicate=predicate) if each.predicate == _PATH else each for each in triples
            ]
            return replace(node, triples=tuple(made))
        case GroupGraphPattern(variables=variables) | SubSelect(variables=variables):
            return replace(node, variables=variables - {_PATH.name})
    return node


def _called(query: Query) -> Iterator[str]:
    """The IRIs of the functions that a query calls."""
    waiting: list[Any] = [query]
    while waiting:
        node = waiting.pop()
        if isinstance(node, FunctionCall):
            yield node.function.value
        waiting.extend(parts_of(node))


def _not_projected(select: SubSelect, bound: set[str]) -> str | None:
    """A variable that gets its value before, and does not get out; those that name shapes may be missing."""
    for name in sorted(bound - {CURRENT_SHAPE, SHAPES_GRAPH}):
        if name not in select.variables:
            return name
    return None
