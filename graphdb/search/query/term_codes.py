"""All terms of a dictionary as one array of code points, for patterns to be held against them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphdb.search.query.kernels import edit_distances, glob_matches
from graphdb.search.segment import Bools, Longs, TermDictionary

__all__ = ["ANY", "ANY_STRING", "Codes", "TermCodes", "code_points"]

Codes = NDArray[np.uint32]
# Beyond all code points: what `?` and `*` become in a pattern.
ANY = 0x110000
ANY_STRING = 0x110001


def code_points(text: str) -> Codes:
    """A string as numbers, lone surrogates too (JSON can hold them)."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)


@dataclass(frozen=True, slots=True)
class TermCodes:
    """Term i is codes[starts[i]:starts[i + 1]]."""

    codes: Codes
    starts: Longs

    @classmethod
    def of(cls, dictionary: TermDictionary) -> "TermCodes":
        terms = list(dictionary.terms(0, len(dictionary)))
        starts = np.zeros(len(terms) + 1, dtype=np.int64)
        np.cumsum([len(term) for term in terms], out=starts[1:])
        return cls(code_points("".join(terms)), starts)

    @classmethod
    def one(cls, term: str) -> "TermCodes":
        """Of a single term."""
        return cls(code_points(term), np.array([0, len(term)], dtype=np.int64))

    def lowered(self) -> "TermCodes":
        """The same in lower case, where that is one code point for one."""
        distinct, places = np.unique(self.codes, return_inverse=True)
        lower = [chr(code).lower() for code in distinct.tolist()]
        folded = [ord(low) if len(low) == 1 else code for low, code in zip(lower, distinct, strict=True)]
        return TermCodes(np.array(folded, dtype=np.uint32)[places], self.starts)

    def glob(self, pattern: Codes, start: int, stop: int) -> Bools:
        """Which of the terms in [start, stop) match a pattern with ANY and ANY_STRING."""
        return glob_matches(self.codes, self.starts, pattern, start, stop)

    def distances(
        self, term: str, prefix_length: int, edits_max: int, transpositions: bool, start: int, stop: int
    ) -> NDArray[np.int8]:
        """How many edits each of the terms in [start, stop) is away; edits_max + 1 where more."""
        wanted = code_points(term)
        return edit_distances(
            self.codes, self.starts, wanted, prefix_length, edits_max, transpositions, start, stop
        )
