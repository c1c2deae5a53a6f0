"""Entries and ChangeSets survive their encoding, byte for byte and term for term."""

import zlib
from collections.abc import Callable
from typing import cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyoxigraph import BaseDirection, BlankNode, DefaultGraph, Literal, NamedNode, Quad, Triple

from graphdb.errors import CorruptionError
from graphdb.log.codec import decode_entries, decode_entry, encode_entry, entry_bytes, place_entries
from graphdb.log.payloads import (
    decode_changes,
    decode_cleared,
    decode_close,
    encode_change_parts,
    encode_changes,
    encode_close,
    told_affected,
)
from graphdb.model import UNKNOWN_AUTHOR, Author, ChangeSet, EntryKind, Interface, LogEntry

iris = st.sampled_from(["http://e/ü", "urn:a:b", "http://e/%20?q=1#f", "http://e/\u2028x", "a:b"]).map(
    NamedNode
)
blank_nodes = st.from_regex(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,5}[A-Za-z0-9])?", fullmatch=True).map(BlankNode)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
languages = st.sampled_from(["en", "en-GB", "zh-Hant"])
literals = st.one_of(
    texts.map(Literal),
    st.builds(lambda value, language: Literal(value, language=language), texts, languages),
    st.builds(
        lambda value, language, direction: Literal(value, language=language, direction=direction),
        texts,
        languages,
        st.sampled_from([BaseDirection.LTR, BaseDirection.RTL]),
    ),
    st.builds(lambda value, datatype: Literal(value, datatype=datatype), texts, iris),
    st.integers().map(Literal),
)
subjects = iris | blank_nodes
triple_terms = st.recursive(
    st.builds(Triple, subjects, iris, iris | blank_nodes | literals),
    lambda inner: st.builds(Triple, subjects, iris, inner),
    max_leaves=3,
)
quads = st.builds(
    Quad,
    subjects,
    iris,
    iris | blank_nodes | literals | triple_terms,
    iris | blank_nodes | st.just(DefaultGraph()),
)
graphs = st.lists(subjects, max_size=3).map(tuple)
quad_lists = st.lists(quads, max_size=5).map(tuple)
change_sets = st.builds(ChangeSet, quad_lists, quad_lists, graphs, graphs)
log_entries = st.builds(
    LogEntry,
    st.integers(0, 2**64 - 1),
    st.integers(0, 2**64 - 1),
    st.sampled_from(EntryKind),
    st.binary(min_size=16, max_size=16),
    st.integers(0, 2**64 - 1),
    st.binary(max_size=50),
    st.builds(Author, texts, st.sampled_from(Interface)),
)


# Making examples takes nearly all of the time: on a busy machine more than Hypothesis allows.
of_many_parts = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


@of_many_parts
@given(change_sets)
def test_a_change_set_survives(changes: ChangeSet) -> None:
    assert decode_changes(encode_changes(changes)) == changes


@of_many_parts
@given(change_sets, st.integers(1, 400))
def test_parts_put_together_are_the_change_set(changes: ChangeSet, part_bytes: int) -> None:
    parts = [decode_changes(payload) for payload in encode_change_parts(changes, part_bytes)]
    whole = ChangeSet(
        tuple(quad for part in parts for quad in part.removed),
        tuple(quad for part in parts for quad in part.added),
        tuple(graph for part in parts for graph in part.dropped_graphs),
        tuple(graph for part in parts for graph in part.created_graphs),
    )
    assert whole == changes
    assert not any(part.removed for part in parts[sum(bool(part.removed) for part in parts) + 1 :])
    assert not any(part.created_graphs or part.dropped_graphs for part in parts[1:])


def test_parts_are_about_as_large_as_asked() -> None:
    quads_ = tuple(Quad(NamedNode(f"http://e/{i:06}"), NamedNode("a:p"), Literal("x")) for i in range(10_000))
    parts = encode_change_parts(ChangeSet(added=quads_), 50_000)
    assert all(40_000 < len(part) < 55_000 for part in parts[:-1])


@given(log_entries, st.integers(0, 2**64 - 1), st.binary(max_size=9))
def test_an_entry_survives_between_other_bytes(entry: LogEntry, durable_bytes: int, around: bytes) -> None:
    encoded = encode_entry(entry, durable_bytes)
    assert len(encoded) == entry_bytes(len(entry.payload) + len(entry.author.name.encode()))
    record = decode_entry(around + encoded + around, len(around))
    assert record is not None
    assert (record.entry, record.durable_bytes, record.end) == (entry, durable_bytes, len(around + encoded))


@given(log_entries, st.data())
def test_a_changed_or_cut_entry_is_none(entry: LogEntry, data: st.DataObject) -> None:
    encoded = bytearray(encode_entry(entry))
    place = data.draw(st.integers(0, len(encoded) - 1))
    assert decode_entry(bytes(encoded[:place])) is None
    encoded[place] ^= data.draw(st.integers(1, 255))
    assert decode_entry(bytes(encoded)) is None


def placed_by_decoding(encoded: bytes, first_index: int, start: int, durable_bytes: int) -> object:
    entries = decode_entries(encoded)
    if entries is None:
        return None
    chunks = [
        encode_entry(entry.at(index), durable_bytes) for index, entry in enumerate(entries, first_index)
    ]
    starts = [start + sum(map(len, chunks[:number])) for number in range(len(chunks))]
    return b"".join(chunks), starts, bytes(entry.kind for entry in entries)


def outcome(place: Callable[..., object], *arguments: object) -> object:
    try:
        return place(*arguments)
    except (CorruptionError, UnicodeDecodeError) as error:
        return type(error), error.args


byte_changes = st.tuples(
    st.integers(0, 2),  # of which entry
    st.integers(12, 15) | st.integers(-8, 70),  # where; at 12 stands how it is to be read
    st.sampled_from([1 << bit for bit in range(8)]) | st.integers(1, 255),
    st.booleans(),  # the checksum holds all the same
)


@given(
    st.lists(log_entries, max_size=3),
    st.lists(byte_changes, max_size=3),
    st.integers(0, 500) | st.none(),
    st.integers(1, 2**40),
    st.integers(64, 2**40),
)
def test_entries_get_their_places_as_if_they_were_decoded_and_encoded_again(
    entries: list[LogEntry],
    changes: list[tuple[int, int, int, bool]],
    cut: int | None,
    first_index: int,
    durable_bytes: int,
) -> None:
    """Whatever stands in them."""
    encoded = bytearray()
    for number, entry in enumerate(entries):
        one = bytearray(encode_entry(entry))
        for changed, place, flip, holds in changes:
            if changed == number:
                one[place % len(one)] ^= flip
                if holds:
                    one[4:8] = zlib.crc32(one[8:]).to_bytes(4, "little")
        encoded += one
    places = bytes(encoded[:cut]), first_index, durable_bytes + 7, durable_bytes
    assert outcome(place_entries, *places) == outcome(placed_by_decoding, *places)


@given(log_entries, st.integers(0, 255))
def test_a_kind_of_a_newer_version_is_not_taken_for_damage(entry: LogEntry, kind: int) -> None:
    encoded = encode_entry(entry._replace(kind=cast(EntryKind, kind), author=UNKNOWN_AUTHOR))
    if kind in list(EntryKind):
        assert decode_entry(encoded) is not None
        return
    with pytest.raises(CorruptionError, match="only newer versions know"):
        decode_entry(encoded)
    encoded = encoded[:-1] + b"x"
    assert decode_entry(encoded) is None


@given(change_sets, st.integers(1, 400), st.integers(0, 1_000))
def test_what_was_told_goes_with_the_change(changes: ChangeSet, part_bytes: int, told: int) -> None:
    payloads = encode_change_parts(changes, part_bytes, told)
    parts = [decode_changes(payload) for payload in payloads]
    assert sum(len(part.added) for part in parts) == len(changes.added)
    assert sum(map(told_affected, payloads, parts)) == told


def test_the_layout_on_disk_does_not_change() -> None:
    payload = encode_changes(ChangeSet(added=(Quad(NamedNode("a:s"), NamedNode("a:p"), BlankNode("b")),)))
    assert payload[:16].hex() == "00000000120000000000000000000000"
    assert payload[16:] == b"<a:s> <a:p> _:b .\n"
    encoded = encode_entry(LogEntry(7, 2, EntryKind.CHANGES, bytes(range(16)), 5, b"hi"), durable_bytes=64)
    assert encoded[:4].hex() + encoded[8:].hex() == (
        "ff474c45" "02000000" "01000000" "0700000000000000" "0200000000000000" "0500000000000000"
        "4000000000000000" "000102030405060708090a0b0c0d0e0f" "6869" "ff"
    )  # fmt: skip


def test_an_author_is_an_interface_and_a_name_after_the_payload() -> None:
    entry = LogEntry(7, 2, EntryKind.CHANGES, bytes(16), 5, b"hi", Author("basic:ä", Interface.GRAPHQL))
    encoded = encode_entry(entry)
    assert encoded[8:16].hex() == "0a000000" "81" "03" "08" "00"  # fmt: skip
    assert encoded[64:] == b"hibasic:\xc3\xa4\xff"
    nameless = encode_entry(entry._replace(author=Author(interface=Interface.GRAPHQL)))
    assert nameless[8:16].hex() == "02000000" "01" "03" "00" "00"  # fmt: skip


def test_a_long_name_is_cut_between_characters() -> None:
    entry = LogEntry(1, 0, EntryKind.CHANGES, bytes(16), 5, b"hi", Author("x" + "ä" * 200))
    record = decode_entry(encode_entry(entry))
    assert record is not None
    assert record.entry == entry._replace(author=Author("x" + "ä" * 127))


def test_an_entry_of_a_version_without_authors_has_an_unknown_one() -> None:
    encoded = encode_entry(LogEntry(1, 0, EntryKind.CHANGES, bytes(16), 5, b"hi"))
    assert encoded[13:16] == bytes(3)
    record = decode_entry(encoded)
    assert record is not None
    assert record.entry.author is UNKNOWN_AUTHOR


@pytest.mark.parametrize("number", [200])
def test_an_interface_of_a_newer_version_is_unknown(number: int) -> None:
    author = Author("a", cast(Interface, number))
    record = decode_entry(encode_entry(LogEntry(1, 0, EntryKind.CHANGES, bytes(16), 5, b"", author)))
    assert record is not None
    assert record.entry.author == Author("a", Interface.UNKNOWN)


@pytest.mark.parametrize(
    "payload", [b"", b"x" * 15, bytes(17), b"\x01" + bytes(16), b"\x01" + bytes(15) + b"!"]
)
def test_a_payload_that_was_written_wrong_is_corruption(payload: bytes) -> None:
    with pytest.raises(CorruptionError):
        decode_changes(payload)


def test_a_close_counts_its_parts() -> None:
    assert decode_close(encode_close(70_000)) == 70_000
    graphs = NamedNode("urn:g"), DefaultGraph(), BlankNode("b")
    assert (decode_close(encode_close(3, graphs)), decode_cleared(encode_close(3, graphs))) == (3, graphs)
    assert decode_cleared(encode_close(3)) == ()
    with pytest.raises(CorruptionError):
        decode_close(b"\x01")
