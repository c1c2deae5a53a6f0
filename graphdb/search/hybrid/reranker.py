"""`text_similarity_reranker`: a model elsewhere that says how well texts answer a question; what it is
asked, what it answers, and the list of hits that is made of that. And `pinned`, whose list is given, too.

Sources: Elasticsearch 8.19's reference of the retriever; the APIs of Cohere (`/v2/rerank`), of Hugging Face's
Text Embeddings Inference (`/rerank`), and of Elasticsearch (`_inference/rerank`).
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
import orjson

from graphdb.search.aggregations.options import Options, only_member
from graphdb.search.errors import SearchError, illegal_request, parsing
from graphdb.search.hybrid.fusion import FusedQuery, Linear, window_of
from graphdb.search.leaf_reader import Leaf
from graphdb.search.query import Query, QueryContext, Searcher
from graphdb.search.query.features import pinned_scores
from graphdb.search.query.ranked import Ranking, best_of
from graphdb.search.query.several import PerIndexQuery
from graphdb.search.query.tree import SCORE_MAX, Matches

__all__ = [
    "RERANKED",
    "Format",
    "GivenFirstQuery",
    "RerankRequest",
    "Reranker",
    "Rerankers",
    "parse_pinned",
    "parse_reranked",
    "question_of",
    "relevance_of",
    "reranked",
    "with_filters",
]

Format: TypeAlias = Literal["cohere", "tei", "elasticsearch"]
RERANKED = "_reranked"
"""The retriever that stands in the place of a `text_similarity_reranker` once its hits have new scores."""

_TEXT_MAX = 100_000  # characters of one text; models read less
_PINNED_MAX = 100


# What a model is asked, and what it answers.


@dataclass(frozen=True, slots=True)
class Reranker:
    """A model by its address. model: the name that requests give it, None: they give none."""

    format: Format
    model: str | None = None


class Rerankers(Protocol):
    """The models that the configuration names."""

    @property
    def known(self) -> Mapping[str, Reranker]:
        """By name."""

    def named(self, name: str | None) -> str:
        """The name of one; None stands for the only one. Errors: resource_not_found_exception."""

    async def relevance(self, name: str, question: str, texts: Sequence[str]) -> list[float]:
        """Of each text, in any range. Raises UnavailableError where none comes."""


def question_of(reranker: Reranker, question: str, texts: Sequence[str]) -> bytes:
    """The body of the request."""
    texts = [text[:_TEXT_MAX] for text in texts]
    model = {} if reranker.model is None else {"model": reranker.model}
    if reranker.format == "tei":
        return orjson.dumps({"query": question, "texts": texts, "truncate": True})
    if reranker.format == "elasticsearch":
        return orjson.dumps({"query": question, "input": texts})
    return orjson.dumps({**model, "query": question, "documents": texts})


def relevance_of(answer: bytes, count: int) -> list[float]:
    """The relevance of each of so many texts, -inf where the answer has none. Raises ValueError."""
    body = orjson.loads(answer)
    for name in ("results", "data", "rerank"):
        if isinstance(body, dict) and isinstance(body.get(name), list):
            body = body[name]
    if not isinstance(body, list):
        raise ValueError("it has no list of results")
    found = [-math.inf] * count
    for one in body:
        number, score = _result(one)
        if not isinstance(number, int) or not 0 <= number < count:
            raise ValueError("a result has no [index] of a text")
        if isinstance(score, bool) or not isinstance(score, int | float) or not math.isfinite(score):
            raise ValueError("a result has no [relevance_score] or [score] that is a number")
        found[number] = float(score)
    return found


def _result(one: Any) -> tuple[Any, Any]:
    """(index, score) of a result, whatever they are."""
    if not isinstance(one, dict):
        return None, None
    return one.get("index"), one.get("relevance_score", one.get("score"))


# The retriever, before its hits have new scores.


@dataclass(frozen=True, slots=True)
class RerankRequest:
    """retriever: what finds the hits, the filters of those around it among its own."""

    retriever: Mapping[str, Any]
    field: str
    question: str
    inference_id: str | None
    window: int
    score_min: float | None
    name: str | None

    @classmethod
    def parse(cls, body: Any) -> "RerankRequest":
        """The object under `text_similarity_reranker`. Errors: SearchError."""
        options = Options("text_similarity_reranker", body)
        inner, field = options.take("retriever"), options.text("field")
        question, model = options.text("inference_text"), options.text("inference_id")
        for name, value in (("retriever", inner), ("field", field), ("inference_text", question)):
            if value is None:
                raise illegal_request(f"Required [{name}]")
        window = window_of(options, "text_similarity_reranker")
        filters, score_min = options.items("filter"), options.number("min_score")
        named = options.text("_name")
        options.done()
        found_by = with_filters(inner, filters)
        return cls(found_by, field or "", question or "", model, window, score_min, named)

    def of(self, retriever: Mapping[str, Any]) -> "RerankRequest":
        """The same for what another retriever finds."""
        return replace(self, retriever=retriever)

    def search(self) -> dict[str, Any]:
        """The search whose hits get new scores."""
        return {
            "retriever": self.retriever,
            "size": self.window,
            "_source": False,
            "fields": [self.field],
            "track_total_hits": False,
        }

    def texts(self, hits: Iterable[Mapping[str, Any]]) -> list[str]:
        """What the field has in each hit; several values as one text, "" for none."""
        values = (hit.get("fields", {}).get(self.field, ()) for hit in hits)
        return [" ".join(map(str, own)) for own in values]


def with_filters(retriever: Any, filters: Sequence[Any]) -> Mapping[str, Any]:
    """The same retriever, whose documents also match these queries. Errors: parsing_exception."""
    kind, members = only_member(retriever, "retriever")
    if not filters or not isinstance(members, Mapping):  # what is no object is refused where it is parsed
        return {kind: members}
    own = members.get("filter", [])
    listed = own if isinstance(own, list) else [own]
    return {kind: {**members, "filter": [*listed, *filters]}}


def reranked(
    request: RerankRequest, hits: Sequence[Mapping[str, Any]], relevance: Sequence[float]
) -> dict[str, Any]:
    """The retriever with the new scores. Scores may not be negative: where a model gives such ones, all are
    moved, in their order, as Elasticsearch does. A hit without a score comes last.
    """
    has_negative = any(-math.inf < score < 0 for score in relevance)
    docs = []
    for hit, score in zip(hits, relevance, strict=True):
        if score == -math.inf:
            moved = 0.0
        else:
            moved = max(score, 0.0) + min(math.exp(min(score, 0.0)), 1.0) if has_negative else score
        if request.score_min is None or moved >= request.score_min:
            docs.append([hit["_index"], hit["_id"], moved])
    name = {} if request.name is None else {"_name": request.name}
    members = {"retriever": request.retriever, "docs": docs, "rank_window_size": request.window}
    return {RERANKED: {**members, **name}}


# The same as a query, and `pinned`: lists of documents that are named, before those that are found.


@dataclass(frozen=True, kw_only=True)
class _GivenQuery(Query):
    """Documents by their ids, each with its score."""

    scores: Mapping[str, float]

    def matches(self, leaf: Leaf, searcher: Searcher, boost: float = 1.0) -> Matches:
        mask = np.zeros(leaf.segment.size, np.bool_)
        dense = np.zeros(leaf.segment.size, np.float32)
        for doc_id, score in self.scores.items():
            doc = leaf.segment.find(doc_id)
            if doc >= 0:
                mask[doc], dense[doc] = True, np.float32(score * boost * self.boost)
        return Matches(mask & leaf.live, dense)

    def text(self) -> str:
        return f"given({' '.join(self.scores)})"


def _given(docs: Sequence[tuple[str | None, str, float]], context: QueryContext) -> Query:
    """docs: (index, None: any; id; score)."""
    if context.parts:
        return PerIndexQuery(queries=tuple(_given(docs, part) for part in context.parts))
    names = {context.index_name, *(name for name, _ in context.index_names)}
    scores: dict[str, float] = {}
    for index, doc_id, score in docs:
        if index is None or index in names:
            scores.setdefault(doc_id, score)
    return _GivenQuery(scores=scores)


@dataclass(frozen=True, kw_only=True, eq=False)
class GivenFirstQuery(FusedQuery):
    """The list of the first query, whose scores are given, then what else the second has found.

    alone: without that; but what the second matches counts all the same.
    """

    alone: bool

    def rank(self, searcher: Searcher) -> Ranking:
        if self.alone:
            return best_of(self.queries[0], searcher, self.kept)
        first, others = self.lists(searcher)
        beside = np.isin(others.docs, first.docs, invert=True)
        docs = np.concatenate([first.docs, others.docs[beside]])
        return Ranking(docs, np.concatenate([first.scores, others.scores[beside]])).best(self.kept)


def parse_reranked(options: Options, found: Query, context: QueryContext, window: int) -> Query:
    """found: what the retriever inside finds; window: of its list. Errors: SearchError."""
    docs = []
    for one in options.items("docs"):
        if not isinstance(one, list) or len(one) != 3 or not isinstance(one[2], int | float):
            raise SearchError("parsing_exception", f"[{RERANKED}] takes lists of index, id and score")
        docs.append((str(one[0]), str(one[1]), min(max(float(one[2]), 0.0), SCORE_MAX)))
    options.done()
    return _first(docs, found, context, window, alone=True)


def parse_pinned(options: Options, found: Query, context: QueryContext, window: int) -> Query:
    """`ids` or `docs` of the retriever `pinned`. found: as `parse_reranked`. Errors: SearchError."""
    if ("ids" in options) == ("docs" in options):
        raise illegal_request("[pinned] requires one of [ids] and [docs]")
    ids: list[tuple[str | None, str]] = [(None, str(one)) for one in options.items("ids")]
    for one in options.items("docs"):
        if not isinstance(one, Mapping) or "_id" not in one or one.keys() - {"_id", "_index"}:
            raise parsing("[pinned] [docs] takes objects with [_id] and [_index]")
        index = one.get("_index")
        ids.append((None if index is None else str(index), str(one["_id"])))
    options.done()
    if not 0 < len(ids) <= _PINNED_MAX:
        raise illegal_request(f"[pinned] takes one to {_PINNED_MAX} documents")
    scores = reversed(pinned_scores(len(ids)))
    docs = [(index, doc_id, float(score)) for (index, doc_id), score in zip(ids, scores, strict=True)]
    return _first(docs, found, context, window, alone=False)


def _first(
    docs: Sequence[tuple[str | None, str, float]],
    found: Query,
    context: QueryContext,
    window: int,
    *,
    alone: bool,
) -> Query:
    scorer = Linear((1.0, 0.0 if alone else 1.0), ("none", "none"))
    queries = (_given(docs, context), found)
    return GivenFirstQuery(queries=queries, scorer=scorer, window=window, kept=window, alone=alone)
