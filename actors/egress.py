"""What leaves the node for a request: which hosts SERVICE and LOAD may name, and the fetch that LOAD does."""

import ipaddress
from collections.abc import Callable, Iterable, Iterator, Sequence
from urllib.parse import urlsplit

import httpx
from pyoxigraph import Quad

from graphdb.errors import BodyTooLarge, EvaluationFailed, HostNotAllowed, InvalidParameter
from graphdb.rdf.formats import RdfSyntax
from graphdb.rdf.reading import read_quads

__all__ = ["host_allowed", "loader"]

_TIMEOUT_S = 30.0


def host_allowed(rules: Sequence[str], url: str) -> bool:
    """Whether a rule (host name, address or CIDR range) names the host of this http or https URL."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    host = (parts.hostname or "").rstrip(".")
    return parts.scheme in ("http", "https") and any(_matches(rule, host) for rule in rules)


def _matches(rule: str, host: str) -> bool:
    try:
        network = ipaddress.ip_network(rule, strict=False)
    except ValueError:
        return rule.lower().rstrip(".") == host
    try:
        return ipaddress.ip_address(host) in network
    except ValueError:
        return False


def loader(rules: Sequence[str], max_bytes: int) -> Callable[[str], Iterable[Quad]] | None:
    """What LOAD fetches documents with; None where no host is allowed."""
    if not rules:
        return None

    def load(url: str) -> Iterator[Quad]:
        if not host_allowed(rules, url):
            raise HostNotAllowed("LOAD", urlsplit(url).hostname or url)
        document, syntax = _fetch(url, max_bytes)
        return read_quads(document, syntax, base_iri=url)

    return load


def _fetch(url: str, max_bytes: int) -> tuple[bytes, RdfSyntax]:
    """A document and what it says it is. Redirects are not followed: they could lead to another host."""
    accept = ", ".join(syntax.media_type for syntax in RdfSyntax)
    chunks: list[bytes] = []
    try:
        with httpx.stream("GET", url, headers={"Accept": accept}, timeout=_TIMEOUT_S) as response:
            if response.status_code != httpx.codes.OK:
                raise EvaluationFailed(f"LOAD <{url}>: the host answers {response.status_code}")
            for chunk in response.iter_bytes():
                chunks.append(chunk)
                max_bytes -= len(chunk)
                if max_bytes < 0:
                    raise BodyTooLarge(sum(map(len, chunks)) + max_bytes)
            return b"".join(chunks), RdfSyntax.from_media_type(response.headers.get("content-type", ""))
    except httpx.HTTPError as error:
        raise EvaluationFailed(f"LOAD <{url}>: {error}") from error
    except httpx.InvalidURL as error:
        raise InvalidParameter("LOAD", str(error)) from error
