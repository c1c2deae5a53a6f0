"""Boosts that a search's extension gives to hits: by a query's result and by PageRank."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import orjson
from numpy.typing import NDArray

from graphdb.search.aggregations.aggregation import Scope
from graphdb.search.compiled import compiled
from graphdb.search.deadline import checkpoint
from graphdb.search.extension.extension_request import BoostOption
from graphdb.search.fields import FieldSpec, Storage
from graphdb.search.leaf_reader import Bools, Doubles, Longs
from graphdb.search.query.tree import SCORE_MAX
from graphdb.search.results.field_values import values_at
from graphdb.search.results.matching import Found

__all__ = ["LINKS_MAX", "Enough", "LinkCollector", "PageRanks", "boosted", "page_rank", "spoken_of"]

# PageRank of the resources of a graph: every triple whose object is an IRI or a blank node is a link.
#
# Source: Page, Brin, Motwani, Winograd, "The PageRank citation ranking" (1999); what resources without
# links have is spread over all, as networkx.pagerank does. Memory: 8 bytes an end of a link while links are
# collected, three times that while they are sorted, and 16 bytes a resource afterwards. Texts are not kept:
# a resource is known by a hash of 64 bits, so an IRI that the graph of ten million resources does not have
# is taken for one of them with a probability of 10 to the power of minus 12.

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

    def enough(self, least: float) -> "Enough":
        """Whether an IRI has at least this rank."""
        return lambda iris: self.of(iris) >= least


class LinkCollector:
    """Takes links as lines of TSV, `<iri>` or `_:label` before and after a tab, in pieces of any length."""

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


@compiled(nogil=True)
def _send(sources: NDArray[np.int32], targets: NDArray[np.int32], shares: Doubles, received: Doubles) -> None:
    for link in range(len(sources)):
        received[targets[link]] += shares[sources[link]]


_hash = hash
"""Python's own: 64 bits, keyed again in each process, so a client cannot choose IRIs with equal hashes."""


# `kg_boost`: scores of documents that speak of important resources.

_AT_ONCE = 1_000  # documents between two looks at the clock


Enough: TypeAlias = Callable[[Iterable[str]], Bools]
"""Of each IRI whether it is important enough."""


def boosted(option: BoostOption, enough: Enough, scope: Scope, found: Found) -> Found:
    """The same documents; the scores of those with an important IRI in the field are multiplied."""
    if found.scores is None or not len(found.docs):
        return found
    important = _Important(option, enough, scope).of(found)
    factors = np.where(important, option.factor, 1.0)
    scores = np.minimum(found.scores.astype(np.float64) * factors, SCORE_MAX).astype(np.float32)
    return Found(found.docs, scores)


def spoken_of(option: BoostOption, scope: Scope, found: Found) -> list[str]:
    """The IRIs that `boosted` asks for, each once."""
    spoken: dict[str, None] = {}

    def note(iris: Iterable[str]) -> Bools:
        named = list(iris)
        spoken.update(dict.fromkeys(named))
        return np.zeros(len(named), np.bool_)

    boosted(option, note, scope, found)
    return list(spoken)


@dataclass(frozen=True, slots=True)
class _Important:
    option: BoostOption
    enough: Enough
    scope: Scope

    def of(self, found: Found) -> Bools:
        """Which documents of found have an IRI that is important enough."""
        spec = self.scope.context.mapping.field(self.option.field)
        if spec is not None and spec.storage is Storage.TERMS and spec.doc_values and spec.nested is None:
            return self._by_column(spec, found)
        return self._by_documents(found)

    def _by_column(self, spec: FieldSpec, found: Found) -> Bools:
        """Each term is looked up once, however many documents have it."""
        values = self.scope.columns.ordinals(spec, found.docs)
        dictionary = self.scope.columns.dictionary(spec)
        numbers, inverse = np.unique(values.data, return_inverse=True)
        enough = self.enough(dictionary.term(int(number)) for number in numbers)
        important = np.zeros(len(found.docs), np.bool_)
        important[values.rows[enough[inverse]]] = True
        return important

    def _by_documents(self, found: Found) -> Bools:
        """From `_id`, or the documents themselves, for a field without a column of terms."""
        important = np.zeros(len(found.docs), np.bool_)
        for start in range(0, len(found.docs), _AT_ONCE):
            checkpoint()
            rows: list[int] = []
            iris: list[str] = []
            for row, doc in enumerate(found.docs[start : start + _AT_ONCE].tolist(), start):
                for iri in self._iris(doc):
                    rows.append(row)
                    iris.append(iri)
            enough = self.enough(iris)
            important[np.array(rows, np.int64)[enough]] = True
        return important

    def _iris(self, doc: int) -> Iterator[str]:
        leaf, number = self.scope.columns.locate(doc)
        if self.option.field == "_id":
            yield leaf.segment.doc_id(number)
            return
        source: Any = orjson.loads(leaf.segment.source(number))
        for value in values_at(source, self.option.field):
            if isinstance(value, str):
                yield value
