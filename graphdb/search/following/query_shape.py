"""`QueryShape`: the solutions of a SELECT that have the same id are a document.

Two decisions are made from the algebra of the query: which changes of the graph may concern it, and whether
each document depends on the triples of its own resource only.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyoxigraph import BlankNode, NamedNode, Quad

from graphdb.config.limits import GateLimits
from graphdb.errors import RequestError
from graphdb.geo.entailment import READ_PROPERTIES, is_derived
from graphdb.planning.decisions import is_repeatable
from graphdb.planning.gate import check, check_present, read_query
from graphdb.search.errors import SearchError, illegal_argument
from graphdb.search.extension.template import iri_of
from graphdb.search.following.document_values import Value, document_id, merged, value_of
from graphdb.search.following.shape import Documents, Plan, Row, Selection
from graphdb.sparql.algebra import (
    Algebra,
    Bgp,
    Exists,
    Extend,
    Filter,
    Graph,
    Join,
    LeftJoin,
    Select,
    Union,
    Values,
    join,
    operands_of,
)
from graphdb.sparql.dependencies import predicates_read, triple_patterns
from graphdb.sparql.patterns import TriplePattern
from graphdb.sparql.printing import written_query
from graphdb.sparql.syntax import Query
from graphdb.sparql.terms import Iri, TripleTerm, Variable
from graphdb.sparql.translation import abstract_query, searches_of
from graphdb.sparql.tree_walk import nodes_below

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
        self._asked = abstract_query(query)
        self._predicates = _predicates(self._asked.pattern)
        self._is_star = _is_star(self._asked.select, self._id)

    def everything(self) -> Plan[Selection]:
        documents = documents_of((yield self._text), self._id)
        return Selection(list(documents), documents)

    def owners(self, quads: Iterable[Quad]) -> Plan[set[str] | None]:
        predicates = self._predicates
        subjects = {
            quad.subject for quad in quads if predicates is None or quad.predicate.value in predicates
        }
        if subjects and not self._is_star:
            return None
        ids = {subject.value for subject in subjects if isinstance(subject, NamedNode)}
        ids |= {f"_:{subject.value}" for subject in subjects if isinstance(subject, BlankNode)}
        yield from ()
        return ids

    def documents(self, ids: Sequence[str]) -> Plan[Documents]:
        """Blank nodes cannot be named in a query: for one, all are asked for."""
        iris = [iri for one in ids if not one.startswith("_:") and (iri := iri_of(one)) is not None]
        found: dict[str, dict[str, Any]] = {}
        if iris:
            rows = yield self._asked_for(iris)
            found |= documents_of(rows, self._id)
        if any(one.startswith("_:") for one in ids):
            blank = documents_of((yield self._text), self._id)
            found |= {one: document for one, document in blank.items() if one.startswith("_:")}
        return {one: found[one] for one in ids if one in found}

    def _asked_for(self, iris: Sequence[Iri]) -> str:
        """The query for the documents of these resources only."""
        select = self._asked.select
        values = Values((Variable(self._id),), tuple([(iri,) for iri in iris]))
        made = replace(select, where=join(select.where, values))
        return written_query(replace(self._asked, pattern=made.pattern()))


def _predicates(pattern: Algebra) -> frozenset[str] | None:
    """Of the quads that can matter; None: any."""
    predicates = predicates_read(pattern)
    if predicates is not None and any(map(is_derived, triple_patterns(pattern))):
        predicates |= frozenset(READ_PROPERTIES)
    return predicates


def _is_star(select: Select, id_name: str) -> bool:
    """Whether what the query says of a resource depends on nothing but the quads whose subject it is."""
    if select.is_grouped or select.start is not None or select.length is not None:
        return False
    pattern = Select(select.where, extends=select.extends).pattern()
    return _is_star_group(pattern, id_name) and _binds(pattern, id_name)


def _is_star_group(pattern: Algebra, id_name: str) -> bool:
    waiting = [pattern]
    while waiting:
        node = waiting.pop()
        match node:
            case Bgp(triples=triples):
                if not all(_is_of(triple, id_name) for triple in triples):
                    return False
            case Values():
                pass
            case Join(left=left, right=right):
                waiting += (left, right)
            case LeftJoin(left=left, right=right, condition=condition) if _is_plain(condition):
                waiting += (left, right)
            case Union(branches=branches):
                waiting += branches
            case Graph():
                waiting.append(node.pattern)
            case Filter(expression=expression) if _is_plain(expression):
                waiting.append(node.pattern)
            case Extend(variable=Variable(name=name), expression=expression) if name != id_name and _is_plain(
                expression
            ):
                waiting.append(node.pattern)
            case _:
                return False
    return True


def _is_of(triple: TriplePattern, id_name: str) -> bool:
    subject, predicate = triple.subject, triple.predicate
    is_subject = isinstance(subject, Variable) and subject.name == id_name and not is_derived(triple)
    plain = isinstance(predicate, Iri | Variable) and not isinstance(triple.object, TripleTerm)
    return is_subject and plain


def _is_plain(expression: Any) -> bool:
    """Whether it looks at nothing but its solution."""
    return expression is None or not any(isinstance(node, Exists) for node in nodes_below(expression))


def _binds(pattern: Algebra, id_name: str) -> bool:
    """Whether some pattern that every solution has binds the variable."""
    return any(
        isinstance(operand, Bgp) and any(_is_of(triple, id_name) for triple in operand.triples)
        for operand in operands_of(pattern)
    )


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
        check_present(query)
    except RequestError as error:
        raise SearchError("sparql_exception", f"[index.graph.shape.query] {error}") from error
    if query.form != "SELECT":
        raise illegal_argument(f"[index.graph.shape.query] must be a SELECT, found [{query.form}]")
    if query.service_hosts:
        raise illegal_argument(
            "[index.graph.shape.query] has SERVICE, which an index cannot follow: no change of the graph "
            "tells that another service answers differently"
        )
    if searches_of(query):
        raise illegal_argument("[index.graph.shape.query] has a search, which an index cannot follow")
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
