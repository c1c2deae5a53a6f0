"""Reading the members of a clause's body: types, defaults, and Elasticsearch's words where one is wrong."""

import math
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from graphdb.search.errors import SearchError, illegal_request, parsing

__all__ = ["Clause", "field_clause", "malformed", "number_format"]


def malformed(reason: str) -> SearchError:
    """A parsing_exception; all of a body stands in its first line and column, for positions are not kept."""
    return parsing(reason, line=1, col=1)


def number_format(value: object) -> SearchError:
    """What Java says of text that is no number."""
    return SearchError("number_format_exception", f'For input string: "{value}"')


class Clause:
    """The body of one clause, read member by member; `done` refuses those that nobody has asked for."""

    def __init__(self, kind: str, body: Mapping[str, Any], unknown: str = "[{}] query does not support [{}]"):
        self.kind = kind
        self._rest = dict(body)
        self._unknown = unknown
        self.boost = self.number("boost", 1.0)
        self.name = self.string("_name")
        if self.boost < 0:
            raise illegal_request(
                f"negative [boost] are not allowed in [{kind}], use a value between 0 and 1 to deboost"
            )

    def __contains__(self, member: str) -> bool:
        return self._rest.get(member) is not None

    def take(self, member: str, default: Any = None) -> Any:
        """A member of any type."""
        value = self._rest.pop(member, None)
        return default if value is None else value

    def ignore(self, *members: str) -> None:
        """Members that have a meaning in Elasticsearch, but none that shows here."""
        for member in members:
            self._rest.pop(member, None)

    def needed(self, member: str) -> Any:
        value = self.take(member)
        if value is None:
            raise malformed(f"[{self.kind}] query requires '{member}' field")
        return value

    def string(self, member: str, default: str | None = None) -> str | None:
        value = self.take(member)
        return default if value is None else self._scalar(member, value)

    def word(self, member: str, default: str) -> str:
        """A string that has a default."""
        value = self.take(member)
        return default if value is None else self._scalar(member, value)

    def _scalar(self, member: str, value: Any) -> str:
        if isinstance(value, dict | list):
            self.refuse(member, value)
        return str(value).lower() if isinstance(value, bool) else str(value)

    def number(self, member: str, default: float) -> float:
        value = self.take(member)
        if value is None:
            return default
        if isinstance(value, dict | list | bool):
            self.refuse(member, value)
        try:
            number = float(value)
        except ValueError:
            raise number_format(value) from None
        if not math.isfinite(number):
            raise illegal_request(f"[{self.kind}] [{member}] must be a finite number, got [{value}]")
        return number

    def integer(self, member: str, default: int) -> int:
        number = self.number(member, default)
        if number != int(number):
            raise illegal_request(f"{number} cannot be converted to Integer without data loss")
        return int(number)

    def flag(self, member: str, default: bool) -> bool:
        value = self.take(member)
        if value is None:
            return default
        if value in (True, "true"):
            return True
        if value in (False, "false", ""):
            return False
        raise illegal_request(f"Failed to parse value [{value}] as only [true] or [false] are allowed.")

    def choice(self, member: str, default: str, allowed: tuple[str, ...]) -> str:
        value = self.word(member, default)
        for known in allowed:
            if value.lower() == known:
                return known
        raise malformed(f"[{self.kind}] query does not support [{member}] of [{value}]")

    def refuse(self, member: str, value: Any) -> NoReturn:
        """A member that is an object or array where a value should stand."""
        token = "START_OBJECT" if isinstance(value, dict) else "START_ARRAY"
        if isinstance(value, bool):
            token = "VALUE_BOOLEAN"
        raise malformed(f"[{self.kind}] unknown token [{token}] after [{member}]")

    def done(self) -> None:
        """Everything that may be there has been read."""
        for member in self._rest:
            raise malformed(self._unknown.format(self.kind, member))


def field_clause(
    kind: str, body: Mapping[str, Any], short: str, is_short: Callable[[Any], bool] | None = None
) -> tuple[str, Clause]:
    """Read `{"field": {...}}` or `{"field": value}`, where value is that of the member named short."""
    own = {key: value for key, value in body.items() if key in ("boost", "_name") and len(body) > 1}
    fields = [key for key in body if key not in own]
    if len(fields) > 1:
        raise malformed(
            f"[{kind}] query doesn't support multiple fields, found [{fields[0]}] and [{fields[1]}]"
        )
    if not fields or not fields[0]:
        raise illegal_request("field name is null or empty")
    value = body[fields[0]]
    if isinstance(value, list) and is_short is None:
        raise malformed(f"[{kind}] unknown token [START_ARRAY] after [{fields[0]}]")
    members = value if isinstance(value, dict) else {short: value}
    return fields[0], Clause(kind, {**own, **members})
