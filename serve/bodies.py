"""Bodies of requests: read in pieces, decompressed and counted; and JSON bodies with a fixed structure."""

import codecs
from collections.abc import AsyncIterator
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from starlette.requests import ClientDisconnect, Request

from graphdb.content_coding import content_decoder
from graphdb.errors import BodyTooLarge, InvalidParameter, UnsupportedMediaType
from serve.negotiation import MediaType, parse_media_type

__all__ = [
    "JSON_TYPE",
    "JsonBody",
    "body_chunks",
    "check_is_json",
    "content_type",
    "media_type_name",
    "parse_json",
    "read_body",
    "read_json",
    "read_optional_json",
    "read_text",
]

_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

JSON_TYPE = "application/json"


def content_type(request: Request, accepted: tuple[str, ...]) -> MediaType:
    """The body's media type; its charset has to be UTF-8. Raises UnsupportedMediaType with accepted."""
    header = request.headers.get("content-type", "")
    try:
        media_type = parse_media_type(header)
    except ValueError:
        raise UnsupportedMediaType(header, accepted) from None
    if media_type.parameter("charset") not in (None, "utf-8"):
        raise UnsupportedMediaType(header, tuple(f"{name}; charset=utf-8" for name in accepted))
    return media_type


def media_type_name(request: Request) -> str:
    """The name of the body's media type, in lower case, without parameters; "" where there is none."""
    name, _, _ = request.headers.get("content-type", "").partition(";")
    return name.strip().lower()


async def body_chunks(request: Request, bytes_max: int) -> AsyncIterator[bytes]:
    """The body, decompressed, in pieces of bounded size.

    Raises UnsupportedMediaType for an unknown Content-Encoding, BodyTooLarge as soon as the limit is
    exceeded, InvalidParameter for damaged or truncated compressed data, and Starlette's ClientDisconnect.
    """
    _check_announced_length(request, bytes_max)
    decoder = content_decoder(request.headers.get("content-encoding", ""))
    size = 0
    async for received in request.stream():
        for chunk in decoder.feed(received):
            size += len(chunk)
            if size > bytes_max:
                raise BodyTooLarge(bytes_max)
            yield chunk
    decoder.check_complete()


async def read_body(request: Request, bytes_max: int) -> bytes:
    """The whole body, in UTF-8 without its byte order mark.

    Raises as body_chunks, and InvalidParameter for a body in UTF-16.
    """
    if "content-encoding" in request.headers:
        body = b"".join([chunk async for chunk in body_chunks(request, bytes_max)])
    else:
        body = await _read_plain(request, bytes_max)
    if body.startswith(_UTF_16):
        raise InvalidParameter("body", "is in UTF-16, and has to be in UTF-8")
    return body.removeprefix(codecs.BOM_UTF8)


async def _read_plain(request: Request, bytes_max: int) -> bytes:
    """An uncompressed body, at half the cost of `body_chunks`."""
    _check_announced_length(request, bytes_max)
    body, more = b"", True
    while more:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > bytes_max:
            raise BodyTooLarge(bytes_max)
    return body


async def read_text(request: Request, bytes_max: int) -> str:
    """The whole body as text. Raises as body_chunks, and InvalidParameter for what is not UTF-8."""
    try:
        return (await read_body(request, bytes_max)).decode()
    except UnicodeDecodeError as error:
        raise InvalidParameter("body", f"is not UTF-8 ({error.reason} at byte {error.start})") from None


def _check_announced_length(request: Request, bytes_max: int) -> None:
    """Refuse a body whose Content-Length exceeds the limit already."""
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced) > bytes_max:
        raise BodyTooLarge(bytes_max)


class JsonBody(BaseModel):
    """The members of a body, with strict types. Unknown members are refused by name."""

    model_config = ConfigDict(extra="forbid", strict=True)


_Body = TypeVar("_Body", bound=JsonBody)


async def read_json(request: Request, kind: type[_Body], bytes_max: int) -> _Body:
    """The body of a request. Raises UnsupportedMediaType, BodyTooLarge, InvalidParameter."""
    check_is_json(request)
    return parse_json(await read_body(request, bytes_max), kind)


async def read_optional_json(request: Request, kind: type[_Body], bytes_max: int) -> _Body:
    """As `read_json`; without a body all members have their defaults."""
    body = await read_body(request, bytes_max)
    if not body:
        return kind()
    check_is_json(request)
    return parse_json(body, kind)


def check_is_json(request: Request) -> None:
    """Raises UnsupportedMediaType for a body of another type."""
    media_type = content_type(request, (JSON_TYPE,))
    if media_type.name != JSON_TYPE:
        raise UnsupportedMediaType(media_type.name, (JSON_TYPE,))


def parse_json(body: bytes, kind: type[_Body]) -> _Body:
    """The members of a body that has been read. Raises InvalidParameter."""
    try:
        return kind.model_validate_json(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        reason = first["msg"].removeprefix("Value error, ")
        raise InvalidParameter(".".join(map(str, first["loc"])) or "body", reason) from None
