"""GRAPH with a variable, for an engine that has it bound already within the braces.

The specification evaluates what stands within for each graph by itself, and joins the graph's name only then
(SPARQL 1.1, section 18.6). pyoxigraph makes the variable one of every triple pattern within and joins those.
The two differ, and the text is changed, where

- the variable itself stands within, but for triples right there: it is renamed, and compared outside;
- a group begins without a triple pattern (with VALUES, or another GRAPH): the engine would not go through the
  graphs, so `GRAPH ?g {}` is put first;
- a sub-select does not hand the variable on: it is made to, and to group by it, and one with LIMIT or OFFSET
  is evaluated graph by graph (LATERAL). An aggregate over all solutions also has a row for a graph that has
  none, by a second branch; not so around another such aggregate, lest the text double at every level;
- the sides of MINUS have the graph's variable in common and no other: it removes nothing, so it goes, and so
  it does in EXISTS, where the engine has outer variables on both sides. Where a variable in common may be
  unbound at run time, the engine's reading stays.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from graphdb.sparql.lexer import tokens
from graphdb.sparql.patterns import (
    GraphPattern,
    GroupGraphPattern,
    InlineData,
    MinusPattern,
    OptionalPattern,
    ServicePattern,
    SubSelect,
    TriplesBlock,
)
from graphdb.sparql.scope import variables_of_element
from graphdb.sparql.tables import load_tables
from graphdb.sparql.terms import Span, Variable
from graphdb.sparql.text_edits import TextEdits, names_besides
from graphdb.sparql.tree_walk import has_aggregate, nodes_below, parts_of

__all__ = ["Node", "Place", "mend_at", "nodes_with_places"]


@dataclass(frozen=True, slots=True)
class Place:
    """What holds at a node: the variable of the GRAPH around it, by its new name, and the new names of all
    variables that have one. graph is None where no GRAPH is around it, or one with an IRI.
    """

    graph: str | None = None
    names: Mapping[str, str] = field(default_factory=dict)

    def name(self, old: str) -> str:
        return self.names.get(old, old)


class Node(NamedTuple):
    """A node of the tree, its place, and the place of what is below it."""

    node: Any
    place: Place
    within: Place


def nodes_with_places(text: str, root: Any, edits: TextEdits) -> list[Node]:
    """Every node of a tree, each before what is below it. Writes the new names into the text."""
    fresh = names_besides(text, "graph")
    found, waiting = [], [(root, Place())]
    while waiting:
        node, place = waiting.pop()
        within = _within(text, node, place, fresh, edits) if isinstance(node, GraphPattern) else place
        found.append(Node(node, place, within))
        waiting.extend((part, within) for part in parts_of(node))
    return found


def mend_at(node: Node, edits: TextEdits) -> None:
    """Change the text at one node, after what is below it."""
    match node.node:
        case GraphPattern(name=Variable()):
            _compare_outside(node.node, node.place, node.within, edits)
        case GroupGraphPattern():
            _drop_idle_minus(node.node, edits)
            if _lacks_graph(node.node, node.place):
                _begin_with_graph(node.node, node.place, edits)
        case SubSelect() if node.place.graph is not None:
            _mend_sub_select(node.node, node.place, edits)


def _within(text: str, node: GraphPattern, place: Place, fresh: Iterator[str], edits: TextEdits) -> Place:
    """The place of what stands between the braces of GRAPH, where the variable gets a new name if need be."""
    if not isinstance(node.name, Variable):
        return Place(None, place.names)
    old, names = node.name.name, place.names
    spans = _spans_of(old, text, node.pattern.span)
    plain = [part.span for part in node.pattern.elements if isinstance(part, TriplesBlock)]
    if any(not any(block.start <= span.start < block.end for block in plain) for span in spans):
        new = next(fresh)
        names = {**names, old: new}
        for span in spans:
            edits.replace(span, f"?{new}")
    return Place(place.name(old), names)


def _spans_of(name: str, text: str, within: Span) -> list[Span]:
    """Where a variable stands in a part of the text."""
    part = text[within.start : within.end]
    if not re.search(rf"[?$]{re.escape(name)}", part):
        return []
    return [
        Span(within.start + token.start, within.start + token.end)
        for token in tokens(load_tables(), part)
        if token.terminal in ("VAR1", "VAR2") and token.text[1:] == name
    ]


def _compare_outside(node: GraphPattern, place: Place, within: Place, edits: TextEdits) -> None:
    """Where a renamed variable may have a value, it is the graph, and is not shown."""
    assert isinstance(node.name, Variable)
    old, new = node.name.name, within.name(node.name.name)
    if new == place.name(old) or old not in node.pattern.variables:
        return
    shown = [place.graph] if place.graph is not None else []
    shown += [place.name(name) for name in (old, *sorted(node.pattern.variables - {old}))]
    columns = " ".join(f"?{name}" for name in dict.fromkeys(shown))
    test = f"FILTER(!BOUND(?{new}) || SAMETERM(?{new}, ?{within.graph}))"
    edits.around(node.span, f"{{ SELECT {columns} {{ ", f" {test} }} }}")


def _drop_idle_minus(group: GroupGraphPattern, edits: TextEdits) -> None:
    """Take away each MINUS that has no variable in common with what stands before it."""
    before: set[str] = set()
    for element in group.elements:
        if isinstance(element, MinusPattern) and before.isdisjoint(element.pattern.variables):
            edits.replace(element.span, "FILTER(true)")
        before.update(variables_of_element(element))


def _lacks_graph(group: GroupGraphPattern, place: Place) -> bool:
    """Whether a group in GRAPH has solutions before its first OPTIONAL or MINUS that are of no graph."""
    if place.graph is None:
        return False
    lacking = False
    for element in group.elements:
        match element:
            case TriplesBlock():
                return False
            case OptionalPattern() | MinusPattern():
                break
            case InlineData() | ServicePattern():
                lacking = True
            case GraphPattern(name=name):
                own = isinstance(name, Variable) and place.name(name.name) == place.graph
                lacking = lacking or not own
    return lacking


def _begin_with_graph(group: GroupGraphPattern, place: Place, edits: TextEdits) -> None:
    edits.before(group.span.start + 1, f" GRAPH ?{place.graph} {{}} ")


def _mend_sub_select(sub: SubSelect, place: Place, edits: TextEdits) -> None:
    graph, modifiers, columns = f"?{place.graph}", sub.modifiers, sub.select.span
    sliced = modifiers.limit is not None or modifiers.offset is not None
    whole = _is_whole_group(sub)
    if sub.values is not None and not any(isinstance(part, SubSelect) for part in sub.where.elements):
        _begin_with_graph(sub.where, place, edits)
    without = _without_solutions(sub, graph, edits) if whole else ""
    if sub.select.projections is None:
        names = " ".join(f"?{place.name(name)}" for name in sorted(sub.variables))
        edits.replace(Span(columns.end - 1, columns.end), f" {graph} {names} ")
    else:
        edits.after(columns.end, f" {graph} ")
    if whole:
        edits.after(sub.where.span.end, f" GROUP BY {graph} ")
    elif modifiers.group_by:
        edits.before(modifiers.group_by[0].span.start, f"{graph} ")
    if sliced:
        edits.around(sub.span, f"GRAPH {graph} {{}} LATERAL {{ ", " }")
    if without:
        edits.around(sub.span, "{ ", f" }} UNION {{ {without} }}")


def _without_solutions(sub: SubSelect, graph: str, edits: TextEdits) -> str:
    """The row of an aggregate over nothing, for each graph without solutions."""
    if any(isinstance(node, SubSelect) and _is_whole_group(node) for node in nodes_below(sub.where)):
        return ""
    head = edits.written(sub.select.span)
    tail = edits.written(Span(sub.where.span.end, sub.span.end))
    none = f"GRAPH {graph} {{}} FILTER NOT EXISTS {edits.written(sub.where.span)}"
    return f"{none} {{ {head} {{ FILTER(false) }} {tail} }}"


def _is_whole_group(sub: SubSelect) -> bool:
    """Whether a sub-select makes one row of all its solutions."""
    if sub.modifiers.group_by:
        return False
    return bool(sub.modifiers.having) or has_aggregate(sub.select, sub.modifiers)
