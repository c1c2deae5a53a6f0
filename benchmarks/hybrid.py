"""Words and vectors ranked together: nDCG@10 on the Cranfield collection, against the better of the two.

The vectors are made of the collection alone, by latent semantic analysis (Deerwester et al., "Indexing by
Latent Semantic Analysis", 1990): the singular vectors of its words, weighted by tf-idf. So nothing but the
collection is needed, and anybody can repeat it.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import httpx
import numpy as np
import orjson

from benchmarks.bulk_index import TIMEOUT_S, send_bulk
from benchmarks.cranfield import Document, documents, judgments, queries
from benchmarks.report import Row
from benchmarks.service import RunningService, running_service, work_dir
from graphdb.search.leaf_reader import Floats

__all__ = ["run"]

DOCUMENTS = 1_400
DIMENSIONS = 100
NEAREST = 100  # of the vectors, and how many hits of each list a retriever fuses
SIZE = 10
INDEX = "cranfield"
BATCH = 200

Body: TypeAlias = dict[str, Any]
Asking: TypeAlias = Callable[[str, list[float]], Body]
"""(words, vector) -> the body of a search."""


def run(scale: float) -> list[Row]:
    """Mean nDCG@10; the floor is the better of words alone and vectors alone. scale: the part of the 225
    questions that is asked.
    """
    given = documents(DOCUMENTS)
    asked, relevant = queries(), judgments()
    count = max(3, int(len(asked) * scale))
    asked, relevant = asked[:count], relevant[:count]
    vectors, questions = _latent([_text(fields) for _, fields in given], asked)
    with work_dir() as directory, running_service(directory, searches=True) as service:
        _index(service, given, vectors)

        def measured(body: Asking) -> float:
            return _ndcg(service, body, asked, questions, relevant)

        words = measured(lambda text, _: {"query": _match(text)})
        nearest = measured(lambda _, vector: {"knn": _knn(vector)})
        better = max(words, nearest)
        alone = {"words alone": words, "vectors alone": nearest}
        rows = [Row(work, "nDCG@10", better, ours) for work, ours in alone.items()]
        for work, body in _FUSIONS.items():
            rows.append(Row(work, "nDCG@10", better, measured(body), "at least", 1.0))
    return rows


def _match(text: str) -> Body:
    return {"match": {"text": text}}


def _knn(vector: list[float]) -> Body:
    return {"field": "vector", "query_vector": vector, "k": NEAREST, "num_candidates": 2 * NEAREST}


def _retriever(kind: str, *, normalizer: str | None = None) -> Asking:
    def body(text: str, vector: list[float]) -> Body:
        entries: list[Body] = [{"standard": {"query": _match(text)}}, {"knn": _knn(vector)}]
        if normalizer is not None:
            entries = [{"retriever": one, "weight": 0.5, "normalizer": normalizer} for one in entries]
        return {"retriever": {kind: {"retrievers": entries, "rank_window_size": NEAREST}}}

    return body


_FUSIONS: Mapping[str, Asking] = {
    "query and knn, as the service is set": lambda text, vector: {"query": _match(text), "knn": _knn(vector)},
    "retriever rrf": _retriever("rrf"),
    "retriever linear, minmax, weights 0.5": _retriever("linear", normalizer="minmax"),
    "retriever bayesian": _retriever("bayesian"),
}


def _text(fields: Document) -> str:
    return f"{fields['title']} {fields['text']}"


def _latent(texts: Sequence[str], asked: Sequence[str]) -> tuple[Floats, Floats]:
    """Vectors of documents and questions, (n, DIMENSIONS) each, of length 1, or 0 where no word is known."""
    counts = [Counter(re.findall(r"\w\w+", text.lower())) for text in texts]
    frequencies = Counter(word for count in counts for word in count)
    known = {word: place for place, word in enumerate(w for w, n in frequencies.items() if n > 1)}
    rarity = np.array([math.log(len(texts) / frequencies[word]) for word in known])

    def weights(count: Mapping[str, int]) -> Floats:
        row = np.zeros(len(known), np.float32)
        for word, number in count.items():
            if (place := known.get(word)) is not None:
                row[place] = (1 + math.log(number)) * rarity[place]
        return row / max(float(np.linalg.norm(row)), 1e-9)

    rows = np.array([weights(count) for count in counts])
    topics = np.linalg.svd(rows, full_matrices=False)[2][:DIMENSIONS].T
    questions = np.array([weights(Counter(re.findall(r"\w\w+", text.lower()))) for text in asked])
    return _of_length_1(rows @ topics), _of_length_1(questions @ topics)


def _of_length_1(vectors: Floats) -> Floats:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    shortened: Floats = vectors / np.maximum(lengths, np.float32(1e-9))
    return shortened


def _index(service: RunningService, given: Sequence[tuple[str, Document]], vectors: Floats) -> None:
    vector = {"type": "dense_vector", "dims": DIMENSIONS, "similarity": "cosine"}
    mapping = {"properties": {"text": {"type": "text"}, "vector": vector}}
    with httpx.Client(base_url=service.search_url, timeout=TIMEOUT_S, trust_env=False) as client:
        client.put(f"/{INDEX}", json={"mappings": mapping}).raise_for_status()
        send_bulk(service, INDEX, list(_bulk_bodies(given, vectors)))
        client.post(f"/{INDEX}/_refresh").raise_for_status()


def _bulk_bodies(given: Sequence[tuple[str, Document]], vectors: Floats) -> Iterator[bytes]:
    for start in range(0, len(given), BATCH):
        lines = []
        for number, (_, fields) in enumerate(given[start : start + BATCH], start):
            own: Body = {"vector": vectors[number].tolist()} if vectors[number].any() else {}
            lines.append(b'{"index":{"_id":"%d"}}' % (number + 1))
            lines.append(orjson.dumps({"text": _text(fields)} | own))
        yield b"\n".join(lines) + b"\n"


def _ndcg(
    service: RunningService,
    body: Asking,
    asked: Sequence[str],
    questions: Floats,
    relevant: Sequence[frozenset[int]],
) -> float:
    """The mean over the questions. Source: Järvelin and Kekäläinen, "Cumulated gain-based evaluation of IR
    techniques", 2002, with a gain of 1 for what is relevant.
    """
    found = []
    with httpx.Client(base_url=service.search_url, timeout=TIMEOUT_S, trust_env=False) as client:
        for text, vector, wanted in zip(asked, questions, relevant, strict=True):
            asking = body(text, vector.tolist()) | {"size": SIZE, "_source": False}
            hits = client.post(f"/{INDEX}/_search", json=asking).raise_for_status().json()["hits"]["hits"]
            gain = sum(_discount(rank) for rank, hit in enumerate(hits) if int(hit["_id"]) in wanted)
            found.append(gain / sum(map(_discount, range(min(SIZE, len(wanted))))))
    return sum(found) / len(found)


def _discount(rank: int) -> float:
    return 1 / math.log2(rank + 2)
