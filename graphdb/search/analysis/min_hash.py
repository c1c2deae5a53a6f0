"""The filter `min_hash`: a sketch of the tokens of a text, by which like texts are found.

Source: Broder, "On the resemblance and containment of documents" (1997); with the hashes, buckets and tokens
of Lucene's MinHashFilter.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

import mmh3

from graphdb.search.analysis.token import Token

__all__ = ["MinHash"]

_MASK = 2**64 - 1
_Hash = tuple[int, int]
"""The high and the low half, unsigned."""


def _murmur(data: bytes) -> _Hash:
    low, high = mmh3.hash64(data, 0, x64arch=True, signed=False)
    return high, low


@cache
def _of_number(number: int) -> _Hash:
    return _murmur(number.to_bytes(4, "big"))


@dataclass(slots=True)
class _Least:
    """The least hashes of a bucket, as Lucene keeps them: once full, one that it has costs the last."""

    size: int
    kept: list[_Hash] = field(default_factory=list)  # ascending

    def add(self, given: _Hash) -> None:
        if len(self.kept) >= self.size:
            if given >= self.kept[-1]:
                return
            self.kept.pop()
        if given not in self.kept:
            self.kept.append(given)
            self.kept.sort()


@dataclass(frozen=True, slots=True)
class MinHash:
    """hashes: how many different ones; buckets: into which each is spread; size: least values of a bucket.

    rotation: an empty bucket takes the value of the next one that has one, where size is 1.
    """

    hashes: int
    buckets: int
    size: int
    rotation: bool

    def __call__(self, tokens: list[Token]) -> list[Token]:
        """All tokens stand at the first position and span the text."""
        if not tokens:
            return []
        own = [_murmur(token.term.encode("utf-16-le", "surrogatepass")) for token in tokens]
        end = tokens[-1].end_offset
        return [
            Token(_term(number if self.hashes > 1 else None, *kept), 0, end, "MIN_HASH")
            for number in range(self.hashes)
            for bucket in self._filled(self._spread(own, _of_number(number)))
            for kept in bucket.kept
        ]

    def _spread(self, hashes: Sequence[_Hash], mixed: _Hash) -> list[_Least]:
        width = -(-(2**32) // self.buckets)
        buckets = [_Least(self.size) for _ in range(self.buckets)]
        for high, low in hashes:
            high, low = (high * 37 + mixed[0]) & _MASK, (low * 37 + mixed[1]) & _MASK
            buckets[(high >> 32) // width].add((high, low))
        return buckets

    def _filled(self, buckets: list[_Least]) -> list[_Least]:
        if not self.rotation or self.size != 1:
            return buckets
        following = next(bucket for bucket in buckets if bucket.kept)  # of the last, from the first on
        filled = []
        for bucket in reversed(buckets):
            following = bucket if bucket.kept else following
            filled.append(following)
        return filled[::-1]


def _term(number: int | None, high: int, low: int) -> str:
    """The halves as UTF-16, after the number of the hash where there are several; two units less of the low
    half then.
    """
    if number is None:
        data = high.to_bytes(8, "big") + low.to_bytes(8, "big")
    else:
        data = number.to_bytes(4, "big") + high.to_bytes(8, "big") + (low >> 32).to_bytes(4, "big")
    return data.decode("utf-16-be", "replace")
