"""Where focus nodes come from, as patterns of SPARQL: the targets of a shape, a list, the values of others.

A source is asked for in two ways: for all of its nodes, or whether a node that is bound already is one of
them. LATERAL, by which the engine evaluates a pattern for each solution before it, keeps it from planning the
second as if nothing were bound.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from pyoxigraph import NamedNode

from graphdb.shacl.engine_terms import EngineFunctions, term_text
from graphdb.shacl.paths import Path, step_from, step_to
from graphdb.shacl.shacl_names import RDF_TYPE, RDFS_SUBCLASS_OF, Node, Term
from graphdb.shacl.shape_tree import ClassTarget, NodeTarget, ObjectsTarget, SubjectsTarget

__all__ = ["ListSource", "PatternTarget", "Source", "TargetSource", "ValuesSource"]

PatternTarget: TypeAlias = NodeTarget | ClassTarget | SubjectsTarget | ObjectsTarget


class Source(Protocol):
    """A set of nodes. Equal sources are the same set, whatever the data. Variables are written with their
    mark.
    """

    def enumerated(self, variable: str) -> str:
        """A pattern whose solutions bind the variable to each of the nodes, once."""

    def tested(self, variable: str) -> str:
        """A pattern to put behind one that binds the variable: it keeps the solutions that have a node of
        this set, each as often as it was.
        """


@dataclass(frozen=True, slots=True)
class TargetSource:
    """The focus nodes of targets; subclassed are the classes among these that have subclasses in the data.

    is_union: in this graph a triple may be met twice.
    """

    targets: tuple[PatternTarget, ...]
    subclassed: frozenset[Node]
    is_union: bool

    def enumerated(self, variable: str) -> str:
        if self._is_of_one_class() and not self.is_union:
            return f"{{ {self.pattern(variable)} }}"
        return f"{{ SELECT DISTINCT {variable} {{ {self.pattern(variable)} }} }}"

    def tested(self, variable: str) -> str:
        nodes = f"FILTER({_is_one_of(self._nodes(), variable)})"
        return f"LATERAL {{ SELECT {variable} {{ {self._either(nodes, variable)} }} LIMIT 1 }}"

    def pattern(self, variable: str) -> str:
        """What binds the variable to the nodes, perhaps more than once to the same."""
        nodes = f"VALUES {variable} {{ {' '.join(map(term_text, self._nodes()))} }}"
        return self._either(nodes, variable)

    def _is_of_one_class(self) -> bool:
        """Then no instance is met twice."""
        match self.targets:
            case (ClassTarget(cls=cls),):
                return cls not in self.subclassed
            case _:
                return False

    def _nodes(self) -> list[Term]:
        return [target.node for target in self.targets if isinstance(target, NodeTarget)]

    def _either(self, nodes: str, variable: str) -> str:
        """A pattern for those that are named, if there are any, or one of the others."""
        branches = [nodes] if self._nodes() else []
        branches += [
            self._branch(each, variable) for each in self.targets if not isinstance(each, NodeTarget)
        ]
        return branches[0] if len(branches) == 1 else " UNION ".join(f"{{ {each} }}" for each in branches)

    def _branch(self, target: ClassTarget | SubjectsTarget | ObjectsTarget, variable: str) -> str:
        match target:
            case ClassTarget() if target.cls in self.subclassed:
                return f"{variable} {RDF_TYPE}/{RDFS_SUBCLASS_OF}* {target.cls}"
            case ClassTarget():
                return f"{variable} {RDF_TYPE} {target.cls}"
            case SubjectsTarget():
                return f"{variable} {target.predicate} ?any"
            case ObjectsTarget():
                return f"?any {target.predicate} {variable}"


def _is_one_of(nodes: Iterable[Term], variable: str) -> str:
    """An expression; behind LATERAL there may be no VALUES for a variable that is bound before."""
    iris = [term_text(node) for node in nodes if isinstance(node, NamedNode)]
    tests = [f"{variable} IN ({', '.join(iris)})"] if iris else []
    tests += [f"sameTerm({variable}, {term_text(node)})" for node in nodes if not isinstance(node, NamedNode)]
    return " || ".join(tests) or "false"


class ListSource:
    """Nodes that are known. The engine asks back for them, as no text can name a blank node."""

    def __init__(self, nodes: Iterable[Term], functions: EngineFunctions) -> None:
        self.nodes = tuple(dict.fromkeys(nodes))
        self._nth = functions.indexing(self.nodes)
        self._is_member = functions.membership(frozenset(self.nodes))

    def enumerated(self, variable: str) -> str:
        number = f"{variable}_n"
        numbers = " ".join(map(str, range(len(self.nodes))))
        bound = f"VALUES {number} {{ {numbers} }} BIND({self._nth}({number}) AS {variable})"
        return f"{{ SELECT {variable} {{ {bound} }} }}"

    def tested(self, variable: str) -> str:
        return f"FILTER({self._is_member}({variable}))"


@dataclass(frozen=True, slots=True)
class ValuesSource:
    """The value nodes of a property shape: what a path leads to from another source."""

    source: Source
    path: Path

    @property
    def depth(self) -> int:
        """How many of these stand within each other."""
        return 1 + (self.source.depth if isinstance(self.source, ValuesSource) else 0)

    def enumerated(self, variable: str) -> str:
        start = f"{variable}_s"
        pattern = f"{self.source.enumerated(start)} LATERAL {{ {step_from(self.path, start, variable)} }}"
        return f"{{ SELECT DISTINCT {variable} {{ {pattern} }} }}"

    def tested(self, variable: str) -> str:
        start = f"{variable}_s"
        pattern = f"{step_to(self.path, start, variable)} {self.source.tested(start)}"
        return f"LATERAL {{ SELECT {variable} {{ {pattern} }} LIMIT 1 }}"
