"""Searches come first: what they find is joined with the patterns beside them one hit at a time.

Where the engine takes something else before VALUES, it compares every hit with every solution of that. So
the order is written out: the hits, then each pattern LATERAL, which looks it up for each solution so far. A
lateral join is a join where the right side is triple patterns alone. Blank nodes become variables, for their
labels are good for one group.
"""

from graphdb.sparql.algebra import (
    EMPTY,
    Algebra,
    Bgp,
    Graph,
    Join,
    Lateral,
    Path,
    TextSearch,
    join,
    spine_of,
    variables_in_scope,
)
from graphdb.sparql.rewriting import GroupPass
from graphdb.sparql.terms import BlankNodeLabel, Iri, Variable
from graphdb.sparql.translation import FreshNames
from graphdb.sparql.tree_walk import all_below, renamed

__all__ = ["SearchesFirst"]


class SearchesFirst(GroupPass):
    """The pass over one query. See the module."""

    def __init__(self, fresh: FreshNames) -> None:
        self._fresh = fresh

    def group(self, node: Algebra, graph: Variable | None = None) -> Algebra:
        """See `GroupPass`."""
        first, steps = spine_of(node)
        count = next((n for n, step in enumerate(steps) if not isinstance(step, Join)), len(steps))
        operands = [first, *(step.right for step in steps[:count] if isinstance(step, Join))]
        searches = [each for each in operands if isinstance(each, TextSearch)]
        if not searches:
            return super().group(node, graph)
        made: Algebra = EMPTY
        for search in searches:
            made = join(made, search)
        patterns, others = _apart([each for each in operands if not isinstance(each, TextSearch)])
        patterns = self._named(patterns)
        known = variables_in_scope(made)
        while (found := _next(patterns, known)) is not None:
            patterns.remove(found)
            known |= variables_in_scope(found)
            made = Lateral(made, found)
        for each in (*patterns, *others):
            made = join(made, self.operand(each, graph)) if not isinstance(each, Join) else Join(made, each)
        for step in steps[count:]:
            made = self.step(step, made, graph)
        return made

    def _named(self, patterns: list[Algebra]) -> list[Algebra]:
        """Without blank nodes."""
        found = dict.fromkeys(node for node in all_below(*patterns) if isinstance(node, BlankNodeLabel))
        names = {label: Variable(self._fresh.prefix("blank")) for label in found}
        return [renamed(each, names) for each in patterns] if names else patterns


def _apart(operands: list[Algebra]) -> tuple[list[Algebra], list[Algebra]]:
    """What can be looked up for each hit, pattern by pattern; and the rest."""
    patterns: list[Algebra] = []
    others: list[Algebra] = []
    for each in operands:
        match each:
            case Bgp(triples=triples):
                patterns += [Bgp((triple,)) for triple in triples]
            case Path():
                patterns.append(each)
            case Graph(name=Iri(), pattern=Bgp(triples=triples)):
                patterns += [Graph(each.name, Bgp((triple,))) for triple in triples]
            case _:
                others.append(each)
    return patterns, others


def _next(patterns: list[Algebra], known: set[str]) -> Algebra | None:
    """The one to look up next: one that shares a variable, with as few unknown ends as can be."""
    near = [each for each in patterns if not known.isdisjoint(variables_in_scope(each))]
    return min(near, key=lambda each: len(variables_in_scope(each) - known), default=None)
