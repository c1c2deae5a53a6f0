"""Analyzers: the built-in ones, and those that an index defines."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from graphdb.search.analysis import token_filters
from graphdb.search.analysis.analyzer import Analyzer, Normalizer
from graphdb.search.analysis.case import fold, java_lower
from graphdb.search.analysis.components import Components, Failure
from graphdb.search.analysis.filter_types import stop_filter
from graphdb.search.analysis.parameters import Parameters
from graphdb.search.analysis.regular_expressions import JavaPattern
from graphdb.search.analysis.token import KeywordMarker, StreamFilter, TermFilter, TokenFilter
from graphdb.search.analysis.token_filters import ENGLISH, porter, possessive, stop_words
from graphdb.search.analysis.tokenizers import (
    SpanTokenizer,
    StandardTokenizer,
    letters,
    not_whitespace,
    pattern_spans,
    whole,
)
from graphdb.search.errors import illegal_argument

__all__ = ["BUILT_IN", "Analyzers"]

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
    "english": _english,
    "fingerprint": _fingerprint,
}


# `Analyzers`: what the settings of one index define, and what every index has.


class Analyzers:
    """Immutable. default is the name for text fields whose mappings name none."""

    def __init__(
        self, analyzers: Mapping[str, Analyzer], normalizers: Mapping[str, Analyzer], components: Components
    ) -> None:
        self._analyzers = dict(analyzers)
        self._normalizers = normalizers
        self.components = components
        self.default = "default" if "default" in analyzers else "standard"

    @classmethod
    def of(
        cls, settings: Mapping[str, Any], max_ngram_diff: int = 1, max_shingle_diff: int = 3
    ) -> "Analyzers":
        """settings is what stands under `index.analysis`; illegal argument where it cannot be."""
        unknown = settings.keys() - {"analyzer", "normalizer", "tokenizer", "filter", "char_filter"}
        if unknown:
            raise illegal_argument(f"unknown setting [index.analysis.{min(unknown)}]")
        components = Components(settings, max_ngram_diff, max_shingle_diff)
        return cls(
            _built(settings, "analyzer", lambda name, value: _analyzer(name, value, components)),
            _built(settings, "normalizer", lambda name, value: _normalizer(name, value, components)),
            components,
        )

    def find(self, name: str) -> Analyzer | None:
        """None where there is none of that name."""
        found = self._analyzers.get(name)
        if found is None and name in BUILT_IN:
            found = self._analyzers[name] = BUILT_IN[name](Parameters(name, {}))
        if found is None and name in ("default", "default_search"):
            return self.find("default" if self.default == "default" else "standard")
        return found

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


def _built(
    settings: Mapping[str, Any], kind: str, build: Callable[[str, Mapping[str, Any]], Analyzer]
) -> dict[str, Analyzer]:
    definitions = settings.get(kind) or {}
    result = {}
    for name, value in definitions.items():
        if not isinstance(value, Mapping):
            raise illegal_argument(f"{kind} [{name}] must specify either an analyzer type, or a tokenizer")
        if name.startswith("_"):
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
