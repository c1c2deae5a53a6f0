"""The clauses for exact values: `term`, `terms`, `exists`, `ids`."""

from collections.abc import Mapping
from typing import Any

from graphdb.search.errors import illegal_request
from graphdb.search.query.clause import Clause, field_clause, malformed
from graphdb.search.query.compound import ConstantScoreQuery
from graphdb.search.query.context import QueryContext
from graphdb.search.query.exact import any_of, exact, exists_query
from graphdb.search.query.number_queries import IdsQuery
from graphdb.search.query.parsers import ClauseParser, Parse
from graphdb.search.query.tree import MatchAllQuery, MatchNoneQuery, Query, boosted

__all__ = ["PARSERS"]


def _term(body: Mapping[str, Any], context: QueryContext, parse: Parse) -> Query:
    path, clause = field_clause("term", body, "value")
    value = clause.take("value", clause.take("term"))
    if value is None:
        raise illegal_request("value cannot be null")
    if isinstance(value, dict | list):
        clause.refuse("value", value)
    fold = clause.flag("case_insensitive", False)
    clause.done()
    return boosted(exact(path, value, context, fold), clause.boost, clause.name)


def _terms(body: Mapping[str, Any], context: QueryContext, parse: Parse) -> Query:
    fields = [key for key in body if key not in ("boost", "_name")]
    if len(fields) > 1:
        raise malformed("[terms] query does not support multiple fields")
    if not fields:
        raise malformed(
            "[terms] query requires a field name, followed by array of terms or a document lookup "
            "specification"
        )
    clause = Clause("terms", {key: value for key, value in body.items() if key != fields[0]})
    given = body[fields[0]]
    if isinstance(given, Mapping):
        given = _looked_up(given, context)
    if not isinstance(given, list):
        raise malformed(f"[terms] query does not support [{fields[0]}]")
    if any(value is None for value in given):
        raise illegal_request("No value specified for terms query")
    if len(given) > context.max_terms_count:
        raise context.failed(
            f"The number of terms [{len(given)}] used in the Terms Query request has exceeded the allowed "
            f"maximum of [{context.max_terms_count}]. This maximum can be set by changing the "
            "[index.max_terms_count] index level setting."
        )
    if not given:
        return MatchNoneQuery(reason='The "terms" query was rewritten to a "match_none" query.')
    # A field of booleans or dates has queries of its own for a value; the score is the boost all the same.
    query = any_of(fields[0], given, context)
    return boosted(query, clause.boost, clause.name)


def _looked_up(given: Mapping[str, Any], context: QueryContext) -> list[Any]:
    """The terms that another document has at a path."""
    clause = Clause("terms", given, "[{}] query does not support [{}] within lookup element")
    index, doc_id, path = (clause.string(member) for member in ("index", "id", "path"))
    routing = clause.string("routing")
    clause.done()
    for member, value in (("index", index), ("id", doc_id), ("path", path)):
        if value is None:
            raise illegal_request(f"[terms] query lookup element requires specifying the {member}.")
    if context.terms_lookup is None:
        raise illegal_request("[terms] query lookup is not supported here")
    return list(context.terms_lookup(str(index), str(doc_id), str(path), routing))


def _exists(body: Mapping[str, Any], context: QueryContext, parse: Parse) -> Query:
    clause = Clause("exists", body)
    pattern = clause.string("field")
    clause.done()
    if not pattern:
        raise malformed("[exists] must be provided with a [field]")
    if pattern == "_source":
        raise context.failed("The _source field is not searchable")
    spec = context.mapping.field(pattern)
    paths: tuple[str, ...] = (pattern if spec is None else spec.path,)
    if "*" in pattern:
        paths = tuple(spec.path for spec in context.mapping.match(pattern))
    query = exists_query(paths)
    if isinstance(query, MatchAllQuery):
        return boosted(query, clause.boost, clause.name)
    return ConstantScoreQuery(query=query, boost=clause.boost, name=clause.name)


def _ids(body: Mapping[str, Any], context: QueryContext, parse: Parse) -> Query:
    clause = Clause("ids", body, "[{}] unknown field [{}]")
    values = clause.take("values")
    clause.done()
    if values is None:
        raise illegal_request("Required [values]")
    given = values if isinstance(values, list) else [values]
    if any(value is None or isinstance(value, dict | list) for value in given):
        raise malformed("[ids] failed to parse field [values]")
    return IdsQuery(ids=tuple(map(str, given)), boost=clause.boost, name=clause.name)


PARSERS: dict[str, ClauseParser] = {"exists": _exists, "ids": _ids, "term": _term, "terms": _terms}
