"""From the hits of an index of the search port, as JSON, to the table of a search in a query."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from pyoxigraph import BlankNode, Literal, NamedNode

from graphdb.errors import InvalidParameter
from graphdb.sparql.algebra import TextSearch
from graphdb.sparql.printing import literal_of
from graphdb.sparql.search_requests import IndexSearch, Part
from graphdb.sparql.terms import Iri, RdfLiteral
from graphdb.store.search_tables import SearchReport, Table

__all__ = [
    "body_of",
    "candidates_of",
    "document_ids",
    "index_table",
    "is_ranked_alike",
    "vector_of",
    "wanted_of",
    "wider",
]

_XSD: Final = "http://www.w3.org/2001/XMLSchema#"
# What an IRI of a document may be written as between < and >.
_IRI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20<>\"{}|^`\\]*")
_BLANK = re.compile(r"_:[A-Za-z0-9]+")
_ESCAPES = str.maketrans({'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r"})


def body_of(
    request: IndexSearch, vector: Sequence[float] | None, size: int, ids: Sequence[str] | None = None
) -> dict[str, Any]:
    """The body of `_search` that returns so many hits from the first on. vector is that of `like`; with ids,
    documents with other ids are no hits. Raises InvalidParameter for a search that cannot be restricted so.
    """
    body: dict[str, Any] = json.loads(request.body)
    if vector is not None:
        body["knn"] = {**body["knn"], "query_vector": list(vector)}
        body = _filtered(body, {"bool": {"must_not": {"ids": {"values": [request.like]}}}}, ("knn",))
    if ids is not None:
        if "retriever" in body:
            raise InvalidParameter(
                f"search:{request.index}", "is given a retriever, in which a filter says what is searched"
            )
        body = _filtered(body, {"ids": {"values": list(ids)}}, ("knn", "query"))
    return {"track_total_hits": True, **body, "size": size}


def _filtered(body: Mapping[str, Any], clause: Mapping[str, Any], members: Sequence[str]) -> dict[str, Any]:
    """A body whose nearest neighbours and query, as far as it has them, are filtered. Without either, all
    documents are searched.
    """
    made = dict(body)
    if "query" in members and ("query" in body or "knn" not in body):
        query = body.get("query", {"match_all": {}})
        made["query"] = {"bool": {"must": [query], "filter": [clause]}}
    if "knn" in members and "knn" in body:
        several = isinstance(body["knn"], list)
        parts = [{**part, "filter": [*_listed(part.get("filter")), clause]} for part in _listed(body["knn"])]
        made["knn"] = parts if several else parts[0]
    return made


def is_ranked_alike(request: IndexSearch) -> bool:
    """Whether hits have the same order and scores whatever documents are searched beside theirs: of a query,
    or of nearest neighbours in one field, and nothing else.
    """
    body = json.loads(request.body)
    return body.keys() <= {"query", "highlight"} or (
        body.keys() <= {"knn", "highlight"} and isinstance(body["knn"], dict) and "k" in body["knn"]
    )


def wanted_of(request: IndexSearch) -> int | None:
    """How many hits such a search asks for, with those that it leaves out; None for all."""
    given = None if request.limit is None else request.limit + request.offset
    body = json.loads(request.body)
    if "knn" not in body:
        return given
    k: int = body["knn"]["k"]
    return k if given is None else min(k, given)


def wider(request: IndexSearch, count: int) -> IndexSearch:
    """Such a search for so many hits, of which none are left out."""
    body = json.loads(request.body)
    if "knn" in body:
        candidates = max(count, body["knn"].get("num_candidates", 0))
        body["knn"] = {**body["knn"], "k": count, "num_candidates": candidates}
    return replace(request, body=json.dumps(body, sort_keys=True), limit=count, offset=0)


def candidates_of(search: TextSearch, hits: Sequence[Mapping[str, Any]]) -> Table:
    """The entities of hits."""
    assert search.entity is not None
    rows = [(_entity_of(hit["_id"]),) for hit in hits if hit.get("_id") is not None]
    request = search.request
    assert isinstance(request, IndexSearch)
    report = SearchReport(request.index, request.body, len(hits), len(rows), 0, "")
    return Table((search.entity.name,), rows, report)


def document_ids(entities: Iterable[Any]) -> list[str]:
    """The ids of the documents that are about terms; a term that no document is about has none."""
    ids = []
    for term in entities:
        match term:
            case NamedNode() | Literal():
                doc_id = term.value
            case BlankNode():
                doc_id = str(term)
            case _:
                continue
        if _entity_of(doc_id) == str(term):
            ids.append(doc_id)
    return ids


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def vector_of(request: IndexSearch, document: Mapping[str, Any] | None) -> list[float]:
    """The vector of the resource that is to be resembled. Raises InvalidParameter."""
    field = json.loads(request.body)["knn"]["field"]
    value: Any = None if document is None else document.get("_source")
    for name in field.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    if not isinstance(value, list):
        raise InvalidParameter(
            f"search:{request.index}", f"<{request.like}> has no vector in {field} of a document of its own"
        )
    return value


def index_table(
    search: TextSearch, hits: Sequence[Mapping[str, Any]], total: int, log_index: int, plan: str
) -> Table:
    """One row for each hit, or for each fragment where highlights are wanted; all of them have the total.

    plan says how the hits are joined, or chosen.
    """
    request = search.request
    assert isinstance(request, IndexSearch)
    parts = [Part(part) for part, _ in search.columns]
    fixed = [(part, _written(term)) for part, term in search.fixed]
    total_cell = f'"{total}"^^<{_XSD}integer>'
    has_hits = {Part.TOTAL, *parts, *(Part(part) for part, _ in fixed)} != {Part.TOTAL}
    found = (row for hit in hits for row in _rows(hit, parts)) if has_hits else iter([{}])
    rows = []
    for row in found:
        row[Part.TOTAL] = total_cell
        if all(row.get(part) == value for part, value in fixed):
            rows.append(tuple([row.get(part) for part in parts]))
    names = tuple(variable.name for _, variable in search.columns)
    return Table(names, rows, SearchReport(request.index, request.body, total, len(rows), log_index, plan))


def _rows(hit: Mapping[str, Any], parts: Sequence[Part]) -> Iterator[dict[str, str | None]]:
    score, doc_id = hit.get("_score"), hit.get("_id")
    row: dict[str, str | None] = {
        Part.SUBJECT: None if doc_id is None else _entity_of(doc_id),
        Part.ID: None if doc_id is None else _text(doc_id),
        Part.INDEX: _text(hit["_index"]),
        Part.SCORE: None if score is None else f'"{score!r}"^^<{_XSD}float>',
    }
    if Part.SOURCE in parts:
        row[Part.SOURCE] = _text(json.dumps(hit.get("_source", {}), ensure_ascii=False))
    fragments = (
        [(field, text) for field, texts in hit.get("highlight", {}).items() for text in texts]
        if Part.HIGHLIGHT in parts or Part.FIELD in parts
        else []
    )
    if not fragments:
        yield row
    for field, text in fragments:
        yield {**row, Part.FIELD: _text(field), Part.HIGHLIGHT: _text(text)}


def _entity_of(doc_id: str) -> str:
    """The term that the id of a document stands for, in N-Triples; one that is no resource's is a string."""
    if _BLANK.fullmatch(doc_id):
        return doc_id
    return f"<{doc_id}>" if _IRI.fullmatch(doc_id) else _text(doc_id)


def _text(value: str) -> str:
    return f'"{value.translate(_ESCAPES)}"'


def _written(term: Iri | RdfLiteral) -> str:
    return f"<{term.value}>" if isinstance(term, Iri) else str(literal_of(term))
