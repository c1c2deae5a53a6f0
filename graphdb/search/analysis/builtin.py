"""The analyzers that every index has; settings may give their types other parameters."""

from collections.abc import Callable

from graphdb.search.analysis import grams
from graphdb.search.analysis.analyzer import Analyzer
from graphdb.search.analysis.case import fold, java_lower
from graphdb.search.analysis.filter_types import stop_filter
from graphdb.search.analysis.parameters import Parameters
from graphdb.search.analysis.patterns import JavaPattern
from graphdb.search.analysis.stemming import porter, possessive
from graphdb.search.analysis.stop_words import ENGLISH, stop_words
from graphdb.search.analysis.token import KeywordMarker, StreamFilter, TermFilter, TokenFilter
from graphdb.search.analysis.tokenizers import SpanTokenizer, letters, not_whitespace, pattern_spans, whole
from graphdb.search.analysis.word_breaks import StandardTokenizer

__all__ = ["BUILT_IN"]

_LENGTH_MAX = 255
_LOWERCASE = TermFilter(java_lower, normalizes=True)


def _stop(parameters: Parameters, default: frozenset[str] = frozenset()) -> list[TermFilter]:
    words = stop_words(parameters.words("stopwords"), default)
    return [stop_filter(words)] if words else []


def _standard(parameters: Parameters) -> Analyzer:
    tokenizer = StandardTokenizer(parameters.number("max_token_length", _LENGTH_MAX, 1))
    return Analyzer(tokenizer, [_LOWERCASE, *_stop(parameters)])


def _simple(parameters: Parameters) -> Analyzer:
    return Analyzer(SpanTokenizer(letters, _LENGTH_MAX), [_LOWERCASE])


def _whitespace(parameters: Parameters) -> Analyzer:
    return Analyzer(SpanTokenizer(not_whitespace, _LENGTH_MAX))


def _stop_analyzer(parameters: Parameters) -> Analyzer:
    return Analyzer(SpanTokenizer(letters, _LENGTH_MAX), [_LOWERCASE, *_stop(parameters, ENGLISH)])


def _keyword(parameters: Parameters) -> Analyzer:
    return Analyzer(SpanTokenizer(whole))


def _pattern(parameters: Parameters) -> Analyzer:
    pattern = JavaPattern(parameters.text("pattern", r"\W+"), parameters.text("flags", ""))
    lowercase = [_LOWERCASE] if parameters.flag("lowercase", True) else []
    return Analyzer(SpanTokenizer(pattern_spans(pattern, -1)), [*lowercase, *_stop(parameters)])


def _english(parameters: Parameters) -> Analyzer:
    excluded = frozenset(parameters.words("stem_exclusion") or ())
    marker = [KeywordMarker(excluded.__contains__)] if excluded else []
    stem = TermFilter(porter, stems=True)
    filters: list[TokenFilter] = [
        TermFilter(possessive),
        _LOWERCASE,
        *_stop(parameters, ENGLISH),
        *marker,
        stem,
    ]
    return Analyzer(StandardTokenizer(), filters)


def _fingerprint(parameters: Parameters) -> Analyzer:
    join = grams.fingerprint(parameters.text("separator", " "), parameters.number("max_output_size", 255))
    folding = TermFilter(fold, normalizes=True)
    return Analyzer(StandardTokenizer(), [_LOWERCASE, folding, *_stop(parameters), StreamFilter(join)])


BUILT_IN: dict[str, Callable[[Parameters], Analyzer]] = {
    "standard": _standard,
    "simple": _simple,
    "whitespace": _whitespace,
    "stop": _stop_analyzer,
    "keyword": _keyword,
    "pattern": _pattern,
    "english": _english,
    "fingerprint": _fingerprint,
}
