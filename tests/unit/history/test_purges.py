"""The book of purges: it forgets an IRI when the last node has done with it."""

import pytest

from graphdb.errors import CorruptionError, LimitExceeded, NotFound
from graphdb.history.purges import (
    OPEN_MAX,
    NodePurged,
    Purge,
    PurgeBook,
    decode_purge_command,
    encode_purge_command,
    scope_digest,
)
from graphdb.history.purging import PurgedUpTo, PurgeScope

PERSON = "https://example.org/person/1"


def purge(nodes: tuple[int, ...] = (1, 2), iri: str = PERSON) -> Purge:
    return Purge("resource", iri, "salt", "basic:ann", 1_000, nodes)


def book_of(*commands: Purge | NodePurged) -> PurgeBook:
    book = PurgeBook()
    for index, command in enumerate(commands, 10):
        book.apply(index, encode_purge_command(command))
    return book


def test_an_iri_is_kept_until_the_last_node_has_done_with_it() -> None:
    book = book_of(purge(), NodePurged(10, 2))
    assert book.open == [PurgedUpTo(PurgeScope("resource", PERSON), 10)]
    assert book.find(10).waiting == (1,)
    book.apply(12, book.plan(NodePurged(10, 1)))
    assert book.open == []
    assert PERSON.encode() not in book.to_bytes()
    record = book.find(10)
    assert record.is_done
    assert record.digest == scope_digest(PurgeScope("resource", PERSON), "salt")
    assert book.last_index == 10


def test_a_node_has_done_with_all_purges_up_to_an_index() -> None:
    book = book_of(purge(), purge(iri="urn:b"), purge(iri="urn:c"), NodePurged(11, 1), NodePurged(12, 2))
    assert [record.waiting for record in book.purges] == [(), (), (1,)]
    assert [one.scope.iri for one in book.open] == ["urn:c"]


def test_entries_count_once_and_the_bytes_are_the_book() -> None:
    book = book_of(purge(), NodePurged(10, 2))
    again = PurgeBook.from_bytes(book.to_bytes())
    again.apply(10, encode_purge_command(purge()))
    assert again.purges == book.purges
    with pytest.raises(CorruptionError):
        PurgeBook.from_bytes(book.to_bytes()[:-1])
    assert decode_purge_command(encode_purge_command(purge())) == purge()


def test_what_does_not_fit_is_refused_and_has_no_effect() -> None:
    book = book_of(purge((1,)))
    with pytest.raises(NotFound):
        book.plan(NodePurged(10, 7))
    book.apply(20, encode_purge_command(NodePurged(10, 7)))
    assert book.find(10).waiting == (1,)
    full = book_of(*[purge()] * OPEN_MAX)
    with pytest.raises(LimitExceeded):
        full.plan(purge())
