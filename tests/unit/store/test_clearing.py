"""Clearing whole graphs: the lines that are logged, and each way in which the engine is told."""

from pathlib import Path

import pytest
from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad, Store

from graphdb.log.payloads import decode_changes, encode_changes, encode_lines
from graphdb.model import ChangeSet, NamedGraph
from graphdb.rdf.quad_lines import ClearedLines, parse_lines
from graphdb.store import apply, clearing
from graphdb.store.clearing import Emptied, clear_lines, is_worth_lines
from graphdb.store.quad_store import QuadStore, Term

G, H, K = (NamedNode(f"urn:{name}") for name in "ghk")
DEFAULT = DefaultGraph()
P = NamedNode("urn:p")
OBJECTS: list[Term] = [
    Literal("a .\nb"),
    Literal("é\t\"'", language="en"),
    Literal("7"),
    BlankNode("o"),
    NamedNode("urn:o"),
]


def quads(graph: NamedGraph | DefaultGraph, blank: bool = True) -> list[Quad]:
    objects = [each for each in OBJECTS if blank or not isinstance(each, BlankNode)]
    return [Quad(NamedNode(f"urn:{number}"), P, each, graph) for number, each in enumerate(objects)]


def store_of(*graphs: tuple[NamedGraph | DefaultGraph, bool], empty: tuple[NamedGraph, ...] = ()) -> Store:
    store = Store()
    for graph, blank in graphs:
        store.extend(quads(graph, blank))
    for name in empty:
        store.add_graph(name)
    return store


CASES: dict[str, tuple[list[tuple[NamedGraph | DefaultGraph, bool]], Emptied]] = {
    "the default graph": ([(DEFAULT, True), (G, True)], Emptied((None,))),
    "all that there is": ([(DEFAULT, True), (G, True)], Emptied((None, G), (G,))),
    "all but names": ([(DEFAULT, True), (G, True), (H, True)], Emptied((None, G, H))),
    "the only named one": ([(DEFAULT, True), (G, True)], Emptied((G,), (G,))),
    "beside few quads": ([(DEFAULT, True), (G, True), (H, False)], Emptied((G,), (G,))),
    "without blank nodes": ([(DEFAULT, True), (G, False), (H, True)], Emptied((G,), (G,))),
    "several": ([(DEFAULT, False), (G, False), (H, True), (K, False)], Emptied((G, None, K), (K,))),
    "beside blank nodes": ([(G, True), (H, True), (K, False)], Emptied((G, K), (K,))),
    "with the default graph": ([(DEFAULT, True), (G, True), (H, True)], Emptied((None, G), (G,))),
    "one that text cannot name": ([(BlankNode("g"), True), (H, True)], Emptied((BlankNode("g"),))),
    "one that is empty": ([(G, True), (H, True)], Emptied((K,), (K,))),
}


@pytest.mark.parametrize("put_back_max", [0, 100])
@pytest.mark.parametrize("case", CASES)
def test_ways(case: str, put_back_max: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(apply, "_PUT_BACK_MAX", put_back_max)
    monkeypatch.setattr(apply, "_PUT_BACK_TIMES", 1)
    there, emptied = CASES[case]
    store, expected = QuadStore(store_of(*there, empty=(K,))), QuadStore(store_of(*there, empty=(K,)))
    change = clear_lines(store, emptied, tmp_path / "lines")
    assert change.removed is not None
    logged = decode_changes(encode_lines(change.removed.read_bytes(), b"", (), change.dropped_graphs))
    expected.apply(logged)
    whole = [*store.dataset_quads()]
    assert set(logged.removed) == {quad for quad in whole if quad.graph_name in change.cleared_graphs}
    cleared = ClearedLines(change.removed, len(logged.removed), change.cleared_graphs, change.dropped_graphs)
    parts = [part for part in cleared]
    assert {quad for part in parts for quad in part.removed} == {*logged.removed}
    for _ in range(2):  # once more changes nothing
        store.apply_many(cleared)
        assert state(store) == state(expected)


def state(store: QuadStore) -> tuple[set[Quad], set[NamedGraph]]:
    return {*store.dataset_quads()}, {*store.named_graphs()}


def operations(there: str, lines: Path, written_max: int, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What the engine is told, in order, to empty a graph beside another one, by the first words."""
    told: list[list[str]] = []

    def note(store: Store, texts: list[str]) -> bool:
        told.append([text.split("{")[0].strip() for text in texts])
        return False

    monkeypatch.setattr(apply, "_PUT_BACK_MAX", 0)
    monkeypatch.setattr(apply, "WRITTEN_QUADS_MAX", written_max)
    monkeypatch.setattr(apply, "_reads", note)
    store = QuadStore(store_of((G, there == "blank"), (H, False)))
    removed = clear_lines(store, Emptied((G,)), lines).removed
    assert removed is not None
    store.apply_many(ClearedLines(removed, removed.read_bytes().count(b"\n"), (G,)))
    return told


def test_which_way_is_the_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    lines = tmp_path / "lines"
    assert operations("named", lines, 4, monkeypatch) == [["DELETE DATA"], ["DELETE WHERE"]]
    assert operations("named", lines, 3, monkeypatch) == [["DELETE WHERE"]]
    assert operations("blank", lines, 100, monkeypatch) == [["DELETE WHERE"]]


@pytest.mark.parametrize("name", ["urn:h", "urn:a b"])
def test_a_term_that_the_engine_does_not_read(name: str, tmp_path: Path) -> None:
    """Graphs are cleared all the same, and the others keep it."""
    odd, named = parse_lines(
        f"<urn:a b> <urn:p> <urn:p> <urn:h> .\n<urn:p> <urn:p> <urn:p> <{name}> .\n".encode()
    )
    inner = store_of((G, False), (DEFAULT, True))
    inner.extend([odd, named])
    store = QuadStore(inner)
    cleared = (G,) if named.graph_name == H else (G, named.graph_name)
    store.apply_many(ClearedLines(tmp_path / "none", 0, cleared))
    assert {quad.graph_name for quad in store.dataset_quads()} == {H, DEFAULT}
    assert store.contains(odd)


def test_lines_are_what_the_log_writes(tmp_path: Path) -> None:
    store = QuadStore(store_of((G, True), (DEFAULT, True)))
    for graph in (G, None):
        lines = clear_lines(store, Emptied((graph,)), tmp_path / "lines").removed
        assert lines is not None
        written = encode_changes(ChangeSet(tuple(store.graph_quads(graph))))
        assert encode_lines(lines.read_bytes(), b"") == written


def test_what_is_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clearing, "CLEARED_QUADS_MIN", 6)
    store = QuadStore(store_of((DEFAULT, True), (G, True), (BlankNode("g"), True)))
    assert is_worth_lines(store, Emptied((None, G)))
    for graphs in ((G,), (None,), (None, H), (G, BlankNode("g")), (None, G) * 501):
        assert not is_worth_lines(store, Emptied(graphs))
