"""The algebra of a query as bytes, for another process of this service: it need not parse the text again.

Packing and unpacking take a third of what parsing and translating do. The bytes are pickled, so they may come
from a process of the same user alone.
"""

import pickle
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from graphdb.sparql.algebra import AbstractQuery
from graphdb.sparql.syntax import Query
from graphdb.sparql.terms import RdfLiteral, Span
from graphdb.sparql.translation import abstract_query
from graphdb.sparql.tree_walk import all_rewritten

__all__ = ["packed", "unpacked", "with_literals"]

_PROTOCOL = 5


def packed(query: Query) -> bytes:
    """Made once and kept with the tree. Raises RecursionError where it nests too deeply."""
    made: bytes | None = getattr(query, "packed", None)
    if made is None:
        made = pickle.dumps(abstract_query(query), _PROTOCOL)
        object.__setattr__(query, "packed", made)
    return made


def unpacked(data: bytes) -> AbstractQuery:
    """What was packed."""
    query = pickle.loads(data)
    assert isinstance(query, AbstractQuery)
    return query


def with_literals(query: AbstractQuery, values: Mapping[Span, str]) -> AbstractQuery:
    """The query with other values in the literals that stand at some places of its text."""

    def change(node: Any) -> Any:
        if not isinstance(node, RdfLiteral) or node.span not in values:
            return node
        return replace(node, value=values[node.span])

    found: AbstractQuery = all_rewritten(query, change)
    return found
