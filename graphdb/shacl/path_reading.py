"""sh:path as the shapes graph writes it, to a `Path` (SHACL section 2.3.1)."""

from pyoxigraph import NamedNode

from graphdb.config.limits import GateLimits
from graphdb.errors import LimitExceeded
from graphdb.shacl.paths import (
    AlternativePath,
    InversePath,
    Path,
    PredicatePath,
    RepeatedPath,
    SequencePath,
    path_text,
)
from graphdb.shacl.shapes_graph import ShapesGraph, short_name
from graphdb.shacl.vocabulary import RDF_FIRST, RDF_NIL, RDF_REST, Node, Term, sh
from graphdb.sparql.gate import check, read_query

__all__ = ["parse_path", "read_path"]

_DEPTH_MAX = 40  # the gate allows less; this one keeps us from recursing before it is asked
_SIGNS = {"zeroOrMorePath": "*", "oneOrMorePath": "+", "zeroOrOnePath": "?"}


def read_path(graph: ShapesGraph, shape: Node, limits: GateLimits) -> tuple[Path, Node] | None:
    """The path of a property shape and its node; None for a shape without sh:path. Raises MalformedShapes."""
    value = graph.only(shape, "path")
    if value is None:
        return None
    path = _Reader(graph, shape).path(value, ())
    if isinstance(value, NamedNode):
        return path, value
    text = f"ASK {{ ?s {path_text(path)} ?o }}"
    try:
        check(read_query(text, None, limits), limits)
    except LimitExceeded as error:
        raise graph.malformed(shape, "path", f"is too complex: {error}") from None
    return path, graph.node(value, shape, "path")


def parse_path(graph: ShapesGraph, shape: Node, value: Term) -> Path:
    """A path that is not for the engine. Raises MalformedShapes."""
    return _Reader(graph, shape).path(value, ())


class _Reader:
    def __init__(self, graph: ShapesGraph, shape: Node) -> None:
        self._graph, self._shape = graph, shape

    def path(self, value: Term, above: tuple[Node, ...]) -> Path:
        """above are the blank nodes that this one stands in."""
        if value == RDF_NIL:
            raise self._malformed("a sequence must have two members or more")
        if isinstance(value, NamedNode):
            return PredicatePath(value)
        node = self._graph.node(value, self._shape, "path")
        if node in above:
            raise self._malformed("leads back to itself")
        if len(above) >= _DEPTH_MAX:
            raise self._malformed(f"is nested more than {_DEPTH_MAX} levels deep")
        return self._complex(node, (*above, node))

    def _complex(self, node: Node, above: tuple[Node, ...]) -> Path:
        kind, value = self._kind(node)
        if kind == "sequence":
            return SequencePath(self._members(node, above, "a sequence"))
        if kind == "alternativePath":
            return AlternativePath(self._members(value, above, "sh:alternativePath"))
        inner = self.path(value, above)
        return InversePath(inner) if kind == "inversePath" else RepeatedPath(inner, _SIGNS[kind])

    def _kind(self, node: Node) -> tuple[str, Term]:
        """Which kind of path a node is, as the local name of its one property, and that property's value."""
        if self._graph.objects(node, RDF_FIRST) or self._graph.objects(node, RDF_REST):
            return "sequence", node  # whatever else it is: the suite has it so
        found: list[tuple[str, Term]] = [
            (name, value)
            for name in ("inversePath", "alternativePath", *_SIGNS)
            for value in self._graph.objects(node, sh(name))
        ]
        if len(found) != 1:
            problem = "more than one path" if found else "no path"
            raise self._malformed(f"{short_name(node)} is {problem}")
        return found[0]

    def _members(self, head: Term, above: tuple[Node, ...], what: str) -> tuple[Path, ...]:
        members = self._graph.members(head, self._shape, "path")
        if len(members) < 2:
            raise self._malformed(f"{what} must have two members or more")
        return tuple(self.path(member, above) for member in members)

    def _malformed(self, reason: str) -> Exception:
        return self._graph.malformed(self._shape, "path", reason)
