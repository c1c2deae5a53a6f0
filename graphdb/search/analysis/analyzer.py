"""`Analyzer`: a text through character filters, a tokenizer and token filters."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from graphdb.search.analysis.case import java_lower
from graphdb.search.analysis.char_filters import CharFilter
from graphdb.search.analysis.plain_words import LENGTH_MAX
from graphdb.search.analysis.token import (
    KeywordMarker,
    StreamFilter,
    TermFilter,
    Token,
    TokenFilter,
    Tokenizer,
)
from graphdb.search.analysis.tokenizers import StandardTokenizer
from graphdb.search.errors import SearchError, illegal_argument

__all__ = ["MULTIPLIED_MAX", "Analyzer", "Names", "Normalizer", "applied", "too_many_tokens"]

_POSITION_GAP = 100
_REMEMBERED_MAX = 200_000  # terms of one analyzer
_REMEMBERED_LENGTH_MAX = 64
MULTIPLIED_MAX = 1_000_000
"""Tokens of one text, where several filters make more of them."""


class _TermCache(dict[str, str | None]):
    """What the filters make of a term. Most words of a text have been seen before."""

    def __init__(self, filters: Sequence[TokenFilter]) -> None:
        super().__init__()
        self._filters = filters

    def __missing__(self, term: str) -> str | None:
        result = _filtered(term, self._filters)
        if len(self) < _REMEMBERED_MAX and len(term) <= _REMEMBERED_LENGTH_MAX:
            self[term] = result
        return result


def _filtered(term: str, filters: Sequence[TokenFilter]) -> str | None:
    keyword = False
    result: str | None = term
    for step in filters:
        if result is None:
            return None
        if isinstance(step, KeywordMarker):
            keyword = keyword or step.marks(result)
        elif isinstance(step, TermFilter) and not (keyword and step.stems):
            result = step.change(result)
    return result


@dataclass(frozen=True, slots=True)
class Names:
    """Of the components of an analyzer."""

    char_filters: tuple[str, ...]
    tokenizer: str
    filters: tuple[str, ...]


class Analyzer:
    """Immutable but for what it remembers of terms. position_gap stands between two values of a field.

    is_plain: the tokens of an ASCII text are what `plain_words.cut_all` makes of it. makes_graphs: queries
    follow the paths of its tokens, which may span several positions.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        filters: Sequence[TokenFilter] = (),
        char_filters: Sequence[CharFilter] = (),
        position_gap: int = _POSITION_GAP,
        names: "Names | None" = None,
    ) -> None:
        """names: of the components, where settings or a request have put them together."""
        self.position_gap, self.names = position_gap, names
        self._tokenizer, self._filters, self._char_filters = tokenizer, filters, char_filters
        self._by_term = tokenizer.consecutive and not any(isinstance(step, StreamFilter) for step in filters)
        self._cache = _TermCache(filters)
        graphs = {step.graph for step in filters if isinstance(step, StreamFilter)}
        self.makes_graphs = True in graphs and False not in graphs
        changes = [step.change if isinstance(step, TermFilter) else None for step in filters]
        is_standard = isinstance(tokenizer, StandardTokenizer) and tokenizer.length_max == LENGTH_MAX
        self.is_plain = is_standard and not char_filters and changes == [java_lower]

    def tokens(self, text: str) -> tuple[list[str], list[int]]:
        """Terms and their positions, ascending from 0; a filter that drops a term leaves a hole."""
        if not self._by_term:
            tokens = self.detailed(text)
            return [token.term for token in tokens], [token.position for token in tokens]
        for char_filter in self._char_filters:
            text = char_filter(text).text
        cache = self._cache
        terms = [cache[term] for term in self._tokenizer.terms(text)]
        kept = [term for term in terms if term is not None]
        if len(kept) == len(terms):
            return kept, list(range(len(terms)))
        return kept, [position for position, term in enumerate(terms) if term is not None]

    def detailed(self, text: str) -> list[Token]:
        """With offsets into the text as it was given."""
        return self.with_end(text)[0]

    def with_end(self, text: str) -> tuple[list[Token], int]:
        """The tokens, and the position after the last one, those that filters dropped at the end included.

        Illegal argument where several filters together make too many tokens.
        """
        steps = []
        for char_filter in self._char_filters:
            filtered = char_filter(text)
            text = filtered.text
            steps.append(filtered.offsets)
        tokens = self._tokenizer.tokens(text)
        for offsets in reversed(steps):
            for token in tokens:
                token.start_offset, token.end_offset = offsets[token.start_offset], offsets[token.end_offset]
        dropped = 0  # positions at the end that a filter emptied
        multiplied = 0  # filters that made more tokens: a chain of them grows without end
        for step in self._filters:
            last = tokens[-1].position if tokens else -1
            count = len(tokens)
            tokens = applied(step, tokens)
            multiplied += len(tokens) > count
            if multiplied > 1 and len(tokens) > MULTIPLIED_MAX:
                raise too_many_tokens()
            if not isinstance(step, StreamFilter):
                dropped += last - (tokens[-1].position if tokens else -1)
        return tokens, (tokens[-1].position if tokens else -1) + dropped + 1

    @property
    def shingle_size(self) -> int:
        """Tokens that the longest of its shingles joins; 1 without shingles."""
        return max((step.shingle_size for step in self._filters if isinstance(step, StreamFilter)), default=1)

    def end(self, text: str) -> int:
        """See `with_end`."""
        return self.with_end(text)[1]

    def followed_by(self, *filters: TokenFilter) -> "Analyzer":
        """The same with filters after its own."""
        return Analyzer(self._tokenizer, [*self._filters, *filters], self._char_filters, self.position_gap)

    def stages(self, text: str) -> tuple[list[str], list[list[Token]]]:
        """The text after each character filter; the tokens of the tokenizer, and after each token filter."""
        texts, whole = [], text
        for char_filter in self._char_filters:
            whole = char_filter(whole).text
            texts.append(whole)
        parts = (self._filters[:count] for count in range(len(self._filters) + 1))
        return texts, [Analyzer(self._tokenizer, part, self._char_filters).detailed(text) for part in parts]

    def normalize(self, text: str) -> str:
        """A part of a word, as in a wildcard: what of the analysis does not depend on the whole word."""
        for char_filter in self._char_filters:
            text = char_filter(text).text
        normalizing = [step for step in self._filters if isinstance(step, TermFilter) and step.normalizes]
        return _filtered(text, normalizing) or ""


def too_many_tokens() -> SearchError:
    """More than MULTIPLIED_MAX."""
    return illegal_argument(f"The token filters make more than [{MULTIPLIED_MAX}] tokens of one text")


def applied(step: TokenFilter, tokens: list[Token]) -> list[Token]:
    """What a filter makes of tokens, which it may change."""
    if isinstance(step, StreamFilter):
        return step.change(tokens)
    if isinstance(step, KeywordMarker):
        return [replace(token, keyword=token.keyword or step.marks(token.term)) for token in tokens]
    result = []
    for token in tokens:
        term = token.term if step.stems and token.keyword else step.change(token.term)
        if term is not None:
            token.term = term
            result.append(token)
    return result


class Normalizer(Protocol):
    def normalize(self, text: str) -> str:
        """The one term that a value is."""
