"""The evaluation cases of the W3C SPARQL suites, run through the service's own paths, and results compared.

Queries go through our parser, `QuadStore` and the result writers, and what was written is read back; updates
go through our parser, `plan_update` and `QuadStore.apply`. Results are compared up to blank node labels: a
table of solutions is turned into a graph with a blank node for each row, and graphs are canonicalized.
"""

import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO, StringIO
from itertools import count
from pathlib import Path
from typing import TypeAlias

from pyoxigraph import (
    BlankNode,
    DefaultGraph,
    Literal,
    NamedNode,
    Quad,
    QueryBoolean,
    QueryResultsFormat,
    QuerySolutions,
    QueryTriples,
    RdfFormat,
    Store,
    Triple,
    parse,
    parse_query_results,
)

from graphdb.rdf.canonical import canonical_lines
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import parse_query, parse_update
from graphdb.sparql.results import Answer, ResultFormat, write_answer
from graphdb.sparql.syntax import Query
from graphdb.store.overlay import Overlay
from graphdb.store.quad_store import QuadStore
from graphdb.store.stored_form import stored_form
from graphdb.updates.planner import UpdateContext, plan_update
from tests.conformance.manifests import MF, Case, Files, iri_of, path_of, read_manifest, suite_root

__all__ = [
    "QUERY_KINDS",
    "UPDATE_KINDS",
    "Outcome",
    "agree",
    "case_store",
    "evaluation_cases",
    "outcome_of",
    "run_query_case",
    "run_update_case",
]

QUERY_KINDS = {"QueryEvaluationTest", "CSVResultFormatTest"}
UPDATE_KINDS = {"UpdateEvaluationTest"}

Term: TypeAlias = NamedNode | BlankNode | Literal | Triple
Row: TypeAlias = dict[str, Term]
Outcome: TypeAlias = bool | list[Quad]  # an ASK's answer, a graph or dataset, or a table made into a graph

RS = "http://www.w3.org/2001/sw/DataAccess/tests/result-set#"
FORMATS = {
    ".srx": (ResultFormat.XML, QueryResultsFormat.XML),
    ".srj": (ResultFormat.JSON, QueryResultsFormat.JSON),
    ".tsv": (ResultFormat.TSV, QueryResultsFormat.TSV),
}
RDF_FORMATS = {
    ".ttl": RdfFormat.TURTLE,
    ".rdf": RdfFormat.RDF_XML,
    ".nt": RdfFormat.N_TRIPLES,
    ".trig": RdfFormat.TRIG,
    ".nq": RdfFormat.N_QUADS,
}


@lru_cache(maxsize=1)
def evaluation_cases() -> dict[str, Case]:
    """The evaluation cases by short name: folder and fragment, such as "sparql11/bind#bind01"."""
    root = suite_root()
    if root is None:
        return {}
    sparql = root / "w3c-rdf-tests" / "sparql"
    found = {}
    for suite in ("sparql10", "sparql11", "sparql12"):
        for case in read_manifest(sparql / suite / "manifest.ttl"):
            if case.kinds & (QUERY_KINDS | UPDATE_KINDS):
                folder = case.manifest.parent.relative_to(sparql).as_posix()
                found[f"{folder}#{case.iri.rpartition('#')[2]}"] = case
    return found


@dataclass(frozen=True)
class _Shape:
    """What of a table counts: the order of its rows; and, unless lax (REDUCED), how often each comes."""

    ordered: bool
    lax: bool


def agree(ours: Outcome, expected: Outcome, *, by_value: bool = False) -> bool:
    """Whether two results are the same; by_value takes numbers and dates written differently for the same."""
    if isinstance(ours, bool) or isinstance(expected, bool):
        return ours is expected
    if by_value:
        ours, expected = list(stored_form(ours)), list(stored_form(expected))
    return canonical_lines(ours) == canonical_lines(expected)


def run_query_case(case: Case) -> tuple[Outcome, Outcome]:
    """The result that we give and the one expected."""
    assert case.action.query is not None
    assert case.result is not None
    assert case.result.file is not None
    expected = case.result.file
    text = case.action.query.read_text("utf-8")
    query = parse_query(text, iri_of(case.action.query))
    store = case_store(case.action, query)
    answer = QuadStore(store).query(query, Dataset())
    shape = _Shape(ordered=bool(query.modifiers.order_by), lax=MF + "resultCardinality" in case.properties)
    return _outcome(answer, expected.suffix, shape), _expected(
        expected, shape, isinstance(answer, QueryTriples)
    )


def case_store(files: Files, query: Query) -> Store:
    """The data of a query's case, with the graphs that its FROM clauses name."""
    store = _store(files)
    for clause in query.dataset:
        _load(store, path_of(clause.graph.value), NamedNode(clause.graph.value))
    return store


def outcome_of(answer: Answer, *, ordered: bool) -> Outcome:
    """An answer, written and read back, for comparing."""
    return _outcome(answer, ".srj", _Shape(ordered=ordered, lax=False))


def run_update_case(case: Case) -> tuple[Outcome, Outcome]:
    """The dataset that we make and the one expected."""
    assert case.action.request is not None
    assert case.result is not None
    update = parse_update(case.action.request.read_text("utf-8"), iri_of(case.action.request))
    store = QuadStore(_store(case.action))
    labels = count()
    context = UpdateContext(lambda: BlankNode(f"fresh{next(labels)}"))
    store.apply(plan_update(update, Overlay(store), Dataset(), context))
    expected = QuadStore(_store(case.result))
    return list(store.dataset_quads()), list(expected.dataset_quads())


def _store(files: Files) -> Store:
    store = Store()
    for path in files.data:
        _load(store, path, DefaultGraph())
    for name, path in files.graphs:
        _load(store, path, NamedNode(name))
    return store


def _load(store: Store, path: Path, graph: NamedNode | DefaultGraph) -> None:
    for quad in _parse(path):
        if isinstance(quad.graph_name, DefaultGraph):
            quad = Quad(quad.subject, quad.predicate, quad.object, graph)
        store.add(quad)
    if isinstance(graph, NamedNode):
        store.add_graph(graph)


def _parse(path: Path) -> Iterator[Quad]:
    return parse(
        path=str(path), format=RDF_FORMATS[path.suffix], base_iri=iri_of(path), rename_blank_nodes=True
    )


def _outcome(answer: Answer, suffix: str, shape: _Shape) -> Outcome:
    """Our answer, written in the format of the expected one where it has one, and read back."""
    written = BytesIO()
    if isinstance(answer, QueryTriples):
        write_answer(answer, ResultFormat.N_TRIPLES, written.write)
        return list(parse(written.getvalue(), format=RdfFormat.N_TRIPLES))
    if suffix == ".csv":
        write_answer(answer, ResultFormat.CSV, written.write)
        return _read_csv(written.getvalue().decode())
    ours, theirs = FORMATS.get(suffix, FORMATS[".srj"])
    write_answer(answer, ours, written.write)
    return _read_results(written.getvalue(), theirs, shape)


def _expected(path: Path, shape: _Shape, is_graph: bool) -> Outcome:
    if path.suffix == ".csv":
        return _read_csv(path.read_text("utf-8"))
    if path.suffix in FORMATS:
        return _read_results(path.read_bytes(), FORMATS[path.suffix][1], shape)
    if is_graph:
        return list(_parse(path))
    return _read_result_set(path, shape)


def _read_results(written: bytes, results_format: QueryResultsFormat, shape: _Shape) -> Outcome:
    results = parse_query_results(written, format=results_format)
    if isinstance(results, QueryBoolean):
        return bool(results)
    assert isinstance(results, QuerySolutions)
    names = [variable.value for variable in results.variables]
    rows = [
        {name: term for name, term in zip(names, solution, strict=True) if term is not None}
        for solution in results
    ]
    return _table(names, rows, shape)


def _read_result_set(path: Path, shape: _Shape) -> Outcome:
    """A result written in RDF with the vocabulary of the SPARQL 1.0 suite."""
    store = Store()
    _load(store, path, DefaultGraph())
    boolean = next(store.quads_for_pattern(None, NamedNode(RS + "boolean"), None), None)
    if boolean is not None:
        return boolean.object == Literal(True)
    names = [_text(q.object) for q in store.quads_for_pattern(None, NamedNode(RS + "resultVariable"), None)]
    rows: list[tuple[int, Row]] = []
    for solution in store.quads_for_pattern(None, NamedNode(RS + "solution"), None):
        row: Row = {}
        for binding in store.quads_for_pattern(_node(solution.object), NamedNode(RS + "binding"), None):
            row[_text(_object(store, binding.object, "variable"))] = _object(store, binding.object, "value")
        index = _object(store, solution.object, "index") if shape.ordered else Literal(0)
        rows.append((int(_text(index)), row))
    return _table(names, [row for _, row in sorted(rows, key=lambda pair: pair[0])], shape)


def _text(term: Term) -> str:
    assert not isinstance(term, Triple)
    return term.value


def _node(term: Term) -> BlankNode:
    assert isinstance(term, BlankNode)
    return term


def _object(store: Store, subject: Term, name: str) -> Term:
    return next(store.quads_for_pattern(_node(subject), NamedNode(RS + name), None)).object


def _read_csv(text: str) -> Outcome:
    """CSV loses the kinds of terms but blank nodes: the cells are compared as texts."""
    names, *table = csv.reader(StringIO(text))
    rows: list[Row] = [
        {
            name: BlankNode(cell.removeprefix("_:")) if cell.startswith("_:") else Literal(cell)
            for name, cell in zip(names, cells, strict=True)
            if cell
        }
        for cells in table
    ]
    return _table(names, rows, _Shape(ordered=False, lax=False))


def _table(names: Iterable[str], rows: Iterable[Row], shape: _Shape) -> list[Quad]:
    """A table as a graph: a blank node for each row, with its place if the order counts."""
    quads = [Quad(NamedNode("t:table"), NamedNode("t:variable"), Literal(name)) for name in names]
    if shape.lax:
        rows = {tuple(sorted(row.items(), key=str)): row for row in rows}.values()
    for place, row in enumerate(rows):
        node = BlankNode(f"row-{place}-of-the-table")
        quads.append(Quad(node, NamedNode("t:place"), Literal(place if shape.ordered else 0)))
        quads += (Quad(node, NamedNode(f"t:{name}"), term) for name, term in row.items())
    return quads
