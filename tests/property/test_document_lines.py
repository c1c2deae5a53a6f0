"""Documents, differences and large changes as lines, against the same a quad at a time."""

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import DefaultGraph, Literal, NamedNode, Quad, RdfFormat, Store, Triple, parse, serialize

from graphdb.geo.spatial_index import SpatialIndex
from graphdb.log.payloads import decode_changes, encode_changes, encode_lines, told_affected, told_lines
from graphdb.model import ChangeSet
from graphdb.rdf.canonical import canonical_lines
from graphdb.rdf.formats import RdfSyntax
from graphdb.rdf.quad_lines import AddedLines, ClearedLines, LineChange
from graphdb.rdf.reading import TRIPLE_TERM_DEPTH_MAX, read_quads
from graphdb.store.document_lines import difference, document_lines
from graphdb.store.line_rewriting import Unusual, salted_labels
from graphdb.store.quad_store import QuadStore, Term
from graphdb.store.staging import StagedBody
from tests.property.strategies import GRAPHS, PREDICATES, datasets
from tests.property.twin import Twin, named_graph_of, store_of, twin, twin_of, twins

TARGETS = st.sampled_from([None, *GRAPHS])
TRIPLES_SYNTAXES = st.sampled_from([RdfSyntax.N_TRIPLES, RdfSyntax.TURTLE])
DATASET_SYNTAXES = st.sampled_from([RdfSyntax.N_QUADS, RdfSyntax.TRIG])


@contextmanager
def directory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as path:
        yield Path(path)


def text(quads: Iterable[Quad], syntax: RdfSyntax = RdfSyntax.N_QUADS) -> bytes:
    items = list(quads)
    return (
        serialize(items if syntax.carries_graphs else [q.triple for q in items], format=syntax.rdf_format)
        or b""
    )


def lines_in(path: Path) -> bytes:
    return path.read_bytes()


def assert_same_document(
    body: bytes, syntax: RdfSyntax, graph: NamedNode | None, *, whole_dataset: bool
) -> None:
    """Lines of a document hold what the document does, a quad at a time, and know how much that is."""
    with directory() as place:
        (place / "document").write_bytes(body)
        found = document_lines(
            place / "document",
            syntax,
            place / "lines",
            Store(),
            base_iri=None,
            graph=graph,
            labels=salted_labels(bytes(16)),
        )
        lines = lines_in(place / "lines")
        with StagedBody(
            read_quads(body, syntax), graph=graph, whole_dataset=whole_dataset, directory=None
        ) as plain:
            (part,) = [*plain.parts(QuadStore(Store()), replace=False)] or [ChangeSet()]
            targets = plain.targets
    change = decode_changes(encode_lines(b"", lines))
    assert canonical_lines(change.added) == canonical_lines(part.added)
    assert found.count == part.affected_triples == told_lines(encode_lines(b"", lines))
    if whole_dataset:
        assert len(found.graphs) == len(targets)
        assert {g for g in found.graphs if isinstance(g, NamedNode)} == {
            g for g in targets if isinstance(g, NamedNode)
        }


@given(datasets, TRIPLES_SYNTAXES, TARGETS)
def test_a_document_put_into_one_graph(
    document: list[Quad], syntax: RdfSyntax, graph: NamedNode | None
) -> None:
    # twice: what comes again counts once, and its blank nodes are the same ones
    assert_same_document(text(document, syntax) * 2, syntax, graph, whole_dataset=False)


@given(datasets, DATASET_SYNTAXES)
def test_a_document_that_names_its_graphs(document: list[Quad], syntax: RdfSyntax) -> None:
    assert_same_document(text(document, syntax) * 2, syntax, None, whole_dataset=True)


@given(twins, datasets, st.booleans(), TARGETS, st.booleans())
def test_the_difference(
    before: Twin, document: list[Quad], is_dataset: bool, graph: NamedNode | None, replace: bool
) -> None:
    """With blank nodes that stand in both, which documents over HTTP do not have."""
    if not is_dataset:
        document = [
            Quad(quad.subject, quad.predicate, quad.object, graph or DefaultGraph()) for quad in document
        ]
    wanted = twin(document)
    targets = {named_graph_of(quad) for quad in wanted.quads} if is_dataset else {graph}
    kept = {quad for quad in before.quads if not replace or named_graph_of(quad) not in targets}
    expected = twin(kept | wanted.quads, before.graphs | {name for name in targets if name is not None})
    store = store_of(before)
    filled = [name for name in targets if name is None or name in before.graphs]
    created = tuple(name for name in targets if name is not None and name not in before.graphs)
    with directory() as place:
        (place / "lines").write_bytes(text(wanted.quads))
        added, removed = place / "added", place / "removed" if replace else None
        engine = Store()
        engine.extend(before.quads)

        clears = difference(place / "lines", engine, filled, added, removed)

        old = {quad for quad in before.quads if named_graph_of(quad) in filled}
        assert clears == (replace and not old & wanted.quads)
        if removed is not None and clears:
            new = AddedLines(added, added.read_bytes().count(b"\n"), created)
            graphs = tuple(name or DefaultGraph() for name in filled)
            cleared_store = store_of(before)
            cleared_store.apply_many(ClearedLines(removed, len(old), graphs, added=new))
            assert twin_of(cleared_store) == expected
        change = LineChange(added, removed, created)
        payloads = [encode_lines(*piece) for piece in change.pieces(200)]
        assert change.is_empty == (before == expected)
    parts = [*map(decode_changes, payloads), ChangeSet(created_graphs=created)]
    assert sum(map(told_affected, payloads, parts)) == before.change_to(expected).affected_triples
    store.apply_many(parts)
    assert twin_of(store) == expected


ODD_STRINGS = ["", " ", "a <urn:g> .", '" <urn:g>', ' "x"@en <urn:g> .\n', "<urn:g>", "\\ ^^<urn:g>"]
ODD_OBJECTS: list[Term] = [
    NamedNode("urn:g"),
    *map(Literal, ODD_STRINGS),
    *(Literal(text, datatype=NamedNode("urn:g")) for text in ODD_STRINGS),
    *(Literal(text, language="en") for text in ODD_STRINGS),
]
TRIPLE_TERMS = [Triple(NamedNode("urn:s"), NamedNode("urn:g"), each) for each in ODD_OBJECTS]


def test_triples_of_lines(tmp_path: Path) -> None:
    """A graph is told from the end of an object, whatever that looks like."""
    graphs = (NamedNode("urn:g"), DefaultGraph())
    objects = [*ODD_OBJECTS, *TRIPLE_TERMS]
    quads = [
        Quad(NamedNode("urn:s"), NamedNode("urn:p"), each, graph) for each in objects for graph in graphs
    ]
    (tmp_path / "lines").write_bytes(text(quads))
    runs = [*AddedLines(tmp_path / "lines", len(quads)).triples()]
    assert [graph for _, graph in runs] == [b" <urn:g>", b""] * len(objects)
    triples = [quad.triple for run, _ in runs for quad in parse(run, format=RdfFormat.N_TRIPLES)]
    assert triples == [quad.triple for quad in quads]


@given(twins, datasets, datasets)
def test_added_lines_lead_where_quads_do(before: Twin, more: list[Quad], again: list[Quad]) -> None:
    added = twin([*more, *again]).quads - before.quads
    created = tuple({named_graph_of(quad) for quad in added} - before.graphs - {None})
    plain, fast = store_of(before), store_of(before)
    change = ChangeSet(added=tuple(added), created_graphs=tuple(filter(None, created)))
    plain.apply_many(iter([change]))
    with directory() as place:
        (place / "lines").write_bytes(text(added))
        lines = AddedLines(place / "lines", len(added), change.created_graphs)
        assert {quad for part in lines for quad in part.added} == added
        assert set(lines.with_predicates(PREDICATES[:1])) == {
            quad for quad in added if quad.predicate == PREDICATES[0]
        }
        fast.apply_many(lines)
    assert twin_of(fast) == twin_of(plain)


@given(datasets)
def test_lines_are_what_the_log_holds(document: list[Quad]) -> None:
    change = ChangeSet(added=tuple(dict.fromkeys(document)), created_graphs=(GRAPHS[0],))
    assert encode_lines(b"", text(change.added), change.created_graphs) == encode_changes(change)


def test_an_index_hears_of_added_lines(tmp_path: Path) -> None:
    index = SpatialIndex(lambda name: ())
    index.values(PREDICATES[0].value)
    index.begin()
    while index.step():
        pass
    index.publish(1)
    quads = [Quad(GRAPHS[0], predicate, NamedNode(f"urn:{predicate.value}")) for predicate in PREDICATES]
    (tmp_path / "lines").write_bytes(text(quads))
    index.note_lines(AddedLines(tmp_path / "lines", len(quads)))
    values = index.values(PREDICATES[0].value)
    assert values is not None
    assert values.waiting == (quads[0].object,)


def test_deep_triple_terms_are_unusual(tmp_path: Path) -> None:
    depth = TRIPLE_TERM_DEPTH_MAX + 1
    body = b"<a:a> <a:a> " + b"<<( <a:a> <a:a> " * depth + b"<a:a>" + b" )>>" * depth + b" .\n"
    (tmp_path / "document").write_bytes(body)
    with pytest.raises(Unusual):
        document_lines(
            tmp_path / "document",
            RdfSyntax.N_TRIPLES,
            tmp_path / "lines",
            Store(),
            base_iri=None,
            graph=None,
            labels=salted_labels(bytes(16)),
        )


def test_n_quads_of_triples_are_the_lines_of_their_graph() -> None:
    """`difference` takes the one for the other."""
    assert serialize([Quad(GRAPHS[0], GRAPHS[0], GRAPHS[0])], format=RdfFormat.N_QUADS) == text(
        [Quad(GRAPHS[0], GRAPHS[0], GRAPHS[0])], RdfSyntax.N_TRIPLES
    )
