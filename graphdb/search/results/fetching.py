"""What a hit shows beside its id and score, as the request says it: the fetch phase."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from graphdb.search.aggregations.options import Options
from graphdb.search.errors import SearchError, illegal_argument, illegal_request, parsing
from graphdb.search.leaf_reader import Leaf
from graphdb.search.mapping.lookup import FieldLookup
from graphdb.search.mapping.wildcards import wildcard_match
from graphdb.search.query import QueryContext
from graphdb.search.results.field_values import FieldPattern, parse_field_patterns
from graphdb.search.scripts.faults import ScriptFault
from graphdb.search.scripts.results import json_values
from graphdb.search.scripts.script import FIELD, Script, parse_script

__all__ = [
    "EVERYTHING",
    "Fetching",
    "ScriptField",
    "SourceFilter",
    "keeps_source",
    "kept_source",
    "parse_fetching",
    "parse_source_filter",
]

# `_source` with includes and excludes.

PATTERNS_MAX = 1_000


@dataclass(frozen=True, slots=True)
class SourceFilter:
    """A pattern stands for all paths it matches and all below them; `*` matches dots too. Excludes win."""

    enabled: bool = True
    includes: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()

    def applied(self, source: dict[str, Any]) -> dict[str, Any]:
        if not self.includes and not self.excludes:
            return source
        return self._object(source, "", not self.includes)

    def _object(self, value: Mapping[str, Any], prefix: str, accepted: bool) -> dict[str, Any]:
        kept = {}
        for key, member in value.items():
            path = prefix + key
            if any(wildcard_match(pattern, path) for pattern in self.excludes):
                continue
            inside = accepted or any(wildcard_match(pattern, path) for pattern in self.includes)
            left = self._value(member, path, inside)
            if left is not _NOTHING:
                kept[key] = left
        return kept

    def _value(self, value: Any, path: str, accepted: bool) -> Any:
        """What stays of a value: of objects and arrays that are not asked for, only what is asked for."""
        if isinstance(value, dict):
            inner = self._object(value, path + ".", accepted)
            return inner if inner or accepted else _NOTHING
        if isinstance(value, list):
            items = [self._value(item, path, accepted) for item in value]
            items = [item for item in items if item is not _NOTHING]
            return items if items or accepted else _NOTHING
        return value if accepted else _NOTHING


_NOTHING = object()
EVERYTHING = SourceFilter()


def keeps_source(mapping: FieldLookup) -> bool:
    """Whether a mapping shows the documents of its index."""
    return mapping.source_options.get("enabled") not in (False, "false")


def kept_source(mapping: FieldLookup) -> SourceFilter:
    """What a mapping shows of the documents of its index."""
    options = mapping.source_options
    if not options:  # as mostly
        return EVERYTHING
    return SourceFilter(
        keeps_source(mapping), *(_listed(options.get(key)) for key in ("includes", "excludes"))
    )


def _listed(patterns: Any) -> tuple[str, ...]:
    if patterns is None:
        return ()
    return tuple(map(str, patterns if isinstance(patterns, list) else [patterns]))


def parse_source_filter(value: Any) -> SourceFilter:
    """A boolean, a pattern, patterns, or an object with includes and excludes."""
    if value is None or value is True or value == "true":
        return SourceFilter()
    if value is False or value == "false":
        return SourceFilter(False)
    if isinstance(value, Mapping):
        known = {"includes": "includes", "include": "includes", "excludes": "excludes", "exclude": "excludes"}
        lists: dict[str, tuple[str, ...]] = {}
        for key, patterns in value.items():
            if key not in known:
                raise parsing(f"Unknown key for a VALUE_STRING in [{key}].")
            lists[known[key]] = _patterns(patterns)
        return SourceFilter(True, lists.get("includes", ()), lists.get("excludes", ()))
    return SourceFilter(True, _patterns(value))


def _patterns(value: Any) -> tuple[str, ...]:
    found = value if isinstance(value, list) else [value]
    if len(found) > PATTERNS_MAX:
        raise illegal_request(f"[_source] takes at most [{PATTERNS_MAX}] patterns")
    for pattern in found:
        if not isinstance(pattern, str):
            raise parsing(
                "Expected one of [VALUE_BOOLEAN, VALUE_STRING, START_ARRAY, START_OBJECT] for [_source]"
            )
    return tuple(found)


# `script_fields`: what scripts return for a hit.


@dataclass(frozen=True, slots=True)
class ScriptField:
    """ignores_failure: a hit for which the script fails goes without it."""

    name: str
    script: Script
    ignores_failure: bool = False

    def values(self, leaf: Leaf, doc: int, context: QueryContext) -> list[Any] | None:
        """For a document of a leaf; None where it fails, and that is ignored. Raises SearchError."""
        on_leaf = self.script.on(leaf, context.mapping, context.index_name)
        try:
            (found,) = on_leaf.values(np.array([doc], np.int64))
            return json_values(found)
        except ScriptFault as fault:
            error = self.script.error(fault)
        except SearchError as failed:
            error = failed
        if self.ignores_failure:
            return None
        raise error


def _script_fields(given: Any, most: int) -> tuple[ScriptField, ...]:
    if given is None:
        return ()
    if not isinstance(given, Mapping):
        raise parsing("[script_fields] must be an object")
    if len(given) > most:
        raise illegal_argument(
            "Trying to retrieve too many script_fields. Must be less than or equal to: "
            f"[{most}] but was [{len(given)}]. This limit can be set by changing the "
            "[index.max_script_fields] index level setting."
        )
    fields = []
    for name, body in given.items():
        options = Options("script_fields", body)
        script, ignores = options.take("script"), options.flag("ignore_failure")
        options.done()
        if script is None:
            raise illegal_request(f"a field of [script_fields] needs a [script]: [{name[:100]}]")
        fields.append(ScriptField(name, parse_script(script, FIELD), ignores))
    return tuple(fields)


# All that is shown.


@dataclass(frozen=True)
class Fetching:
    """highlight is the request's own JSON."""

    source: SourceFilter = EVERYTHING
    fields: tuple[FieldPattern, ...] = ()
    docvalues: tuple[FieldPattern, ...] = ()
    highlight: Mapping[str, Any] | None = None
    explain: bool = False
    version: bool = False
    seq_no: bool = False
    hidden: bool = False  # stored_fields: _none_
    stored: tuple[FieldPattern, ...] = ()
    scripts: tuple[ScriptField, ...] = ()

    @cached_property
    def is_raw(self) -> bool:
        """Whether hits are shown without reading any document's source."""
        shown_raw = self.source == EVERYTHING or not self.source.enabled
        return shown_raw and not (
            self.fields or self.docvalues or self.highlight or self.stored or self.scripts
        )

    @cached_property
    def is_whole(self) -> bool:
        """Whether all that is read of a document's source is the whole of it."""
        return self.source == EVERYTHING and not (
            self.fields or self.docvalues or self.highlight or self.stored or self.scripts
        )


def parse_fetching(options: Options, context: QueryContext) -> Fetching:
    """Takes its keys out of a search, of inner_hits or top_hits."""
    stored = options.take("stored_fields")
    hidden = stored in ("_none_", ["_none_"])
    if isinstance(stored, list) and "_none_" in stored and not hidden:
        raise illegal_request("cannot combine _none_ with other fields")
    source = options.take("_source")
    scripts = _script_fields(options.take("script_fields"), context.limits.script_fields)
    if source is None and stored is None and scripts:
        source = False
    if source is None and stored is not None:
        source = "_source" in (stored if isinstance(stored, list) else [stored])
    if hidden and source not in (None, False):
        raise illegal_request("[stored_fields] cannot be disabled if [_source] is requested")
    highlight = options.take("highlight")
    if highlight is not None and not isinstance(highlight, Mapping):
        raise options.unreadable("highlight")
    return Fetching(
        parse_source_filter(source),
        _fields(options, context),
        parse_field_patterns(options.items("docvalue_fields"), "docvalue_fields", context),
        highlight,
        options.flag("explain"),
        options.flag("version"),
        options.flag("seq_no_primary_term"),
        hidden,
        _stored(stored, context),
        scripts,
    )


def _fields(options: Options, context: QueryContext) -> tuple[FieldPattern, ...]:
    """They are read from sources, so that there must be some."""
    fields = parse_field_patterns(options.items("fields"), "fields", context)
    for part in context.parts or (context,):
        if fields and not keeps_source(part.mapping):
            raise illegal_argument(
                "Unable to retrieve the requested [fields] since _source is disabled in the mappings for "
                f"index [{part.index_name}]"
            )
    return fields


def _stored(names: Any, context: QueryContext) -> tuple[FieldPattern, ...]:
    """Those of the names whose mapping says `store`."""
    listed = names if isinstance(names, list) else [] if names is None else [names]
    if not all(isinstance(name, str) for name in listed):
        raise illegal_request("[stored_fields] must be names of fields")
    specs = [spec for name in listed for spec in context.mapping.match(name)]
    return tuple(FieldPattern(spec.path) for spec in specs if spec.options.get("store") in (True, "true"))
