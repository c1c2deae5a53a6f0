"""`Token`, and the three kinds of things that change tokens: what all of analysis speaks of."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

__all__ = ["KeywordMarker", "StreamFilter", "TermFilter", "Token", "TokenFilter", "Tokenizer"]


@dataclass(slots=True)
class Token:
    """One token. Offsets count code points of the text that was given, end open; positions begin at 0.

    position_length is how many positions it spans in a token graph. keyword: stemmers leave it alone.
    """

    term: str
    start_offset: int
    end_offset: int
    type: str = "word"
    position: int = 0
    position_length: int = 1
    keyword: bool = False


class Tokenizer(Protocol):
    """Cuts a text. consecutive: positions are always 0, 1, 2 and so on."""

    consecutive: bool

    def terms(self, text: str) -> list[str]:
        """The terms alone: the hot path."""

    def tokens(self, text: str) -> list[Token]:
        """With offsets and positions."""


@dataclass(frozen=True, slots=True)
class TermFilter:
    """A filter that looks at one term at a time, so that what it says of a term can be remembered.

    change gives None for a term that goes; it leaves a hole in the positions. stems: not asked of keywords.
    normalizes: may be used on values that are not cut into tokens, and on parts of words in queries.
    """

    change: Callable[[str], str | None]
    stems: bool = False
    normalizes: bool = False


@dataclass(frozen=True, slots=True)
class KeywordMarker:
    """Protects terms from the stemmers after it."""

    marks: Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class StreamFilter:
    """A filter that needs a token's neighbours, or makes several of one. It may change what it gets.

    shingle_size: tokens that the longest shingle joins. graph: whether it makes tokens that span several
    positions; False: it makes such, but a query takes the positions of its text for a line all the same.
    """

    change: Callable[[list[Token]], list[Token]]
    shingle_size: int = 1
    graph: bool | None = None


TokenFilter = TermFilter | KeywordMarker | StreamFilter
