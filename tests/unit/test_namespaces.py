"""The book of namespaces: what commands make of it, what it refuses, and its bytes."""

import pytest

from graphdb.errors import CorruptionError, InvalidParameter, LimitExceeded
from graphdb.namespaces import (
    NAMESPACES_MAX,
    ClearNamespaces,
    NamespaceBook,
    NamespaceCommand,
    RemoveNamespace,
    SetNamespace,
)


def book_after(*commands: NamespaceCommand) -> NamespaceBook:
    book = NamespaceBook()
    for index, command in enumerate(commands, 1):
        book.apply(index, book.plan(command))
    return book


def test_commands_change_it() -> None:
    book = book_after(
        SetNamespace("b", "urn:b:"),
        SetNamespace("", "http://example.org/"),
        SetNamespace("b", "urn:other:"),
        SetNamespace("gone", "urn:gone:"),
        RemoveNamespace("gone"),
        RemoveNamespace("never"),
    )
    assert list(book.namespaces.items()) == [("", "http://example.org/"), ("b", "urn:other:")]
    assert NamespaceBook.from_bytes(book.to_bytes()).namespaces == book.namespaces
    assert not book_after(SetNamespace("b", "urn:b:"), ClearNamespaces()).namespaces


def test_an_entry_counts_once() -> None:
    book = NamespaceBook()
    first = book.plan(SetNamespace("a", "urn:1:"))
    book.apply(1, first)
    book.apply(2, book.plan(SetNamespace("a", "urn:2:")))
    book.apply(1, first)
    assert book.namespaces == {"a": "urn:2:"}


@pytest.mark.parametrize(
    ("prefix", "iri"),
    [
        ("1a", "urn:a:"),
        ("a b", "urn:a:"),
        ("a.", "urn:a:"),
        ("a" * 300, "urn:a:"),
        ("a", "relative"),
        ("a", "urn:a b"),
        ("a", "urn:" + "a" * 3_000),
        ("a", ""),
    ],
)
def test_what_is_no_namespace(prefix: str, iri: str) -> None:
    with pytest.raises(InvalidParameter):
        NamespaceBook().plan(SetNamespace(prefix, iri))


def test_there_is_a_limit_and_known_prefixes_can_still_be_changed() -> None:
    book = book_after(*(SetNamespace(f"p{number}", "urn:a:") for number in range(NAMESPACES_MAX)))
    with pytest.raises(LimitExceeded):
        book.plan(SetNamespace("more", "urn:a:"))
    assert book.plan(SetNamespace("p1", "urn:b:"))


def test_damage() -> None:
    with pytest.raises(CorruptionError):
        NamespaceBook.from_bytes(book_after(SetNamespace("a", "urn:a:")).to_bytes()[:-1])
    with pytest.raises(CorruptionError):
        NamespaceBook().apply(1, b'{"do": "dance"}')
