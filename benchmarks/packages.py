"""Documents that look like the descriptions of packages, made from a seed, and searches of them.

A document has a title, a description of 30 to 100 words, keywords, a number, a date and a vector. The words
are as frequent as in a language (Zipf); the vectors lie in clusters.
"""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from typing import Any, TypeAlias

import numpy as np
import orjson
from numpy.typing import NDArray

__all__ = ["MAPPING", "SEARCHES", "VECTOR_SEARCHES", "Packages"]

DIMS, K, CANDIDATES = 64, 10, 100
WORDS, CLUSTERS, LICENCES, LABELS = 20_000, 400, 12, 200
DAYS, FIRST_DAY = 3650, date(2015, 1, 1)
DOWNLOADS = 1_000_000
MAPPING: dict[str, Any] = {
    "properties": {
        "title": {"type": "text"},
        "description": {"type": "text"},
        "licence": {"type": "keyword"},
        "labels": {"type": "keyword"},
        "downloads": {"type": "integer"},
        "released": {"type": "date"},
        "vector": {"type": "dense_vector", "dims": DIMS, "similarity": "cosine"},
    }
}
Search: TypeAlias = dict[str, Any]


class Packages:
    """So many documents; their identifiers are their numbers."""

    def __init__(self, count: int) -> None:
        chance = np.random.default_rng(5)
        self.count = count
        self._names = _words()
        chances = 1 / (np.arange(WORDS) + 3.0)
        lengths = chance.integers(30, 101, count)
        self._ends = np.cumsum(lengths)
        draws = chance.random(int(self._ends[-1]))
        self._text = np.searchsorted(np.cumsum(chances / chances.sum()), draws).clip(max=WORDS - 1)
        self._licences = (chance.exponential(2.0, count)).astype(np.int64).clip(max=LICENCES - 1)
        self._labels = (chance.exponential(30.0, (count, 3))).astype(np.int64).clip(max=LABELS - 1)
        self._downloads = (DOWNLOADS ** chance.random(count)).astype(np.int64)
        self._days = chance.integers(0, DAYS, count)
        centres = chance.standard_normal((CLUSTERS, DIMS))
        near = centres[chance.integers(0, CLUSTERS, count)]
        # As they are written, so that what is near in one place is near in the other.
        self._vectors = np.round(0.7 * near + 0.5 * chance.standard_normal((count, DIMS)), 4)
        self._units = self._vectors / np.linalg.norm(self._vectors, axis=1, keepdims=True)

    def document(self, number: int) -> bytes:
        """As JSON."""
        words = self.words(number)
        return orjson.dumps(
            {
                "title": " ".join(words[:4]),
                "description": " ".join(words),
                "licence": f"licence-{self._licences[number]}",
                "labels": [f"label-{label}" for label in self._labels[number].tolist()],
                "downloads": int(self._downloads[number]),
                "released": (FIRST_DAY + timedelta(days=int(self._days[number]))).isoformat(),
                "vector": self._vectors[number].tolist(),
            }
        )

    def words(self, number: int) -> list[str]:
        """Of the description."""
        start = self._ends[number - 1] if number else 0
        return [self._names[word] for word in self._text[start : self._ends[number]].tolist()]

    def bulk_bodies(self, batch: int) -> Iterator[bytes]:
        """All documents, so many in a request."""
        for start in range(0, self.count, batch):
            lines = []
            for number in range(start, min(start + batch, self.count)):
                lines += [b'{"index":{"_id":"%d"}}' % number, self.document(number)]
            yield b"\n".join(lines) + b"\n"

    def near(self, chance: random.Random) -> list[float]:
        """A vector in a cluster."""
        number = chance.randrange(self.count)
        moved = [value + chance.gauss(0, 0.3) for value in self._vectors[number].tolist()]
        return [round(value, 4) for value in moved]

    def nearest(self, search: Mapping[str, Any]) -> set[str]:
        """The identifiers that a search by vector would find if it compared all that its filter allows."""
        wanted = search["knn"]
        allowed = np.ones(self.count, np.bool_)
        if "filter" in wanted:
            bounds = wanted["filter"]["range"]["downloads"]
            allowed = (self._downloads >= bounds["gte"]) & (self._downloads < bounds["lt"])
        rows: NDArray[np.int64] = np.flatnonzero(allowed)
        order = np.argsort(-(self._units[rows] @ np.array(wanted["query_vector"])))[:K]
        return {str(row) for row in rows[order].tolist()}

    def some_words(self, chance: random.Random, count: int) -> str:
        """Different ones of one description."""
        return " ".join(chance.sample(sorted(set(self.words(chance.randrange(self.count)))), count))

    def next_words(self, chance: random.Random, count: int) -> str:
        """As they stand in a description."""
        words = self.words(chance.randrange(self.count))
        start = chance.randrange(len(words) - count)
        return " ".join(words[start : start + count])

    def one_percent(self, chance: random.Random) -> dict[str, Any]:
        """A filter that so many documents pass: the logarithm of the number is spread evenly."""
        low = DOWNLOADS ** chance.uniform(0.4, 0.98)
        return {"range": {"downloads": {"gte": int(low), "lt": int(low * DOWNLOADS**0.01) + 1}}}


def _words() -> list[str]:
    """All different, and pronounceable."""
    chance = random.Random(3)
    names: dict[str, None] = {}
    while len(names) < WORDS:
        syllables = [chance.choice("bdfgklmnprstvz") + chance.choice("aeiou") for _ in range(4)]
        names["".join(syllables[: chance.choice((2, 3, 3, 4))]) + chance.choice("lnrx")] = None
    return list(names)


def _match(packages: Packages, chance: random.Random, operator: str) -> Search:
    words = packages.some_words(chance, 3)
    return {"query": {"match": {"description": {"query": words, "operator": operator}}}}


def _filtered(packages: Packages, chance: random.Random) -> Search:
    day = FIRST_DAY + timedelta(days=chance.randrange(DAYS // 2))
    filters = [
        {"term": {"licence": f"licence-{chance.randrange(4)}"}},
        {"range": {"downloads": {"gte": chance.randrange(1000)}}},
        {"range": {"released": {"gte": day.isoformat()}}},
    ]
    must = {"match": {"description": packages.some_words(chance, 2)}}
    return {"query": {"bool": {"must": [must], "filter": filters}}}


def _counted(chance: random.Random, aggregation: dict[str, Any], query: dict[str, Any] | None) -> Search:
    """Without hits. The name makes it one that was not asked before."""
    asked: Search = {"size": 0, "aggs": {f"by_{chance.randrange(1 << 40)}": aggregation}}
    return asked if query is None else asked | {"query": query}


def _nearest(packages: Packages, chance: random.Random, filtered: bool) -> Search:
    knn: dict[str, Any] = {"field": "vector", "query_vector": packages.near(chance)}
    knn |= {"k": K, "num_candidates": CANDIDATES}
    if filtered:
        knn["filter"] = packages.one_percent(chance)
    return {"knn": knn, "_source": False}


def _sorted(packages: Packages, chance: random.Random) -> Search:
    match = {"match": {"description": packages.some_words(chance, 1)}}
    return {"query": match, "sort": [{"downloads": "desc"}, {"released": "asc"}]}


SEARCHES: Mapping[str, Callable[[Packages, random.Random], Search]] = {
    "match, any of 3 words": lambda packages, chance: _match(packages, chance, "or"),
    "match, all of 3 words": lambda packages, chance: _match(packages, chance, "and"),
    "phrase of 2 words": lambda packages, chance: {
        "query": {"match_phrase": {"description": packages.next_words(chance, 2)}}
    },
    "bool: 2 words, 3 filters": _filtered,
    "terms of a query": lambda packages, chance: _counted(
        chance,
        {"terms": {"field": "labels"}},
        {"match": {"description": packages.some_words(chance, 1)}},
    ),
    "terms of all": lambda packages, chance: _counted(chance, {"terms": {"field": "labels"}}, None),
    "histogram of a query": lambda packages, chance: _counted(
        chance,
        {"histogram": {"field": "downloads", "interval": 10_000 + chance.randrange(1000)}},
        {"match": {"description": packages.some_words(chance, 1)}},
    ),
    "date_histogram of a query": lambda packages, chance: _counted(
        chance,
        {"date_histogram": {"field": "released", "calendar_interval": "month"}},
        {"match": {"description": packages.some_words(chance, 1)}},
    ),
    "sorted by a number, then a date": _sorted,
    "knn of all": lambda packages, chance: _nearest(packages, chance, False),
    "knn of 1 %": lambda packages, chance: _nearest(packages, chance, True),
}
"""By what each is: a new search at each call."""
VECTOR_SEARCHES: Sequence[str] = ("knn of all", "knn of 1 %")
