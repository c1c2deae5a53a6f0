"""Tokenizers and filters by name: an index's own, those that every index has, those in a request."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphdb.search.analysis.analyzer import Analyzer
from graphdb.search.analysis.char_filters import CharFilter, html_strip, mapping_filter, pattern_replace
from graphdb.search.analysis.filter_types import FILTERS, PREDEFINED_FILTERS, FilterScope
from graphdb.search.analysis.parameters import Parameters
from graphdb.search.analysis.regular_expressions import JavaPattern
from graphdb.search.analysis.synonyms import Phrase
from graphdb.search.analysis.token import StreamFilter, TermFilter, TokenFilter, Tokenizer
from graphdb.search.analysis.tokenizer_types import PREDEFINED_TOKENIZERS, TOKENIZERS
from graphdb.search.errors import SearchError, illegal_argument

__all__ = ["Components", "Failure"]

_FILTERS_MAX = 100  # in one analyzer


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
        return Analyzer(cutter, steps, before, position_gap)

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
        scope = FilterScope(_phrase(tokenizer, before), self._max_ngram_diff, self._max_shingle_diff)
        made = FILTERS[kind](parameters, scope)
        if failure.normalizer is not None and not (isinstance(made, TermFilter) and made.normalizes):
            raise illegal_argument(
                f"Custom normalizer [{failure.normalizer}] may not use filter [{parameters.name}]"
            )
        return made

    def _definition(self, kind: str, item: Any, predefined: Any, failure: Failure) -> tuple[str, Parameters]:
        """The type of a component and its parameters: item is a name, or they themselves."""
        if isinstance(item, Mapping):
            name = f"_anonymous_{kind}"
            values: Any = item
        else:
            name = str(item)
            values = (self._settings.get(kind) or {}).get(name)
            if values is None and name in predefined:
                return name, Parameters(name, {})
            if values is None:
                raise failure.missing(kind, name)
        if not isinstance(values, Mapping) or values.get("type") is None:
            raise illegal_argument(f"{kind} [{name}] must specify either an analyzer type, or a tokenizer")
        return str(values["type"]), Parameters(name, values)


def _phrase(tokenizer: Tokenizer, before: Sequence[TokenFilter]) -> Callable[[str], Phrase]:
    """How the phrases of synonyms are analyzed: by what comes before, save what makes more tokens of one."""
    analyzer = Analyzer(tokenizer, [step for step in before if not isinstance(step, StreamFilter)])
    return lambda text: tuple(analyzer.tokens(text)[0])
