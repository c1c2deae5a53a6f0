"""Reads the parameters of a part of a request, and refuses those that are unknown or of another type."""

from collections.abc import Mapping, Set
from typing import Any, TypeVar

from graphdb.search.errors import SearchError, illegal_request, parsing
from graphdb.search.near_names import did_you_mean
from graphdb.search.query.slots import Slot

__all__ = ["Options", "only_member", "required"]

T = TypeVar("T")


class Options:
    """The parameters of `owner` (the name that errors give). Take each once, then call `done`."""

    def __init__(self, owner: str, body: Any) -> None:
        if not isinstance(body, Mapping):
            raise parsing(f"[{owner}] malformed, expected an object")
        self.owner = owner
        self._left = dict(body)
        self._known: set[str] = set()

    def __contains__(self, key: str) -> bool:
        self._known.add(key)
        return key in self._left

    def take(self, key: str, default: Any = None) -> Any:
        """Whatever stands there; null counts as absent."""
        self._known.add(key)
        value = self._left.pop(key, None)
        if value is None:
            return default
        return value.value if type(value) is Slot else value

    def names(self) -> Set[str]:
        """Of what was not taken yet."""
        return self._left.keys()

    def slot(self, key: str) -> Any:
        """What stands there, which `take` gives still: a slot where there is one, see `forms`."""
        return self._left.get(key)

    def ignore(self, *keys: str) -> None:
        """Parameters that are accepted and change no answer here."""
        self._known.update(keys)
        for key in keys:
            self._left.pop(key, None)

    def text(self, key: str, default: str | None = None) -> str | None:
        value = self.take(key)
        if value is None:
            return default
        if isinstance(value, (dict, list)):
            raise self.unreadable(key)
        return str(value).lower() if isinstance(value, bool) else str(value)

    def number(self, key: str, default: float | None = None) -> float | None:
        value = self.take(key)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, (int, float, str)):
            raise self.unreadable(key)
        try:
            return float(value)
        except (ValueError, OverflowError) as error:
            raise self.unreadable(key) from error

    def integer(self, key: str, default: int, least: int | None = None) -> int:
        """A whole number of 32 bits, at least `least`."""
        value = self.number(key)
        if value is None:
            return default
        if value != value or abs(value) >= 2**31:
            raise self.unreadable(key)
        if least is not None and value < least:
            raise illegal_request(f"[{key}] must be greater than or equal to {least}. Found [{int(value)}]")
        return int(value)

    def flag(self, key: str, default: bool = False) -> bool:
        value = self.take(key)
        if value is None:
            return default
        if isinstance(value, bool):
            return value
        if value in ("true", "false"):
            return bool(value == "true")
        raise self.unreadable(key)

    def items(self, key: str) -> list[Any]:
        """A list; one value alone counts as a list of one, and none as an empty one."""
        value = self.take(key)
        if value is None:
            return []
        return value if isinstance(value, list) else [value]

    def rest(self) -> dict[str, Any]:
        """All that was not taken yet; nothing is left then."""
        rest, self._left = self._left, {}
        return rest

    def unreadable(self, key: str) -> SearchError:
        return SearchError("x_content_parse_exception", f"[{self.owner}] failed to parse field [{key}]")

    def done(self) -> None:
        for key in self._left:
            hint = did_you_mean(key, self._known)
            raise SearchError(
                "x_content_parse_exception", f"[{self.owner}] unknown field [{key[:100]}]{hint}"
            )


def required(value: T | None, key: str) -> T:
    """The value of a parameter that must be there."""
    if value is None:
        raise illegal_request(f"Required one of fields [{key}], but none were specified. ")
    return value


def only_member(body: object, owner: str) -> tuple[str, Any]:
    """The one member of an object."""
    if not isinstance(body, Mapping) or len(body) != 1:
        raise parsing(f"[{owner}] malformed, expected an object with exactly one member", line=1, col=1)
    return next(iter(body.items()))
