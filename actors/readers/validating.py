"""A validation from the inside of an evaluator: the task's words put into those of the core."""

from collections.abc import Callable, Iterator

import orjson
from pyoxigraph import NamedNode, Store, Triple

from actors.readers.protocol import ValidationTask
from graphdb.config.limits import GateLimits
from graphdb.rdf.formats import RdfSyntax
from graphdb.rdf.pieces import Sink
from graphdb.shacl.change_check import check_report, terms_from_texts
from graphdb.shacl.data_graph import DataGraphName
from graphdb.shacl.shapes import read_shapes
from graphdb.shacl.validation import (
    answer_validation,
    check_known,
    data_graph_named,
    merged_graphs,
    merged_triples,
    shapes_in_document,
    shapes_in_graph,
)
from graphdb.store.engine_errors import request_failures

__all__ = ["perform"]


def perform(task: ValidationTask, store: Store, sink: Sink, clock: Callable[[], float]) -> None:
    """Validate the store, and hand the report to sink in pieces. clock tells seconds."""
    limits = GateLimits(**task.limits)
    with request_failures():
        if task.is_write_check:
            sink(_write_check(task, store, limits, clock))
        else:
            data, graph = _data(task, store)
            report_syntax = None if task.report_type is None else RdfSyntax.from_media_type(task.report_type)
            answer_validation(data, graph, _shapes(task, store), report_syntax, sink, clock, limits)


def _data(task: ValidationTask, store: Store) -> tuple[Store, DataGraphName]:
    if not isinstance(task.data_graph, str):
        return merged_graphs(map(NamedNode, task.data_graph), store)
    graph = data_graph_named(task.data_graph)
    check_known(graph, store)
    return store, graph


def _shapes(task: ValidationTask, store: Store) -> Iterator[Triple]:
    if isinstance(task.shapes_graph, str):
        return shapes_in_graph(task.shapes_graph, store)
    if task.shapes_graph is not None:
        return merged_triples(map(NamedNode, task.shapes_graph), store)
    return shapes_in_document(task.shapes, RdfSyntax.from_media_type(task.shapes_type))


def _write_check(task: ValidationTask, store: Store, limits: GateLimits, clock: Callable[[], float]) -> bytes:
    """A graph that is to satisfy shapes need not exist, unlike one that somebody asks about."""
    focus = None if task.focus is None else terms_from_texts(task.focus)
    shapes = read_shapes(_shapes(task, store), limits)
    assert isinstance(task.data_graph, str)
    return orjson.dumps(check_report(store, data_graph_named(task.data_graph), shapes, focus, clock))
