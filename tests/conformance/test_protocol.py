"""The W3C suites of the SPARQL 1.1 Protocol, Graph Store Protocol and service description, as literal HTTP.

A case is a list of requests to be sent over one connection, each with what its answer must be. They go, byte
for byte but for the path, to a real server around the application.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPMessage

import pytest
from pyoxigraph import (
    BlankNode,
    CanonicalizationAlgorithm,
    Dataset,
    Literal,
    NamedNode,
    QueryResultsFormat,
    RdfFormat,
    Store,
    Triple,
    parse,
    parse_query_results,
)

from graphdb.config import Settings
from serve.graph_app import build_app
from tests.conformance.manifests import Case, manifest_graph, read_manifest, suite_root
from tests.support.http_server import serving
from tests.support.memory_backend import MemoryBackend
from tests.support.timing import HANG_S

HT = "http://www.w3.org/2011/http#"
CNT = "http://www.w3.org/2011/content#"
MF = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
UT = "http://www.w3.org/2009/sparql/tests/test-update#"
SD = "http://www.w3.org/ns/sparql-service-description#"

MANIFESTS = {"protocol": 34, "graph-store-protocol": 13, "service-description": 3}
DEPRECATED = {"http-rdf-update": 18}

RDF_ARRAY = (
    "the interface answers CONSTRUCT and DESCRIBE without Accept with a JSON array of N-Triples strings"
)
MULTIPART = "multipart/form-data is not among the content types that the interface accepts"
NEW_GRAPH = (
    "the interface says that POST without a graph merges into the default graph; it makes no new graph"
)
EXCEPTIONS = {
    "query_content_type_construct": RDF_ARRAY,
    "query_content_type_describe": RDF_ARRAY,
    "post_get_post_get_direct": MULTIPART,
    "post_get_post_get_indirect": MULTIPART,
    "post_get_new_graph": NEW_GRAPH,
}

# The interface answers every write with 200 and a confirmation, never 201: in these cases 201 is read as 200.
CREATED_AS_200 = {
    "put_get_repeat_direct",
    "put_get_repeat_indirect",
    "put_get_uri_pct_encoded_indirect",
    "put_get_uri_pct_encoded_twice",
}

ROOT = suite_root()
pytestmark = pytest.mark.skipif(ROOT is None, reason="the conformance suites are absent; set GRAPHDB_SHARED")


def cases(folder: str) -> list[Case]:
    return read_manifest(ROOT / "w3c-rdf-tests/sparql/sparql11" / folder / "manifest.ttl") if ROOT else []


def local_name(case: Case) -> str:
    return case.iri.rpartition("#")[2]


CASES = [case for folder in MANIFESTS for case in cases(folder) if case.kinds != {"ServiceDescriptionTest"}]


@dataclass(frozen=True)
class Response:
    status: int
    headers: HTTPMessage
    body: bytes

    @property
    def media_type(self) -> str:
        return self.headers.get("Content-Type", "").partition(";")[0]


class Node:
    """One node of a manifest, read as a record."""

    def __init__(self, store: Store, node: NamedNode | BlankNode) -> None:
        self._store, self._node = store, node

    def all(self, property_iri: str) -> list["NamedNode | BlankNode | Literal"]:
        quads = self._store.quads_for_pattern(self._node, NamedNode(property_iri), None)
        return [quad.object for quad in quads if not isinstance(quad.object, Triple)]

    def text(self, property_iri: str, default: str = "") -> str:
        values = self.all(property_iri)
        return values[0].value if values else default

    def node(self, property_iri: str) -> "Node | None":
        values = self.all(property_iri)
        if not values:
            return None
        assert not isinstance(values[0], Literal)
        return Node(self._store, values[0])

    def members(self, property_iri: str) -> Iterator["Node"]:
        """The nodes of the list, or lists, that the property holds."""
        for head in self.all(property_iri):
            while head != NamedNode(RDF + "nil"):
                assert not isinstance(head, Literal)
                cell = Node(self._store, head)
                member = cell.node(RDF + "first")
                assert member is not None
                yield member
                head = cell.all(RDF + "rest")[0]

    def headers(self) -> dict[str, str]:
        return {
            header.text(HT + "fieldName"): header.text(HT + "fieldValue")
            for header in self.members(HT + "headers")
        }

    def body(self) -> bytes | None:
        body = self.node(HT + "body")
        if body is None:
            return None
        return body.text(CNT + "chars").encode(body.text(CNT + "characterEncoding", "UTF-8"))


@pytest.fixture
def server() -> Iterator[tuple[str, int]]:
    with serving(build_app(MemoryBackend(), Settings())) as url:
        host, _, port = url.removeprefix("http://").partition(":")
        yield host, int(port)


@pytest.mark.parametrize(("folder", "count"), (MANIFESTS | DEPRECATED).items())
def test_no_case_is_lost(folder: str, count: int) -> None:
    assert len(cases(folder)) == count


def test_the_older_suite_is_deprecated_in_favour_of_the_one_that_runs() -> None:
    """Its cases are prose, which says so itself."""
    assert all("deprecated in favor" in case.comment for case in cases("http-rdf-update"))


def test_no_exception_names_a_case_that_is_not_there() -> None:
    assert EXCEPTIONS.keys() | CREATED_AS_200 <= {local_name(case) for case in CASES}


@pytest.mark.parametrize("case", CASES, ids=local_name)
def test_case(case: Case, server: tuple[str, int]) -> None:
    if reason := EXCEPTIONS.get(local_name(case)):
        with pytest.raises(AssertionError):
            run(case, *server)  # once this passes, the exception is stale
        pytest.skip(reason)
    if local_name(case) in CREATED_AS_200:
        with pytest.raises(AssertionError, match="Created"):
            run(case, *server)
        run(case, *server, created=200)
    else:
        run(case, *server)


def run(case: Case, host: str, port: int, *, created: int = 201) -> None:
    """Set up the data that the case names, then send its requests one after another on one connection."""
    connection = HTTPConnection(host, port, timeout=HANG_S)
    try:
        store = manifest_graph(case.manifest)
        for graph in Node(store, case.node).all(UT + "graphData"):
            assert not isinstance(graph, Literal)
            set_up(connection, Node(store, graph), case)
        action = Node(store, case.node).node(MF + "action")
        assert action is not None
        variables: dict[str, str] = {}
        for request in action.members(HT + "requests"):
            check(request, send(connection, request, action, variables), variables, created)
    finally:
        connection.close()


def set_up(connection: HTTPConnection, graph: Node, case: Case) -> None:
    name = graph.text("http://www.w3.org/2000/01/rdf-schema#label")
    path = case.manifest.parent / graph.text(UT + "graph").rpartition("/")[2]
    connection.request(
        "PUT", f"/data?graph={name}", path.read_bytes(), {"Content-Type": "application/n-triples"}
    )
    response = connection.getresponse()
    response.read()
    assert response.status == 200


def send(connection: HTTPConnection, request: Node, action: Node, variables: dict[str, str]) -> Response:
    """The request as it stands, at our paths: the suites say /sparql/ and /gsp, and leave the paths to us."""
    path, body, headers = request.text(HT + "absolutePath"), request.body(), request.headers()
    for name, value in variables.items():
        path = path.replace(name, value)
    is_update = (
        "update" in headers.get("content-type", "") or b"update=" in (body or b"") or "?update=" in path
    )
    path = re.sub(r"^/sparql/", "/update" if is_update else "/sparql", path)
    path = re.sub(r"^/gsp", "/data", path)
    headers.setdefault("Host", action.text(HT + "connectionAuthority"))
    connection.request(request.text(HT + "methodName"), path, body, headers)
    response = connection.getresponse()
    return Response(response.status, response.headers, response.read())


def check(request: Node, response: Response, variables: dict[str, str], created: int) -> None:
    expected = request.node(HT + "resp")
    assert expected is not None
    statuses = [status.value.rpartition("#")[2] for status in expected.all(MF + "expectedStatus")]
    assert any(fits(response.status, status, created) for status in statuses), (statuses, response)
    if location := expected.text(MF + "expectedLocation"):
        assert "Location" in response.headers
        variables[location] = response.headers["Location"]
    if boolean := expected.text(MF + "expectedBoolean"):
        assert answered_boolean(response) is (boolean == "true")
    if kind := expected.text(MF + "expectedFormat"):
        assert response.media_type in FORMATS[kind], response
    if (body := expected.body()) is not None:
        assert canonical(body) == canonical(response.body)
    for name, value in expected.headers().items():
        assert response.headers.get(name, "").partition(";")[0] == value.partition(";")[0]


NAMED_STATUSES = {"OK": 200, "NoContent": 204, "NotFound": 404}
FORMATS = {
    "boolean": {"application/sparql-results+json", "application/sparql-results+xml"},
    "tabular": {
        "application/sparql-results+json",
        "application/sparql-results+xml",
        "text/csv",
        "text/tab-separated-values",
    },
    "RDF": {"text/turtle", "application/n-triples", "application/rdf+xml"},
}


def fits(status: int, expected: str, created: int) -> bool:
    """Whether a status is the one that the suite names, or in the class that it names."""
    if expected == "Created":
        return status == created
    if expected.startswith("StatusCode"):
        return str(status)[0] == expected.removeprefix("StatusCode")[0]
    return status == NAMED_STATUSES[expected]


def answered_boolean(response: Response) -> bool:
    return bool(parse_query_results(response.body, QueryResultsFormat.from_media_type(response.media_type)))


def canonical(turtle: bytes) -> Dataset:
    """The graph of a document, with blank nodes named by what is around them."""
    graph = Dataset(parse(turtle, RdfFormat.TURTLE))
    graph.canonicalize(CanonicalizationAlgorithm.UNSTABLE)
    return graph


# The service description's cases are prose: three sentences, three tests.


@pytest.fixture
def description(server: tuple[str, int]) -> tuple[str, Store]:
    connection = HTTPConnection(*server, timeout=HANG_S)
    connection.request("GET", "/sparql", headers={"Accept": "text/turtle"})
    response = connection.getresponse()
    store = Store()
    assert (response.status, response.headers["Content-Type"].partition(";")[0]) == (200, "text/turtle")
    store.load(response.read(), RdfFormat.TURTLE)
    connection.close()
    return "http://{}:{}/sparql".format(*server), store


def test_returns_rdf(description: tuple[str, Store]) -> None:
    assert len(description[1]) > 0


def test_has_endpoint_triple(description: tuple[str, Store]) -> None:
    endpoint, store = description
    assert store.query(f"ASK {{ [] <{SD}endpoint> <{endpoint}> }}")


def test_conforms_to_schema(description: tuple[str, Store]) -> None:
    """Every domain and range of the vocabulary that what we say falls under."""
    query = f"""PREFIX sd: <{SD}> ASK {{
        ?s a sd:Service ; sd:endpoint ?e ; sd:supportedLanguage ?l ; sd:resultFormat ?f ; sd:defaultDataset ?d
        . ?d a sd:Dataset ; sd:defaultGraph ?g . ?g a sd:Graph
        FILTER(isIRI(?e) && STRSTARTS(STR(?l), STR(sd:)) && isIRI(?f)) }}"""
    assert description[1].query(query)
