"""What decides whether a write may be stored: the report of the state that it leaves behind."""

from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any

from pyoxigraph import RdfFormat, Store, Triple, parse

from graphdb.shacl.data_graph import DataGraphName
from graphdb.shacl.report import result_json, stats_json
from graphdb.shacl.shapes import Shapes
from graphdb.shacl.validation import validate
from graphdb.shacl.vocabulary import Term, sh

__all__ = ["check_report", "first_refusing", "is_advice", "terms_from_texts", "texts_of_terms"]

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
