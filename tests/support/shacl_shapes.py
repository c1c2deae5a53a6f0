"""Random SHACL shapes, as Turtle and as quads, and the documents that they mean, found the simple way."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st
from pyoxigraph import BlankNode, Literal, NamedNode, Quad, RdfFormat, parse

from graphdb.search.following.document_values import merged, value_of
from tests.support.followed_graphs import EX, RDF_TYPE, SUBCLASS

__all__ = ["Property", "Shapes", "Step", "Targets", "documents_of", "shape_quads", "shapes", "turtle_of"]

DEPTH = 4  # of sh:node, as the docs promise
_TERMS: Mapping[str, NamedNode] = {
    name: NamedNode(EX + name) for name in ("part", "made", "name", "Work", "Painting", "a", "b")
}
_LINKS, _CLASSES, _NODES = ("part", "made"), ("Work", "Painting"), ("a", "b")


@dataclass(frozen=True)
class Step:
    predicate: str  # local name
    inverse: bool = False


@dataclass(frozen=True)
class Property:
    """node: the number of a node shape."""

    path: tuple[Step, ...]
    name: str | None = None
    node: int | None = None
    is_off: bool = False


@dataclass(frozen=True)
class Targets:
    """Local names."""

    classes: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    subjects_of: tuple[str, ...] = ()
    objects_of: tuple[str, ...] = ()


@dataclass(frozen=True)
class Shapes:
    """Node shapes by number; the first one has the targets."""

    targets: Targets
    properties: tuple[tuple[Property, ...], ...]


_steps = st.builds(Step, st.sampled_from((*_LINKS, *_LINKS, "name")), st.booleans())
_paths = st.lists(_steps, min_size=1, max_size=3).map(tuple)
_names = st.sampled_from([None, None, "one", "two"])


def _some(names: Sequence[str]) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(st.sampled_from(names), max_size=len(names), unique=True).map(tuple)


_targets = st.builds(Targets, _some(_CLASSES), _some(_NODES), _some(_LINKS), _some(_LINKS)).filter(
    lambda targets: targets != Targets()
)


def _properties(shape_count: int) -> st.SearchStrategy[Property]:
    nodes = st.sampled_from([None, *range(shape_count)])
    return st.builds(Property, _paths, _names, nodes, st.sampled_from([False] * 7 + [True]))


def _shapes_of(count: int) -> st.SearchStrategy[Shapes]:
    one = st.lists(_properties(count), min_size=1, max_size=3 if count == 1 else 2).map(tuple)
    return st.builds(Shapes, _targets, st.tuples(*[one] * count))


shapes = st.integers(1, 3).flatmap(_shapes_of)
"""They may need each other, and themselves."""


# as they are written


def turtle_of(found: Shapes) -> str:
    """The node shapes are `:S0`, `:S1` and so on."""
    text = [f"@prefix sh: <http://www.w3.org/ns/shacl#> . @prefix : <{EX}> ."]
    targets = found.targets
    for kind, names in (
        ("targetClass", targets.classes),
        ("targetNode", targets.nodes),
        ("targetSubjectsOf", targets.subjects_of),
        ("targetObjectsOf", targets.objects_of),
    ):
        text += [f":S0 sh:{kind} :{name} ." for name in names]
    for number, properties in enumerate(found.properties):
        text += [f":S{number} sh:property {_property(one)} ." for one in properties]
    return "\n".join(text)


def shape_quads(found: Shapes) -> list[Quad]:
    """Labels of blank nodes are unlike those of random graphs."""
    return list(parse(turtle_of(found).encode(), RdfFormat.TURTLE))


def _property(one: Property) -> str:
    parts = [f"sh:path {_path(one.path)}"]
    parts += [f'sh:name "{one.name}"'] if one.name else []
    parts += [f"sh:node :S{one.node}"] if one.node is not None else []
    parts += ["sh:deactivated true"] if one.is_off else []
    return f"[ {' ; '.join(parts)} ]"


def _path(path: Sequence[Step]) -> str:
    steps = [
        f"[ sh:inversePath :{step.predicate} ]" if step.inverse else f":{step.predicate}" for step in path
    ]
    return steps[0] if len(steps) == 1 else f"( {' '.join(steps)} )"


# what they mean


def documents_of(found: Shapes, quads: Iterable[Quad]) -> dict[str, Any]:
    """By id, as the page of documentation says it: each target, each property, each value, one by one."""
    graph = {(quad.subject, quad.predicate, quad.object) for quad in quads}
    return {
        _id_of(node): {"id": _id_of(node), **_members(found, 0, node, graph, DEPTH)}
        for node in _target_nodes(found.targets, graph)
    }


_Graph = set[tuple[Any, NamedNode, Any]]


def _target_nodes(targets: Targets, graph: _Graph) -> set[Any]:
    wanted_classes = {_TERMS[name] for name in targets.classes}
    nodes = {s for s, p, o in graph if p == RDF_TYPE and wanted_classes & _superclasses(o, graph)}
    nodes |= {s for s, _, _ in graph if s in {_TERMS[name] for name in targets.nodes}}
    nodes |= {s for s, p, _ in graph if p in {_TERMS[name] for name in targets.subjects_of}}
    nodes |= {
        o
        for _, p, o in graph
        if p in {_TERMS[name] for name in targets.objects_of} and not isinstance(o, Literal)
    }
    return nodes


def _superclasses(one: Any, graph: _Graph) -> set[Any]:
    """It too."""
    found, pending = {one}, [one]
    while pending:
        node = pending.pop()
        above = {o for s, p, o in graph if s == node and p == SUBCLASS} - found
        found |= above
        pending += above
    return found


def _members(found: Shapes, shape: int, node: Any, graph: _Graph, depth: int) -> dict[str, Any]:
    gathered: dict[str, list[Any]] = {}
    for one in found.properties[shape]:
        if one.is_off:
            continue
        name = one.name or one.path[-1].predicate
        for value in _values(one.path, node, graph):
            shown = _shown(found, one, value, graph, depth)
            gathered.setdefault(name, []).append(shown)
            if isinstance(value, Literal) and value.language:
                gathered.setdefault(f"{name}@{value.language}", []).append(shown)
    return {name: merged(values) for name, values in gathered.items()}


def _shown(found: Shapes, one: Property, value: Any, graph: _Graph, depth: int) -> Any:
    if one.node is None or depth == 0 or isinstance(value, Literal):
        return value_of(_term(value))
    named = {"id": value.value} if isinstance(value, NamedNode) else {}
    return {**named, **_members(found, one.node, value, graph, depth - 1)}


def _values(path: Sequence[Step], node: Any, graph: _Graph) -> set[Any]:
    nodes = {node}
    for step in path:
        nodes = {end for start in nodes for end in _ends(step, start, graph)}
    return nodes


def _ends(step: Step, start: Any, graph: _Graph) -> Iterator[Any]:
    for subject, predicate, value in graph:
        if predicate == _TERMS[step.predicate]:
            if step.inverse and value == start:
                yield subject
            elif not step.inverse and subject == start:
                yield value


def _id_of(node: Any) -> str:
    return f"_:{node.value}" if isinstance(node, BlankNode) else str(node.value)


def _term(node: Any) -> dict[str, Any]:
    if isinstance(node, NamedNode):
        return {"type": "uri", "value": node.value}
    if isinstance(node, BlankNode):
        return {"type": "bnode", "value": node.value}
    return {"type": "literal", "value": node.value, "datatype": node.datatype.value}
