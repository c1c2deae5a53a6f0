"""`word_delimiter` and `word_delimiter_graph`: parts of words such as `Wi-Fi`, `PowerShot500`, `O'Neil's`.

Source: the documentation of Lucene's WordDelimiterGraphFilter.
"""

import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from graphdb.search.analysis.token import Token

__all__ = ["WORD_KINDS", "DelimiterOptions", "word_parts"]

# Kinds of characters, as bits: a letter without case is of both cases.
_LOWER, _UPPER, _DIGIT, _DELIMITER = 1, 2, 4, 8
_LETTER = _LOWER | _UPPER
WORD_KINDS: Mapping[str, int] = {
    "LOWER": _LOWER,
    "UPPER": _UPPER,
    "ALPHA": _LETTER,
    "DIGIT": _DIGIT,
    "ALPHANUM": _LETTER | _DIGIT,
    "SUBWORD_DELIM": _DELIMITER,
}
_KIND_OF = {
    "Lu": _UPPER,
    "Ll": _LOWER,
    **dict.fromkeys(("Lt", "Lm", "Lo", "Mn", "Mc", "Me"), _LETTER),
    **dict.fromkeys(("Nd", "Nl", "No"), _DIGIT),
    "Cs": _LETTER | _DIGIT,
}


@dataclass(frozen=True, slots=True)
class DelimiterOptions:
    """As the parameters of the filters. types: kinds of characters that are not what Unicode says."""

    word_parts: bool = True
    number_parts: bool = True
    join_words: bool = False
    join_numbers: bool = False
    join_all: bool = False
    on_case: bool = True
    on_numbers: bool = True
    keeps_original: bool = False
    without_possessive: bool = True
    adjusts_offsets: bool = True
    ignores_keywords: bool = False
    protected: frozenset[str] = frozenset()
    types: Mapping[str, int] | None = None

    def kind(self, char: str) -> int:
        if self.types is not None and char in self.types:
            return self.types[char]
        return _KIND_OF.get(unicodedata.category(char), _DELIMITER)

    def generates(self, kind: int) -> bool:
        return (self.word_parts and bool(kind & _LETTER)) or (self.number_parts and bool(kind & _DIGIT))

    def joins(self, kind: int) -> bool:
        return (self.join_words and bool(kind & _LETTER)) or (self.join_numbers and bool(kind & _DIGIT))


@dataclass(frozen=True, slots=True)
class _Part:
    start: int
    end: int
    kind: int


@dataclass(frozen=True, slots=True)
class _Made:
    """A token: its text, where it stands in the word, and the parts that it spans."""

    text: str
    start: int
    end: int
    first: int
    last: int


def word_parts(options: DelimiterOptions, graph: bool) -> Callable[[list[Token]], list[Token]]:
    """A filter of tokens. graph: a joined token spans the positions of its parts; otherwise it stands at the
    first of them.
    """

    def change(tokens: list[Token]) -> list[Token]:
        result: list[Token] = []
        shift = taken = (
            0  # positions that parts take up beyond those of the words: up to this word, and its own
        )
        before = -1
        for token in tokens:
            if token.position != before:
                shift, taken, before = shift + taken, 0, token.position
            made = _made(token, options)
            if made is None:
                result.append(replace(token, position=token.position + shift))
                continue
            taken = max(taken, max((each.last for each in made), default=1) - 1)
            result += [_token(token, each, token.position + shift, options, graph) for each in made]
        return result

    return change


def _token(token: Token, made: _Made, position: int, options: DelimiterOptions, graph: bool) -> Token:
    start, end = token.start_offset, token.end_offset
    if options.adjusts_offsets and end - start == len(token.term):
        start, end = start + made.start, start + made.end
    return replace(
        token,
        term=made.text,
        start_offset=start,
        end_offset=end,
        position=position + made.first,
        position_length=made.last - made.first if graph else 1,
    )


def _made(token: Token, options: DelimiterOptions) -> list[_Made] | None:
    """What a word becomes; None where it stays as it is."""
    word = token.term
    if word in options.protected or (options.ignores_keywords and token.keyword):
        return None
    parts = list(_parts(word, options))
    if len(parts) == 1 and (parts[0].start, parts[0].end) == (0, len(word)):
        return None
    made: list[_Made] = []
    position = 0
    joined: list[tuple[_Part, int]] = []  # with the position at which each stands
    every: list[tuple[_Part, int]] = []
    longest = 0

    def flush() -> None:
        nonlocal position, longest
        if not joined:
            return
        if position == joined[0][1]:  # its parts are no tokens
            position += 1
        longest = len(joined)
        if len(joined) > 1 or not options.generates(joined[0][0].kind):
            made.append(_joined(word, joined, position))
        joined.clear()

    for part in parts:
        if joined and not joined[0][0].kind & part.kind:
            flush()
        if options.joins(part.kind):
            joined.append((part, position))
        if options.join_all:
            every.append((part, position))
        if options.generates(part.kind):
            made.append(_Made(word[part.start : part.end], part.start, part.end, position, position + 1))
            position += 1
    flush()
    if len(every) > longest:
        if position == every[0][1]:
            position += 1
        made.append(_joined(word, every, position))
    if options.keeps_original:
        position = max(position, 1)
        made.append(_Made(word, 0, len(word), 0, position))
    # the longest first of those that begin together
    return sorted(made, key=lambda each: (each.first, -each.last))


def _joined(word: str, parts: list[tuple[_Part, int]], end: int) -> _Made:
    text = "".join(word[part.start : part.end] for part, _ in parts)
    return _Made(text, parts[0][0].start, parts[-1][0].end, parts[0][1], end)


def _parts(word: str, options: DelimiterOptions) -> Iterator[_Part]:
    """Runs of a word between which it is to be split, without delimiters and English possessives."""
    kinds = [options.kind(char) for char in word]
    end = len(word)
    while end and kinds[end - 1] & _DELIMITER:
        end -= 1
    at = 0
    while at < end:
        if kinds[at] & _DELIMITER:
            at += 1
            continue
        if options.without_possessive and _is_possessive(word, kinds, at):
            at += 1
            continue
        start = at
        at += 1
        while at < end and not _breaks(kinds[at - 1], kinds[at], options):
            at += 1
        kind = kinds[start]
        yield _Part(start, at, _LETTER if kind in (_LOWER, _UPPER) else kind)


def _is_possessive(word: str, kinds: list[int], at: int) -> bool:
    """Whether an s stands there behind a letter and an apostrophe, and the word or its part ends with it."""
    return (
        at > 1
        and word[at] in "sS"
        and word[at - 1] == "'"
        and bool(kinds[at - 2] & _LETTER)
        and (at + 1 == len(word) or bool(kinds[at + 1] & _DELIMITER))
    )


def _breaks(before: int, kind: int, options: DelimiterOptions) -> bool:
    if before & kind:
        return False
    if not options.on_case and before & _LETTER and kind & _LETTER:
        return False
    if before & _UPPER and kind & _LETTER:  # Power: one capital, then small letters
        return False
    mixed = (before & _LETTER and kind & _DIGIT) or (before & _DIGIT and kind & _LETTER)
    return options.on_numbers or not mixed
