"""`QueryShape`: the solutions of a SELECT that have the same id are a document."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pyoxigraph import BlankNode, NamedNode, Quad

from graphdb.config.limits import GateLimits
from graphdb.errors import RequestError
from graphdb.planning.decisions import is_repeatable
from graphdb.planning.gate import check, read_query
from graphdb.search.errors import SearchError, illegal_argument
from graphdb.search.extension.template import value_as_iri
from graphdb.search.following.query_reach import reach_of
from graphdb.search.following.shape import Documents, Plan, Row, Selection
from graphdb.search.following.values import Value, document_id, merged, value_of
from graphdb.sparql.syntax import Query

__all__ = ["QueryShape", "documents_of"]

_ID = "id"


class QueryShape:
    """Where every document depends on the quads of its own resource only, those that changed are asked for;
    else the whole query is, after any change that it can notice.
    """

    def __init__(self, text: str, limits: GateLimits) -> None:
        """Raises SearchError for what is no SELECT, not one that the gate lets pass, or not one whose answer
        depends on the graph alone.
        """
        query = _read(text, limits)
        self._text = query.text
        self._id = _id_name(query)
        self._reach = reach_of(query, self._id)

    def everything(self) -> Plan[Selection]:
        documents = documents_of((yield self._text), self._id)
        return Selection(list(documents), documents)

    def owners(self, quads: Iterable[Quad]) -> Plan[set[str] | None]:
        predicates = self._reach.predicates
        subjects = {
            quad.subject for quad in quads if predicates is None or quad.predicate.value in predicates
        }
        if subjects and not self._reach.is_star:
            return None
        ids = {subject.value for subject in subjects if isinstance(subject, NamedNode)}
        ids |= {f"_:{subject.value}" for subject in subjects if isinstance(subject, BlankNode)}
        yield from ()
        return ids

    def documents(self, ids: Sequence[str]) -> Plan[Documents]:
        """Blank nodes cannot be named in a query: for one, all are asked for."""
        iris = [iri for one in ids if not one.startswith("_:") and (iri := value_as_iri(one)) is not None]
        found: dict[str, dict[str, Any]] = {}
        if iris:
            rows = yield f"{self._text}\nVALUES ?{self._id} {{ {' '.join(iris)} }}"
            found |= documents_of(rows, self._id)
        if any(one.startswith("_:") for one in ids):
            blank = documents_of((yield self._text), self._id)
            found |= {one: document for one, document in blank.items() if one.startswith("_:")}
        return {one: found[one] for one in ids if one in found}


def documents_of(rows: Iterable[Row], id_name: str) -> dict[str, dict[str, Any]]:
    """By id; several values of one variable become a list. Rows without an id say nothing."""
    gathered: dict[str, dict[str, list[Value]]] = {}
    for row in rows:
        doc_id = document_id(row[id_name]) if id_name in row else None
        if not doc_id:
            continue
        members = gathered.setdefault(doc_id, {})
        for name, term in row.items():
            if name == id_name:
                continue
            members.setdefault(name, []).append(value_of(term))
            if "xml:lang" in term:
                members.setdefault(f"{name}@{term['xml:lang'].lower()}", []).append(value_of(term))
    return {doc_id: {_ID: doc_id, **_merged(members)} for doc_id, members in gathered.items()}


def _merged(members: Mapping[str, list[Value]]) -> dict[str, Value]:
    return {name: merged(values) for name, values in members.items()}


def _read(text: str, limits: GateLimits) -> Query:
    try:
        query = read_query(text, None, limits)
        check(query, limits)
    except RequestError as error:
        raise SearchError("sparql_exception", f"[index.graph.shape.query] {error}") from error
    if query.form != "SELECT":
        raise illegal_argument(f"[index.graph.shape.query] must be a SELECT, found [{query.form}]")
    if query.service_hosts:
        raise illegal_argument(
            "[index.graph.shape.query] has SERVICE, which an index cannot follow: no change of the graph "
            "tells that another service answers differently"
        )
    if not is_repeatable(query):
        raise illegal_argument(
            "[index.graph.shape.query] calls a function of the clock, of chance or of new blank nodes, "
            "which an index cannot follow: its documents would be others each time they are compared"
        )
    return query


def _id_name(query: Query) -> str:
    """?id, or the first column."""
    assert query.select is not None
    assert query.where is not None
    if query.select.projections is None:
        names = sorted(query.where.variables)
    else:
        names = [projection.variable.name for projection in query.select.projections]
    if not names:
        raise illegal_argument("[index.graph.shape.query] selects no variable to name the documents")
    if _ID in names:
        return _ID
    return names[0]
