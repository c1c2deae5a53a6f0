"""Regular expressions from outside, as analysis components use them, with bounds on their time."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import regex

from graphdb.search.errors import illegal_argument

__all__ = ["JavaPattern", "java_replacement", "time_limit"]

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

    def __init__(self, pattern: str, flags: str = "") -> None:
        if len(pattern) > _PATTERN_LENGTH_MAX:
            raise illegal_argument(
                f"pattern of {len(pattern)} characters is longer than {_PATTERN_LENGTH_MAX}"
            )
        if _repetitions(pattern) > _REPETITIONS_MAX:
            raise illegal_argument(f"pattern [{pattern}] repeats its parts too often")
        names = [name.strip() for name in flags.split("|") if name.strip()]
        unknown = [name for name in names if name not in _FLAGS]
        if unknown:
            raise illegal_argument(f"Unknown regex flag [{unknown[0]}]")
        number = regex.VERSION1 | (0 if any("UNICODE_CHAR" in name for name in names) else regex.ASCII)
        for name in names:
            number |= _FLAGS[name]
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
