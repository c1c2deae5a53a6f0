"""The analyzers of languages: `french`, `german` ..., and `snowball`, whose language is a parameter.

Each is the standard tokenizer and a chain of filters. In the chains `stop` stands for the language's stop
words, and `stem` for its stemmer, from which `stem_exclusion` protects words. Source: Elasticsearch's
documentation, which shows how to build each as a custom analyzer.
"""

from collections.abc import Callable
from functools import partial

from graphdb.search.analysis.analyzer import Analyzer
from graphdb.search.analysis.case import LOWER_CASES, decimal_digits
from graphdb.search.analysis.char_filters import mapping_filter
from graphdb.search.analysis.elision import ARTICLES, before_apostrophe, elision
from graphdb.search.analysis.normalization import NORMALIZATIONS
from graphdb.search.analysis.parameters import Parameters
from graphdb.search.analysis.stemmers import possessive, snowball, stemmer
from graphdb.search.analysis.stop_words import language_words, stop_words
from graphdb.search.analysis.thai import ThaiTokenizer
from graphdb.search.analysis.token import KeywordMarker, TermFilter, TokenFilter
from graphdb.search.analysis.tokenizers import StandardTokenizer

__all__ = ["LANGUAGE_ANALYZERS"]

# `lower` is lower case; a name with a colon gives its filter a language.
_CHAINS = {
    "arabic": "lower digits stop arabic_normalization stem",
    "armenian": "lower stop stem",
    "basque": "lower stop stem",
    "bengali": "lower digits exclude indic_normalization bengali_normalization stop stem",
    "brazilian": "lower stop stem",
    "bulgarian": "lower stop stem",
    "catalan": "elision:catalan lower stop stem",
    "czech": "lower stop stem",
    "danish": "lower stop stem",
    "dutch": "lower stop stem",
    "english": "possessive lower stop stem",
    "estonian": "lower stop stem",
    "finnish": "lower stop stem",
    "french": "elision:french lower stop stem:light_french",
    "galician": "lower stop stem",
    "german": "lower stop exclude german_normalization stem:light_german",
    "greek": "lower:greek stop stem",
    "hindi": "lower digits exclude indic_normalization hindi_normalization stop stem",
    "hungarian": "lower stop stem",
    "indonesian": "lower stop stem",
    "irish": "hyphenated elision:irish lower:irish stop stem",
    "italian": "elision:italian lower stop stem:light_italian",
    "latvian": "lower stop stem",
    "lithuanian": "lower stop stem",
    "norwegian": "lower stop stem",
    "persian": "lower digits arabic_normalization persian_normalization stop",
    "portuguese": "lower stop stem:light_portuguese",
    "romanian": "lower stop stem",
    "russian": "lower stop stem",
    "serbian": "lower stop stem serbian_normalization",
    "sorani": "sorani_normalization lower digits stop stem",
    "spanish": "lower stop stem:light_spanish",
    "swedish": "lower stop stem",
    "thai": "lower digits stop",
    "turkish": "apostrophe lower:turkish stop stem",
}
# Snowball's Dutch stemmer changes these, and Lucene's analyzer does not let it.
_DUTCH = {"fiets": "fiets", "bromfiets": "bromfiets", "ei": "eier", "kind": "kinder"}
_IRISH_HYPHENATED = frozenset("hnt")  # prefixes that are written apart
_NON_JOINER = mapping_filter(["\\u200C=>\\u0020"])


def _analyzer(language: str, parameters: Parameters) -> Analyzer:
    given = parameters.words("stopwords")
    words = language_words(language) if given is None else stop_words(given)
    excluded = frozenset(parameters.words("stem_exclusion") or ())
    marker = [KeywordMarker(excluded.__contains__)] if excluded else []
    steps: list[TokenFilter] = []
    for name in _CHAINS[language].split():
        kind, _, argument = name.partition(":")
        if kind == "stop":
            steps += [_without(words)] if words else []
        elif kind == "exclude":
            steps += marker
        elif kind == "stem":
            steps += [*([] if "exclude" in _CHAINS[language] else marker), _stem(language, argument)]
        else:
            steps.append(_FILTERS[kind](argument) if kind in _FILTERS else _normalization(kind))
    tokenizer = ThaiTokenizer() if language == "thai" else StandardTokenizer()
    return Analyzer(tokenizer, steps, [_NON_JOINER] if language == "persian" else [])


def _without(words: frozenset[str]) -> TermFilter:
    return TermFilter(lambda term: None if term in words else term)


def _stem(language: str, name: str) -> TermFilter:
    stem = stemmer(name or language)
    if language == "dutch":
        return TermFilter(lambda term: _DUTCH.get(term) or stem(term), stems=True)
    return TermFilter(stem, stems=True)


def _normalization(name: str) -> TermFilter:
    return TermFilter(NORMALIZATIONS[name], normalizes=True)


_FILTERS: dict[str, Callable[[str], TermFilter]] = {
    "apostrophe": lambda _: TermFilter(before_apostrophe),
    "digits": lambda _: TermFilter(decimal_digits, normalizes=True),
    "elision": lambda language: TermFilter(elision(ARTICLES[language], ignore_case=True), normalizes=True),
    "hyphenated": lambda _: TermFilter(lambda term: None if term.lower() in _IRISH_HYPHENATED else term),
    "lower": lambda language: TermFilter(LOWER_CASES[language], normalizes=True),
    "possessive": lambda _: TermFilter(possessive),
}

_WITH_STOP_WORDS = frozenset(
    {"English", "Dutch", "German", "German2", "French"}
)  # of `snowball`, without settings
_WITH_POSSESSIVES = frozenset({"English", "Porter"})


def _snowball(parameters: Parameters) -> Analyzer:
    """Any language of Snowball's, in one chain. Source: Elasticsearch's documentation."""
    language = parameters.text("language", parameters.text("name", "English"))
    given = parameters.words("stopwords")
    if given is None:
        own = language in _WITH_STOP_WORDS
        words = language_words(language.lower().rstrip("2")) if own else frozenset[str]()
    else:
        words = stop_words(given)
    steps: list[TokenFilter] = [_FILTERS["possessive"]("")] if language in _WITH_POSSESSIVES else []
    steps.append(_FILTERS["lower"]("turkish" if language == "Turkish" else ""))
    steps += [_without(words)] if words else []
    return Analyzer(StandardTokenizer(), [*steps, TermFilter(snowball(language), stems=True)])


LANGUAGE_ANALYZERS: dict[str, Callable[[Parameters], Analyzer]] = {
    **{language: partial(_analyzer, language) for language in _CHAINS},
    "snowball": _snowball,
}
