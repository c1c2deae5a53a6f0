"""Names against patterns with `*`, and the JSON arrays of a field."""

from collections.abc import Iterator
from typing import Any

__all__ = ["flat", "wildcard_match"]


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
