"""The searcher over the segments of an index: statistics, similarity, the codes of terms."""

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from graphdb.search.analysis import Analyzers
from graphdb.search.leaf_reader import Bools, Floats, Leaf, Longs, TermDictionary
from graphdb.search.mapping import Mapping
from graphdb.search.other_similarities import OtherSimilarity
from graphdb.search.query.explanation import Explanation, explained
from graphdb.search.query.field_table import FieldTable
from graphdb.search.query.kernels import edit_distances, glob_matches
from graphdb.search.query.peers import Peers, Question
from graphdb.search.similarity import STANDARD, AnySimilarity, Similarity

__all__ = [
    "ANY",
    "ANY_STRING",
    "KEPT_MAX",
    "LENGTHS",
    "Codes",
    "FieldStatistics",
    "KnownTerm",
    "PartialSearcher",
    "Searcher",
    "ShardSearcher",
    "TermCodes",
    "code_points",
    "idf",
    "idf_explained",
    "score",
    "score_explained",
]

# All terms of a dictionary as one array of code points, for patterns to be held against them.

Codes = NDArray[np.uint32]
# Beyond all code points: what `?` and `*` become in a pattern.
ANY = 0x110000
ANY_STRING = 0x110001


def code_points(text: str) -> Codes:
    """A string as numbers, lone surrogates too (JSON can hold them)."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)


@dataclass(frozen=True, slots=True)
class TermCodes:
    """Term i is codes[starts[i]:starts[i + 1]]."""

    codes: Codes
    starts: Longs

    @classmethod
    def of(cls, dictionary: TermDictionary) -> "TermCodes":
        terms = list(dictionary.terms(0, len(dictionary)))
        starts = np.zeros(len(terms) + 1, dtype=np.int64)
        np.cumsum([len(term) for term in terms], out=starts[1:])
        return cls(code_points("".join(terms)), starts)

    @classmethod
    def one(cls, term: str) -> "TermCodes":
        """Of a single term."""
        return cls(code_points(term), np.array([0, len(term)], dtype=np.int64))

    def lowered(self) -> "TermCodes":
        """The same in lower case, where that is one code point for one."""
        distinct, places = np.unique(self.codes, return_inverse=True)
        lower = [chr(code).lower() for code in distinct.tolist()]
        folded = [ord(low) if len(low) == 1 else code for low, code in zip(lower, distinct, strict=True)]
        return TermCodes(np.array(folded, dtype=np.uint32)[places], self.starts)

    def glob(self, pattern: Codes, start: int, stop: int) -> Bools:
        """Which of the terms in [start, stop) match a pattern with ANY and ANY_STRING."""
        return glob_matches(self.codes, self.starts, pattern, start, stop)

    def distances(
        self, term: str, prefix_length: int, edits_max: int, transpositions: bool, start: int, stop: int
    ) -> NDArray[np.int8]:
        """How many edits each of the terms in [start, stop) is away; edits_max + 1 where more."""
        wanted = code_points(term)
        return edit_distances(
            self.codes, self.starts, wanted, prefix_length, edits_max, transpositions, start, stop
        )


# The parts of a score; see `Similarity`.

EXACT_NORM_MAX = 39  # norm bytes up to here stand for one length each


def _length(norm: int) -> int:
    """SmallFloat.byte4ToInt: up to 24 exact, then four significant bits."""
    if norm < 24:
        return norm
    bits = norm - 24
    if bits < 8:
        return 24 + bits
    return 24 + ((bits & 7 | 8) << (bits // 8 - 1))


LENGTHS: Floats = np.array([_length(norm) for norm in range(256)], dtype=np.float32)


@dataclass(frozen=True, slots=True)
class FieldStatistics:
    """Of one field over all segments, with deleted documents: those that have it, and all their tokens."""

    doc_count: int
    total_terms: int
    similarity: Similarity = STANDARD

    @property
    def average_length(self) -> np.float32:
        return np.float32(self.total_terms / self.doc_count) if self.doc_count else np.float32(1)

    def inverse_norms(self) -> Floats:
        """(256,) by norm byte, see `Similarity`."""
        return self.similarity.inverse_norms(LENGTHS, self.average_length)

    def weight(self, boost: float, idf_sum: np.float32) -> np.float32:
        """See `Similarity`."""
        return self.similarity.weight(boost, idf_sum)


def idf(doc_freq: int, doc_count: int) -> np.float32:
    """Weigh a term by its rarity: ln(1 + (N - n + 0.5) / (n + 0.5)), in nats."""
    return np.float32(math.log(1 + (doc_count - doc_freq + 0.5) / (doc_freq + 0.5)))


def score(weight: np.float32, freq: float, inverse_norm: np.float32) -> np.float32:
    """The score of one document."""
    return np.float32(weight - weight / (np.float32(1) + np.float32(freq) * inverse_norm))


def idf_explained(doc_freq: int, doc_count: int) -> Explanation:
    return explained(
        float(idf(doc_freq, doc_count)),
        "idf, computed as log(1 + (N - n + 0.5) / (n + 0.5)) from:",
        [
            explained(doc_freq, "n, number of documents containing term"),
            explained(doc_count, "N, total number of documents with field"),
        ],
    )


def _tf_explained(freq: Explanation, norm: int, statistics: FieldStatistics) -> Explanation:
    length, average, similarity = float(LENGTHS[norm]), statistics.average_length, statistics.similarity
    inverse = statistics.inverse_norms()[norm]
    approximate = " (approximate)" if norm > EXACT_NORM_MAX else ""
    return explained(
        float(score(np.float32(1), freq["value"], inverse)),
        "tf, computed as freq / (freq + k1 * (1 - b + b * dl / avgdl)) from:",
        [
            freq,
            explained(similarity.k1, "k1, term saturation parameter"),
            explained(similarity.b, "b, length normalization parameter"),
            explained(length, f"dl, length of field{approximate}"),
            explained(float(average), "avgdl, average length of field"),
        ],
    )


def score_explained(
    boost: float, idf_part: Explanation, freq: Explanation, norm: int, statistics: FieldStatistics
) -> Explanation:
    """Explain the score of a term or phrase that stands freq times in a field with a norm byte."""
    weight = statistics.weight(boost, np.float32(idf_part["value"]))
    value = score(weight, freq["value"], statistics.inverse_norms()[norm])
    details = [idf_part, _tf_explained(freq, norm, statistics)]
    factor = float(statistics.similarity.factor(boost))
    if factor != 1.0:
        details.insert(0, explained(factor, "boost"))
    text = f"score(freq={float(freq['value'])}), computed as boost * idf * tf from:"
    return explained(float(value), text, details)


# A point in time of a whole index: its segments, and the statistics over all of them that BM25 needs.

Value = TypeVar("Value")

KEPT_MAX = 50_000
_UNKNOWN = object()


class KnownTerm(NamedTuple):
    """A term of a text field. doc_freq, weight: as those of `Searcher`; numbers: its number in each leaf, -1
    where it is not there.
    """

    doc_freq: int
    weight: np.float32
    numbers: Longs


class Searcher:
    """Owned by one search; its leaves never change, so what it computes once it may keep.

    memory is kept for as long as the segments live, by segment and field; hand the one of an earlier searcher
    over so that a refresh does not compute it again.
    """

    has_runtime_fields = False

    def __init__(
        self,
        leaves: Sequence[Leaf],
        mapping: Mapping,
        analyzers: Analyzers,
        memory: dict[tuple[str, str], TermCodes] | None = None,
        index_name: str = "",
    ) -> None:
        self.leaves = tuple(leaves)
        self.max_doc = sum(leaf.segment.size for leaf in self.leaves)
        """Documents with deleted and nested ones: one more than the largest number."""
        self.mapping = mapping
        self.analyzers = analyzers
        self.memory = {} if memory is None else memory
        self.index_name = index_name
        self.peers: Peers | None = None
        self.shared_statistics = False  # of several indexes: score as if they were one
        self._kept: dict[Hashable, Any] = {}

    def with_runtime_fields(self, mapping: Mapping) -> "Searcher":
        """The same with the runtime fields of a mapping; itself where it has none."""
        if not mapping.runtime:
            return self
        from graphdb.search.query.runtime_segment import runtime_leaf  # scripts, which few searches need

        made = copy(self)
        made.mapping, made.memory, made._kept = mapping, {}, {}
        made.leaves = tuple(
            runtime_leaf(leaf, mapping.runtime, mapping, self.index_name) for leaf in self.leaves
        )
        made.has_runtime_fields = True
        return made

    @property
    def own(self) -> "Searcher":
        """The searcher that keeps what depends on these leaves alone."""
        return self

    @property
    def first(self) -> "Places":
        """Where the documents stand among those of all shards that are searched."""
        return _FIRST

    def ask(self, question: Question[Value]) -> list[Value]:
        """The answers of all shards that are searched."""
        return [question.answered(self)]

    @property
    def doc_count(self) -> int:
        """Documents that count in statistics: with deleted and nested ones, but none that are hidden."""
        return sum(leaf.count for leaf in self.leaves)

    def shown_numbers(self, docs: Longs) -> Longs:
        """The numbers of documents among those that count, in the same order."""
        if all(leaf.counted is None for leaf in self.leaves):
            return docs
        return self.keep("shown numbers", self._shown_numbers)[docs]

    def _shown_numbers(self) -> Longs:
        counted = [
            np.ones(leaf.segment.size, np.bool_) if leaf.counted is None else leaf.counted
            for leaf in self.leaves
        ]
        return np.cumsum(np.concatenate(counted)) - 1

    def keep(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """make()'s result, computed at the first call with this key (and again, once too many were kept)."""
        known = self._kept.get(key, _UNKNOWN)
        if known is _UNKNOWN:
            if len(self._kept) >= KEPT_MAX:
                self._kept.clear()
            known = self._kept[key] = make()
        return cast(Value, known)

    def keep_of(self, leaf: Leaf, key: Hashable, make: Callable[[], Value]) -> Value:
        """As `keep`, of one leaf: segments of several indexes may have one name."""
        return self.keep((key, leaf.segment.name, leaf.base), make)

    def dictionaries(self, path: str) -> list[tuple[Leaf, TermDictionary]]:
        """The term dictionaries of a text or keyword field, by leaf that has it."""
        found = []
        for leaf in self.leaves:
            index = leaf.segment.text(path) or leaf.segment.terms(path)
            if index is not None:
                found.append((leaf, index.dictionary))
        return found

    def codes(self, leaf: Leaf, path: str, dictionary: TermDictionary) -> TermCodes:
        """The terms of a dictionary as an array, to match patterns against."""
        key = (leaf.segment.name, path)
        if key not in self.memory:
            self.memory[key] = TermCodes.of(dictionary)
        return self.memory[key]

    def statistics(self, path: str) -> FieldStatistics:
        """Of a text or keyword field. A keyword counts once in each document that has it."""
        known = self._kept.get(("statistics", path))
        return known or self.keep(("statistics", path), lambda: self._statistics(path))

    def _statistics(self, path: str) -> FieldStatistics:
        doc_count = total_terms = 0
        for leaf in self.leaves:
            if (text := leaf.segment.text(path)) is not None:
                doc_count, total_terms = doc_count + text.doc_count, total_terms + text.total_terms
            elif (terms := leaf.segment.terms(path)) is not None:
                doc_count += terms.doc_count
                total_terms += len(terms.ordinals.terms)
        return FieldStatistics(doc_count, total_terms, self._similarity(path))

    def _similarity(self, path: str) -> Similarity:
        found = self._scores_by(path)
        return found if isinstance(found, Similarity) else STANDARD

    def _scores_by(self, path: str) -> AnySimilarity:
        spec = self.mapping.field(path)
        return STANDARD if spec is None else spec.options.get("scores_by", STANDARD)

    def other_similarity(self, path: str) -> OtherSimilarity | None:
        """What a field scores by if not by BM25."""
        kept = self._kept.get(("other", path), _UNKNOWN)
        if kept is _UNKNOWN:
            found = self._scores_by(path)
            kept = self.keep(("other", path), lambda: None if isinstance(found, Similarity) else found)
        return cast("OtherSimilarity | None", kept)

    def inverse_norms(self, path: str) -> Floats:
        """By norm byte, see `FieldStatistics`."""
        return self.keep(("norms", path), lambda: self.statistics(path).inverse_norms())

    def doc_freq(self, path: str, term: str) -> int:
        """Documents that hold a term, deleted ones too, but none that are hidden."""
        known: int | None = self._kept.get(("doc_freq", path, term))
        return (
            self.keep(("doc_freq", path, term), lambda: self._doc_freq(path, term))
            if known is None
            else known
        )

    def weight(self, path: str, term: str) -> np.float32:
        """The score that a term tends to as it gets more frequent, without a boost."""
        known: np.float32 | None = self._kept.get(("weight", path, term))
        return self.keep(("weight", path, term), lambda: self._weight(path, term)) if known is None else known

    def _weight(self, path: str, term: str) -> np.float32:
        statistics = self.statistics(path)
        return statistics.weight(1.0, idf(self.doc_freq(path, term), statistics.doc_count))

    def _doc_freq(self, path: str, term: str) -> int:
        table = self.table(path)
        if table is not None:
            return self.known_terms(table, path, (term,))[0].doc_freq
        count = 0
        for leaf in self.leaves:
            if (text := leaf.segment.text(path)) is not None:
                number = text.dictionary.find(term)
                count += len(text.postings(number)[0]) if number >= 0 else 0
            elif (terms := leaf.segment.terms(path)) is not None:
                number = terms.dictionary.find(term)
                count += len(terms.postings(number)) if number >= 0 else 0
        return count

    def table(self, path: str) -> FieldTable | None:
        """The postings of a text field in all leaves; None where they are not all of one form."""
        return self.keep(("table", path), lambda: FieldTable.of(self.leaves, path))

    def known_terms(self, table: FieldTable, path: str, terms: Iterable[str]) -> list[KnownTerm]:
        """What a search for each of these asks; table: that of the path."""
        kept, found = self._kept, []
        for term in terms:
            known: KnownTerm | None = kept.get(("term", path, term))
            if known is None:
                known = self.keep(("term", path, term), partial(self._known_term, table, path, term))
            found.append(known)
        return found

    def _known_term(self, table: FieldTable, path: str, term: str) -> KnownTerm:
        numbers, own = table.find(term)
        doc_freq, statistics = self._frequency(path, term, own), self.statistics(path)
        return KnownTerm(doc_freq, statistics.weight(1.0, idf(doc_freq, statistics.doc_count)), numbers)

    def _frequency(self, path: str, term: str, own: int) -> int:
        """`doc_freq`; own: that of these leaves."""
        return own

    def part(self, leaf: Leaf) -> tuple[int, Leaf, "Searcher"]:
        """The index that a leaf is of, where several are searched: its number, its own leaf, its searcher."""
        return 0, leaf, self

    def locate(self, doc: int) -> tuple[Leaf, int]:
        """The leaf of a document of the whole searcher, and its number there."""
        bases = [leaf.base for leaf in self.leaves]
        leaf = self.leaves[int(np.searchsorted(bases, doc, side="right")) - 1]
        return leaf, doc - leaf.base


@dataclass(frozen=True, slots=True)
class Places:
    """How many documents are in the shards before, and how many of them count; or in one shard.

    in_statistics: how many the statistics count, also those of a shard that is not searched.
    """

    number: int
    shown: int
    in_statistics: int = 0


_FIRST = Places(0, 0)


@dataclass(frozen=True, slots=True)
class _Sizes:
    """How many documents a shard has."""

    def answered(self, searcher: Searcher) -> Places:
        own = searcher.own
        return Places(own.max_doc, sum(leaf.count for leaf in own.leaves), own.doc_count)


Counts = tuple[int, int]
"""Documents that have a field, and tokens in it."""


@dataclass(frozen=True, slots=True)
class _Statistics:
    """The counts of some fields in a shard, and how many of its documents hold some terms: (path, term)."""

    paths: tuple[str, ...]
    terms: tuple[tuple[str, str], ...]

    def answered(self, searcher: Searcher) -> tuple[list[Counts], list[int]]:
        own = searcher.own
        found = [own.statistics(path) for path in self.paths]
        counts = [(one.doc_count, one.total_terms) for one in found]
        return counts, [own.doc_freq(path, term) for path, term in self.terms]


class ShardSearcher(Searcher):
    """The leaves of one shard, in a search of several; it scores by the statistics of all of them."""

    def __init__(self, own: Searcher, peers: Peers) -> None:
        super().__init__(own.leaves, own.mapping, own.analyzers, own.memory, own.index_name)
        self._own, self.peers = own, peers
        self._others = peers
        self.has_runtime_fields = own.has_runtime_fields

    def with_runtime_fields(self, mapping: Mapping) -> Searcher:
        if not mapping.runtime:
            return self
        own = self._own.with_runtime_fields(mapping)
        made = copy(self)
        made.mapping, made.memory, made._kept = mapping, {}, {}
        made._own, made.leaves, made.has_runtime_fields = own, own.leaves, True
        return made

    @property
    def own(self) -> Searcher:
        return self._own

    @property
    def first(self) -> Places:
        return self.keep("first", self._first)

    def _first(self) -> Places:
        before = self.ask(_Sizes())[: self._others.number]
        return Places(sum(one.number for one in before), sum(one.shown for one in before))

    def ask(self, question: Question[Value]) -> list[Value]:
        return self._others.everywhere(question)

    @property
    def doc_count(self) -> int:
        return self.keep("doc count", lambda: sum(one.in_statistics for one in self.ask(_Sizes())))

    def _statistics(self, path: str) -> FieldStatistics:
        ((statistics,), _) = self._asked((path,), ())
        return statistics

    def _doc_freq(self, path: str, term: str) -> int:
        (_, (doc_freq,)) = self._asked((), ((path, term),))
        return doc_freq

    def _frequency(self, path: str, term: str, own: int) -> int:
        return self.doc_freq(path, term)

    def learn(self, terms: Iterable[tuple[str, str]]) -> None:
        """Ask at once for what terms, (path, term), score by."""
        wanted = tuple(sorted(set(terms)))
        paths = tuple(sorted({path for path, _ in wanted}))
        every, doc_freqs = self._asked(paths, wanted)
        for path, statistics in zip(paths, every, strict=True):
            self.keep(("statistics", path), partial(_same, statistics))
        for term, doc_freq in zip(wanted, doc_freqs, strict=True):
            self.keep(("doc_freq", *term), partial(_same, doc_freq))

    def _asked(
        self, paths: tuple[str, ...], terms: tuple[tuple[str, str], ...]
    ) -> tuple[list[FieldStatistics], list[int]]:
        counts, doc_freqs = zip(*self.ask(_Statistics(paths, terms)), strict=True)
        of_fields = [
            FieldStatistics(
                sum(documents for documents, _ in of_field),
                sum(tokens for _, tokens in of_field),
                self._similarity(path),
            )
            for path, of_field in zip(paths, zip(*counts, strict=True), strict=True)
        ]
        return of_fields, [sum(of_term) for of_term in zip(*doc_freqs, strict=True)]


def _same(known: Value) -> Value:
    return known


class PartialSearcher(Searcher):
    """Some of the leaves of a searcher, numbered anew; it scores by the statistics of the whole."""

    def __init__(self, whole: Searcher, leaves: Sequence[Leaf]) -> None:
        super().__init__(leaves, whole.mapping, whole.analyzers, whole.memory, whole.index_name)
        self._whole = whole

    @property
    def doc_count(self) -> int:
        return self._whole.doc_count

    def statistics(self, path: str) -> FieldStatistics:
        return self._whole.statistics(path)

    def doc_freq(self, path: str, term: str) -> int:
        return self._whole.doc_freq(path, term)

    def _frequency(self, path: str, term: str, own: int) -> int:
        return self.doc_freq(path, term)
