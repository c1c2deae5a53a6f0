"""What `/sparql` says of itself, in RDF (SPARQL 1.1 Service Description)."""

from pyoxigraph import BlankNode, NamedNode, Quad
from starlette.requests import Request
from starlette.responses import Response

from graphdb.errors import RequestError
from graphdb.rdf.formats import RdfSyntax
from graphdb.rdf.writing import write_quads
from serve.addresses import request_iri
from serve.negotiation import MediaType, Offer, choose

__all__ = ["describe_service", "wants_description"]

SD = "http://www.w3.org/ns/sparql-service-description#"
FORMATS = "http://www.w3.org/ns/formats/"
RDF_TYPE = NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")

_PREFIXES = {"sd": SD, "formats": FORMATS}
_OFFERS = tuple(
    Offer(MediaType(syntax.media_type), syntax)
    for syntax in (RdfSyntax.TURTLE, RdfSyntax.N_TRIPLES, RdfSyntax.RDF_XML, RdfSyntax.JSON_LD)
)
# What a client gets for */*: the error that the query is missing.
_ANYTHING_ELSE = Offer(MediaType("application/json"), RdfSyntax.TURTLE)
_LANGUAGES = ("SPARQL10Query", "SPARQL11Query")
_RESULT_FORMATS = (
    "SPARQL_Results_JSON",
    "SPARQL_Results_XML",
    "SPARQL_Results_CSV",
    "SPARQL_Results_TSV",
    "Turtle",
    "N-Triples",
    "RDF_XML",
    "JSON-LD",
)


def wants_description(request: Request) -> bool:
    """Whether the Accept header asks for RDF rather than for just anything."""
    try:
        return choose(_accept(request), (_ANYTHING_ELSE, *_OFFERS)) is not _ANYTHING_ELSE
    except RequestError:
        return False


def describe_service(request: Request) -> Response:
    """The description in the RDF syntax that the client likes best."""
    syntax = choose(_accept(request), _OFFERS).value
    prefixes = {} if syntax is RdfSyntax.N_TRIPLES else _PREFIXES
    body = b"".join(write_quads(_description(NamedNode(request_iri(request))), syntax, prefixes=prefixes))
    return Response(body, headers={"Content-Type": syntax.media_type, "Vary": "Accept"})


def _accept(request: Request) -> str:
    return ", ".join(request.headers.getlist("accept"))


def _description(endpoint: NamedNode) -> list[Quad]:
    service, dataset, graph = BlankNode(), BlankNode(), BlankNode()
    return [
        Quad(service, RDF_TYPE, _sd("Service")),
        Quad(service, _sd("endpoint"), endpoint),
        *(Quad(service, _sd("supportedLanguage"), _sd(language)) for language in _LANGUAGES),
        *(Quad(service, _sd("resultFormat"), NamedNode(FORMATS + name)) for name in _RESULT_FORMATS),
        Quad(service, _sd("defaultDataset"), dataset),
        Quad(dataset, RDF_TYPE, _sd("Dataset")),
        Quad(dataset, _sd("defaultGraph"), graph),
        Quad(graph, RDF_TYPE, _sd("Graph")),
    ]


def _sd(name: str) -> NamedNode:
    return NamedNode(SD + name)
