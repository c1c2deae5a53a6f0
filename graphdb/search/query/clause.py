"""What all query clauses share: the context of parsing, parameters, minimum_should_match."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from typing import Any, NoReturn

import numpy as np

from graphdb.search.analysis import Analyzers
from graphdb.search.errors import SearchError, illegal_request, parsing
from graphdb.search.mapping.lookup import FieldLookup
from graphdb.search.query.slots import Slot
from graphdb.search.query.tree import Query

__all__ = [
    "Clause",
    "ClauseParser",
    "Parse",
    "QueryContext",
    "ResultLimits",
    "TermsLookup",
    "field_clause",
    "malformed",
    "minimum_should_match",
    "number_format",
    "too_many_clauses",
]

# What parsing a query needs to know about the index that is asked, and how far a query may go.

TermsLookup = Callable[[str, str, str, str | None], Sequence[Any]]
"""(index, id, path, routing) -> the values there; none where the document is missing. An empty path means the
document itself.
"""


@dataclass(frozen=True, slots=True)
class ResultLimits:
    """How much a request may ask to be shown of hits: the settings `index.max_*` of an index."""

    docvalue_fields_search: int = 100
    script_fields: int = 32
    inner_result_window: int = 100
    rescore_window: int = 10_000
    slices_per_scroll: int = 1_024

    @classmethod
    def widest(cls, several: "Sequence[ResultLimits]") -> "ResultLimits":
        """For several indexes together, of which each has been asked for itself."""
        return cls(*(max(column) for column in zip(*map(astuple, several), strict=True)))


@dataclass(frozen=True)
class QueryContext:
    """One for a request and an index; `deeper` and `within` make those of the clauses inside.

    Without slots: of a dictionary a copy with a few changes takes a fraction of the time of `replace`, and
    each request makes some.
    """

    mapping: FieldLookup
    analyzers: Analyzers
    now_ms: int = 0
    index_name: str = ""
    terms_lookup: TermsLookup | None = None
    max_clause_count: int = 4096  # clauses of one query, those that `fuzzy` makes too
    max_depth: int = 30  # indices.query.bool.max_nested_depth
    max_terms_count: int = 65_536
    max_regex_length: int = 1_000
    max_analyzed_offset: int = 1_000_000  # characters that highlighting reads of a value
    default_fields: tuple[str, ...] = ("*",)  # index.query.default_field
    lenient: bool = False  # index.query_string.lenient
    limits: ResultLimits = ResultLimits()
    allow_expensive: bool = True  # search.allow_expensive_queries
    size: int = 10  # how many hits the request wants
    depth: int = 0
    nested_path: str | None = None  # the nested objects that are being matched, None: documents
    index_names: tuple[
        tuple[str, bool], ...
    ] = ()  # names and aliases of the index, and whether each is hidden
    is_knn_section: bool = False  # a `knn` beside a query, which has `inner_hits` of its own
    exact_vectors: bool = False  # for `inner_hits`: `knn` finds all vectors, not the k nearest
    parts: "tuple[QueryContext, ...]" = ()  # of each index, where several are searched
    _below: "list[QueryContext]" = field(init=False, default_factory=list, compare=False, repr=False)

    def deeper(self) -> "QueryContext":
        """One level down; parsing fails at max_depth."""
        if self._below:  # clauses beside each other share it
            return self._below[0]
        if self.depth >= self.max_depth:
            raise illegal_request(
                "The nested depth of the query exceeds the maximum nested depth for queries set in "
                "[indices.query.bool.max_nested_depth]"
            )
        self._below.append(self._with(depth=self.depth + 1))
        return self._below[0]

    def of_moment(
        self, now_ms: int, terms_lookup: TermsLookup | None, allow_expensive: bool
    ) -> "QueryContext":
        """The same for one request."""
        return self._with(now_ms=now_ms, terms_lookup=terms_lookup, allow_expensive=allow_expensive)

    def of_size(self, size: int) -> "QueryContext":
        """The same for a request that wants so many hits."""
        if self.size == size:
            return self
        return self._with(size=size, parts=tuple(part.of_size(size) for part in self.parts))

    def _with(self, **changes: Any) -> "QueryContext":
        made = object.__new__(QueryContext)
        vars(made).update(vars(self), _below=[], **changes)
        return made

    def of_knn_section(self) -> "QueryContext":
        """The same for a `knn` beside a query."""
        return self._with(is_knn_section=True, parts=tuple(part.of_knn_section() for part in self.parts))

    def within(self, nested_path: str) -> "QueryContext":
        """For the query inside a `nested` one."""
        parts = tuple(part.within(nested_path) for part in self.parts)
        return replace(self, nested_path=nested_path, parts=parts)

    def failed(self, reason: str, cause: SearchError | None = None) -> SearchError:
        """A query that parses, but not for this index: Elasticsearch's query_shard_exception."""
        metadata = {"index": self.index_name} if self.index_name else {}
        return SearchError("query_shard_exception", f"failed to create query: {reason}", 400, metadata, cause)

    def check_expensive(self, what: str, instead: str = "") -> None:
        """Errors: exception, where the cluster's settings do not allow such a query."""
        if not self.allow_expensive:
            reason = f"{what} cannot be executed when 'search.allow_expensive_queries' is set to false."
            raise SearchError("exception", f"{reason}{instead}", 400)

    def shape(self, reason: str) -> SearchError:
        """A body of the wrong shape."""
        return parsing(reason, line=1, col=1)


# How the parsers of the clauses are called, and how they call for those of the clauses inside.

Parse = Callable[[object, QueryContext], Query]
"""Parses any query, whatever its kind."""

ClauseParser = Callable[[Mapping[str, Any], QueryContext, Parse], Query]
"""Parses the body of one kind of clause, the object under its name."""


# Reading the members of a clause's body: types, defaults, and Elasticsearch's words where one is wrong.


def too_many_clauses(context: QueryContext) -> SearchError:
    """For a query of more than `max_clause_count`."""
    return SearchError(
        "too_many_nested_clauses",
        f"Query contains too many nested clauses; maxClauseCount is set to {context.max_clause_count}",
    )


def malformed(reason: str) -> SearchError:
    """A parsing_exception; all of a body stands in its first line and column, for positions are not kept."""
    return parsing(reason, line=1, col=1)


def number_format(value: object) -> SearchError:
    """What Java says of text that is no number."""
    return SearchError("number_format_exception", f'For input string: "{value}"')


class Clause:
    """The body of one clause, read member by member; `done` refuses those that were not read."""

    def __init__(self, kind: str, body: Mapping[str, Any], unknown: str = "[{}] query does not support [{}]"):
        self.kind = kind
        self._rest = dict(body)
        self._unknown = unknown
        self.boost = self.number("boost", 1.0)
        self.name = self.string("_name")
        if self.boost < 0:
            raise illegal_request(
                f"negative [boost] are not allowed in [{kind}], use a value between 0 and 1 to deboost"
            )

    def __contains__(self, member: str) -> bool:
        return self._rest.get(member) is not None

    def take(self, member: str, default: Any = None) -> Any:
        """A member of any type."""
        value = self._rest.pop(member, None)
        if value is None:
            return default
        return value.value if type(value) is Slot else value

    def sought(self, member: str) -> Any:
        """A member of any type that a `Form` may leave open: a slot where there is one."""
        return self._rest.pop(member, None)

    def ignore(self, *members: str) -> None:
        """Members that have a meaning in Elasticsearch, but none that shows here."""
        for member in members:
            self._rest.pop(member, None)

    def needed(self, member: str) -> Any:
        value = self.take(member)
        if value is None:
            raise malformed(f"[{self.kind}] query requires '{member}' field")
        return value

    def string(self, member: str, default: str | None = None) -> str | None:
        value = self.take(member)
        return default if value is None else self._scalar(member, value)

    def word(self, member: str, default: str) -> str:
        """A string that has a default."""
        value = self.take(member)
        return default if value is None else self._scalar(member, value)

    def _scalar(self, member: str, value: Any) -> str:
        if isinstance(value, dict | list):
            self.refuse(member, value)
        return str(value).lower() if isinstance(value, bool) else str(value)

    def number(self, member: str, default: float) -> float:
        value = self.take(member)
        if value is None:
            return default
        if isinstance(value, dict | list | bool):
            self.refuse(member, value)
        try:
            number = float(value)
        except ValueError:
            raise number_format(value) from None
        if not math.isfinite(number):
            raise illegal_request(f"[{self.kind}] [{member}] must be a finite number, got [{value}]")
        return number

    def integer(self, member: str, default: int) -> int:
        number = self.number(member, default)
        if number != int(number):
            raise illegal_request(f"{number} cannot be converted to Integer without data loss")
        return int(number)

    def flag(self, member: str, default: bool) -> bool:
        value = self.take(member)
        if value is None:
            return default
        if value in (True, "true"):
            return True
        if value in (False, "false", ""):
            return False
        raise illegal_request(f"Failed to parse value [{value}] as only [true] or [false] are allowed.")

    def choice(self, member: str, default: str, allowed: tuple[str, ...]) -> str:
        value = self.word(member, default)
        for known in allowed:
            if value.lower() == known:
                return known
        raise malformed(f"[{self.kind}] query does not support [{member}] of [{value}]")

    def refuse(self, member: str, value: Any) -> NoReturn:
        """A member that is an object or array where a value should stand."""
        token = "START_OBJECT" if isinstance(value, dict) else "START_ARRAY"
        if isinstance(value, bool):
            token = "VALUE_BOOLEAN"
        raise malformed(f"[{self.kind}] unknown token [{token}] after [{member}]")

    def done(self) -> None:
        """Everything that may be there has been read."""
        for member in self._rest:
            raise malformed(self._unknown.format(self.kind, member))


def field_clause(
    kind: str, body: Mapping[str, Any], short: str, is_short: Callable[[Any], bool] | None = None
) -> tuple[str, Clause]:
    """Read `{"field": {...}}` or `{"field": value}`, where value is that of the member named short."""
    own = {key: value for key, value in body.items() if key in ("boost", "_name") and len(body) > 1}
    fields = [key for key in body if key not in own]
    if len(fields) > 1:
        raise malformed(
            f"[{kind}] query doesn't support multiple fields, found [{fields[0]}] and [{fields[1]}]"
        )
    if not fields or not fields[0]:
        raise illegal_request("field name is null or empty")
    value = body[fields[0]]
    if isinstance(value, list) and is_short is None:
        raise malformed(f"[{kind}] unknown token [START_ARRAY] after [{fields[0]}]")
    members = value if isinstance(value, dict) else {short: value}
    return fields[0], Clause(kind, {**own, **members})


# `minimum_should_match`: how many of the optional clauses a document has to match.
#
# Source: Elasticsearch's reference, "minimum_should_match parameter".


def minimum_should_match(optional: int, text: str) -> int:
    """What a specification such as 3, -2, 75%, -25%, 2<75% or 2<-25% 9<-3 means for so many clauses.

    May be more than there are; nothing matches then.
    """
    text = re.sub(r"\s*<\s*", "<", text.strip())
    if "<" not in text:
        return _simple(optional, text)
    result = optional
    for part in text.split():
        bound, _, rest = part.partition("<")
        if optional <= _integer(bound):
            return result
        result = _simple(optional, rest)
    return result


def _simple(optional: int, text: str) -> int:
    if text.endswith("%"):
        hundredth = np.float32(1) / np.float32(100)
        share = int(np.float32(optional * _integer(text[:-1])) * hundredth)  # towards zero, as Java's cast
        return max(0, optional + share if text.startswith("-") else share)
    number = _integer(text)
    return max(0, optional + number if number < 0 else number)


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise number_format(text) from None
