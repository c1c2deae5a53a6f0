"""The token filters that settings can name, and their parameters."""

import re
from collections.abc import Callable
from dataclasses import replace

from graphdb.search.analysis import token_filters
from graphdb.search.analysis.case import LOWER_CASES, decimal_digits, fold, java_lower, java_upper
from graphdb.search.analysis.compound_filter_types import COMPOUND_FILTERS, FilterScope
from graphdb.search.analysis.elision import ARTICLES, before_apostrophe, elision
from graphdb.search.analysis.normalization import NORMALIZATIONS
from graphdb.search.analysis.pairs import cjk_width
from graphdb.search.analysis.parameters import JavaPattern, Parameters, java_replacement
from graphdb.search.analysis.stemmers import porter, snowball, stemmer
from graphdb.search.analysis.stop_words import ENGLISH, stop_words
from graphdb.search.analysis.synonyms import flat_synonyms, graph_synonyms, synonym_map
from graphdb.search.analysis.token import KeywordMarker, StreamFilter, TermFilter, Token, TokenFilter
from graphdb.search.analysis.token_graph import flattened
from graphdb.search.analysis.tokenizer_types import check_gram_sizes, gram_sizes
from graphdb.search.errors import illegal_argument

__all__ = ["FILTERS", "PREDEFINED_FILTERS", "stop_filter"]


_SHINGLE_MAX = 100  # tokens


def _lowercase(parameters: Parameters, scope: FilterScope) -> TokenFilter:
    language = parameters.text("language", "")
    if language not in LOWER_CASES:
        raise illegal_argument(f"language [{language[:100]}] not support for lower case")
    return TermFilter(LOWER_CASES[language], normalizes=True)


def _uppercase(parameters: Parameters, scope: FilterScope) -> TokenFilter:
    return TermFilter(java_upper, normalizes=True)


def _asciifolding(parameters: Parameters, scope: FilterScope) -> TokenFilter:
    if not parameters.flag("preserve_original", False):
        return TermFilter(fold, normalizes=True)

    def both(token: Token) -> list[Token]:
        folded = fold(token.term)
        return [token] if folded == token.term else [replace(token, term=folded), token]

    return StreamFilter(lambda tokens: [form for token in tokens for form in both(token)])


def _stop(parameters: Parameters, scope: FilterScope) -> TokenFilter:
    words = stop_words(parameters.words("stopwords"), ENGLISH)
    return stop_filter(words, parameters.flag("ignore_case", False))


def stop_filter(words: frozenset[str], ignore_case: bool = False) -> TermFilter:
    if not ignore_case:
        return TermFilter(lambda term: None if term in words else term)
    lowered = frozenset(map(java_lower, words))
    return TermFilter(lambda term: None if java_lower(term) in lowered else term)


def _stemmer(parameters: Parameters, scope: FilterScope) -> TokenFilter:
    language = parameters.text("language", parameters.text("name", "porter"))
    return TermFilter(stemmer(language), stems="possessive" not in language)


def _kstem(parameters: Parameters, scope: FilterScope) -> TokenFilter:
    return TermFilter(stemmer("kstem"), stems=True)


def _hunspell(parameters: Parameters, scope: FilterScope) -> TokenFilter:
    raise illegal_argument(
        "the filter [hunspell] is not supported, as dictionaries cannot be installed: use [stemmer]"
    )


def _language_stem(language: str) -> Callable[[Parameters, FilterScope], TokenFilter]:
    return lambda parameters, scope: TermFilter(stemmer(language), stems=True)


def _snowball(parameters: Parameters, scope: FilterScope) -> TokenFilter:
    return TermFilter(snowball(parameters.text("language", "English")), stems=True)


def _porter_stem(parameters: Parameters, scope: FilterScope) -> TokenFilter:
    return TermFilter(porter, stems=True)


def _keyword_marker(parameters: Parameters, scope: FilterScope) -> TokenFilter:
    if "keywords_pattern" in parameters:
        return KeywordMarker(JavaPattern(parameters.text("keywords_pattern", "")).matches)
    words = parameters.words("keywords")
    if words is None:
        raise illegal_argument(
            "keyword requires either `keywords`, `keywords_path` or `keywords_pattern` to be configured"
        )
    if parameters.flag("ignore_case", False):
        lowered = frozenset(map(java_lower, words))
        return KeywordMarker(lambda term: java_lower(term) in lowered)
    return KeywordMarker(frozenset(words).__contains__)


def _keyword_repeat(parameters: Parameters, scope: FilterScope) -> TokenFilter:
    return StreamFilter(
        lambda tokens: [form for token in tokens for form in (replace(token, keyword=True), token)]
    )


def _ngram(parameters: Parameters, scope: FilterScope) -> TokenFilter:
    low, high = gram_sizes(parameters, 2)
    check_gram_sizes(low, high, scope.max_ngram_diff, "Token Filter")
    return StreamFilter(
        token_filters.gram_filter(low, high, False, parameters.flag("preserve_original", False))
    )


def _edge_ngram(parameters: Parameters, scope: FilterScope) -> TokenFilter:
    low, high = gram_sizes(parameters, 2 if parameters.values else 1)
    check_gram_sizes(low, high, None, "Token Filter")
    side = parameters.text("side", "front")
    if side not in ("front", "back"):
        raise illegal_argument(f"invalid side: {side}")
    cut = token_filters.gram_filter(low, high, True, parameters.flag("preserve_original", False))
    return StreamFilter(cut if side == "front" else lambda tokens: _turned(cut(_turned(tokens))))


def _turned(tokens: list[Token]) -> list[Token]:
    return [replace(token, term=token.term[::-1]) for token in tokens]


def _shingle(parameters: Parameters, scope: FilterScope) -> TokenFilter:
    low = parameters.number("min_shingle_size", 2, 2, _SHINGLE_MAX)
    high = parameters.number("max_shingle_size", 2, 2, _SHINGLE_MAX)
    unigrams = parameters.flag("output_unigrams", True)
    if low > high:
        raise illegal_argument("Max shingle size must be >= min shingle size")
    diff = high - low + unigrams
    if diff > scope.max_shingle_diff:
        raise illegal_argument(
            "In Shingle TokenFilter the difference between max_shingle_size and min_shingle_size (and +1 "
            f"if outputting unigrams) must be less than or equal to: [{scope.max_shingle_diff}] but was "
            f"[{diff}]. This limit can be set by changing the [index.max_shingle_diff] index level setting."
        )
    return StreamFilter(
        token_filters.shingles(
            low,
            high,
            unigrams,
            parameters.flag("output_unigrams_if_no_shingles", False),
            parameters.text("token_separator", " "),
            parameters.text("filler_token", "_"),
        ),
        high,
        graph=False if unigrams or low < high else None,
    )


def _synonym(parameters: Parameters, scope: FilterScope, graph: bool = False) -> TokenFilter:
    if parameters.text("format", "solr") != "solr":
        raise illegal_argument(f"synonyms in format [{parameters.text('format', '')}] are not supported")
    rules = parameters.lines("synonyms")  # those of a set as well, see `catalog/synonym_sets.py`
    if rules is None and "synonyms_set" in parameters:
        name = parameters.text("synonyms_set", "")
        raise illegal_argument(f"synonyms set [{name[:200]}] is only for filters that an index defines")
    if rules is None:
        raise illegal_argument("synonym requires either `synonyms` or `synonyms_path` to be configured")
    synonyms = synonym_map(
        rules, scope.phrase, parameters.flag("expand", True), parameters.flag("lenient", False)
    )
    return StreamFilter(graph_synonyms(synonyms) if graph else flat_synonyms(synonyms), graph=True)


def _synonym_graph(parameters: Parameters, scope: FilterScope) -> TokenFilter:
    return _synonym(parameters, scope, graph=True)


def _unique(parameters: Parameters, scope: FilterScope) -> TokenFilter:
    return StreamFilter(token_filters.unique(parameters.flag("only_on_same_position", False)))


def _remove_duplicates(parameters: Parameters, scope: FilterScope) -> TokenFilter:
    return StreamFilter(token_filters.unique(only_on_same_position=True))


def _limit(parameters: Parameters, scope: FilterScope) -> TokenFilter:
    return StreamFilter(token_filters.limit(parameters.number("max_token_count", 1)))


def _fingerprint(parameters: Parameters, scope: FilterScope) -> TokenFilter:
    return StreamFilter(
        token_filters.fingerprint(
            parameters.text("separator", " "), parameters.number("max_output_size", 255)
        )
    )


def _trim(parameters: Parameters, scope: FilterScope) -> TokenFilter:
    return TermFilter(lambda term: term.strip(), normalizes=True)


def _truncate(parameters: Parameters, scope: FilterScope) -> TokenFilter:
    length = parameters.number("length", 10, 1)
    return TermFilter(lambda term: term[:length])


def _length(parameters: Parameters, scope: FilterScope) -> TokenFilter:
    low = parameters.number("min", 0)
    high = parameters.number("max", 1_000_000) if "max" in parameters else None
    return TermFilter(lambda term: term if low <= len(term) and (high is None or len(term) <= high) else None)


def _reverse(parameters: Parameters, scope: FilterScope) -> TokenFilter:
    return TermFilter(lambda term: term[::-1])


def _elision(parameters: Parameters, scope: FilterScope) -> TokenFilter:
    given = parameters.words("articles")
    if given is None and parameters.values:
        raise illegal_argument("elision filter requires [articles] or [articles_path] setting")
    ignore_case = given is None or parameters.flag("articles_case", False)
    return TermFilter(elision(given or ARTICLES["french"], ignore_case), normalizes=True)


def _apostrophe(parameters: Parameters, scope: FilterScope) -> TokenFilter:
    return TermFilter(before_apostrophe)


def _pattern_replace(parameters: Parameters, scope: FilterScope) -> TokenFilter:
    text = parameters.required(
        "pattern", "pattern is missing for [pattern_replace] token filter of type 'pattern_replace'"
    )
    pattern = JavaPattern(text, parameters.text("flags", ""))
    replacement = java_replacement(parameters.text("replacement", ""), pattern)
    every = parameters.flag("all", True)
    return TermFilter(lambda term: pattern.replace(term, replacement, every), normalizes=True)


def _decimal_digit(parameters: Parameters, scope: FilterScope) -> TokenFilter:
    return TermFilter(decimal_digits, normalizes=True)


def _keep(parameters: Parameters, scope: FilterScope) -> TokenFilter:
    words = parameters.words("keep_words")
    if words is None:
        raise illegal_argument("keep requires either `keep_words` or `keep_words_path` to be configured")
    if parameters.flag("keep_words_case", False):
        lowered = frozenset(map(java_lower, words))
        return TermFilter(lambda term: term if java_lower(term) in lowered else None)
    kept = frozenset(words)
    return TermFilter(lambda term: term if term in kept else None)


def _keep_types(parameters: Parameters, scope: FilterScope) -> TokenFilter:
    types, mode = parameters.words("types"), parameters.text("mode", "include")
    if not types:
        raise illegal_argument("keep_types requires `types` to be configured")
    if mode not in ("include", "exclude"):
        raise illegal_argument(
            f"`keep_types` tokenfilter mode can only be [include] or [exclude] but was [{mode}]."
        )
    named = frozenset(types)
    return StreamFilter(
        lambda tokens: [token for token in tokens if (token.type in named) == (mode == "include")]
    )


def _stemmer_override(parameters: Parameters, scope: FilterScope) -> TokenFilter:
    rules = parameters.lines("rules")
    if rules is None:
        raise illegal_argument(
            "stemmer override filter requires either `rules` or `rules_path` to be configured"
        )
    stems: dict[str, str] = {}
    for rule in rules:
        words, arrow, stem = rule.partition("=>")
        keys = [word.strip() for word in words.split(",")]
        if not arrow or not stem.strip() or not all(keys) or "," in stem:
            raise illegal_argument(f"Invalid Keyword override Rule:{rule[:100]}")
        stems |= dict.fromkeys(keys, stem.strip())

    def override(token: Token) -> Token:
        stem = None if token.keyword else stems.get(token.term)
        return token if stem is None else replace(token, term=stem, keyword=True)

    return StreamFilter(lambda tokens: list(map(override, tokens)))


_CAPTURED_MAX = 1_000  # tokens of one


def _pattern_capture(parameters: Parameters, scope: FilterScope) -> TokenFilter:
    texts = parameters.lines("patterns")
    if not texts:
        raise illegal_argument("required setting 'patterns' is missing for token filter [pattern_capture]")
    patterns = [JavaPattern(text) for text in texts]
    original = parameters.flag("preserve_original", True)

    def captured(token: Token) -> list[Token]:
        spans = {
            found.span(group)
            for pattern in patterns
            for found in pattern.finditer(token.term)
            for group in range(1, pattern.groups + 1)
            if found.start(group) < found.end(group)
        }
        if not spans:
            return [token]
        if original:
            spans.discard((0, len(token.term)))
        terms = [token.term[start:end] for start, end in sorted(spans)[:_CAPTURED_MAX]]
        return [*([token] if original else []), *(replace(token, term=term) for term in terms)]

    return StreamFilter(lambda tokens: [form for token in tokens for form in captured(token)])


def _cjk_width(parameters: Parameters, scope: FilterScope) -> TokenFilter:
    return TermFilter(cjk_width, normalizes=True)


def _delimited_payload(parameters: Parameters, scope: FilterScope) -> TokenFilter:
    """There are no payloads here, so that they are only cut off."""
    delimiter, encoding = parameters.text("delimiter", "|"), parameters.text("encoding", "float")
    if len(delimiter) != 1:
        raise illegal_argument("delimiter must be a one char value")
    if encoding not in ("float", "int", "identity"):
        raise illegal_argument(f"invalid payload encoding [{encoding[:100]}]")
    return TermFilter(lambda term: term.partition(delimiter)[0])


def _flatten_graph(parameters: Parameters, scope: FilterScope) -> TokenFilter:
    return StreamFilter(flattened)


def _classic(parameters: Parameters, scope: FilterScope) -> TokenFilter:
    """Without possessives, and acronyms without their dots."""

    def classic(term: str) -> str:
        if term.endswith(("'s", "'S")):
            return term[:-2]
        return term.replace(".", "") if _ACRONYM.fullmatch(term) else term

    return TermFilter(classic)


_ACRONYM = re.compile(r"(?:[^\W\d_]\.){2,}")


def _normalization(change: Callable[[str], str]) -> Callable[[Parameters, FilterScope], TokenFilter]:
    return lambda parameters, scope: TermFilter(change, normalizes=True)


_STEM_FILTERS = ("arabic", "brazilian", "czech", "dutch", "french", "german", "russian")
FILTERS: dict[str, Callable[[Parameters, FilterScope], TokenFilter]] = {
    **COMPOUND_FILTERS,
    **{name: _normalization(change) for name, change in NORMALIZATIONS.items()},
    **{f"{language}_stem": _language_stem(language) for language in _STEM_FILTERS},
    "apostrophe": _apostrophe,
    "asciifolding": _asciifolding,
    "cjk_width": _cjk_width,
    "classic": _classic,
    "decimal_digit": _decimal_digit,
    "delimited_payload": _delimited_payload,
    "edge_ngram": _edge_ngram,
    "elision": _elision,
    "fingerprint": _fingerprint,
    "flatten_graph": _flatten_graph,
    "hunspell": _hunspell,
    "keep": _keep,
    "keep_types": _keep_types,
    "keyword_marker": _keyword_marker,
    "keyword_repeat": _keyword_repeat,
    "kstem": _kstem,
    "length": _length,
    "limit": _limit,
    "lowercase": _lowercase,
    "ngram": _ngram,
    "pattern_capture": _pattern_capture,
    "pattern_replace": _pattern_replace,
    "porter_stem": _porter_stem,
    "remove_duplicates": _remove_duplicates,
    "reverse": _reverse,
    "shingle": _shingle,
    "snowball": _snowball,
    "stemmer": _stemmer,
    "stemmer_override": _stemmer_override,
    "stop": _stop,
    "synonym": _synonym,
    "synonym_graph": _synonym_graph,
    "trim": _trim,
    "truncate": _truncate,
    "unique": _unique,
    "uppercase": _uppercase,
}
_CONFIGURED = """common_grams condition dictionary_decompounder hunspell hyphenation_decompounder keep
    keep_types keyword_marker multiplexer pattern_capture pattern_replace predicate_token_filter
    stemmer_override synonym synonym_graph"""  # there are none without parameters
PREDEFINED_FILTERS = FILTERS.keys() - set(_CONFIGURED.split())
