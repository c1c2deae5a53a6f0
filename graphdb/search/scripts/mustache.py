"""Search templates: Mustache with the functions that Elasticsearch adds, `toJson`, `join` and `url`.

What a template makes is JSON, so values are escaped for a JSON string, but for `{{{name}}}` and `{{&name}}`.
A template, what it makes and how long that takes are bounded, whatever the sections and the parameters are.

Source: mustache(5); `CustomMustacheFactory` and `CustomReflectionObjectHandler` of Elasticsearch 8.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from urllib.parse import quote_plus

import orjson

from graphdb.search.deadline import checkpoint
from graphdb.search.errors import SearchError

__all__ = ["OUTPUT_BYTES_MAX", "SOURCE_CHARACTERS_MAX", "Template"]

SOURCE_CHARACTERS_MAX = 65_535  # script.max_size_in_bytes
OUTPUT_BYTES_MAX = 8 * 1024 * 1024
_DEPTH_MAX = 50
_NAME_PARTS_MAX = 50
_STEPS_MAX = (
    1_000_000  # parts that are rendered, as often as their sections repeat them, and lookups for them
)
_FUNCTIONS = ("toJson", "join", "url")
_DELIMITER = re.compile(r"join\s+delimiter\s*=\s*(['\"])(.*)\1", re.DOTALL)
_MISSING: Any = object()


@dataclass(frozen=True, slots=True)
class _Value:
    name: str
    is_raw: bool


@dataclass(frozen=True, slots=True)
class _Section:
    name: str
    is_inverted: bool
    parts: tuple["_Part", ...]


@dataclass(frozen=True, slots=True)
class _Function:
    """argument: the delimiter of a `join`."""

    name: str
    argument: str
    parts: tuple["_Part", ...]


_Part: TypeAlias = str | _Value | _Section | _Function


@dataclass(slots=True)
class _Open:
    """A section whose end has not come yet. tag: as its end has to repeat it."""

    tag: str
    kind: str
    parts: list[_Part] = field(default_factory=list)


class Template:
    """A template that has been read. Rendering it changes nothing."""

    def __init__(self, source: str, content_type: str = "application/json") -> None:
        """Errors: script_exception."""
        if len(source) > SOURCE_CHARACTERS_MAX:
            raise _invalid(f"exceeded max allowed template size of [{SOURCE_CHARACTERS_MAX}] characters")
        self._escape = _escape_of(content_type)
        self._parts = _read(source)

    def render(self, params: Mapping[str, Any]) -> str:
        """Errors: script_exception where it makes too much or takes too long."""
        rendering = _Rendering(self._escape)
        rendering.parts(self._parts, [params])
        return "".join(rendering.made)


def _escape_of(content_type: str) -> Callable[[str], str]:
    kind = content_type.partition(";")[0].strip().lower()
    if kind == "application/json":
        return lambda text: _json(text)[1:-1]
    if kind == "application/x-www-form-urlencoded":
        return quote_plus
    if kind == "text/plain":
        return lambda text: text
    raise _invalid(f"No encoder found for media type [{content_type[:100]}]")


def _invalid(reason: str) -> SearchError:
    return SearchError("script_exception", f"invalid search template: {reason}")


# From the text of a template to its parts.


def _read(source: str) -> tuple[_Part, ...]:
    opened = [_Open("", "")]
    for kind, text in _tags(source):
        parts = opened[-1].parts
        if kind == "text":
            parts.append(text)
        elif kind in ("#", "^"):
            if len(opened) > _DEPTH_MAX:
                raise _invalid(f"sections are nested deeper than [{_DEPTH_MAX}]")
            opened.append(_Open(text, kind))
        elif kind == "/":
            closed = opened.pop()
            if not opened or closed.tag != text:
                raise _invalid(f"the end of [{text[:100]}] is not that of an open section")
            opened[-1].parts.append(_closed(closed))
        elif kind == ">":
            raise _invalid(f"[{text[:100]}] is a partial, and these are not allowed")
        elif kind != "!":
            parts.append(_Value(_checked_name(text), kind in ("{", "&")))
    if len(opened) > 1:
        raise _invalid(f"the section [{opened[-1].tag[:100]}] has no end")
    return tuple(opened[0].parts)


def _closed(section: _Open) -> _Part:
    parts = tuple(section.parts)
    delimited = _DELIMITER.fullmatch(section.tag)
    if section.kind == "#" and (section.tag in _FUNCTIONS or delimited is not None):
        name = "join" if delimited is not None else section.tag
        if name != "url" and not (len(parts) == 1 and isinstance(parts[0], str)):
            raise _invalid(f"Mustache function [{name}] must contain one and only one identifier")
        return _Function(name, "," if delimited is None else delimited[2], parts)
    return _Section(_checked_name(section.tag), section.kind == "^", parts)


def _tags(source: str) -> Iterator[tuple[str, str]]:
    """(kind, text): `text`, or the sign of a tag, which is empty for a plain value, and what stands in it."""
    begin, end, at = "{{", "}}", 0
    while (start := source.find(begin, at)) >= 0:
        if start > at:
            yield "text", source[at:start]
        inside = start + len(begin)
        sign = source[inside : inside + 1]
        closing = "}" + end if sign == "{" else "=" + end if sign == "=" else end
        stop = source.find(closing, inside + (1 if sign in "{=" else 0)) if sign else -1
        if stop < 0:
            raise _invalid(f"a tag has no end: [{source[start : start + 100]}]")
        if sign == "=":
            marks = source[inside + 1 : stop].split()
            if len(marks) != 2 or any("=" in mark or len(mark) > 10 for mark in marks):
                raise _invalid("the delimiters of tags are two words")
            begin, end = marks
        else:
            has_sign = sign in "{&#^/!>"
            yield sign if has_sign else "", source[inside + has_sign : stop].strip()
        at = stop + len(closing)
    if at < len(source):
        yield "text", source[at:]


# From the parts and the parameters to the text.


class _Rendering:
    def __init__(self, escape: Callable[[str], str]) -> None:
        self.made: list[str] = []
        self._escape = escape
        self._steps, self._characters = 0, 0

    def parts(self, parts: Sequence[_Part], scopes: list[Any]) -> None:
        """scopes: what names are looked up in, the innermost last."""
        for part in parts:
            self._take(1)
            if isinstance(part, str):
                self._write(part)
            elif isinstance(part, _Value):
                text = _text(self._found(part.name, scopes))
                self._check(len(text))
                self._write(text if part.is_raw else self._escape(text))
            elif isinstance(part, _Section):
                self._section(part, scopes)
            else:
                self._function(part, scopes)

    def _take(self, steps: int) -> None:
        checkpoint()
        self._steps += steps
        if self._steps > _STEPS_MAX:
            raise _invalid(f"it takes more than [{_STEPS_MAX}] steps")

    def _check(self, more: int) -> None:
        if self._characters + more > OUTPUT_BYTES_MAX:
            raise _invalid(f"it makes more than [{OUTPUT_BYTES_MAX}] characters")

    def _write(self, text: str) -> None:
        self._check(len(text))
        self._characters += len(text)
        self.made.append(text)

    def _section(self, section: _Section, scopes: list[Any]) -> None:
        value = self._found(section.name, scopes)
        is_false = value is _MISSING or value is None or value is False or value == "" or value == []
        if section.is_inverted:
            if is_false:
                self.parts(section.parts, scopes)
        elif not is_false:
            for one in value if isinstance(value, list) else [value]:
                self.parts(section.parts, [*scopes, one])

    def _function(self, function: _Function, scopes: list[Any]) -> None:
        if function.name == "url":
            inner = _Rendering(self._escape)
            inner._steps, inner._characters = self._steps, self._characters
            inner.parts(function.parts, scopes)
            self._steps = inner._steps
            self._write(quote_plus("".join(inner.made)))
            return
        (name,) = function.parts
        value = self._found(_checked_name(str(name).strip()), scopes)
        if value is _MISSING or value is None:
            return
        if function.name == "join":
            if isinstance(value, list):
                self._take(len(value))
            self._write(
                function.argument.join(map(_text, value)) if isinstance(value, list) else _text(value)
            )
        else:
            self._write(_json(value) if isinstance(value, list | dict) else _text(value))

    def _found(self, name: str, scopes: Sequence[Any]) -> Any:
        """`a.b.0` from the innermost scope that has it; `.`: that scope itself."""
        if name == ".":
            return scopes[-1]
        path = name.split(".")
        for scope in reversed(scopes):
            self._take(len(path))
            value = scope
            for part in path:
                value = _member(value, part)
            if value is not _MISSING:
                return value
        return _MISSING


def _checked_name(name: str) -> str:
    if name.count(".") >= _NAME_PARTS_MAX:
        raise _invalid(f"the name [{name[:100]}] has more than [{_NAME_PARTS_MAX}] parts")
    return name


def _member(value: Any, name: str) -> Any:
    if isinstance(value, dict):
        return value.get(name, _MISSING)
    if isinstance(value, list):
        if name == "size":
            return len(value)
        return value[int(name)] if name.isdecimal() and int(name[:9]) < len(value) else _MISSING
    return _MISSING


def _text(value: Any) -> str:
    """As Java writes it; collections as JSON, so that a forgotten `toJson` still makes sense."""
    if value is _MISSING or value is None:
        return ""
    return value if isinstance(value, str) else _json(value)


def _json(value: Any) -> str:
    return orjson.dumps(value).decode()
