"""The suggester `phrase`: the whole text with some of its words replaced, where that is more likely.

A correction's score is a product over its words: how like the word is to what stands there, and how likely
it is after the words before it (a model of n-grams, smoothed). The best are found by dynamic programming over
the last words and the number of errors: the score of a word depends on nothing else.

Source: Elasticsearch's documentation of the phrase suggester; Brants et al., "Large Language Models in
Machine Translation" (2007), for the stupid backoff.
"""

import heapq
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import orjson

from graphdb.search.aggregations.aggregation import Scope
from graphdb.search.aggregations.options import Options
from graphdb.search.analysis.token import Token
from graphdb.search.deadline import checkpoint
from graphdb.search.errors import illegal_argument, illegal_request
from graphdb.search.query import QueryContext, Searcher, parse_query
from graphdb.search.query.compound import BoolQuery
from graphdb.search.query.ranked import best_of
from graphdb.search.results.suggestion import Show, suggested_field
from graphdb.search.results.term_suggester import Generator, parse_generator, per_shard, words_of
from graphdb.search.scripts.mustache import Template

__all__ = ["Candidate", "best_corrections", "parse_phrase"]

_SIZE_MAX = _AMONG_MAX = 100
_CANDIDATES_MAX = 20  # for one word
_GENERATORS_MAX = 10
_TOKENS_MAX = 100
_GRAM_MAX = 3
_GRAMS_MAX = 100_000  # n-grams of candidates that one text may ask about
_STEPS_MAX = 2_000_000  # of one text
_NOTHING = 1e-11  # keeps a division from failing


class Candidate(NamedTuple):
    """A word for one place of the text. likeness is 1 for the word that stands there."""

    term: str
    likeness: float


@dataclass(frozen=True, slots=True)
class _Frequencies:
    """How often terms stand in a field of a shard."""

    path: str
    terms: tuple[str, ...]

    def answered(self, searcher: Searcher) -> list[int]:
        return [self._of(term, searcher.own) for term in self.terms]

    def _of(self, term: str, searcher: Searcher) -> int:
        count = 0
        for leaf in searcher.leaves:
            if (text := leaf.segment.text(self.path)) is not None:
                number = text.dictionary.find(term)
                count += int(text.postings(number)[1].sum()) if number >= 0 else 0
            elif (index := leaf.segment.terms(self.path)) is not None:
                number = index.dictionary.find(term)
                count += len(index.postings(number)) if number >= 0 else 0
        return count


@dataclass(frozen=True, slots=True)
class _Extent:
    """Of a shard: its segments, its documents, the terms of a field in each segment together."""

    path: str

    def answered(self, searcher: Searcher) -> tuple[int, int, int]:
        own = searcher.own
        terms = sum(len(dictionary) for _, dictionary in own.dictionaries(self.path))
        return len(own.leaves), own.doc_count, terms


@dataclass(frozen=True, slots=True)
class _Collation:
    """template: of the query by which a suggestion has to find something. prunes: others are shown, too."""

    template: Template
    params: Mapping[str, Any]
    prunes: bool
    context: QueryContext

    def finds(self, suggestion: str, scope: Scope) -> bool:
        """Errors: SearchError."""
        text = self.template.render({**self.params, "suggestion": suggestion})
        try:
            body = orjson.loads(text)
        except ValueError:
            raise illegal_argument("[collate] the template makes no JSON of a query") from None
        query = parse_query(body, self.context)
        if scope.visible is not None:
            query = BoolQuery(must=(query,), filter=(scope.visible,))
        return bool(len(best_of(query, scope.searcher, 1).docs))


class _Model(NamedTuple):
    """Counts of words and n-grams. tokens: all of the field. distinct: its terms, or about so many."""

    count: Callable[[str], int]
    tokens: int
    distinct: int
    separator: str

    def alone(self, word: str, alpha: float = 1.0) -> float:
        return (alpha + self.count(word)) / (self.tokens + alpha * self.distinct or 1)

    def together(self, *words: str) -> int:
        return self.count(self.separator.join(words))


Smoothing = Callable[[_Model, tuple[str, ...]], float]
"""How likely the last word is after those before it, at most two."""


def _backoff(discount: float) -> Smoothing:
    def likely(model: _Model, words: tuple[str, ...]) -> float:
        if len(words) == 1:
            return model.alone(words[0])
        pair = model.together(*words[-2:])
        if pair < 1:
            return discount * model.alone(words[-1])
        if len(words) == 2:
            return pair / (model.count(words[0]) + _NOTHING)
        triple = model.together(*words)
        if triple < 1:
            return discount * (pair / (model.count(words[1]) + _NOTHING))
        return triple / (pair + _NOTHING)

    return likely


def _laplace(alpha: float) -> Smoothing:
    def likely(model: _Model, words: tuple[str, ...]) -> float:
        if len(words) == 1:
            return model.alone(words[0], alpha)
        before = model.count(words[0]) if len(words) == 2 else model.together(*words[1:])
        return (alpha + model.together(*words)) / (before + alpha * model.distinct + _NOTHING)

    return likely


def _interpolation(of_three: float, of_two: float, of_one: float) -> Smoothing:
    def likely(model: _Model, words: tuple[str, ...]) -> float:
        if len(words) == 1:
            return model.alone(words[0])
        pair = model.together(*words[-2:])
        score = of_one * model.alone(words[-1])
        if pair >= 1:
            score += of_two * pair / (0.5 + model.count(words[-2]))
        if len(words) == 3 and (triple := model.together(*words)) >= 1:
            score += of_three * triple / (1 + model.together(*words[:2]))
        return score

    return likely


# The search for the best corrections.


class _Path(NamedTuple):
    """So far: less the logarithm of the score, and the candidates by number."""

    worth: float
    chosen: tuple[int, ...]


def best_corrections(
    places: Sequence[Sequence[Candidate]],
    errors: int,
    size: int,
    gram_size: int,
    score: Callable[[tuple[Candidate, ...]], float],
) -> list[tuple[float, tuple[int, ...]]]:
    """(score, number of the candidate for each place), best first: the `size` best with at most so many words
    replaced. The first candidate of a place is the word itself. score is of the last of up to gram_size
    candidates, after those before it.
    """
    states: dict[tuple[int, tuple[int, ...]], list[_Path]] = {(errors, ()): [_Path(0.0, ())]}
    for at, candidates in enumerate(places):
        following: dict[tuple[int, tuple[int, ...]], list[_Path]] = {}
        for (left, last), paths in states.items():
            checkpoint()
            known = [places[at - len(last) + place][number] for place, number in enumerate(last)]
            for number, candidate in enumerate(candidates if left else candidates[:1]):
                probability = score((*known, candidate))
                cost = -math.log10(probability) if probability > 0 else math.inf
                kept = (*last, number)[-(gram_size - 1) :] if gram_size > 1 else ()
                following.setdefault((left - (number > 0), kept), []).extend(
                    _Path(path.worth + cost, (*path.chosen, number)) for path in paths
                )
        states = {state: heapq.nsmallest(size, paths) for state, paths in following.items()}
    best = heapq.nsmallest(size, (path for paths in states.values() for path in paths))
    return [(math.exp(-path.worth), path.chosen) for path in best]


@dataclass(frozen=True, slots=True)
class PhraseSuggestion:
    """errors: words that may be replaced, or a part of them below 1. tags: around what was replaced. filters:
    of each generator, what changes a word before it and its terms after it. among: those shown are of so many
    best corrections, and so many candidates of several generators count.
    """

    name: str
    text: str
    words: tuple[Token, ...]
    path: str
    size: int
    generators: tuple[Generator, ...]
    filters: tuple[tuple[Callable[[str], str], Callable[[str], str]], ...]
    gram_size: int
    smoothing: Smoothing
    errors: float
    confidence: float
    real_word: float
    separator: str
    tags: tuple[str, str] | None
    token_limit: int
    among: int
    collation: _Collation | None = None
    kind: str = "phrase"

    def entries(self, scope: Scope, show: Show) -> list[dict[str, Any]]:
        options = []
        searcher = scope.searcher
        if self.words and len(self.words) < self.token_limit and searcher.statistics(self.path).total_terms:
            options = self._options(scope)
        return [{"text": self.text, "offset": 0, "length": len(self.text), "options": options}]

    def _options(self, scope: Scope) -> list[dict[str, Any]]:
        searcher = scope.searcher
        places = [self._candidates(word.term, searcher) for word in self.words]
        errors = int(self.errors) if self.errors >= 1 else math.floor(self.errors * len(places) + 0.5)
        errors = min(max(1, errors), len(places))
        widest = max(map(len, places))
        grams = len(places) * widest**self.gram_size
        if grams > _GRAMS_MAX or grams * (errors + 1) * max(self.size, self.among) > _STEPS_MAX:
            raise illegal_request("[phrase] has too many candidates, errors or words for one suggestion")
        model = self._model(places, searcher)
        scored: dict[tuple[Candidate, ...], float] = {}

        def score(words: tuple[Candidate, ...]) -> float:
            if words not in scored:
                scored[words] = self._score(model, words)
            return scored[words]

        cutoff = 0.0
        if self.confidence > 0:
            originals = [places[at][:1] for at in range(len(places))]
            ((given, _),) = best_corrections(originals, 0, 1, self.gram_size, score)
            cutoff = given * self.confidence
        count = self.size if self.collation is None else self.among
        found = best_corrections(places, errors, min(count, self.among), self.gram_size, score)
        shown = [self._shown(places, chosen, value) for value, chosen in found if value > cutoff]
        return self._collated(shown, scope)[: self.size]

    def _collated(self, shown: list[dict[str, Any]], scope: Scope) -> list[dict[str, Any]]:
        if self.collation is None:
            return shown
        kept = []
        for one in shown:
            checkpoint()
            finds = self.collation.finds(one["text"], scope)
            if self.collation.prunes:
                kept.append({**one, "collate_match": finds})
            elif finds:
                kept.append(one)
        return kept

    def _score(self, model: _Model, words: tuple[Candidate, ...]) -> float:
        likeness = self.real_word if words[-1].likeness == 1 else words[-1].likeness
        terms = tuple(word.term for word in words)
        return likeness * self.smoothing(model, terms)

    def _candidates(self, word: str, searcher: Searcher) -> list[Candidate]:
        """The word, and what may stand for it."""
        checkpoint()
        best: dict[str, float] = {}
        worth: dict[str, float] = {}
        for generator, (before, after) in zip(self.generators, self.filters, strict=True):
            for near in generator.near(before(word), searcher)[: generator.size]:
                term = after(near.term)
                if term and term != word and near.likeness > best.get(term, 0):
                    best[term], worth[term] = near.likeness, near.likeness * (near.frequency + 1)
        most = self.generators[0].size if len(self.generators) == 1 else self.among
        chosen = (
            list(best) if len(self.generators) == 1 else sorted(best, key=lambda term: (-worth[term], term))
        )
        return [Candidate(word, 1.0), *(Candidate(term, best[term]) for term in chosen[:most])]

    def _model(self, places: Sequence[Sequence[Candidate]], searcher: Searcher) -> _Model:
        """All counts that scores may need, asked for at once."""
        terms = dict.fromkeys(
            self.separator.join(candidate.term for candidate in gram)
            for length in range(1, self.gram_size + 1)
            for at in range(len(places) - length + 1)
            for gram in product(*places[at : at + length])
        )
        asked = _Frequencies(self.path, tuple(terms))
        counts = np.sum(searcher.ask(asked), axis=0).tolist()
        known = dict(zip(terms, counts, strict=True))
        extents = searcher.ask(_Extent(self.path))
        segments, documents, distinct = (sum(column) for column in zip(*extents, strict=True))
        if segments != 1:
            distinct = documents  # as in Lucene, where those of several segments are not counted
        total = searcher.statistics(self.path).total_terms
        return _Model(known.__getitem__, total, distinct, self.separator)

    def _shown(
        self, places: Sequence[Sequence[Candidate]], chosen: Sequence[int], score: float
    ) -> dict[str, Any]:
        terms = [places[at][number].term for at, number in enumerate(chosen)]
        shown: dict[str, Any] = {"text": " ".join(terms)}
        if self.tags is not None:
            before, after = self.tags
            parts = []
            for at, term in enumerate(terms):
                opens = before if chosen[at] and not (at and chosen[at - 1]) else ""
                closes = after if chosen[at] and not any(chosen[at + 1 : at + 2]) else ""
                parts.append(f"{opens}{term}{closes}")
            shown["highlighted"] = " ".join(parts)
        return {**shown, "score": float(np.float32(score))}


# The request.


def parse_phrase(name: str, text: str, options: Options, context: QueryContext) -> PhraseSuggestion:
    """Errors: SearchError."""
    spec = suggested_field(options.text("field"), context)
    analyzer = options.text("analyzer")
    grams = context.analyzers.analyzer(analyzer or spec.search_analyzer).shingle_size
    gram_size = options.integer("gram_size", min(grams, _GRAM_MAX), 1)
    if gram_size > _GRAM_MAX:
        raise illegal_argument(f"gram_size must be at most [{_GRAM_MAX}], but was [{gram_size}]")
    size = options.integer("size", 5)
    if not 1 <= size <= _SIZE_MAX:
        raise illegal_request(f"size must be positive, and at most [{_SIZE_MAX}]")
    given = options.items("direct_generator")
    if len(given) > _GENERATORS_MAX:
        raise illegal_request(f"[phrase] takes at most [{_GENERATORS_MAX}] generators")
    generators = [_generator(one, context) for one in given or [{"field": spec.path}]]
    smoothing = _smoothing(options.take("smoothing"))
    errors, confidence = options.number("max_errors", 0.5) or 0.0, options.number("confidence", 1.0) or 0.0
    real_word = options.number("real_word_error_likelihood", 0.95) or 0.0
    tags = _tags(options.take("highlight"))
    limit, separator = options.integer("token_limit", 10, 1), options.text("separator", " ") or ""
    collation, among = _collation(options.take("collate"), context), per_shard(options, size)
    options.ignore("force_unigrams")
    options.done()
    if among > _AMONG_MAX:
        raise illegal_request(f"shard_size of [phrase] must be at most [{_AMONG_MAX}]")
    if not 0 < errors <= _TOKENS_MAX:
        raise illegal_argument(f"max_error must be > 0.0, and at most {_TOKENS_MAX}")
    if confidence < 0:
        raise illegal_argument("confidence must be >= 0.0")
    if not 0 < real_word <= 1:
        raise illegal_argument("real_word_error_likelihood must be > 0.0, and at most 1.0")
    if limit > _TOKENS_MAX:
        raise illegal_argument(f"token_limit must be at most [{_TOKENS_MAX}]")
    words = tuple(word for word in words_of(text, spec, analyzer, context) if word.type != "shingle")
    return PhraseSuggestion(
        name, text, words, spec.path, size, tuple(one for one, _ in generators),
        tuple(filters for _, filters in generators), gram_size, smoothing, errors, confidence, real_word,
        separator, tags, limit, among, collation,
    )  # fmt: skip


def _generator(
    body: Any, context: QueryContext
) -> tuple[Generator, tuple[Callable[[str], str], Callable[[str], str]]]:
    options = Options("direct_generator", body)
    spec = suggested_field(options.text("field"), context)
    filters = _filter(options.text("pre_filter"), context), _filter(options.text("post_filter"), context)
    generator = parse_generator(spec, options)
    options.ignore("sort", "lowercase_terms")
    options.done()
    if generator.size > _CANDIDATES_MAX:
        raise illegal_request(f"size of a direct_generator must be at most [{_CANDIDATES_MAX}]")
    return generator, filters


def _filter(name: str | None, context: QueryContext) -> Callable[[str], str]:
    """What an analyzer makes of one word: its last token."""
    if name is None:
        return str
    analyzer = context.analyzers.analyzer(name)
    return lambda word: (analyzer.tokens(word)[0] or [word])[-1]


def _collation(given: Any, context: QueryContext) -> _Collation | None:
    if given is None:
        return None
    options = Options("collate", given)
    query, params = Options("query", options.take("query")), options.take("params", {})
    prunes = options.flag("prune")
    options.done()
    source, lang = query.take("source"), query.text("lang", "mustache")
    query.done()
    if source is None or lang != "mustache":
        raise illegal_argument("[collate] needs the [source] of a query, a template in mustache")
    if not isinstance(params, Mapping):
        raise illegal_argument("[params] of [collate] must be an object")
    text = source if isinstance(source, str) else orjson.dumps(source).decode()
    return _Collation(Template(text), params, prunes, context)


def _smoothing(given: Any) -> Smoothing:
    if given is None:
        return _backoff(0.4)
    kinds = Options("smoothing", given).rest()
    if len(kinds) != 1:
        raise illegal_argument("[smoothing] needs one model")
    ((kind, body),) = kinds.items()
    if kind not in _SMOOTHINGS:
        raise illegal_argument(
            f"suggester[phrase] doesn't support object field [smoothing] of [{kind[:100]}]"
        )
    options, (names, make) = Options(kind, body), _SMOOTHINGS[kind]
    values = [options.number(name, default) for name, default in names.items()]
    options.done()
    if any(value is None or not 0 <= value < 1e9 for value in values):
        raise illegal_argument(f"the parameters of [{kind}] must be positive")
    numbers = [float(value or 0) for value in values]
    if kind.startswith("linear") and abs(sum(numbers) - 1) > 0.001:
        raise illegal_argument("linear smoothing lambdas must sum to 1")
    return make(*numbers)


_SMOOTHINGS: Mapping[str, tuple[Mapping[str, float | None], Callable[..., Smoothing]]] = {
    "stupid_backoff": ({"discount": 0.4}, _backoff),
    "laplace": ({"alpha": 0.5}, _laplace),
    # documented by the longer name, and known by the shorter one to Elasticsearch 8
    **dict.fromkeys(
        ("linear", "linear_interpolation"),
        ({"trigram_lambda": None, "bigram_lambda": None, "unigram_lambda": None}, _interpolation),
    ),
}


def _tags(given: Any) -> tuple[str, str] | None:
    if given is None:
        return None
    options = Options("highlight", given)
    before, after = options.text("pre_tag"), options.text("post_tag")
    options.done()
    if before is None or after is None:
        raise illegal_argument("Pre and post tag must both be null or both not be null.")
    return before, after
