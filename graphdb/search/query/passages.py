"""What highlighting looks for in a text, and the passages that it cuts the text into."""

import bisect
import html
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from graphdb.search.analysis import Token
from graphdb.search.query.combined_fields import CombinedFieldsQuery
from graphdb.search.query.compound import BoolQuery, BoostingQuery
from graphdb.search.query.dictionary_queries import PrefixQuery, RegexpQuery, TermRangeQuery, WildcardQuery
from graphdb.search.query.function_score import FunctionScoreQuery
from graphdb.search.query.intervals import IntervalsQuery
from graphdb.search.query.phrase import PhraseQuery
from graphdb.search.query.positions import queries_of
from graphdb.search.query.regexp import Regexp
from graphdb.search.query.searcher import Searcher
from graphdb.search.query.spans import SpanQuery
from graphdb.search.query.term_queries import KeywordQuery, SynonymQuery, TermQuery, TermsQuery
from graphdb.search.query.tree import Query, RewrittenQuery

__all__ = ["SEPARATOR", "Breaks", "Match", "Passage", "Sought", "best_passages", "marked", "whole_passages"]

# Cutting a text into passages around its matches, choosing the best, and marking the matches in them.
#
# Source: Lucene's UnifiedHighlighter and PassageScorer, Elasticsearch's BoundedBreakIteratorScanner.

SEPARATOR = "\u2029"  # between two values of a field
PIVOT = 87.0  # characters of a passage of middling length
K1, B = 1.2, 0.75

SENTENCE_END = re.compile(r"[.?!]+[\"')\]]*\s+(?![a-z])|[\n\r\u2029]+")
WORD = re.compile(r"\w+(?:['.]\w+)*|\s+|.", re.DOTALL)


@dataclass(frozen=True, slots=True, order=True)
class Match:
    """Characters [start, end) of the text; term is what they stand for."""

    start: int
    end: int
    term: str


@dataclass(slots=True)
class Passage:
    """Characters [start, end) of the text with the matches in them."""

    start: int
    end: int
    matches: list[Match] = field(default_factory=list)

    def score(self, length: int) -> float:
        """Repeated words count less, and earlier passages a little more. How rare a word is does not count: a
        match of a whole query has no frequency in the document.
        """
        documents = 1 + length / PIVOT
        norm = K1 * ((1 - B) + B * ((self.end - self.start) / PIVOT))
        score = 0.0
        weight = (K1 + 1) * math.log(1 + (documents + 0.5) / 1.5)
        for freq in Counter(match.term for match in self.matches).values():
            score += weight * freq / (freq + norm)
        return score * (1 + 1 / math.log(PIVOT + self.start))


class Breaks:
    """Where passages of about size characters may begin and end: at sentences, at words in long ones.

    by_word: each word is a passage, whatever the size.
    """

    def __init__(self, text: str, size: int, by_word: bool = False) -> None:
        self._text, self._size = text, size
        self._words = [0, *(found.end() for found in WORD.finditer(text))]
        ends = [found.end() for found in SENTENCE_END.finditer(text)]
        self._sentences, self._by_word = sorted({0, *ends, len(text)}), by_word
        self._window = (-1, -1)
        self._end = -1

    def around(self, offset: int) -> tuple[int, int]:
        """The passage around the character at offset; offsets ascend from call to call."""
        if self._by_word:
            return _before(self._words, offset + 1), _after(self._words, offset)
        after = offset + 1
        if self._window[0] < after < self._window[1]:
            start, end = self._end, self._window[1]
        else:
            start, end = self._sentence(offset)
            self._window = (start, end)
        if end - start > self._size:
            if after - self._size > start:
                start = max(start, _before(self._words, after - self._size))
            remaining = max(0, self._size - (after - start))
            if after + remaining < self._window[1]:
                end = min(self._window[1], _after(self._words, after + remaining))
        self._end = end
        return start, end

    def _sentence(self, offset: int) -> tuple[int, int]:
        """The sentence, and as many after it as fit."""
        start, end = _before(self._sentences, offset + 1), _after(self._sentences, offset)
        while end - start < self._size and end < len(self._text) and self._text[end - 1] != SEPARATOR:
            following = _after(self._sentences, end)
            if following - start > self._size:
                break
            end = following
        return start, end

    def word_after(self, offset: int) -> int:
        """The next boundary of a word."""
        return _after(self._words, offset)


def _before(breaks: Sequence[int], offset: int) -> int:
    return breaks[max(0, bisect.bisect_left(breaks, offset) - 1)]


def _after(breaks: Sequence[int], offset: int) -> int:
    return breaks[min(len(breaks) - 1, bisect.bisect_right(breaks, offset))]


def best_passages(
    text: str, matches: Sequence[Match], breaks: Breaks, count: int, by_score: bool
) -> list[Passage]:
    """The count best passages, in the order of the text, or the best first."""
    passages: list[Passage] = []
    for match in sorted(matches):
        if not passages or match.start >= passages[-1].end:
            start, end = breaks.around(match.start)
            start = max(start, passages[-1].end if passages else 0)
            passages.append(Passage(start, max(end, match.end)))
        passages[-1].end = max(passages[-1].end, match.end)
        passages[-1].matches.append(match)
    best = sorted(passages, key=lambda passage: -passage.score(len(text)))[:count]
    return best if by_score else sorted(best, key=lambda passage: passage.start)


def whole_passages(text: str, matches: Sequence[Match]) -> list[Passage]:
    """Each value that has a match, whole."""
    passages, start = [], 0
    for value in text.split(SEPARATOR):
        end = start + len(value)
        inside = [match for match in sorted(matches) if start <= match.start < end]
        if inside:
            passages.append(Passage(start, end, inside))
        start = end + 1
    return passages


def marked(text: str, passage: Passage, before: str, after: str, escape: bool) -> str:
    """A passage with its matches between before and after; matches that overlap are one."""
    shown = html.escape if escape else str
    parts, place = [], passage.start
    matches = passage.matches
    index = 0
    while index < len(matches):
        start, end = matches[index].start, matches[index].end
        while index + 1 < len(matches) and matches[index + 1].start < end:
            index += 1
            end = max(end, matches[index].end)
        parts += [shown(text[place:start]), before, shown(text[start:end]), after]
        place, index = end, index + 1
    parts.append(shown(text[place : passage.end]))
    return "".join(parts).strip(" \t\n\r" + SEPARATOR)


# What a query looks for in one field: terms, patterns, phrases; and where a text has them.

Test = Callable[[str], bool]


@dataclass(slots=True)
class Sought:
    """Of one field (or of all where a request does not mind which)."""

    terms: set[str] = field(default_factory=set)
    tests: list[Test] = field(default_factory=list)
    phrases: list[PhraseQuery] = field(default_factory=list)

    @classmethod
    def by(cls, query: Query, paths: Sequence[str] | None, searcher: Searcher) -> "Sought":
        """What a query looks for in any of the paths; None: in whatever field."""
        sought = cls()
        for node in _positive(query, searcher):
            path = getattr(node, "path", None)
            if path is not None and (paths is None or path in paths):
                sought._add(node)
        return sought

    def _add(self, node: Query) -> None:
        match node:
            case TermQuery() | KeywordQuery():
                self.terms.add(node.term)
            case TermsQuery() | SynonymQuery():
                self.terms.update(node.terms)
            case PhraseQuery():
                self.phrases.append(node)
            case PrefixQuery() | WildcardQuery() | RegexpQuery() | TermRangeQuery():
                self.tests.append(_test(node))

    def matches(self, tokens: Sequence[Token]) -> list[Match]:
        """Where the tokens of a text are what is looked for; a phrase is one match from end to end."""
        found = []
        for token in tokens:
            if token.term in self.terms or any(test(token.term) for test in self.tests):
                found.append(Match(token.start_offset, token.end_offset, token.term))
        for phrase in self.phrases:
            found += _phrase_matches(phrase, tokens)
        return found


def _positive(query: Query, searcher: Searcher) -> Iterator[Query]:
    """The queries that say what a document should have; what stands for other terms is what it stands for."""
    match query:
        case BoolQuery():
            children: Iterable[Query] = (*query.must, *query.filter, *query.should)
        case BoostingQuery():
            children = (query.positive,)
        case FunctionScoreQuery():
            children = (query.query,)
        case RewrittenQuery():
            children = (query.rewritten(searcher),)
        case CombinedFieldsQuery():
            children = query.by_field()
        case SpanQuery() | IntervalsQuery():
            children = queries_of(query.source)
        case _:
            yield query
            children = query.children()
    for child in children:
        yield from _positive(child, searcher)


def _test(node: PrefixQuery | WildcardQuery | RegexpQuery | TermRangeQuery) -> Test:
    match node:
        case PrefixQuery():
            return lambda term: term.startswith(node.prefix)
        case WildcardQuery():
            return node.accepts
        case RegexpQuery():
            return Regexp(node.pattern, node.case_insensitive, node.all_syntax).matches
        case TermRangeQuery():
            return node.accepts


def _phrase_matches(phrase: PhraseQuery, tokens: Sequence[Token]) -> list[Match]:
    """From each token of the first place on, the nearest of each other place, if all are near enough."""
    places: list[list[Token]] = [
        [token for token in tokens if token.term in terms] for terms in phrase.places
    ]
    if not all(places):
        return []
    found = []
    for first in places[0]:
        begin = first.position - phrase.offsets[0]
        chosen = [first]
        for at, offset in zip(places[1:], phrase.offsets[1:], strict=True):
            chosen.append(min(at, key=lambda token: abs(token.position - offset - begin)))
        shifts = [token.position - offset for token, offset in zip(chosen, phrase.offsets, strict=True)]
        if max(shifts) - min(shifts) <= phrase.slop:
            start = min(token.start_offset for token in chosen)
            end = max(token.end_offset for token in chosen)
            found.append(Match(start, end, " ".join(token.term for token in chosen)))
    return found
