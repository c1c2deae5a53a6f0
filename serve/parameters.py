"""Query strings and forms, strictly decoded, and the IRI of a request."""

import re
from functools import lru_cache
from urllib.parse import unquote_to_bytes

from pyoxigraph import NamedNode
from starlette.requests import Request

from graphdb.errors import InvalidParameter, LimitExceeded
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.terms import AS_OF_SCHEME

__all__ = [
    "Parameters",
    "is_authority",
    "read_dataset",
    "read_flag",
    "read_graph_iri",
    "read_path_text",
    "request_iri",
]

FIELDS_MAX = 10_000
_BROKEN_PERCENT = re.compile(rb"%(?![0-9A-Fa-f]{2})")

_AUTHORITY = re.compile(rb"(?:(?:[A-Za-z0-9._~-]|%[0-9A-Fa-f]{2})+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{0,5})?")
_AUTHORITY_BYTES_MAX = 512


class Parameters:
    """The fields of a query string or form, in order; a name may occur several times."""

    __slots__ = ("_fields",)

    def __init__(self, *encoded: bytes) -> None:
        """Read several strings as one, such as the query string and the form of the same request.

        Raises InvalidParameter for a broken escape or what is not UTF-8, LimitExceeded.
        """
        self._fields: dict[str, list[str]] = {}
        for part in encoded:
            self._read(part)

    def _read(self, encoded: bytes) -> None:
        if not encoded:
            return
        if _BROKEN_PERCENT.search(encoded):
            raise InvalidParameter("percent-encoding", "a % is not followed by two hexadecimal digits")
        fields = encoded.split(b"&")
        if len(fields) > FIELDS_MAX:
            raise LimitExceeded("the number of form fields", len(fields), FIELDS_MAX)
        for field in fields:
            if field:
                encoded_name, _, value = field.partition(b"=")
                name = _decode(encoded_name, "a parameter's name")
                self._fields.setdefault(name, []).append(_decode(value, name))

    def __contains__(self, name: str) -> bool:
        return name in self._fields

    def __bool__(self) -> bool:
        return bool(self._fields)

    @property
    def names(self) -> list[str]:
        """The names of all parameters, in order of appearance."""
        return [*self._fields]

    def many(self, name: str) -> list[str]:
        """Every value of the parameter, in order."""
        return self._fields.get(name, [])

    def one(self, name: str) -> str | None:
        """The value, or None. Raises InvalidParameter if the parameter occurs twice."""
        values = self.many(name)
        if len(values) > 1:
            raise InvalidParameter(name, f"given {len(values)} times, may be given once")
        return values[0] if values else None


def _decode(encoded: bytes, name: str) -> str:
    try:
        return unquote_to_bytes(encoded.replace(b"+", b" ")).decode()
    except UnicodeDecodeError as error:
        raise InvalidParameter(name, f"is not UTF-8 ({error.reason})") from None


def read_flag(parameters: Parameters, name: str) -> bool | None:
    """A parameter that is true or false; None without it. Raises InvalidParameter."""
    text = parameters.one(name)
    if text not in (None, "true", "false"):
        raise InvalidParameter(name, f"{text!r} is neither true nor false")
    return None if text is None else text == "true"


def read_path_text(segment: str) -> str:
    """Decode one percent-encoded segment of a path. Raises InvalidParameter."""
    encoded = segment.encode("latin-1")
    if _BROKEN_PERCENT.search(encoded):
        raise InvalidParameter("path", "a % is not followed by two hexadecimal digits")
    try:
        return unquote_to_bytes(encoded).decode()
    except UnicodeDecodeError as error:
        raise InvalidParameter("path", f"is not UTF-8 ({error.reason})") from None


def read_graph_iri(name: str, value: str) -> NamedNode:
    """The graph that a parameter names. Raises InvalidParameter if it is not an absolute IRI."""
    try:
        return NamedNode(value)
    except ValueError as error:
        raise InvalidParameter(name, f"{value!r} is not an absolute IRI: {error}") from None


def read_dataset(parameters: Parameters, default: str, named: str) -> Dataset:
    """The dataset by its two parameters, such as default-graph-uri and named-graph-uri. Raises
    InvalidParameter, also for a state of the past: nobody would expect an empty graph of that name.
    """
    if default not in parameters and named not in parameters:
        return _WHOLE
    for name in (default, named):
        if any(value.startswith(AS_OF_SCHEME) for value in parameters.many(name)):
            raise InvalidParameter(name, "names a state of the past, which the parameter as_of asks for")
    return Dataset(
        tuple(read_graph_iri(default, value) for value in parameters.many(default)),
        tuple(read_graph_iri(named, value) for value in parameters.many(named)),
    )


_WHOLE = Dataset()


@lru_cache(maxsize=256)
def is_authority(host: bytes) -> bool:
    """Whether a Host header is a host with an optional port (RFC 9110, section 7.2)."""
    return len(host) <= _AUTHORITY_BYTES_MAX and _AUTHORITY.fullmatch(host) is not None


def request_iri(request: Request) -> str:
    """The request's absolute IRI without its query, percent-encoding as sent.

    Raises InvalidParameter for an invalid Host header, because the IRI would be invalid too.
    """
    host = request.headers.get("host") or _own_address(request)
    path = request.scope.get("raw_path") or request.scope["path"].encode()
    return f"{request.scope['scheme']}://{_authority(host)}{path.decode('latin-1')}"


def _authority(host: str) -> str:
    if not is_authority(host.encode("latin-1")):
        raise InvalidParameter("Host", f"{host!r} is not a host with an optional port")
    return host


def _own_address(request: Request) -> str:
    """For HTTP/1.0, which needs no Host header."""
    host, port = request.scope.get("server") or ("localhost", None)
    if ":" in host:  # IPv6; a zone means something to this machine alone (RFC 6874)
        host = f"[{host.partition('%')[0]}]"
    return f"{host}:{port}" if port else host
