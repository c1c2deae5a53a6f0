"""Names against patterns with `*`, and the JSON arrays of a field."""

from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["flat", "members_at", "scalars_at", "wildcard_match"]


def wildcard_match(pattern: str, text: str) -> bool:
    """Whether text is what pattern says, with any characters for each `*`. Linear in the pattern's parts."""
    first, *rest = pattern.split("*")
    if not rest:
        return pattern == text
    *middle, last = rest
    if len(text) < len(first) + len(last) or not text.startswith(first) or not text.endswith(last):
        return False
    at, end = len(first), len(text) - len(last)
    for part in middle:
        found = text.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True


def flat(value: Any) -> Iterator[Any]:
    """The values of a field, in order: arrays within arrays are one array. Nulls are kept."""
    if not isinstance(value, list):
        yield value
        return
    waiting = [iter(value)]
    while waiting:
        for item in waiting[-1]:
            if isinstance(item, list):
                waiting.append(iter(item))
                break
            yield item
        else:
            waiting.pop()


def scalars_at(path: str, value: Any) -> Iterator[Any]:
    """The values at a path, whose dots may be in the names of members too; no objects, and no nulls."""
    for member in members_at(path, value):
        yield from _scalars(member)


def members_at(path: str, value: Any) -> Iterator[Any]:
    """What stands at a path, as it stands there."""
    if isinstance(value, list):
        for item in value:
            yield from members_at(path, item)
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            if name == path:
                yield inner
            elif path.startswith(name + "."):
                yield from members_at(path[len(name) + 1 :], inner)


def _scalars(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        for item in value:
            yield from _scalars(item)
    elif value is not None and not isinstance(value, Mapping):
        yield value
