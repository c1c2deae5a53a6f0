"""How shapes refer to each other: no circles, and no deeper or wider than can be followed."""

from collections.abc import Callable, Iterator

from graphdb.errors import MalformedShapes
from graphdb.shacl.shape_tree import (
    AllOf,
    Constraint,
    ExactlyOneOf,
    NodeConstraint,
    NotConstraint,
    OneOf,
    PropertyConstraint,
    QualifiedConstraint,
    Shape,
)
from graphdb.shacl.shapes_graph import short_name
from graphdb.shacl.vocabulary import Node

__all__ = ["DEPTH_MAX", "check_nesting", "inner_shapes", "nodes_in"]

DEPTH_MAX = 32
"""Levels of shapes within each other."""
USES_MAX = (
    20_000  # ways from one shape down to others, each counted: shared shapes may make them double a level
)


def inner_shapes(shape: Shape) -> Iterator[Node]:
    """The shapes that one refers to, repeated as they are."""
    for constraint in shape.constraints:
        yield from nodes_in(constraint)


def nodes_in(constraint: Constraint) -> tuple[Node, ...]:
    """The shapes that a constraint refers to."""
    match constraint:
        case NotConstraint(shape=inner) | NodeConstraint(shape=inner) | PropertyConstraint(shape=inner):
            return (inner,)
        case AllOf(shapes=inner) | OneOf(shapes=inner) | ExactlyOneOf(shapes=inner):
            return inner
        case QualifiedConstraint():
            return (constraint.shape, *constraint.siblings)
        case _:
            return ()


def check_nesting(
    shapes: dict[Node, Shape], malformed: Callable[[Node, str, str], MalformedShapes]
) -> dict[Node, Shape]:
    """The same shapes, each behind those that it refers to. Raises MalformedShapes."""
    ordered: dict[Node, Shape] = {}
    depths: dict[Node, int] = {}
    uses: dict[Node, int] = {}
    for root in shapes:
        for node in _from_below(root, shapes, ordered, malformed):
            inner = tuple(inner_shapes(shapes[node]))
            depths[node] = 1 + max((depths[each] for each in inner), default=0)
            uses[node] = 1 + sum(uses[each] for each in inner)
            if depths[node] > DEPTH_MAX:
                raise malformed(node, "", f"has shapes within it more than {DEPTH_MAX} levels deep")
            if uses[node] > USES_MAX:
                raise malformed(node, "", f"leads to other shapes in more than {USES_MAX} ways")
            ordered[node] = shapes[node]
    return ordered


def _from_below(
    root: Node,
    shapes: dict[Node, Shape],
    done: dict[Node, Shape],
    malformed: Callable[[Node, str, str], MalformedShapes],
) -> Iterator[Node]:
    """What is not done yet of root and the shapes below it, the lower ones first."""
    open_: dict[Node, Iterator[Node]] = {}
    if root not in done:
        open_[root] = inner_shapes(shapes[root])
    while open_:
        node, inner = next(reversed(open_.items()))
        below = next(inner, None)
        if below is None:
            del open_[node]
            yield node
        elif below in open_:
            names = [*open_]
            circle = [*names[names.index(below) :], below]
            words = " -> ".join(map(short_name, circle[:10]))
            raise malformed(below, "", f"is recursive, which is not supported: {words}")
        elif below not in done:
            open_[below] = inner_shapes(shapes[below])
