"""Analyzers, tokenizers and filters by name: the built-in ones, those of an index, and those in a request."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from graphdb.search.analysis import token_filters
from graphdb.search.analysis.analyzer import Analyzer, Names, Normalizer
from graphdb.search.analysis.case import fold, java_lower
from graphdb.search.analysis.char_filters import CharFilter, html_strip, mapping_filter, pattern_replace
from graphdb.search.analysis.compound_filter_types import FilterScope
from graphdb.search.analysis.filter_types import FILTERS, PREDEFINED_FILTERS, stop_filter
from graphdb.search.analysis.language_analyzers import LANGUAGE_ANALYZERS
from graphdb.search.analysis.pairs import cjk_bigrams, cjk_width
from graphdb.search.analysis.parameters import JavaPattern, Parameters
from graphdb.search.analysis.stop_words import CJK, ENGLISH, stop_words
from graphdb.search.analysis.synonyms import Phrase
from graphdb.search.analysis.token import StreamFilter, TermFilter, TokenFilter, Tokenizer
from graphdb.search.analysis.tokenizer_types import PREDEFINED_TOKENIZERS, TOKENIZERS
from graphdb.search.analysis.tokenizers import (
    SpanTokenizer,
    StandardTokenizer,
    letters,
    not_whitespace,
    pattern_spans,
    whole,
)
from graphdb.search.errors import SearchError, illegal_argument
from graphdb.search.similarity import BUILT_IN as BUILT_IN_SIMILARITIES
from graphdb.search.similarity import STANDARD, AnySimilarity, similarities_of

__all__ = ["BUILT_IN", "PREFIX_LENGTH_MAX", "Analyzers", "Components", "Failure"]

# Tokenizers and filters.

_FILTERS_MAX = 100  # in one analyzer
_NAMING = ("condition", "multiplexer")  # filters that name others
_BY_PHRASES = ("synonym", "synonym_graph")  # and those that analyze phrases by what comes before them


@dataclass(frozen=True, slots=True)
class Failure:
    """How to say that a component is missing; normalizer: the name of the one that is made, if one is."""

    message: str
    normalizer: str | None = None

    def missing(self, kind: str, name: str) -> SearchError:
        return illegal_argument(self.message.format(kind=kind, name=name))


def _html_strip(parameters: Parameters) -> CharFilter:
    return html_strip(parameters.words("escaped_tags") or ())


def _mapping(parameters: Parameters) -> CharFilter:
    rules = parameters.lines("mappings")
    if rules is None:
        raise illegal_argument("mapping requires either `mappings` or `mappings_path` to be configured")
    return mapping_filter(rules)


def _pattern_replace(parameters: Parameters) -> CharFilter:
    text = parameters.required(
        "pattern", f"pattern is missing for [{parameters.name}] char filter of type 'pattern_replace'"
    )
    return pattern_replace(
        JavaPattern(text, parameters.text("flags", "")), parameters.text("replacement", "")
    )


_CHAR_FILTERS: dict[str, Callable[[Parameters], CharFilter]] = {
    "html_strip": _html_strip,
    "mapping": _mapping,
    "pattern_replace": _pattern_replace,
}


class Components:
    """Makes analyzers of components that are named, or, in a request, described in place."""

    def __init__(self, settings: Mapping[str, Any], max_ngram_diff: int, max_shingle_diff: int) -> None:
        self._settings = settings
        self._max_ngram_diff, self._max_shingle_diff = max_ngram_diff, max_shingle_diff

    def chain(
        self,
        tokenizer: Any,
        filters: Sequence[Any],
        char_filters: Sequence[Any],
        failure: Failure,
        position_gap: int,
    ) -> Analyzer:
        if len(filters) + len(char_filters) > _FILTERS_MAX:
            raise illegal_argument(f"Too many filters in one analyzer, at most [{_FILTERS_MAX}]")
        before = [self._char_filter(item, failure) for item in char_filters]
        cutter = self._tokenizer(tokenizer, failure)
        steps: list[TokenFilter] = []
        for item in filters:
            steps.append(self._filter(item, failure, cutter, steps))
        names = Names(tuple(map(_name_of, char_filters)), _name_of(tokenizer), tuple(map(_name_of, filters)))
        return Analyzer(cutter, steps, before, position_gap, names)

    def check_all(self) -> None:
        """Make each component that the settings define, whether an analyzer names it or not; but not filters
        that depend on those before them. Errors: illegal_argument_exception.
        """
        failure, cutter = Failure("failed to find {kind} under [{name}]"), SpanTokenizer(whole)
        makers: dict[str, Callable[[str], object]] = {
            "char_filter": lambda name: self._char_filter(name, failure),
            "tokenizer": lambda name: self._tokenizer(name, failure),
            "filter": lambda name: self._filter(name, failure, cutter, []),
        }
        for kind, make in makers.items():
            found = self._settings.get(kind)
            # what a group of settings is given in its place counts for nothing, as in Elasticsearch
            for name, values in found.items() if isinstance(found, Mapping) else ():
                if not isinstance(values, Mapping):
                    raise illegal_argument(f"[index.analysis.{kind}.{name}] must be an object")
                if values and values.get("type") not in (*_NAMING, *_BY_PHRASES):
                    make(name)

    def _char_filter(self, item: Any, failure: Failure) -> CharFilter:
        kind, parameters = self._definition("char_filter", item, {"html_strip"}, failure)
        if kind not in _CHAR_FILTERS:
            raise illegal_argument(f"Unknown char_filter type [{kind}] for [{parameters.name}]")
        if failure.normalizer is not None and kind == "html_strip":
            raise illegal_argument(
                f"Custom normalizer [{failure.normalizer}] may not use char filter [{parameters.name}]"
            )
        return _CHAR_FILTERS[kind](parameters)

    def _tokenizer(self, item: Any, failure: Failure) -> Tokenizer:
        kind, parameters = self._definition("tokenizer", item, PREDEFINED_TOKENIZERS, failure)
        if kind not in TOKENIZERS:
            raise illegal_argument(f"Unknown tokenizer type [{kind}] for [{parameters.name}]")
        return TOKENIZERS[kind](parameters, self._max_ngram_diff)

    def _filter(
        self, item: Any, failure: Failure, tokenizer: Tokenizer, before: Sequence[TokenFilter]
    ) -> TokenFilter:
        kind, parameters = self._definition("filter", item, PREDEFINED_FILTERS, failure)
        if kind not in FILTERS:
            raise illegal_argument(f"Unknown filter type [{kind}] for [{parameters.name}]")
        scope = FilterScope(
            _phrase(tokenizer, before),
            lambda other: self._named(other, parameters.name, failure, tokenizer, before),
            self._max_ngram_diff,
            self._max_shingle_diff,
        )
        made = FILTERS[kind](parameters, scope)
        if failure.normalizer is not None and not (isinstance(made, TermFilter) and made.normalizes):
            raise illegal_argument(
                f"Custom normalizer [{failure.normalizer}] may not use filter [{parameters.name}]"
            )
        return made

    def _named(
        self, name: str, by: str, failure: Failure, tokenizer: Tokenizer, before: Sequence[TokenFilter]
    ) -> TokenFilter:
        """A filter that another one names. One that names filters itself is refused, so that these end."""
        kind, _ = self._definition("filter", name, PREDEFINED_FILTERS, failure)
        if kind in _NAMING:
            raise illegal_argument(f"filter [{by}] may not name the {kind} [{name}]")
        return self._filter(name, failure, tokenizer, before)

    def _definition(self, kind: str, item: Any, predefined: Any, failure: Failure) -> tuple[str, Parameters]:
        """The type of a component and its parameters: item is a name, or they themselves."""
        if isinstance(item, Mapping):
            name = f"_anonymous_{kind}"
            values: Any = item
        else:
            name = str(item)
            values = _definitions(self._settings, kind).get(name)
            if values is None and name in predefined:
                return name, Parameters(name, {})
            if values is None:
                raise failure.missing(kind, name)
        if not isinstance(values, Mapping) or values.get("type") is None:
            raise illegal_argument(f"{kind} [{name}] must specify either an analyzer type, or a tokenizer")
        return str(values["type"]), Parameters(name, values)


def _name_of(item: Any) -> str:
    return f"__anonymous__{item.get('type')}" if isinstance(item, Mapping) else str(item)


def _phrase(tokenizer: Tokenizer, before: Sequence[TokenFilter]) -> Callable[[str], Phrase]:
    """How the phrases of synonyms are analyzed: by what comes before, save what makes more tokens of one."""
    analyzer = Analyzer(tokenizer, [step for step in before if not isinstance(step, StreamFilter)])
    return lambda text: tuple(analyzer.tokens(text)[0])


# Analyzers.

# The analyzers that every index has; settings may give their types other parameters.

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


def _cjk(parameters: Parameters) -> Analyzer:
    filters: list[TokenFilter] = [
        TermFilter(cjk_width, normalizes=True),
        _LOWERCASE,
        StreamFilter(cjk_bigrams(frozenset(), unigrams=False)),
        *_stop(parameters, CJK),
    ]
    return Analyzer(StandardTokenizer(), filters)


def _fingerprint(parameters: Parameters) -> Analyzer:
    join = token_filters.fingerprint(
        parameters.text("separator", " "), parameters.number("max_output_size", 255)
    )
    folding = TermFilter(fold, normalizes=True)
    return Analyzer(StandardTokenizer(), [_LOWERCASE, folding, *_stop(parameters), StreamFilter(join)])


BUILT_IN: dict[str, Callable[[Parameters], Analyzer]] = {
    "standard": _standard,
    "simple": _simple,
    "whitespace": _whitespace,
    "stop": _stop_analyzer,
    "keyword": _keyword,
    "pattern": _pattern,
    "cjk": _cjk,
    "fingerprint": _fingerprint,
    **LANGUAGE_ANALYZERS,
}


_SHINGLED = re.compile("[2-4]p?")  # what `fields.shingled` adds to a name
PREFIX_LENGTH_MAX = 20  # characters of the beginnings that `search_as_you_type` indexes


# `Analyzers`: what the settings of one index define, and what every index has.


class Analyzers:
    """Immutable. default is the name for text fields whose mappings name none. Similarities stand beside
    analyzers: fields name them in the same way.
    """

    def __init__(
        self,
        analyzers: Mapping[str, Analyzer],
        normalizers: Mapping[str, Analyzer],
        components: Components,
        similarities: Mapping[str, AnySimilarity],
    ) -> None:
        self._similarities = {**BUILT_IN_SIMILARITIES, "default": STANDARD, **similarities}
        self._analyzers = dict(analyzers)
        self._normalizers = normalizers
        self.components = components
        self.default = "default" if "default" in analyzers else "standard"

    @classmethod
    def of(
        cls,
        settings: Mapping[str, Any],
        max_ngram_diff: int = 1,
        max_shingle_diff: int = 3,
        similarity: object = MappingProxyType({}),
    ) -> "Analyzers":
        """settings is what stands under `index.analysis`, and similarity under `index.similarity`; illegal
        argument where it cannot be.
        """
        unknown = settings.keys() - {"analyzer", "normalizer", "tokenizer", "filter", "char_filter"}
        if unknown:
            raise illegal_argument(f"unknown setting [index.analysis.{min(unknown)}]")
        components = Components(settings, max_ngram_diff, max_shingle_diff)
        return cls(
            _built(settings, "analyzer", lambda name, value: _analyzer(name, value, components)),
            _built(settings, "normalizer", lambda name, value: _normalizer(name, value, components)),
            components,
            similarities_of(similarity),
        )

    def similarity(self, name: str | None) -> AnySimilarity:
        """Of a field that names it, or none. Illegal argument where there is none of that name."""
        found = self._similarities.get(name or "default")
        if found is None:
            raise illegal_argument(f"similarity [{name}] is not defined")
        return found

    def find(self, name: str) -> Analyzer | None:
        """None where there is none of that name."""
        found = self._analyzers.get(name)
        if found is None and "\x1f" in name:
            found = self._shingled(*name.split("\x1f", 1))
            if found is not None:
                self._analyzers[name] = found
        if found is None and name in BUILT_IN:
            found = self._analyzers[name] = BUILT_IN[name](Parameters(name, {}))
        if found is None and name in ("default", "default_search"):
            return self.find("default" if self.default == "default" else "standard")
        return found

    def _shingled(self, name: str, kind: str) -> Analyzer | None:
        """See `fields.shingled`."""
        base = self.find(name) if _SHINGLED.fullmatch(kind) else None
        if base is None:
            return None
        size = int(kind[0])
        if not kind.endswith("p"):
            return base.followed_by(StreamFilter(token_filters.shingles(size, size, False, False, " ", "")))
        prefixes = token_filters.gram_filter(1, PREFIX_LENGTH_MAX, edges_only=True, preserve_original=True)
        return base.followed_by(StreamFilter(token_filters.trailing_shingles(size)), StreamFilter(prefixes))

    def analyzer(self, name: str) -> Analyzer:
        """Illegal argument where there is none of that name."""
        found = self.find(name)
        if found is None:
            raise illegal_argument(f"analyzer [{name}] has not been configured in mappings")
        return found

    def find_normalizer(self, name: str) -> Analyzer | None:
        if name in self._normalizers:
            return self._normalizers[name]
        return _normalizer(name, {"filter": ["lowercase"]}, self.components) if name == "lowercase" else None

    def normalizer(self, name: str) -> Normalizer:
        """Illegal argument where there is none of that name."""
        found = self.find_normalizer(name)
        if found is None:
            raise illegal_argument(f"normalizer [{name}] not found")
        return found


def _definitions(settings: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    """By name. Errors: illegal_argument_exception."""
    found = settings.get(kind) or {}
    if not isinstance(found, Mapping):
        raise illegal_argument(f"[index.analysis.{kind}] must be an object: a definition for each name")
    return found


def _built(
    settings: Mapping[str, Any], kind: str, build: Callable[[str, Mapping[str, Any]], Analyzer]
) -> dict[str, Analyzer]:
    result = {}
    for name, value in _definitions(settings, kind).items():
        if not isinstance(value, Mapping):
            raise illegal_argument(f"{kind} [{name}] must specify either an analyzer type, or a tokenizer")
        if name.startswith("_") or "\x1f" in name:
            raise illegal_argument(f"analyzer name must not start with '_'. got \"{name}\"")
        result[name] = build(name, value)
    return result


def _analyzer(name: str, values: Mapping[str, Any], components: Components) -> Analyzer:
    parameters = Parameters(name, values)
    if "type" not in parameters and "tokenizer" not in parameters:
        raise illegal_argument(f"analyzer [{name}] must specify either an analyzer type, or a tokenizer")
    kind = parameters.text("type", "custom")
    if kind == "custom":
        return _custom(name, parameters, components)
    if kind not in BUILT_IN:
        raise illegal_argument(f"Unknown analyzer type [{kind}] for [{name}]")
    return BUILT_IN[kind](parameters)


def _custom(name: str, parameters: Parameters, components: Components) -> Analyzer:
    failure = Failure(f"Custom Analyzer [{name}] failed to find {{kind}} under name [{{name}}]")
    if "tokenizer" not in parameters:
        raise illegal_argument(f"Custom Analyzer [{name}] must be configured with a tokenizer")
    return components.chain(
        parameters.values["tokenizer"],
        _names(parameters, "filter"),
        _names(parameters, "char_filter"),
        failure,
        parameters.number("position_increment_gap", 100),
    )


def _normalizer(name: str, values: Mapping[str, Any], components: Components) -> Analyzer:
    parameters = Parameters(name, values)
    if parameters.text("type", "custom") != "custom":
        raise illegal_argument(f"Unknown normalizer type [{parameters.text('type', '')}] for [{name}]")
    if "tokenizer" in parameters:
        raise illegal_argument(f"Custom normalizer [{name}] cannot configure a tokenizer")
    failure = Failure(f"Custom normalizer [{name}] failed to find {{kind}} under name [{{name}}]", name)
    return components.chain(
        "keyword", _names(parameters, "filter"), _names(parameters, "char_filter"), failure, 0
    )


def _names(parameters: Parameters, key: str) -> Sequence[str]:
    return parameters.words(key) or []
