"""`filter_path`: the parts of an answer that a client wants (`hits.hits._id`), or does not (`-took`)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

from graphdb.search.errors import illegal_argument
from graphdb.search.mapping.wildcards import wildcard_match

__all__ = ["PathFilter", "filter_of"]

PATTERNS_MAX = 1_000
DEPTH_MAX = 200

# What is left of a pattern below some place: `*` stands for a name, or a part of one, `**` for any number.
_Pattern: TypeAlias = tuple[str, ...]
_NOTHING = object()


@dataclass(frozen=True, slots=True)
class PathFilter:
    """Arrays have no names: a pattern goes through them. What is left empty is left out."""

    includes: tuple[_Pattern, ...]
    excludes: tuple[_Pattern, ...]

    def applied(self, value: Any) -> Any:
        """value without what is not wanted; an empty object where that is all."""
        left = _filtered(value, self.includes or None, self.excludes, DEPTH_MAX)
        return {} if left is _NOTHING else left


def filter_of(patterns: Sequence[str]) -> PathFilter | None:
    """None where there are no patterns."""
    if len(patterns) > PATTERNS_MAX:
        raise illegal_argument(f"[filter_path] takes at most [{PATTERNS_MAX}] patterns")
    excludes = tuple(_split(pattern[1:]) for pattern in patterns if pattern.startswith("-"))
    includes = tuple(_split(pattern) for pattern in patterns if not pattern.startswith("-"))
    return PathFilter(includes, excludes) if includes or excludes else None


@lru_cache(maxsize=512)
def _split(pattern: str) -> _Pattern:
    """At dots, but those that a backslash stands before."""
    return tuple(part.replace("\0", ".") for part in pattern.replace("\\.", "\0").split("."))


def _filtered(
    value: Any, includes: tuple[_Pattern, ...] | None, excludes: tuple[_Pattern, ...], depth: int
) -> Any:
    """includes is None where all is wanted that excludes leaves."""
    if includes is None and not excludes:
        return value
    if depth == 0:
        raise illegal_argument(f"[filter_path] cannot be applied below [{DEPTH_MAX}] levels")
    if isinstance(value, dict):
        members = ((name, _member(name, item, includes, excludes, depth)) for name, item in value.items())
        kept = {name: item for name, item in members if item is not _NOTHING}
        return kept or _NOTHING
    if isinstance(value, list):
        items = [_filtered(item, includes, excludes, depth - 1) for item in value]
        return [item for item in items if item is not _NOTHING] or _NOTHING
    return value if includes is None else _NOTHING


def _member(
    name: str, value: Any, includes: tuple[_Pattern, ...] | None, excludes: tuple[_Pattern, ...], depth: int
) -> Any:
    without, excludes = _advance(excludes, name)
    if without:
        return _NOTHING
    if includes is not None:
        whole, includes = _advance(includes, name)
        includes = None if whole else includes
        if includes == ():
            return _NOTHING
    return _filtered(value, includes, excludes, depth - 1)


def _advance(patterns: tuple[_Pattern, ...], name: str) -> tuple[bool, tuple[_Pattern, ...]]:
    """Whether one of the patterns ends at this name, and what is left of those that go on below it."""
    left: dict[_Pattern, None] = {}  # a set that keeps the order
    pending = list(patterns)
    while pending:
        head, *rest = pending.pop()
        if head == "**":
            if not rest:
                return True, ()
            left[(head, *rest)] = None
            pending.append(tuple(rest))
        elif wildcard_match(head, name):
            if not rest:
                return True, ()
            left[tuple(rest)] = None
    return False, tuple(left)
