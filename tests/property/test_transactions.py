"""Committed transactions have the effect, and have read the answers, of running one after another."""

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import BlankNode, Literal, NamedNode, Quad, QuerySolutions, Store

from graphdb.config.limits import GateLimits
from graphdb.model import ChangeSet
from graphdb.planning.gate import read_query, read_update
from graphdb.sparql.dataset import Dataset
from graphdb.store.overlay import Overlay
from graphdb.store.quad_store import QuadStore
from graphdb.transactions.changes import RecordingOverlay, TransactionCommit, Wanted
from graphdb.transactions.read_set import ReadSet
from graphdb.updates.planner import UpdateContext, plan_update

CONTEXT = UpdateContext(fresh_blank_node=lambda: BlankNode())
UPDATES = [
    "INSERT DATA { <urn:a> <urn:p> 1 }",
    "DELETE DATA { <urn:a> <urn:p> 1 }",
    "INSERT DATA { GRAPH <urn:g> { <urn:a> <urn:q> 2 } }",
    "DELETE DATA { GRAPH <urn:g> { <urn:a> <urn:q> 2 } }",
    "DELETE { ?s <urn:p> ?o } INSERT { ?s <urn:p> ?n } WHERE { ?s <urn:p> ?o BIND (?o + 1 AS ?n) }",
    "INSERT { ?s <urn:q> ?o } WHERE { ?s <urn:p> ?o }",
    "DELETE WHERE { ?s <urn:q> ?o }",
    "INSERT { <urn:b> <urn:p> 5 } WHERE { FILTER NOT EXISTS { ?s <urn:q> ?o } }",
    "INSERT { GRAPH ?g { <urn:b> <urn:p> 7 } } WHERE { GRAPH ?g { ?s <urn:q> ?o } }",
    "DROP SILENT GRAPH <urn:g>",
    "COPY SILENT <urn:g> TO <urn:h>",
    "CREATE SILENT GRAPH <urn:h>",
    "INSERT { <urn:c> <urn:p> ?n } WHERE { SELECT (COUNT(*) AS ?n) { ?s ?p ?o } }",
    "CLEAR DEFAULT ; INSERT DATA { <urn:a> <urn:p> 9 }",
]
QUERIES = [
    "SELECT * { ?s <urn:p> ?o }",
    "SELECT * { ?s <urn:q>/<urn:p> ?o }",
    "SELECT * { GRAPH ?g { } }",
    "SELECT * { GRAPH ?g { ?s ?p ?o } }",
    "SELECT (SUM(?o) AS ?n) { <urn:a> ?p ?o }",
    "SELECT * { ?s <urn:p>* ?o }",
    "SELECT * { GRAPH ?g { OPTIONAL { ?s <urn:q> ?o } } }",
]


@dataclass
class Running:
    """A transaction, as a node keeps it."""

    began: int
    store: QuadStore
    wanted: Wanted = field(default_factory=lambda: Wanted(10_000))
    reads: ReadSet = field(default_factory=ReadSet)
    done: list[tuple[str, object]] = field(default_factory=list)  # texts, and what was answered

    def update(self, text: str) -> None:
        update, state = read_update(text, None, GateLimits()), RecordingOverlay(self.store)
        self.reads.note_update(update, has_dataset=False, unites_graphs=False)
        change = plan_update(update, state, Dataset(), CONTEXT)
        self.wanted.take_change(change, state.looked_at)
        self.store.apply(change)
        self.done.append((text, None))

    def ask(self, text: str) -> None:
        query = read_query(text, None, GateLimits())
        self.reads.note_query(query, has_dataset=False, unites_graphs=False)
        self.done.append((text, answer(self.store, text)))


def answer(store: QuadStore, text: str) -> object:
    found = store.query(read_query(text, None, GateLimits()), Dataset())
    assert isinstance(found, QuerySolutions)
    return sorted(str(list(row)) for row in found)


def copy_of(store: QuadStore) -> QuadStore:
    copied = Store()
    copied.extend(store.dataset_quads())
    for graph in store.named_graphs():
        copied.add_graph(graph)
    return QuadStore(copied)


def contents(store: QuadStore) -> tuple[set[Quad], set[object]]:
    return set(store.dataset_quads()), set(store.named_graphs())


def begun() -> QuadStore:
    store = QuadStore(Store())
    first = Quad(NamedNode("urn:a"), NamedNode("urn:p"), Literal(1))
    store.apply(ChangeSet(added=(first,)))
    return store


STEPS = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from(["update", "update", "ask", "commit"]), st.integers(0, 100)),
    max_size=25,
)


@given(STEPS)
def test_committed_transactions_are_serializable(steps: list[tuple[int, str, int]]) -> None:
    store, log = begun(), list[ChangeSet]()
    open_ones: dict[int, Running] = {}
    committed: list[Running] = []
    for number, what, choice in steps:
        running = open_ones.get(number)
        if running is None:
            running = open_ones[number] = Running(len(log), copy_of(store))
        if what == "update":
            running.update(UPDATES[choice % len(UPDATES)])
        elif what == "ask":
            running.ask(QUERIES[choice % len(QUERIES)])
        else:
            del open_ones[number]
            commit = TransactionCommit(
                running.began, running.reads.patterns, running.wanted.quads, running.wanted.graphs
            )
            commit = TransactionCommit.decode(commit.encode())
            if any(map(commit.read_set.is_touched_by, log[commit.read_at :])):
                continue
            change = commit.plan(Overlay(store))
            store.apply(change)
            log.append(change)
            committed.append(running)
    serial = begun()
    for running in committed:
        for text, told in running.done:
            if told is None:
                update = read_update(text, None, GateLimits())
                serial.apply(plan_update(update, Overlay(serial), Dataset(), CONTEXT))
            else:
                assert answer(serial, text) == told, text
    assert contents(serial) == contents(store)
