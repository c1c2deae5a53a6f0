"""What a hit shows beside its id and score, as the request says it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from graphdb.search.aggregations.options import Options
from graphdb.search.errors import illegal_argument, illegal_request
from graphdb.search.query import QueryContext
from graphdb.search.results.field_values import FieldPattern, parse_field_patterns
from graphdb.search.results.source_filter import (
    EVERYTHING,
    SourceFilter,
    keeps_source,
    parse_source_filter,
)

__all__ = ["Fetching", "parse_fetching"]


@dataclass(frozen=True, slots=True)
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

    @property
    def is_raw(self) -> bool:
        """Whether hits are shown without reading any document's source."""
        shown_raw = self.source == EVERYTHING or not self.source.enabled
        return shown_raw and not (self.fields or self.docvalues or self.highlight or self.stored)

    @property
    def is_whole(self) -> bool:
        """Whether all that is read of a document's source is the whole of it."""
        return self.source == EVERYTHING and not (
            self.fields or self.docvalues or self.highlight or self.stored
        )


def parse_fetching(options: Options, context: QueryContext) -> Fetching:
    """Takes its keys out of a search, of inner_hits or top_hits."""
    stored = options.take("stored_fields")
    hidden = stored in ("_none_", ["_none_"])
    source = options.take("_source")
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
