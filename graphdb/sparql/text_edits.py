"""Changes to a text by place, made in any order, that are written out for the whole of it or a part."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import count

from graphdb.sparql.terms import Span

__all__ = ["TextEdits", "names_besides"]


class TextEdits:
    """Places are those of the text as it was.

    Whoever changes a part by what it holds, or writes it out, does so after all changes within it: then what
    encloses a part comes outside of what was put around the parts in it.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._places: list[int] = []  # of all changes, in order
        self._openings: dict[int, str] = {}
        self._closings: dict[int, str] = {}
        self._replaced: dict[int, tuple[int, str]] = {}

    def replace(self, span: Span, new: str) -> None:
        """Put something else in the place of a part; changes within it no longer count."""
        self._note(span.start)
        self._replaced[span.start] = (span.end, new)

    def before(self, place: int, new: str) -> None:
        """Insert at a place, as the beginning of what follows."""
        self._note(place)
        self._openings[place] = new + self._openings.get(place, "")

    def after(self, place: int, new: str) -> None:
        """Insert at a place, as the end of what precedes."""
        self._note(place)
        self._closings[place] = self._closings.get(place, "") + new

    def around(self, span: Span, opening: str, closing: str) -> None:
        self.before(span.start, opening)
        self.after(span.end, closing)

    def written(self, span: Span) -> str:
        """A part of the text with all changes so far, those at its own ends included."""
        pieces, place = [], span.start
        places = self._places
        for at in places[bisect_left(places, span.start) : bisect_right(places, span.end)]:
            if at < place:  # within what was replaced
                continue
            pieces.append(self._text[place:at])
            place = at
            if at > span.start:
                pieces.append(self._closings.get(at, ""))
            if at < span.end:
                pieces.append(self._openings.get(at, ""))
                if at in self._replaced:
                    place, new = self._replaced[at]
                    pieces.append(new)
        return "".join(pieces) + self._text[place : span.end]

    def _note(self, place: int) -> None:
        at = bisect_left(self._places, place)
        if self._places[at : at + 1] != [place]:
            self._places.insert(at, place)


def names_besides(text: str, start: str) -> Iterator[str]:
    """Names with this start, and a number, that stand nowhere in a text."""
    return (name for number in count() if (name := f"{start}{number}") not in text)
