"""Processors that read a text: `date`, `date_index_name`, `dissect`, `grok`, `csv`, `kv`, `redact`."""

import csv
import re
from collections.abc import Callable, Mapping, Sequence
from io import StringIO
from typing import Any

from graphdb.search.analysis.parameters import JavaPattern
from graphdb.search.errors import SearchError, illegal_argument
from graphdb.search.ingest.document import IngestDocument, Template, cast_text
from graphdb.search.ingest.grok import Grok
from graphdb.search.ingest.options import ProcessorOptions
from graphdb.search.mapping.dates import date_format, date_math
from graphdb.search.mapping.instants import zone_of

__all__ = ["TEXT_PROCESSORS"]

Step = Callable[[IngestDocument], None]
_FIELDS_MAX = 10_000  # that one text is taken apart into


def _text_of(document: IngestDocument, field: str, ignores: bool) -> str | None:
    """The text of a field; None where there is none, and that is ignored."""
    value = document.wanted(field, ignores)
    return None if value is None else cast_text(value, field)


# Dates.

_NAMED = {"ISO8601": "strict_date_optional_time", "UNIX": "epoch_second", "UNIX_MS": "epoch_millis"}
_OUTPUT = "yyyy-MM-dd'T'HH:mm:ss.SSSXXX"
_TAI64N = re.compile(r"@?4([0-9a-fA-F]{15})([0-9a-fA-F]{8})")
_SECONDS_MAX = 2**53 / 1000  # from 1970, in either direction
_TAI_OFFSET_S = 10  # between the two clocks when they began, as Elasticsearch subtracts it


def _instant(text: str, formats: list[str], zone_name: str, field: str) -> int:
    """Milliseconds since 1970 by the first format that fits. Errors: illegal_argument_exception."""
    for name in formats:
        if name == "TAI64N":
            found = _TAI64N.fullmatch(text)
            if found is not None:
                return (int(found[1], 16) - _TAI_OFFSET_S) * 1000 + int(found[2], 16) // 1_000_000
            continue
        try:
            if name == "UNIX":
                seconds = float(text)
                if abs(seconds) > _SECONDS_MAX:
                    continue
                return int(seconds * 1000)
            return date_format(_NAMED.get(name, name)).parse(text, zone=zone_of(zone_name))
        except (SearchError, ValueError, OverflowError):
            continue
    raise illegal_argument(f"unable to parse date [{text[:200]}]")


def _date(options: ProcessorOptions, reading: Any) -> Step:
    field, target = options.text("field"), options.text("target_field", "@timestamp")
    formats, zone = options.texts("formats"), Template(options.text("timezone", "UTC"))
    options.text("locale", "ENGLISH")
    output = options.text("output_format", _OUTPUT)
    try:
        written = date_format(output)
    except SearchError as error:
        raise options.error("output_format", f"invalid output format. {error.reason}") from None
    for name in formats:
        if name not in _NAMED and name != "TAI64N":
            try:
                date_format(name)
            except SearchError as error:
                raise options.error("formats", error.reason) from None

    def step(document: IngestDocument) -> None:
        value = document.get(field)
        zone_name = zone.render(document)
        ms = _instant(str(value), formats, zone_name, field)
        document.set(target, written.write(ms, zone_of(zone_name)))

    return step


_ROUNDING = {"y": "y", "M": "M", "w": "w", "d": "d", "h": "h", "m": "m", "s": "s"}


def _date_index_name(options: ProcessorOptions, reading: Any) -> Step:
    field, prefix = options.text("field"), Template(options.text("index_name_prefix", ""))
    rounding = options.text("date_rounding")
    formats = options.texts("date_formats", ["yyyy-MM-dd'T'HH:mm:ss.SSSXX", "ISO8601"])
    zone, shape = options.text("timezone", "UTC"), Template(options.text("index_name_format", "yyyy-MM-dd"))
    options.text("locale", "ENGLISH")
    if rounding not in _ROUNDING:
        raise options.error("date_rounding", f"illegal value [{rounding[:50]}]")

    def step(document: IngestDocument) -> None:
        iso = date_format("strict_date_optional_time")
        ms = _instant(str(document.get(field)), formats, zone, field)
        rounded = date_math(f"{iso.write(ms)}||/{rounding}", iso, ms, False, zone_of(zone))
        name = date_format(shape.render(document)).write(rounded, zone_of(zone))
        document.set("_index", prefix.render(document) + name)

    return step


# Texts in parts.


def _grok(options: ProcessorOptions, reading: Any) -> Step:
    field, patterns = options.text("field"), options.texts("patterns")
    own, traces = options.mapping("pattern_definitions", {}), options.flag("trace_match", False)
    ignores = options.flag("ignore_missing", False)
    options.text("ecs_compatibility", None)
    groks = _groks(options, patterns, own)

    def step(document: IngestDocument) -> None:
        text = _text_of(document, field, ignores)
        if text is None:
            return
        for place, grok in enumerate(groks):
            found = grok.match(text)
            if found is not None:
                for path, value in found.items():
                    document.set(path, value)
                if traces:
                    document.ingest["_grok_match_index"] = str(place)
                return
        raise illegal_argument(f"Provided Grok expressions do not match field value: [{text[:1000]}]")

    return step


def _groks(options: ProcessorOptions, patterns: Sequence[str], own: Mapping[str, Any]) -> list[Grok]:
    """own: definitions of patterns. Errors: as of `ProcessorOptions.error`."""
    if not patterns:
        raise options.error("patterns", "List of patterns must not be empty")
    try:
        return [Grok(pattern, own) for pattern in patterns]
    except SearchError as error:
        reason = f"Invalid regex pattern found in: [{', '.join(patterns)}]. {error.reason}"
        raise options.error("patterns", reason) from None


def _redact(options: ProcessorOptions, reading: Any) -> Step:
    field, patterns = options.text("field"), options.texts("patterns")
    own, prefix, suffix = (
        options.mapping("pattern_definitions", {}),
        options.text("prefix", "<"),
        options.text("suffix", ">"),
    )
    ignores, traces = options.flag("ignore_missing", True), options.flag("trace_redact", False)
    options.flag("skip_if_unlicensed", False)
    groks = _groks(options, patterns, own)

    def step(document: IngestDocument) -> None:
        value = document.find(field)
        if value is None:
            if ignores:
                return
            raise illegal_argument(f"field [{field}] is null or missing")
        text = cast_text(value, field)
        found = _together(sorted(one for grok in groks for one in grok.extents(text)))
        pieces, at = [], 0
        for start, end, name in found:
            pieces += [text[at:start], prefix, name, suffix]
            at = end
        document.set(field, "".join([*pieces, text[at:]]))
        if traces and found:
            document.set("_ingest._redact._is_redacted", True)

    return step


def _together(extents: list[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    """In order; those that overlap are one, with the name of the longest."""
    made: list[tuple[int, int, str]] = []
    longest = 0
    for start, end, name in extents:
        if made and start < made[-1][1]:
            first, last, shown = made[-1]
            made[-1] = first, max(last, end), name if end - start > longest else shown
            longest = max(longest, end - start)
        else:
            made.append((start, end, name))
            longest = end - start
    return made


_KEY = re.compile(r"%\{([^}]*)\}")
_MODIFIERS = re.compile(r"([+*&?]?)(.*?)(?:/(\d{1,6}))?(->)?")


class _Dissect:
    """A pattern of keys with what stands between them. Source: Elasticsearch's documentation of dissect."""

    def __init__(self, pattern: str, separator: str) -> None:
        self._separator = separator
        pieces = _KEY.split(pattern)
        self._before, self._keys, self._after = pieces[0], [], []
        for key, after in zip(pieces[1::2], pieces[2::2], strict=True):
            found = _MODIFIERS.fullmatch(key)
            assert found is not None, "it matches any text"
            self._keys.append((found[1], found[2], int(found[3] or 0), found[4] is not None))
            self._after.append(after)
        if not self._keys:
            raise illegal_argument(f"Unable to parse pattern: {pattern[:200]}")

    def match(self, text: str) -> dict[str, Any] | None:
        if not text.startswith(self._before):
            return None
        at, values = len(self._before), []
        for number, after in enumerate(self._after):
            end = len(text) if not after else text.find(after, at)
            if end < 0 or (not after and number < len(self._after) - 1):
                return None
            values.append(text[at:end])
            at = end + len(after)
            while self._keys[number][3] and after and text.startswith(after, at):
                at += len(after)
        if at < len(text) and self._after[-1]:
            return None
        return self._named(values)

    def _named(self, values: list[str]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        appended: dict[str, list[tuple[int, int, str]]] = {}
        names = {
            name: value for (kind, name, *_), value in zip(self._keys, values, strict=True) if kind == "*"
        }
        for place, ((kind, name, order, _), value) in enumerate(zip(self._keys, values, strict=True)):
            if kind == "+" or any(one[0] == "+" and one[1] == name for one in self._keys):
                appended.setdefault(name, []).append((order, place, value))
            elif kind == "&" and name in names:
                found[names[name]] = value
            elif kind == "" and name:
                found[name] = value
        for name, parts in appended.items():
            found[name] = self._separator.join(value for _, _, value in sorted(parts))
        return found


def _dissect(options: ProcessorOptions, reading: Any) -> Step:
    field, pattern = options.text("field"), options.text("pattern")
    separator, ignores = options.text("append_separator", ""), options.flag("ignore_missing", False)
    dissect = _Dissect(pattern, separator)

    def step(document: IngestDocument) -> None:
        text = _text_of(document, field, ignores)
        if text is None:
            return
        found = dissect.match(text)
        if found is None:
            reason = f"Unable to find match for dissect pattern: {pattern} against source: {text[:1000]}"
            raise SearchError("dissect_exception", reason)
        for path, value in found.items():
            document.set(path, value)

    return step


def _csv(options: ProcessorOptions, reading: Any) -> Step:
    field, targets = options.text("field"), options.texts("target_fields")
    separator, quote = options.text("separator", ","), options.text("quote", '"')
    trims, ignores = options.flag("trim", False), options.flag("ignore_missing", False)
    empty = options.take("empty_value", None)
    for name, value in (("separator", separator), ("quote", quote)):
        if len(value) != 1:
            raise options.error(name, f"{name} has to be single character like comma or quote")

    def step(document: IngestDocument) -> None:
        text = _text_of(document, field, ignores)
        if not text:
            return
        try:
            lines = StringIO(text, newline="")
            rows = csv.reader(
                lines, delimiter=separator, quotechar=quote, skipinitialspace=trims, strict=True
            )
            values = next(rows, [])
        except csv.Error as error:
            raise illegal_argument(f"Illegal character inside unquoted field: {error}") from None
        for path, value in zip(targets, values, strict=False):
            shown: Any = value.strip() if trims else value
            if shown == "":
                if empty is None:
                    continue
                shown = empty
            document.set(path, shown)

    return step


def _kv(options: ProcessorOptions, reading: Any) -> Step:
    field, given = Template(options.text("field")), options.text("target_field", None)
    target = None if given is None else Template(given)
    fields, values = JavaPattern(options.text("field_split")), JavaPattern(options.text("value_split"))
    included, excluded = options.texts("include_keys", None), options.texts("exclude_keys", [])
    ignores, prefix = options.flag("ignore_missing", False), options.text("prefix", "")
    key_chars, value_chars = options.text("trim_key", None), options.text("trim_value", None)
    strips = options.flag("strip_brackets", False)

    def step(document: IngestDocument) -> None:
        text = _text_of(document, field.render(document), ignores)
        if text is None:
            return
        pairs = _pieces(fields, text)
        if len(pairs) > _FIELDS_MAX:
            raise illegal_argument(f"a text is taken apart into more than [{_FIELDS_MAX}] fields")
        before = prefix if target is None else f"{target.render(document)}.{prefix}"
        for pair in pairs:
            split = next(values.finditer(pair), None)
            if split is None:
                raise illegal_argument(f"field [{field.text}] does not contain value_split")
            key, value = pair[: split.start()], pair[split.end() :]
            key = key if key_chars is None else key.strip(key_chars)
            value = value if value_chars is None else value.strip(value_chars)
            if strips and len(value) > 1 and value[0] + value[-1] in ("()", "<>", "[]", '""', "''"):
                value = value[1:-1]
            if key and (included is None or key in included) and key not in excluded:
                path = f"{before}{key}"
                document.append(path, [value]) if document.has(path) else document.set(path, value)

    return step


def _pieces(pattern: JavaPattern, text: str) -> list[str]:
    pieces, at = [], 0
    for found in pattern.finditer(text):
        if found.end() > found.start():
            pieces.append(text[at : found.start()])
            at = found.end()
    return [piece for piece in [*pieces, text[at:]] if piece]


TEXT_PROCESSORS: dict[str, Callable[[ProcessorOptions, Any], Step]] = {
    "csv": _csv,
    "date": _date,
    "date_index_name": _date_index_name,
    "dissect": _dissect,
    "grok": _grok,
    "kv": _kv,
    "redact": _redact,
}
