"""`AskedOperation`: what a request to `/graphql` asks for, strictly read.

After the draft of GraphQL over HTTP, sections 5.3 and 5.4. Whatever is wrong with the request as such is
`MalformedOperation`; what is wrong with the GraphQL in it is found out later.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson
from starlette.requests import Request

from graphdb.errors import InvalidParameter, TextTooLarge
from serve.bodies import read_body
from serve.json_bodies import check_is_json
from serve.parameters import Parameters

__all__ = ["AskedOperation", "MalformedOperation", "read_get", "read_members", "read_post"]

_NAME_CHARACTERS_MAX = 1000


class MalformedOperation(InvalidParameter):
    """A request that is no GraphQL request."""


@dataclass(frozen=True, slots=True)
class AskedOperation:
    """The members of a request; text is that of the document."""

    text: str
    variables: Mapping[str, Any] | None
    operation_name: str | None
    extensions: Mapping[str, Any] | None = None


async def read_post(request: Request, body_bytes_max: int, text_bytes_max: int) -> AskedOperation:
    """Read the body of a POST.

    Raises UnsupportedMediaType, BodyTooLarge, TextTooLarge, MalformedOperation.
    """
    check_is_json(request)
    members = _json("body", await read_body(request, body_bytes_max))
    if isinstance(members, list):
        raise MalformedOperation("body", "is an array: several operations in one request are not offered")
    if not isinstance(members, dict):
        raise MalformedOperation("body", "is no JSON object")
    return read_members(members, text_bytes_max)


def read_get(parameters: Parameters, text_bytes_max: int) -> AskedOperation:
    """Read the query string of a GET. Raises TextTooLarge, MalformedOperation, InvalidParameter."""
    members: dict[str, Any] = {name: parameters.one(name) for name in ("query", "operationName")}
    for name in ("variables", "extensions"):
        text = parameters.one(name)
        members[name] = _json(name, text.encode()) if text else None
    return read_members(members, text_bytes_max)


def read_members(members: Mapping[str, Any], text_bytes_max: int) -> AskedOperation:
    """Read a request that is an object already. Raises TextTooLarge, MalformedOperation."""
    text = members.get("query")
    if text is None:
        raise MalformedOperation("query", "is missing")
    if not isinstance(text, str):
        raise MalformedOperation("query", "is no text")
    size = len(text.encode(errors="surrogatepass"))
    if size > text_bytes_max:
        raise TextTooLarge("query bytes (security.max_query_bytes)", size, text_bytes_max)
    name = members.get("operationName")
    if name is not None and (not isinstance(name, str) or len(name) > _NAME_CHARACTERS_MAX):
        raise MalformedOperation("operationName", "is no name")
    for member in ("variables", "extensions"):
        if not isinstance(members.get(member), dict | None):
            raise MalformedOperation(member, "is no JSON object")
    # GraphQL clients send "" for none
    return AskedOperation(text, members.get("variables"), name or None, members.get("extensions"))


def _json(name: str, encoded: bytes) -> Any:
    try:
        return orjson.loads(encoded)
    except orjson.JSONDecodeError as error:
        raise MalformedOperation(name, f"is no JSON: {error.msg} at character {error.pos}") from None
