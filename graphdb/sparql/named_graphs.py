"""The graphs that a query or an update names, as its text has them; for a record of who asked what."""

import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any

from graphdb.sparql.gate import SHORT_TEXT_CHARACTERS
from graphdb.sparql.patterns import GraphPattern
from graphdb.sparql.syntax import Iri, Query, Update

__all__ = ["named_graphs"]

_GRAPHS_MAX = 20
_STEPS_MAX = 5_000  # of a longer text the beginning is enough
# A text with none of these words names no graph, which spares most queries the walk.
_WORDS = re.compile(r"graph|from|using|with|into|copy|move|add|clear|drop", re.IGNORECASE)
_KEPT: dict[tuple[str, str | None], tuple[str, ...]] = {}  # a text that comes again is not walked again
_KEPT_MAX = 1_024
_NAMING = frozenset({"graph", "with_graph", "into"})


def named_graphs(syntax: Query | Update) -> list[str]:
    """The first twenty, in order: of FROM, USING, WITH, GRAPH, INTO, and of what manages graphs.

    Those that a variable stands for are not known, nor those of data so long that they are not read as
    syntax (`InsertData.quads`). Prefixes are expanded already.
    """
    if _WORDS.search(syntax.text) is None:
        return []
    key = (syntax.text, syntax.base_iri)
    kept = _KEPT.get(key)
    if kept is None:
        kept = tuple(_found(syntax))
        if len(syntax.text) <= SHORT_TEXT_CHARACTERS:
            if len(_KEPT) >= _KEPT_MAX:
                _KEPT.clear()
            _KEPT[key] = kept
    return list(kept)


def _found(syntax: Query | Update) -> dict[str, None]:
    found: dict[str, None] = {}
    for _, graph in zip(range(_STEPS_MAX), _steps(syntax), strict=False):
        if graph is not None:
            found[graph] = None
            if len(found) == _GRAPHS_MAX:
                break
    return found


def _steps(node: Any) -> Iterator[str | None]:
    """One for each part of the syntax tree; a graph where it names one."""
    if isinstance(node, tuple):
        for part in node:
            yield from _steps(part)
    elif is_dataclass(node) and not isinstance(node, type):
        for name in _names(type(node)):
            value = getattr(node, name)
            if isinstance(value, Iri):
                is_graph = name in _NAMING or (name == "name" and isinstance(node, GraphPattern))
                yield value.value if is_graph else None
            elif isinstance(value, tuple) or is_dataclass(value):
                yield None
                yield from _steps(value)


@lru_cache(maxsize=256)
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(one.name for one in fields(kind))
