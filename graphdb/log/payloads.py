"""The payloads of log entries that change quads: ChangeSets as bytes.

Integers are little-endian, and unsigned unless it is said. The payload of CHANGES and PART is a ChangeSet:

         0     16  the lengths in bytes, 4 each, of the four sections that follow
        16         removed and added, N-Quads; dropped and created graphs, one N-Triples term a line
       end      8  only where the writer does not see everything, and was told of another number of changed
                   quads than there are: how many more, signed

The payload of CLOSE is 4 bytes: how many PART entries it closes. That of CLOSE_CLEARED goes on with the
graphs that have nothing left of what they had, an N-Triples term a line, an empty line for the default graph.
"""

import struct
from collections.abc import Iterable, Iterator, Sequence

from pyoxigraph import DefaultGraph, Quad, RdfFormat, serialize

from graphdb.errors import CorruptionError
from graphdb.model import ChangeSet, GraphName, NamedGraph, node_of_text
from graphdb.rdf.quad_lines import parse_lines

__all__ = [
    "SECTIONS_BYTES",
    "change_sections",
    "decode_changes",
    "decode_cleared",
    "decode_close",
    "decode_lines",
    "encode_change_parts",
    "encode_changes",
    "encode_close",
    "encode_line",
    "encode_lines",
    "graphs_named",
    "only_adds",
    "quad_sections",
    "told_affected",
    "told_lines",
    "with_sections",
]

_SECTIONS = struct.Struct("<IIII")
_CLOSE = struct.Struct("<I")
_MORE = struct.Struct("<q")
SECTIONS_BYTES = _SECTIONS.size


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
