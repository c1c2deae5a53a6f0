"""How large a geometry may be, and what is checked of its text before a native parser sees it."""

import re
from itertools import accumulate
from typing import Final

from graphdb.errors import BadGeometry, LimitExceeded

__all__ = [
    "CHARACTERS_MAX",
    "NESTING_MAX",
    "VERTICES_MAX",
    "check_brackets",
    "check_length",
    "check_vertices",
]

CHARACTERS_MAX: Final = 64 << 20
"""In the text of one geometry."""
VERTICES_MAX: Final = 1_000_000
NESTING_MAX: Final = 32
"""Of collections in collections, and of brackets; GEOS overflows its stack at some ten thousand."""


def check_length(text: str) -> None:
    """Raises LimitExceeded."""
    if len(text) > CHARACTERS_MAX:
        raise LimitExceeded("the length of a geometry in characters", len(text), CHARACTERS_MAX)


def check_vertices(count: int) -> None:
    """Raises LimitExceeded."""
    if count > VERTICES_MAX:
        raise LimitExceeded("the number of vertices of a geometry", count, VERTICES_MAX)


def check_brackets(text: str, opening: str, closing: str) -> None:
    """Refuse what is nested too deeply, by brackets of these kinds. Raises BadGeometry."""
    if sum(map(text.count, opening)) <= NESTING_MAX:
        return
    brackets = re.findall(f"[{re.escape(opening + closing)}]", text)
    if max(accumulate(1 if bracket in opening else -1 for bracket in brackets)) > NESTING_MAX:
        raise BadGeometry(f"the geometry is nested more than {NESTING_MAX} deep")
