"""Names of variables and blank nodes that pyoxigraph does not read: those with characters beyond U+FFFF."""

from typing import Any

from graphdb.sparql.algebra import AbstractQuery
from graphdb.sparql.terms import BlankNodeLabel, Variable
from graphdb.sparql.translation import FreshNames
from graphdb.sparql.tree_walk import all_below, renamed

__all__ = ["with_engine_names"]


def with_engine_names(asked: AbstractQuery) -> AbstractQuery:
    """The same query with other names in their place.

    The columns of a SELECT keep theirs, for they are the answer's: the engine refuses a query that shows one.
    """
    shown = asked.select.variables or () if asked.form == "SELECT" else ()
    unread: dict[Any, None] = {}
    labels = set[str]()
    for node in all_below(asked):
        if isinstance(node, BlankNodeLabel):
            labels.add(node.label)
        if _is_unread(node) and node not in shown:
            unread[node] = None
    if not unread:
        return asked
    start = FreshNames(asked).prefix("name")
    while any(label.startswith(start) for label in labels):
        start += "_"
    names = {node: type(node)(f"{start}_{place}") for place, node in enumerate(unread)}
    return renamed(asked, names)  # type: ignore[no-any-return]


def _is_unread(node: Any) -> bool:
    match node:
        case Variable(name=name) | BlankNodeLabel(label=name):
            return max(name, default="") > "\uffff"
    return False
