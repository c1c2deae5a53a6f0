"""Token filters that need several tokens or make several of one, and their parameters: those that name other
filters, compound words, bigrams.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

from graphdb.search.analysis import token_filters
from graphdb.search.analysis.case import java_lower
from graphdb.search.analysis.char_filters import unescaped
from graphdb.search.analysis.min_hash import MinHash
from graphdb.search.analysis.pairs import cjk_bigrams, common_grams
from graphdb.search.analysis.parameters import Parameters
from graphdb.search.analysis.synonyms import Phrase
from graphdb.search.analysis.token import StreamFilter, TokenFilter
from graphdb.search.analysis.token_scripts import conditional, predicate_of, tokens_that
from graphdb.search.analysis.word_delimiter import WORD_KINDS, DelimiterOptions, word_parts
from graphdb.search.errors import illegal_argument

__all__ = ["COMPOUND_FILTERS", "FilterScope"]

_MULTIPLEXED_MAX = 100  # filters that one names
_SUBWORD_MAX = 1024  # characters
_HASHES_MAX = 100_000  # of one text


@dataclass(frozen=True, slots=True)
class FilterScope:
    """What a filter may need beside its parameters. phrase: a text through what stands before this filter.
    named: another filter; illegal argument where there is none of the name, or one that names others.
    """

    phrase: Callable[[str], Phrase]
    named: Callable[[str], TokenFilter]
    max_ngram_diff: int
    max_shingle_diff: int


def _condition(parameters: Parameters, scope: FilterScope) -> TokenFilter:
    names = parameters.words("filter")
    if not names:
        raise illegal_argument(f"[condition] filter [{parameters.name}] requires [filter] to be configured")
    if len(names) > _MULTIPLEXED_MAX:
        raise illegal_argument(f"condition [{parameters.name}] names more than [{_MULTIPLEXED_MAX}] filters")
    steps = [scope.named(name) for name in names]
    change = conditional(steps, predicate_of(parameters.values.get("script")))
    return StreamFilter(change, graph=_graph_of(steps))


def _predicate(parameters: Parameters, scope: FilterScope) -> TokenFilter:
    return StreamFilter(tokens_that(predicate_of(parameters.values.get("script"))))


def _min_hash(parameters: Parameters, scope: FilterScope) -> TokenFilter:
    hashes = parameters.number("hash_count", 1, 1)
    buckets = parameters.number("bucket_count", 512, 1)
    size = parameters.number("hash_set_size", 1, 1)
    if hashes * buckets * size > _HASHES_MAX:
        raise illegal_argument(f"min_hash [{parameters.name}] makes more than [{_HASHES_MAX}] tokens")
    return StreamFilter(MinHash(hashes, buckets, size, parameters.flag("with_rotation", buckets > 1)))


def _graph_of(steps: Iterable[TokenFilter]) -> bool | None:
    """See `StreamFilter`, of several filters."""
    graphs = {step.graph for step in steps if isinstance(step, StreamFilter)}
    return False if False in graphs else True in graphs or None


def _multiplexer(parameters: Parameters, scope: FilterScope) -> TokenFilter:
    chains = [[name.strip() for name in chain.split(",")] for chain in parameters.lines("filters") or ()]
    if sum(map(len, chains)) > _MULTIPLEXED_MAX:
        raise illegal_argument(
            f"multiplexer [{parameters.name}] names more than [{_MULTIPLEXED_MAX}] filters"
        )
    made = [[scope.named(name) for name in chain if name] for chain in chains]
    multiply = token_filters.multiplexer(made, parameters.flag("preserve_original", True))
    return StreamFilter(multiply, graph=_graph_of(chain.from_iterable(made)))


def _common_grams(parameters: Parameters, scope: FilterScope) -> TokenFilter:
    words = parameters.words("common_words")
    if not words:
        raise illegal_argument(
            "missing or empty [common_words] or [common_words_path] configuration for common_grams token "
            "filter"
        )
    ignores_case = parameters.flag("ignore_case", False)
    common = frozenset(map(java_lower, words) if ignores_case else words)

    def is_common(term: str) -> bool:
        return (java_lower(term) if ignores_case else term) in common

    query_mode = parameters.flag("query_mode", False)
    return StreamFilter(common_grams(is_common, query_mode), graph=None if query_mode else True)


_CJK_SCRIPTS = ("han", "hiragana", "katakana", "hangul")


def _cjk_bigram(parameters: Parameters, scope: FilterScope) -> TokenFilter:
    ignored = frozenset(parameters.words("ignored_scripts") or ())
    unknown = sorted(ignored.difference(_CJK_SCRIPTS))
    if unknown:
        raise illegal_argument(
            f"Unknown script [{unknown[0][:100]}]: one of {list(_CJK_SCRIPTS)} is expected"
        )
    unigrams = parameters.flag("output_unigrams", False)
    return StreamFilter(cjk_bigrams(ignored, unigrams), graph=False if unigrams else None)


def _dictionary_decompounder(parameters: Parameters, scope: FilterScope) -> TokenFilter:
    words = parameters.words("word_list")
    if words is None:
        raise illegal_argument(
            f"word_list must be provided for [{parameters.name}], either as a path to a file, or directly"
        )
    return StreamFilter(
        token_filters.parts_in(
            frozenset(words),
            parameters.number("min_word_size", 5),
            parameters.number("min_subword_size", 2),
            parameters.number("max_subword_size", 15, 1, _SUBWORD_MAX),
            parameters.flag("only_longest_match", False),
        )
    )


def _hyphenation_decompounder(parameters: Parameters, scope: FilterScope) -> TokenFilter:
    raise illegal_argument(
        "the filter [hyphenation_decompounder] is not supported, as files of patterns cannot be installed: "
        "use [dictionary_decompounder]"
    )


def _word_delimiter(parameters: Parameters, scope: FilterScope, graph: bool = False) -> TokenFilter:
    options = DelimiterOptions(
        parameters.flag("generate_word_parts", True),
        parameters.flag("generate_number_parts", True),
        parameters.flag("catenate_words", False),
        parameters.flag("catenate_numbers", False),
        parameters.flag("catenate_all", False),
        parameters.flag("split_on_case_change", True),
        parameters.flag("split_on_numerics", True),
        parameters.flag("preserve_original", False),
        parameters.flag("stem_english_possessive", True),
        parameters.flag("adjust_offsets", True),
        parameters.flag("ignore_keywords", False),
        frozenset(parameters.words("protected_words") or ()),
        _type_table(parameters.lines("type_table") or []),
    )
    return StreamFilter(word_parts(options, graph), graph=graph or None)


def _word_delimiter_graph(parameters: Parameters, scope: FilterScope) -> TokenFilter:
    return _word_delimiter(parameters, scope, graph=True)


def _type_table(rules: Sequence[str]) -> dict[str, int] | None:
    """Of rules such as `$ => DIGIT` and `\\u002C => DIGIT`."""
    table = {}
    for rule in rules:
        char, arrow, kind = rule.partition("=>")
        char = unescaped(char.strip())
        if not arrow or len(char) != 1 or kind.strip() not in WORD_KINDS:
            raise illegal_argument(f"Invalid Mapping Rule : [{rule[:100]}]. Illegal mapping.")
        table[char] = WORD_KINDS[kind.strip()]
    return table or None


COMPOUND_FILTERS: dict[str, Callable[[Parameters, FilterScope], TokenFilter]] = {
    "cjk_bigram": _cjk_bigram,
    "common_grams": _common_grams,
    "condition": _condition,
    "dictionary_decompounder": _dictionary_decompounder,
    "hyphenation_decompounder": _hyphenation_decompounder,
    "min_hash": _min_hash,
    "multiplexer": _multiplexer,
    "predicate_token_filter": _predicate,
    "word_delimiter": _word_delimiter,
    "word_delimiter_graph": _word_delimiter_graph,
}
