"""Property paths of shapes: as SPARQL, read from the shapes graph, and walked over data."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from pyoxigraph import NamedNode, Quad

from graphdb.config.limits import GateLimits
from graphdb.errors import LimitExceeded
from graphdb.model import GraphName
from graphdb.planning.gate import check, read_query
from graphdb.shacl.data_graph import DataGraphName, graph_of_quads
from graphdb.shacl.shacl_names import RDF_FIRST, RDF_NIL, RDF_REST, Node, Term, sh
from graphdb.shacl.shapes_graph import ShapesGraph, short_name
from graphdb.store.view import Subject

__all__ = [
    "AlternativePath",
    "InversePath",
    "Path",
    "PathWalk",
    "PredicatePath",
    "QuadSource",
    "RepeatedPath",
    "SequencePath",
    "TooMuch",
    "parse_path",
    "path_text",
    "predicates_of",
    "read_path",
    "step_between",
    "step_from",
    "step_to",
]

# Property paths (SHACL section 2.3.1): the tree, and its words in SPARQL.


@dataclass(frozen=True, slots=True)
class PredicatePath:
    """One property, from subject to object."""

    predicate: NamedNode


@dataclass(frozen=True, slots=True)
class InversePath:
    path: "Path"


@dataclass(frozen=True, slots=True)
class SequencePath:
    """Two steps or more."""

    steps: tuple["Path", ...]


@dataclass(frozen=True, slots=True)
class AlternativePath:
    """Two paths or more."""

    paths: tuple["Path", ...]


@dataclass(frozen=True, slots=True)
class RepeatedPath:
    """sign is "*", "+" or "?", as in SPARQL."""

    path: "Path"
    sign: str


Path: TypeAlias = PredicatePath | InversePath | SequencePath | AlternativePath | RepeatedPath


def path_text(path: Path) -> str:
    """The path as SPARQL writes it, in brackets where it may stand within another."""
    match path:
        case PredicatePath():
            return str(path.predicate)
        case InversePath():
            inner = path_text(path.path)
            return f"^({inner})" if inner[0] == "^" else "^" + inner
        case SequencePath():
            return f"({'/'.join(map(path_text, path.steps))})"
        case AlternativePath():
            return f"({'|'.join(map(path_text, path.paths))})"
        case RepeatedPath():
            inner = path_text(path.path)
            return f"({inner}){path.sign}" if inner[0] == "^" or inner[-1] in "*+?" else inner + path.sign


def predicates_of(path: Path) -> Iterator[NamedNode]:
    """Every property that the path names, repeated as they are."""
    match path:
        case PredicatePath():
            yield path.predicate
        case InversePath() | RepeatedPath():
            yield from predicates_of(path.path)
        case SequencePath():
            for step in path.steps:
                yield from predicates_of(step)
        case AlternativePath():
            for branch in path.paths:
                yield from predicates_of(branch)


def is_nullable(path: Path) -> bool:
    """Whether a path leads from every node to itself, in the graph or not."""
    match path:
        case PredicatePath():
            return False
        case InversePath():
            return is_nullable(path.path)
        case SequencePath():
            return all(map(is_nullable, path.steps))
        case AlternativePath():
            return any(map(is_nullable, path.paths))
        case RepeatedPath():
            return path.sign != "+" or is_nullable(path.path)


# Paths as patterns of SPARQL, for what is bound on either side.
#
# A path of length zero leads from a node to itself even where the graph does not hold it (SPARQL 1.1,
# section 18.4); the engine finds it only where it does. So it is written out.


def step_from(path: Path, start: str, end: str) -> str:
    """Where start is bound and the variable end is not."""
    return _step(path, start, end, f"BIND({start} AS {end})")


def step_to(path: Path, start: str, end: str) -> str:
    """Where end is bound and the variable start is not."""
    return _step(path, start, end, f"BIND({end} AS {start})")


def step_between(path: Path, start: str, end: str) -> str:
    """Where both are bound; end may be a constant."""
    return _step(path, start, end, f"FILTER(sameTerm({start}, {end}))")


def _step(path: Path, start: str, end: str, none: str) -> str:
    step = f"{start} {path_text(path)} {end}"
    return f"{{ {step} }} UNION {{ {none} }}" if is_nullable(path) else step


# sh:path as the shapes graph writes it, to a `Path` (SHACL section 2.3.1).

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


# `PathWalk`: following property paths quad by quad, either way, within bounds.


class QuadSource(Protocol):
    """What `graphdb.store.view.StoreView` offers of it."""

    def quads_matching(
        self,
        subject: Subject | None,
        predicate: NamedNode | None,
        object_: Term | None,
        graph: GraphName | None,
    ) -> Iterator[Quad]:
        """The quads with these terms, None standing for any."""


class TooMuch(Exception):
    """More is needed than whoever asked wants to look at."""


class PathWalk:
    """Collects the quads that it meets, each once."""

    def __init__(
        self,
        source: QuadSource,
        graph: DataGraphName,
        *,
        lookups_max: int | None = None,
        quads_max: int | None = None,
    ) -> None:
        """Past one of the bounds, where they are given, the methods raise TooMuch."""
        self._source, self._graph = source, graph_of_quads(graph)
        self._lookups_left, self._quads_max = lookups_max, quads_max
        self.quads: dict[Quad, None] = {}

    def along(self, path: Path, nodes: Iterable[Term], *, inverse: bool = False) -> set[Term]:
        """The nodes at the other end of a path."""
        start = set(nodes)
        match path:
            case PredicatePath():
                return self.step(path.predicate, start, inverse=inverse)
            case InversePath():
                return self.along(path.path, start, inverse=not inverse)
            case SequencePath():
                for each in reversed(path.steps) if inverse else path.steps:
                    start = self.along(each, start, inverse=inverse)
                return start
            case AlternativePath():
                return set().union(*(self.along(each, start, inverse=inverse) for each in path.paths))
            case RepeatedPath():
                return self._repeated(path, start, inverse)

    def step(self, predicate: NamedNode | None, nodes: Iterable[Term], *, inverse: bool = False) -> set[Term]:
        """The objects of the nodes, or with inverse their subjects; None stands for any predicate."""
        found: set[Term] = set()
        for node in nodes:
            for quad in self._matching(node, predicate, inverse):
                self.quads[quad] = None
                found.add(quad.subject if inverse else quad.object)
        return found

    def _repeated(self, path: RepeatedPath, nodes: set[Term], inverse: bool) -> set[Term]:
        found = set() if path.sign == "+" else set(nodes)
        new = self.along(path.path, nodes, inverse=inverse)
        while path.sign != "?" and not new <= found:
            new -= found
            found |= new
            new = self.along(path.path, new, inverse=inverse)
        return found | new

    def _matching(self, node: Term, predicate: NamedNode | None, inverse: bool) -> Iterator[Quad]:
        if self._lookups_left is not None:
            self._lookups_left -= 1
            if self._lookups_left < 0:
                raise TooMuch
        if inverse:
            quads = self._source.quads_matching(None, predicate, node, self._graph)
        elif isinstance(node, Node):
            quads = self._source.quads_matching(node, predicate, None, self._graph)
        else:
            return
        for quad in quads:
            if self._quads_max is not None and len(self.quads) >= self._quads_max:
                raise TooMuch
            yield quad
