"""Checks a change against the shapes, within a bound on its cost."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeAlias

from pyoxigraph import Quad, RdfFormat, Store, Triple, parse

from graphdb.model import ChangeSet
from graphdb.shacl.affected import ALL, Affected, Neighbourhood, TooMuch, affected, is_local
from graphdb.shacl.data_graph import DataGraphName
from graphdb.shacl.nesting import nodes_in
from graphdb.shacl.paths import (
    AlternativePath,
    InversePath,
    Path,
    PredicatePath,
    QuadSource,
    RepeatedPath,
    SequencePath,
)
from graphdb.shacl.report import result_json, stats_json
from graphdb.shacl.shacl_names import Node, Term, sh
from graphdb.shacl.shape_tree import Constraint, InConstraint, LanguageInConstraint, PatternConstraint
from graphdb.shacl.shapes import Shapes
from graphdb.shacl.validation import validate

__all__ = [
    "ChangeCheck",
    "Report",
    "ShapeCost",
    "check_report",
    "first_refusing",
    "is_advice",
    "shape_costs",
    "terms_from_texts",
    "texts_of_terms",
]

# How much validating a node may take at most, told from the shapes: meanwhile nothing could interrupt it.

_CHARACTERS_A_TEST = 50  # of what a constraint compares with


@dataclass(frozen=True, slots=True)
class ShapeCost:
    """steps: the longest chain of properties that is followed from a node, a repeated one counting as two.
    Of triples that are all joined with each other, a query may find as many rows as there are chains: so
    many triples to the power of half the steps. tests: how many constraints, those of shapes within it each
    time that they are used.
    """

    steps: int
    tests: int


def shape_costs(shapes: Shapes) -> Mapping[Node, ShapeCost]:
    """Of each shape."""
    costs: dict[Node, ShapeCost] = {}
    for node, shape in shapes.by_node.items():  # each behind those that it refers to
        inner = [costs[other] for each in shape.constraints for other in nodes_in(each)]
        costs[node] = ShapeCost(
            _path_steps(shape.path) + max((each.steps for each in inner), default=0),
            1 + sum(map(_tests, shape.constraints)) + sum(each.tests for each in inner),
        )
    return costs


def _tests(constraint: Constraint) -> int:
    match constraint:
        case InConstraint():
            compared = sum(len(str(member)) for member in constraint.members)
        case LanguageInConstraint():
            compared = sum(map(len, constraint.ranges))
        case PatternConstraint():
            compared = len(constraint.pattern)
        case _:
            compared = 0
    return 1 + compared // _CHARACTERS_A_TEST


def _path_steps(path: Path | None) -> int:
    match path:
        case None:
            return 0
        case PredicatePath():
            return 1
        case InversePath():
            return _path_steps(path.path)
        case SequencePath():
            return sum(map(_path_steps, path.steps))
        case AlternativePath():
            return max(map(_path_steps, path.paths))
        case RepeatedPath():
            return 2 * _path_steps(path.path)


# What decides whether a write may be stored: the report of the state that it leaves behind.

_RESULTS_MAX = 100
_ADVISORY = frozenset({sh("Warning"), sh("Info")})
_ADVISORY_IRIS = frozenset(severity.value for severity in _ADVISORY)


def check_report(
    store: Store,
    data_graph: DataGraphName,
    shapes: Shapes,
    focus: Iterable[Term] | None,
    clock: Callable[[], float],
) -> dict[str, Any]:
    """The report as the interface has it, with 100 results at most, those that are more than advice first.

    The stats count all of them. clock tells seconds. Raises EvaluationFailed.
    """
    began = clock()
    report = validate(store, data_graph, shapes, focus=focus)
    ranked = sorted(report.results, key=lambda result: result.severity in _ADVISORY)
    return {
        "conforms": report.conforms,
        "results": [result_json(result) for result in islice(ranked, _RESULTS_MAX)],
        "stats": stats_json(report, round((clock() - began) * 1000)),
    }


def first_refusing(report: Mapping[str, Any]) -> Mapping[str, str | None] | None:
    """The first result for which a write is refused: sh:Warning and sh:Info are advice, all else refuses."""
    first = next(iter(report["results"]), None)
    return None if first is None or is_advice(first) else first


def is_advice(result: Mapping[str, str | None]) -> bool:
    """Whether a write may be stored in spite of a result."""
    return result["severity"] in _ADVISORY_IRIS


def texts_of_terms(terms: Iterable[Term]) -> list[str]:
    """Terms as N-Triples writes them, blank nodes by the labels that they have in the store."""
    return [f"<<( {term} )>>" if isinstance(term, Triple) else str(term) for term in terms]


def terms_from_texts(texts: Iterable[str]) -> list[Term]:
    """What `texts_of_terms` was given."""
    lines = "".join(f"<urn:a> <urn:a> {text} .\n" for text in texts)
    return [quad.object for quad in parse(lines.encode(), RdfFormat.N_TRIPLES, rename_blank_nodes=False)]


# `ChangeCheck`: what shapes say of the nodes that a change has affected, in the state behind the change.
#
# What decides about a few of them is gathered and validated here, in a millisecond or two; all else is for
# whoever can end it.

_FOCUS_MAX = 200  # nodes that are validated here
_LOOKUPS_MAX = 2_000  # for what decides about them
_QUADS_MAX = 5_000
_TESTS_MAX = 200  # of constraints, each some 0.1 ms
_ROWS_MAX = 500_000  # that a query may find at worst, some tenths of a second
_FOCUS_APART_MAX = 50_000  # of more than these, all targets are validated

Report: TypeAlias = Mapping[str, Any]  # as `graphdb.shacl.change_check.check_report` makes it


class ChangeCheck:
    """Made once for shapes, then asked of many changes."""

    def __init__(self, shapes: Shapes, clock: Callable[[], float]) -> None:
        """clock tells seconds."""
        self.shapes, self._clock = shapes, clock
        self._is_local = is_local(shapes.by_node.values())
        self._costs = shape_costs(shapes)

    def report(
        self,
        after: QuadSource,
        change: ChangeSet,
        data_graph: DataGraphName,
        validate_apart: Callable[[Iterable[Term] | None], Report],
    ) -> Report | None:
        """The report of the nodes that the change, of which `after` is the state behind, may have made
        invalid; None where there are none.

        validate_apart validates these nodes, or for None all targets, where that may take long.
        """
        nodes = affected(self.shapes, change, after, data_graph) if self.shapes.targeted else ()
        if not nodes:
            return None
        report = self._report_here(after, nodes, data_graph)
        if report is None:
            report = validate_apart(None if nodes == ALL or len(nodes) > _FOCUS_APART_MAX else nodes)
        return report

    def _report_here(self, after: QuadSource, nodes: Affected, data_graph: DataGraphName) -> Report | None:
        """The report of a few nodes; None where too much decides about them, or nobody knows what."""
        if nodes == ALL or len(nodes) > _FOCUS_MAX or not self._is_local:
            return None
        around = Neighbourhood(self.shapes, after, data_graph, lookups_max=_LOOKUPS_MAX, quads_max=_QUADS_MAX)
        targets: dict[Node, set[Term]] = {}
        try:
            for shape in self.shapes.targeted:
                if found := around.targets_among(shape, nodes):
                    targets[shape.node] = found
                    around.add(shape, found)
        except TooMuch:
            return None
        quads = [Quad(quad.subject, quad.predicate, quad.object) for quad in around.quads]
        if not self._is_quick(targets, len(quads)):
            return None
        store = Store()
        store.extend(quads)
        focus = set().union(*targets.values())
        return check_report(store, None, self.shapes.only(targets), focus, self._clock)

    def _is_quick(self, shapes: Iterable[Node], quads: int) -> bool:
        """Whether validating so many quads against these shapes surely ends soon."""
        costs = [self._costs[node] for node in shapes]
        steps = max((cost.steps for cost in costs), default=0)
        return sum(cost.tests for cost in costs) <= _TESTS_MAX and quads ** (steps / 2) <= _ROWS_MAX
