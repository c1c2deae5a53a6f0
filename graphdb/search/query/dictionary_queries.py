"""Queries that are looked up in the dictionary of terms: prefix, wildcard, regexp, fuzzy."""

import itertools
from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from graphdb.search.leaf_reader import Bools, Leaf, Longs, TermDictionary
from graphdb.search.query.clause import malformed
from graphdb.search.query.compound import BoolQuery
from graphdb.search.query.regexp import Regexp
from graphdb.search.query.searcher import ANY, ANY_STRING, Codes, Searcher, TermCodes
from graphdb.search.query.term_queries import KeywordQuery, TermQuery
from graphdb.search.query.tree import Matches, MatchNoneQuery, Query, RewrittenQuery
from graphdb.search.segments.field_builders import any_in

__all__ = [
    "DictionaryQuery",
    "FuzzyQuery",
    "PrefixQuery",
    "RegexpQuery",
    "TermRangeQuery",
    "WildcardQuery",
    "edits_of",
    "near_terms",
    "prefix_range",
]

# Queries that choose terms of a dictionary by prefix, pattern or range; every match scores the boost.

FEW = 32  # so many postings are walked one by one rather than every document's ordinals


def prefix_range(dictionary: TermDictionary, prefix: str) -> tuple[int, int]:
    """The numbers of the terms that begin with a prefix: [start, stop)."""
    stop = len(dictionary)
    last = len(prefix)
    while last and ord(prefix[last - 1]) == 0x10FFFF:
        last -= 1
    if last:
        following = ord(prefix[last - 1]) + 1
        after = chr(0xE000 if 0xD800 <= following <= 0xDFFF else following)
        stop = dictionary.lower_bound(prefix[: last - 1] + after)
    return dictionary.lower_bound(prefix), stop


@dataclass(frozen=True, kw_only=True)
class DictionaryQuery(Query):
    """Any of the terms of a text or keyword field that `chosen` chooses."""

    path: str

    @abstractmethod
    def chosen(self, leaf: Leaf, dictionary: TermDictionary, searcher: Searcher) -> Longs:
        """The numbers of the terms, ascending."""

    def matches(self, leaf: Leaf, searcher: Searcher, boost: float = 1.0) -> Matches:
        return Matches(self.mask(leaf, searcher), None, boost * self.boost)

    def mask(self, leaf: Leaf, searcher: Searcher) -> Bools:
        mask = np.zeros(leaf.segment.size, dtype=np.bool_)
        text, keyword = leaf.segment.text(self.path), leaf.segment.terms(self.path)
        if text is not None:
            for number in self.chosen(leaf, text.dictionary, searcher).tolist():
                mask[text.postings(number)[0]] = True
        elif keyword is not None:
            numbers = self.chosen(leaf, keyword.dictionary, searcher)
            if len(numbers) > FEW:
                wanted = np.zeros(len(keyword.dictionary), dtype=np.bool_)
                wanted[numbers] = True
                return any_in(keyword.ordinals.terms, keyword.ordinals.starts, wanted)
            for number in numbers.tolist():
                mask[keyword.postings(number)] = True
        return mask


@dataclass(frozen=True, kw_only=True)
class PrefixQuery(DictionaryQuery):
    """Terms that begin with a prefix."""

    prefix: str

    def chosen(self, leaf: Leaf, dictionary: TermDictionary, searcher: Searcher) -> Longs:
        return np.arange(*prefix_range(dictionary, self.prefix), dtype=np.int64)

    def accepts(self, term: str) -> bool:
        """Whether one term matches."""
        return term.startswith(self.prefix)

    def text(self) -> str:
        return f"{self.path}:{self.prefix}*"


@dataclass(frozen=True, kw_only=True)
class WildcardQuery(DictionaryQuery):
    """Terms that match a pattern: `?` is any character, `*` any string, a backslash takes both literally.

    shown is the pattern as it was given.
    """

    pattern: tuple[int, ...]  # code points, ANY and ANY_STRING
    shown: str
    case_insensitive: bool = False

    @classmethod
    def of(cls, path: str, pattern: str, case_insensitive: bool = False) -> "WildcardQuery":
        """Parse a pattern as it is written."""
        parts: list[int] = []
        escaped = False
        for character in pattern.lower() if case_insensitive else pattern:
            if escaped or character not in "\\*?":
                parts.append(ord(character))
                escaped = False
            elif character == "\\":
                escaped = True
            elif character == "?":
                parts.append(ANY)
            elif parts[-1:] != [ANY_STRING]:
                parts.append(ANY_STRING)
        if escaped:
            parts.append(ord("\\"))
        return cls(path=path, pattern=tuple(parts), shown=pattern, case_insensitive=case_insensitive)

    @classmethod
    def literal(cls, path: str, term: str, then_any: bool = False) -> "WildcardQuery":
        """One term, or those that begin with it, in whatever case."""
        pattern = (*map(ord, term.lower()), *([ANY_STRING] if then_any else []))
        return cls(path=path, pattern=pattern, shown=term + "*" * then_any, case_insensitive=True)

    def _pattern(self) -> Codes:
        return np.array(self.pattern, dtype=np.uint32)

    def chosen(self, leaf: Leaf, dictionary: TermDictionary, searcher: Searcher) -> Longs:
        start, stop = 0, len(dictionary)
        codes = searcher.codes(leaf, self.path, dictionary)
        if self.case_insensitive:
            codes = searcher.keep_of(leaf, ("lower", self.path), codes.lowered)
        else:
            literal = itertools.takewhile(lambda code: code < ANY, self.pattern)
            start, stop = prefix_range(dictionary, "".join(map(chr, literal)))
        return start + np.flatnonzero(codes.glob(self._pattern(), start, stop))

    def accepts(self, term: str) -> bool:
        """Whether one term matches."""
        codes = TermCodes.one(term.lower() if self.case_insensitive else term)
        return bool(codes.glob(self._pattern(), 0, 1)[0])

    def text(self) -> str:
        return f"{self.path}:{self.shown}"


@dataclass(frozen=True, kw_only=True)
class RegexpQuery(DictionaryQuery):
    """Terms that a regular expression matches from end to end."""

    pattern: str
    case_insensitive: bool = False
    all_syntax: bool = True

    def chosen(self, leaf: Leaf, dictionary: TermDictionary, searcher: Searcher) -> Longs:
        regexp = searcher.keep(
            ("regexp", self), lambda: Regexp(self.pattern, self.case_insensitive, self.all_syntax)
        )
        start, stop = prefix_range(dictionary, regexp.prefix)
        terms = enumerate(dictionary.terms(start, stop), start)
        return np.array([number for number, term in terms if regexp.matches(term)], dtype=np.int64)

    def accepts(self, term: str) -> bool:
        """Whether one term matches."""
        return Regexp(self.pattern, self.case_insensitive, self.all_syntax).matches(term)

    def text(self) -> str:
        return f"{self.path}:/{self.pattern}/"


@dataclass(frozen=True, kw_only=True)
class TermRangeQuery(DictionaryQuery):
    """Terms between two others, in the order of their code points; None is no bound.

    shown is how a range of other than plain texts is printed.
    """

    low: str | None
    high: str | None
    with_low: bool = True
    with_high: bool = True
    shown: str | None = None

    def chosen(self, leaf: Leaf, dictionary: TermDictionary, searcher: Searcher) -> Longs:
        start, stop = 0, len(dictionary)
        if self.low is not None:
            start = dictionary.lower_bound(self.low)
            start += not self.with_low and dictionary.find(self.low) >= 0
        if self.high is not None:
            stop = dictionary.lower_bound(self.high)
            stop += self.with_high and dictionary.find(self.high) >= 0
        return np.arange(start, max(start, stop), dtype=np.int64)

    def accepts(self, term: str) -> bool:
        """Whether one term is between the bounds."""
        low = self.low is None or self.low < term or (self.with_low and self.low == term)
        high = self.high is None or term < self.high or (self.with_high and self.high == term)
        return low and high

    def text(self) -> str:
        if self.shown is not None:
            return f"{self.path}:{self.shown}"
        low, high = self.low or "*", self.high or "*"
        opening, closing = "[" if self.with_low else "{", "]" if self.with_high else "}"
        return f"{self.path}:{opening}{low} TO {high}{closing}"


# `fuzzy`: terms within so many edits of one.
#
# The best of them by likeness are scored as terms, each with the boost 1 - edits / length of the shorter,
# all with the number of documents of the most frequent one, so that a rare misspelling does not win:
# Lucene's `top_terms_blended_freqs`, the default of Elasticsearch. Candidates are taken over all segments
# at once.


def edits_of(fuzziness: str, term: str) -> int:
    """What `fuzziness` allows for a term: 0, 1, 2, AUTO (AUTO:3,6) or AUTO:low,high by its length."""
    head, _, bounds = fuzziness.upper().partition(":")
    if head == "AUTO":
        try:
            low, high = (int(bound) for bound in bounds.split(",")) if bounds else (3, 6)
        except ValueError:
            raise malformed(f"failed to find low and high distance values in [{fuzziness}]") from None
        return 0 if len(term) < low else 1 if len(term) < high else 2
    try:
        edits = int(float(fuzziness))
    except ValueError:
        raise malformed(f"Invalid fuzziness value: {fuzziness}") from None
    if not 0 <= edits <= 2:
        raise malformed(f"Valid edit distances are [0, 1, 2] but was [{edits}]")
    return edits


@dataclass(frozen=True, kw_only=True)
class FuzzyQuery(RewrittenQuery):
    """One term of a text or keyword field with up to 2 edits; swapping neighbours is one, if allowed."""

    path: str
    term: str
    edits: int
    prefix_length: int = 0  # characters at the front that are as they are
    max_expansions: int = 50
    transpositions: bool = True

    def rewritten(self, searcher: Searcher) -> Query:
        """The terms that it stands for, in this searcher."""
        return searcher.keep(("fuzzy", self), lambda: self._expanded(searcher))

    def _expanded(self, searcher: Searcher) -> Query:
        likeness, is_text = near_terms(searcher, self)
        best = sorted(likeness, key=lambda term: (-likeness[term], term))[: self.max_expansions]
        if not best:
            return MatchNoneQuery(reason=f"no term like {self.term}")
        doc_freq = max(searcher.doc_freq(self.path, term) for term in best)
        kind = TermQuery if is_text else KeywordQuery
        terms = [kind(path=self.path, term=term, doc_freq=doc_freq, boost=likeness[term]) for term in best]
        return BoolQuery(should=tuple(terms)) if len(terms) > 1 else terms[0]

    def near(self, searcher: Searcher) -> tuple[dict[str, float], bool]:
        """(likeness by term, whether the field is a text) in these leaves."""
        likeness: dict[str, float] = {}
        is_text = False
        for leaf, dictionary in searcher.dictionaries(self.path):
            likeness.update(self._near(leaf, dictionary, searcher))
            is_text |= leaf.segment.text(self.path) is not None
        return likeness, is_text

    def _near(self, leaf: Leaf, dictionary: TermDictionary, searcher: Searcher) -> dict[str, float]:
        """The likeness of each of a dictionary's terms that is near enough, from 0 to 1."""
        fixed = min(self.prefix_length, len(self.term))
        start, stop = prefix_range(dictionary, self.term[:fixed])
        if start >= stop:
            return {}
        codes = searcher.codes(leaf, self.path, dictionary)
        distances = codes.distances(self.term, fixed, self.edits, self.transpositions, start, stop)
        near = {}
        for place in np.flatnonzero(distances <= self.edits).tolist():
            term, edits = dictionary.term(start + place), int(distances[place])
            shorter = min(len(term), len(self.term))
            near[term] = 1.0 if edits == 0 else float(np.float32(1) - np.float32(edits / max(shorter, edits)))
        return near

    def text(self) -> str:
        return f"{self.path}:{self.term}~{self.edits}"


def near_terms(searcher: Searcher, query: FuzzyQuery) -> tuple[dict[str, float], bool]:
    """(likeness by term, whether the field is a text) in all shards: what a fuzzy query may stand for."""
    likeness: dict[str, float] = {}
    is_text = False
    for near, is_of_text in searcher.ask(_Near(query)):
        likeness.update(near)
        is_text |= is_of_text
    return likeness, is_text


@dataclass(frozen=True, slots=True)
class _Near:
    """The terms of a shard that a fuzzy query may stand for."""

    query: FuzzyQuery

    def answered(self, searcher: Searcher) -> tuple[dict[str, float], bool]:
        return self.query.near(searcher)
