"""The tokenizers other than `standard`: each says where tokens are in a text."""

from collections.abc import Callable, Iterable, Iterator

import regex

from graphdb.search.analysis.patterns import JavaPattern
from graphdb.search.analysis.token import Token

__all__ = [
    "CHARACTER_CLASSES",
    "PathTokenizer",
    "Span",
    "SpanTokenizer",
    "grams",
    "letters",
    "not_whitespace",
    "pattern_spans",
    "runs",
    "whole",
]

Span = tuple[int, int]

# Java's isWhitespace leaves out the no-break spaces, and counts the separators of files and records.
_WHITESPACE = r"[\p{Z}\t-\r\x1c-\x1f--[\u00a0\u2007\u202f]]"
CHARACTER_CLASSES = {
    "letter": r"\p{L}",
    "digit": r"\p{Nd}",
    "whitespace": _WHITESPACE,
    "punctuation": r"\p{P}",
    "symbol": r"\p{S}",
}


class SpanTokenizer:
    """Tokens are what spans finds, one position each; those longer than length_max are cut up."""

    consecutive = True

    def __init__(
        self,
        spans: Callable[[str], Iterable[Span]],
        length_max: int | None = None,
        change: Callable[[str], str] = str,
    ) -> None:
        self._spans, self._length_max, self._change = spans, length_max, change

    def terms(self, text: str) -> list[str]:
        return [self._change(text[start:end]) for start, end in self._cut(text)]

    def tokens(self, text: str) -> list[Token]:
        return [
            Token(self._change(text[start:end]), start, end, "word", position)
            for position, (start, end) in enumerate(self._cut(text))
        ]

    def _cut(self, text: str) -> Iterable[Span]:
        spans = self._spans(text)
        return spans if self._length_max is None else _pieces(spans, self._length_max)


def _pieces(spans: Iterable[Span], length_max: int) -> Iterator[Span]:
    for start, end in spans:
        for piece in range(start, end, length_max):
            yield piece, min(piece + length_max, end)


def runs(inside: str) -> Callable[[str], list[Span]]:
    """The longest runs of characters that a set, as `regex` writes it, holds."""
    pattern = regex.compile(f"{inside}++", regex.VERSION1)
    return lambda text: [found.span() for found in pattern.finditer(text)]


letters = runs(r"\p{L}")
not_whitespace = runs(f"[^{_WHITESPACE}]")


def whole(text: str) -> list[Span]:
    return [(0, len(text))] if text else []


def pattern_spans(pattern: JavaPattern, group: int) -> Callable[[str], Iterator[Span]]:
    """What a group matches, 0 for all of a match; with -1 what stands between matches. Never empty."""

    def between(text: str) -> Iterator[Span]:
        start = 0
        for found in pattern.finditer(text):
            if found.start() > start:
                yield start, found.start()
            start = found.end()
        if start < len(text):
            yield start, len(text)

    def inside(text: str) -> Iterator[Span]:
        return (found.span(group) for found in pattern.finditer(text) if found.group(group))

    return between if group < 0 else inside


def grams(
    spans: Callable[[str], Iterable[Span]], low: int, high: int, edges_only: bool
) -> Callable[[str], Iterator[Span]]:
    """All of low to high characters within each span, by start and then by length."""

    def cut(text: str) -> Iterator[Span]:
        for start, end in spans(text):
            for first in range(start, start + 1 if edges_only else end):
                for last in range(first + low, min(first + high, end) + 1):
                    yield first, last

    return cut


class PathTokenizer:
    """A path and those above it, all at one position; with reverse, those that end it."""

    consecutive = False

    def __init__(self, delimiter: str, replacement: str, reverse: bool, skip: int) -> None:
        self._delimiter, self._replacement, self._reverse, self._skip = delimiter, replacement, reverse, skip

    def terms(self, text: str) -> list[str]:
        return [token.term for token in self.tokens(text)]

    def tokens(self, text: str) -> list[Token]:
        return [
            Token(text[start:end].replace(self._delimiter, self._replacement), start, end)
            for start, end in (self._from_the_end(text) if self._reverse else self._from_the_start(text))
        ]

    def _from_the_start(self, text: str) -> list[Span]:
        ends = [place for place, char in enumerate(text) if char == self._delimiter and place]
        ends += [len(text)] if text else []
        start = 0 if self._skip == 0 or len(ends) < self._skip else ends[self._skip - 1]
        return [(start, end) for end in ends[self._skip :]]

    def _from_the_end(self, text: str) -> list[Span]:
        starts = [place + 1 for place, char in enumerate(text) if char == self._delimiter]
        starts = [start for start in [0, *starts] if start < len(text)]
        kept = starts[: len(starts) - self._skip]
        end = starts[len(kept)] if self._skip and kept else len(text)
        return [(start, end) for start in kept]
