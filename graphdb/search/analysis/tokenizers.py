"""Tokenizers: by patterns and characters, and by the word boundaries of Unicode."""

import re
from collections.abc import Callable, Iterable, Iterator

import regex

from graphdb.search.analysis.parameters import JavaPattern
from graphdb.search.analysis.token import Token

__all__ = [
    "CHARACTER_CLASSES",
    "PathTokenizer",
    "Span",
    "SpanTokenizer",
    "StandardTokenizer",
    "grams",
    "letters",
    "not_whitespace",
    "pattern_spans",
    "runs",
    "utf16_length",
    "whole",
]

# The `standard` tokenizer: words as Unicode's Annex 29 breaks them, with the types that Lucene gives them.
#
# Every character becomes a letter for what it is to the rules, and the rules are patterns over these
# letters:
#
#     a letter  G Hangul letter  H Hebrew letter  i letter and emoji  K Katakana  n digit  d ASCII digit
#     : MidLetter  . MidNumLet  , MidNum  q '  Q "  _ ExtendNumLet  R regional indicator
#     e emoji  b emoji that takes a skin tone  m skin tone  # keycap base  k keycap
#     x Extend or Format  z zero width joiner  v emoji style  h Han  y Hiragana
#     S Southeast Asian  s the same, and Extend
#
# Sources: UAX #29 section 4.1; Lucene's StandardTokenizer, which keeps Southeast Asian runs whole, makes
# each ideograph and each Hiragana character a token, and takes emoji sequences by UTS #51.

_TOKEN_LENGTH_MAX = 255  # UTF-16 units, as Lucene counts
_CLASSES_MAX = 50_000  # characters remembered

# The first that fits counts. The names of groups are the letters, spelt out where they are no names.
_PROPERTIES = regex.compile(
    r"""(?P<v>\uFE0F)|(?P<z>\u200D)|(?P<k>\u20E3)|(?P<m>\p{Emoji_Modifier})|(?P<d>[0-9])|(?P<hash>[#*])
    |(?P<q>\p{WB=Single_Quote})|(?P<Q>\p{WB=Double_Quote})|(?P<dot>\p{WB=MidNumLet})|(?P<colon>\p{WB=MidLetter})
    |(?P<comma>\p{WB=MidNum})|(?P<under>\p{WB=ExtendNumLet})|(?P<R>\p{WB=Regional_Indicator})
    |(?P<K>\p{WB=Katakana})|(?P<H>\p{WB=Hebrew_Letter})
    |(?P<G>[\p{WB=ALetter}&&\p{Script=Hangul}])|(?P<i>[\p{WB=ALetter}&&\p{Extended_Pictographic}])
    |(?P<a>\p{WB=ALetter})|(?P<n>[\p{WB=Numeric}[\uFF10-\uFF19]])
    |(?P<b>\p{Emoji_Modifier_Base})|(?P<e>\p{Extended_Pictographic})
    |(?P<s>[\p{LB=SA}&&[\p{WB=Extend}\p{WB=Format}]])|(?P<S>\p{LB=SA})
    |(?P<x>[\p{WB=Extend}\p{WB=Format}])|(?P<h>\p{Script=Han})|(?P<y>\p{Script=Hiragana})""",
    regex.VERSION1 | regex.VERBOSE,
)
_SPELT = {"hash": "#", "dot": ".", "colon": ":", "comma": ",", "under": "_"}


class _Classes(dict[int, str]):
    """From code point to letter, for `str.translate`; a blank for what is in no token."""

    def __missing__(self, code: int) -> str:
        found = _PROPERTIES.match(chr(code))
        name = (found and found.lastgroup) or " "
        letter = _SPELT.get(name, name)
        if len(self) < _CLASSES_MAX:
            self[code] = letter
        return letter


_CLASSES = _Classes()

_X = "[xzvkms]*+"  # WB4: belongs to the character before
_P = "[xzkms]*+"  # the same, but for what asks for emoji style
# Possessive groups end with an empty alternative: tests/architecture/test_patterns.py says why.
_LETTER = (  # a letter or digit, with what may stand between it and the next
    rf"H{_X}(?:Q{_X}(?=H)|q{_X}|[:.]{_X}(?=[aGHi])|)?+"
    rf"|[aGi]{_X}(?:[:.q]{_X}(?=[aGHi])|)?+|[nd]{_X}(?:[,.q]{_X}(?=[nd])|)?+"
)
_UNIT = f"(?:K[Kxzvkms]*+|(?:{_LETTER})(?:{_LETTER}|)*+)"  # WB5 to WB13; K: Katakana
_LOW = "_[_xzvkms]*+"  # WB13a, WB13b
_WORD = f"(?:{_LOW}(?:{_UNIT}|)?+|{_UNIT})(?:{_LOW}(?:{_UNIT}|)?+|)*+"
_ELEMENT = f"(?:z*+b{_P}m{_P}|z*+[ebi]{_P}v?|m{_P})"
_EMOJI = f"{_ELEMENT}(?:(?:(?<=z)|(?=z)){_ELEMENT}|)*+|[d#][xzms]*+v?k{_P}|R{_X}R{_X}"

# The word's own pattern too: an emoji that is a letter as well, or a digit, may go on as a word.
_WORD_RE = re.compile(_WORD)
_NEXT = re.compile(
    f"(?P<emoji>{_EMOJI})|(?P<word>{_WORD})|(?P<asian>[Ss][Ssxzvkms]*+)|(?P<han>h{_X})|(?P<kana>y{_X})"
)
_ASCII = re.compile(
    r"[A-Za-z0-9_]++(?:(?:(?<=[A-Za-z])[':.](?=[A-Za-z])|(?<=[0-9])['.,;](?=[0-9]))[A-Za-z0-9_]++|)*+"
)
_LOW_ONLY = re.compile(r"[_xzvkms]++")
_Span = tuple[int, int, str]  # start, end, group of _NEXT
_TYPES = {"emoji": "<EMOJI>", "asian": "<SOUTHEAST_ASIAN>", "han": "<IDEOGRAPHIC>", "kana": "<HIRAGANA>"}
_WORD_TYPES = [  # the first that the whole word fits
    (re.compile(r"[nd_,.qxzvkms]+"), "<NUM>"),
    (re.compile(r"[Gxzvkms]+"), "<HANGUL>"),
    (re.compile(r"[Kxzvkms]+"), "<KATAKANA>"),
]


class StandardTokenizer:
    """A token longer than max_token_length is cut there, and what is left begins another."""

    consecutive = True

    def __init__(self, max_token_length: int = _TOKEN_LENGTH_MAX) -> None:
        self.length_max = max_token_length
        # A pattern sees no more at a time, so that a long run is not read again from each cut in it.
        self._window = 4 * max_token_length + 1024

    def terms(self, text: str) -> list[str]:
        if not text.isascii():
            return [text[start:end] for start, end, _ in self._spans(text, text.translate(_CLASSES))]
        terms: list[str] = _ASCII.findall(text)
        if "_" in text:
            terms = [term for term in terms if term.strip("_")]
        if len(text) > self.length_max and any(len(term) > self.length_max for term in terms):
            return [text[start:end] for start, end, _ in self._spans(text, text.translate(_CLASSES))]
        return terms

    def tokens(self, text: str) -> list[Token]:
        classes = text.translate(_CLASSES)
        return [
            Token(text[start:end], start, end, _type(classes, start, end, group), position)
            for position, (start, end, group) in enumerate(self._spans(text, classes))
        ]

    def _spans(self, text: str, classes: str) -> list[_Span]:
        spans: list[_Span] = []
        place = 0
        while place < len(text):
            place = self._scan(text, classes, place, spans)
        return [span for span in spans if not _is_low_line(classes, span)]

    def _scan(self, text: str, classes: str, place: int, spans: list[_Span]) -> int:
        """Adds the tokens from place on, up to what the pattern alone cannot settle; where to go on."""
        stop = min(place + self._window, len(text))
        last_start = stop if stop == len(text) else stop - self._window // 2
        for found in _NEXT.finditer(classes, place, stop):
            start, end = found.span()
            if start > last_start:
                return start
            if end - start > self.length_max // 2 and utf16_length(text, start, end) > self.length_max:
                found = _NEXT.match(classes, start, self._cut(text, start)) or found
            longest, group = _longest(classes, found)
            spans.append((start, longest, group))
            if longest != end:
                return longest
        return stop if stop == len(text) else max(last_start, spans[-1][1] if spans else 0)

    def _cut(self, text: str, start: int) -> int:
        """Where the longest token that may begin at start has to end; one character always fits."""
        units = 0
        for end in range(start, min(start + self.length_max, len(text))):
            units += 2 if text[end] > "\uffff" else 1
            if units > self.length_max:
                return max(end, start + 1)
        return min(start + self.length_max, len(text))


def utf16_length(text: str, start: int, end: int) -> int:
    """How many UTF-16 units text[start:end] has: what Java calls its length."""
    part = text[start:end]
    return len(part) if part.isascii() else len(part) + sum(1 for char in part if char > "\uffff")


def _longest(classes: str, found: "re.Match[str]") -> tuple[int, str]:
    """End and kind of what begins where found does: the longer of an emoji and a word."""
    end, group = found.end(), str(found.lastgroup)
    if group == "emoji":
        word = _WORD_RE.match(classes, found.start(), found.endpos)
        if word is not None and word.end() > end:
            return word.end(), "word"
    return end, group


def _is_low_line(classes: str, span: _Span) -> bool:
    """A run of underscores alone is no token."""
    start, end, _ = span
    return classes[start] == "_" and _LOW_ONLY.fullmatch(classes, start, end) is not None


def _type(classes: str, start: int, end: int, group: str) -> str:
    if group != "word":
        return _TYPES[group]
    fitting = (kind for pattern, kind in _WORD_TYPES if pattern.fullmatch(classes, start, end))
    return next(fitting, "<ALPHANUM>")


# The tokenizers other than `standard`: each says where tokens are in a text.

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
