"""What an index knows of one field, and what a document gives it: the nouns that all of search shares."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["FieldSpec", "ParsedDocument", "Storage", "TextTokens", "UncutText"]


class Storage(Enum):
    """How a segment keeps a field's values."""

    TEXT = "text"  # postings with frequencies and positions, norms
    TERMS = "terms"  # whole values: postings and ordinals (keyword, ip, boolean is INTS)
    INTS = "ints"  # a column of 64-bit integers (long to byte, date in ms since 1970, boolean as 0 and 1)
    FLOATS = "floats"  # a column of doubles
    POINTS = "points"  # a column of (latitude, longitude)
    VECTORS = "vectors"  # one row of a matrix
    NONE = "none"  # in _source only (object, nested, enabled: false)


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """One mapped field. path is its full name, with dots; that of a multi-field ends with its own name.

    analyzer and search_analyzer are names that the index's `Analyzers` know. options are the parameters of
    its type, with their defaults: ignore_above, null_value, format, dims, similarity, scaling_factor, ...
    """

    path: str
    type: str  # as Elasticsearch names it
    storage: Storage
    indexed: bool = True  # may be searched
    doc_values: bool = True  # may be sorted and aggregated
    analyzer: str = "standard"
    search_analyzer: str = "standard"
    nested: str | None = None  # path of the innermost `nested` object that it is in
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class TextTokens:
    """The tokens of one text field of one document, all its values in turn.

    positions ascend; they skip what a stop filter has removed, and 100 between two values. length is what
    Lucene counts for the norm: tokens that do not stand on the position of the one before.
    """

    terms: list[str]
    positions: list[int]
    length: int


class UncutText(NamedTuple):
    """The one value of a text field, ASCII, whose tokens are its words in lower case, without holes.

    A segment cuts many of these at once; whoever wants the tokens before, cuts it for himself.
    """

    text: str
    cut: Callable[[str], tuple[list[str], list[int]]]  # the field's analyzer

    def tokens(self) -> TextTokens:
        terms, positions = self.cut(self.text)
        return TextTokens(terms, positions, len(positions))


@dataclass(slots=True)
class ParsedDocument:
    """What one document, or one nested object in it, gives the index, by path. Values keep their order."""

    texts: dict[str, TextTokens] = field(default_factory=dict)
    uncut: dict[str, UncutText] = field(default_factory=dict)  # other text fields than those in texts
    terms: dict[str, list[str]] = field(default_factory=dict)
    ints: dict[str, list[int]] = field(default_factory=dict)
    floats: dict[str, list[float]] = field(default_factory=dict)
    points: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    vectors: dict[str, NDArray[np.float32]] = field(default_factory=dict)
    ignored: list[str] = field(default_factory=list)  # paths with values that were left out (`_ignored`)
    children: list[tuple[str, "ParsedDocument"]] = field(default_factory=list)  # nested path, object
