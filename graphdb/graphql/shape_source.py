"""What SHACL shapes say of classes: the property shapes of the node shapes that target them.

Lenient: a property shape that GraphQL cannot show (a path of several steps, say) is passed over.
Source: the interface's table of RDF concepts; SHACL sections 2 and 4.
"""

from collections.abc import Iterator
from dataclasses import replace

from pyoxigraph import BlankNode, Literal, NamedNode

from graphdb.errors import MalformedShapes
from graphdb.graphql.model import Path
from graphdb.graphql.modelling import Drafts, FieldDraft, TypeDraft, TypeKey, with_field
from graphdb.graphql.ontology import description_of
from graphdb.shacl.shapes_graph import ShapesGraph
from graphdb.shacl.vocabulary import RDF, RDF_TYPE, Node, Term, sh

__all__ = ["read_shapes"]

_LANG_STRING = NamedNode(RDF + "langString")
_NESTED_MAX = 20  # of sh:node on node shapes: circles end
_RESOURCES = frozenset({sh("IRI"), sh("BlankNode"), sh("BlankNodeOrIRI")})


def read_shapes(graph: ShapesGraph) -> Drafts:
    """A type for every class that a node shape targets, and for each shape of no class that `sh:node` of a
    property shape refers to.
    """
    return _Reader(graph).drafts()


class _Reader:
    def __init__(self, graph: ShapesGraph) -> None:
        self._graph = graph
        self._found: dict[TypeKey, TypeDraft] = {}
        self._waiting: list[Node] = []  # shapes of no class that fields refer to

    def drafts(self) -> Drafts:
        for shape in self._node_shapes():
            for cls in self._classes(shape):
                self._add(cls, shape)
        while self._waiting:
            shape = self._waiting.pop()
            if shape not in self._found:
                self._add(shape, shape)
        return self._found

    def _node_shapes(self) -> list[Node]:
        with_properties = self._graph.subjects_with([sh("property"), sh("targetClass")])
        found = {*self._graph.subjects(RDF_TYPE, sh("NodeShape")), *with_properties}
        return sorted((one for one in found if not self._is_off(one)), key=str)

    def _classes(self, shape: Node) -> list[NamedNode]:
        """Those that it targets; itself where it is a class too (SHACL section 2.1.3.3)."""
        classes = [one for one in self._graph.objects(shape, sh("targetClass")) if isinstance(one, NamedNode)]
        if isinstance(shape, NamedNode) and self._graph.is_class(shape):
            classes.append(shape)
        return classes

    def _add(self, key: TypeKey, shape: Node) -> None:
        known = self._found.get(
            key, TypeDraft(key, is_class=key != shape or self._graph.is_class(shape), shape=shape)
        )
        description = known.description or description_of(self._graph, shape, sh("description"))
        draft = replace(known, description=description)
        self._found[key] = draft  # before the fields, which may refer to it
        for part in self._with_nodes(shape):
            for given in self._graph.objects(part, sh("property")):
                if isinstance(given, NamedNode | BlankNode) and not self._is_off(given):
                    field = self._field(given)
                    draft = draft if field is None else with_field(draft, field)
        self._found[key] = draft

    def _with_nodes(self, shape: Node) -> Iterator[Node]:
        """The shape and those that it includes by `sh:node`, the most general first: it has the last word."""
        found: list[Node] = []
        waiting = [shape]
        while waiting and len(found) < _NESTED_MAX:
            one = waiting.pop()
            if one not in found:
                found.append(one)
                waiting += [
                    node for node in self._objects(one, "node") if isinstance(node, NamedNode | BlankNode)
                ]
        return reversed(found)

    def _field(self, shape: Node) -> FieldDraft | None:
        path = self._path(shape)
        if path is None:
            return None
        datatypes = frozenset(one for one in self._objects(shape, "datatype") if isinstance(one, NamedNode))
        if not datatypes and (self._objects(shape, "languageIn") or self._objects(shape, "uniqueLang")):
            datatypes = frozenset({_LANG_STRING})
        kinds = set(self._objects(shape, "nodeKind"))
        return FieldDraft(
            path,
            name=self._name(shape),
            datatypes=datatypes,
            references=() if datatypes else tuple(self._references(shape)),
            values=self._values(shape),
            only_iris=bool(kinds) and kinds <= _RESOURCES,
            at_most_one=self._number(shape, "maxCount", 2) <= 1,
            at_least_one=self._number(shape, "minCount", 0) >= 1,
            description=description_of(self._graph, shape, sh("description")),
            order=self._number(shape, "order", 0) if self._objects(shape, "order") else None,
        )

    def _path(self, shape: Node) -> Path | None:
        for value in self._objects(shape, "path"):
            if isinstance(value, NamedNode):
                return Path(value.value)
            if isinstance(value, BlankNode):
                for inverse in self._objects(value, "inversePath"):
                    if isinstance(inverse, NamedNode):
                        return Path(inverse.value, inverse=True)
        return None

    def _references(self, shape: Node) -> Iterator[TypeKey]:
        for cls in self._objects(shape, "class"):
            if isinstance(cls, NamedNode):
                yield cls
        for node in self._objects(shape, "node"):
            if isinstance(node, NamedNode | BlankNode):
                classes = self._classes(node)
                yield from classes
                if not classes:
                    self._waiting.append(node)
                    yield node

    def _values(self, shape: Node) -> tuple[NamedNode | Literal, ...]:
        for head in self._objects(shape, "in"):
            try:
                members = self._graph.members(head, shape, "in")
            except MalformedShapes:
                return ()
            if all(isinstance(one, NamedNode | Literal) for one in members):
                return tuple(one for one in members if isinstance(one, NamedNode | Literal))
        return ()

    def _name(self, shape: Node) -> str | None:
        return description_of(self._graph, shape, sh("name"))

    def _number(self, shape: Node, name: str, default: float) -> float:
        for value in self._objects(shape, name):
            if isinstance(value, Literal):
                try:
                    return float(value.value)
                except ValueError:
                    return default
        return default

    def _objects(self, shape: Node, name: str) -> list[Term]:
        return self._graph.objects(shape, sh(name))

    def _is_off(self, shape: Node) -> bool:
        values = self._objects(shape, "deactivated")
        return any(isinstance(one, Literal) and one.value == "true" for one in values)
