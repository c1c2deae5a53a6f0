"""The bytes of log entries, whatever their payloads (`payloads`). It knows nothing of files.

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
"""

import struct
import zlib
from collections.abc import Sequence
from itertools import accumulate
from mmap import mmap
from typing import NamedTuple

from graphdb.errors import CorruptionError
from graphdb.model import UNKNOWN_AUTHOR, Author, EntryKind, Interface, LogEntry

__all__ = [
    "END",
    "ENTRY_OVERHEAD_BYTES",
    "HEADER_BYTES",
    "MARK",
    "EntryHead",
    "PlacedEntries",
    "Record",
    "decode_entries",
    "decode_entry",
    "encode_entry",
    "entries_bytes",
    "entry_bytes",
    "entry_without_payload",
    "peek_entry",
    "place_entries",
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
HEADER_BYTES = _HEADER.size
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
