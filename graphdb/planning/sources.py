"""What a query reads: its triple patterns, each with a query that counts what matches it by itself (EXPLAIN);
and the graphs that it names (the audit log).
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import lru_cache
from operator import itemgetter
from typing import Any, TypeAlias

from graphdb.planning.gate import SHORT_TEXT_CHARACTERS
from graphdb.sparql.algebra import Algebra, Bgp, Exists, Graph, Path, Service
from graphdb.sparql.patterns import GraphPattern
from graphdb.sparql.printing import literal_of, written_term
from graphdb.sparql.syntax import Query, Update
from graphdb.sparql.terms import BlankNodeLabel, Iri, RdfLiteral, TripleTerm, Variable
from graphdb.sparql.translation import abstract_query
from graphdb.sparql.tree_walk import parts_of

__all__ = ["COUNTED_MAX", "Scan", "named_graphs", "scans_of"]

COUNTED_MAX = 100_000  # of a pattern's matches; where there are more, this many are told

_GRAPHS_MAX = 20
_STEPS_MAX = 5_000  # of a longer text the beginning is enough
# A text with none of these words names no graph, which spares most queries the walk.
_WORDS = re.compile(r"graph|from|using|with|into|copy|move|add|clear|drop", re.IGNORECASE)
_KEPT: dict[tuple[str, str | None], tuple[str, ...]] = {}  # a text that comes again is not walked again
_KEPT_MAX = 1_024
_NAMING = frozenset({"graph", "with_graph", "into"})

_Triple: TypeAlias = tuple[Any, Any, Any]


@dataclass(frozen=True, slots=True)
class Scan:
    """One triple pattern, as it is shown, and the query whose one row `?n` tells how many quads fit it.

    All that fit its constants: a variable that stands twice, and one within a triple term, are filters behind
    the scan. So whatever the data are, counting ends with the COUNTED_MAX-th quad.
    """

    pattern: str
    count_query: str


def scans_of(query: Query) -> tuple[Scan, ...]:
    """The patterns that the store is asked for, in the order of the text, each once.

    A property path counts as its steps, `?a <p> ?b` each. What stands in SERVICE is another store's.
    """
    found: dict[str, Scan] = {}
    for graph, triple in _patterns(abstract_query(query).pattern):
        shown = _in_graph(graph, triple)
        if shown not in found:
            found[shown] = Scan(shown, _count_query(graph, triple))
    return tuple(found.values())


def _count_query(graph: Any, triple: _Triple) -> str:
    distinct = [_free(term, name) for term, name in zip(triple, "spo", strict=True)]
    inner = f"SELECT * {{ {_in_graph(_free(graph, 'g'), distinct)} }} LIMIT {COUNTED_MAX}"
    return f"SELECT (COUNT(*) AS ?n) {{ {inner} }}"


def _free(term: Any, name: str) -> Any:
    """A term without variables as it is, and another as a variable of this name."""
    waiting = [term]
    for each in waiting:
        if isinstance(each, Variable | BlankNodeLabel):
            return Variable(name, each.span)
        if isinstance(each, TripleTerm):
            waiting += (each.subject, each.predicate, each.object)
    return term


def _in_graph(graph: Any, triple: Sequence[Any]) -> str:
    """A pattern in SPARQL; graph None is the default graph."""
    pattern = " ".join(map(_written, triple))
    return pattern if graph is None else f"GRAPH {_written(graph)} {{ {pattern} }}"


def _patterns(root: Algebra) -> list[tuple[Any, _Triple]]:
    """Each pattern of a query, with the name of its GRAPH or None, in the order of the text."""
    found: list[tuple[int, Any, _Triple]] = []
    has_exists = False
    waiting: list[tuple[Any, Any]] = [(root, None)]
    while waiting:
        node, graph = waiting.pop()
        has_exists |= isinstance(node, Exists)
        match node:
            case Service():
                pass
            case Bgp(triples=triples):
                place = 0  # what shorthand adds may have a place before that of the triple before it
                for each in triples:
                    place = max(place, each.span.start)
                    found.append((place, graph, (each.subject, each.predicate, each.object)))
            case Path(subject, predicate, _):
                found += [(subject.span.start, graph, step) for step in _steps(predicate)]
            case _:
                inner = node.name if isinstance(node, Graph) else graph
                waiting.extend((part, inner) for part in reversed(parts_of(node)))
    if has_exists:  # a group has its FILTERs at the end, wherever the text has them
        found.sort(key=itemgetter(0))
    return [(graph, triple) for _, graph, triple in found]


def _steps(path: Any) -> Iterator[_Triple]:
    for iri in _iris_of_path(path):
        yield Variable("a", iri.span), iri, Variable("b", iri.span)


def _iris_of_path(path: Any) -> Iterator[Iri]:
    if isinstance(path, Iri):
        yield path
    else:
        for part in parts_of(path):
            yield from _iris_of_path(part)


def _written(term: Any) -> str:
    """A term in SPARQL; a blank node as the variable that it is in a pattern."""
    match term:
        case BlankNodeLabel(label=label):
            return f"?_{label}"
        case RdfLiteral(language=None):
            return str(literal_of(term))
        case TripleTerm(subject, predicate, object_):
            return f"<<( {' '.join(map(_written, (subject, predicate, object_)))} )>>"
    return written_term(term)


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
        kept = tuple(_graphs(syntax))
        if len(syntax.text) <= SHORT_TEXT_CHARACTERS:
            if len(_KEPT) >= _KEPT_MAX:
                _KEPT.clear()
            _KEPT[key] = kept
    return list(kept)


def _graphs(syntax: Query | Update) -> dict[str, None]:
    found: dict[str, None] = {}
    for _, graph in zip(range(_STEPS_MAX), _graphs_in(syntax), strict=False):
        if graph is not None:
            found[graph] = None
            if len(found) == _GRAPHS_MAX:
                break
    return found


def _graphs_in(node: Any) -> Iterator[str | None]:
    """One for each part of the syntax tree; a graph where it names one."""
    if isinstance(node, tuple):
        for part in node:
            yield from _graphs_in(part)
    elif is_dataclass(node) and not isinstance(node, type):
        for name in _names(type(node)):
            value = getattr(node, name)
            if isinstance(value, Iri):
                is_graph = name in _NAMING or (name == "name" and isinstance(node, GraphPattern))
                yield value.value if is_graph else None
            elif isinstance(value, tuple) or is_dataclass(value):
                yield None
                yield from _graphs_in(value)


@lru_cache(maxsize=256)
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(one.name for one in fields(kind))
