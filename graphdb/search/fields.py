"""What an index knows of one field, and what a document gives it: the nouns that all of search shares."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "DOC_COUNT",
    "NO_VALUES",
    "Column",
    "FieldSpec",
    "ParsedDocument",
    "Storage",
    "TextTokens",
    "shingled",
]


DOC_COUNT = "_doc_count"
"""A member of documents: for how many others one stands, in the counts of aggregations. A column of integers
under this path holds it; no mapping has it.
"""


class Storage(Enum):
    """How a segment keeps a field's values."""

    TEXT = "text"  # postings with frequencies and positions, norms
    TERMS = "terms"  # whole values: postings and ordinals (keyword, ip, boolean is INTS)
    CODES = "codes"  # as TERMS, but the terms are codes that only the type's own queries read (ranges)
    INTS = "ints"  # a column of 64-bit integers (long to byte, dates in ms since 1970, boolean as 0 and 1)
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
    doc_values: bool = True  # may be sorted and aggregated: of a text its tokens, by `fielddata`
    analyzer: str = "standard"
    search_analyzer: str = "standard"
    nested: str | None = None  # path of the innermost `nested` object that it is in
    options: Mapping[str, Any] = field(default_factory=dict)
    multi_of: str | None = None  # of a multi-field the path of the field that it belongs to
    copied_from: tuple[str, ...] = ()  # the paths of the fields that are copied to it, by `copy_to`

    @property
    def value_path(self) -> str:
        """Where a document has its own values: a multi-field has those of the field that it belongs to."""
        return self.multi_of or self.path

    @property
    def value_paths(self) -> tuple[str, ...]:
        """Where a document has all of its values, its own first."""
        return (self.value_path, *self.copied_from)


def shingled(analyzer: str, size: int, prefixes: bool = False) -> str:
    """The name of the analyzer that joins each `size` tokens of another one, for `search_as_you_type`; with
    prefixes it gives the beginnings of those, and of the shorter ones at the end.
    """
    return f"{analyzer}\x1f{size}{'p' if prefixes else ''}"


@dataclass(slots=True)
class TextTokens:
    """The tokens of one text field of one document, all its values in turn.

    positions ascend; they skip what a stop filter has removed, and 100 between two values. length is what
    Lucene counts for the norm: tokens that do not stand on the position of the one before.
    """

    terms: list[str]
    positions: list[int]
    length: int


class Column(NamedTuple):
    """What documents that were read together have of one field; storage is a member of ParsedDocument.

    docs: their places among those documents, ascending. values: in turn, of vectors (n, dims) float32.
    counts: how many each has, at least one; None: one each.
    """

    storage: str
    path: str
    docs: Sequence[int]
    values: Any
    counts: Sequence[int] | None = None


NO_VALUES = cast("dict[str, Any]", MappingProxyType({}))
"""What a document has in a column that it has nothing for: most have values in one or two. Nothing can be put
in, see `ParsedDocument.column`.
"""


@dataclass(slots=True, init=False)
class ParsedDocument:
    """What one document, or one nested object in it, gives the index, by path. Values keep their order.

    exact holds what `ints` has only nearly: date_nanos in nanoseconds since 1970, unsigned_long less 2^63. Of
    a binary field it says that a value exists.

    uncut are the values of text fields, other ones than those in texts, that are one ASCII text whose tokens
    are its words in lower case (`Analyzer.is_plain`): a segment cuts many of these at once.
    """

    texts: dict[str, TextTokens]
    uncut: dict[str, str]
    terms: dict[str, list[str]]
    ints: dict[str, list[int]]
    exact: dict[str, list[int]]
    floats: dict[str, list[float]]
    points: dict[str, list[tuple[float, float]]]
    vectors: dict[str, NDArray[np.float32]]
    ignored: list[str]  # paths with values that were left out (`_ignored`)
    children: list[tuple[str, "ParsedDocument"]]  # nested path, object

    def __init__(
        self,
        texts: dict[str, TextTokens] = NO_VALUES,
        uncut: dict[str, str] = NO_VALUES,
        terms: dict[str, list[str]] = NO_VALUES,
        ints: dict[str, list[int]] = NO_VALUES,
        floats: dict[str, list[float]] = NO_VALUES,
        points: dict[str, list[tuple[float, float]]] = NO_VALUES,
        vectors: dict[str, NDArray[np.float32]] = NO_VALUES,
        ignored: list[str] | None = None,
        children: "list[tuple[str, ParsedDocument]] | None" = None,
        exact: dict[str, list[int]] = NO_VALUES,
    ) -> None:
        self.texts, self.uncut, self.terms = texts, uncut, terms
        self.ints, self.exact, self.floats = ints, exact, floats
        self.points, self.vectors = points, vectors
        self.ignored = [] if ignored is None else ignored
        self.children = [] if children is None else children

    def column(self, name: str) -> dict[str, Any]:
        """One of the columns, to put values into."""
        values = getattr(self, name)
        if values is NO_VALUES:
            values = {}
            setattr(self, name, values)
        return cast("dict[str, Any]", values)
