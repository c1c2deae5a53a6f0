"""`suggest` of a search: for the words of a text, terms of a field that are like them (`term`).

Source: the documentation of Elasticsearch's term suggester and of Lucene's DirectSpellChecker.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any

from graphdb.search.aggregations.options import Options
from graphdb.search.analysis.token import Token
from graphdb.search.deadline import checkpoint
from graphdb.search.errors import SearchError, illegal_argument, illegal_request
from graphdb.search.fields import FieldSpec, Storage
from graphdb.search.query import QueryContext, Searcher
from graphdb.search.query.dictionary_queries import FuzzyQuery, near_terms

__all__ = ["Suggestion", "parse_suggestions", "suggestions"]

_SUGGESTIONS_MAX = 100  # of one search
_WORDS_MAX = 1_000  # of one text
_SIZE_MAX = 1_000
_ACCURACY = 0.5  # of the worst term that is suggested
_MODES = ("missing", "popular", "always")
_DISTANCES = ("internal", "damerau_levenshtein", "levenshtein")
_ELSEWHERE = {
    "phrase": "ask for [term], which suggests for each word",
    "completion": "a search of [match_bool_prefix] or [prefix] completes words",
}


@dataclass(frozen=True, slots=True)
class Suggestion:
    """One part of `suggest`. max_frequency and min_frequency are documents, or a part of them below 1."""

    name: str
    words: tuple[Token, ...]
    path: str
    size: int
    by_frequency: bool
    mode: str
    edits: int
    prefix_length: int
    least_length: int  # of a word that terms are suggested for
    max_frequency: float
    min_frequency: float


def parse_suggestions(body: Any, context: QueryContext) -> tuple[Suggestion, ...]:
    """Errors: SearchError; for suggesters that are not offered an illegal_argument_exception."""
    options = Options("suggest", body)
    text = options.text("text")
    parts = options.rest()
    if len(parts) > _SUGGESTIONS_MAX:
        raise illegal_request(f"[suggest] takes at most [{_SUGGESTIONS_MAX}] suggestions")
    return tuple(_one(name, part, text, context) for name, part in parts.items())


def _one(name: str, body: Any, text: str | None, context: QueryContext) -> Suggestion:
    options = Options("suggest", body)
    text = options.text("text", text)
    for key in ("prefix", "regex"):
        if key in options:
            raise illegal_argument(
                f"[{key}] is only for the suggester [completion]: {_ELSEWHERE['completion']}"
            )
    kinds = options.rest()
    if len(kinds) != 1:
        raise illegal_request(f"suggestion [{name[:100]}] needs one suggester, and has {sorted(kinds)[:5]}")
    ((kind, inner),) = kinds.items()
    if kind in _ELSEWHERE:
        raise illegal_argument(f"the suggester [{kind}] is not supported: {_ELSEWHERE[kind]}")
    if kind != "term":
        raise SearchError("named_object_not_found_exception", f"unknown field [{kind[:100]}]")
    if text is None:
        raise illegal_request("The required text option is missing")
    return _term(name, text, Options("term", inner), context)


def _term(name: str, text: str, options: Options, context: QueryContext) -> Suggestion:
    path = options.text("field")
    if path is None:
        raise illegal_request("the required field option is missing")
    spec = context.mapping.field(path)
    if spec is None:
        raise illegal_argument(f"no mapping found for field [{path[:100]}]")
    if spec.storage not in (Storage.TEXT, Storage.TERMS):
        raise illegal_argument(f"field [{path[:100]}] of type [{spec.type}] has no terms to suggest")
    sort, mode = options.text("sort", "score"), options.text("suggest_mode", "missing")
    distance = options.text("string_distance", "internal")
    edits, size = options.integer("max_edits", 2), options.integer("size", 5)
    prefix, least = options.integer("prefix_length", 1, 0), options.integer("min_word_length", 4, 1)
    least_frequency, most_frequency = (
        options.number(key, default) for key, default in (("min_doc_freq", 0.0), ("max_term_freq", 0.01))
    )
    words = _words(text, spec, options.text("analyzer"), context)
    options.ignore("shard_size", "max_inspections", "lowercase_terms")
    options.done()
    if sort not in ("score", "frequency"):
        raise illegal_request(f"Illegal suggest sort [{sort}]")
    if mode not in _MODES:
        raise illegal_argument(
            f"No enum constant of a suggest mode [{mode}]: one of {list(_MODES)} is expected"
        )
    if distance not in _DISTANCES:
        raise illegal_argument(
            f"[string_distance] [{distance}] is not supported: one of {list(_DISTANCES)} is"
        )
    if edits not in (1, 2):
        raise illegal_request(f"maxEdits must be between 1 and 2, not [{edits}]")
    if not 1 <= size <= _SIZE_MAX:
        raise illegal_request(f"size must be positive, and at most [{_SIZE_MAX}]")
    for frequency in (least_frequency, most_frequency):
        if frequency is None or frequency < 0 or (frequency > 1 and frequency != int(frequency)):
            raise illegal_request(f"a frequency is a part up to 1, or a whole number, not [{frequency}]")
    return Suggestion(
        name, words, spec.path, size, sort == "frequency", mode, edits, prefix, least,
        float(most_frequency or 0), float(least_frequency or 0),
    )  # fmt: skip


def _words(text: str, spec: FieldSpec, analyzer: str | None, context: QueryContext) -> tuple[Token, ...]:
    if spec.storage is Storage.TERMS and analyzer is None:
        return (Token(text, 0, len(text)),) if text else ()
    words = context.analyzers.analyzer(analyzer or spec.search_analyzer).detailed(text)
    if len(words) > _WORDS_MAX:
        raise illegal_request(
            f"[suggest] takes at most [{_WORDS_MAX}] words, and the text has [{len(words)}]"
        )
    return tuple(words)


def suggestions(
    parts: tuple[Suggestion, ...], searcher: Searcher, typed_keys: bool
) -> Mapping[str, list[dict[str, Any]]]:
    """What stands under `suggest` in the answer: for each word its options, best first."""
    found: dict[str, list[dict[str, Any]]] = {}
    for part in parts:
        shown = []
        for word in part.words:
            checkpoint()
            length = word.end_offset - word.start_offset
            options = _options(part, word.term, searcher)
            shown.append(
                {"text": word.term, "offset": word.start_offset, "length": length, "options": options}
            )
        found[f"term#{part.name}" if typed_keys else part.name] = shown
    return found


def _options(part: Suggestion, word: str, searcher: Searcher) -> list[dict[str, Any]]:
    if len(word) < part.least_length:
        return []
    frequency = searcher.doc_freq(part.path, word)
    if part.mode == "missing" and frequency:
        return []
    documents = searcher.doc_count
    most = part.max_frequency if part.max_frequency >= 1 else ceil(part.max_frequency * documents)
    if frequency > most:
        return []
    floor = frequency if part.mode == "popular" else 0
    if part.min_frequency >= 1:
        floor = max(floor, int(part.min_frequency))
    elif part.min_frequency:
        floor = max(floor, int(part.min_frequency * documents) - 1)
    fuzzy = FuzzyQuery(path=part.path, term=word, edits=part.edits, prefix_length=part.prefix_length)
    near, _ = near_terms(searcher, fuzzy)
    rows = [
        (term, likeness, often)
        for term, likeness in near.items()
        if term != word and likeness >= _ACCURACY and (often := searcher.doc_freq(part.path, term)) > floor
    ]
    if part.by_frequency:
        rows.sort(key=lambda row: (-row[2], -row[1], row[0]))
    else:
        rows.sort(key=lambda row: (-row[1], -row[2], row[0]))
    return [{"text": term, "score": likeness, "freq": often} for term, likeness, often in rows[: part.size]]
