"""`ProcessorOptions`: the members of one processor's definition, each taken once."""

from collections.abc import Mapping
from typing import Any

from graphdb.search.errors import SearchError

__all__ = ["ProcessorOptions", "java_kind"]

REQUIRED: Any = object()


class ProcessorOptions:
    """Errors: parse_exception, which names the processor and the member."""

    def __init__(self, kind: str, values: Mapping[str, Any]) -> None:
        self.kind, self._left = kind, dict(values)
        self.tag: str | None = None
        self.tag = self.text("tag", None)

    def error(self, name: str, reason: str) -> SearchError:
        """For one member."""
        about = {"processor_type": self.kind, "property_name": name}
        if self.tag is not None:
            about["processor_tag"] = self.tag
        return SearchError("parse_exception", f"[{name}] {reason}", 400, about)

    def __contains__(self, name: str) -> bool:
        return name in self._left

    def take(self, name: str, default: Any = REQUIRED) -> Any:
        """As it was given."""
        value = self._left.pop(name, None)
        if value is None:
            if default is REQUIRED:
                raise self.error(name, "required property is missing")
            return default
        return value

    def text(self, name: str, default: Any = REQUIRED) -> Any:
        """A text; numbers and booleans are taken as texts."""
        value = self.take(name, default)
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, (int, float)):
            return str(value)
        if value is default or isinstance(value, str):
            return value
        raise self.error(name, f"property isn't a string, but of type [{java_kind(value)}]")

    def texts(self, name: str, default: Any = REQUIRED) -> Any:
        """A text, or a list of texts."""
        value = self.take(name, default)
        listed = [value] if isinstance(value, str) else value
        if value is not default and not (
            isinstance(listed, list) and all(isinstance(x, str) for x in listed)
        ):
            raise self.error(name, f"property isn't a list, but of type [{java_kind(value)}]")
        return listed

    def flag(self, name: str, default: bool) -> bool:
        value = self.take(name, default)
        if value in (True, False):
            return bool(value)
        if value in ("true", "false"):
            return bool(value == "true")
        raise self.error(name, f"property isn't a boolean, but of type [{java_kind(value)}]")

    def number(self, name: str, default: Any = REQUIRED) -> Any:
        value = self.take(name, default)
        if value is default or (isinstance(value, int) and not isinstance(value, bool)):
            return value
        if isinstance(value, str) and value.lstrip("-").isdecimal():
            return int(value[:20])
        raise self.error(name, f"property cannot be converted to an int [{str(value)[:50]}]")

    def mapping(self, name: str, default: Any = REQUIRED) -> Any:
        value = self.take(name, default)
        if value is not default and not isinstance(value, dict):
            raise self.error(name, f"property isn't a map, but of type [{java_kind(value)}]")
        return value

    def one_of(self, name: str, default: Any, *choices: str) -> str:
        value = str(self.text(name, default))
        if value not in choices:
            raise self.error(name, f"illegal value [{value[:50]}], one of {list(choices)} is expected")
        return value

    def done(self) -> None:
        """Nothing may be left."""
        if self._left:
            names = ", ".join(sorted(self._left))[:200]
            reason = f"processor [{self.kind}] doesn't support one or more provided configuration parameters"
            about = {"processor_type": self.kind} | ({} if self.tag is None else {"processor_tag": self.tag})
            raise SearchError("parse_exception", f"{reason} [{names}]", 400, about)


def java_kind(value: Any) -> str:
    """The class that errors name for a JSON value."""
    names = {dict: "java.util.HashMap", list: "java.util.ArrayList", bool: "java.lang.Boolean"}
    return names.get(type(value), "java.lang.Object")
