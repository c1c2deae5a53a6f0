"""Random updates through parser, planning and ChangeSet against the engine's own `update`.

The engine differs from us on purpose in these points, which `by_the_engine` evens out:
- COPY, MOVE and ADD of a graph that does not exist: nothing to it, an error to us (SPARQL 1.1 Update, section
  3.2); with SILENT we leave everything as it was.
- COPY, MOVE and ADD of an empty graph: the target comes into being.
"""

from itertools import count

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyoxigraph import BlankNode, NamedNode, Store

from graphdb.errors import RequestError
from graphdb.rdf.canonical import canonical_lines
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import parse_update
from graphdb.store.overlay import Overlay
from graphdb.store.quad_store import QuadStore
from graphdb.updates.planner import UpdateContext, plan_update
from tests.property.twin import Twin, store_of, twin_of, twins
from tests.property.update_texts import OperationText, requests


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(twins, st.lists(requests, min_size=1, max_size=2))
def test_updates_do_what_the_engine_does(state: Twin, wanted: list[list[OperationText]]) -> None:
    store = store_of(state)
    labels = count()
    context = UpdateContext(lambda: BlankNode(f"fresh{next(labels)}"))
    for operations in wanted:
        before = twin_of(store)
        expected = by_the_engine(before, operations)
        update = parse_update(joined(operations))
        try:
            change = plan_update(update, Overlay(store), Dataset(), context)
        except RequestError:
            assert expected is None
            continue
        assert expected is not None
        assert twin_of(store) == before, "planning changes nothing"
        store.apply(change)
        after = twin_of(store)
        assert after.graphs == expected.graphs
        assert canonical_lines(after.quads) == canonical_lines(expected.quads)
        assert change.affected_triples == len(before.quads ^ after.quads)
        assert set(change.dropped_graphs) == before.graphs - after.graphs
        assert set(change.created_graphs) == after.graphs - before.graphs


def by_the_engine(state: Twin, operations: list[OperationText]) -> Twin | None:
    """The state that the engine makes of it; None where an operation fails."""
    store = Store()
    store.extend(state.quads)
    for graph in state.graphs:
        store.add_graph(graph)
    for operation in operations:
        if operation.source and not store.contains_named_graph(name(operation.source)):
            if operation.source == operation.target or operation.silent:
                continue
            return None
        try:
            store.update(operation.text)
        except RuntimeError:
            return None
        if operation.target and operation.source is not None:
            store.add_graph(name(operation.target))
    return twin_of(QuadStore(store))


def joined(operations: list[OperationText]) -> str:
    """One request; a blank node label may stand in one of its operations only."""
    return ";\n".join(operation.text.replace("_:", f"_:n{n}") for n, operation in enumerate(operations))


def name(written: str) -> NamedNode:
    return NamedNode(written.removeprefix("<").removesuffix(">"))
