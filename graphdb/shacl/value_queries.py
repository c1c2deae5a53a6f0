"""Queries for what a constraint says of values: one by one, counted, or compared with those of another
property.

Each function gives the findings of one constraint, or of several that go into one query, on all pairs of
focus nodes and value nodes.
"""

from collections.abc import Iterator, Sequence

from pyoxigraph import Literal, NamedNode

from graphdb.shacl.data_graph import DataGraph
from graphdb.shacl.findings import Finding
from graphdb.shacl.pairs import Pairs, Planner
from graphdb.shacl.paths import PredicatePath
from graphdb.shacl.shape_tree import (
    ClosedConstraint,
    Constraint,
    CountConstraint,
    EqualsConstraint,
    HasValueConstraint,
    LessThanConstraint,
    QualifiedConstraint,
    Shape,
    UniqueLangConstraint,
)
from graphdb.shacl.sources import Source
from graphdb.shacl.steps import step_between, step_from
from graphdb.shacl.term_texts import term_text
from graphdb.shacl.vocabulary import XSD

__all__ = [
    "class_findings",
    "closed_findings",
    "condition_findings",
    "count_findings",
    "equals_findings",
    "has_value_findings",
    "less_than_findings",
    "qualified_findings",
    "unique_lang_findings",
]

_CONDITIONS_MAX = 20  # in one query
_FALSE = Literal("false", datatype=NamedNode(XSD + "boolean"))
_LISTED_MAX = 200  # properties of a closed shape that are written into the query


def condition_findings(
    graph: DataGraph, shape: Shape, pairs: Pairs, conditions: Sequence[tuple[Constraint, str]]
) -> Iterator[Finding]:
    """Values for which one of the conditions, expressions about ?value, is not true."""
    for start in range(0, len(conditions), _CONDITIONS_MAX):
        part = conditions[start : start + _CONDITIONS_MAX]
        narrowed = pairs.narrowed(f"FILTER(!({' && '.join(text for _, text in part)}))")
        columns = "".join(f" ({text} AS ?holds{number})" for number, (_, text) in enumerate(part))
        rows = graph.select(f"SELECT DISTINCT ?this ?value{columns} {{ {narrowed} }}")
        for focus, value, *holds in rows:
            assert focus is not None
            for (constraint, _), held in zip(part, holds, strict=True):
                if held == _FALSE:
                    has_value = not isinstance(constraint, HasValueConstraint)
                    yield Finding(shape, constraint, focus, value if has_value else None)


def class_findings(
    graph: DataGraph, shape: Shape, constraint: Constraint, pairs: Pairs, instances: Source
) -> Iterator[Finding]:
    """Values that are no instances, where all instances are as many as can be enumerated."""
    narrowed = pairs.narrowed(f"MINUS {{ {instances.enumerated('?value')} }}")
    for focus, value in graph.select(f"SELECT DISTINCT ?this ?value {{ {narrowed} }}"):
        assert focus is not None
        yield Finding(shape, constraint, focus, value)


def count_findings(
    graph: DataGraph, shape: Shape, constraint: CountConstraint, pairs: Pairs
) -> Iterator[Finding]:
    """Focus nodes with too few values, or too many."""
    return _miscounted(graph, shape, constraint, pairs, _step(pairs))


def qualified_findings(
    graph: DataGraph, shape: Shape, constraint: QualifiedConstraint, pairs: Pairs, condition: str
) -> Iterator[Finding]:
    """The same of values for which the condition, an expression about ?value, is true."""
    return _miscounted(graph, shape, constraint, pairs, f"{_step(pairs)} FILTER({condition})")


def has_value_findings(
    graph: DataGraph, shape: Shape, constraint: HasValueConstraint, pairs: Pairs
) -> Iterator[Finding]:
    """Focus nodes without the value; of a property shape."""
    assert pairs.path is not None
    step = step_between(pairs.path, "?this", term_text(constraint.value))
    yield from _focus_findings(graph, shape, constraint, _without(pairs, step, 1))


def unique_lang_findings(
    graph: DataGraph, shape: Shape, constraint: UniqueLangConstraint, pairs: Pairs
) -> Iterator[Finding]:
    """Focus nodes with several values in a language, once for each such language."""
    step = f'{_step(pairs)} BIND(LANG(?value) AS ?lang) FILTER(?lang != "")'
    pattern = _grouped(pairs, step, "?this ?lang", "COUNT(DISTINCT ?value) > 1")
    yield from _focus_findings(graph, shape, constraint, pattern)


def _miscounted(
    graph: DataGraph,
    shape: Shape,
    constraint: CountConstraint | QualifiedConstraint,
    pairs: Pairs,
    step: str,
) -> Iterator[Finding]:
    if constraint.least == 0:
        return
    if constraint.least is not None:
        pattern = _without(pairs, step, constraint.least)
    else:
        pattern = _grouped(pairs, step, "?this", f"COUNT(DISTINCT ?value) > {constraint.most}")
    yield from _focus_findings(graph, shape, constraint, pattern)


def _focus_findings(
    graph: DataGraph, shape: Shape, constraint: Constraint, pattern: str
) -> Iterator[Finding]:
    for (focus,) in graph.select(f"SELECT ?this {{ {pattern} }}"):
        assert focus is not None
        yield Finding(shape, constraint, focus, None)


def _step(pairs: Pairs) -> str:
    assert pairs.path is not None
    return step_from(pairs.path, "?this", "?value")


def _without(pairs: Pairs, step: str, count: int) -> str:
    """The focus nodes that have fewer than count solutions of the step."""
    having = f"GROUP BY ?this HAVING(COUNT(DISTINCT ?value) >= {count})"
    nodes = pairs.source.enumerated("?this")
    if pairs.scans:
        enough = step if count == 1 else f"SELECT ?this {{ {step} }} {having}"
        return f"{nodes} MINUS {{ {enough} }}"
    enough = "LIMIT 1" if count == 1 else having
    return f"{nodes} {_unless(f'SELECT ?this (1 AS ?has) {{ {step} }} {enough}')}"


def _grouped(pairs: Pairs, step: str, keys: str, having: str) -> str:
    """The focus nodes of which a group of solutions of the step fulfils the condition."""
    group = f"{{ SELECT {keys} {{ {step} }} GROUP BY {keys} HAVING({having}) }}"
    if pairs.scans:
        return f"{group} {pairs.rest}"
    return f"{pairs.source.enumerated('?this')} LATERAL {group}"


def equals_findings(
    graph: DataGraph, shape: Shape, constraint: EqualsConstraint, pairs: Pairs, planner: Planner
) -> Iterator[Finding]:
    """sh:equals: what only one of the two has. sh:disjoint: what both have."""
    if constraint.disjoint:
        patterns = [pairs.narrowed(f"LATERAL {{ ?this {constraint.predicate} ?value }}")]
    else:
        others = planner.pairs(pairs.source, PredicatePath(constraint.predicate))
        patterns = [
            pairs.narrowed(_not(f"?this {constraint.predicate} ?value", pairs)),
            others.narrowed(
                "FILTER(!sameTerm(?this, ?value))"
                if pairs.path is None
                else _not(step_between(pairs.path, "?this", "?value"), pairs)
            ),
        ]
    for pattern in patterns:
        for focus, value in graph.select(f"SELECT DISTINCT ?this ?value {{ {pattern} }}"):
            assert focus is not None
            yield Finding(shape, constraint, focus, value)


def _not(step: str, pairs: Pairs) -> str:
    """What drops the pairs for which there is a solution of the step."""
    if pairs.scans:
        return f"MINUS {{ {step} }}"
    return _unless(f"SELECT ?this ?value (1 AS ?has) {{ {step} }} LIMIT 1")


def _unless(select: str) -> str:
    """What drops the solutions for which there is one of a SELECT, which binds ?has."""
    return f"LATERAL {{ OPTIONAL {{ {select} }} }} FILTER(!BOUND(?has))"


def less_than_findings(
    graph: DataGraph, shape: Shape, constraint: LessThanConstraint, pairs: Pairs, planner: Planner
) -> Iterator[Finding]:
    """Values that are not less than a value of the other property, once for each of these."""
    step = f"?this {constraint.predicate} ?other"
    if pairs.scans and planner.pairs(pairs.source, PredicatePath(constraint.predicate)).scans:
        others = f"{{ SELECT ?this ?other {{ {step} }} }}"  # which the engine joins by a hash table
    else:
        others = f"LATERAL {{ {step} }}"
    test = f"FILTER(!COALESCE(?value {constraint.operator} ?other, false))"
    narrowed = pairs.narrowed(f"{others} {test}")
    for focus, value, _ in graph.select(f"SELECT DISTINCT ?this ?value ?other {{ {narrowed} }}"):
        assert focus is not None
        yield Finding(shape, constraint, focus, value)


def closed_findings(
    graph: DataGraph, shape: Shape, constraint: ClosedConstraint, pairs: Pairs
) -> Iterator[Finding]:
    """Triples of value nodes with properties that are not allowed."""
    if not constraint.allowed:
        allowed = "false"  # IN () is no answer to the engine
    elif len(constraint.allowed) > _LISTED_MAX:
        allowed = f"{graph.functions.membership(frozenset(constraint.allowed))}(?property)"
    else:
        allowed = f"?property IN ({', '.join(map(str, constraint.allowed))})"
    narrowed = pairs.narrowed(f"LATERAL {{ ?value ?property ?object }} FILTER(!({allowed}))")
    rows = graph.select(f"SELECT DISTINCT ?this ?value ?property ?object {{ {narrowed} }}")
    for focus, _, property_, object_ in rows:
        assert focus is not None
        assert isinstance(property_, NamedNode)
        yield Finding(shape, constraint, focus, object_, PredicatePath(property_))
