"""Which format a query is answered in: by the parameter `format`, else by the Accept header."""

from collections.abc import Sequence
from functools import lru_cache

from starlette.requests import Request

from graphdb.errors import InvalidParameter, NotAcceptable
from graphdb.sparql.results import ResultFormat, formats_for
from serve.negotiation import MediaType, Offer, choose

__all__ = ["choose_format"]

_BY_NAME = {fmt.value: fmt for fmt in ResultFormat} | {
    "ttl": ResultFormat.TURTLE,
    "n3": ResultFormat.TURTLE,
    "nt": ResultFormat.N_TRIPLES,
    "rdf": ResultFormat.RDF_XML,
    "rdf-xml": ResultFormat.RDF_XML,
    "json-ld": ResultFormat.JSON_LD,
    "nq": ResultFormat.N_QUADS,
}


def choose_format(request: Request, names: Sequence[str], form: str) -> ResultFormat:
    """By the parameter `format` (a short name or a media type) where it is given, else by Accept.

    SPARQLWrapper gives one format in several spellings, for the server to find one that it knows.
    Raises InvalidParameter, NotAcceptable.
    """
    if not names:
        return _by_accept(", ".join(request.headers.getlist("accept")), form)
    name = next((name for name in names if "/" in name or name.lower() in _BY_NAME), None)
    if name is None:
        raise InvalidParameter("format", f"{names[0]!r} is not known; known are {', '.join(_BY_NAME)}")
    if "/" in name:
        return _by_accept(name, form)
    fmt = _BY_NAME[name.lower()]
    if fmt is ResultFormat.XML and fmt not in formats_for(form):
        fmt = ResultFormat.RDF_XML  # what SPARQLWrapper means by xml, unless told otherwise
    if fmt not in formats_for(form):
        raise NotAcceptable(f"format={name}", tuple(offer.value for offer in formats_for(form)))
    return fmt


@lru_cache(maxsize=512)
def _by_accept(accept: str, form: str) -> ResultFormat:
    return choose(accept, _OFFERS[form]).value


def _offers(form: str) -> tuple[Offer[ResultFormat], ...]:
    return tuple(
        Offer(
            MediaType(fmt.media_type, frozenset({("profile", fmt.profile)} if fmt.profile else ())),
            fmt,
        )
        for fmt in formats_for(form)
    )


_OFFERS = {form: _offers(form) for form in ("SELECT", "ASK", "CONSTRUCT", "DESCRIBE")}
