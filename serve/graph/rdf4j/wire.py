"""How RDF4J's protocol writes things into requests and answers: values, contexts, media types, errors."""

from collections.abc import Mapping
from dataclasses import dataclass

import orjson
from pyoxigraph import BlankNode, DefaultGraph, NamedNode
from starlette.requests import Request
from starlette.responses import Response

from graphdb.errors import (
    GraphDBError,
    InvalidParameter,
    NotFound,
    QuerySyntaxError,
    RdfSyntaxError,
    UnsupportedMediaType,
)
from graphdb.model import GraphName
from graphdb.rdf.binary import BINARY_RDF_TYPE
from graphdb.rdf.formats import RdfSyntax
from graphdb.rdf.reading import read_quads
from graphdb.store.view import Subject, Term
from serve.bodies import media_type_name
from serve.errors import failure_response
from serve.negotiation import MediaType, Offer, choose
from serve.parameters import Parameters

__all__ = [
    "Pattern",
    "Written",
    "choose_written",
    "failure_text",
    "no_content",
    "read_base",
    "read_contexts",
    "read_pattern",
    "read_value",
    "syntax_of_body",
]

_DEFAULT = "null"  # the context of triples without one
_VALUE_CHARACTERS_MAX = 65_536


# Values and patterns in parameters.


def read_value(name: str, text: str) -> Term:
    """A term as N-Triples writes it; the labels of blank nodes are those of the store.

    Raises InvalidParameter.
    """
    if len(text) <= _VALUE_CHARACTERS_MAX and "\n" not in text and "\r" not in text:
        line = f"<urn:s> <urn:p> {text} .".encode()
        try:
            quads = list(read_quads(line, RdfSyntax.N_TRIPLES, fresh_blank_nodes=False))
        except RdfSyntaxError:
            quads = []
        if len(quads) == 1:
            return quads[0].object
    raise InvalidParameter(name, f"{text[:200]!r} is not an RDF term in N-Triples, such as <urn:a> or _:b")


@dataclass(frozen=True, slots=True)
class Pattern:
    """Which quads are meant: those with these terms, in one of the contexts; None stands for any."""

    subject: Subject | None
    predicate: NamedNode | None
    object: Term | None
    contexts: tuple[GraphName, ...] | None

    @property
    def has_terms(self) -> bool:
        """Whether more than contexts are given."""
        return not (self.subject is None and self.predicate is None and self.object is None)


def read_pattern(parameters: Parameters) -> Pattern:
    """From subj, pred, obj and context. Raises InvalidParameter."""
    subject, predicate, object_ = (_one_value(parameters, name) for name in ("subj", "pred", "obj"))
    if not isinstance(subject, NamedNode | BlankNode | None):
        raise InvalidParameter("subj", "is neither an IRI nor a blank node")
    if not isinstance(predicate, NamedNode | None):
        raise InvalidParameter("pred", "is not an IRI")
    return Pattern(subject, predicate, object_, read_contexts(parameters))


def _one_value(parameters: Parameters, name: str) -> Term | None:
    text = parameters.one(name)
    return None if text is None else read_value(name, text)


def read_contexts(parameters: Parameters) -> tuple[GraphName, ...] | None:
    """The graphs that `context` names; None if it names none. Raises InvalidParameter."""
    names = parameters.many("context")
    return tuple(dict.fromkeys(map(_context, names))) if names else None


def _context(text: str) -> GraphName:
    if text == _DEFAULT:
        return DefaultGraph()
    value = read_value("context", text)
    if isinstance(value, NamedNode | BlankNode):
        return value
    raise InvalidParameter("context", f"{text[:200]!r} does not name a graph")


def read_base(parameters: Parameters) -> str | None:
    """The base IRI for relative ones, with or without angle brackets. Raises InvalidParameter."""
    text = parameters.one("baseURI")
    if text is None:
        return None
    iri = text.removeprefix("<").removesuffix(">")
    try:
        return NamedNode(iri).value
    except ValueError as error:
        raise InvalidParameter("baseURI", f"{text[:200]!r} is not an absolute IRI: {error}") from None


# Syntaxes of statements.


@dataclass(frozen=True, slots=True)
class Written:
    """A syntax that statements are written in, and its media type; syntax None is binary RDF."""

    syntax: RdfSyntax | None
    media_type: str


_OLD_NAMES = {"text/plain": RdfSyntax.N_TRIPLES} | {
    alias: syntax for syntax in RdfSyntax for alias in syntax.aliases if "xml" not in alias
}
_SYNTAXES = (
    RdfSyntax.N_QUADS,
    RdfSyntax.TRIG,
    RdfSyntax.N_TRIPLES,
    RdfSyntax.TURTLE,
    RdfSyntax.RDF_XML,
    RdfSyntax.JSON_LD,
)
_OFFERS = (
    *(Offer(MediaType(one.media_type), Written(one, one.media_type)) for one in _SYNTAXES),
    Offer(MediaType(BINARY_RDF_TYPE), Written(None, BINARY_RDF_TYPE)),
    *(Offer(MediaType(name), Written(syntax, name)) for name, syntax in _OLD_NAMES.items()),
)


def choose_written(request: Request, parameters: Parameters) -> Written:
    """The syntax that the client prefers, by the parameter or the header Accept. Raises NotAcceptable."""
    asked = parameters.one("Accept") or ", ".join(request.headers.getlist("accept"))
    return choose(asked, _OFFERS).value


def syntax_of_body(request: Request) -> RdfSyntax | None:
    """The syntax of a body by its Content-Type; None for binary RDF. Raises UnsupportedMediaType."""
    name = media_type_name(request)
    if name == BINARY_RDF_TYPE:
        return None
    if name in _OLD_NAMES:
        return _OLD_NAMES[name]
    try:
        return RdfSyntax.from_media_type(request.headers.get("content-type", ""))
    except UnsupportedMediaType as error:
        raise UnsupportedMediaType(error.media_type, (*error.accepted, BINARY_RDF_TYPE)) from None


# Answers.


def no_content(index: int) -> Response:
    """The answer to a write, which is visible at this log index."""
    response = Response(status_code=204, headers={"X-Snapshot-Index": str(index)})
    del response.headers["content-length"]
    return response


_KINDS: Mapping[type[GraphDBError], str] = {
    QuerySyntaxError: "MALFORMED QUERY",
    RdfSyntaxError: "MALFORMED DATA",
    UnsupportedMediaType: "UNSUPPORTED FILE FORMAT",
}


def failure_text(error: GraphDBError, beside: Mapping[str, str] | None = None) -> Response:
    """`failure_response` as plain text, which RDF4J's clients show, and recognise some kinds of."""
    answer = failure_response(error, beside)
    message = orjson.loads(bytes(answer.body))["error"]
    kind = next((word for cls, word in _KINDS.items() if isinstance(error, cls)), None)
    if isinstance(error, NotFound) and error.kind == "repository":
        kind = "Unknown repository"
    headers = {
        name: value
        for name, value in answer.headers.items()
        if name not in ("content-type", "content-length")
    }
    text = message if kind is None else f"{kind}: {message}"
    return Response(text, answer.status_code, headers, media_type="text/plain")
