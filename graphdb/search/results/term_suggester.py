"""The suggester `term`: for the words of a text, terms of a field that are like them.

Source: the documentation of Elasticsearch's term suggester and of Lucene's DirectSpellChecker.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import Any

from graphdb.search.aggregations.aggregation import Scope
from graphdb.search.aggregations.options import Options
from graphdb.search.analysis.token import Token
from graphdb.search.deadline import checkpoint
from graphdb.search.errors import illegal_argument, illegal_request
from graphdb.search.fields import FieldSpec, Storage
from graphdb.search.query import QueryContext, Searcher
from graphdb.search.query.dictionary_queries import FuzzyQuery, near_terms
from graphdb.search.results.string_distances import DISTANCES
from graphdb.search.results.suggestion import MODES, Show, checked_frequencies, checked_size, suggested_field

__all__ = ["Generator", "Near", "parse_generator", "parse_term", "per_shard", "words_of"]

_WORDS_MAX = 1_000  # of one text
_ACCURACY = 0.5  # of the worst term that is suggested, where a request does not say
_PER_SHARD_MIN = 5  # terms, where a request does not say


@dataclass(frozen=True, slots=True)
class Near:
    """A term that is like a word: by how much, up to 1, and how many documents have it."""

    term: str
    likeness: float
    frequency: int


@dataclass(frozen=True, slots=True)
class Generator:
    """Which terms of a field may stand for a word. max_frequency and min_frequency are documents, or a part
    of them below 1. distance: how likeness is measured; None: by the edits. accuracy: the least likeness.
    """

    path: str
    size: int
    mode: str
    edits: int
    prefix_length: int
    least_length: int  # of a word that terms are suggested for
    max_frequency: float
    min_frequency: float
    distance: Callable[[str, str], float] | None = None
    accuracy: float = _ACCURACY

    def near(self, word: str, searcher: Searcher) -> list[Near]:
        """In the order of the terms' likeness; the caller cuts the list."""
        if len(word) < self.least_length:
            return []
        frequency = searcher.doc_freq(self.path, word)
        if self.mode == "missing" and frequency:
            return []
        documents = searcher.doc_count
        most = self.max_frequency if self.max_frequency >= 1 else ceil(self.max_frequency * documents)
        if frequency > most:
            return []
        floor = frequency if self.mode == "popular" else 0
        if self.min_frequency >= 1:
            floor = max(floor, int(self.min_frequency))
        elif self.min_frequency:
            floor = max(floor, int(self.min_frequency * documents) - 1)
        rows = [
            Near(term, likeness, often)
            for term, likeness in self._alike(word, searcher).items()
            if likeness >= self.accuracy and (often := searcher.doc_freq(self.path, term)) > floor
        ]
        return sorted(rows, key=lambda row: (-row.likeness, -row.frequency, row.term))

    def _alike(self, word: str, searcher: Searcher) -> dict[str, float]:
        """The terms within the edits, but for the word. As in Lucene, two edits spare the first character."""
        alike: dict[str, float] = {}
        for edits in range(1, self.edits + 1):
            prefix = max(self.prefix_length, edits - 1)
            if edits == self.edits or prefix < self.edits - 1:
                fuzzy = FuzzyQuery(path=self.path, term=word, edits=edits, prefix_length=prefix)
                alike |= near_terms(searcher, fuzzy)[0]
        distance = self.distance
        if distance is not None:
            alike = {term: distance(word, term) for term in alike}
        return {term: likeness for term, likeness in alike.items() if term != word}


@dataclass(frozen=True, slots=True)
class TermSuggestion:
    """words: of the text, as the field's queries have them. among: of so many best terms are those shown."""

    name: str
    words: tuple[Token, ...]
    generator: Generator
    by_frequency: bool
    among: int
    kind: str = "term"

    def entries(self, scope: Scope, show: Show) -> list[dict[str, Any]]:
        """One for each word, with its terms, best first."""
        shown = []
        for word in self.words:
            checkpoint()
            length = word.end_offset - word.start_offset
            options = self._options(word.term, scope.searcher)
            shown.append(
                {"text": word.term, "offset": word.start_offset, "length": length, "options": options}
            )
        return shown

    def _options(self, word: str, searcher: Searcher) -> list[dict[str, Any]]:
        rows = self.generator.near(word, searcher)[: self.among]
        if self.by_frequency:
            rows.sort(key=lambda row: (-row.frequency, -row.likeness, row.term))
        return [
            {"text": row.term, "score": row.likeness, "freq": row.frequency}
            for row in rows[: self.generator.size]
        ]


def parse_term(name: str, text: str, options: Options, context: QueryContext) -> TermSuggestion:
    """Errors: SearchError."""
    spec = suggested_field(options.text("field"), context)
    sort = options.text("sort", "score")
    generator = parse_generator(spec, options)
    words = words_of(text, spec, options.text("analyzer"), context)
    among = per_shard(options, generator.size)
    options.ignore("lowercase_terms")
    options.done()
    if sort not in ("score", "frequency"):
        raise illegal_request(f"Illegal suggest sort [{sort}]")
    return TermSuggestion(name, words, generator, sort == "frequency", among)


def per_shard(options: Options, size: int) -> int:
    """`shard_size`: the options that may be sorted and shown. Errors: SearchError."""
    among = options.integer("shard_size", max(size, _PER_SHARD_MIN))
    if among < 1:
        raise illegal_request("shard_size must be positive")
    return among


def parse_generator(spec: FieldSpec, options: Options) -> Generator:
    """What `term` and the `direct_generator` of `phrase` have in common. Errors: SearchError."""
    if spec.storage not in (Storage.TEXT, Storage.TERMS) or spec.type == "completion":
        raise illegal_argument(f"field [{spec.path[:100]}] of type [{spec.type}] has no terms to suggest")
    mode = options.text("suggest_mode", "missing") or ""
    edits, size = options.integer("max_edits", 2), options.integer("size", 5)
    prefix, least = options.integer("prefix_length", 1, 0), options.integer("min_word_length", 4, 1)
    most, fewest = checked_frequencies(
        options.number("max_term_freq", 0.01), options.number("min_doc_freq", 0.0)
    )
    distance = options.text("string_distance", "internal") or ""
    accuracy = options.number("accuracy", _ACCURACY) or 0.0
    if options.integer("max_inspections", 5) < 0:
        raise illegal_request("maxInspections must be positive")
    if distance not in DISTANCES:
        raise illegal_argument(f"Illegal distance option [{distance[:100]}]: one of {list(DISTANCES)} is")
    if not 0 <= accuracy <= 1:
        raise illegal_request("accuracy must be between 0 and 1")
    if mode not in MODES:
        raise illegal_argument(
            f"No enum constant of a suggest mode [{mode[:100]}]: one of {list(MODES)} is expected"
        )
    if edits not in (1, 2):
        raise illegal_request(f"maxEdits must be between 1 and 2, not [{edits}]")
    own = DISTANCES[distance]
    return Generator(spec.path, checked_size(size), mode, edits, prefix, least, most, fewest, own, accuracy)


def words_of(text: str, spec: FieldSpec, analyzer: str | None, context: QueryContext) -> tuple[Token, ...]:
    """Of a text; the whole of it for a field of keywords."""
    if spec.storage is Storage.TERMS and analyzer is None:
        return (Token(text, 0, len(text)),) if text else ()
    words = context.analyzers.analyzer(analyzer or spec.search_analyzer).detailed(text)
    if len(words) > _WORDS_MAX:
        raise illegal_request(
            f"[suggest] takes at most [{_WORDS_MAX}] words, and the text has [{len(words)}]"
        )
    return tuple(words)
