"""`RemoteCluster`: the `source.remote` of a `_reindex`, the requests to it, and what it answers.

Any cluster that has Elasticsearch's scrolls, from version 5 on. The requests are made elsewhere.
Source: Elasticsearch 8.19's documentation of the reindex API.
"""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlsplit

import msgspec
import orjson

from graphdb.search.catalog.index_settings import duration_ms
from graphdb.search.errors import SearchError, illegal_argument

__all__ = ["RemoteAnswer", "RemoteCall", "RemoteCluster", "RemoteHit", "RemotePage", "read_page"]

_MEMBERS = {
    *("host", "username", "password", "api_key", "headers"),
    *("socket_timeout", "connect_timeout"),
}
_TIMEOUT = "30s"
_TIMEOUT_S_MAX = 600.0
_KEEP_ALIVE = "5m"  # of a scroll, from one page to the next
# Those that say where a message ends and who it is for are not the client's.
_OWN_HEADERS = {
    *("accept-encoding", "connection", "content-encoding", "content-length", "content-type", "host"),
    *("te", "trailer", "transfer-encoding", "upgrade", "user-agent"),
}
_SHOWN_MAX = 1_000
_NO_JSON = msgspec.Raw()


@dataclass(frozen=True, slots=True)
class RemoteCall:
    """One request to a remote cluster. timeout_s: for all of it."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    body: bytes = field(repr=False)
    timeout_s: float


@dataclass(frozen=True, slots=True)
class RemoteAnswer:
    """body: whole and decompressed."""

    status: int
    body: bytes = field(repr=False)


class RemoteHit(msgspec.Struct, frozen=True):
    """A document as the remote cluster shows it, its source as it was sent; empty without one."""

    index: str = msgspec.field(name="_index")
    doc_id: str = msgspec.field(name="_id")
    version: int = msgspec.field(name="_version", default=1)
    routing: str | None = msgspec.field(name="_routing", default=None)
    source: msgspec.Raw = msgspec.field(name="_source", default=_NO_JSON)


class _Total(msgspec.Struct):
    value: int


class _Hits(msgspec.Struct):
    hits: list[RemoteHit]
    total: _Total | int = 0  # a number before version 7


class _ShardFailure(msgspec.Struct):
    reason: msgspec.Raw = _NO_JSON


class _Shards(msgspec.Struct):
    failures: list[_ShardFailure] = []


class _Answer(msgspec.Struct):
    hits: _Hits
    scroll_id: str | None = msgspec.field(name="_scroll_id", default=None)
    shards: _Shards = msgspec.field(name="_shards", default_factory=_Shards)


_ANSWER = msgspec.json.Decoder(_Answer)


@dataclass(frozen=True, slots=True)
class RemotePage:
    """total: of all pages."""

    total: int
    hits: Sequence[RemoteHit]
    scroll_id: str | None


@dataclass(frozen=True, slots=True)
class RemoteCluster:
    """host: its URL, with the prefix of its paths, without a slash at the end."""

    host: str
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    timeout_s: float

    @classmethod
    def of(cls, given: Any) -> "RemoteCluster":
        """Of the member `remote`. Errors: illegal_argument_exception."""
        if not isinstance(given, Mapping):
            raise illegal_argument("[remote] must be an object")
        host = _host_of(given)
        unknown = sorted(given.keys() - _MEMBERS)
        if unknown:
            raise illegal_argument(f"Unsupported fields in [remote]: [{','.join(unknown)[:200]}]")
        limit_s = _seconds(given, "connect_timeout") + _seconds(given, "socket_timeout")
        headers = (("Content-Type", "application/json"), ("Accept", "application/json"))
        return cls(host, (*headers, *_given_headers(given), *_credentials(given)), limit_s)

    @property
    def address(self) -> str:
        """Host and port."""
        return urlsplit(self.host).netloc

    def first(self, indexes: Sequence[str], search: Mapping[str, Any], size: int) -> RemoteCall:
        """The request for the first page. search: what the source says of query, _source and sort."""
        names = ",".join(quote(name, safe="*") for name in indexes)
        query = {"match_all": {}} if search.get("query") is None else search["query"]
        body = {"query": query, "version": True, "size": size, "sort": search.get("sort", ["_doc"])}
        if search.get("_source") is not None:
            body["_source"] = search["_source"]
        return self._call("POST", f"/{names}/_search?scroll={_KEEP_ALIVE}", body)

    def following(self, scroll_id: str) -> RemoteCall:
        """The request for the next page."""
        return self._call("POST", "/_search/scroll", {"scroll": _KEEP_ALIVE, "scroll_id": scroll_id})

    def end(self, scroll_id: str) -> RemoteCall:
        """The request that lets go of the scroll."""
        return self._call("DELETE", "/_search/scroll", {"scroll_id": [scroll_id]})

    def _call(self, method: str, path: str, body: Mapping[str, Any]) -> RemoteCall:
        return RemoteCall(method, self.host + path, self.headers, orjson.dumps(body), self.timeout_s)


def read_page(address: str, answer: RemoteAnswer) -> RemotePage:
    """Errors: status_exception with the status of the remote cluster; illegal_argument_exception for what is
    not an answer of Elasticsearch's.
    """
    if answer.status != 200:
        said = answer.body[:_SHOWN_MAX].decode(errors="replace")
        status = answer.status if 400 <= answer.status <= 599 else 502
        reason = f"[{address}] answers {answer.status}: body={said}"
        raise SearchError("status_exception", reason, status)
    try:
        page = _ANSWER.decode(answer.body)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise illegal_argument(
            f"Error parsing the response of [{address}], remote is likely not an Elasticsearch instance: "
            f"{str(error)[:200]}"
        ) from None
    if page.shards.failures:
        first = bytes(page.shards.failures[0].reason)
        said = first[:_SHOWN_MAX].decode(errors="replace")
        raise SearchError("status_exception", f"shards of [{address}] failed: {said}", 503)
    total = page.hits.total
    return RemotePage(total if isinstance(total, int) else total.value, page.hits.hits, page.scroll_id)


def _host_of(given: Mapping[str, Any]) -> str:
    host = _text(given, "host")
    if host is None:
        raise illegal_argument("[host] must be specified to reindex from a remote cluster")
    try:
        parsed = urlsplit(host)
        is_right = parsed.scheme in ("http", "https") and parsed.hostname and parsed.port is not None
    except ValueError:
        is_right = False
    if not is_right or parsed.query or parsed.fragment or parsed.username is not None:
        raise illegal_argument(
            f"[host] must be of the form [scheme]://[host]:[port](/[pathPrefix])? but was [{host[:200]}]"
        )
    return host.rstrip("/")


def _text(given: Mapping[str, Any], name: str) -> str | None:
    value = given.get(name)
    if value is not None and not isinstance(value, str):
        raise illegal_argument(f"Expected [{name}] to be a string")
    return value


def _seconds(given: Mapping[str, Any], name: str) -> float:
    ms = duration_ms(_text(given, name) or _TIMEOUT, name)
    if ms <= 0:
        raise illegal_argument(f"[{name}] must be greater than 0")
    return min(ms / 1000, _TIMEOUT_S_MAX)


def _given_headers(given: Mapping[str, Any]) -> list[tuple[str, str]]:
    headers = given.get("headers") or {}
    if not isinstance(headers, Mapping) or not all(isinstance(value, str) for value in headers.values()):
        raise illegal_argument("Expected [headers] to be an object of strings")
    for name, value in headers.items():
        if name.lower() in _OWN_HEADERS:
            raise illegal_argument(f"[headers] of [remote] cannot set [{name[:100]}]")
        if not (name + value).isprintable() or not (name + value).isascii():
            raise illegal_argument(f"[headers] of [remote] has an invalid header [{name[:100]!r}]")
    return list(headers.items())


def _credentials(given: Mapping[str, Any]) -> list[tuple[str, str]]:
    username, password, key = (_text(given, name) for name in ("username", "password", "api_key"))
    if key is not None and (username is not None or password is not None):
        raise illegal_argument("[remote] takes either [api_key] or [username] and [password]")
    if (username is None) != (password is None):
        raise illegal_argument("[remote] needs both [username] and [password], or neither")
    if key is not None:
        if not key.isascii() or not key.isprintable():
            raise illegal_argument("[api_key] has characters that no key has")
        return [("Authorization", f"ApiKey {key}")]
    if username is None:
        return []
    encoded = base64.b64encode(f"{username}:{password}".encode()).decode()
    return [("Authorization", f"Basic {encoded}")]
