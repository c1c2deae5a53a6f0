"""The parameters, bodies and answers of RDF4J's REST API: a part of `serve.graph.operations`."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from graphdb.rdf.binary import BINARY_RDF_TYPE
from graphdb.rdf.formats import RdfSyntax
from graphdb.sparql.binary_table import BINARY_TABLE_TYPE
from graphdb.sparql.results import ResultFormat
from serve.graph.sparql import FORM_TYPE, QUERY_TYPE, UPDATE_TYPE
from serve.openapi import TEXT, Operation, Parameter, Schema

__all__ = ["RDF4J_OPERATIONS"]

_ROOM = "RDF4J"
_BINARY: Schema = {"type": "string", "format": "binary"}
_RDF: Mapping[str, Schema] = {
    **{syntax.media_type: TEXT for syntax in RdfSyntax if syntax is not RdfSyntax.N_TRIPLES_STAR},
    BINARY_RDF_TYPE: _BINARY,
}
_TABLES: Mapping[str, Schema] = {
    **{one.media_type: TEXT for one in ResultFormat if "SELECT" in one.applies_to},
    BINARY_TABLE_TYPE: _BINARY,
}
_RESULTS: Mapping[str, Schema] = {
    **{one.media_type: TEXT for one in ResultFormat},
    BINARY_TABLE_TYPE: _BINARY,
    BINARY_RDF_TYPE: _BINARY,
}
_PLAIN: Mapping[str, Schema] = {"text/plain": TEXT}
_JSON_LIST: Mapping[str, Schema] = {"application/json": {"type": "array", "items": {"type": "object"}}}
_JSON: Mapping[str, Schema] = {"application/json": {"type": "object"}}
_FLAG: Schema = {"type": "boolean"}

_ID = Parameter("id", "of the repository: `repository.id`", place="path")
_PREFIX = Parameter("prefix", "a prefix", place="path")
_TRANSACTION = Parameter("transaction", "the id, as in its address", place="path")
_NAME = Parameter("name", "the graph whose IRI is the address of the request", place="path")
_CONTEXT = Parameter(
    "context", "a graph as N-Triples writes it, or `null` for the default graph; may be repeated"
)
_PATTERN = (
    Parameter("subj", "the subject, as N-Triples writes it"),
    Parameter("pred", "the predicate"),
    Parameter("obj", "the object"),
    _CONTEXT,
)
_INFER = Parameter("infer", "has no effect: nothing is inferred", _FLAG)
_BASE = Parameter("baseURI", "the base of relative IRIs")
_KEEP = Parameter("preserveNodeId", "blank nodes are those of the store with these labels", _FLAG)
_KEY = Parameter(
    "Idempotency-Key", "a write that is sent again with its key takes effect once", place="header"
)
_ASKED = (
    Parameter("queryLn", "`SPARQL`"),
    _INFER,
    _BASE,
    Parameter("timeout", "time limit in seconds"),
    Parameter("default-graph-uri", "a graph of the query's default graph; may be repeated"),
    Parameter("named-graph-uri", "a graph that GRAPH reads; may be repeated"),
    Parameter("$name", "the value of the variable `?name`, as N-Triples writes it"),
)
_READ_FAILS, _WRITE_FAILS = (400, 404, 406, 503), (400, 404, 409, 413, 415, 422, 503)


def _read(
    summary: str, answers: Mapping[str, Schema], parameters: Iterable[Parameter] = (), **more: Any
) -> Operation:
    found: dict[str, Any] = {"fails": _READ_FAILS, **more}
    return Operation(_ROOM, summary, answer_types=answers, parameters=tuple(parameters), **found)


def _write(summary: str, parameters: Iterable[Parameter], **more: Any) -> Operation:
    found: dict[str, Any] = {"fails": _WRITE_FAILS, "status": 204, **more}
    return Operation(_ROOM, summary, parameters=(*parameters, _KEY), **found)


def _form(field: str) -> Mapping[str, Schema]:
    return {FORM_TYPE: {"type": "object", "required": [field], "properties": {field: TEXT}}}


_QUERY = _read(
    "Evaluate a query",
    _RESULTS,
    (_ID, Parameter("query", "the query"), *_ASKED),
    says="The default graph of a query is the union of all graphs, unless it or the request names others.",
)
_READ_STATEMENTS = _read("Read statements", _RDF, (_ID, *_PATTERN, _INFER))
_ADD = _write(
    "Add statements, or apply an update",
    (_ID, _CONTEXT, _BASE, _KEEP),
    body_types={**_RDF, UPDATE_TYPE: TEXT, **_form("update")},
)
_GRAPH_PARAMETERS = (
    _ID,
    Parameter("graph", "IRI of the graph"),
    Parameter("default", "the default graph; takes no value"),
)
_READ_GRAPH = _read("Read a graph; empty if it does not exist", _RDF, _GRAPH_PARAMETERS)
_ADD_TO_GRAPH = _write("Add to a graph", _GRAPH_PARAMETERS, body_types=_RDF)
_ACTION = Operation(
    _ROOM,
    "Perform an action in a transaction",
    parameters=(
        _ID,
        _TRANSACTION,
        Parameter(
            "action",
            "what to do",
            {
                "type": "string",
                "enum": ["ADD", "DELETE", "GET", "SIZE", "QUERY", "UPDATE", "PREPARE", "COMMIT", "PING"],
            },
            is_required=True,
        ),
        *_PATTERN,
        _BASE,
        _KEEP,
        Parameter("query", "of QUERY, in place of the body"),
        Parameter("update", "of UPDATE, in place of the body"),
    ),
    answer_types={**_RESULTS, **_RDF, **_PLAIN},
    body_types={**_RDF, QUERY_TYPE: TEXT, UPDATE_TYPE: TEXT},
    needs_body=False,
    fails=(400, 403, 404, 406, 409, 413, 415, 503),
    says="COMMIT is answered with 409, and nothing is stored, if what the transaction has read has changed "
    "since its begin.",
)
_ROOT = "/repositories/{id}"


def _named(operation: Operation) -> Operation:
    """The same for a graph that the path names."""
    rest = [one for one in operation.parameters if one not in _GRAPH_PARAMETERS]
    return replace(
        operation, summary=f"{operation.summary} named by the path", parameters=(_ID, _NAME, *rest)
    )


RDF4J_OPERATIONS: Mapping[tuple[str, str], Operation] = {
    ("/protocol", "GET"): _read("The version of RDF4J's protocol", _PLAIN, fails=()),
    ("/repositories", "GET"): _read("The repositories: one", _TABLES, fails=(406,)),
    (_ROOT, "GET"): _QUERY,
    (_ROOT, "POST"): replace(
        _QUERY, body_types={QUERY_TYPE: TEXT, **_form("query")}, fails=(*_READ_FAILS, 413, 415)
    ),
    (f"{_ROOT}/statements", "GET"): _READ_STATEMENTS,
    (f"{_ROOT}/statements", "POST"): _ADD,
    (f"{_ROOT}/statements", "PUT"): replace(
        _ADD, summary="Replace the statements of a context, or all", body_types=_RDF
    ),
    (f"{_ROOT}/statements", "DELETE"): _write("Delete statements", (_ID, *_PATTERN)),
    (f"{_ROOT}/contexts", "GET"): _read("The graphs that hold statements", _TABLES, (_ID,)),
    (f"{_ROOT}/size", "GET"): _read("The number of statements", _PLAIN, (_ID, _CONTEXT)),
    (f"{_ROOT}/namespaces", "GET"): _read("The prefixes that clients keep", _TABLES, (_ID,)),
    (f"{_ROOT}/namespaces", "DELETE"): _write("Remove all prefixes", (_ID,)),
    (f"{_ROOT}/namespaces/{{prefix}}", "GET"): _read("The IRI of a prefix", _PLAIN, (_ID, _PREFIX)),
    (f"{_ROOT}/namespaces/{{prefix}}", "PUT"): _write(
        "Keep a prefix", (_ID, _PREFIX), body_types={"text/plain": TEXT}
    ),
    (f"{_ROOT}/namespaces/{{prefix}}", "DELETE"): _write("Remove a prefix", (_ID, _PREFIX)),
    (f"{_ROOT}/transactions", "POST"): Operation(
        _ROOM,
        "Begin a transaction",
        parameters=(_ID, Parameter("isolation-level", "has no effect: all are serializable")),
        fails=(400, 404, 503),
        says="Its address is in the header Location.",
        status=201,
    ),
    (f"{_ROOT}/transactions/{{transaction}}", "PUT"): _ACTION,
    (f"{_ROOT}/transactions/{{transaction}}", "POST"): _ACTION,
    (f"{_ROOT}/transactions/{{transaction}}", "DELETE"): Operation(
        _ROOM,
        "Roll a transaction back",
        parameters=(_ID, _TRANSACTION),
        fails=(404,),
        status=204,
    ),
    (f"{_ROOT}/rdf-graphs", "GET"): _read("The graphs that hold statements", _TABLES, (_ID,)),
    (f"{_ROOT}/rdf-graphs/service", "GET"): _READ_GRAPH,
    (f"{_ROOT}/rdf-graphs/service", "POST"): _ADD_TO_GRAPH,
    (f"{_ROOT}/rdf-graphs/service", "PUT"): replace(_ADD_TO_GRAPH, summary="Replace a graph"),
    (f"{_ROOT}/rdf-graphs/service", "DELETE"): _write("Delete a graph", _GRAPH_PARAMETERS),
    (f"{_ROOT}/rdf-graphs/{{name:path}}", "GET"): _named(_READ_GRAPH),
    (f"{_ROOT}/rdf-graphs/{{name:path}}", "POST"): _named(_ADD_TO_GRAPH),
    (f"{_ROOT}/rdf-graphs/{{name:path}}", "PUT"): _named(replace(_ADD_TO_GRAPH, summary="Replace a graph")),
    (f"{_ROOT}/rdf-graphs/{{name:path}}", "DELETE"): _named(_write("Delete a graph", _GRAPH_PARAMETERS)),
    ("/rest/repositories", "GET"): _read("The repositories, as GraphDB lists them", _JSON_LIST, fails=()),
    ("/rest/repositories/{id}", "GET"): _read("The repository, for GraphDB's clients", _JSON, (_ID,)),
    ("/rest/repositories/{id}/size", "GET"): _read("The number of statements", _JSON, (_ID,)),
    ("/rest/locations", "GET"): _read("Where repositories are", _JSON_LIST, fails=()),
    ("/rest/security/authenticated-user", "GET"): _read(
        "The principal of the request, as a user of GraphDB", _JSON, fails=()
    ),
}
