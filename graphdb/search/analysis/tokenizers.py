"""The tokenizers other than `standard`."""

import re
from collections.abc import Callable, Iterable, Iterator

from graphdb.search.analysis.patterns import JavaPattern
from graphdb.search.analysis.token import Token

__all__ = [
    "CharacterTokenizer",
    "GramTokenizer",
    "KeywordTokenizer",
    "PathTokenizer",
    "PatternTokenizer",
    "letters",
    "matcher",
    "no_whitespace",
]

Span = tuple[int, int]
# A letter to Java is of category L; `\w` without digits, low line and marks is near, and marks are sorted out.
_WORD = re.compile(r"[^\W\d_]+")


def letters(text: str) -> list[Span]:
    """Runs of letters, as Character.isLetter says: `str.isalpha` is the same question."""
    return _runs(text, str.isalpha)


# Character.isWhitespace: not the no-break spaces, which `str.isspace` counts
_NOT_WHITESPACE = re.compile(
    r"[^\t-\r\x1c-\x20\u1680\u2000-\u2006\u2008-\u200a\u2028\u2029\u205f\u3000]+"
)


def no_whitespace(text: str) -> list[Span]:
    return [found.span() for found in _NOT_WHITESPACE.finditer(text)]


def matcher(belongs: Callable[[str], bool]) -> Callable[[str], list[Span]]:
    """Cuts a text into the runs of characters that belong to tokens."""
    return lambda text: _runs(text, belongs)


def _runs(text: str, belongs: Callable[[str], bool]) -> list[Span]:
    spans, start = [], -1
    for place, char in enumerate(text):
        if belongs(char):
            start = place if start < 0 else start
        elif start >= 0:
            spans.append((start, place))
            start = -1
    if start >= 0:
        spans.append((start, len(text)))
    return spans
