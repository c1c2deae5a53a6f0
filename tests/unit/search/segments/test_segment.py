"""What the builder makes of documents, by example."""

import numpy as np
import pytest

from graphdb.search.errors import SearchError
from graphdb.search.fields import ParsedDocument, TextTokens
from graphdb.search.leaf_reader import Leaf, exact_numbers
from graphdb.search.segments.array_segment import ArraySegment
from graphdb.search.segments.builder import SegmentBuilder
from graphdb.search.segments.field_builders import LENGTHS, encode_lengths
from graphdb.search.segments.merging import merge
from graphdb.search.segments.sections import SortedStrings, encode, pack
from tests.unit.search.segments.words_mapping import tokens


@pytest.fixture
def segment() -> ArraySegment:
    """Documents 0 to 2 are the block of the first root; 3 is the second."""
    inner = ParsedDocument(ints={"c.d.n": [7]}, ignored=["c.d.late"])
    outer = ParsedDocument(terms={"c.x": ["q"]}, children=[("c.d", inner)])
    builder = SegmentBuilder()
    builder.add(
        "a",
        b'{"a":1}',
        5,
        2,
        ParsedDocument(
            texts={"t": TextTokens(["b", "a", "b"], [0, 1, 101], 3)},
            terms={"k": ["z", "y", "z"]},
            ints={"n": [3, 1]},
            children=[("c", outer)],
        ),
        "shelf",
    )
    builder.add(
        "b",
        b"{}",
        6,
        1,
        ParsedDocument(
            texts={"t": tokens()},
            floats={"f": [0.5]},
            points={"p": [(1.0, 2.0)]},
            vectors={"v": np.ones(3, np.float32)},
            ignored=["k"],
        ),
    )
    return builder.build("_1")


def test_nested_documents_stand_before_the_one_they_are_in(segment: ArraySegment) -> None:
    assert segment.size == 4
    assert segment.parents is not None
    assert segment.nested_path is not None
    assert segment.parents.tolist() == [1, 2, -1, -1]
    assert [*segment.nested_paths] == ["c", "c.d"]
    assert segment.nested_path.tolist() == [1, 0, -1, -1]
    assert segment.seq_nos.tolist() == [5, 5, 5, 6]
    assert segment.versions.tolist() == [2, 2, 2, 1]


def test_nested_documents_have_id_source_and_metadata_of_their_root(segment: ArraySegment) -> None:
    assert [segment.doc_id(doc) for doc in range(4)] == ["a", "a", "a", "b"]
    assert [segment.source(doc) for doc in (0, 3)] == [b'{"a":1}', b"{}"]
    assert [*segment.shown([3, 0, 2])] == [("b", b"{}"), ("a", b'{"a":1}'), ("a", b'{"a":1}')]
    assert [segment.routing(doc) for doc in range(4)] == ["shelf"] * 3 + [None]
    assert [segment.ignored(doc) for doc in range(4)] == [["c.d.late"]] * 3 + [["k"]]


def test_documents_are_found_by_id(segment: ArraySegment) -> None:
    assert [segment.find(doc_id) for doc_id in ("a", "b", "c", "")] == [2, 3, -1, -1]


def test_a_text_has_postings_positions_and_norms(segment: ArraySegment) -> None:
    text = segment.text("t")
    assert text is not None
    assert [*text.dictionary.terms(0, len(text.dictionary))] == ["a", "b"]
    docs, freqs = text.postings(1)
    starts, positions = text.positions(1)
    assert (docs.tolist(), freqs.tolist()) == ([2], [2])
    assert (starts.tolist(), positions.tolist()) == ([0, 2], [0, 101])
    assert text.norms.tolist() == [0, 0, 3, 0]
    assert (text.doc_count, text.total_terms) == (1, 3)


def test_terms_have_postings_and_ordinals_without_doubles(segment: ArraySegment) -> None:
    terms = segment.terms("k")
    assert terms is not None
    assert [terms.dictionary.find(term) for term in ("y", "z", "x")] == [0, 1, -1]
    assert terms.postings(1).tolist() == [2]
    assert terms.ordinals.starts.tolist() == [0, 0, 0, 2, 2]
    assert terms.ordinals.terms.tolist() == [0, 1]
    assert terms.doc_count == 1


def test_numbers_ascend_in_each_document(segment: ArraySegment) -> None:
    column = segment.ints("n")
    assert column is not None
    assert column.starts is not None
    assert (column.values.tolist(), column.starts.tolist()) == ([1, 3], [0, 0, 0, 2, 2])


def test_numbers_have_no_starts_where_each_document_has_one() -> None:
    builder = SegmentBuilder()
    for number in range(3):
        builder.add(str(number), b"{}", number, 1, ParsedDocument(floats={"f": [number / 2]}))
    column = builder.build("_1").floats("f")
    assert column is not None
    assert (column.values.tolist(), column.starts) == ([0.0, 0.5, 1.0], None)


def test_points_and_vectors(segment: ArraySegment) -> None:
    points, vectors = segment.points("p"), segment.vectors("v")
    assert points is not None
    assert vectors is not None
    assert (points.latitudes.tolist(), points.longitudes.tolist()) == ([1.0], [2.0])
    assert points.starts.tolist() == [0, 0, 0, 0, 1]
    assert (vectors.docs.tolist(), vectors.rows.tolist()) == ([3], [[1.0, 1.0, 1.0]])


@pytest.mark.parametrize(
    ("path", "docs"),
    [
        ("t", [2, 3]),  # a text without a token is a value
        ("k", [2]),
        ("n", [2]),
        ("c", [0, 1]),
        ("c.d", [0]),
        ("c.x", [1]),
        ("f", [3]),
        ("p", [3]),
        ("v", [3]),
        ("x", []),
    ],
)
def test_having(segment: ArraySegment, path: str, docs: list[int]) -> None:
    assert np.flatnonzero(segment.having(path)).tolist() == docs


def test_fields_are_those_with_values(segment: ArraySegment) -> None:
    assert segment.fields() == {"t", "k", "n", "c.x", "c.d.n", "f", "p", "v"}
    assert (segment.text("k"), segment.terms("t"), segment.ints("f")) == (None, None, None)


def test_arrays_cannot_be_written_to(segment: ArraySegment) -> None:
    with pytest.raises(ValueError, match="read-only"):
        segment.seq_nos[0] = 1
    assert not any(array.flags.writeable for array in segment.sections.values())


def test_of_two_with_one_id_the_later_is_found() -> None:
    builder = SegmentBuilder()
    for number in range(3):
        builder.add("same", str(number).encode(), number, number + 1, ParsedDocument())
    segment = builder.build("_1")
    assert segment.find("same") == 2


def test_a_segment_without_documents() -> None:
    segment = SegmentBuilder().build("_1")
    assert (segment.size, segment.find("a"), segment.fields()) == (0, -1, frozenset())
    assert segment.having("a").tolist() == []


def test_terms_are_in_the_order_of_code_points() -> None:
    terms = sorted(["", "a", "ab", "b", "é", "\ud800", "\uffff", "\U0001f600"])
    dictionary = SortedStrings(*pack([encode(term) for term in terms]))
    assert [*dictionary.terms(0, len(terms))] == terms
    assert [dictionary.find(term) for term in terms] == [*range(len(terms))]
    assert [dictionary.lower_bound(term) for term in ("aa", "c", "\U0001f601")] == [2, 4, 8]
    assert dictionary.find("aa") == -1


# from Lucene's SmallFloat: exact up to 40, then four significant bits above 24
@pytest.mark.parametrize(
    ("length", "kept"),
    [(0, 0), (1, 1), (24, 24), (40, 40), (41, 40), (42, 42), (51, 50), (56, 56), (57, 56), (1000, 984)],
)
def test_norms_keep_four_significant_bits(length: int, kept: int) -> None:
    assert LENGTHS[encode_lengths(np.array([length]))].tolist() == [kept]


def test_the_largest_length_has_the_largest_norm() -> None:
    assert encode_lengths(np.array([2**31 - 1])).tolist() == [255]
    assert LENGTHS[255] == 2013265944


def with_numbers(name: str, *documents: tuple[list[int], list[int] | None]) -> ArraySegment:
    """ints and exact numbers of the field `n`; None: from before there were exact ones."""
    builder = SegmentBuilder()
    for number, (ints, exact) in enumerate(documents):
        parsed = ParsedDocument(ints={"n": ints} if ints else {}, exact={"n": exact} if exact else {})
        builder.add(f"{name}{number}", b"{}", number, 1, parsed)
    return builder.build(name)


def test_exact_numbers_are_made_of_the_others_where_they_are_missing() -> None:
    old = with_numbers("old", ([5, 3], None), ([], None), ([7], None))
    new = with_numbers("new", ([2, 1], [2_000_001, 1_999_999]), ([9], [9_000_009]))
    both = merge([Leaf(part, np.ones(part.size, np.bool_), 0) for part in (old, new)], "both")
    for segment, expected in (
        (old, [[3_000_000, 5_000_000], [], [7_000_000]]),
        (new, [[1_999_999, 2_000_001], [9_000_009]]),
        (both, [[3_000_000, 5_000_000], [], [7_000_000], [1_999_999, 2_000_001], [9_000_009]]),
    ):
        column = exact_numbers(segment, "n", "date_nanos")
        assert column is not None
        starts = np.arange(segment.size + 1) if column.starts is None else column.starts
        pairs = zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)
        assert [column.values[low:high].tolist() for low, high in pairs] == expected
    unsigned = exact_numbers(old, "n", "unsigned_long")
    assert unsigned is not None
    assert exact_numbers(old, "none", "date_nanos") is None
    far = with_numbers("far", ([253_402_214_400_000], None))
    with pytest.raises(SearchError, match="cannot be converted to nanoseconds"):
        exact_numbers(far, "n", "date_nanos")
