"""SHACL node shapes as trees: which resources are documents, and which values are their members."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from graphdb.search.errors import SearchError, illegal_argument
from graphdb.search.extension.template import iri_of
from graphdb.search.following.document_values import document_id, local_name
from graphdb.search.following.shape import Row, Term

__all__ = ["RDF_FIRST", "RDF_REST", "SHACL", "Member", "NodeTree", "ShapesGraph", "Step"]

SHACL = "http://www.w3.org/ns/shacl#"
_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDF_FIRST, RDF_REST, _RDF_NIL = f"{_RDF}first", f"{_RDF}rest", f"{_RDF}nil"
_XSD = "http://www.w3.org/2001/XMLSchema#"
_DEPTH_MAX = 4  # of sh:node, so that shapes that need each other end
_MEMBERS_MAX = 1_000  # of a tree
_STEPS_MAX = 20

_INTEGERS = """integer int long short byte nonNegativeInteger positiveInteger unsignedInt unsignedLong"""
_TEXT = {"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": 256}}}
_FIELD_TYPES: Mapping[str, Mapping[str, Any]] = {
    **{f"{_XSD}{name}": {"type": "long"} for name in _INTEGERS.split()},
    **{f"{_XSD}{name}": {"type": "double"} for name in ("decimal", "double", "float")},
    f"{_XSD}boolean": {"type": "boolean"},
    f"{_XSD}date": {"type": "date"},
    f"{_XSD}dateTime": {"type": "date"},
    f"{_XSD}string": _TEXT,
    f"{_RDF}langString": _TEXT,
}


@dataclass(frozen=True, slots=True)
class Step:
    """From a node to another one along a predicate, or against it."""

    predicate: str
    inverse: bool = False

    def __str__(self) -> str:
        return f"{'^' if self.inverse else ''}<{self.predicate}>"


@dataclass(frozen=True, slots=True)
class Member:
    """A property shape. below: what an object in its place has; field_type: None is as the values come."""

    name: str
    path: tuple[Step, ...]
    below: "tuple[Member, ...] | None" = None
    field_type: Mapping[str, Any] | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class NodeTree:
    """A node shape."""

    classes: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    subjects_of: tuple[str, ...] = ()
    objects_of: tuple[str, ...] = ()
    members: tuple[Member, ...] = ()

    def properties(self) -> dict[str, Any]:
        """Of a mapping."""
        return {"id": {"type": "keyword"}, **_properties(self.members)}


def _properties(members: Iterable[Member]) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    for member in members:
        if member.below is not None:
            shown[member.name] = {"properties": {"id": {"type": "keyword"}, **_properties(member.below)}}
        elif member.field_type is not None:
            shown[member.name] = dict(member.field_type)
    return shown


@dataclass(slots=True)
class ShapesGraph:
    """The triples of shapes."""

    triples: dict[str, dict[str, list[Term]]] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: Iterable[Row]) -> "ShapesGraph":
        """Rows of ?s ?p ?o; double ones do not matter."""
        graph = cls()
        for row in rows:
            subject = document_id(row["s"])
            if subject is not None:
                terms = graph.triples.setdefault(subject, {}).setdefault(row["p"]["value"], [])
                if row["o"] not in terms:
                    terms.append(row["o"])
        return graph

    def node_shapes(self) -> list[str]:
        """Those that have targets."""
        return sorted(shape for shape in self.triples if any(self._iris(shape, name) for name in _TARGETS))

    def tree(self, shape: str) -> NodeTree:
        """Errors: illegal_argument_exception."""
        if shape not in self.triples:
            raise illegal_argument(f"there is no SHACL shape [{shape[:500]}]")
        targets = [self._iris(shape, name) for name in _TARGETS]
        if not any(targets):
            raise illegal_argument(f"the SHACL shape [{shape[:500]}] has no target that names documents")
        members = self._members(shape, _DEPTH_MAX)
        if _count(members) > _MEMBERS_MAX:
            raise illegal_argument(
                f"the SHACL shape [{shape[:500]}] has more than [{_MEMBERS_MAX}] properties"
            )
        classes, nodes, subjects_of, objects_of = targets
        return NodeTree(classes, nodes, subjects_of, objects_of, members)

    def _iris(self, subject: str, name: str) -> tuple[str, ...]:
        terms = self.triples.get(subject, {}).get(f"{SHACL}{name}", [])
        iris = {term["value"] for term in terms if term["type"] == "uri"}
        return tuple(sorted(iri for iri in iris if iri_of(iri) is not None))

    def _members(self, shape: str, depth: int) -> tuple[Member, ...]:
        """By name; of several with one name the paths are read, one after the other."""
        found: list[Member] = []
        for term in self._terms(shape, "property"):
            member = self._member(document_id(term) or "", depth)
            if member is not None:
                found.append(member)
        return tuple(sorted(found, key=lambda member: (member.name, str(member.path))))

    def _member(self, property_shape: str, depth: int) -> Member | None:
        if self._is_off(property_shape):
            return None
        paths = self._terms(property_shape, "path")
        if len(paths) != 1:
            raise illegal_argument(
                f"the SHACL property shape [{property_shape[:500]}] must have one [sh:path]"
            )
        path = tuple(self._steps(paths[0]))
        name = self._name(property_shape) or local_name(path[-1].predicate)
        nodes = self._terms(property_shape, "node")
        below: tuple[Member, ...] | None = None
        if nodes and depth > 0:
            below = tuple(
                member for node in nodes for member in self._members(document_id(node) or "", depth - 1)
            )
        return Member(name, path, below, self._field_type(property_shape))

    def _is_off(self, shape: str) -> bool:
        return any(term["value"] in ("true", "1") for term in self._terms(shape, "deactivated"))

    def _name(self, property_shape: str) -> str | None:
        """sh:name; the untagged one first, then by language."""
        names = sorted(
            (term.get("xml:lang", ""), term["value"]) for term in self._terms(property_shape, "name")
        )
        name = names[0][1].strip().replace(".", "_") if names else ""
        return name or None

    def _field_type(self, property_shape: str) -> Mapping[str, Any] | None:
        datatypes = [term["value"] for term in self._terms(property_shape, "datatype")]
        kinds = [term["value"] for term in self._terms(property_shape, "nodeKind")]
        if datatypes:
            return _FIELD_TYPES.get(datatypes[0], {"type": "keyword"})
        is_resource = f"{SHACL}IRI" in kinds or self._terms(property_shape, "class")
        return {"type": "keyword"} if is_resource else None

    def _terms(self, subject: str, name: str) -> list[Term]:
        return self.triples.get(subject, {}).get(f"{SHACL}{name}", [])

    def _steps(self, path: Term, inverse: bool = False) -> Iterator[Step]:
        """Of an IRI, an inverse or a sequence of these."""
        if path["type"] == "uri":
            if iri_of(path["value"]) is None:
                raise illegal_argument(f"[{path['value'][:500]}] cannot be a path")
            yield Step(path["value"], inverse)
            return
        node = document_id(path) or ""
        inverted = self._terms(node, "inversePath")
        items = inverted or list(self._items(node))
        for item in reversed(items) if inverse else items:
            if item["type"] != "uri" and not self._terms(document_id(item) or "", "inversePath"):
                raise _path_too_complex()
            yield from self._steps(item, inverse != bool(inverted))

    def _items(self, node: str) -> Iterator[Term]:
        """Of a list; at least two, or it is no sequence."""
        count = 0
        while node != _RDF_NIL:
            properties = self.triples.get(node, {})
            firsts, rests = properties.get(RDF_FIRST, []), properties.get(RDF_REST, [])
            count += 1
            if len(firsts) != 1 or len(rests) != 1 or count > _STEPS_MAX:
                raise _path_too_complex()
            yield firsts[0]
            node = document_id(rests[0]) or _RDF_NIL


_TARGETS = ("targetClass", "targetNode", "targetSubjectsOf", "targetObjectsOf")


def _count(members: Iterable[Member]) -> int:
    return sum(1 + _count(member.below or ()) for member in members)


def _path_too_complex() -> SearchError:
    return illegal_argument("[sh:path] of an index can be a property, an inverse one, or a sequence of these")
