"""SPARQL for the constraints of one shape on values, and for pairs of properties."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyoxigraph import Literal, NamedNode

from graphdb.shacl.data_graph import DataGraph
from graphdb.shacl.engine_terms import term_text
from graphdb.shacl.findings import Finding
from graphdb.shacl.paths import InversePath, Path, PredicatePath, SequencePath, step_between, step_from
from graphdb.shacl.shacl_names import XSD
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
from graphdb.shacl.sources import ListSource, Source, TargetSource, ValuesSource

__all__ = [
    "Pairs",
    "Planner",
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

# Focus nodes with their value nodes, as patterns, and how to come by them quickly.
#
# Two ways lead to the values of a property: from each focus node to its values, or over all triples of the
# property, asking of what is found whether its focus node is one. The second reads the index in one go, a
# tenth of the time a triple, and little of what it reads has to be asked about: violations are few.

_PER_LOOKUP = 4  # triples that are read in the time that a look for those of one node takes
_FEW = 100  # focus nodes, for which it is not worth while to count
_SAMPLE = 100  # focus nodes, whose values are counted
_SIZE_MAX = 1_000_000  # nodes are not counted beyond


@dataclass(frozen=True, slots=True)
class Pairs:
    """pattern binds ?this and ?value, a pair perhaps more than once; rest is to come behind all that narrows
    it down, to keep those whose ?this is a focus node. scans says which way was chosen, size about how many
    pairs are looked at.
    """

    source: Source
    path: Path | None
    pattern: str
    rest: str
    scans: bool
    size: int

    def narrowed(self, narrowing: str) -> str:
        """The pairs for which the pattern that follows them holds."""
        return f"{{ {self.pattern} {narrowing} }} {self.rest}"


class Planner:
    """Chooses, for one validation."""

    def __init__(self, graph: DataGraph) -> None:
        self._graph = graph
        self._counts: dict[str, tuple[int, int]] = {}

    def pairs(self, source: Source, path: Path | None) -> Pairs:
        """Without a path, a node is its own value."""
        nodes = source.enumerated("?this")
        size = self.size(source)
        if path is None:
            return Pairs(source, path, f"{nodes} BIND(?this AS ?value)", "", scans=False, size=size)
        step = step_from(path, "?this", "?value")
        first = _first_step(path)
        if size > _FEW and first is not None:
            size *= self._values_each(nodes, step)
            most = _PER_LOOKUP * size
            triples = self._count(step_from(first, "?this", "?value"), most + 1)
            if triples <= most:
                return Pairs(source, path, f"{step} .", source.tested("?this"), scans=True, size=triples)
        return Pairs(source, path, f"{nodes} LATERAL {{ {step} }}", "", scans=False, size=size)

    def size(self, source: Source) -> int:
        """About how many nodes a source has."""
        match source:
            case ListSource():
                return len(source.nodes)
            case ValuesSource(source=inner):
                return self.size(inner)
            case TargetSource():
                return self._count(source.pattern("?this"), _SIZE_MAX)
            case _:
                raise AssertionError(source)

    def _values_each(self, nodes: str, step: str) -> int:
        """About how many values a focus node has, and one that is looked for in vain."""
        some = f"SELECT ?this {{ {nodes} }} LIMIT {_SAMPLE}"
        return 1 + self._count(f"{{ {some} }} LATERAL {{ {step} }}", _SAMPLE * _SAMPLE) // _SAMPLE

    def _count(self, pattern: str, enough: int) -> int:
        """How many solutions a pattern has, counting to enough."""
        counted_to, count = self._counts.get(pattern, (0, 0))
        if count == counted_to < enough:
            text = f"SELECT (1 AS ?one) {{ {pattern} }} LIMIT {enough}"
            count = self._graph.number(f"SELECT (COUNT(*) AS ?n) {{ {text} }}")
            self._counts[pattern] = enough, count
        return count


def _first_step(path: Path) -> Path | None:
    """Of a property, its inverse and a sequence of these, which can be read from the index; else None."""
    match path:
        case PredicatePath() | InversePath(path=PredicatePath()):
            return path
        case SequencePath(steps=steps) if all(_first_step(step) is step for step in steps):
            return steps[0]
        case _:
            return None


# Queries for what a constraint says of values: one by one, counted, or compared with those of another
# property.
#
# Each function gives the findings of one constraint, or of several that go into one query, on all pairs of
# focus nodes and value nodes.

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
