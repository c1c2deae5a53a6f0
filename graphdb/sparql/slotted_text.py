"""`EngineText`: a query as the engine reads it, with slots where an index can narrow what it looks at."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from graphdb.geo.lookups import Lookup, Ordered

__all__ = ["NEAR", "NEAREST", "EngineText", "Filling", "Slots"]

NEAREST = "nearest"
"""The slot for values, before the triples that bind what a query's order measures."""
NEAR = "near"
"""The slot for a filter, at the end of such a query's pattern."""


@dataclass(frozen=True, slots=True)
class Filling:
    """What stands in a slot: without anything found, and around what is found, every time it is written."""

    without: str = ""
    around: tuple[str, ...] = ("", "")


@dataclass(frozen=True, slots=True)
class EngineText:
    """pieces are of the text, and between each two of them the name of a slot: the number of a lookup,
    NEAREST or NEAR. call is that of nearest as the engine reads it.
    """

    pieces: tuple[str, ...]
    calls_geometry: bool = False  # it needs the functions of GeoSPARQL
    lookups: tuple[Lookup, ...] = ()
    nearest: Ordered | None = None
    call: str = ""
    fillings: Mapping[str, Filling] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """With nothing found."""
        return self.pieces[0] if len(self.pieces) == 1 else self.filled({})

    def filled(self, found: Mapping[str, str]) -> str:
        """With these in their slots."""
        pieces = list(self.pieces)
        for place in range(1, len(pieces), 2):
            name = pieces[place]
            filling = self.fillings.get(name, _PLAIN)
            pieces[place] = found[name].join(filling.around) if name in found else filling.without
        return "".join(pieces)


_PLAIN = Filling()


class Slots:
    """Marks of slots for one text, while it is written."""

    def __init__(self, fresh: str) -> None:
        """fresh stands nowhere in the text."""
        self._fresh = fresh
        self.fillings: dict[str, Filling] = {}

    def mark(self, name: str, filling: Filling = _PLAIN) -> str:
        self.fillings[name] = filling
        return f"<{self._fresh}:slot:{name}>"

    def split(self, text: str) -> tuple[str, ...]:
        """The pieces of a text with marks in it."""
        return tuple(re.split(f"<{self._fresh}:slot:(\\w+)>", text))
