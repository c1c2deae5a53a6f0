"""The names of indexes and aliases: which are allowed, and which indexes an expression of a client means.

An expression may have lists, wildcards, exclusions, aliases and dates.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from graphdb.search.catalog.index_settings import flag_setting
from graphdb.search.catalog.state import AliasOptions, CatalogState, Index
from graphdb.search.errors import SearchError, illegal_argument, index_closed, index_not_found
from graphdb.search.mapping.dates import date_format, date_math
from graphdb.search.mapping.instants import zone_of
from graphdb.search.mapping.wildcards import wildcard_match

__all__ = [
    "DEFAULT_OPTIONS",
    "FORBIDDEN",
    "ResolveOptions",
    "Resolved",
    "check_alias_name",
    "check_index_name",
    "check_template_name",
    "resolve",
    "with_dates",
    "write_target",
]

# Which names are allowed, and what a date within a name stands for.

_NAME_BYTES_MAX = 255
FORBIDDEN = ' "*,/<>?\\|'
"""Characters that no name has."""
_DATE_FORMAT = "uuuu.MM.dd"
_ISO = date_format("strict_date_optional_time")


def check_index_name(name: str) -> None:
    """Errors: invalid_index_name_exception."""
    problem = _problem(name) or ("must be lowercase" if name != name.lower() else None)
    if problem is not None:
        shown = name[:_NAME_BYTES_MAX]
        metadata = {"index_uuid": "_na_", "index": shown}
        reason = f"Invalid index name [{shown}], {problem}"
        raise SearchError("invalid_index_name_exception", reason, 400, metadata)


def check_alias_name(name: str) -> None:
    """An alias may have capitals. Errors: invalid_alias_name_exception."""
    problem = _problem(name)
    if problem is not None:
        reason = f"Invalid alias name [{name[:_NAME_BYTES_MAX]}]: {problem}"
        raise SearchError("invalid_alias_name_exception", reason, 400)


def check_template_name(name: str) -> None:
    """Errors: invalid_index_template_exception."""
    problem = _problem(name) or ("must be lower cased" if name != name.lower() else None)
    if problem is not None:
        shown = name[:_NAME_BYTES_MAX]
        reason = f"index_template [{shown}] invalid, cause [Validation Failed: 1: name {problem};]"
        raise SearchError("invalid_index_template_exception", reason, 400)


def _problem(name: str) -> str | None:
    """What is wrong with a name, as Elasticsearch says it."""
    if not name:
        return "must not be empty"
    if any(char in FORBIDDEN for char in name):
        listed = ",".join(f"'{char}'" for char in FORBIDDEN)
        return f"must not contain the following characters [{listed}]"
    if "#" in name:
        return "must not contain '#'"
    if ":" in name:
        return "must not contain ':'"
    if name[0] in "_-+":
        return "must not start with '_', '-', or '+'"
    length = len(name.encode("utf-8", "surrogatepass"))
    if length > _NAME_BYTES_MAX:
        return f"index name is too long, ({length} > {_NAME_BYTES_MAX})"
    if name in (".", ".."):
        return "must not be '.' or '..'"
    if any(ord(char) < 32 or 0xD800 <= ord(char) < 0xE000 for char in name):
        return "must not contain control characters"  # ours: it would break `_cat` and logs
    return None


def with_dates(name: str, now_ms: int) -> str:
    """`<logs-{now/d{yyyy.MM|+01:00}}>` with its dates written out; any other name as it is.

    Errors: parse_exception, illegal_argument_exception.
    """
    if not (name.startswith("<") and name.endswith(">")):
        return name
    parts: list[str] = []
    at, text = 0, name[1:-1]
    while at < len(text):
        if text[at] == "{":
            end = _closing(text, at, name)
            parts.append(_date(text[at + 1 : end], now_ms, name))
            at = end + 1
        elif text[at] == "}":
            reserved = "`{` and `}` are reserved characters"
            raise _unparsable(name, f"invalid character at position [{at}]. {reserved}")
        elif text[at] == "\\":
            parts.append(text[at + 1 : at + 2])
            at += 2
        else:
            parts.append(text[at])
            at += 1
    if not parts:
        raise _unparsable(name, "nothing captured")
    return "".join(parts)


def _closing(text: str, start: int, name: str) -> int:
    """The place of the `}` that belongs to the `{` at start; there may be one pair in between."""
    depth = 0
    for place in range(start, len(text)):
        if text[place] == "{":
            depth += 1
            if depth > 2:
                raise _unparsable(name, "too many open `{`")
        elif text[place] == "}":
            depth -= 1
            if depth == 0:
                return place
    raise _unparsable(name, "date math placeholder is open ended")


def _date(expression: str, now_ms: int, name: str) -> str:
    """`now/d{format|zone}` as a text."""
    math, brace, rest = expression.partition("{")
    pattern, _, zone_name = rest.removesuffix("}").partition("|")
    if (brace and not rest.endswith("}")) or (brace and not pattern):
        raise _unparsable(name, "missing date format")
    zone = zone_of(zone_name or "UTC")
    return date_format(pattern or _DATE_FORMAT).write(date_math(math, _ISO, now_ms, False, zone), zone)


def _unparsable(name: str, why: str) -> SearchError:
    reason = f"invalid dynamic name expression [{name[1:-1][:_NAME_BYTES_MAX]}]. {why}"
    return SearchError("parse_exception", reason)


# From expressions to indexes.

_PARTS_MAX = 1000
_EXPRESSION_LENGTH_MAX = 100_000


@dataclass(frozen=True, slots=True)
class ResolveOptions:
    """The parameters of a request, and what the request may be made with.

    expand_open, expand_closed: which indexes wildcards find. aliases: they may be named too. closed: a closed
    index may be meant.
    """

    ignore_unavailable: bool = False
    allow_no_indices: bool = True
    expand_open: bool = True
    expand_hidden: bool = False
    aliases: bool = True
    expand_closed: bool = False
    closed: bool = False

    @classmethod
    def of(
        cls,
        expand_wildcards: str = "open",
        ignore_unavailable: bool = False,
        allow_no_indices: bool = True,
        aliases: bool = True,
        closed: bool = False,
    ) -> "ResolveOptions":
        """expand_wildcards: open, closed, hidden, none, all, several between commas.

        Errors: illegal_argument_exception.
        """
        states = expand_wildcards.split(",")
        for state in states:
            if state not in ("open", "closed", "hidden", "none", "all"):
                raise illegal_argument(f"No valid expand wildcard value [{state[:100]}]")
        found: set[str] = set()
        for state in states:  # in their order: `none` takes back what stands before it
            if state == "none":
                found.clear()
            else:
                found |= {"open", "closed", "hidden"} if state == "all" else {state}
        return cls(
            ignore_unavailable,
            allow_no_indices,
            "open" in found,
            "hidden" in found,
            aliases,
            "closed" in found,
            closed,
        )

    @property
    def expands(self) -> bool:
        """Whether wildcards find anything."""
        return self.expand_open or self.expand_closed

    def finds(self, index: Index) -> bool:
        """Whether wildcards find it, if it fits."""
        return self.expand_closed if index.is_closed else self.expand_open


DEFAULT_OPTIONS = ResolveOptions()


@dataclass(frozen=True, slots=True)
class Resolved:
    """One index that a request is for.

    filters: of the aliases that it was named by; a document must fit one of them. Empty: all documents, for
    the index was named itself, or by an alias without a filter. routing: of those aliases, likewise.
    aliases: their names, ascending.
    """

    index: Index
    filters: tuple[Any, ...] = ()
    routing: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()


@dataclass(slots=True)
class _Found:
    """How an index was named: by itself, or by aliases."""

    itself: bool = False
    aliases: dict[str, AliasOptions] = field(default_factory=dict)


def resolve(
    state: CatalogState, expression: str | Iterable[str], options: ResolveOptions, now_ms: int
) -> list[Resolved]:
    """By name, each index once.

    Errors: index_not_found_exception, illegal_argument_exception, parse_exception,
    invalid_index_name_exception.
    """
    parts = _parts(expression, now_ms)
    walk = _Walk(state, options)
    if not parts or parts == ["_all"]:
        parts = ["*"]
        if options.expands:
            walk.take("*")
    else:
        for part in parts:
            walk.take("*" if part == "_all" else part)
    if not walk.found and not options.allow_no_indices:
        raise index_not_found(",".join(parts) if parts != ["*"] else "_all")
    named = [_resolved(state.by_uuid[uuid], found) for uuid, found in walk.found.items()]
    named.sort(key=lambda resolved: resolved.index.name)
    closed = [one.index for one in named if one.index.is_closed and not options.closed]
    if closed and not options.ignore_unavailable:
        raise index_closed(closed[0].name, closed[0].uuid)
    return [one for one in named if one.index not in closed] if closed else named


def _parts(expression: str | Iterable[str], now_ms: int) -> list[str]:
    texts = [expression] if isinstance(expression, str) else list(expression)
    if sum(map(len, texts)) > _EXPRESSION_LENGTH_MAX:
        raise illegal_argument(f"names of indices are longer than [{_EXPRESSION_LENGTH_MAX}] characters")
    parts = [part for text in texts for part in text.split(",") if part]
    if len(parts) > _PARTS_MAX:
        raise illegal_argument(f"more than [{_PARTS_MAX}] names of indices")
    return [
        f"-{with_dates(part[1:], now_ms)}" if part.startswith("-<") else with_dates(part, now_ms)
        for part in parts
    ]


class _Walk:
    """Takes one part of an expression after another."""

    def __init__(self, state: CatalogState, options: ResolveOptions) -> None:
        self.found: dict[str, _Found] = {}
        self._state, self._options = state, options
        self._seen_wildcard = False

    def take(self, part: str) -> None:
        if part.startswith("-") and self._seen_wildcard:
            self._exclude(part[1:])
        elif "*" in part and self._options.expands:
            self._seen_wildcard = True
            self._wildcard(part)
        else:
            self._named(part)

    def _exclude(self, pattern: str) -> None:
        for uuid in list(self.found):
            index = self._state.by_uuid[uuid]
            aliases = self._state.aliases.get(uuid, ()) if self._options.aliases else ()
            names = [index.name, *aliases]
            if any(wildcard_match(pattern, name) for name in names):
                del self.found[uuid]

    def _wildcard(self, pattern: str) -> None:
        before = len(self.found)
        matched = False
        for name, index in self._state.by_name.items():
            fits = self._options.finds(index) and wildcard_match(pattern, name)
            if fits and self._shows(pattern, name, _is_hidden(index)):
                matched = True
                self.found.setdefault(index.uuid, _Found()).itself = True
        if self._options.aliases:
            matched = self._wildcard_aliases(pattern) or matched
        if not matched and len(self.found) == before and not self._options.allow_no_indices:
            raise index_not_found(pattern)

    def _wildcard_aliases(self, pattern: str) -> bool:
        matched = False
        for alias, members in self._state.by_alias.items():
            hidden = all(options.get("is_hidden") for options in members.values())
            if wildcard_match(pattern, alias) and self._shows(pattern, alias, hidden):
                matched = True
                found = {
                    uuid: options
                    for uuid, options in members.items()
                    if self._options.finds(self._state.by_uuid[uuid])
                }
                self._add_alias(alias, found)
        return matched

    def _shows(self, pattern: str, name: str, hidden: bool) -> bool:
        """A pattern that begins with a dot means hidden names that do."""
        return not hidden or self._options.expand_hidden or (pattern[0] == name[0] == ".")

    def _named(self, name: str) -> None:
        index, members = self._state.by_name.get(name), self._state.by_alias.get(name)
        if index is not None:
            self.found.setdefault(index.uuid, _Found()).itself = True
        elif members is not None and self._options.aliases:
            self._add_alias(name, members)
        elif self._options.ignore_unavailable:
            return
        elif members is not None:
            what = "a data stream" if name in self._state.data_streams else "an alias"
            raise illegal_argument(
                f"The provided expression [{name}] matches {what}, specify the corresponding concrete "
                "indices instead."
            )
        else:
            raise _missing(name)

    def _add_alias(self, alias: str, members: Mapping[str, AliasOptions]) -> None:
        for uuid, options in members.items():
            self.found.setdefault(uuid, _Found()).aliases[alias] = options


def _missing(name: str) -> SearchError:
    shown = name[:255]
    if name.startswith("_"):
        metadata = {"index_uuid": "_na_", "index": shown}
        reason = f"Invalid index name [{shown}], must not start with '_'."
        return SearchError("invalid_index_name_exception", reason, 400, metadata)
    error = index_not_found(shown)
    if not name.startswith("-"):
        return error
    hint = "and if you intended to exclude this index, ensure that you use wildcards that include it before "
    return SearchError(
        error.kind, f"{error.reason} {hint}explicitly excluding it", error.status, error.metadata
    )


def _is_hidden(index: Index) -> bool:
    return flag_setting(index.settings, "hidden")


def _resolved(index: Index, found: _Found) -> Resolved:
    options = [found.aliases[alias] for alias in sorted(found.aliases)]
    filters = tuple(one["filter"] for one in options if "filter" in one)
    routing = tuple(one["search_routing"] for one in options if "search_routing" in one)
    everything = found.itself or len(filters) < len(options)
    any_routing = found.itself or len(routing) < len(options)
    return Resolved(
        index,
        () if everything else filters,
        () if any_routing else routing,
        tuple(sorted(found.aliases)),
    )


def write_target(state: CatalogState, name: str) -> tuple[Index, AliasOptions]:
    """The index that a document goes to, and what the alias says by which it was named, if any.

    Errors: index_not_found_exception, illegal_argument_exception (no write index).
    """
    index = state.by_name.get(name)
    if index is not None:
        return index, {}
    members = state.by_alias.get(name)
    if not members:
        raise _missing(name)
    writing = [uuid for uuid, options in members.items() if options.get("is_write_index")]
    if not writing and len(members) == 1:
        writing = [uuid for uuid, options in members.items() if options.get("is_write_index") is not False]
    if len(writing) != 1:
        raise illegal_argument(
            f"no write index is defined for alias [{name}]. The write index may be explicitly disabled using "
            "is_write_index=false or the alias points to multiple indices without one being designated as a "
            "write index"
        )
    return state.by_uuid[writing[0]], members[writing[0]]
