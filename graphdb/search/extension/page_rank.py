"""PageRank of the resources of a graph: every triple whose object is an IRI or a blank node is a link.

Source: Page, Brin, Motwani, Winograd, "The PageRank citation ranking" (1999); what resources without links
have is spread over all, as networkx.pagerank does. Memory: 8 bytes an end of a link while links are
collected, three times that while they are sorted, and 16 bytes a resource afterwards. Texts are not kept: a
resource is known by a hash of 64 bits, so an IRI that the graph of ten million resources does not have is
taken for one of them with a probability of 10 to the power of minus 12.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from graphdb.search.segment import Bools, Doubles, Longs

__all__ = ["LINKS_MAX", "LinkCollector", "PageRanks", "page_rank"]

DAMPING = 0.85
CONVERGED = 1e-6  # the sum of all changes of one round, the sum of all ranks being 1
ROUNDS_MAX = 100
LINKS_MAX = 20_000_000  # beyond, it would take more than a gigabyte


@dataclass(frozen=True, slots=True)
class PageRanks:
    """hashes ascend; ranks are in their order, the largest 1."""

    hashes: Longs
    ranks: Doubles

    def of(self, iris: Iterable[str]) -> Doubles:
        """The rank of each IRI, 0 for those that the graph does not have."""
        wanted = np.fromiter((_hash(b"<%b>" % iri.encode(errors="replace")) for iri in iris), np.int64)
        if not len(self.hashes):
            return np.zeros(len(wanted))
        places = np.minimum(np.searchsorted(self.hashes, wanted), len(self.hashes) - 1)
        return np.where(self.hashes[places] == wanted, self.ranks[places], 0.0)


class LinkCollector:
    """Takes links as lines of TSV, `<iri>` or `_:label` before and behind a tab, in pieces of any length."""

    def __init__(self, links_max: int = LINKS_MAX) -> None:
        self._rest = b""
        self._ends: list[Longs] = []
        self._links_max = links_max
        self.count = 0

    def feed(self, piece: bytes) -> None:
        """Raises OverflowError for more links than there may be."""
        whole, _, self._rest = (self._rest + piece).rpartition(b"\n")
        ends = [
            _hash(end)
            for line in whole.split(b"\n")
            if line[:1] in (b"<", b"_")
            for end in line.rstrip(b"\r").split(b"\t", 1)
        ]
        self.count += len(ends) // 2
        if self.count > self._links_max:
            raise OverflowError(f"more than {self._links_max} links")
        self._ends.append(np.array(ends, np.int64))

    def ranks(self) -> PageRanks:
        """Of all that was fed; the collector is empty afterwards."""
        if self._rest:
            self.feed(b"\n")
        ends = np.concatenate([np.zeros(0, np.int64), *self._ends])
        self._ends.clear()
        hashes = np.unique(ends)
        numbers = np.searchsorted(hashes, ends).astype(np.int32)
        ranks = page_rank(numbers[0::2], numbers[1::2], len(hashes))
        return PageRanks(hashes, ranks / ranks.max() if len(ranks) else ranks)


def page_rank(sources: NDArray[np.int32], targets: NDArray[np.int32], count: int) -> Doubles:
    """The rank of each of count resources; their sum is 1. Parallel links count each."""
    if not count:
        return np.zeros(0)
    links = np.bincount(sources, minlength=count)
    weights = np.where(links > 0, 1.0 / np.maximum(links, 1), 0.0)
    idle: Bools = links == 0
    ranks = np.full(count, 1.0 / count)
    for _ in range(ROUNDS_MAX):
        received = np.zeros(count)
        _send(sources, targets, ranks * weights, received)
        following = (1 - DAMPING) / count + DAMPING * (received + ranks[idle].sum() / count)
        change = np.abs(following - ranks).sum()
        ranks = following
        if change < CONVERGED:
            break
    return ranks


@njit(cache=True, nogil=True)
def _send(sources: NDArray[np.int32], targets: NDArray[np.int32], shares: Doubles, received: Doubles) -> None:
    for link in range(len(sources)):
        received[targets[link]] += shares[sources[link]]


_hash = hash
"""Python's own: 64 bits, keyed anew in each process, so nobody can choose IRIs whose hashes are the same."""
