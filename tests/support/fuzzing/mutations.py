"""Random changes to texts and documents: most results are almost valid, which is where parsers go wrong."""

import re
from collections.abc import Callable, Sequence
from random import Random

__all__ = ["mutated"]

_PIECES = re.compile(rb"[A-Za-z_]\w*|\d+|\s+|<[^<>\s]*>|\"[^\"\n]*\"|.", re.DOTALL)
SCRAPS = (
    *(b"{", b"}", b"(", b")", b"[", b"]", b"<<", b">>", b"<<("),
    *(b")>>", b"{|", b"|}", b"~", b"^", b"^^", b"|", b"*"),
    *(b"'", b'"', b"'''", b'"""', b"\\", b"\\u", b"\\U0010FFFF"),
    *(b"\\uD800", b"#", b"@", b"@en--ltr", b"?", b"_:"),
    *(b"\0", b"\r", b"\n", b"\xff", b"\xc0\xaf", b"\xed\xa0\x80"),
    *(b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"\xf0\x9f\x98\x80"),
    *(b"<", b">", b"<>", b"&", b"&lt;", b"<!--", b"<!DOCTYPE a>"),
    *(b"%", b"%zz", b"%00", b"a", b".", b";", b",", b"1e999"),
    *(b"SELECT", b"FILTER", b"GRAPH ?g", b"VALUES", b"UNDEF"),
    *(b"EXISTS", b"BASE <", b"-9223372036854775808", b"null"),
)  # fmt: skip

Pieces = list[bytes]


def mutated(random: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """The data with one to four random changes; a change may take a part of one of the others over."""
    for _ in range(random.choice((1, 1, 1, 2, 2, 3, 4))):
        if random.random() < 0.2:
            data = _byte_changed(random, data)
        else:
            pieces: Pieces = _PIECES.findall(data)
            change = random.choice(CHANGES)
            data = b"".join(change(random, pieces, random.choice(others)))
    return data


def _byte_changed(random: Random, data: bytes) -> bytes:
    place = random.randrange(len(data) + 1)
    return data[:place] + bytes([random.randrange(256)]) + data[place + random.randrange(2) :]


def _part(random: Random, pieces: Pieces) -> tuple[int, int]:
    start = random.randrange(len(pieces) + 1)
    return start, min(len(pieces), start + random.choice((1, 1, 2, 5, 20)))


def _cut(random: Random, pieces: Pieces, _other: bytes) -> Pieces:
    start, end = _part(random, pieces)
    return pieces[:start] + pieces[end:]


def _truncate(random: Random, pieces: Pieces, _other: bytes) -> Pieces:
    return pieces[: random.randrange(len(pieces) + 1)]


def _repeat(random: Random, pieces: Pieces, _other: bytes) -> Pieces:
    start, end = _part(random, pieces)
    return pieces[:end] + pieces[start:end] * random.choice((1, 2, 10, 200)) + pieces[end:]


def _swap(random: Random, pieces: Pieces, _other: bytes) -> Pieces:
    (start, middle), (place, end) = sorted((_part(random, pieces), _part(random, pieces)))
    middle = min(middle, place)
    return pieces[:start] + pieces[place:end] + pieces[middle:place] + pieces[start:middle] + pieces[end:]


def _insert(random: Random, pieces: Pieces, _other: bytes) -> Pieces:
    place = random.randrange(len(pieces) + 1)
    return [*pieces[:place], random.choice(SCRAPS), *pieces[place:]]


def _splice(random: Random, pieces: Pieces, other: bytes) -> Pieces:
    start, end = _part(random, pieces)
    source = _PIECES.findall(other)
    first, last = _part(random, source)
    return [*pieces[:start], b" ", *source[first:last], b" ", *pieces[end:]]


CHANGES: tuple[Callable[[Random, Pieces, bytes], Pieces], ...] = (
    _cut,
    _truncate,
    _repeat,
    _swap,
    _insert,
    _splice,
)
