"""The bytes of log entries and of the ChangeSets in them. It knows nothing of files.

All integers are little-endian and unsigned. One entry:

    offset  bytes  field
         0      4  mark, FF 47 4C 45 (FF never occurs in UTF-8, so no N-Quads text imitates an entry)
         4      4  CRC-32 (zlib) of everything from offset 8 to the end of the entry
         8      4  payload length n, the author's name included
        12      1  kind (`EntryKind`); with the bit 80 where the author has a name
        13      1  by which interface it was written (`Interface`)
        14      1  length m of the author's name in bytes
        15      1  zero
        16      8  log_index
        24      8  raft_term
        32      8  timestamp_ms
        40      8  durable_bytes: how much of its file was known to be on disk when the entry was written;
                   0 where the entry is not in a file. `segment.py` says what it is for.
        48     16  request_id
        64    n-m  payload
    64+n-m      m  the author's name, UTF-8
      64+n      1  end, FF: an entry whose end is missing cannot look complete

Before there were authors, 13 to 15 were zero: those entries have no name and an unknown interface. A version
that does not know authors ignores the interface, and refuses an entry with that bit, as of a kind that only
newer versions know: it would take the name for payload.

The payload of CHANGES and PART is a ChangeSet:

         0     16  the lengths in bytes, 4 each, of the four sections that follow
        16         removed and added, N-Quads; dropped and created graphs, one N-Triples term a line
       end      8  only where the writer does not see everything, and was told of another number of changed
                   quads than there are: how many more, signed

The payload of CLOSE is 4 bytes: how many PART entries it closes. That of CLOSE_CLEARED goes on with the
graphs that have nothing left of what they had, an N-Triples term a line, an empty line for the default graph.
"""

import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from mmap import mmap
from typing import NamedTuple

from pyoxigraph import DefaultGraph, Quad, RdfFormat, serialize

from graphdb.errors import CorruptionError
from graphdb.model import (
    UNKNOWN_AUTHOR,
    Author,
    ChangeSet,
    EntryKind,
    GraphName,
    Interface,
    LogEntry,
    NamedGraph,
    node_of_text,
)
from graphdb.rdf.quad_lines import parse_lines

__all__ = [
    "END",
    "ENTRY_OVERHEAD_BYTES",
    "HEADER_BYTES",
    "MARK",
    "SECTIONS_BYTES",
    "EntryHead",
    "PlacedEntries",
    "Record",
    "change_sections",
    "decode_changes",
    "decode_cleared",
    "decode_close",
    "decode_entries",
    "decode_entry",
    "decode_lines",
    "encode_change_parts",
    "encode_changes",
    "encode_close",
    "encode_entry",
    "encode_line",
    "encode_lines",
    "entries_bytes",
    "entry_bytes",
    "entry_without_payload",
    "graphs_named",
    "only_adds",
    "peek_entry",
    "place_entries",
    "quad_sections",
    "told_affected",
    "told_lines",
    "with_sections",
]

MARK = b"\xffGLE"
END = b"\xff"
_END_BYTE = END[0]
_HEADER = struct.Struct("<4sIIBBBxQQQQ16s")
_LEAD, _CHECKED = struct.Struct("<4sI"), struct.Struct("<IBBBxQQQQ16s")  # the header, in two
_FORMED = struct.Struct("<4sIIIQQQQ")  # the header up to its request_id, offsets 12 to 15 as one: the form
_PLACES, _PLACES_AT = struct.Struct("<QQQQ"), 16
_CRC, _CRC_AT = struct.Struct("<I"), 4
_NAMED = 0x80  # in the kind
_NAME_BYTES_MAX = 255
_SECTIONS = struct.Struct("<IIII")
_CLOSE = struct.Struct("<I")
_MORE = struct.Struct("<q")
HEADER_BYTES = _HEADER.size
SECTIONS_BYTES = _SECTIONS.size
ENTRY_OVERHEAD_BYTES = HEADER_BYTES + len(END)
_CRC_START = 8


class Record(NamedTuple):
    """A decoded entry, with what the file says about it; end is the offset just after it in its buffer."""

    entry: LogEntry
    durable_bytes: int
    end: int


def entry_bytes(payload_bytes: int) -> int:
    """The size of a whole entry with that much payload."""
    return ENTRY_OVERHEAD_BYTES + payload_bytes


def entries_bytes(entries: Sequence[LogEntry]) -> int:
    """The size of these entries, one after another, but for the names of their authors."""
    return ENTRY_OVERHEAD_BYTES * len(entries) + sum([len(entry.payload) for entry in entries])


def encode_entry(entry: LogEntry, durable_bytes: int = 0) -> bytes:
    """One entry as bytes, checksum included."""
    log_index, raft_term, kind, request_id, timestamp_ms, payload, (author, interface) = entry
    name, named = b"", 0
    if author:
        name, named = _name_bytes(author), _NAMED
        payload += name
    checked = _CHECKED.pack(
        len(payload),
        kind | named,
        interface,
        len(name),
        log_index,
        raft_term,
        timestamp_ms,
        durable_bytes,
        request_id,
    )
    crc = zlib.crc32(END, zlib.crc32(payload, zlib.crc32(checked)))
    return b"".join((_LEAD.pack(MARK, crc), checked, payload, END))


def _name_bytes(author: str) -> bytes:
    """Of a very long name its beginning."""
    return author.encode()[:_NAME_BYTES_MAX].decode(errors="ignore").encode()


def decode_entry(buffer: bytes | memoryview, offset: int = 0) -> Record | None:
    """The entry at offset, or None where no whole, undamaged entry stands.

    Raises CorruptionError for a kind that is not known here: the checksum has held, so a newer version of the
    program has written it, and skipping it would make this node's views differ from those of others.
    """
    if len(buffer) - offset < ENTRY_OVERHEAD_BYTES:
        return None
    header = _HEADER.unpack_from(buffer, offset)
    mark, crc, length, kind, interface, name_bytes, *places, durable, request_id = header
    log_index, raft_term, timestamp_ms = places
    end = offset + ENTRY_OVERHEAD_BYTES + length
    if mark != MARK or end > len(buffer):
        return None
    if zlib.crc32(memoryview(buffer)[offset + _CRC_START : end]) != crc:
        return None
    if name_bytes:
        kind &= ~_NAMED
    if kind not in _KINDS:
        raise _unknown_kind(log_index, kind)
    payload_end = end - len(END) - name_bytes
    author = _author(interface, bytes(buffer[payload_end : payload_end + name_bytes]))
    payload = bytes(buffer[offset + HEADER_BYTES : payload_end])
    entry = LogEntry(log_index, raft_term, _KINDS[kind], request_id, timestamp_ms, payload, author)
    return Record(entry, durable, end)


class EntryHead(NamedTuple):
    """What stands in the head of an entry that was not checked."""

    kind: int
    log_index: int
    timestamp_ms: int
    end: int  # the offset just after the entry; it may lie after the end of the buffer


def peek_entry(buffer: bytes | mmap, offset: int) -> EntryHead | None:
    """The head of the entry that begins at offset, its checksum unread; None where none begins.

    For whoever knows that whole entries stand there, and looks for some of them.
    """
    if len(buffer) - offset < ENTRY_OVERHEAD_BYTES:
        return None
    mark, _, length, kind, _, name_bytes, log_index, _, timestamp_ms, _, _ = _HEADER.unpack_from(
        buffer, offset
    )
    if mark != MARK:
        return None
    kind = kind & ~_NAMED if name_bytes else kind
    return EntryHead(kind, log_index, timestamp_ms, offset + ENTRY_OVERHEAD_BYTES + length)


def entry_without_payload(head: bytes) -> LogEntry | None:
    """The entry whose first HEADER_BYTES these are, with neither its payload nor its author; its checksum is
    not looked at. None where no entry of a known kind begins so.
    """
    mark, _, _, kind, _, name_bytes, log_index, raft_term, timestamp_ms, _, request_id = _HEADER.unpack(head)
    kind = kind & ~_NAMED if name_bytes else kind
    if mark != MARK or kind not in _KINDS:
        return None
    return LogEntry(log_index, raft_term, _KINDS[kind], request_id, timestamp_ms, b"")


def decode_entries(buffer: bytes) -> list[LogEntry] | None:
    """All entries in a buffer, which holds nothing else; None where one of them is damaged or cut short.

    Half of what `decode_entry` takes for each: an update passes here a dozen times in a cluster of three.
    Raises CorruptionError as that does.
    """
    entries: list[LogEntry] = []
    view, size, offset = memoryview(buffer), len(buffer), 0
    unpack, kinds, nameless = _HEADER.unpack_from, _KINDS, _NAMELESS
    while offset < size:
        if size - offset < ENTRY_OVERHEAD_BYTES:
            return None
        header = unpack(buffer, offset)  # named one by one: a starred name would cost a list
        mark, crc, length, kind, interface, name_bytes, log_index, raft_term, timestamp_ms, _, request_id = (
            header
        )
        end = offset + ENTRY_OVERHEAD_BYTES + length
        if mark != MARK or end > size or zlib.crc32(view[offset + _CRC_START : end]) != crc:
            return None
        payload_end = end - len(END) - name_bytes
        if name_bytes:
            kind &= ~_NAMED
            author = _author(interface, buffer[payload_end : payload_end + name_bytes])
        else:
            author = nameless.get(interface, UNKNOWN_AUTHOR)
        if kind not in kinds:
            raise _unknown_kind(log_index, kind)
        payload = buffer[offset + HEADER_BYTES : payload_end]
        entries.append(LogEntry(log_index, raft_term, kinds[kind], request_id, timestamp_ms, payload, author))
        offset = end
    return entries


class PlacedEntries(NamedTuple):
    """Entries as they are written to a file: the bytes, where in the file each begins, and their kinds."""

    data: bytearray
    starts: list[int]
    kinds: bytearray


def place_entries(encoded: bytes, first_index: int, start: int, durable_bytes: int) -> PlacedEntries | None:
    """Encoded entries as they are to stand in a file, from the offset `start` on: the first with first_index,
    all of no term. None where one of them is damaged or cut short.

    The bytes are those that decoding them, giving them their places and encoding them again would make, for
    half of the time. Raises CorruptionError as `decode_entry` does.
    """
    data = bytearray(encoded)
    view, size, offset, log_index = memoryview(data), len(data), 0, first_index
    starts: list[int] = []
    kinds = bytearray()
    unpack, forms, crc32 = _FORMED.unpack_from, _FORMS, zlib.crc32
    while offset < size:
        if size - offset < ENTRY_OVERHEAD_BYTES:
            return None
        mark, crc, length, form, _, _, timestamp_ms, _ = unpack(data, offset)
        end = offset + ENTRY_OVERHEAD_BYTES + length
        if mark != MARK or end > size:
            return None
        checked = view[offset + _CRC_START : end]
        if crc32(checked) != crc:
            return None
        kind = forms.get(form)
        if kind is None:
            kind = _kind_of_named(form, checked)
        if kind is None or data[end - 1] != _END_BYTE:
            return _place_anew(encoded, first_index, start, durable_bytes)
        _PLACES.pack_into(data, offset + _PLACES_AT, log_index, 0, timestamp_ms, durable_bytes)
        _CRC.pack_into(data, offset + _CRC_AT, crc32(checked))
        starts.append(start + offset)
        kinds.append(kind)
        offset, log_index = end, log_index + 1
    return PlacedEntries(data, starts, kinds)


def _kind_of_named(form: int, checked: memoryview) -> int | None:
    """Of an entry whose author has a name, as `encode_entry` writes it; None of others."""
    name_bytes = form >> 16 & 0xFF
    if not (form & _NAMED and 0 < name_bytes <= len(checked) + _CRC_START - ENTRY_OVERHEAD_BYTES):
        return None
    bytes(checked[-len(END) - name_bytes : -len(END)]).decode()  # or raise, as for whoever decodes it
    return _FORMS.get(form & ~(_NAMED | 0xFF << 16))


def _place_anew(encoded: bytes, first_index: int, start: int, durable_bytes: int) -> PlacedEntries | None:
    """`place_entries` where an entry holds what this version would not write so."""
    entries = decode_entries(encoded)
    if entries is None:
        return None
    chunks = [
        encode_entry(entry.at(index), durable_bytes) for index, entry in enumerate(entries, first_index)
    ]
    starts = list(accumulate(map(len, chunks), initial=start))[:-1]
    return PlacedEntries(bytearray().join(chunks), starts, bytearray(entry.kind for entry in entries))


def _unknown_kind(log_index: int, kind: int) -> CorruptionError:
    return CorruptionError(
        f"entry {log_index} is of a kind ({kind}) that only newer versions know: install the one that "
        "has written it",
        "update log",
    )


def _author(interface: int, name: bytes) -> Author:
    """Who wrote an entry has no effect on it, so an interface of a newer version is no reason to stop."""
    author = _NAMELESS.get(interface, UNKNOWN_AUTHOR)
    return author._replace(name=name.decode()) if name else author


_KINDS = {int(kind): kind for kind in EntryKind}
_FORMS = {kind | interface << 8: kind for kind in map(int, EntryKind) for interface in map(int, Interface)}
_NAMELESS = {int(interface): Author(interface=interface) for interface in Interface} | {0: UNKNOWN_AUTHOR}


def encode_changes(changes: ChangeSet) -> bytes:
    """A ChangeSet as payload; blank nodes keep their labels."""
    if not (changes.removed or changes.dropped_graphs or changes.created_graphs):  # most writes
        added = _encode_quads(changes.added)
        return _SECTIONS.pack(0, len(added), 0, 0) + added
    removed, added = _encode_quads(changes.removed), _encode_quads(changes.added)
    dropped, created = _encode_graphs(changes.dropped_graphs), _encode_graphs(changes.created_graphs)
    lengths = _SECTIONS.pack(len(removed), len(added), len(dropped), len(created))
    return b"".join((lengths, removed, added, dropped, created))


def encode_line(line: bytes, *, removes: bool) -> bytes:
    """The payload of a change of one quad of the default graph, which is this line."""
    size = len(line)
    return (_SECTIONS.pack(size, 0, 0, 0) if removes else _SECTIONS.pack(0, size, 0, 0)) + line


def encode_lines(
    removed: bytes,
    added: bytes,
    created_graphs: tuple[NamedGraph, ...] = (),
    dropped_graphs: tuple[NamedGraph, ...] = (),
) -> bytes:
    """The payload of a change whose quads are encoded already: a line each, as `encode_changes` writes it."""
    sections = (removed, added, _encode_graphs(dropped_graphs), _encode_graphs(created_graphs))
    return b"".join((_SECTIONS.pack(*map(len, sections)), *sections))


def decode_changes(payload: bytes) -> ChangeSet:
    """The ChangeSet in a payload.

    Raises CorruptionError: the checksum has held, so bytes that do not parse were written wrong.
    """
    try:
        sections = change_sections(payload)
        return ChangeSet(
            tuple(parse_lines(sections[0])),
            tuple(parse_lines(sections[1])),
            tuple(_decode_graphs(sections[2])),
            tuple(_decode_graphs(sections[3])),
        )
    except (ValueError, SyntaxError) as error:
        raise _unreadable(error) from error


def decode_lines(lines: bytes) -> tuple[Quad, ...]:
    """The quads in sections of payloads, one after another. Raises CorruptionError."""
    try:
        return tuple(parse_lines(lines))
    except (ValueError, SyntaxError) as error:
        raise _unreadable(error) from error


def change_sections(payload: bytes) -> list[bytes]:
    """What is removed and what is added, as N-Quads, and the graphs dropped and created, as they stand in a
    payload, unread. Raises CorruptionError.
    """
    try:
        lengths = _SECTIONS.unpack_from(payload)
        if len(payload) - _SECTIONS.size - sum(lengths) not in (0, _MORE.size):
            raise ValueError("sections do not fill the payload")
    except (struct.error, ValueError) as error:
        raise _unreadable(error) from error
    return list(_cut(payload, lengths))


def with_sections(payload: bytes, sections: Sequence[bytes]) -> bytes:
    """A payload with these sections in place of its own; what was reported to its writer stays."""
    end = _SECTIONS.size + sum(_SECTIONS.unpack_from(payload))
    return b"".join((_SECTIONS.pack(*map(len, sections)), *sections, payload[end:]))


def _unreadable(error: Exception) -> CorruptionError:
    return CorruptionError(f"a change that cannot be read: {error}", "update log entry")


def quad_sections(payload: bytes) -> tuple[tuple[int, int], tuple[int, int]]:
    """Where in the payload of CHANGES or PART the removed quads stand, and the added ones: a line each."""
    removed, added, _, _ = _SECTIONS.unpack_from(payload)
    begin, middle = _SECTIONS.size, _SECTIONS.size + removed
    return (begin, middle), (middle, middle + added)


def told_affected(payload: bytes, changes: ChangeSet) -> int:
    """How many changed quads were reported to the writer of a payload; without a report, those of changes."""
    return changes.affected_triples + _more_affected(payload)


def told_lines(payload: bytes) -> int:
    """The same of a payload whose quads stay unread."""
    (start, _), (_, end) = quad_sections(payload)
    return payload.count(b"\n", start, end) + _more_affected(payload)


def _more_affected(payload: bytes) -> int:
    end = _SECTIONS.size + sum(_SECTIONS.unpack_from(payload))
    more: int = _MORE.unpack_from(payload, end)[0] if end < len(payload) else 0
    return more


def graphs_named(payload: bytes) -> tuple[tuple[NamedGraph, ...], tuple[NamedGraph, ...]]:
    """The graphs that a payload names as dropped, and those as new. Raises CorruptionError."""
    _, _, dropped, created = change_sections(payload)
    return tuple(_decode_graphs(dropped)), tuple(_decode_graphs(created))


def only_adds(section_lengths: bytes) -> bool:
    """Whether a payload that begins with these SECTIONS_BYTES removes no quads and drops no graphs."""
    removed, _, dropped, _ = _SECTIONS.unpack(section_lengths)
    return not (removed or dropped)


def _cut(payload: bytes, lengths: Iterable[int]) -> Iterator[bytes]:
    start = _SECTIONS.size
    for length in lengths:
        yield payload[start : start + length]
        start += length


def encode_change_parts(changes: ChangeSet, part_bytes: int, reported: int | None = None) -> list[bytes]:
    """The ChangeSet as one payload, or as several of about part_bytes each where it is larger.

    The parts, decoded and put one after another, are the ChangeSet again: the graphs stand in the first,
    what is removed comes before what is added. A quad is never cut, so a part with a very long literal may be
    larger. reported is how many changed quads are reported to the writer, where that may be another number.
    """
    more = 0 if reported is None else reported - changes.affected_triples
    payloads = _change_parts(changes, part_bytes)
    if more:
        payloads[-1] += _MORE.pack(more)
    return payloads


def _change_parts(changes: ChangeSet, part_bytes: int) -> list[bytes]:
    whole = encode_changes(changes)
    if len(whole) <= part_bytes or not changes:
        return [whole]
    size = -(-changes.affected_triples * part_bytes // len(whole)) or 1
    parts = [ChangeSet(dropped_graphs=changes.dropped_graphs, created_graphs=changes.created_graphs)]
    parts = parts if parts[0] else []
    parts += (ChangeSet(removed=quads) for quads in _chunks(changes.removed, size))
    parts += (ChangeSet(added=quads) for quads in _chunks(changes.added, size))
    return [encode_changes(part) for part in parts]


def _chunks(quads: tuple[Quad, ...], size: int) -> Iterator[tuple[Quad, ...]]:
    return (quads[start : start + size] for start in range(0, len(quads), size))


def encode_close(parts: int, cleared_graphs: tuple[GraphName, ...] = ()) -> bytes:
    """The payload of a CLOSE entry; where graphs are cleared, of a CLOSE_CLEARED."""
    names = "".join("\n" if isinstance(graph, DefaultGraph) else f"{graph}\n" for graph in cleared_graphs)
    return _CLOSE.pack(parts) + names.encode()


def decode_close(payload: bytes) -> int:
    """How many PART entries a CLOSE or CLOSE_CLEARED closes. Raises CorruptionError."""
    if len(payload) < _CLOSE.size or payload[_CLOSE.size :][-1:] not in (b"", b"\n"):
        raise CorruptionError("a CLOSE of the wrong length", "update log entry")
    parts: int = _CLOSE.unpack_from(payload)[0]
    return parts


def decode_cleared(payload: bytes) -> tuple[GraphName, ...]:
    """The graphs that a CLOSE_CLEARED has nothing left in; none of a CLOSE."""
    names = payload[_CLOSE.size :].decode().split("\n")[:-1]
    return tuple(DefaultGraph() if not name else node_of_text(name) for name in names)


def _encode_quads(quads: tuple[Quad, ...]) -> bytes:
    return (serialize(quads, format=RdfFormat.N_QUADS) or b"") if quads else b""


def _encode_graphs(graphs: tuple[NamedGraph, ...]) -> bytes:
    return "".join(f"{graph}\n" for graph in graphs).encode() if graphs else b""


def _decode_graphs(text: bytes) -> Iterator[NamedGraph]:
    for line in text.decode().split("\n")[:-1]:
        yield node_of_text(line)
