"""What all writes share: the header `Idempotency-Key`, and the confirmation.

A write that is sent again with the same key takes effect once. After
draft-ietf-httpapi-idempotency-key-header, the key is a string of structured fields (RFC 8941), in quotes.
Without quotes it is the same key. Keys of different principals are different.
"""

import re
from collections.abc import Iterable

import orjson
from starlette.requests import Request
from starlette.responses import Response

from graphdb.access.principal import EVERYONE
from graphdb.errors import InvalidParameter
from graphdb.log import request_ids
from graphdb.model import Confirmation, Interface
from serve.access.request_scope import author_of, principal_of, visibility_of
from serve.backend import GraphWrites, Writing
from serve.port.application import WholeAnswer

__all__ = ["confirm", "confirmed_bytes", "read_request_id", "writes_of"]

_NAME = "Idempotency-Key"
_CHARACTERS_MAX = 255
_QUOTED = re.compile(r'"((?:[ !#-\[\]-~]|\\["\\])*)"')
_BARE = re.compile(r"[!#-~][ -~]*")
_CONFIRMED_LINES = b"x-snapshot-index: %d\r\ncontent-type: application/json\r\ncontent-length: %d\r\n"


def writes_of(writing: Writing, request: Request, interface: Interface) -> GraphWrites:
    """Writing as the principal of a request, which came by this interface."""
    return writing.writes(visibility_of(request.scope), author_of(request.scope, interface))


def read_request_id(request: Request, distinguished_by: Iterable[str]) -> bytes | None:
    """The id of a write with a key (`graphdb.log.request_ids`); None without a key.

    distinguished_by: texts that distinguish this request from others with the same key. Raises
    InvalidParameter.
    """
    keys = request.headers.getlist(_NAME)
    if not keys:
        return None
    if len(keys) > 1:
        raise InvalidParameter(_NAME, f"given {len(keys)} times, may be given once")
    scope = request.scope
    target = (scope.get("raw_path") or scope["path"].encode()) + b"?" + scope["query_string"]
    principal = principal_of(scope)
    sender = () if principal is EVERYONE else (principal.provider, principal.name)
    return request_ids.keyed(
        _key(keys[0]), request.method, target, (text.encode() for text in distinguished_by), sender
    )


def _key(value: str) -> str:
    if quoted := _QUOTED.fullmatch(value):
        key = re.sub(r"\\(.)", r"\1", quoted[1])
    elif value and not _BARE.fullmatch(value):
        raise InvalidParameter(
            _NAME, "has to be printable ASCII, in whole quotes or without any at its start"
        )
    else:
        key = value
    if not key:
        raise InvalidParameter(_NAME, "is empty")
    if len(key) > _CHARACTERS_MAX:
        raise InvalidParameter(_NAME, f"has {len(key)} characters, at most {_CHARACTERS_MAX} are allowed")
    return key


def confirmed_bytes(confirmation: Confirmation) -> tuple[bytes, bytes]:
    """The header lines and the body of `confirm`, where they are sent as they are."""
    index = confirmation.snapshot_index
    body = b'{"success":true,"message":%s,"snapshot_index":%d,"affected_triples":%d}' % (
        orjson.dumps(confirmation.message),
        index,
        confirmation.affected_triples,
    )
    return _CONFIRMED_LINES % (index, len(body)), body


def confirm(confirmation: Confirmation, **beside: str) -> Response:
    """The response to every write: the confirmation, with further members."""
    body = {
        "success": True,
        "message": confirmation.message,
        "snapshot_index": confirmation.snapshot_index,
        "affected_triples": confirmation.affected_triples,
        **beside,
    }
    head = [
        (b"x-snapshot-index", b"%d" % confirmation.snapshot_index),
        (b"content-type", b"application/json"),
    ]
    return WholeAnswer(head, orjson.dumps(body))
