"""Queries for readers, the checkpoint that they are asked on, and what their answers should be."""

from pathlib import Path
from typing import Any

from pyoxigraph import Literal, NamedNode, Quad, Store

from actors.readers.protocol import ReaderTask
from graphdb.sparql.results import ResultFormat, write_answer

__all__ = [
    "CRASHING",
    "DOUBLED",
    "ENDLESS",
    "FEW",
    "GREEDY",
    "MANY",
    "explanation",
    "in_process",
    "make_checkpoint",
    "task",
]

FEW = "SELECT * WHERE { ?s ?p ?o } LIMIT 5"
MANY = "SELECT * WHERE { ?a ?b ?c . ?d ?e ?f }"  # 90,000 rows, about 20 MB
ENDLESS = "SELECT (COUNT(*) AS ?n) WHERE { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l }"
GREEDY = "SELECT * WHERE { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l } ORDER BY ?c ?f ?i"
DOUBLED = (  # a string of 10 TB
    "SELECT (STRLEN(?b40) AS ?n) WHERE { BIND('0123456789' AS ?b0) "
    + " ".join(f"BIND(CONCAT(?b{i}, ?b{i}) AS ?b{i + 1})" for i in range(40))
    + " }"
)
CRASHING = "SELECT * WHERE {" + "{ " * 100_000 + "<urn:a> <urn:a> ?x" + " }" * 100_000 + "}"


def make_checkpoint(directory: Path) -> Path:
    """A checkpoint of 300 triples in the default graph, and one in a named graph."""
    store = Store(str(directory / "store"))
    store.extend(_quad(number) for number in range(300))
    store.add(
        Quad(NamedNode("urn:s"), NamedNode("urn:p"), Literal("ä\r\n", language="de"), NamedNode("urn:g"))
    )
    store.backup(str(directory / "checkpoint"))
    return directory / "checkpoint"


def _quad(number: int) -> Quad:
    return Quad(NamedNode(f"urn:s{number}"), NamedNode(f"urn:p{number % 7}"), Literal(f"o {number % 50}"))


def task(checkpoint: Path, text: str, fmt: ResultFormat = ResultFormat.JSON, **fields: Any) -> ReaderTask:
    """A query on a checkpoint; fields are those of a ReaderTask."""
    given: dict[str, Any] = {
        "operation": "query",
        "text": text,
        "base_iri": None,
        "default_graphs": None,
        "named_graphs": None,
        "union_default_graph": False,
        "format": fmt.value,
        "checkpoint": str(checkpoint),
    }
    return ReaderTask(**(given | fields))


def explanation(checkpoint: Path, text: str, *counted: str) -> ReaderTask:
    """EXPLAIN of a query, which counts what these patterns match."""
    counts = [f"SELECT (COUNT(*) AS ?n) {{ {pattern} }}" for pattern in counted]
    return task(checkpoint, text, operation="explain", count_queries=counts)


def in_process(task: ReaderTask) -> bytes:
    """The naive twin: the same answer without any of it."""
    chunks: list[bytes] = []
    answer = Store.read_only(task.checkpoint).query(
        task.text,
        base_iri=task.base_iri,
        use_default_graph_as_union=task.union_default_graph,
        default_graph=_nodes(task.default_graphs),
        named_graphs=_nodes(task.named_graphs),
    )
    [fmt] = [fmt for fmt in ResultFormat if fmt.value == task.format]
    write_answer(answer, fmt, chunks.append)
    return b"".join(chunks)


def _nodes(iris: list[str] | None) -> Any:
    return None if iris is None else [NamedNode(iri) for iri in iris]
