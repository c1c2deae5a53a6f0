"""The processors of pipelines: each is read from its options and becomes a step that changes documents.

Source: Elasticsearch's documentation of ingest processors.
"""

import math
from collections.abc import Callable
from copy import deepcopy
from typing import Any
from urllib.parse import unquote_plus

from graphdb.search.analysis.char_filters import html_strip
from graphdb.search.analysis.parameters import JavaPattern, java_replacement
from graphdb.search.errors import SearchError, illegal_argument
from graphdb.search.ingest.circles import circle_processor
from graphdb.search.ingest.document import (
    METADATA,
    IngestDocument,
    Template,
    cast_text,
    not_cast,
    plain_text,
)
from graphdb.search.ingest.flow_processors import FLOW_PROCESSORS
from graphdb.search.ingest.lookup_processors import LOOKUP_PROCESSORS
from graphdb.search.ingest.network_processors import NETWORK_PROCESSORS
from graphdb.search.ingest.options import ProcessorOptions
from graphdb.search.ingest.reading import Reading, Step
from graphdb.search.ingest.structure_processors import STRUCTURE_PROCESSORS
from graphdb.search.ingest.text_processors import TEXT_PROCESSORS
from graphdb.search.scripts.text_functions import size_bytes

__all__ = ["PROCESSORS"]

# Values put in, taken away, moved.


def _set(options: ProcessorOptions, reading: Reading) -> Step:
    field, overrides = Template(options.text("field")), options.flag("override", True)
    copied, ignores_empty = options.text("copy_from", None), options.flag("ignore_empty_value", False)
    options.text("media_type", None)
    if copied is not None and "value" in options:
        raise options.error("copy_from", "cannot set both `copy_from` and `value` in the same processor")
    value = None if copied is not None else options.take("value")

    def step(document: IngestDocument) -> None:
        path = field.render(document)
        if not overrides and document.find(path) is not None:
            return
        if copied is None:
            made = Template.filled(value, document)
        else:
            made = deepcopy(document.find(copied) if ignores_empty else document.get(copied))
        if ignores_empty and made in (None, ""):
            return
        document.set(path, str(made) if path in METADATA and made is not None else made)
        if copied is not None:
            document.check_size()

    return step


def _append(options: ProcessorOptions, reading: Reading) -> Step:
    field, value = Template(options.text("field")), options.take("value")
    allows = options.flag("allow_duplicates", True)
    options.text("media_type", None)

    def step(document: IngestDocument) -> None:
        filled = Template.filled(value, document)
        document.append(field.render(document), filled if isinstance(filled, list) else [filled], allows)

    return step


def _remove(options: ProcessorOptions, reading: Reading) -> Step:
    fields, kept = options.texts("field", None), options.texts("keep", None)
    ignores = options.flag("ignore_missing", False)
    if (fields is None) == (kept is None):
        raise options.error("keep" if fields else "field", "or [keep] must be specified, and not both")
    templates = [Template(one) for one in fields or ()]

    def step(document: IngestDocument) -> None:
        if kept is not None:
            for name in list(document.source):
                if not any(one == name or one.startswith(f"{name}.") for one in kept):
                    del document.source[name]
            return
        for template in templates:
            path = template.render(document)
            if not (ignores and not document.has(path)):
                document.remove(path)

    return step


def _rename(options: ProcessorOptions, reading: Reading) -> Step:
    field, target = Template(options.text("field")), Template(options.text("target_field"))
    ignores, overrides = options.flag("ignore_missing", False), options.flag("override", False)

    def step(document: IngestDocument) -> None:
        path, new = field.render(document), target.render(document)
        if not document.has(path):
            if ignores:
                return
            raise illegal_argument(f"field [{path}] doesn't exist")
        if document.has(new) and not overrides:
            raise illegal_argument(f"field [{new}] already exists")
        value = document.get(path)
        document.remove(path)
        try:
            document.set(new, value)
        except SearchError:
            document.set(path, value)
            raise

    return step


def _dot_expander(options: ProcessorOptions, reading: Reading) -> Step:
    field, path, overrides = (
        options.text("field"),
        options.text("path", None),
        options.flag("override", False),
    )
    if field != "*" and "." not in field.strip("."):
        raise options.error("field", "field does not contain a dot and is not a wildcard")

    def step(document: IngestDocument) -> None:
        holder = document.source if path is None else document.get(path)
        if not isinstance(holder, dict):
            raise illegal_argument(f"[{path}] is no object")
        prefix = "" if path is None else f"{path}."
        for name in [one for one in holder if "." in one] if field == "*" else [field]:
            if name not in holder:
                continue
            value, there = holder.pop(name), document.find(prefix + name)
            if there is None or overrides:
                document.set(prefix + name, value)
            else:
                document.append(prefix + name, value if isinstance(value, list) else [value])

    return step


# One value made into another.


def _each(change: Callable[[ProcessorOptions], Callable[[Any, str], Any]], lists: bool = True) -> Any:
    """A processor with `field`, `target_field` and `ignore_missing`. lists: members of a list are changed."""

    def made(options: ProcessorOptions, reading: Reading) -> Step:
        field, target = options.text("field"), options.text("target_field", None)
        ignores, changed = options.flag("ignore_missing", False), change(options)

        def step(document: IngestDocument) -> None:
            value = document.wanted(field, ignores)
            if value is None:
                return
            if lists and isinstance(value, list):
                done: Any = [changed(one, field) for one in value]
            else:
                done = changed(value, field)
            document.set(target or field, done)

        return step

    return made


def _of_text(function: Callable[[str], Any]) -> Any:
    def changed(value: Any, field: str) -> Any:
        return function(cast_text(value, field))

    return _each(lambda options: changed)


_TEXT_MAX = 10_000_000  # characters that one processor puts into a text


def _gsub(options: ProcessorOptions) -> Callable[[Any, str], Any]:
    try:
        pattern = JavaPattern(options.text("pattern"))
    except SearchError as error:
        raise options.error("pattern", f"Invalid regex pattern. {error.reason}") from None
    replaced = java_replacement(options.text("replacement"), pattern)

    def changed(value: Any, field: str) -> str:
        length = 0

        def counted(found: Any) -> str:
            nonlocal length
            text = replaced(found)
            length += len(text)
            if length > _TEXT_MAX:
                raise illegal_argument(f"[gsub] makes more than [{_TEXT_MAX}] characters")
            return text

        return pattern.replace(cast_text(value, field), counted, True)

    return changed


def _split(options: ProcessorOptions) -> Callable[[Any, str], Any]:
    pattern, keeps = JavaPattern(options.text("separator")), options.flag("preserve_trailing", False)

    def changed(value: Any, field: str) -> Any:
        text, parts, at = cast_text(value, field), list[str](), 0
        for found in pattern.finditer(text):
            if found.end() == found.start():
                continue
            parts.append(text[at : found.start()])
            at = found.end()
        parts.append(text[at:])
        while not keeps and len(parts) > 1 and not parts[-1]:
            parts.pop()
        return parts

    return changed


def _join(options: ProcessorOptions) -> Callable[[Any, str], Any]:
    separator = options.text("separator")

    def changed(value: Any, field: str) -> str:
        if not isinstance(value, list):
            raise not_cast(value, field, "java.util.List")
        if len(separator) * len(value) > _TEXT_MAX:
            raise illegal_argument(f"[join] makes more than [{_TEXT_MAX}] characters")
        return str(separator).join(map(plain_text, value))

    return changed


def _sort(options: ProcessorOptions) -> Callable[[Any, str], Any]:
    descending = options.one_of("order", "asc", "asc", "desc") == "desc"

    def changed(value: Any, field: str) -> list[Any]:
        if not isinstance(value, list):
            raise not_cast(value, field, "java.util.List")
        try:
            return sorted(value, reverse=descending)
        except TypeError:
            raise illegal_argument(f"the values of field [{field}] cannot be compared") from None

    return changed


def _html(options: ProcessorOptions) -> Callable[[Any, str], Any]:
    strip = html_strip(())
    return lambda value, field: strip(cast_text(value, field)).text


# Convert.

_NO_DIGITS = set("_ \t\r\n")  # that Python reads within a number
_LIMITS = {"integer": 2**31, "long": 2**63}


def _convert(options: ProcessorOptions, reading: Reading) -> Step:
    field, target = options.text("field"), options.text("target_field", None)
    kind, ignores = options.text("type"), options.flag("ignore_missing", False)
    if kind not in _CONVERTED:
        raise options.error("type", f"type [{kind[:50]}] not supported, cannot convert field.")

    def step(document: IngestDocument) -> None:
        value = document.find(field)
        if value is None:
            if ignores:
                return
            if document.has(field):
                raise illegal_argument(f"Field [{field}] is null, cannot be converted to type [{kind}]")
            document.get(field)
        convert = _CONVERTED[kind]
        done = [convert(one) for one in value] if isinstance(value, list) else convert(value)
        document.set(target or field, done)

    return step


def _whole(kind: str) -> Callable[[Any], int]:
    def converted(value: Any) -> int:
        text = plain_text(value)
        try:
            is_hex = text.lower().startswith(("0x", "-0x"))
            if len(text) > 40 or not text.isascii() or set(text) & _NO_DIGITS:
                raise _not_converted(text, kind)
            number = int(text, 16 if is_hex else 10)
        except ValueError:
            raise _not_converted(text, kind) from None
        if not -_LIMITS[kind] <= number < _LIMITS[kind]:
            raise _not_converted(text, kind)
        return number

    return converted


def _real(kind: str) -> Callable[[Any], float]:
    def converted(value: Any) -> float:
        text = plain_text(value)
        try:
            number = float(text)
        except ValueError:
            raise _not_converted(text, kind) from None
        if not math.isfinite(number) or "_" in text:
            raise _not_converted(text, kind)
        return number

    return converted


def _boolean(value: Any) -> bool:
    text = plain_text(value)
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    raise _not_converted(text, "boolean")


def _ip(value: Any) -> str:
    from ipaddress import ip_address

    try:
        ip_address(str(value))
    except ValueError:
        raise illegal_argument(f"[{str(value)[:200]}] is not a valid ipv4 or ipv6 literal") from None
    return str(value)


def _auto(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    for convert in (_boolean, _whole("integer"), _whole("long"), _real("double")):
        try:
            return convert(value)
        except SearchError:
            continue
    return value


def _not_converted(text: str, kind: str) -> SearchError:
    return illegal_argument(f"unable to convert [{text[:200]}] to {kind}")


_CONVERTED: dict[str, Callable[[Any], Any]] = {
    "integer": _whole("integer"),
    "long": _whole("long"),
    "float": _real("float"),
    "double": _real("double"),
    "boolean": _boolean,
    "string": plain_text,
    "ip": _ip,
    "auto": _auto,
}


PROCESSORS: dict[str, Callable[[ProcessorOptions, Any], Step]] = {
    "append": _append,
    "bytes": _of_text(size_bytes),
    "circle": circle_processor,
    "convert": _convert,
    "dot_expander": _dot_expander,
    "gsub": _each(_gsub),
    "html_strip": _each(_html),
    "join": _each(_join, lists=False),
    "lowercase": _of_text(str.lower),
    "remove": _remove,
    "rename": _rename,
    "set": _set,
    "sort": _each(_sort, lists=False),
    "split": _each(_split, lists=False),
    "trim": _of_text(str.strip),
    "uppercase": _of_text(str.upper),
    "urldecode": _of_text(unquote_plus),
    **FLOW_PROCESSORS,
    **LOOKUP_PROCESSORS,
    **NETWORK_PROCESSORS,
    **STRUCTURE_PROCESSORS,
    **TEXT_PROCESSORS,
}
