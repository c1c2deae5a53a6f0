"""How much validating a node may take at most, told from the shapes: meanwhile nothing could interrupt it."""

from collections.abc import Mapping
from dataclasses import dataclass

from graphdb.shacl.nesting import nodes_in
from graphdb.shacl.paths import (
    AlternativePath,
    InversePath,
    Path,
    PredicatePath,
    RepeatedPath,
    SequencePath,
)
from graphdb.shacl.shape_tree import Constraint, InConstraint, LanguageInConstraint, PatternConstraint
from graphdb.shacl.shapes import Shapes
from graphdb.shacl.vocabulary import Node

__all__ = ["ShapeCost", "shape_costs"]

_CHARACTERS_A_TEST = 50  # of what a constraint compares with


@dataclass(frozen=True, slots=True)
class ShapeCost:
    """steps: the longest chain of properties that is followed from a node, a repeated one counting as two.
    Of triples that are all joined with each other, a query may find as many rows as there are chains: so
    many triples to the power of half the steps. tests: how many constraints, those of shapes within it each
    time that they are used.
    """

    steps: int
    tests: int


def shape_costs(shapes: Shapes) -> Mapping[Node, ShapeCost]:
    """Of each shape."""
    costs: dict[Node, ShapeCost] = {}
    for node, shape in shapes.by_node.items():  # each behind those that it refers to
        inner = [costs[other] for each in shape.constraints for other in nodes_in(each)]
        costs[node] = ShapeCost(
            _path_steps(shape.path) + max((each.steps for each in inner), default=0),
            1 + sum(map(_tests, shape.constraints)) + sum(each.tests for each in inner),
        )
    return costs


def _tests(constraint: Constraint) -> int:
    match constraint:
        case InConstraint():
            compared = sum(len(str(member)) for member in constraint.members)
        case LanguageInConstraint():
            compared = sum(map(len, constraint.ranges))
        case PatternConstraint():
            compared = len(constraint.pattern)
        case _:
            compared = 0
    return 1 + compared // _CHARACTERS_A_TEST


def _path_steps(path: Path | None) -> int:
    match path:
        case None:
            return 0
        case PredicatePath():
            return 1
        case InversePath():
            return _path_steps(path.path)
        case SequencePath():
            return sum(map(_path_steps, path.steps))
        case AlternativePath():
            return max(map(_path_steps, path.paths))
        case RepeatedPath():
            return 2 * _path_steps(path.path)
