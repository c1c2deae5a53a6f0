"""Phrase queries, and the kernels that compare positions."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from graphdb.search.compiled import compiled
from graphdb.search.leaf_reader import Bools, Floats, Ints, Leaf, Longs, TextIndex
from graphdb.search.query.compound import BoolQuery
from graphdb.search.query.dense_positions import dense_positions
from graphdb.search.query.dictionary_queries import prefix_range
from graphdb.search.query.explanation import Explanation, explained, no_match
from graphdb.search.query.kernels import find_sorted
from graphdb.search.query.other_scores import Scorer, otherwise_explained
from graphdb.search.query.packed_phrases import phrases_in
from graphdb.search.query.searcher import Searcher, idf, idf_explained, score_explained
from graphdb.search.query.term_queries import TermQuery, field_scores, of_terms
from graphdb.search.query.tree import Matches, MatchNoneQuery, Query, RewrittenQuery

__all__ = ["PhrasePrefixQuery", "PhraseQuery", "exact_frequencies", "sloppy_frequencies"]

# The loops over positions that find phrases, compiled by Numba.

EXHAUSTED = 2**31 - 1


@compiled(nogil=True)
def exact_frequencies(starts: Longs, stops: Longs, positions: Ints, offsets: Longs) -> Floats:
    """How often all terms stand at their offsets from one another, by document.

    starts and stops are (documents, terms): where in positions those of a term in a document are.
    """
    documents, terms = starts.shape
    freqs = np.zeros(documents, np.float32)
    at = np.zeros(terms, np.int64)
    for doc in range(documents):
        at[:] = starts[doc]
        for first in range(starts[doc, 0], stops[doc, 0]):
            begin, met = positions[first] - offsets[0], True
            for term in range(1, terms):
                wanted = begin + offsets[term]
                while at[term] < stops[doc, term] and positions[at[term]] < wanted:
                    at[term] += 1
                if at[term] >= stops[doc, term] or positions[at[term]] != wanted:
                    met = False
                    break
            freqs[doc] += met
    return freqs


@compiled(nogil=True)
def _least(place: Longs, offsets: Longs) -> int:
    """The term whose place is least, ties by offset."""
    best = 0
    for term in range(1, len(place)):
        if place[term] < place[best] or (place[term] == place[best] and offsets[term] < offsets[best]):
            best = term
    return best


@compiled(nogil=True)
def _advance(term: int, at: Longs, place: Longs, stops: Longs, positions: Ints, offsets: Longs) -> bool:
    """Move one term to its next position; place is the position less its offset."""
    at[term] += 1
    if at[term] >= stops[term]:
        return False
    place[term] = positions[at[term]] - offsets[term]
    return True


@compiled(nogil=True)
def _separate(
    term: int, group: Longs, at: Longs, place: Longs, stops: Longs, positions: Ints, offsets: Longs
) -> bool:
    """No two of one group of equal terms may stand on the same position: the lesser of two goes on."""
    while True:
        other = -1
        for candidate in range(len(group)):
            same = group[candidate] == group[term] and candidate != term
            if same and place[candidate] + offsets[candidate] == place[term] + offsets[term]:
                other = candidate
                break
        if other < 0:
            return True
        if place[other] < place[term] or (place[other] == place[term] and offsets[other] < offsets[term]):
            term = other
        if not _advance(term, at, place, stops, positions, offsets):
            return False


@compiled(nogil=True)
def _sloppy(starts: Longs, stops: Longs, positions: Ints, offsets: Longs, group: Longs, slop: int) -> float:
    """The sum of 1 / (1 + distance) over the matches in one document."""
    terms = len(starts)
    at, place = starts.copy(), np.zeros(terms, np.int64)
    for term in range(terms):
        place[term] = positions[at[term]] - offsets[term]
    for term in range(terms):
        if not _separate(term, group, at, place, stops, positions, offsets):
            return 0.0
    end, freq = place.max(), 0.0
    while True:
        term = _least(place, offsets)
        length = end - place[term]
        going = True
        following = EXHAUSTED
        for other in range(terms):
            if other != term:
                following = min(following, place[other])
        while going and place[term] <= following:
            length = min(length, end - place[term])
            going = _advance(term, at, place, stops, positions, offsets)
            if going:
                going = _separate(term, group, at, place, stops, positions, offsets)
                end = max(end, place.max())
        if length <= slop:
            freq += 1.0 / (1.0 + length)
        if not going:
            return freq


@compiled(nogil=True)
def sloppy_frequencies(
    starts: Longs, stops: Longs, positions: Ints, offsets: Longs, group: Longs, slop: int
) -> Floats:
    """As `exact_frequencies`, with terms up to slop moves away from their offsets; equal terms share a group.

    Source: Lucene's SloppyPhraseMatcher: from the least of the terms' places on, the nearest match to each.
    """
    freqs = np.zeros(len(starts), np.float32)
    for doc in range(len(starts)):
        freqs[doc] = _sloppy(starts[doc], stops[doc], positions, offsets, group, slop)
    return freqs


# Phrases: terms of a text field one after another, or nearly so; any place may have several alternatives.

PHRASE_FREQUENCY = "phraseFreq={}"
reads_packed = True  # a test that compares both ways turns it off


@dataclass(frozen=True, kw_only=True)
class PhraseQuery(Query):
    """One or more terms for each place; offsets are the places, ascending, gaps of stop words included."""

    path: str
    places: tuple[tuple[str, ...], ...]
    offsets: tuple[int, ...]
    slop: int = 0

    def scored_by(self) -> Iterable[tuple[str, str]]:
        return [(self.path, term) for terms in self.places for term in terms]

    def _idf(self, searcher: Searcher) -> np.float32:
        """The sum over all terms that there are, in doubles."""
        count = searcher.statistics(self.path).doc_count
        freqs = [searcher.doc_freq(self.path, term) for terms in self.places for term in terms]
        return np.float32(sum(float(idf(n, count)) for n in freqs if n))

    def frequencies(self, leaf: Leaf) -> Floats:
        """How often the phrase is in each document of a leaf."""
        freqs = np.zeros(leaf.segment.size, dtype=np.float32)
        docs, own = self._occurrences(leaf)
        freqs[docs] = own
        return freqs

    def _occurrences(self, leaf: Leaf) -> tuple[Ints, Floats]:
        """The documents of a leaf that hold the phrase, ascending, and how often each does."""
        none = np.zeros(0, np.int32), np.zeros(0, np.float32)
        index = leaf.segment.text(self.path)
        if index is None:
            return none
        packed = self._packed(leaf, index)
        if packed is not None:
            return packed
        places = [_place(index, terms) for terms in self.places]
        first, *others = sorted((docs for docs, _, _ in places), key=len)
        docs = first  # of the rarest, which are looked up in the others'
        for other in others:
            docs = docs[find_sorted(docs, other) >= 0]
        if not len(docs):
            return none
        freqs = self._counted(docs, places)
        held = freqs > 0
        return docs[held], freqs[held]

    def _packed(self, leaf: Leaf, index: TextIndex) -> tuple[Ints, Floats] | None:
        """The same of single terms at their places, in one pass; None for any other phrase, and where their
        positions are not packed.
        """
        if self.slop or not reads_packed or any(len(terms) > 1 for terms in self.places):
            return None
        numbers = np.array([index.dictionary.find(term) for (term,) in self.places], np.int64)
        if numbers.min() < 0:
            return np.zeros(0, np.int32), np.zeros(0, np.float32)
        positions = index.packed_positions(numbers)
        if positions is None:
            return None
        offsets = np.array(self.offsets, np.int64)
        ranges = index.posting_ranges(numbers)
        dense = dense_positions(leaf, self.path).of(numbers, ranges, positions, leaf.segment.size)
        packed, starts, _ = positions
        found: tuple[Ints, Floats] = phrases_in(*ranges, packed, starts, offsets, *dense)
        return found

    def listed_in(self, leaf: Leaf, searcher: Searcher, boost: float) -> tuple[Ints, Floats]:
        docs, freqs = self._occurrences(leaf)
        index = leaf.segment.text(self.path)
        if index is None:
            return docs, freqs
        return docs, self._scorer(searcher, boost * self.boost)(freqs, index.norms[docs])

    def _scorer(self, searcher: Searcher, boost: float) -> Scorer:
        return of_terms(searcher, self.path, self.scored_by(), boost, lambda: self._idf(searcher))

    def docs_in(self, leaf: Leaf, searcher: Searcher) -> Ints:
        return self._occurrences(leaf)[0]

    def _counted(self, docs: Ints, places: "list[tuple[Ints, Ints, Ints]]") -> Floats:
        starts = np.zeros((len(docs), len(places)), dtype=np.int64)
        stops = np.zeros_like(starts)
        base = 0
        for number, (its_docs, its_starts, positions) in enumerate(places):
            rows = find_sorted(docs, its_docs)
            starts[:, number] = its_starts[rows] + base
            stops[:, number] = its_starts[rows + 1] + base
            base += len(positions)
        positions = np.concatenate([positions for _, _, positions in places])
        offsets = np.array(self.offsets, dtype=np.int64)
        if not self.slop:
            return exact_frequencies(starts, stops, positions, offsets)
        return sloppy_frequencies(starts, stops, positions, offsets, self._groups(), self.slop)

    def _groups(self) -> Longs:
        """Places that share a term have the same number."""
        groups = list(range(len(self.places)))
        for later, terms in enumerate(self.places):
            for earlier in range(later):
                if set(terms) & set(self.places[earlier]):
                    groups[later] = groups[earlier]
                    break
        return np.array(groups, dtype=np.int64)

    def matches(self, leaf: Leaf, searcher: Searcher, boost: float = 1.0) -> Matches:
        return field_scores(
            leaf, self.path, self.frequencies(leaf), self._scorer(searcher, boost * self.boost)
        )

    def mask(self, leaf: Leaf, searcher: Searcher) -> Bools:
        return self.frequencies(leaf) > 0

    def explain(self, leaf: Leaf, doc: int, searcher: Searcher, boost: float = 1.0) -> Explanation:
        freq, index = float(self.frequencies(leaf)[doc]), leaf.segment.text(self.path)
        if not freq or index is None:
            return no_match("no matching phrase")
        if searcher.other_similarity(self.path) is not None:
            value, norm = float(self.matches(leaf, searcher, boost).dense()[doc]), int(index.norms[doc])
            return otherwise_explained(searcher, self.path, value, freq, norm, boost * self.boost)
        statistics = searcher.statistics(self.path)
        terms = [term for terms in self.places for term in terms if searcher.doc_freq(self.path, term)]
        parts = [idf_explained(searcher.doc_freq(self.path, term), statistics.doc_count) for term in terms]
        inner = score_explained(
            boost * self.boost,
            explained(float(self._idf(searcher)), "idf, sum of:", parts),
            explained(freq, PHRASE_FREQUENCY.format(freq)),
            int(index.norms[doc]),
            statistics,
        )
        text = f"weight({self.text()} in {leaf.shown_number(doc)}) [PerFieldSimilarity], result of:"
        return explained(inner["value"], text, [inner])

    def text(self) -> str:
        shown = [terms[0] if len(terms) == 1 else f"({' '.join(terms)})" for terms in self.places]
        return f'{self.path}:"{" ".join(shown)}"' + (f"~{self.slop}" if self.slop else "")


def _place(index: TextIndex, terms: tuple[str, ...]) -> tuple[Ints, Ints, Ints]:
    """(documents, starts, positions) of any of several terms."""
    numbers = [number for number in map(index.dictionary.find, terms) if number >= 0]
    if len(numbers) == 1:
        return index.postings(numbers[0])[0], *index.positions(numbers[0])
    keys = [np.zeros(0, dtype=np.int64)]
    for number in numbers:
        docs, freqs = index.postings(number)
        _, positions = index.positions(number)
        keys.append(np.repeat(docs.astype(np.int64), freqs) << 32 | positions)
    merged = np.sort(np.concatenate(keys))
    docs, starts = np.unique(merged >> 32, return_index=True)
    positions = (merged & 0xFFFFFFFF).astype(np.int32)
    return docs.astype(np.int32), np.append(starts, len(merged)).astype(np.int32), positions


@dataclass(frozen=True, kw_only=True)
class PhrasePrefixQuery(RewrittenQuery):
    """A phrase whose last place is any of the first max_expansions terms that begin with a prefix."""

    path: str
    places: tuple[tuple[str, ...], ...]
    offsets: tuple[int, ...]
    prefix: str
    prefix_offset: int
    slop: int = 0
    max_expansions: int = 50

    def rewritten(self, searcher: Searcher) -> Query:
        """The phrase that it stands for, in this searcher."""
        return searcher.keep(("phrase prefix", self), lambda: self._expanded(searcher))

    def _expanded(self, searcher: Searcher) -> Query:
        terms = {term for part in searcher.ask(_Prefixed(self)) for term in part}
        last = tuple(sorted(terms)[: self.max_expansions])
        if not last:
            return MatchNoneQuery(reason=f"No terms supplied for {self.path}:{self.prefix}*")
        if not self.places:
            return BoolQuery(should=tuple(TermQuery(path=self.path, term=term) for term in last))
        return PhraseQuery(
            path=self.path,
            places=(*self.places, last),
            offsets=(*self.offsets, self.prefix_offset),
            slop=self.slop,
        )

    def prefixed(self, searcher: Searcher) -> set[str]:
        """The first terms of these leaves that begin with the prefix."""
        terms: set[str] = set()
        for _, dictionary in searcher.dictionaries(self.path):
            start, stop = prefix_range(dictionary, self.prefix)
            terms.update(dictionary.terms(start, min(stop, start + self.max_expansions)))
        return terms

    def text(self) -> str:
        shown = [terms[0] if len(terms) == 1 else f"({' '.join(terms)})" for terms in self.places]
        return f'{self.path}:"{" ".join([*shown, self.prefix])}*"' + (f"~{self.slop}" if self.slop else "")


@dataclass(frozen=True, slots=True)
class _Prefixed:
    """The terms of a shard that the last place of a phrase may be."""

    query: PhrasePrefixQuery

    def answered(self, searcher: Searcher) -> set[str]:
        return self.query.prefixed(searcher)
