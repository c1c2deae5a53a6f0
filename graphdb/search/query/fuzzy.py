"""`fuzzy`: terms within so many edits of one.

The best of them by likeness are scored as terms, each with the boost 1 - edits / length of the shorter, all
with the number of documents of the most frequent one, so that a rare misspelling does not win: Lucene's
`top_terms_blended_freqs`, the default of Elasticsearch. Candidates are taken over all segments at once.
"""

from dataclasses import dataclass

import numpy as np

from graphdb.search.query.bool_query import BoolQuery
from graphdb.search.query.clause import malformed
from graphdb.search.query.dictionary_queries import prefix_range
from graphdb.search.query.searcher import Searcher
from graphdb.search.query.term_queries import KeywordQuery, TermQuery
from graphdb.search.query.tree import MatchNoneQuery, Query, RewrittenQuery
from graphdb.search.segment import Leaf, TermDictionary

__all__ = ["FuzzyQuery", "edits_of"]


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
        likeness: dict[str, float] = {}
        is_text = False
        for leaf, dictionary in searcher.dictionaries(self.path):
            likeness.update(self._near(leaf, dictionary, searcher))
            is_text |= leaf.segment.text(self.path) is not None
        best = sorted(likeness, key=lambda term: (-likeness[term], term))[: self.max_expansions]
        if not best:
            return MatchNoneQuery(reason=f"no term like {self.term}")
        doc_freq = max(searcher.doc_freq(self.path, term) for term in best)
        kind = TermQuery if is_text else KeywordQuery
        terms = [kind(path=self.path, term=term, doc_freq=doc_freq, boost=likeness[term]) for term in best]
        return BoolQuery(should=tuple(terms)) if len(terms) > 1 else terms[0]

    def _near(self, leaf: Leaf, dictionary: TermDictionary, searcher: Searcher) -> dict[str, float]:
        """The likeness of each of a dictionary's terms that is near enough, above 0 and at most 1."""
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
            if edits == 0 or edits < shorter:
                near[term] = 1.0 if edits == 0 else float(np.float32(1) - np.float32(edits / shorter))
        return near

    def text(self) -> str:
        return f"{self.path}:{self.term}~{self.edits}"
