"""JSON bodies of a known form: what is not in it is refused by name."""

from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from starlette.requests import Request

from graphdb.errors import InvalidParameter, UnsupportedMediaType
from serve.bodies import content_type, read_body

__all__ = ["JSON_TYPE", "JsonBody", "check_is_json", "parse_json", "read_json", "read_optional_json"]

JSON_TYPE = "application/json"


class JsonBody(BaseModel):
    """The members of a body, each of its own type and no others."""

    model_config = ConfigDict(extra="forbid", strict=True)


_Body = TypeVar("_Body", bound=JsonBody)


async def read_json(request: Request, kind: type[_Body], bytes_max: int) -> _Body:
    """The body of a request. Raises UnsupportedMediaType, BodyTooLarge, InvalidParameter."""
    check_is_json(request)
    return parse_json(await read_body(request, bytes_max), kind)


async def read_optional_json(request: Request, kind: type[_Body], bytes_max: int) -> _Body:
    """The same for a body that may be absent, which leaves all its members as they are by default."""
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
