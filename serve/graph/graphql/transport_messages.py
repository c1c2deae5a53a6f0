"""Messages of graphql-transport-ws, the sub-protocol of `/graphql/ws`: parses clients' messages, writes ours.

Its specification is PROTOCOL.md of github.com/enisdenjo/graphql-ws.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import orjson
from graphql import GraphQLError

__all__ = ["PROTOCOL", "ClientMessage", "Close", "SocketClosed", "error_message", "head_of", "read_message"]

PROTOCOL = "graphql-transport-ws"
_ID_CHARACTERS_MAX = 1_000
_WITH_ID = ("subscribe", "complete")
_TYPES = ("connection_init", "ping", "pong", *_WITH_ID)


class Close(IntEnum):
    """The codes with which the service closes a connection."""

    TRY_AGAIN_LATER = 1013
    BAD_REQUEST = 4400
    UNAUTHORIZED = 4401
    FORBIDDEN = 4403
    SUBPROTOCOL = 4406
    INITIALISATION_TIMEOUT = 4408
    ID_EXISTS = 4409
    INITIALISED_BEFORE = 4429


class SocketClosed(Exception):
    """The client has violated the protocol, and the connection has to be closed."""

    def __init__(self, code: Close, reason: str) -> None:
        super().__init__(code, reason)
        self.code, self.reason = code, reason


@dataclass(frozen=True, slots=True)
class ClientMessage:
    """id: "" for types without one. payload: None without one."""

    type: str
    id: str
    payload: Mapping[str, Any] | None


def read_message(text: str | None) -> ClientMessage:
    """text: None for a message of bytes. Raises SocketClosed."""
    if text is None:
        raise _bad("a message is text")
    try:
        body = orjson.loads(text)
    except (orjson.JSONDecodeError, RecursionError):
        raise _bad("a message is one JSON object") from None
    if not isinstance(body, dict):
        raise _bad("a message is one JSON object")
    kind, payload, message_id = body.get("type"), body.get("payload"), body.get("id", "")
    if kind not in _TYPES:
        raise _bad("the type of a message is one of those of graphql-transport-ws")
    if not isinstance(payload, dict | None) or (kind == "subscribe" and payload is None):
        raise _bad(f"the payload of {kind} is an object")
    if kind not in _WITH_ID:
        return ClientMessage(kind, "", payload)
    if not isinstance(message_id, str) or not 0 < len(message_id) <= _ID_CHARACTERS_MAX:
        raise _bad(f"the id of {kind} is a text of 1 to {_ID_CHARACTERS_MAX} characters")
    return ClientMessage(kind, message_id, payload)


def head_of(message_id: str, kind: str) -> bytes:
    """The start of a message, before its payload or its end."""
    return b'{"id":%s,"type":"%s"' % (orjson.dumps(message_id), kind.encode())


def error_message(message_id: str, errors: Sequence[GraphQLError]) -> bytes:
    """The message that ends an operation with errors."""
    payload = [one.formatted for one in errors]
    return orjson.dumps(
        {"id": message_id, "type": "error", "payload": payload}, option=orjson.OPT_NON_STR_KEYS
    )


def _bad(reason: str) -> SocketClosed:
    return SocketClosed(Close.BAD_REQUEST, f"Invalid message: {reason}")
