"""The parameters and headers of a request for a query: text, dataset, limits, consistency, format."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from starlette.requests import Request

from graphdb.errors import InvalidParameter, NotAcceptable
from graphdb.geo.entailment import Entailment
from graphdb.history.moments import Moment, read_moment
from graphdb.node import Consistency
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.results import ResultFormat, formats_for
from serve.negotiation import MediaType, Offer, choose
from serve.parameters import Parameters, read_dataset, read_flag

__all__ = [
    "QueryParameters",
    "choose_format",
    "consistency_of",
    "read_as_of",
    "read_consistency",
    "read_min_index",
    "read_query_parameters",
    "read_timeout",
    "refuse_as_of",
]

_DURATION = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(s|ms)?", re.ASCII)
_PER_SECOND = {None: 1, "s": 1, "ms": 1000}
_QUERY_ID = re.compile(r"[0-9A-Za-z-]{8,64}", re.ASCII)
_INDEX = re.compile(r"\d{1,18}", re.ASCII)  # a log index is less than 2^63

HEADER = "X-Consistency"
_HEADER = HEADER.lower().encode()  # as ASGI hands names on
_LEVELS = {level.value: level for level in Consistency}

_BY_NAME = {fmt.value: fmt for fmt in ResultFormat} | {
    "ttl": ResultFormat.TURTLE,
    "n3": ResultFormat.TURTLE,
    "nt": ResultFormat.N_TRIPLES,
    "rdf": ResultFormat.RDF_XML,
    "rdf-xml": ResultFormat.RDF_XML,
    "json-ld": ResultFormat.JSON_LD,
    "nq": ResultFormat.N_QUADS,
}


@dataclass(frozen=True, slots=True)
class QueryParameters:
    """The parameters of a query string or form."""

    query: str | None
    dataset: Dataset
    formats: tuple[str, ...]  # names or media types, the preferred one first
    timeout_s: float | None
    min_index: int  # 0 without one
    consistency: Consistency | None
    explain: bool  # answer with how the query is evaluated
    entailment: Entailment
    query_id: str | None = None  # the name that the client gives the query for `/queries`
    as_of: Moment | None = None  # the state of the past that is read; None: the present

    def required_query(self) -> str:
        """The query. Raises InvalidParameter without one."""
        if self.query is None:
            raise InvalidParameter("query", "is missing")
        return self.query


def read_query_parameters(*encoded: bytes) -> QueryParameters:
    """Read a query string, or a query string and a form. Raises InvalidParameter, LimitExceeded."""
    parameters = Parameters(*encoded)
    if "update" in parameters:
        raise InvalidParameter("update", "has to be in a form that is POSTed, without a query")
    return QueryParameters(
        parameters.one("query"),
        read_dataset(parameters, "default-graph-uri", "named-graph-uri"),
        tuple(parameters.many("format")),
        read_timeout(parameters),
        read_min_index(parameters),
        read_consistency(parameters),
        read_flag(parameters, "explain") is True,
        _read_entailment(parameters),
        _read_query_id(parameters),
        read_as_of(parameters),
    )


def read_min_index(parameters: Parameters) -> int:
    """The log index that the answer has to be at or after; 0 without one. Raises InvalidParameter."""
    text = parameters.one("min_index")
    if text is None:
        return 0
    if not _INDEX.fullmatch(text):
        raise InvalidParameter("min_index", f"{text!r} is not a log index: 0, 1, 2 and so on")
    return int(text)


def read_as_of(parameters: Parameters) -> Moment | None:
    """The state of the past that a request asks for; None without one. Raises InvalidParameter."""
    text = parameters.one("as_of")
    return None if text is None else read_moment(text)


def refuse_as_of(parameters: Parameters, why: str) -> None:
    """Raises InvalidParameter for a request that would have to be about the past, and cannot."""
    if "as_of" in parameters:
        raise InvalidParameter("as_of", why)


def read_timeout(parameters: Parameters) -> float | None:
    """The client's time limit in seconds, from 2.5, 2.5s or 2500ms. Raises InvalidParameter."""
    text = parameters.one("timeout")
    if text is None:
        return None
    found = _DURATION.fullmatch(text)
    timeout_s = float(found[1]) / _PER_SECOND[found[2]] if found else 0.0
    if timeout_s == 0:
        raise InvalidParameter(
            "timeout", f"{text[:100]!r} is not a time over 0, in seconds or with a unit: 2.5, 2.5s or 2500ms"
        )
    return timeout_s


def _read_query_id(parameters: Parameters) -> str | None:
    """Raises InvalidParameter."""
    text = parameters.one("query_id")
    if text is not None and not _QUERY_ID.fullmatch(text):
        raise InvalidParameter("query_id", f"{text[:100]!r} is not 8 to 64 letters, digits and hyphens")
    return text


def _read_entailment(parameters: Parameters) -> Entailment:
    """Raises InvalidParameter."""
    text = parameters.one("entailment")
    if text is None:
        return Entailment.GEOSPARQL
    try:
        return Entailment(text)
    except ValueError:
        known = ", ".join(each.value for each in Entailment)
        raise InvalidParameter("entailment", f"{text!r} is none of {known}") from None


def read_consistency(parameters: Parameters) -> Consistency | None:
    """The consistency level of a query string or form, or None. Raises InvalidParameter."""
    text = parameters.one("consistency")
    return None if text is None else _level("consistency", text)


def consistency_of(request: Request, parameter: Consistency | None) -> Consistency:
    """The level of a request by its parameter, which has been read, or its header; LOCAL without either.

    Raises InvalidParameter, also if the parameter and the header differ.
    """
    asked = parameter
    for name, value in request.scope["headers"]:
        if name == _HEADER:
            level = _level(HEADER, value.decode("latin-1"))
            if asked is not None and asked is not level:
                raise InvalidParameter(HEADER, f"asks for {level.value}, the same request for {asked.value}")
            asked = level
    return asked or Consistency.LOCAL


def _level(name: str, text: str) -> Consistency:
    level = _LEVELS.get(text.lower())
    if level is None:
        raise InvalidParameter(name, f"{text!r} is not a read level; there are {', '.join(_LEVELS)}")
    return level


def choose_format(request: Request, names: Sequence[str], form: str) -> ResultFormat:
    """The format of an answer: by the parameter `format` (a short name or a media type), else by Accept.

    SPARQLWrapper sends one format in several spellings; the first known one counts.
    Raises InvalidParameter, NotAcceptable.
    """
    if not names:
        accepted = [value for name, value in request.scope["headers"] if name == b"accept"]
        return _by_accept(b", ".join(accepted).decode("latin-1"), form)
    name = next((name for name in names if "/" in name or name.lower() in _BY_NAME), None)
    if name is None:
        raise InvalidParameter("format", f"{names[0]!r} is not known; known are {', '.join(_BY_NAME)}")
    if "/" in name:
        return _by_accept(name, form)
    fmt = _BY_NAME[name.lower()]
    if fmt is ResultFormat.XML and fmt not in formats_for(form):
        fmt = ResultFormat.RDF_XML  # SPARQLWrapper sends xml for RDF/XML
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
