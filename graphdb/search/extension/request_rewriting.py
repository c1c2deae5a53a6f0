"""`sparql_expand` and `sparql_filter`: requests that get more alternatives, or fewer documents."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphdb.search.aggregations.aggregation import Scope
from graphdb.search.errors import illegal_request
from graphdb.search.extension.template import Template
from graphdb.search.leaf_reader import Longs

__all__ = [
    "SYNONYMS_MAX",
    "SynonymColumns",
    "Synonyms",
    "candidates_body",
    "expanded",
    "filtered",
    "ids_of",
    "is_ranked",
    "synonyms_of",
    "terms_sought",
]

# `sparql_expand`: what the graph says a term is also called, as further alternatives in the query.

TERMS_MAX = 64  # that a request asks the graph about
SYNONYMS_MAX = 100  # of one term
_DEPTH_MAX = 64  # of a query: deeper ones are refused where they are parsed

Synonyms = Mapping[str, Sequence[str]]
"""By term in lower case."""

# Where clauses have others below them that make a document match. (A synonym in must_not would take away.)
_BELOW: dict[str, tuple[str, ...]] = {
    "bool": ("must", "filter", "should"),
    "boosting": ("positive",),
    "constant_score": ("filter",),
    "dis_max": ("queries",),
    "function_score": ("query",),
    "nested": ("query",),
}


def terms_sought(body: Mapping[str, Any], field: str) -> list[str]:
    """What the request's match clauses seek in the field: their texts, and the words of those with several.

    Errors: illegal_argument_exception for too many.
    """
    found: dict[str, None] = {}

    def note(clause: Mapping[str, Any]) -> Mapping[str, Any]:
        found.update(dict.fromkeys(_terms_of(_text(clause[field]))))
        return {"match": clause}

    _with_queries(body, lambda query: _rewritten(query, field, note, 0))
    if len(found) > TERMS_MAX:
        raise illegal_request(
            f"[sparql_expand] the query seeks [{len(found)}] terms in [{field}], at most [{TERMS_MAX}] are "
            "expanded"
        )
    return list(found)


def expanded(body: Mapping[str, Any], field: str, synonyms: Synonyms) -> Mapping[str, Any]:
    """The request with its match clauses on the field as alternatives: themselves, or any synonym."""

    def widened(clause: Mapping[str, Any]) -> Mapping[str, Any]:
        own = clause[field]
        terms = _terms_of(_text(own))
        others = dict.fromkeys(other for term in terms for other in synonyms.get(term.lower(), ()))
        if not others:
            return {"match": clause}
        boost = own.get("boost", 1.0) if isinstance(own, Mapping) else 1.0
        analyzer = {"analyzer": own["analyzer"]} if isinstance(own, Mapping) and "analyzer" in own else {}
        further = [
            {"match": {field: {"query": other, "operator": "and", "boost": boost, **analyzer}}}
            for other in others
        ]
        return {"bool": {"should": [{"match": clause}, *further], "minimum_should_match": 1}}

    return _with_queries(body, lambda query: _rewritten(query, field, widened, 0))


@dataclass(frozen=True, slots=True)
class SynonymColumns:
    """What the columns of a synonym query mean: words hold synonyms; term, where there is one, holds what
    they are synonyms of. Without it they are synonyms of what was asked.
    """

    words: tuple[str, ...]
    term: str | None = None

    @staticmethod
    def of(template: Template) -> "SynonymColumns":
        """Errors: illegal_argument_exception for columns that say no synonyms."""
        names = template.columns
        if "synonym" in names and (not template.is_filled or "term" in names):
            return SynonymColumns(("synonym",), "term" if template.is_filled else None)
        if names and (not template.is_filled or len(names) == 1):
            return SynonymColumns(names)
        listed = ", ".join(f"?{name}" for name in names[:10]) or "none"
        raise illegal_request(
            "[sparql_expand] the columns of [synonym_query] must be one with synonyms of what is asked, or "
            '?term and ?synonym, or any with synonyms of "{term}" where the query has this placeholder; '
            f"found [{listed}]"
        )

    def pairs(self, rows: Iterable[tuple[Sequence[str], Mapping[str, Any]]]) -> Iterator[tuple[str, str]]:
        """(term, synonym) of rows as in SPARQL's results JSON, each with the terms that it was asked for.

        Only literals are words. Errors: illegal_argument_exception where rows have values, and none is one.
        """
        has_values = has_words = False
        for asked, row in rows:
            has_values = has_values or bool(row)
            terms = asked if self.term is None else _literals(row, (self.term,))
            for word in _literals(row, self.words):
                has_words = has_words or bool(terms)
                yield from ((term, word) for term in terms)
        if has_values and not has_words:
            columns = ", ".join(f"?{name}" for name in (*filter(None, (self.term,)), *self.words))
            raise illegal_request(
                f"[sparql_expand] [{columns}] of [synonym_query] must be literals: IRIs and blank nodes are "
                "no words, select their labels"
            )


def _literals(row: Mapping[str, Any], names: Iterable[str]) -> list[str]:
    return [str(row[name]["value"]) for name in names if name in row and row[name]["type"] == "literal"]


def synonyms_of(terms: Iterable[str], pairs: Iterable[tuple[str, str]]) -> Synonyms:
    """Those of each term, from (term, synonym) in any case; a term is none of its own."""
    found: dict[str, dict[str, None]] = {term.lower(): {} for term in terms}
    for term, synonym in pairs:
        own = found.get(term.lower())
        if own is not None and synonym.lower() != term.lower() and len(own) < SYNONYMS_MAX:
            own[synonym] = None
    return {term: list(own) for term, own in found.items()}


def _terms_of(text: str) -> list[str]:
    """The whole text first."""
    words = text.split()
    return list(dict.fromkeys([" ".join(words), *words])) if words else []


def _text(own: Any) -> str:
    value = own.get("query") if isinstance(own, Mapping) else own
    return value if isinstance(value, str) else ""


def _with_queries(body: Mapping[str, Any], rewrite: Callable[[Any], Any]) -> Mapping[str, Any]:
    """The request with another query wherever it has one that ranks: its own, and those of retrievers."""
    changed = dict(body)
    if "query" in body:
        changed["query"] = rewrite(body["query"])
    if "retriever" in body:
        changed["retriever"] = _with_retriever(body["retriever"], rewrite, 0)
    return changed


def _with_retriever(node: Any, rewrite: Callable[[Any], Any], depth: int) -> Any:
    if depth > _DEPTH_MAX:
        return node
    if isinstance(node, list):
        return [_with_retriever(one, rewrite, depth + 1) for one in node]
    if not isinstance(node, Mapping):
        return node
    changed: dict[str, Any] = {}
    for name, value in node.items():
        if name == "standard" and isinstance(value, Mapping) and "query" in value:
            changed[name] = {**value, "query": rewrite(value["query"])}
        else:
            changed[name] = _with_retriever(value, rewrite, depth + 1)
    return changed


def _rewritten(
    query: Any, field: str, rewrite: Callable[[Mapping[str, Any]], Mapping[str, Any]], depth: int
) -> Any:
    """A query with something else in the place of each match clause on the field."""
    if isinstance(query, list):
        return [_rewritten(one, field, rewrite, depth) for one in query]
    if not isinstance(query, Mapping) or len(query) != 1 or depth > _DEPTH_MAX:
        return query
    [(kind, inside)] = query.items()
    if not isinstance(inside, Mapping):
        return query
    if kind == "match":
        return rewrite(inside) if field in inside else query
    below = _BELOW.get(kind, ())
    return {
        kind: {name: _below(name in below, value, field, rewrite, depth) for name, value in inside.items()}
    }


def _below(
    is_query: bool,
    value: Any,
    field: str,
    rewrite: Callable[[Mapping[str, Any]], Mapping[str, Any]],
    depth: int,
) -> Any:
    return _rewritten(value, field, rewrite, depth + 1) if is_query else value


# `sparql_filter`: which documents are its candidates, and the request with some of them.

_RANKED = ("knn", "retriever", "rank", "sub_searches")


def is_ranked(body: Mapping[str, Any]) -> bool:
    """Whether the documents that count decide which others are found, so that the filter has to come first:
    the nearest vectors are the nearest of those that pass it.
    """
    return any(body.get(name) is not None for name in _RANKED)


def candidates_body(body: Mapping[str, Any]) -> dict[str, Any]:
    """A search that finds at least all documents that a ranked one may look at."""
    if body.get("retriever") is not None:
        return {"query": _all_of(_filters_of_retriever(body["retriever"]))}
    asked = [] if body.get("query") is None else [body["query"]]
    asked += [
        one["query"] for one in _list(body.get("sub_searches")) if isinstance(one, Mapping) and "query" in one
    ]
    asked += [_all_of(_list(one.get("filter"))) for one in _list(body.get("knn")) if isinstance(one, Mapping)]
    return {"query": {"bool": {"should": asked}} if asked else {"match_all": {}}}


def filtered(body: Mapping[str, Any], ids: Sequence[str]) -> dict[str, Any]:
    """A ranked search of the documents with these ids alone."""
    only = {"ids": {"values": list(ids)}}
    changed = dict(body)
    if body.get("retriever") is not None:
        changed["retriever"] = _filtered_retriever(body["retriever"], only)
    if body.get("query") is not None:
        changed["query"] = _both(body["query"], only)
    if body.get("sub_searches") is not None:
        changed["sub_searches"] = [
            {**one, "query": _both(one["query"], only)}
            if isinstance(one, Mapping) and "query" in one
            else one
            for one in _list(body["sub_searches"])
        ]
    if body.get("knn") is not None:
        changed["knn"] = [_with_filter(one, only) for one in _list(body["knn"])]
    return changed


def ids_of(scope: Scope, docs: Longs) -> list[str]:
    """The `_id` of each document, by their numbers in the whole."""
    found: list[str] = []
    for segment, number, part in scope.columns.parts(docs):
        base = scope.columns.leaves[number].base
        found += map(segment.doc_id, (docs[part] - base).tolist())
    return found


def _both(query: Any, only: Mapping[str, Any]) -> dict[str, Any]:
    return {"bool": {"must": [query], "filter": [only]}}


def _all_of(filters: Sequence[Any]) -> dict[str, Any]:
    return {"bool": {"filter": list(filters)}} if filters else {"match_all": {}}


def _filters_of_retriever(node: Any) -> list[Any]:
    members = next(iter(node.values()), None) if isinstance(node, Mapping) else None
    return _list(members.get("filter")) if isinstance(members, Mapping) else []


def _filtered_retriever(node: Any, only: Mapping[str, Any]) -> Any:
    """A filter of the outermost holds for those inside."""
    if not isinstance(node, Mapping):
        return node
    return {kind: _with_filter(members, only) for kind, members in node.items()}


def _with_filter(members: Any, only: Mapping[str, Any]) -> Any:
    if not isinstance(members, Mapping):
        return members  # the parser reports what is wrong
    return {**members, "filter": [*_list(members.get("filter")), only]}


def _list(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]
