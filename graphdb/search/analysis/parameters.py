"""The parameters of a component, and the regular expressions among them.

Settings are text to Elasticsearch, so "2" and "true" will do. Regular expressions of clients have bounds on
their time.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import regex

from graphdb.search.errors import illegal_argument

__all__ = [
    "JavaPattern",
    "Parameters",
    "java_replacement",
    "time_limit",
]

_NUMBER_MAX = 1_000_000  # no parameter of a component needs a larger number


class Parameters:
    """What the settings say of one component."""

    def __init__(self, name: str, values: Mapping[str, Any]) -> None:
        self.name = name
        self.values = values

    def __contains__(self, key: str) -> bool:
        return self.values.get(key) is not None

    def text(self, key: str, default: str) -> str:
        value = self.values.get(key)
        if value is None:
            return default
        if isinstance(value, list | dict):
            raise illegal_argument(f"Failed to parse value [{value}] for setting [{key}]")
        return str(value).lower() if isinstance(value, bool) else str(value)

    def required(self, key: str, message: str) -> str:
        if key not in self:
            raise illegal_argument(message)
        return self.text(key, "")

    def number(self, key: str, default: int, low: int = 0, high: int = _NUMBER_MAX) -> int:
        text = self.text(key, str(default))
        try:
            number = int(text)
        except ValueError:
            raise illegal_argument(f"Failed to parse value [{text}] for setting [{key}]") from None
        if number < low:
            raise illegal_argument(f"Failed to parse value [{number}] for setting [{key}] must be >= {low}")
        if number > high:
            raise illegal_argument(f"Failed to parse value [{number}] for setting [{key}] must be <= {high}")
        return number

    def flag(self, key: str, default: bool) -> bool:
        text = self.text(key, "true" if default else "false")
        if text not in ("true", "false"):
            raise illegal_argument(f"Failed to parse value [{text}] as only [true] or [false] are allowed.")
        return text == "true"

    def words(self, key: str) -> list[str] | None:
        """A list, or one text with commas; None where there is none."""
        value = self.values.get(key)
        if value is None:
            return None
        if isinstance(value, list):
            return [str(item) for item in value]
        return [item.strip() for item in self.text(key, "").split(",") if item.strip()]

    def lines(self, key: str) -> list[str] | None:
        """A list as it stands; a single text is a list of one."""
        value = self.values.get(key)
        if value is None:
            return None
        return [str(item) for item in value] if isinstance(value, list) else [self.text(key, "")]


# Regular expressions.

_PATTERN_LENGTH_MAX = 1000
_REPETITIONS_MAX = 100_000  # compiling may unroll them
_TIMEOUT_S = 1.0
_FLAGS = {
    "CASE_INSENSITIVE": regex.IGNORECASE,
    "MULTILINE": regex.MULTILINE,
    "DOTALL": regex.DOTALL,
    "COMMENTS": regex.VERBOSE,
    "UNICODE_CASE": 0,
    "UNIX_LINES": 0,
    "UNICODE_CHAR_CLASS": 0,
    "UNICODE_CHARACTER_CLASS": 0,
    "LITERAL": 0,
}
_REPEAT = re.compile(r"(\)?)\{(\d{0,9}),?(\d{0,9})\}")
_REFERENCE = re.compile(r"\\(.)|\$(\d)|\$\{(\w+)\}|([^\\$]+)", re.DOTALL)


_limit_s: ContextVar[float | None] = ContextVar("limit_s", default=_TIMEOUT_S)


@contextmanager
def time_limit(limit_s: float | None) -> Iterator[None]:
    """How long each match may take within this block; None: as long as it takes, for what one node has
    matched in time every other must match too.
    """
    token = _limit_s.set(limit_s)
    try:
        yield
    finally:
        _limit_s.reset(token)


class JavaPattern:
    """A compiled pattern. `\\w` and its like know ASCII only, as in Java, unless a flag says otherwise."""

    def __init__(
        self, pattern: str, flags: str = "", longest: bool = False, length_max: int = _PATTERN_LENGTH_MAX
    ) -> None:
        """longest: of all that match at a place, and not the first alternative."""
        if len(pattern) > length_max:
            raise illegal_argument(f"pattern of {len(pattern)} characters is longer than {length_max}")
        if _repetitions(pattern) > _REPETITIONS_MAX:
            raise illegal_argument(f"pattern [{pattern}] repeats its parts too often")
        names = [name.strip() for name in flags.split("|") if name.strip()]
        unknown = [name for name in names if name not in _FLAGS]
        if unknown:
            raise illegal_argument(f"Unknown regex flag [{unknown[0]}]")
        number = regex.VERSION1 | (0 if any("UNICODE_CHAR" in name for name in names) else regex.ASCII)
        for name in names:
            number |= _FLAGS[name]
        if longest:
            number |= regex.POSIX
        if "LITERAL" in names:
            pattern = regex.escape(pattern)
        try:
            self._pattern = regex.compile(pattern, number)
        except regex.error as error:
            raise illegal_argument(f"Invalid pattern [{pattern}]: {error}") from None
        self.groups = self._pattern.groups

    def finditer(self, text: str) -> Iterator["regex.Match[str]"]:
        """Illegal argument where matching takes longer than it may."""
        try:
            yield from self._pattern.finditer(text, timeout=_limit_s.get())
        except TimeoutError:
            raise illegal_argument(f"pattern [{self._pattern.pattern}] takes too long") from None

    def matches(self, text: str) -> bool:
        """The whole text."""
        try:
            return self._pattern.fullmatch(text, timeout=_limit_s.get()) is not None
        except TimeoutError:
            raise illegal_argument(f"pattern [{self._pattern.pattern}] takes too long") from None

    def replace(self, text: str, replacement: Callable[["regex.Match[str]"], str], all_matches: bool) -> str:
        try:
            return self._pattern.sub(replacement, text, 0 if all_matches else 1, timeout=_limit_s.get())
        except TimeoutError:
            raise illegal_argument(f"pattern [{self._pattern.pattern}] takes too long") from None


def _repetitions(pattern: str) -> int:
    """At most how often one part is repeated by counts, as if all the groups that have one were nested."""
    groups = longest = 1
    for closing, low, high in _REPEAT.findall(pattern):
        count = max(int(low or 1), int(high or 1), 1)
        if closing:
            groups *= count
        else:
            longest = max(longest, count)
    return groups * longest


def java_replacement(template: str, pattern: JavaPattern) -> Callable[["regex.Match[str]"], str]:
    """What stands for a match: `$1` and `${name}` are its groups, a backslash takes the next as it stands."""
    if len(template) > _PATTERN_LENGTH_MAX:
        raise illegal_argument(f"replacement is longer than {_PATTERN_LENGTH_MAX} characters")
    parts: list[tuple[str, int | str | None]] = []
    for found in _REFERENCE.finditer(template):
        escaped, number, name, literal = found.groups()
        if number is not None and int(number) > pattern.groups:
            raise illegal_argument(f"No group {number}")
        group = int(number) if number is not None else name
        parts.append((escaped or literal or "", group))
    return lambda match: "".join(text if group is None else match.group(group) or "" for text, group in parts)
