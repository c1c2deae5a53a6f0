"""Segments against plain dictionaries, merged ones against ones that are built anew."""

from collections import defaultdict
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphdb.errors import CorruptionError
from graphdb.log.file_system import File
from graphdb.search.fields import ParsedDocument, TextTokens
from graphdb.search.index_order import IndexOrder, OrderField
from graphdb.search.leaf_reader import Bools, Leaf, TermDictionary
from graphdb.search.segments.array_segment import ArraySegment
from graphdb.search.segments.builder import SegmentBuilder
from graphdb.search.segments.field_builders import encode_lengths
from graphdb.search.segments.merging import merge
from graphdb.search.segments.postings import (
    freq_at,
    narrow_freqs,
    pack_positions,
    unpack_positions,
    whole_freqs,
)
from graphdb.search.segments.sections import ORDER, packed
from graphdb.search.segments.segment_file import read_segment, verify_segment, write_segment
from graphdb.search.segments.sources import PARTS, SourceBlocks, merged_sources, source_sections, sources_of
from graphdb.search.segments.visible_segment import VisibleSegment
from tests.support.old_segments import in_format

WORDS = st.sampled_from(["a", "b", "ab", "", "é", "\uffff", "\U0001f600", "\ud800"])
PATHS = st.sampled_from(["f", "f.g", "h"])


@st.composite
def texts(draw: st.DrawFn) -> TextTokens:
    words = draw(st.lists(WORDS, max_size=6))
    steps = draw(st.lists(st.integers(0, 2), min_size=len(words), max_size=len(words)))
    positions = np.cumsum(np.array(steps, int)).tolist()
    return TextTokens(words, positions, len(set(positions)))


def parsed_documents(depth: int) -> st.SearchStrategy[ParsedDocument]:
    vector = st.integers(0, 9).map(lambda number: np.full(3, number, np.float32))
    children = (
        st.lists(st.tuples(st.sampled_from(["n", "m"]), parsed_documents(depth - 1)), max_size=2)
        if depth
        else st.just([])
    )
    return st.builds(
        ParsedDocument,
        texts=st.dictionaries(PATHS, texts(), max_size=2),
        terms=st.dictionaries(PATHS, st.lists(WORDS, max_size=3), max_size=2),
        ints=st.dictionaries(PATHS, st.lists(st.integers(-(2**63), 2**63 - 1), max_size=3), max_size=2),
        floats=st.dictionaries(PATHS, st.lists(st.floats(allow_nan=False), max_size=2), max_size=1),
        points=st.dictionaries(PATHS, st.lists(st.just((1.0, 2.0)), max_size=2), max_size=1),
        vectors=st.dictionaries(PATHS, vector, max_size=1),
        ignored=st.lists(PATHS, max_size=1),
        children=children,
    )


DOCUMENTS = st.lists(st.tuples(parsed_documents(2), st.sampled_from([None, "x", "y"])), max_size=8)


def built(documents: list[tuple[int, tuple[ParsedDocument, str | None]]]) -> ArraySegment:
    builder = SegmentBuilder()
    for number, (parsed, routing) in documents:
        builder.add(f"id{number}", b"x" * number, number, number + 1, parsed, routing)
    return builder.build("_1")


def flat(parsed: ParsedDocument) -> list[ParsedDocument]:
    return [*(inner for _, child in parsed.children for inner in flat(child)), parsed]


def same(first: ArraySegment, second: ArraySegment) -> None:
    """Array by array; of the stored JSON what it is, for its blocks may end elsewhere in a merged segment."""
    assert list(first.sections) == list(second.sections) or set(first.sections) == set(second.sections)
    for key, array in first.sections.items():
        assert array.dtype == second.sections[key].dtype, key
        if key[2] not in PARTS:
            assert array.tolist() == second.sections[key].tolist(), key
    count = first.root_count
    assert [*first.sources.raws(0, count)] == [*second.sources.raws(0, second.root_count)]


@given(DOCUMENTS)
@settings(deadline=None)
def test_a_segment_has_what_the_documents_have(documents: list[tuple[ParsedDocument, str | None]]) -> None:
    segment = built([*enumerate(documents)])
    docs = [parsed for document, _ in documents for parsed in flat(document)]
    assert segment.size == len(docs)
    for path in ("f", "f.g", "h"):
        check_text(segment, docs, path)
        check_terms(segment, docs, path)
        check_numbers(segment, docs, path)
        below = path + "."
        having = [any(p == path or p.startswith(below) for p in paths_of(doc)) for doc in docs]
        assert segment.having(path).tolist() == having


def paths_of(doc: ParsedDocument) -> set[str]:
    lists: list[dict[str, Any]] = [doc.terms, doc.ints, doc.floats, doc.points]
    return {path for each in lists for path, values in each.items() if values} | {*doc.texts, *doc.vectors}


def check_text(segment: ArraySegment, docs: list[ParsedDocument], path: str) -> None:
    places: dict[str, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    lengths = [0] * len(docs)
    for doc, parsed in enumerate(docs):
        if path in parsed.texts:
            text = parsed.texts[path]
            lengths[doc] = text.length
            for term, position in zip(text.terms, text.positions, strict=True):
                places[term][doc].append(position)
    index = segment.text(path)
    if index is None:
        assert not any(path in parsed.texts for parsed in docs)
        return
    assert [*index.dictionary.terms(0, len(index.dictionary))] == sorted(places)
    assert index.norms.tolist() == encode_lengths(np.array(lengths, np.int64)).tolist()
    assert index.doc_count == sum(1 for length in lengths if length)
    assert index.total_terms == sum(len(p) for by_doc in places.values() for p in by_doc.values())
    for term, by_doc in places.items():
        number = index.dictionary.find(term)
        found, freqs = index.postings(number)
        starts, positions = index.positions(number)
        assert found.tolist() == sorted(by_doc)
        assert freqs.tolist() == [len(by_doc[doc]) for doc in sorted(by_doc)]
        for i, doc in enumerate(sorted(by_doc)):
            assert positions[starts[i] : starts[i + 1]].tolist() == by_doc[doc]


def check_terms(segment: ArraySegment, docs: list[ParsedDocument], path: str) -> None:
    values = [sorted(set(parsed.terms.get(path, ()))) for parsed in docs]
    index = segment.terms(path)
    if index is None:
        assert not any(values)
        return
    assert index.doc_count == sum(map(bool, values))
    starts, ordinals = index.ordinals.starts, index.ordinals.terms
    found = [
        [index.dictionary.term(number) for number in ordinals[starts[doc] : starts[doc + 1]]]
        for doc in range(segment.size)
    ]
    assert found == values
    for number, term in enumerate(index.dictionary.terms(0, len(index.dictionary))):
        assert index.postings(number).tolist() == [doc for doc, each in enumerate(values) if term in each]


def check_numbers(segment: ArraySegment, docs: list[ParsedDocument], path: str) -> None:
    wanted = [sorted(parsed.ints.get(path, ())) for parsed in docs]
    column = segment.ints(path)
    if column is None:
        assert not any(wanted)
    elif column.starts is None:
        assert [[value] for value in column.values.tolist()] == wanted
    else:
        starts = column.starts.tolist()
        assert [column.values[starts[d] : starts[d + 1]].tolist() for d in range(len(docs))] == wanted


@given(DOCUMENTS, st.lists(st.integers(0, 8), max_size=3), st.data())
@settings(deadline=None)
def test_merged_is_as_built_anew(
    documents: list[tuple[ParsedDocument, str | None]], cuts: list[int], data: st.DataObject
) -> None:
    numbered = [*enumerate(documents)]
    stays = data.draw(st.lists(st.booleans(), min_size=len(numbered), max_size=len(numbered)))
    bounds = sorted({0, len(numbered), *(min(cut, len(numbered)) for cut in cuts)})
    leaves = []
    for start, stop in zip(bounds, [*bounds[1:], len(numbered)], strict=True):
        segment = built(numbered[start:stop])
        live = np.ones(segment.size, np.bool_)
        for number in range(start, stop):
            if not stays[number]:
                live[segment.block(segment.find(f"id{number}"))] = False
        leaves.append(Leaf(segment, live, 0))
    same(merge(leaves, "_1"), built([row for row in numbered if stays[row[0]]]))


ORDERS = st.lists(
    st.builds(
        OrderField,
        PATHS,
        st.sampled_from(["ints", "floats", "terms"]),
        st.booleans(),
        st.sampled_from(["min", "max"]),
        st.booleans(),
    ),
    min_size=1,
    max_size=2,
).map(tuple)


def values_of(parsed: ParsedDocument, field: OrderField) -> list[Any]:
    if field.column == "terms":
        return [word.encode("utf-8", "surrogatepass") for word in parsed.terms.get(field.path, ())]
    if field.column == "ints":
        return list(parsed.ints.get(field.path, ()))
    return list(parsed.floats.get(field.path, ()))


def ordered(rows: list[Any], order: IndexOrder) -> list[Any]:
    """One field after the other, the last one first. What is missing is as the least or greatest number."""
    for field in reversed(order):
        ends = {"ints": (-(2**63), 2**63 - 1), "floats": (-np.inf, np.inf), "terms": (b"", b"\xff")}
        least, greatest = ends[field.column]
        absent = greatest if field.missing_last != field.descending else least
        choose = min if field.mode == "min" else max

        def key(row: Any, field: OrderField = field, choose: Any = choose, absent: Any = absent) -> Any:
            values = values_of(row[1][0], field)
            # a word is never where what is missing is, not even the empty one
            return (choose(values), 0) if values else (absent, -1 if absent == b"" else 0)

        rows = sorted(rows, key=key, reverse=field.descending)  # equal ones keep their order both ways
    return rows


@given(DOCUMENTS, st.lists(st.integers(0, 8), max_size=3), ORDERS, st.booleans(), st.data())
@settings(deadline=None)
def test_merged_in_an_order_is_as_built_in_it(
    documents: list[tuple[ParsedDocument, str | None]],
    cuts: list[int],
    order: IndexOrder,
    is_sorted: bool,
    data: st.DataObject,
) -> None:
    numbered = [*enumerate(documents)]
    stays = data.draw(st.lists(st.booleans(), min_size=len(numbered), max_size=len(numbered)))
    bounds = sorted({0, len(numbered), *(min(cut, len(numbered)) for cut in cuts)})
    leaves, wanted = [], []
    for start, stop in zip(bounds, [*bounds[1:], len(numbered)], strict=True):
        segment, rows = built(numbered[start:stop]), numbered[start:stop]
        if is_sorted:
            segment = merge([Leaf(segment, np.ones(segment.size, np.bool_), 0)], "_1", order)
            rows = ordered(rows, order)
        live = np.ones(segment.size, np.bool_)
        for number in range(start, stop):
            if not stays[number]:
                live[segment.block(segment.find(f"id{number}"))] = False
        leaves.append(Leaf(segment, live, 0))
        wanted += [row for row in rows if stays[row[0]]]
    merged, twin = merge(leaves, "_1", order), built(ordered(wanted, order))
    assert merged.order == order
    same(ArraySegment("_1", {key: part for key, part in merged.sections.items() if key != ORDER}), twin)


@given(DOCUMENTS.filter(bool), st.data())
@settings(deadline=None)
def test_seen_is_as_built_of_what_is_seen(
    documents: list[tuple[ParsedDocument, str | None]], data: st.DataObject
) -> None:
    numbered = [*enumerate(documents)]
    stays = data.draw(st.lists(st.booleans(), min_size=len(numbered), max_size=len(numbered)))
    segment = built(numbered)
    live = np.ones(segment.size, np.bool_)
    for number in (number for number, stay in enumerate(stays) if not stay):
        live[segment.block(segment.find(f"id{number}"))] = False
    seen, twin = VisibleSegment(segment, live), built([row for row in numbered if stays[row[0]]])
    assert seen.root_count == twin.root_count
    assert seen.fields() == twin.fields()
    for path in ("f", "f.g", "h"):
        assert seen.having(path)[live].tolist() == twin.having(path).tolist()
        check_seen_text(seen, twin, live, path)
        check_seen_terms(seen, twin, live, path)


def words_of(dictionary: TermDictionary) -> list[str]:
    """All words, which are found where they stand."""
    words = [*dictionary.terms(0, len(dictionary))]
    for number, word in enumerate(words):
        assert (dictionary.find(word), dictionary.term(number)) == (number, word)
    for word in ("", "a", "aa", "b", "zz", "\uffff"):
        assert dictionary.lower_bound(word) == sum(other < word for other in words)
        assert (dictionary.find(word) >= 0) == (word in words)
    return words


def check_seen_text(seen: VisibleSegment, twin: ArraySegment, live: Bools, path: str) -> None:
    index, wanted, new_docs = seen.text(path), twin.text(path), np.cumsum(live) - 1
    if index is None or wanted is None:
        assert index is None or (len(index.dictionary), index.doc_count, index.total_terms) == (0, 0, 0)
        return
    words = words_of(index.dictionary)
    assert words == words_of(wanted.dictionary)
    assert (index.doc_count, index.total_terms) == (wanted.doc_count, wanted.total_terms)
    all_docs, all_freqs, _, begins, ends = index.posting_ranges(np.arange(len(words)))
    for number in range(len(words)):
        (docs, freqs), (wanted_docs, wanted_freqs) = index.postings(number), wanted.postings(number)
        assert new_docs[docs].tolist() == wanted_docs.tolist()
        assert freqs.tolist() == wanted_freqs.tolist()
        for found, other in zip(index.positions(number), wanted.positions(number), strict=True):
            assert found.tolist() == other.tolist()
        places = slice(begins[number], ends[number])
        kept = live[all_docs[places]]
        assert all_docs[places][kept].tolist() == docs.tolist()
        assert all_freqs[places][kept].tolist() == freqs.tolist()


def check_seen_terms(seen: VisibleSegment, twin: ArraySegment, live: Bools, path: str) -> None:
    index, wanted, new_docs = seen.terms(path), twin.terms(path), np.cumsum(live) - 1
    if index is None or wanted is None:
        assert index is None or (len(index.dictionary), index.doc_count) == (0, 0)
        assert index is None or not len(index.ordinals.terms)
        return
    words = words_of(index.dictionary)
    assert words == words_of(wanted.dictionary)
    assert index.doc_count == wanted.doc_count
    for number in range(len(words)):
        assert new_docs[index.postings(number)].tolist() == wanted.postings(number).tolist()
    assert index.ordinals.terms.tolist() == wanted.ordinals.terms.tolist()
    assert index.ordinals.terms.dtype == wanted.ordinals.terms.dtype
    counts, wanted_counts = np.diff(index.ordinals.starts), np.diff(wanted.ordinals.starts)
    assert counts[live].tolist() == wanted_counts.tolist()
    assert not counts[~live].any()


class MemoryFile:
    """A file that only takes what is written."""

    def __init__(self) -> None:
        self.data = bytearray()

    def write(self, data: bytes, offset: int) -> None:
        end = offset + len(data)
        self.data.extend(bytes(max(0, end - len(self.data))))
        self.data[offset:end] = data

    def size(self) -> int:
        return len(self.data)

    def sync(self) -> None: ...
    def close(self) -> None: ...
    def allocate(self, size: int) -> None: ...
    def truncate(self, size: int) -> None: ...
    def read(self, length: int, offset: int) -> bytes:
        return bytes(self.data[offset : offset + length])


@given(DOCUMENTS)
@settings(deadline=None)
def test_a_segment_comes_back_from_its_file(documents: list[tuple[ParsedDocument, str | None]]) -> None:
    segment = built([*enumerate(documents)])
    memory = MemoryFile()
    file: File = memory
    write_segment(file, segment)
    data = memoryview(bytes(memory.data))
    verify_segment(data, "here")
    same(read_segment(data, "here"), segment)


@given(DOCUMENTS, st.sampled_from([1, 2]))
@settings(deadline=None)
def test_a_file_of_an_older_format_is_read_and_merged_into_the_format_of_now(
    documents: list[tuple[ParsedDocument, str | None]], version: int
) -> None:
    segment = built([*enumerate(documents)])
    data = memoryview(in_format(version, segment))
    verify_segment(data, "here")
    old = read_segment(data, "here")
    assert [old.source(doc) for doc in range(old.size)] == [segment.source(doc) for doc in range(old.size)]
    docs = [*range(old.size)]
    assert [*old.shown(docs)] == [*segment.shown(docs)]
    assert [*segment.shown(docs)] == [(segment.doc_id(doc), segment.source(doc)) for doc in docs]
    for path in ("f", "f.g", "h"):
        check_text(old, [inner for parsed, _ in documents for inner in flat(parsed)], path)
    same(merge([Leaf(old, np.ones(old.size, np.bool_), 0)], "_1"), segment)


def test_a_damaged_block_of_stored_documents_is_noticed() -> None:
    segment = built([(number, (ParsedDocument(), None)) for number in range(3)])
    blob = segment.sections["", "", "sources_blob"].copy()
    blob[-5] ^= 1
    damaged = ArraySegment("_1", {**segment.sections, ("", "", "sources_blob"): blob})
    with pytest.raises(CorruptionError, match="segment _1: block 0 of the stored documents is damaged"):
        damaged.source(1)


RAWS = st.lists(st.sampled_from([0, 1, 50, 3000, 9000]).map(lambda size: b"{" * size), max_size=30)


@given(st.lists(RAWS, min_size=1, max_size=3), st.booleans(), st.data())
@settings(deadline=None)
def test_stored_documents_stay_themselves(
    parts: list[list[bytes]], is_old: bool, data: st.DataObject
) -> None:
    """In blocks, merged in blocks, merged from a file of format 1."""
    given_parts, wanted = [], []
    for number, raws in enumerate(parts):
        raws = [raw + bytes([number % 7 + 48, place]) for place, raw in enumerate(raws)]
        plain = packed("", "", "sources", raws)
        found = sources_of(plain if is_old and number == 0 else source_sections(raws), "here")
        assert [found.raw(place) for place in reversed(range(len(raws)))] == raws[::-1]
        kept = [place for place in range(len(raws)) if data.draw(st.integers(0, 9)) > 0]
        given_parts.append((found, np.array(kept, np.int32)))
        wanted += [raws[place] for place in kept]
    merged = sources_of(merged_sources(given_parts), "here")
    assert [*merged.raws(0, len(merged))] == wanted


@given(st.lists(st.sampled_from([1, 2, 254, 255, 256, 2**31 - 1]), max_size=20), st.data())
@settings(deadline=None)
def test_frequencies_of_any_size_are_themselves(freqs: list[int], data: st.DataObject) -> None:
    narrow, high = narrow_freqs(np.array(freqs, np.int32))
    start = data.draw(st.integers(0, len(freqs)))
    assert whole_freqs(narrow, high, start, len(freqs)).tolist() == freqs[start:]
    assert [freq_at(narrow, high, place) for place in range(len(freqs))] == freqs


STEPS = st.sampled_from([0, 1, 127, 128, 16_383, 16_384, 2**24])


@given(st.lists(st.lists(st.lists(STEPS, min_size=1, max_size=4), max_size=3), max_size=4))
@settings(deadline=None)
def test_positions_of_any_size_are_themselves(terms: list[list[list[int]]]) -> None:
    """By term, by posting, the steps from one to the next."""
    starts = np.cumsum([0, *map(len, terms)])
    freqs = np.array([len(steps) for term in terms for steps in term], np.int32)
    found = [np.cumsum(steps).tolist() for term in terms for steps in term]
    positions = np.array([position for posting in found for position in posting], np.int32)
    byte_starts, packed_positions = pack_positions(starts, freqs, positions)
    for number, (start, stop) in enumerate(pairwise(starts.tolist())):
        own = packed_positions[byte_starts[number] : byte_starts[number + 1]]
        wanted = [position for posting in found[start:stop] for position in posting]
        assert unpack_positions(own, freqs[start:stop]).tolist() == wanted


def test_a_long_document_is_in_no_block_with_others() -> None:
    raws = [b"a", b"b" * 1_000_000, b"c"]
    sources = sources_of(source_sections(raws), "here")
    assert isinstance(sources, SourceBlocks)
    assert sources.roots.tolist() == [0, 1, 2, 3]
    assert [*sources.raws(0, 3)] == raws
