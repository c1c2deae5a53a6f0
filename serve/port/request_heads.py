"""What RFC 9112 asks of the head of a request, beyond what the parser checks; which is answered at once."""

import httptools

from serve.parameters import is_authority

__all__ = [
    "CHECKED",
    "FRAMING",
    "Refused",
    "body_bytes_at_once",
    "check_head",
    "check_header",
    "origin_form",
]

FRAMING = (b"content-length", b"transfer-encoding")
CHECKED = frozenset({b"host", b"transfer-encoding"})
Headers = list[tuple[bytes, bytes]]


class Refused(Exception):
    """Raised while a head is parsed: the status and message of the answer."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(status, message)
        self.status, self.message = status, message


def check_header(name: bytes, value: bytes) -> None:
    """Raises Refused for a value of one of CHECKED that is not served."""
    if name == b"host":
        if not is_authority(value):
            raise Refused(400, "Host is not a host with an optional port")
    elif value.lower() != b"chunked":
        raise Refused(501, "Transfer-Encoding other than chunked is not read")


def check_head(version: str, headers: Headers) -> None:
    """Raises Refused for requests that RFC 9112 forbids and the parser accepts."""
    hosts = [name for name, _ in headers].count(b"host")
    if version == "1.1":
        if hosts != 1:
            raise Refused(400, "a request of HTTP/1.1 has one Host header")  # section 3.2
    elif version != "1.0":
        raise Refused(505, "HTTP/1.1 and HTTP/1.0 are spoken here")
    elif hosts > 1:
        raise Refused(400, "there is more than one Host header")
    elif any(name == b"transfer-encoding" for name, _ in headers):
        raise Refused(400, "HTTP/1.0 has no Transfer-Encoding")  # section 6.1


def origin_form(method: bytes, target: bytes, headers: Headers) -> bytes:
    """The target as a path with its query. One that is an absolute URL has its host replace Host in headers
    (section 3.2.2); `*` stays for OPTIONS. Raises Refused.
    """
    if target[:1] != b"/" and (target != b"*" or method != b"OPTIONS"):
        scheme, slashes, rest = target.partition(b"://")
        authority = rest.replace(b"?", b"/").partition(b"/")[0]
        if scheme.lower() not in (b"http", b"https") or not slashes or not is_authority(authority):
            raise Refused(400, "the address is neither a path nor an absolute http address")
        path = rest[len(authority) :]
        target = path if path.startswith(b"/") else b"/" + path
        headers[:] = [header for header in headers if header[0] != b"host"] + [(b"host", authority)]
    if b"#" in target:
        raise Refused(400, "the address has a fragment: in a query # is written %23")  # section 3.2
    return target


def body_bytes_at_once(parser: httptools.HttpRequestParser, headers: Headers) -> int | None:
    """How long the body of a request is, whose head is complete. None: it is not answered at once, as its
    length is unknown or more is to be done than to answer it.
    """
    if parser.get_http_version() != "1.1" or parser.should_upgrade() or not parser.should_keep_alive():
        return None
    body_bytes = 0
    for name, value in headers:
        if name == b"content-length":
            body_bytes = int(value)
        elif name in (b"transfer-encoding", b"expect"):
            return None
    return body_bytes
