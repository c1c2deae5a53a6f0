"""How shapes refer to each other: circles are followed once around, nothing deeper or wider than can be.

SHACL leaves recursion undefined (section 3.4.3). Here a shape that leads back to itself is what it says of a
node, and of the nodes that this leads to; what would lead around once more is left out. Such a node is
checked further where it is a target itself.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from pyoxigraph import BlankNode

from graphdb.shacl.shacl_names import Node
from graphdb.shacl.shape_tree import (
    AllOf,
    Constraint,
    ExactlyOneOf,
    ExpressionConstraint,
    NodeConstraint,
    NotConstraint,
    OneOf,
    PropertyConstraint,
    QualifiedConstraint,
    Shape,
    query_of,
)

__all__ = ["DEPTH_MAX", "inner_shapes", "leading_to", "nested", "nodes_in"]

# what is told of a shape that cannot be followed; raises, or notes it
Refuse = Callable[[Node, str], None]

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


def nested(shapes: Mapping[Node, Shape], refuse: Refuse) -> dict[Node, Shape]:
    """The shapes, none of which leads back to itself any more, each behind those that it refers to."""
    order, heads = _followed(shapes)
    if heads:
        shapes = _Circles(shapes, order, heads).opened(refuse)
        order, _ = _followed(shapes)
    ordered: dict[Node, Shape] = {}
    depths: dict[Node, int] = {}
    uses: dict[Node, int] = {}
    for node in order:
        shape = ordered[node] = shapes[node]
        inner = tuple(inner_shapes(shape))
        depths[node] = 1 + max((depths[each] for each in inner), default=0)
        uses[node] = 1 + sum(uses[each] for each in inner)
        if depths[node] > DEPTH_MAX:
            refuse(shape.source, f"has shapes within it more than {DEPTH_MAX} levels deep")
            depths[node] = 1
        if uses[node] > USES_MAX:
            refuse(shape.source, f"leads to other shapes in more than {USES_MAX} ways")
            uses[node] = 1
    return ordered


def _followed(shapes: Mapping[Node, Shape]) -> tuple[list[Node], set[Node]]:
    """All shapes, each behind those that it refers to but for circles; and heads: each circle has one."""
    done: dict[Node, None] = {}
    heads: set[Node] = set()
    for root in sorted(shapes, key=lambda node: not shapes[node].targets):
        open_: dict[Node, Iterator[Node]] = {} if root in done else {root: inner_shapes(shapes[root])}
        while open_:
            node, inner = next(reversed(open_.items()))
            below = next(inner, None)
            if below is None:
                del open_[node]
                done[node] = None
            elif below in open_:
                heads.add(below)
            elif below not in done:
                open_[below] = inner_shapes(shapes[below])
    return [*done], heads


class _Circles:
    """Opens circles: what leads to a head from within its circle leads to a copy of the circle, in which
    nothing leads to a head.
    """

    def __init__(self, shapes: Mapping[Node, Shape], order: list[Node], heads: set[Node]) -> None:
        """order and heads are those of `_followed`."""
        self._shapes, self._heads = shapes, heads
        self._circle = _components(shapes, order)
        with_heads = {self._circle[head] for head in heads}
        self._copies = {node: BlankNode() for node in shapes if self._circle[node] in with_heads}
        self._originals: dict[Node, Node] = {copy: node for node, copy in self._copies.items()}

    def opened(self, refuse: Refuse) -> dict[Node, Shape]:
        """The shapes and the copies, which have no targets."""
        found = dict(self._shapes)
        for node, copy in self._copies.items():
            shape = self._shapes[node]
            if not all(_is_monotone(each) for each in shape.constraints if self._leads_around(node, each)):
                refuse(node, "is recursive by sh:not, sh:xone or a count of at most, which has no meaning")
            found[node] = self._rewritten(shape, is_copy=False)
            found[copy] = replace(self._rewritten(shape, is_copy=True), node=copy, written=node, targets=())
        recursive = leading_to(found, self._originals)
        expressive = leading_to(found, [node for node, shape in found.items() if _is_for_pyshacl(shape)])
        for node, shape in self._shapes.items():
            if shape.targets and node in recursive and node in expressive:
                refuse(node, "is recursive, or has a shape within it that is, and needs sh:expression")
        return found

    def _leads_around(self, node: Node, constraint: Constraint) -> bool:
        return any(self._circle[inner] == self._circle[node] for inner in nodes_in(constraint))

    def _rewritten(self, shape: Shape, *, is_copy: bool) -> Shape:
        circle = self._circle[shape.node]

        def place(node: Node) -> Node | None:
            """What stands for a shape here; None where it is left out."""
            if self._circle[node] != circle:
                return node
            if node in self._heads:
                return None if is_copy else self._copies[node]
            return self._copies[node] if is_copy else node

        placed = (_placed(each, place) for each in shape.constraints)
        constraints = tuple(each for each in placed if each is not None)
        return replace(shape, constraints=constraints, originals=self._originals)


def _placed(constraint: Constraint, place: Callable[[Node], Node | None]) -> Constraint | None:
    """The constraint with other shapes in it; None where it says nothing without one that is left out."""
    placed = tuple(map(place, nodes_in(constraint)))
    kept = tuple(node for node in placed if node is not None)
    match constraint:
        case AllOf() if kept:
            return replace(constraint, shapes=kept)
        case _ if len(kept) < len(placed):
            return None
        case NotConstraint() | NodeConstraint() | PropertyConstraint():
            return replace(constraint, shape=kept[0])
        case OneOf() | ExactlyOneOf():
            return replace(constraint, shapes=kept)
        case QualifiedConstraint():
            return replace(constraint, shape=kept[0], siblings=kept[1:])
        case _:
            return constraint


def _is_monotone(constraint: Constraint) -> bool:
    """Whether a node that conforms to more of the shapes in it never satisfies it the less."""
    match constraint:
        case NotConstraint() | ExactlyOneOf():
            return False
        case QualifiedConstraint():
            return constraint.most is None and not constraint.siblings
        case _:
            return True


def _components(shapes: Mapping[Node, Shape], order: list[Node]) -> dict[Node, int]:
    """For each shape the number of those that lead to it and that it leads to (Kosaraju's algorithm)."""
    above = _above(shapes)
    found: dict[Node, int] = {}
    for number, root in enumerate(reversed(order)):
        waiting = [root]
        while waiting:
            node = waiting.pop()
            if node not in found:
                found[node] = number
                waiting += above.get(node, ())
    return found


def leading_to(shapes: Mapping[Node, Shape], nodes: Iterable[Node]) -> dict[Node, Node]:
    """The nodes, and every shape that leads to one of them; each with one that it leads to."""
    above = _above(shapes)
    found = {node: node for node in nodes}
    waiting = [*found]
    while waiting:
        node = waiting.pop()
        for each in above.get(node, ()):
            if each not in found:
                found[each] = found[node]
                waiting.append(each)
    return found


def _above(shapes: Mapping[Node, Shape]) -> dict[Node, list[Node]]:
    """By shape, those that refer to it."""
    found: dict[Node, list[Node]] = {}
    for node, shape in shapes.items():
        for inner in inner_shapes(shape):
            found.setdefault(inner, []).append(node)
    return found


def _is_for_pyshacl(shape: Shape) -> bool:
    """Whether it has what only pySHACL evaluates, which would follow circles on and on."""
    queries = map(query_of, shape.constraints)
    return any(query is not None and query.calls_declared for query in queries) or any(
        isinstance(each, ExpressionConstraint) for each in shape.constraints
    )
