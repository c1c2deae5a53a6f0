"""The store beyond single changes: datasets, failures, copies."""

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyoxigraph import (
    BlankNode,
    DefaultGraph,
    Literal,
    NamedNode,
    Quad,
    QueryBoolean,
    QuerySolutions,
    RdfFormat,
    Store,
    Triple,
    parse,
)

from graphdb.errors import CorruptionError, EvaluationFailed, StorageFull, UnknownGraph
from graphdb.model import ChangeSet
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.parser import parse_query
from graphdb.store import apply
from graphdb.store.engine_errors import request_failure, request_failures, storage_failures
from graphdb.store.overlay import Overlay
from graphdb.store.quad_store import QuadStore

P, G, H = (NamedNode(f"http://example.org/{name}") for name in "pgh")


def quad(name: str, graph: NamedNode | BlankNode | None = None) -> Quad:
    subject = NamedNode(f"http://example.org/{name}")
    return Quad(subject, P, Literal(name), graph) if graph else Quad(subject, P, Literal(name))


def names(store: QuadStore, text: str, dataset: Dataset | None = None) -> list[str]:
    answer = store.query(parse_query(text), dataset or Dataset())
    assert isinstance(answer, QuerySolutions)
    return sorted(row[0].value for row in answer)


DEFAULT = "SELECT ?o {} {{ ?s ?p ?o }}"
NAMED = "SELECT ?o {} {{ GRAPH ?g {{ ?s ?p ?o }} }}"
FROM = "FROM <http://example.org/g>"
FROM_NAMED = "FROM NAMED <http://example.org/g>"

DATASETS = {
    "the store's own": (DEFAULT, "", Dataset(), False, ["d"]),
    "union": (DEFAULT, "", Dataset(), True, ["d", "g", "h"]),
    "FROM": (DEFAULT, FROM, Dataset(), False, ["g"]),
    "FROM over union": (DEFAULT, FROM, Dataset(), True, ["g"]),
    "FROM leaves no named graph": (NAMED, FROM, Dataset(), False, []),
    "FROM NAMED leaves no default graph": (DEFAULT, FROM_NAMED, Dataset(), True, []),
    "FROM NAMED": (NAMED, FROM_NAMED, Dataset(), False, ["g"]),
    "protocol over FROM": (DEFAULT, FROM, Dataset((H,)), False, ["h"]),
    "protocol over FROM NAMED": (NAMED, FROM_NAMED, Dataset((), (H,)), False, ["h"]),
    "protocol's default graphs merge": (DEFAULT, "", Dataset((G, H)), False, ["g", "h"]),
}


@pytest.mark.parametrize(
    ("text", "clause", "dataset", "union", "expected"), DATASETS.values(), ids=list(DATASETS)
)
def test_dataset(text: str, clause: str, dataset: Dataset, union: bool, expected: list[str]) -> None:
    store = Store()
    store.extend([quad("d"), quad("g", G), quad("h", H)])
    assert names(QuadStore(store, union_default_graph=union), text.format(clause), dataset) == expected


def test_an_answer_is_of_the_moment_of_its_query() -> None:
    store = QuadStore(Store())
    store.apply(ChangeSet(added=(quad("before"),)))
    answer = store.query(parse_query(DEFAULT.format("")), Dataset())
    store.apply(ChangeSet(added=(quad("after"),)))
    assert isinstance(answer, QuerySolutions)
    assert [row[0] for row in answer] == [Literal("before")]


def test_what_the_engine_refuses() -> None:
    store = QuadStore(Store())
    with pytest.raises(EvaluationFailed, match="not supported"):
        store.query(parse_query("ASK { FILTER(<http://example.org/unknown>(1)) }"), Dataset())
    with pytest.raises(UnknownGraph):
        store.graph_quads(G)
    assert isinstance(store.query(parse_query("ASK {}"), Dataset()), QueryBoolean)


def test_damage_that_a_request_meets_is_no_fault_of_the_request(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.bulk_extend(quad(f"{number:060}") for number in range(2_000))
    store.optimize()
    store.flush()
    del store
    gc.collect()
    for table in tmp_path.glob("*.sst"):
        data = bytearray(table.read_bytes())
        data[len(data) // 4] ^= 16
        table.write_bytes(data)
    with pytest.raises(CorruptionError, match="checksum"), request_failures():
        list(Store(tmp_path))


def test_a_panic_is_an_error() -> None:
    panic = type("PanicException", (BaseException,), {})
    assert isinstance(request_failure(panic("index out of bounds")), EvaluationFailed)
    assert request_failure(KeyboardInterrupt()) is None
    with pytest.raises(CorruptionError), storage_failures():
        raise panic("index out of bounds")
    with pytest.raises(StorageFull), storage_failures():
        raise OSError("IO error: No space left on device: While appending to file")


@pytest.fixture(params=["memory", "disk"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> QuadStore:
    if request.param == "memory":
        return QuadStore(Store())
    (tmp_path / "scratch").mkdir()
    return QuadStore(Store(tmp_path / "store"), scratch_directory=tmp_path / "scratch")


@pytest.mark.parametrize("size", [1, 3, 1500], ids="{} quads a part".format)
def test_a_stream_that_fails_changes_nothing(store: QuadStore, size: int) -> None:
    store.apply(ChangeSet(added=(quad("old"), quad("g", G))))

    def broken(*, removes: bool) -> Iterator[ChangeSet]:
        for number in range(2):
            quads = tuple(quad(f"{number}-{place}") for place in range(size))
            yield ChangeSet(removed=(quad("old"), *quads)) if removes else ChangeSet(added=quads)
        raise CorruptionError("cut", "part 3")

    for removes in (True, False):
        with pytest.raises(CorruptionError, match="part 3"):
            store.apply_many(broken(removes=removes))
        assert set(store.dataset_quads()) == {quad("old"), quad("g", G)}
        assert list(store.named_graphs()) == [G]


def test_a_long_mixed_stream(store: QuadStore) -> None:
    before = [quad(f"old{number}", G) for number in range(2500)]
    after = [quad(f"new{number}") for number in range(2500)]
    store.apply(ChangeSet(added=tuple(before)))
    store.apply_many(
        ChangeSet(removed=tuple(before[at : at + 1000]), added=tuple(after[at : at + 1000]))
        for at in (0, 1000, 2000)
    )
    assert set(store.dataset_quads()) == set(after)


@pytest.mark.parametrize(("quads_max", "chars_max"), [(0, 0), (1, 10_000), (4, 10_000), (100, 10)])
def test_some_quads_as_text_and_some_by_functions(
    monkeypatch: pytest.MonkeyPatch, store: QuadStore, quads_max: int, chars_max: int
) -> None:
    monkeypatch.setattr(apply, "WRITTEN_QUADS_MAX", quads_max)
    monkeypatch.setattr(apply, "WRITTEN_CHARS_MAX", chars_max)
    nodes: list[NamedNode | BlankNode] = [P, BlankNode("b")]
    graphs: list[NamedNode | BlankNode | DefaultGraph] = [DefaultGraph(), G, BlankNode("g")]
    objects: list[NamedNode | BlankNode | Triple | Literal] = [
        P,
        BlankNode("b"),
        Triple(P, P, BlankNode("b")),
        Literal('\\u0041"\n', language="de"),
    ]
    old = [Quad(node, P, object_, graph) for node in nodes for graph in graphs for object_ in objects]
    new = [Quad(each.subject, G, each.object, each.graph_name) for each in old]
    store.apply(ChangeSet((), tuple(old)))
    store.apply(ChangeSet(tuple(old[1:]), tuple(new)))
    assert set(store.dataset_quads()) == {old[0], *new}


def test_terms_that_the_engine_does_not_read(store: QuadStore) -> None:
    (odd,) = parse("<http://example.org/a b> <x:p> <x:o> .", format=RdfFormat.N_QUADS, lenient=True)
    store.apply(ChangeSet((), (odd, quad("a"))))
    store.apply(ChangeSet((odd,), (quad("b"),)))
    assert set(store.dataset_quads()) == {quad("a"), quad("b")}


def test_graphs_named_by_blank_nodes(store: QuadStore) -> None:
    graph = BlankNode("graph")
    change = ChangeSet(added=(quad("g", graph),), created_graphs=(graph, BlankNode("empty")))
    undo = ChangeSet(removed=change.added, dropped_graphs=change.created_graphs)
    for _ in range(2):
        store.apply(change)
        assert set(store.named_graphs()) == {graph, BlankNode("empty")}
    for _ in range(2):
        store.apply(undo)
        assert not list(store.named_graphs())
        assert not list(store.dataset_quads())


@pytest.mark.parametrize("most", [0, 10_000])
def test_a_dropped_graph_of_any_size(store: QuadStore, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(apply, "DROPPED_QUADS_MAX", most)
    stays = {quad("stays"), quad("stays", H)}
    old = (quad("gone", G), Quad(BlankNode(), P, Triple(BlankNode(), P, BlankNode()), G))
    store.apply(ChangeSet(added=(*stays, *old), created_graphs=(G, H)))
    for _ in range(2):
        store.apply_many(iter([ChangeSet(old[:1], (), (G,)), ChangeSet(old[1:], (quad("new"),))]))
        assert set(store.dataset_quads()) == {*stays, quad("new")}
        assert set(store.named_graphs()) == {H}


def test_replay_takes_the_name_that_a_crash_has_left(
    store: QuadStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apply, "DROPPED_QUADS_MAX", 0)
    store.apply(ChangeSet(created_graphs=(G, H)))  # the quads of G are gone already
    store.apply(ChangeSet(removed=(quad("gone", G),), dropped_graphs=(G,)))
    assert set(store.named_graphs()) == {H}


def test_a_request_on_a_scratch_copy(store: QuadStore, tmp_path: Path) -> None:
    store.apply(ChangeSet(added=(quad("old"), quad("gone"))))
    with Overlay(store).request() as request:
        request.push(ChangeSet(removed=(quad("gone"),), added=(quad("new", G),), created_graphs=(G, H)))
        answer = request.applied_store().query_text(
            "SELECT ?o { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }", Dataset()
        )
        assert isinstance(answer, QuerySolutions)
        assert sorted(row[0].value for row in answer) == ["new", "old"]
    assert not [place for place in tmp_path.glob("scratch/*")], "the copy is deleted"
    assert set(store.dataset_quads()) == {quad("old"), quad("gone")}


def test_a_checkpoint_is_a_store(tmp_path: Path) -> None:
    store = QuadStore(Store(tmp_path / "store"))
    store.apply(ChangeSet(added=(quad("old"),)))
    store.flush()
    store.checkpoint(tmp_path / "checkpoint")
    store.apply(ChangeSet(added=(quad("new"),)))
    assert list(QuadStore(Store(tmp_path / "checkpoint")).dataset_quads()) == [quad("old")]
