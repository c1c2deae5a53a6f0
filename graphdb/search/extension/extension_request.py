"""The JSON under `_ext`, parsed: every member is known and has its type. SPARQL texts are read elsewhere."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from graphdb.errors import UnsupportedMediaType
from graphdb.rdf.formats import RdfSyntax
from graphdb.search.errors import SearchError, illegal_request, parsing

__all__ = [
    "BoostOption",
    "ExpandOption",
    "ExtensionRequest",
    "OutputFormat",
    "QueryOption",
    "parse_extension",
]

FACTOR_MAX = 1e12  # a score times this stays a number in 32 bits
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_SYNTAXES = {
    "turtle": RdfSyntax.TURTLE,
    "ttl": RdfSyntax.TURTLE,
    "n3": RdfSyntax.TURTLE,
    "ntriples": RdfSyntax.N_TRIPLES,
    "n-triples": RdfSyntax.N_TRIPLES,
    "nt": RdfSyntax.N_TRIPLES,
    "rdfxml": RdfSyntax.RDF_XML,
    "rdf-xml": RdfSyntax.RDF_XML,
    "rdf/xml": RdfSyntax.RDF_XML,
    "rdf": RdfSyntax.RDF_XML,
    "xml": RdfSyntax.RDF_XML,
    "jsonld": RdfSyntax.JSON_LD,
    "json-ld": RdfSyntax.JSON_LD,
    "trig": RdfSyntax.TRIG,
    "nquads": RdfSyntax.N_QUADS,
    "n-quads": RdfSyntax.N_QUADS,
    "nq": RdfSyntax.N_QUADS,
}


@dataclass(frozen=True, slots=True)
class QueryOption:
    """A SPARQL text about a hit. name is that of the placeholder, without its braces."""

    member: str  # of `_ext`
    text: str
    name: str = "id"


@dataclass(frozen=True, slots=True)
class ExpandOption:
    """Synonyms for what is sought in a field; the placeholder is `{term}`."""

    query: QueryOption
    field: str


@dataclass(frozen=True, slots=True)
class BoostOption:
    """Scores are multiplied where an IRI in the field is important enough in the graph."""

    field: str
    factor: float
    least: float  # PageRank, the largest of the graph being 1


@dataclass(frozen=True, slots=True)
class OutputFormat:
    """name as the request wrote it."""

    name: str
    syntax: RdfSyntax


@dataclass(frozen=True, slots=True)
class ExtensionRequest:
    """None for what is not asked for."""

    enrich: QueryOption | None = None
    filter: QueryOption | None = None
    expand: ExpandOption | None = None
    boost: BoostOption | None = None
    format: OutputFormat | None = None


def parse_extension(body: Any) -> ExtensionRequest:
    """Errors: parsing_exception with the names that there are, illegal_argument_exception."""
    members = _Members("_ext", body, tuple(_READERS))
    read = {_FIELDS[name]: _READERS[name](members.any(name)) for name in _READERS if name in members}
    return ExtensionRequest(**read)


class _Members:
    """The members of one object, read by type."""

    def __init__(self, owner: str, body: Any, known: tuple[str, ...]) -> None:
        if not isinstance(body, Mapping):
            raise parsing(f"[{owner}] must be an object", line=1, col=1)
        for name in body:
            if name not in known:
                listed = ", ".join(known)
                raise parsing(f"[{owner}] unknown field [{name[:100]}], it has [{listed}]", line=1, col=1)
        self._owner, self._body = owner, body

    def __contains__(self, name: str) -> bool:
        return self._body.get(name) is not None

    def any(self, name: str) -> Any:
        return self._body[name]

    def text(self, name: str, default: str | None = None) -> str:
        value = self._body.get(name)
        if value is None:
            if default is None:
                raise parsing(f"[{self._owner}] requires [{name}]", line=1, col=1)
            return default
        if not isinstance(value, str) or not value:
            raise parsing(f"[{self._owner}] [{name}] must be a string that is not empty", line=1, col=1)
        return value

    def number(self, name: str, most: float) -> float:
        value = self._body.get(name)
        if value is None:
            raise parsing(f"[{self._owner}] requires [{name}]", line=1, col=1)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise parsing(f"[{self._owner}] [{name}] must be a number", line=1, col=1)
        if (isinstance(value, float) and not math.isfinite(value)) or not 0 <= value <= most:
            raise illegal_request(f"[{self._owner}] [{name}] must be between 0 and {most:g}, got [{value}]")
        return float(value)


def _about_hit(member: str, query: str) -> Any:
    def read(body: Any) -> QueryOption:
        members = _Members(member, body, (query, "bind"))
        name = members.text("bind", "id")
        if _NAME.fullmatch(name) is None:
            raise illegal_request(
                f"[{member}] [bind] must be a name of letters, digits and _, got [{name[:100]}]"
            )
        return QueryOption(member, members.text(query), name)

    return read


def _expand(body: Any) -> ExpandOption:
    members = _Members("sparql_expand", body, ("synonym_query", "field"))
    query = QueryOption("sparql_expand", members.text("synonym_query"), "term")
    return ExpandOption(query, members.text("field"))


def _boost(body: Any) -> BoostOption:
    members = _Members("kg_boost", body, ("entity_field", "boost_factor", "min_pagerank"))
    factor = members.number("boost_factor", FACTOR_MAX)
    return BoostOption(members.text("entity_field"), factor, members.number("min_pagerank", 1e12))


def _format(value: Any) -> OutputFormat:
    if not isinstance(value, str):
        raise parsing("[_ext] [format] must be a string", line=1, col=1)
    syntax = _SYNTAXES.get(value.lower())
    if syntax is None and "/" in value:
        try:
            syntax = RdfSyntax.from_media_type(value)
        except UnsupportedMediaType:
            syntax = None
    if syntax is None:
        raise _unknown_format(value)
    return OutputFormat(value, syntax)


def _unknown_format(value: str) -> SearchError:
    known = ", ".join(_SYNTAXES)
    return illegal_request(
        f"[_ext] [format] [{value[:100]}] is no RDF syntax; known are [{known}] and media types"
    )


_READERS: dict[str, Any] = {
    "sparql_enrich": _about_hit("sparql_enrich", "query"),
    "sparql_filter": _about_hit("sparql_filter", "ask"),
    "sparql_expand": _expand,
    "kg_boost": _boost,
    "format": _format,
}
_FIELDS = {
    "sparql_enrich": "enrich",
    "sparql_filter": "filter",
    "sparql_expand": "expand",
    "kg_boost": "boost",
    "format": "format",
}
