"""The report of a validation (SHACL section 3.6), as the interface's JSON and as triples."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from pyoxigraph import BlankNode, Literal, NamedNode, Triple

from graphdb.shacl.engine_terms import term_text
from graphdb.shacl.paths import (
    AlternativePath,
    InversePath,
    Path,
    PredicatePath,
    RepeatedPath,
    SequencePath,
    path_text,
)
from graphdb.shacl.shacl_names import RDF_FIRST, RDF_NIL, RDF_REST, RDF_TYPE, Node, Term, sh

__all__ = [
    "ValidationReport",
    "ValidationResult",
    "report_json",
    "report_triples",
    "result_json",
    "stats_json",
]

_REPEATED = {"*": "zeroOrMorePath", "+": "oneOrMorePath", "?": "zeroOrOnePath"}


@dataclass(frozen=True, slots=True)
class ValidationResult:
    """One thing that is wrong. path and value are None where the result has none; source_constraint is the
    sh:sparql that found it, if one did. messages are one for each language at most, in the shape's order.
    """

    focus_node: Term
    path: Path | None
    value: Term | None
    severity: NamedNode
    messages: tuple[Literal, ...]
    source_shape: Node
    component: NamedNode
    source_constraint: Node | None = None


@dataclass(frozen=True, slots=True)
class ValidationReport:
    """What a validation found.

    focus_nodes_validated counts the nodes that are a target of one shape at least; constraints_checked the
    constraints that apply to these, those of shapes within shapes included, each once.
    """

    results: tuple[ValidationResult, ...]
    focus_nodes_validated: int
    constraints_checked: int

    @property
    def conforms(self) -> bool:
        """False with any result, whatever its severity (SHACL section 3.6.1.1)."""
        return not self.results

    def count(self, severity: NamedNode) -> int:
        """How many results have this severity."""
        return sum(result.severity == severity for result in self.results)


def report_json(report: ValidationReport, duration_ms: int) -> dict[str, Any]:
    """The report as the interface describes it, for a JSON encoder.

    What is no IRI is written so: blank nodes `_:label`, literals as in N-Triples, paths of more than one
    property as in SPARQL. Where there are messages in several languages, the untagged or English one.
    """
    return {
        "conforms": report.conforms,
        "results": [result_json(result) for result in report.results],
        "stats": stats_json(report, duration_ms),
    }


def stats_json(report: ValidationReport, duration_ms: int) -> dict[str, int]:
    """The member `stats` of `report_json`."""
    severities = Counter(result.severity for result in report.results)
    return {
        "focus_nodes_validated": report.focus_nodes_validated,
        "constraints_checked": report.constraints_checked,
        "violations": severities[sh("Violation")],
        "warnings": severities[sh("Warning")],
        "infos": severities[sh("Info")],
        "duration_ms": duration_ms,
    }


def result_json(result: ValidationResult) -> dict[str, str | None]:
    """One of `results` of `report_json`."""
    return {
        "focusNode": _shown(result.focus_node),
        "resultPath": None if result.path is None else _shown_path(result.path),
        "severity": result.severity.value,
        "message": _shown_message(result.messages),
        "sourceShape": _shown(result.source_shape),
        "sourceConstraintComponent": result.component.value,
    }


def _shown(term: Term) -> str:
    return term.value if isinstance(term, NamedNode) else term_text(term)


def _shown_path(path: Path) -> str:
    if isinstance(path, PredicatePath):
        return path.predicate.value
    text = path_text(path)
    return text[1:-1] if isinstance(path, SequencePath | AlternativePath) else text


def _shown_message(messages: tuple[Literal, ...]) -> str:
    def rank(message: Literal) -> int:
        language = message.language or ""
        return 0 if not language else 1 if language == "en" else 2 if language.startswith("en-") else 3

    return min(messages, key=rank).value if messages else ""


def report_triples(report: ValidationReport) -> Iterator[Triple]:
    """The report as RDF (SHACL section 3.6): one sh:ValidationReport. Its own blank nodes are labelled
    report1, report2 and so on, but for labels that the results bring along.
    """
    yield from _Triples(report).triples()


@dataclass(slots=True)
class _Triples:
    report: ValidationReport
    _used: set[str] = field(init=False)
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def __post_init__(self) -> None:
        terms = (
            term
            for result in self.report.results
            for term in (result.focus_node, result.value, result.source_shape, result.source_constraint)
        )
        self._used = {term.value for term in terms if isinstance(term, BlankNode)}

    def triples(self) -> Iterator[Triple]:
        node = self._fresh()
        conforms = Literal(self.report.conforms)
        yield Triple(node, RDF_TYPE, sh("ValidationReport"))
        yield Triple(node, sh("conforms"), conforms)
        for result in self.report.results:
            inner = self._fresh()
            yield Triple(node, sh("result"), inner)
            yield from self._result(inner, result)

    def _result(self, node: BlankNode, result: ValidationResult) -> Iterator[Triple]:
        yield Triple(node, RDF_TYPE, sh("ValidationResult"))
        yield Triple(node, sh("focusNode"), result.focus_node)
        if result.path is not None:
            yield from self._path(node, sh("resultPath"), result.path)
        if result.value is not None:
            yield Triple(node, sh("value"), result.value)
        yield Triple(node, sh("resultSeverity"), result.severity)
        for message in result.messages:
            yield Triple(node, sh("resultMessage"), message)
        yield Triple(node, sh("sourceShape"), result.source_shape)
        yield Triple(node, sh("sourceConstraintComponent"), result.component)
        if result.source_constraint is not None:
            yield Triple(node, sh("sourceConstraint"), result.source_constraint)

    def _path(self, subject: Node, predicate: NamedNode, path: Path) -> Iterator[Triple]:
        """The path as the value of the property."""
        if isinstance(path, PredicatePath):
            yield Triple(subject, predicate, path.predicate)
            return
        if isinstance(path, SequencePath):
            yield from self._list(subject, predicate, path.steps)
            return
        node = self._fresh()
        yield Triple(subject, predicate, node)
        match path:
            case InversePath():
                yield from self._path(node, sh("inversePath"), path.path)
            case AlternativePath():
                yield from self._list(node, sh("alternativePath"), path.paths)
            case RepeatedPath():
                yield from self._path(node, sh(_REPEATED[path.sign]), path.path)

    def _list(self, subject: Node, predicate: NamedNode, paths: tuple[Path, ...]) -> Iterator[Triple]:
        for path in paths:
            node = self._fresh()
            yield Triple(subject, predicate, node)
            yield from self._path(node, RDF_FIRST, path)
            subject, predicate = node, RDF_REST
        yield Triple(subject, predicate, RDF_NIL)

    def _fresh(self) -> BlankNode:
        """A blank node that nothing else of the report has."""
        label = next(label for number in self._numbers if (label := f"report{number}") not in self._used)
        return BlankNode(label)
