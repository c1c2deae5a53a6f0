"""The parameters, bodies and answers of each route of the graph port: the contents of `/openapi.json`.

The table is by path and method, like that of permissions (`serve/access/authorization.py`). A test holds that
it has each route, and no other.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from graphdb.geo.entailment import Entailment
from graphdb.holonic.names import Layer
from graphdb.node import ClusterReport, Consistency, RunningQuery
from graphdb.rdf.formats import RdfSyntax
from graphdb.rdf.patch import PATCH_TYPE
from graphdb.rdf.thrift import THRIFT_TYPE
from graphdb.saved_queries import SavedQuery
from graphdb.sparql.results import ResultFormat
from serve.graph.administration import NewLeader, NewMember
from serve.graph.alerts import AlertBody
from serve.graph.answer_shapes import (
    AlertHistory,
    AlertList,
    AlertTest,
    ApiKeyList,
    CallResult,
    Confirmed,
    Depths,
    GraphConfirmed,
    GraphQLRequest,
    GraphQLResult,
    HealthRecord,
    HistoryRecord,
    Holon,
    HolonicHealth,
    HolonList,
    MembraneReport,
    NamedStateList,
    NamedStateRecord,
    PortalList,
    PurgeList,
    PurgeShown,
    QueryCheck,
    QueryList,
    SavedQueryList,
    SchemaRefreshed,
    ServiceIndex,
    ShownAlert,
    StateDifference,
    Success,
    ValidationReport,
    WhoAmI,
)
from serve.graph.changes import EVENTS, NDJSON
from serve.graph.geospatial import CallBody
from serve.graph.graphql.http_messages import ResultMedia
from serve.graph.history import DIFF_TYPE, HISTORY_SYNTAXES
from serve.graph.holonic.holonic_service import HolonBody, LayerBody, PortalBody, RunBody
from serve.graph.rdf4j.operations import RDF4J_OPERATIONS
from serve.graph.saved_queries import SavedQueryBody
from serve.graph.shacl import ValidationBody
from serve.graph.sparql import FORM_TYPE, QUERY_TYPE, UPDATE_TYPE
from serve.openapi import TEXT, Operation, Parameter, Schema

__all__ = ["OPERATIONS", "ROOMS"]

ROOMS = {
    "SPARQL": "Queries and updates, by the SPARQL 1.1 Protocol.",
    "graphs": "Whole graphs, by the SPARQL 1.1 Graph Store HTTP Protocol.",
    "GraphQL": "GraphQL over HTTP, and the schema.",
    "changes": "The changes of every write.",
    "history": "What changed in the past.",
    "SHACL": "Graphs against shapes.",
    "GeoSPARQL": "Functions of GeoSPARQL.",
    "alerts": "Queries on an interval that call webhooks.",
    "holons": "Holons, their layers and portals.",
    "agents": "Tools for agents, by the Model Context Protocol (docs/clients.md).",
    "Fuseki": "The paths of Apache Jena Fuseki, for its clients. They do what the native paths do.",
    "queries": "Running queries and updates.",
    "saved queries": "Queries that users keep in the service.",
    "RDF4J": "The REST API of RDF4J, for its clients and those of GraphDB.",
    "cluster": "The members and the leader.",
    "service": "The state of the service.",
}

_FLAG: Schema = {"type": "boolean"}
_INDEX: Schema = {"type": "integer", "minimum": 0}
_IRI: Schema = {"type": "string", "format": "iri"}
_IRIS: Schema = {"type": "array", "items": _IRI}
_READ_FAILS = (400, 406, 503)
_WRITE_FAILS = (400, 409, 413, 415, 422, 503)
_RDF: dict[str, Schema] = {
    syntax.media_type: TEXT for syntax in RdfSyntax if syntax is not RdfSyntax.N_TRIPLES_STAR
}
_RDF_BODIES: Mapping[str, Schema] = {**_RDF, THRIFT_TYPE: {"type": "string", "format": "binary"}}
_REPORT_RDF = {name: TEXT for name in _RDF if name not in ("application/trig", "application/n-quads")}


def _one_of(values: Iterable[str], default: str | None = None) -> Schema:
    schema: dict[str, Any] = {"type": "string", "enum": list(values)}
    return schema if default is None else schema | {"default": default}


def _form(required: str, says: str, parameters: Iterable[Parameter]) -> dict[str, Schema]:
    """A form with one required field, and the query parameters as further fields."""
    fields = {required: {"type": "string", "description": says}}
    fields |= {
        one.name: {**one.schema, "description": one.says} for one in parameters if one.place == "query"
    }
    return {FORM_TYPE: {"type": "object", "required": [required], "properties": fields}}


_PAST = (
    Parameter("resource", "statements that have this IRI anywhere; an IRI, or a term of N-Triples"),
    Parameter("subject", "of the statements; an IRI, or a term of N-Triples"),
    Parameter("predicate", "of the statements"),
    Parameter("object", "of the statements"),
    Parameter("graph", "of the statements"),
    Parameter("default", "only the default graph; takes no value"),
    Parameter("from", "the state behind which changes count: a log index, a time of RFC 3339, or a name"),
    Parameter("to", "the state up to which they count; the present one without it"),
)
_STATE_NAME = Parameter("name", "name of a state of the past", place="path")
_TIMEOUT = Parameter("timeout", "time limit, in seconds or with a unit: `2.5`, `2.5s` or `2500ms`")
_MIN_INDEX = Parameter("min_index", "read a state at this log index or later", _INDEX)
_AS_OF = Parameter(
    "as_of",
    "read the state of the past at this log index, at this time (RFC 3339), or of this name (`/snapshots`)",
    {"type": "string"},
)
_CONSISTENCY = Parameter(
    "consistency",
    "in a cluster: how recent the answer must be",
    _one_of((level.value for level in Consistency), Consistency.LOCAL.value),
)
_KEY = Parameter(
    "Idempotency-Key", "a write that is sent again with its key takes effect once", place="header"
)
_LEVEL = Parameter(
    "X-Consistency", "the same as `consistency`", _one_of(level.value for level in Consistency), "header"
)
_TAG = Parameter("If-None-Match", "an ETag: 304 while the data are unchanged", place="header")
_PRESENT = (_TIMEOUT, _MIN_INDEX, _CONSISTENCY, _LEVEL)
_FRESH = (*_PRESENT, _AS_OF)

_QUERY_PARAMETERS = (
    Parameter("default-graph-uri", "a graph of the query's default graph; may be repeated", _IRIS),
    Parameter("named-graph-uri", "a graph that GRAPH reads; may be repeated", _IRIS),
    Parameter(
        "format",
        "a media type, or one of "
        + ", ".join(f"`{one.value}`" for one in ResultFormat if not one.value.startswith("plain-"))
        + "; takes precedence over Accept",
    ),
    *_FRESH,
    Parameter(
        "query_id",
        "the id in `/queries`, by which the query can be cancelled: 8 to 64 letters, digits and hyphens",
    ),
    Parameter("explain", "return how the service evaluates the query, in place of the answer", _FLAG),
    Parameter(
        "entailment",
        "what triple patterns match in addition to asserted triples",
        _one_of(one.value for one in Entailment),
    ),
)
# SPARQL 1.1 Query Results JSON Format, sections 3 and 4; an explanation is plain JSON
_RESULTS: Schema = {
    "type": "object",
    "required": ["head"],
    "properties": {
        "head": {"type": "object", "properties": {"vars": {"type": "array", "items": TEXT}}},
        "results": {
            "type": "object",
            "properties": {"bindings": {"type": "array", "items": {"type": "object"}}},
        },
        "boolean": _FLAG,
    },
}
_BY_TYPE: dict[str, Schema] = {
    "application/sparql-results+json": _RESULTS,
    "application/json": {"type": "object"},
    "application/ld+json": {"type": ["array", "object"]},
}
_QUERY = Operation(
    "SPARQL",
    "Evaluate a query",
    answer_types={one.media_type: _BY_TYPE.get(one.media_type, TEXT) for one in ResultFormat},
    parameters=_QUERY_PARAMETERS,
    fails=_READ_FAILS,
    says="SELECT, ASK, CONSTRUCT or DESCRIBE of SPARQL 1.2. `X-Snapshot-Index` says which state was read.",
)
_UPDATE_PARAMETERS = (
    Parameter("using-graph-uri", "a graph of the default graph of WHERE; may be repeated", _IRIS),
    Parameter("using-named-graph-uri", "a graph that GRAPH reads in WHERE; may be repeated", _IRIS),
    _KEY,
)

_QUERY_BY_GET = replace(
    _QUERY,
    parameters=(Parameter("query", "without it: the service description, as RDF"), *_QUERY_PARAMETERS, _TAG),
)
_UPDATE_EXAMPLE = {**TEXT, "examples": ['INSERT DATA { <urn:a> <urn:b> "c" }']}
_QUERY_BY_POST = replace(
    _QUERY,
    summary="Evaluate a query, or apply an update",
    body_types={
        QUERY_TYPE: {**TEXT, "examples": ["SELECT * WHERE { ?s ?p ?o } LIMIT 10"]},
        UPDATE_TYPE: _UPDATE_EXAMPLE,
        **_form("query", "the query; in its place `update` with an update", _QUERY_PARAMETERS),
    },
    fails=(*_READ_FAILS, 403, 413, 415),
    says=f"{_QUERY.says} An update needs the permission Write, and is answered as by `/update`.",
)
_UPDATE = Operation(
    "SPARQL",
    "Apply an update",
    answer=Confirmed,
    parameters=_UPDATE_PARAMETERS,
    body_types={UPDATE_TYPE: _UPDATE_EXAMPLE, **_form("update", "the update", _UPDATE_PARAMETERS)},
    fails=(*_WRITE_FAILS, 403),
    says="Several operations, separated by `;`, are applied as one. Answered when the change is on disk.",
)

_PATH_GRAPH = Parameter("name", "the graph whose IRI is the address of the request", place="path")
_DATASET_NAME = Parameter("dataset", "`server.dataset_name`", place="path")
_GRAPH = Parameter("graph", "IRI of the graph; without it, the default graph", _IRI)
_DEFAULT = Parameter("default", "the default graph; takes no value")
_SYNTAX = Parameter("format", "a media type or the name of a syntax; takes precedence over Accept")
_DATASET = Parameter("dataset", "everything, as N-Quads, TriG or JSON-LD", _one_of(["all"]))
_BULK = Parameter(
    "bulk", "true: N-Quads, as many as `server.max_load_bytes` and the disk allow, become one change", _FLAG
)
_READ_GRAPH = Operation(
    "graphs",
    "Read a graph",
    answer_types=_RDF,
    parameters=(_GRAPH, _DEFAULT, _DATASET, _SYNTAX, _MIN_INDEX, _CONSISTENCY, _LEVEL, _AS_OF, _TAG),
    fails=(*_READ_FAILS, 404),
)
_PUT_GRAPH = Operation(
    "graphs",
    "Replace a graph",
    answer=Confirmed,
    parameters=(_GRAPH, _DEFAULT, _KEY),
    body_types=_RDF_BODIES,
    fails=_WRITE_FAILS,
    says="TriG and N-Quads without `graph` replace every graph that the body names.",
)
_POST_GRAPH = replace(
    _PUT_GRAPH,
    summary="Merge into a graph",
    parameters=(_GRAPH, _DEFAULT, _BULK, _KEY),
    body_types={**_RDF_BODIES, PATCH_TYPE: TEXT},
    says="TriG and N-Quads without `graph` merge into the graphs that the body names. A patch is applied.",
)
_PATCH = Operation(
    "graphs",
    "Apply an RDF Patch",
    answer=Confirmed,
    parameters=(_KEY,),
    body_types={PATCH_TYPE: TEXT},
    fails=_WRITE_FAILS,
)
_DELETE_GRAPH = Operation(
    "graphs",
    "Delete a graph, or empty the default graph",
    answer=Confirmed,
    parameters=(_GRAPH, _DEFAULT, _KEY),
    fails=(400, 404, 409, 422, 503),
)


def _by_path(operation: Operation) -> Operation:
    """The same for a graph that the path names."""
    others = [one for one in operation.parameters if one not in (_GRAPH, _DEFAULT, _DATASET, _BULK)]
    return replace(
        operation, summary=f"{operation.summary} named by the path", parameters=(_PATH_GRAPH, *others)
    )


def _fuseki_operations() -> dict[tuple[str, str], Operation]:
    """The paths of Fuseki, which have the operations of the native ones."""

    def here(operation: Operation, place: Parameter = _DATASET_NAME) -> Operation:
        return replace(operation, room="Fuseki", parameters=(place, *operation.parameters))

    found: dict[tuple[str, str], Operation] = {}
    for path in ("/{dataset}", "/{dataset}/query", "/{dataset}/sparql"):
        found[path, "GET"], found[path, "POST"] = here(_QUERY_BY_GET), here(_QUERY_BY_POST)
    found["/{dataset}/update", "POST"] = here(_UPDATE)
    found["/{dataset}/patch", "POST"] = here(_PATCH)
    for path in ("/{dataset}/data", "/{dataset}/get"):
        found[path, "GET"] = here(_READ_GRAPH)
    found["/{dataset}/data", "POST"] = here(_POST_GRAPH)
    for path in ("/{dataset}", "/{dataset}/data"):
        found[path, "PUT"], found[path, "DELETE"] = here(_PUT_GRAPH), here(_DELETE_GRAPH)
    name, task = replace(_DATASET_NAME, name="name"), Parameter("id", "of a task", place="path")
    for path, summary, parameters, fails in (
        ("/$/server", "The server as Fuseki shows it", (), ()),
        ("/$/datasets", "The datasets", (), ()),
        ("/$/datasets/{name}", "One dataset", (name,), (404,)),
        ("/$/stats", "Counts of queries", (), ()),
        ("/$/stats/{name}", "Counts of one dataset's queries", (name,), (404,)),
        ("/$/backups-list", "The files of backups", (), ()),
        ("/$/tasks", "The tasks", (), ()),
        ("/$/tasks/{id}", "One task", (task,), (404,)),
    ):
        found[path, "GET"] = Operation("Fuseki", summary, dict[str, Any], parameters=parameters, fails=fails)
    found["/$/tasks", "GET"] = replace(found["/$/tasks", "GET"], answer=list[dict[str, Any]])
    for path, summary in (
        ("/$/backup/{name}", "Start a backup"),
        ("/$/compact/{name}", "Start a compaction"),
    ):
        found[path, "POST"] = Operation(
            "Fuseki", summary, dict[str, Any], parameters=(name,), fails=(404, 503)
        )
    for method in ("GET", "POST"):
        found["/$/ping", method] = Operation("Fuseki", "The time", answer_types={"text/plain": TEXT})
    return found


_GRAPHQL = Operation(
    "GraphQL",
    "Execute an operation",
    answer=GraphQLResult,
    answer_types={ResultMedia.GRAPHQL.value: {"$ref": "#/components/schemas/GraphQLResult"}},
    parameters=_FRESH,
    body=GraphQLRequest,
    fails=(400, 406, 413, 415, 503),
    says="Errors of GraphQL are members of the result.",
)
_GRAPHQL_FIELDS = (
    Parameter("query", "the document"),
    Parameter("variables", "a JSON object"),
    Parameter("operationName", "which operation of the document"),
    Parameter("extensions", "a JSON object"),
)

_REPORT_FORMAT = Parameter(
    "format", "`json`, `turtle`, `ntriples`, `rdfxml`, `jsonld` or a media type; takes precedence over Accept"
)
_ALERT = Parameter("alert", "id or name", place="path")
_ALERT_FAILS = (404, 503)
_CHANGE_FAILS = (404, 422, 503)
_TENANT = Parameter("tenant", "the tenant; by default that of `holonic.default_tenant`")
_HOLON = Parameter("iri", "IRI of the holon, percent-encoded with its slashes", place="path")
_PORTAL = replace(_HOLON, says="IRI of the portal, percent-encoded with its slashes")
_LAYER = Operation(
    "holons",
    "Add triples to a layer",
    answer=GraphConfirmed,
    parameters=(_HOLON, _TENANT, _KEY),
    body=LayerBody,
    fails=(*_WRITE_FAILS, 404),
)
_SAVED_ID = Parameter("id", "of a saved query", place="path")
_QUERY_ID = Parameter("id", "of a running query", place="path")

_TABLE: Mapping[tuple[str, str], Operation] = {
    ("/", "GET"): Operation("service", "The paths of this port", ServiceIndex),
    ("/sparql", "GET"): _QUERY_BY_GET,
    ("/sparql", "POST"): _QUERY_BY_POST,
    ("/sparql/check", "POST"): Operation(
        "SPARQL",
        "Check a query or an update",
        answer=QueryCheck,
        parameters=(Parameter("plan", "say also how the query would be answered", _FLAG),),
        body_types={
            QUERY_TYPE: {**TEXT, "examples": ["SELECT * WHERE { ?s ?p ?o } LIMIT 10"]},
            UPDATE_TYPE: {**TEXT, "examples": ['INSERT DATA { <urn:a> <urn:b> "c" }']},
        },
        fails=(400, 413, 415, 503),
        says="Nothing is evaluated or changed. For a text that is refused: 200, the reason and the place.",
    ),
    ("/update", "POST"): _UPDATE,
    ("/data", "GET"): _READ_GRAPH,
    **_fuseki_operations(),
    ("/data", "PUT"): _PUT_GRAPH,
    ("/data", "POST"): _POST_GRAPH,
    ("/data", "DELETE"): _DELETE_GRAPH,
    ("/data/{name:path}", "GET"): _by_path(_READ_GRAPH),
    ("/data/{name:path}", "PUT"): _by_path(_PUT_GRAPH),
    ("/data/{name:path}", "POST"): _by_path(_POST_GRAPH),
    ("/data/{name:path}", "DELETE"): _by_path(_DELETE_GRAPH),
    ("/graphql", "GET"): replace(
        _GRAPHQL,
        summary="Execute a query; in a browser without one, the playground",
        parameters=(*_GRAPHQL_FIELDS, *_FRESH),
        answer_types={**_GRAPHQL.answer_types, "text/html": TEXT},
        body=None,
        fails=(400, 406, 503),
    ),
    ("/graphql", "POST"): _GRAPHQL,
    ("/graphql/ws", "GET"): Operation("GraphQL", "Subscriptions, over a WebSocket only", fails=(426,)),
    ("/graphql/schema", "GET"): Operation(
        "GraphQL",
        "The schema, in the schema definition language",
        answer_types={"text/plain": TEXT},
        parameters=(_AS_OF,),
        fails=(400, 403, 410, 503),
    ),
    ("/graphql/schema/refresh", "POST"): Operation(
        "GraphQL", "Rebuild the schema", SchemaRefreshed, fails=(503,)
    ),
    ("/changes", "GET"): Operation(
        "changes",
        "The stream of changes",
        answer_types={NDJSON: TEXT, EVENTS: TEXT, PATCH_TYPE: TEXT},
        parameters=(
            Parameter("since", "the log index after which changes are reported", _INDEX),
            Parameter("Last-Event-ID", "the same, as a browser sends it", _INDEX, "header"),
            Parameter("graph", "changes of this graph only; may be repeated", _IRIS),
            Parameter("default", "changes of the default graph; takes no value"),
            Parameter("predicate", "changes of this predicate only; may be repeated", _IRIS),
            Parameter("follow", "false: end when everything so far is reported", _one_of(["true", "false"])),
        ),
        fails=(*_READ_FAILS, 410),
    ),
    ("/history", "GET"): Operation(
        "history",
        "What changed, by whom and when",
        HistoryRecord,
        answer_types={syntax.media_type: TEXT for syntax in HISTORY_SYNTAXES},
        parameters=(
            *_PAST,
            Parameter("limit", "entries on a page: 1 to 1000; 100 without it", _INDEX),
            Parameter("cursor", "where the page begins: `cursor` of the one before"),
        ),
        fails=(*_READ_FAILS, 410),
        says="The newest change first. As RDF it is PROV-O: an activity for each entry.",
    ),
    ("/diff", "GET"): Operation(
        "history",
        "The net change from one state to another",
        StateDifference,
        answer_types={PATCH_TYPE: TEXT, DIFF_TYPE: TEXT},
        parameters=_PAST,
        fails=(*_READ_FAILS, 410),
    ),
    ("/revert", "POST"): Operation(
        "history",
        "Back to an earlier state",
        Confirmed,
        parameters=(
            *_PAST[:-2],
            Parameter("to", "the state: a log index, a time, or a name", is_required=True),
            _KEY,
        ),
        fails=(*_WRITE_FAILS, 410),
        says="One new change undoes all others since that state, of what the parameters choose. A change "
        "that comes meanwhile is a conflict (409).",
    ),
    ("/history/purge", "GET"): Operation("history", "The purges", PurgeList, fails=(503,)),
    ("/history/purge", "POST"): Operation(
        "history",
        "Purge a resource or a graph from all states",
        PurgeShown,
        parameters=(
            Parameter("resource", "an IRI: all statements in which it stands go"),
            Parameter("graph", "an IRI, in place of a resource: the graph of this name goes"),
            _KEY,
        ),
        fails=(400, 403, 409, 422, 503),
        says="From the present, the history, and all files. 202 in place of 200 while some node is still "
        "at it: it goes on by itself.",
    ),
    ("/snapshots", "GET"): Operation("history", "The named states", NamedStateList, fails=(503,)),
    ("/snapshots/{name}", "GET"): Operation(
        "history", "A named state", NamedStateRecord, parameters=(_STATE_NAME,), fails=(404, 503)
    ),
    ("/snapshots/{name}", "PUT"): Operation(
        "history",
        "Name a state, and keep it",
        NamedStateRecord,
        parameters=(
            _STATE_NAME,
            Parameter("at", "the state: a log index, a time of RFC 3339, or another name; else the present"),
            _KEY,
        ),
        fails=(400, 409, 410, 422, 503),
        says="Whatever reads the past takes the name in place of an index. That another state has the name "
        "already is a conflict (409).",
    ),
    ("/snapshots/{name}", "DELETE"): Operation(
        "history",
        "Take a state's name away",
        Success,
        parameters=(_STATE_NAME, _KEY),
        fails=_CHANGE_FAILS,
        says="It is then kept for as long as others are.",
    ),
    ("/mcp", "POST"): Operation(
        "agents", "A message of the Model Context Protocol", dict[str, Any], fails=(403, 503)
    ),
    ("/.well-known/void", "GET"): Operation(
        "graphs",
        "What the data are about",
        answer_types=_REPORT_RDF,
        fails=_READ_FAILS,
        says="Counts by predicate, by class and their pairs, and by graph (VoID).",
    ),
    ("/{path:path}", "GET"): Operation(
        "graphs",
        "A resource below one of `linked_data.base_iris`",
        answer_types=_RDF,
        parameters=(Parameter("path", "of the resource's IRI", place="path"),),
        fails=(*_READ_FAILS, 404),
        other_answers={303: {"description": "a browser gets the page of the workbench"}},
    ),
    ("/ws", "GET"): Operation("changes", "Live queries, over a WebSocket only", fails=(426,)),
    ("/shacl/validate", "POST"): Operation(
        "SHACL",
        "Validate a graph",
        answer=ValidationReport,
        answer_types=_REPORT_RDF,
        parameters=(
            Parameter("graph", "IRI of the graph to validate, `default`, or `union` for all graphs together"),
            Parameter("shapes_graph", "IRI of the graph that holds the shapes", _IRI),
            _REPORT_FORMAT,
            *_FRESH,
        ),
        body=ValidationBody,
        body_types=_RDF,
        needs_body=False,
        fails=(*_READ_FAILS, 404, 413, 415),
    ),
    ("/geospatial/evaluate", "POST"): Operation(
        "GeoSPARQL",
        "Call a function",
        answer=CallResult,
        parameters=(_TIMEOUT,),
        body=CallBody,
        fails=(400, 413, 415, 503),
    ),
    ("/alerts", "GET"): Operation("alerts", "All alerts", AlertList, fails=(503,)),
    ("/alerts", "POST"): Operation(
        "alerts",
        "Create an alert",
        answer=ShownAlert,
        parameters=(_KEY,),
        body=AlertBody,
        fails=(*_WRITE_FAILS, 403),
    ),
    ("/alerts/{alert}", "GET"): Operation(
        "alerts", "One alert", ShownAlert, parameters=(_ALERT,), fails=_ALERT_FAILS
    ),
    ("/alerts/{alert}", "DELETE"): Operation(
        "alerts", "Delete an alert", Success, parameters=(_ALERT, _KEY), fails=_CHANGE_FAILS
    ),
    ("/alerts/{alert}/pause", "POST"): Operation(
        "alerts",
        "Stop evaluating an alert",
        ShownAlert,
        parameters=(_ALERT, _KEY),
        fails=_CHANGE_FAILS,
    ),
    ("/alerts/{alert}/resume", "POST"): Operation(
        "alerts", "Evaluate an alert again", ShownAlert, parameters=(_ALERT, _KEY), fails=_CHANGE_FAILS
    ),
    ("/alerts/{alert}/history", "GET"): Operation(
        "alerts", "The last deliveries of an alert", AlertHistory, parameters=(_ALERT,), fails=_ALERT_FAILS
    ),
    ("/alerts/{alert}/test", "POST"): Operation(
        "alerts",
        "Evaluate an alert now, and call its webhook once",
        AlertTest,
        parameters=(_ALERT,),
        fails=_ALERT_FAILS,
    ),
    ("/holonic/health", "GET"): Operation(
        "holons",
        "Whether holons are available",
        HolonicHealth,
        other_answers={
            503: {"description": "holons are switched off", "content": {"text/plain": {"schema": TEXT}}}
        },
        is_public=True,
    ),
    ("/holonic/holons", "GET"): Operation(
        "holons", "The holons of a tenant", HolonList, parameters=(_TENANT,), fails=(400, 503)
    ),
    ("/holonic/holons", "POST"): Operation(
        "holons",
        "Declare a holon",
        answer=GraphConfirmed,
        parameters=(_TENANT, _KEY),
        body=HolonBody,
        fails=(*_WRITE_FAILS, 404),
    ),
    ("/holonic/holons/{iri}", "GET"): Operation(
        "holons", "One holon, with its triples", Holon, parameters=(_HOLON, _TENANT), fails=(400, 404, 503)
    ),
    **{(f"/holonic/holons/{{iri}}/{layer.value}", "POST"): _LAYER for layer in Layer},
    ("/holonic/holons/{iri}/membrane", "GET"): Operation(
        "holons",
        "Validate the interior against the boundary",
        answer=MembraneReport,
        answer_types=_REPORT_RDF,
        parameters=(_HOLON, _TENANT, _REPORT_FORMAT, *_PRESENT),
        fails=(*_READ_FAILS, 404),
    ),
    ("/holonic/portals", "GET"): Operation(
        "holons",
        "The portals of a tenant",
        PortalList,
        parameters=(Parameter("source", "those that lead out of this holon", _IRI), _TENANT),
        fails=(400, 404, 503),
    ),
    ("/holonic/portals", "POST"): Operation(
        "holons",
        "Declare a portal",
        answer=GraphConfirmed,
        parameters=(_TENANT, _KEY),
        body=PortalBody,
        fails=(*_WRITE_FAILS, 404),
    ),
    ("/holonic/portals/{iri}/run", "POST"): Operation(
        "holons",
        "Run a portal",
        answer_types={"application/json": {}, **_RDF},
        parameters=(
            _PORTAL,
            _TENANT,
            Parameter("store", "store the result in the target's projection", _FLAG),
            *(one for one in _QUERY_PARAMETERS if "graph-uri" not in one.name),
            _KEY,
        ),
        body=RunBody,
        needs_body=False,
        fails=(*_WRITE_FAILS, 404, 406),
        says="RDF, as a CONSTRUCT query of `/sparql` is answered; with `store` the confirmation of a write.",
    ),
    ("/holonic/depth", "GET"): Operation(
        "holons", "How deep holons are nested", Depths, parameters=(_TENANT,), fails=(400, 503)
    ),
    ("/queries", "GET"): Operation("queries", "The running queries and updates", QueryList, fails=(503,)),
    ("/queries/{id}", "GET"): Operation(
        "queries", "One running query", RunningQuery, parameters=(_QUERY_ID,), fails=(404,)
    ),
    ("/queries/{id}", "DELETE"): Operation(
        "queries", "Cancel a query", Success, parameters=(_QUERY_ID,), fails=(404,)
    ),
    ("/cluster", "GET"): Operation("cluster", "The cluster, as this node knows it", ClusterReport),
    ("/cluster/members", "POST"): Operation(
        "cluster",
        "Add a new node, or a known one at another address",
        answer=ClusterReport,
        body=NewMember,
        fails=(400, 409, 413, 415, 503),
    ),
    ("/cluster/members/{node_id}", "DELETE"): Operation(
        "cluster",
        "Remove a member",
        answer=ClusterReport,
        parameters=(Parameter("node_id", "number of the node", {"type": "integer", "minimum": 1}, "path"),),
        fails=(400, 409, 503),
    ),
    ("/cluster/leader", "POST"): Operation(
        "cluster",
        "Transfer leadership",
        answer=ClusterReport,
        body=NewLeader,
        fails=(400, 409, 413, 415, 503),
    ),
    ("/saved-queries", "GET"): Operation(
        "saved queries", "Your queries, and those that others share", SavedQueryList, fails=(503,)
    ),
    ("/saved-queries", "POST"): Operation(
        "saved queries",
        "Keep a query",
        SavedQuery,
        parameters=(_KEY,),
        body=SavedQueryBody,
        fails=(400, 413, 415, 422, 503),
        says="`shared` needs the permission Write.",
    ),
    ("/saved-queries/{id}", "GET"): Operation(
        "saved queries", "One query", SavedQuery, parameters=(_SAVED_ID,), fails=(404, 503)
    ),
    ("/saved-queries/{id}", "PUT"): Operation(
        "saved queries",
        "Change a query",
        SavedQuery,
        parameters=(_SAVED_ID, _KEY),
        body=SavedQueryBody,
        fails=(400, 404, 413, 415, 422, 503),
    ),
    ("/saved-queries/{id}", "DELETE"): Operation(
        "saved queries", "Delete a query", Success, parameters=(_SAVED_ID, _KEY), fails=_CHANGE_FAILS
    ),
    ("/whoami", "GET"): Operation("service", "The principal of the request", WhoAmI),
    ("/api_keys", "GET"): Operation("service", "The API keys, by name", ApiKeyList),
    ("/health", "GET"): Operation(
        "service",
        "The state of this node",
        HealthRecord,
        other_answers={
            503: {"description": "the node does not serve requests: it is starting", "model": HealthRecord}
        },
    ),
    ("/metrics", "GET"): Operation(
        "service",
        "Metrics for Prometheus",
        answer_types={"text/plain": TEXT, "application/openmetrics-text": TEXT},
    ),
}

_OF_THE_LOG = frozenset({"SPARQL", "graphs", "GraphQL", "changes", "history", "SHACL", "holons", "RDF4J"})

OPERATIONS: Mapping[tuple[str, str], Operation] = {
    key: replace(one, has_index=one.room in _OF_THE_LOG and not one.is_public)
    for key, one in {**_TABLE, **RDF4J_OPERATIONS}.items()
}
