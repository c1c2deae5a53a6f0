"""`ShapesGraph`: the triples of a shapes graph by subject and property, and words for what is wrong."""

import re
from collections.abc import Iterable, Iterator
from typing import TypeVar

from pyoxigraph import BlankNode, Literal, NamedNode, Triple

from graphdb.errors import MalformedShapes
from graphdb.shacl.shacl_names import (
    OWL,
    RDF,
    RDF_FIRST,
    RDF_NIL,
    RDF_REST,
    RDF_TYPE,
    RDFS,
    RDFS_CLASS,
    RDFS_SUBCLASS_OF,
    SH,
    XSD,
    Node,
    Term,
    sh,
)
from graphdb.store.stored_form import stored_term

__all__ = ["ShapesGraph", "short_name"]

_BOOLEAN = XSD + "boolean"
LIST_MEMBERS_MAX = 100_000
_LEVELS_MAX = 5  # of blank nodes that a message names
_PREFIXES = {SH: "sh", RDF: "rdf", RDFS: "rdfs", XSD: "xsd", OWL: "owl"}
_BARE = tuple(NamedNode(XSD + name) for name in ("integer", "decimal", "boolean"))
_BARE_TEXT = re.compile(r"[+-]?\d+(\.\d+)?|true|false")
_T = TypeVar("_T")


class ShapesGraph:
    """Read-only. Terms are in the form in which the store gives them back, but for truth values: SHACL has
    "true" and nothing else switch something on.
    """

    def __init__(self, triples: Iterable[Triple]) -> None:
        self._objects: dict[Node, dict[NamedNode, list[Term]]] = {}
        self._subjects: dict[Term, dict[NamedNode, list[Node]]] = {}
        for triple in dict.fromkeys(triples):
            subject, predicate, object_ = triple.subject, triple.predicate, triple.object
            if not (isinstance(object_, Literal) and object_.datatype.value == _BOOLEAN):
                object_ = stored_term(object_)
            if not isinstance(subject, Triple):
                self._objects.setdefault(subject, {}).setdefault(predicate, []).append(object_)
                self._subjects.setdefault(object_, {}).setdefault(predicate, []).append(subject)

    def objects(self, subject: Node, predicate: NamedNode) -> list[Term]:
        """In the order of the triples; each once."""
        return list(dict.fromkeys(self._objects.get(subject, {}).get(predicate, ())))

    def subjects(self, predicate: NamedNode, object_: Term) -> list[Node]:
        """In the order of the triples; each once."""
        return list(dict.fromkeys(self._subjects.get(object_, {}).get(predicate, ())))

    def subjects_with(self, predicates: Iterable[NamedNode]) -> Iterator[Node]:
        """The subjects that have one of these properties at least."""
        wanted = set(predicates)
        return (subject for subject, properties in self._objects.items() if not wanted.isdisjoint(properties))

    def predicates(self, subject: Node) -> Iterable[NamedNode]:
        """The properties that a subject has."""
        return self._objects.get(subject, {}).keys()

    def instances(self, cls: NamedNode) -> list[Node]:
        """The instances of a class and of its subclasses, as the shapes graph says."""
        return list(
            dict.fromkeys(
                node for subclass in self._with_subclasses(cls) for node in self.subjects(RDF_TYPE, subclass)
            )
        )

    def is_class(self, node: Node) -> bool:
        """Whether it is an instance of rdfs:Class; owl:Class is taken for a subclass of that."""
        classes = self._with_subclasses(RDFS_CLASS) | self._with_subclasses(NamedNode(OWL + "Class"))
        return not classes.isdisjoint(self.objects(node, RDF_TYPE))

    def _with_subclasses(self, cls: NamedNode) -> set[Node]:
        found: set[Node] = set()
        waiting: list[Node] = [cls]
        while waiting:
            node = waiting.pop()
            if node not in found:
                found.add(node)
                waiting += self.subjects(RDFS_SUBCLASS_OF, node)
        return found

    # One value of a property, checked. Each raises MalformedShapes.

    def only(self, subject: Node, name: str) -> Term | None:
        """The value of a property of SHACL that may have one at most."""
        values = self.objects(subject, sh(name))
        if len(values) > 1:
            raise self.malformed(subject, name, f"has {len(values)} values, at most one is allowed")
        return values[0] if values else None

    def boolean(self, subject: Node, name: str) -> bool:
        """Whether the value is "true"; False where there is none."""
        value = self.only(subject, name)
        if value is None:
            return False
        if (
            isinstance(value, Literal)
            and value.datatype.value == _BOOLEAN
            and value.value in ("true", "false", "1", "0")
        ):
            return value.value == "true"
        raise self.malformed(subject, name, f"must be true or false, not {short_name(value)}")

    def count(self, subject: Node, name: str) -> int | None:
        """A number that is not negative."""
        value = self.only(subject, name)
        if value is None:
            return None
        if isinstance(value, Literal) and value.datatype.value == XSD + "integer" and value.value.isdecimal():
            return int(value.value)
        raise self.malformed(subject, name, f"must be an integer from 0 on, not {short_name(value)}")

    def strings(self, subject: Node, name: str) -> tuple[Literal, ...]:
        """Texts, with or without a language."""
        literals = [
            self.expect(value, Literal, subject, name, "a string")
            for value in self.objects(subject, sh(name))
        ]
        for literal in literals:
            if literal.language is None and literal.datatype.value != XSD + "string":
                raise self.malformed(subject, name, f"must be a string, not {short_name(literal)}")
        return tuple(literals)

    def text(self, subject: Node, name: str) -> str | None:
        """One plain string."""
        value = self.only(subject, name)
        return None if value is None else self.as_text(value, subject, name, "a string")

    def iris(self, subject: Node, name: str) -> tuple[NamedNode, ...]:
        values = self.objects(subject, sh(name))
        return tuple(self.expect(value, NamedNode, subject, name, "an IRI") for value in values)

    def nodes(self, subject: Node, name: str) -> tuple[Node, ...]:
        """IRIs and blank nodes."""
        return tuple(self.node(value, subject, name) for value in self.objects(subject, sh(name)))

    def node(self, value: Term, subject: Node, name: str) -> Node:
        """The value as something that may have properties."""
        if isinstance(value, NamedNode | BlankNode):
            return value
        raise self.malformed(subject, name, f"must be an IRI or a blank node, not {short_name(value)}")

    def expect(self, value: Term, kind: type[_T], subject: Node, name: str, words: str) -> _T:
        """The value as one of this class."""
        if not isinstance(value, kind):
            raise self.malformed(subject, name, f"must be {words}, not {short_name(value)}")
        return value

    def as_text(self, value: Term, subject: Node, name: str, words: str) -> str:
        """The value as a plain string."""
        literal = self.expect(value, Literal, subject, name, words)
        if literal.datatype.value != XSD + "string":
            raise self.malformed(subject, name, f"must be {words}, not {short_name(value)}")
        return literal.value

    def members(self, head: Term, subject: Node, name: str) -> list[Term]:
        """The members of a list, which is a value of the property."""
        found: list[Term] = []
        seen: set[Term] = set()
        while head != RDF_NIL:
            if not isinstance(head, NamedNode | BlankNode):
                raise self.malformed(subject, name, f"must be a list, which {short_name(head)} is not")
            firsts, rests = self.objects(head, RDF_FIRST), self.objects(head, RDF_REST)
            if len(firsts) != 1 or len(rests) != 1:
                problem = "a node of it has not one rdf:first and one rdf:rest"
                raise self.malformed(subject, name, f"must be a well-formed list: {problem}")
            if head in seen:
                raise self.malformed(subject, name, "must be a list that ends, and this one is a circle")
            seen.add(head)
            found.append(firsts[0])
            head = rests[0]
            if len(found) > LIST_MEMBERS_MAX:
                raise self.malformed(subject, name, f"has more than {LIST_MEMBERS_MAX} members")
        return found

    # Words for what is wrong.

    def malformed(self, subject: Node, name: str, reason: str) -> MalformedShapes:
        """name is a local name of SHACL, or ""."""
        return MalformedShapes(self.place(subject), f"sh:{name}" if name else "", reason)

    def place(self, node: Node) -> str:
        """The node in words; one without a name as what it is to the next one that has a name."""
        words: list[str] = []
        for _ in range(_LEVELS_MAX):
            path = self.objects(node, sh("path")) if isinstance(node, BlankNode) else []
            words.append(short_name(node) + (f" (path {short_name(path[0])})" if path else ""))
            above = self._above(node)
            if isinstance(node, NamedNode) or above is None:
                break
            predicate, node = above
            words[-1] += f", {short_name(predicate)} of "
        return "".join(words).removesuffix(" of ")

    def _above(self, node: Node) -> tuple[NamedNode, Node] | None:
        """Whose value the node is, seeing through lists."""
        seen = set()
        while node not in seen:
            seen.add(node)
            found = next(iter(self._subjects.get(node, {}).items()), None)
            if found is None:
                return None
            predicate, (subject, *_) = found
            if predicate not in (RDF_FIRST, RDF_REST):
                return predicate, subject
            node = subject
        return None


def short_name(term: Term) -> str:
    """A term for people: as Turtle writes it, with the usual prefix where it has one, cut short where it is
    long.
    """
    match term:
        case NamedNode():
            for namespace, prefix in _PREFIXES.items():
                if term.value.startswith(namespace):
                    return f"{prefix}:{term.value.removeprefix(namespace)}"
            text = str(term)
        case Literal(datatype=datatype) if datatype in _BARE and _BARE_TEXT.fullmatch(term.value):
            text = term.value
        case Literal(language=None, datatype=datatype) if datatype.value != XSD + "string":
            text = f"{Literal(term.value)}^^{short_name(datatype)}"
        case _:
            text = str(term)
    return text if len(text) <= 200 else text[:200] + "..."
