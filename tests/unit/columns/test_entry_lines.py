"""How much of what entries change is held in memory at a time, and how it comes into a view."""

from pathlib import Path

import duckdb
import pytest
from pyoxigraph import Literal, NamedNode, Quad

from graphdb.columns import entry_lines, schema
from graphdb.columns.applying import apply_changes
from graphdb.columns.entry_lines import EntryLines
from graphdb.log.payloads import encode_changes, encode_close
from graphdb.model import ChangeSet, EntryKind, LogEntry

PARTS, QUADS_A_PART = 40, 5
S, P = NamedNode("urn:s"), NamedNode("urn:p")


def changes(first: int) -> bytes:
    return encode_changes(
        ChangeSet(
            (), tuple(Quad(S, P, Literal(f"{number:09}")) for number in range(first, first + QUADS_A_PART))
        )
    )


def test_a_large_change_is_made_lines_of_some_parts_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entry_lines, "_TOGETHER_BYTES", 4 * len(changes(0)))
    entries = EntryLines(0)
    entries.feed(LogEntry(1, 0, EntryKind.CHANGES, bytes(16), 0, changes(-QUADS_A_PART)))
    for part in range(PARTS):
        payload = changes(part * QUADS_A_PART)
        entries.feed(LogEntry(part + 2, 0, EntryKind.PART, bytes(16), 0, payload))
    entries.feed(LogEntry(PARTS + 2, 0, EntryKind.CLOSE, bytes(16), 0, encode_close(PARTS)))
    entries.feed(LogEntry(PARTS + 3, 0, EntryKind.CHANGES, bytes(16), 0, changes(PARTS * QUADS_A_PART)))
    expected = [QUADS_A_PART, *[4 * QUADS_A_PART] * (PARTS // 4), QUADS_A_PART]
    for _ in range(2):  # where they could not be applied, they are the same again
        assert [len(net) for net in entries.lines()] == expected
    entries.taken()
    assert list(entries.lines()) == []


@pytest.mark.parametrize(
    "text", ["\x01", "\t", "\r\n", r"C:\x01", r"\t\u0001", " ", '" .', "a b .", "<s> <p>"]
)
def test_what_separates_the_parts_of_a_line_may_be_in_a_literal(text: str, tmp_path: Path) -> None:
    literal = Literal(text)
    entries = EntryLines(0)
    payload = encode_changes(ChangeSet((), (Quad(S, P, literal),)))
    entries.feed(LogEntry(1, 0, EntryKind.CHANGES, bytes(16), 0, payload))
    with duckdb.connect(":memory:") as connection:
        schema.create(connection)
        apply_changes(connection, entries, tmp_path)
        found = connection.execute("SELECT text, lexical FROM terms WHERE text LIKE '\"%'").fetchall()
    assert found == [(str(literal), text)]
