"""What changes a text before it is cut into tokens, and remembers where each character was."""

import html
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from graphdb.search.analysis.parameters import JavaPattern, java_replacement
from graphdb.search.errors import illegal_argument

__all__ = ["CharFilter", "FilteredText", "html_strip", "mapping_filter", "pattern_replace", "unescaped"]

_MAPPINGS_MAX = 10_000
_RULE_LENGTH_MAX = 1000


@dataclass(frozen=True, slots=True)
class FilteredText:
    """offsets[i] is where character i was in the text before, and the last one where that text ended."""

    text: str
    offsets: list[int]


class CharFilter(Protocol):
    def __call__(self, text: str) -> FilteredText: ...


Change = tuple[int, int, str]  # [start, end) becomes that


def _apply(text: str, changes: Iterable[Change]) -> FilteredText:
    """Changes ascend and do not overlap. What replaces a longer part keeps the offsets of its beginning."""
    parts: list[str] = []
    offsets: list[int] = []
    place = 0
    for start, end, replacement in changes:
        parts += (text[place:start], replacement)
        offsets += range(place, start)
        offsets += [min(start + number, end) for number in range(len(replacement))]
        place = end
    parts.append(text[place:])
    offsets += range(place, len(text) + 1)
    return FilteredText("".join(parts), offsets)


# What does not end where it should ends with the text, as in browsers, so that no place is looked at twice.
_MARKUP = re.compile(
    r"""<!--.*?(?:-->|\Z)
    |<(?P<raw>script|style)\b[^>]*+(?:>.*?(?:</(?P=raw)\s*>|\Z)|\Z)
    |<!\[CDATA\[(?P<data>.*?)(?:\]\]>|\Z)
    |<[!?][^>]*+(?:>|\Z)
    |</?(?P<tag>[A-Za-z][\w:.-]*+)(?:[^<>"']|"[^"<]*+"|'[^'<]*+'|)*+>
    |&(?P<entity>\#[0-9]{1,7}+;?|\#[xX][0-9A-Fa-f]{1,6}+;?|[A-Za-z][A-Za-z0-9]{1,31}+;?)""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
# The others end a line, so that words on both sides stay apart.
_INLINE_TAGS = """
    a abbr acronym b basefont bdo big cite code dfn em font i img input kbd label q s samp select small span
    strike strong sub sup textarea tt u var"""
_INLINE = frozenset(_INLINE_TAGS.split())


def html_strip(escaped_tags: Iterable[str]) -> CharFilter:
    """Without tags, comments, scripts and styles; entities become their characters."""
    escaped = frozenset(tag.lower() for tag in escaped_tags)

    def changes(text: str) -> Iterator[Change]:
        for found in _MARKUP.finditer(text):
            replacement = _plain(found, escaped)
            if replacement is not None:
                yield *found.span(), replacement

    return lambda text: _apply(text, changes(text))


def _plain(found: "re.Match[str]", escaped: frozenset[str]) -> str | None:
    """What a piece of markup leaves; None where it stays as it is."""
    if (entity := found["entity"]) is not None:
        plain = html.unescape(f"&{entity}")
        return None if plain.startswith("&") and len(plain) > 1 else plain
    if (data := found["data"]) is not None:
        return data
    if (tag := found["tag"]) is None:
        return "\n" if found["raw"] else ""
    if tag.lower() in escaped:
        return None
    return "" if tag.lower() in _INLINE else "\n"


_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


def mapping_filter(rules: Iterable[str]) -> CharFilter:
    """Rules `from => to`; of several that fit the longest counts."""
    table = dict(map(_rule, rules))
    if len(table) > _MAPPINGS_MAX:
        raise illegal_argument(f"Too many mappings [{len(table)}], at most [{_MAPPINGS_MAX}]")
    if not table:
        return lambda text: _apply(text, ())
    longest_first = sorted(table, key=len, reverse=True)
    pattern = re.compile("|".join(map(re.escape, longest_first)))
    return lambda text: _apply(text, ((*found.span(), table[found[0]]) for found in pattern.finditer(text)))


def _rule(rule: str) -> tuple[str, str]:
    source, arrow, target = rule.rpartition("=>")
    if not arrow or not source.strip() or len(rule) > _RULE_LENGTH_MAX:
        raise illegal_argument(f"Invalid Mapping Rule : [{rule}]")
    return unescaped(source.strip()), unescaped(target.strip())


def unescaped(text: str) -> str:
    """With what stands behind backslashes in a rule: n, t, r, b, f, u with four digits, or the character."""

    def plain(found: "re.Match[str]") -> str:
        code = found[1]
        return chr(int(code[1:], 16)) if len(code) == 5 else _ESCAPES.get(code, code)

    return _ESCAPE.sub(plain, text)


def pattern_replace(pattern: JavaPattern, template: str) -> CharFilter:
    replacement: Callable[..., str] = java_replacement(template, pattern)
    return lambda text: _apply(
        text, ((*found.span(), replacement(found)) for found in pattern.finditer(text))
    )
