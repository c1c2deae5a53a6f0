"""`CatalogState`: all that a catalog contains at one moment; `Index`: one index as the catalog holds it.

A state is never changed: a command makes another one.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from operator import is_
from typing import Any, TypeAlias

from graphdb.search.analysis import Analyzers
from graphdb.search.catalog.index_settings import (
    REPLACES,
    VERSION_CREATED_TEXT,
    flag_setting,
    number_setting,
    shown_settings,
    words_setting,
)
from graphdb.search.errors import index_not_found
from graphdb.search.mapping import Mapping as FieldMapping
from graphdb.search.query import QueryContext, Searcher
from graphdb.search.query.clause import ResultLimits, TermsLookup
from graphdb.search.query.searcher import PartialSearcher
from graphdb.search.segments.index_shards import IndexShards, ShardLeaves

__all__ = [
    "AliasOptions",
    "CatalogState",
    "Index",
    "KnownNode",
    "has_patterns",
    "is_for_stream",
    "query_context",
]

# Which indexes analyse with regular expressions of their users.
#
# How long such a pattern takes depends on the node, and nodes must not disagree on which documents are
# refused. So their documents are tried before they are logged (`Catalog.prepare`), with a time limit, and
# applied without one.

_PATTERN_PARAMETERS = {"pattern", "patterns", "keywords_pattern"}


def has_patterns(settings: Mapping[str, Any]) -> bool:
    """Whether any component that the settings define has one."""
    pending: list[Any] = [settings.get("analysis")]
    while pending:
        value = pending.pop()
        if isinstance(value, Mapping):
            if _PATTERN_PARAMETERS & value.keys():
                return True
            pending += value.values()
    return False


# `Index`: one index as readers see it: its settings, mapping, analyzers and documents.


class Index:
    """Owned by a `Catalog`. What is read of it may be read on any thread."""

    def __init__(
        self,
        name: str,
        uuid: str,
        created_ms: int,
        settings: Mapping[str, Any],
        analyzers: Analyzers,
        shards: IndexShards[FieldMapping],
    ) -> None:
        """settings: in normal form (`graphdb.search.catalog.index_settings`)."""
        self.name, self.uuid, self.created_ms = name, uuid, created_ms
        self.settings = settings
        self.analyzers = analyzers
        self.shards = shards
        self.aliases: Mapping[str, Mapping[str, Any]] = {}  # by name: filter, index_routing, ...
        self.mapping_version = 1  # counts the mapping's changes, the same on every node
        self.cursor = 0  # of an index that follows the graph: the log index that it has followed to
        self.has_patterns = has_patterns(settings)
        self.is_closed = False  # then its documents are neither read nor written
        self._searcher: tuple[ShardLeaves, FieldMapping, Searcher] | None = None
        self._context: tuple[tuple[object, ...], QueryContext] | None = None

    @property
    def mapping(self) -> FieldMapping:
        return self.shards.mapping

    @property
    def follows_graph(self) -> bool:
        """Whether its documents are made of the graph."""
        return "graph" in self.settings

    def put_settings(self, settings: Mapping[str, Any], analyzers: Analyzers) -> None:
        """In normal form, and what they make of `analysis`; the mapping knows the analyzers already."""
        self.settings, self.analyzers = settings, analyzers
        self.has_patterns = has_patterns(settings)

    def number(self, setting: str) -> int:
        """The value of an integer setting, by its name under `index`, or its default."""
        return number_setting(self.settings, setting)

    def shown_settings(
        self, pattern: str = "*", flat: bool = False, include_defaults: bool = False, human: bool = False
    ) -> dict[str, Any]:
        """As `GET /{index}/_settings` has them for this index. human: times and versions as text, too."""
        metadata = {"uuid": self.uuid, "creation_date": str(self.created_ms), "provided_name": self.name}
        if human:
            created = datetime.fromtimestamp(self.created_ms / 1000, UTC).isoformat(timespec="milliseconds")
            metadata["creation_date_string"] = created.replace("+00:00", "Z")
            metadata["version.created_string"] = VERSION_CREATED_TEXT
        return shown_settings(self.settings, metadata, pattern, flat, include_defaults)

    def searcher(self, numbers: frozenset[int] | None = None) -> Searcher:
        """Over what a search may see now; the same one, with what it keeps, until that changes.

        numbers: of the shards to search, None: all. Scores are by the statistics of all shards in any case.
        """
        view, mapping = self.shards.view(), self.mapping
        known = self._searcher
        if known is None or known[0] is not view or known[1] is not mapping:
            whole = Searcher(view.leaves, mapping, self.analyzers, index_name=self.name)
            known = self._searcher = (view, mapping, whole.with_runtime_fields(mapping))
        searcher = known[2]
        if numbers is None or len(numbers) == len(view.parts):
            return searcher
        return searcher.keep(
            ("shards", numbers),
            lambda: PartialSearcher(searcher, view.of_shards(numbers)).with_runtime_fields(mapping),
        )

    def context(
        self, now_ms: int, terms_lookup: TermsLookup | None = None, allow_expensive: bool = True
    ) -> QueryContext:
        """For the queries of one request."""
        made_of = self.mapping, self.analyzers, self.settings, self.aliases
        known = self._context  # each of these is replaced, never changed
        if known is None or not all(map(is_, known[0], made_of)):
            known = self._context = made_of, query_context(self.name, *made_of, now_ms)
        return known[1].of_moment(now_ms, terms_lookup, allow_expensive)


def query_context(
    name: str,
    mapping: FieldMapping,
    analyzers: Analyzers,
    settings: Mapping[str, Any],
    aliases: Mapping[str, Mapping[str, Any]],
    now_ms: int,
) -> QueryContext:
    """How the queries of one request read an index. settings: in normal form."""
    hidden = ((alias, bool(options.get("is_hidden"))) for alias, options in aliases.items())
    return QueryContext(
        mapping,
        analyzers,
        now_ms,
        name,
        max_terms_count=number_setting(settings, "max_terms_count"),
        max_regex_length=number_setting(settings, "max_regex_length"),
        max_analyzed_offset=number_setting(settings, "highlight.max_analyzed_offset"),
        default_fields=words_setting(settings, "query.default_field"),
        lenient=flag_setting(settings, "query_string.lenient"),
        limits=ResultLimits(
            **{one.name: number_setting(settings, f"max_{one.name}") for one in fields(ResultLimits)}
        ),
        # what the field `_index` is called by, and whether each is hidden
        index_names=((name, flag_setting(settings, "hidden")), *hidden),
    )


AliasOptions: TypeAlias = Mapping[str, Any]
"""filter, index_routing, search_routing, is_write_index, is_hidden: those that were given. data_stream: it is
the data stream itself; stream: the data stream that it is an alias of.
"""


def is_for_stream(options: AliasOptions) -> bool:
    """Whether it is an entry of a data stream, or of an alias of one."""
    return bool(options.get("data_stream")) or "stream" in options


@dataclass(frozen=True, slots=True)
class KnownNode:
    """A node as it has introduced itself: address is host:port of its search port, for clients."""

    name: str
    address: str


@dataclass(frozen=True)
class CatalogState:
    """aliases: by index uuid and alias. templates, components, legacy templates, scripts and pipelines: by
    name, each in the form that is shown.

    cluster_uuid: None before the first node has introduced itself. nodes: by node id, those that ever have.
    cluster_settings: by `persistent` and `transient`, then by dotted name; what was set.
    data_streams: by name: template, generation, hidden; each is an alias of its indexes, too. lifecycles: by
    name: version, modified_ms, policy. repositories: of snapshots, by name: type, uuid, settings.
    synonyms: sets by name: rules with `id` and `synonyms`, by id. operation_modes: see `SetOperationMode`.
    snapshot_policies: what makes snapshots, by name, and what came of it.
    snapshot_retention: runs of retention.
    snapshot_work: by uuid: who writes to one of them now (`graphdb.search.catalog.snapshot_registry`).
    """

    by_uuid: Mapping[str, Index] = field(default_factory=dict)
    aliases: Mapping[str, Mapping[str, AliasOptions]] = field(default_factory=dict)
    templates: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    components: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    cluster_uuid: str | None = None
    nodes: Mapping[int, KnownNode] = field(default_factory=dict)
    cluster_settings: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    scripts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    pipelines: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    legacy_templates: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    data_streams: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    lifecycles: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    repositories: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    snapshot_work: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    synonyms: Mapping[str, Sequence[Mapping[str, str]]] = field(default_factory=dict)
    operation_modes: Mapping[str, str] = field(default_factory=dict)
    snapshot_policies: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    snapshot_retention: Mapping[str, int] = field(default_factory=dict)
    by_name: Mapping[str, Index] = field(init=False)
    by_alias: Mapping[str, Mapping[str, AliasOptions]] = field(init=False)  # by alias and uuid

    def __post_init__(self) -> None:
        by_alias: dict[str, dict[str, AliasOptions]] = {}
        for uuid, aliases in self.aliases.items():
            for alias, options in aliases.items():
                by_alias.setdefault(alias, {})[uuid] = options
        by_name = {
            index.name: index
            for index in self.by_uuid.values()
            if index.settings.get(REPLACES) not in self.by_uuid  # till then the name is the other one's
        }
        object.__setattr__(self, "by_name", by_name)
        object.__setattr__(self, "by_alias", by_alias)

    def aliases_of(self, uuid: str) -> Mapping[str, AliasOptions]:
        """Of an index, without data streams and their aliases; the same object until they change."""
        aliases = self.aliases.get(uuid, {})
        if not any(is_for_stream(options) for options in aliases.values()):
            return aliases
        return {name: options for name, options in aliases.items() if not is_for_stream(options)}

    def stream_of(self, uuid: str) -> str | None:
        """The data stream that an index is of."""
        aliases = self.aliases.get(uuid, {})
        return next((name for name, options in aliases.items() if options.get("data_stream")), None)

    def index(self, uuid: str) -> Index:
        """Errors: index_not_found_exception."""
        found = self.by_uuid.get(uuid)
        if found is None:
            raise index_not_found(uuid)
        return found

    def indexes(self, uuids: Iterable[str]) -> list[Index]:
        """Each once, in the order given. Errors: index_not_found_exception."""
        return [self.index(uuid) for uuid in dict.fromkeys(uuids)]

    def with_index(self, index: Index, aliases: Mapping[str, AliasOptions]) -> "CatalogState":
        return replace(
            self,
            by_uuid={**self.by_uuid, index.uuid: index},
            aliases={**self.aliases, index.uuid: aliases},
        )

    def without(self, uuids: Iterable[str]) -> "CatalogState":
        """Those indexes and their aliases gone."""
        gone = set(uuids)
        return replace(
            self,
            by_uuid={uuid: index for uuid, index in self.by_uuid.items() if uuid not in gone},
            aliases={uuid: aliases for uuid, aliases in self.aliases.items() if uuid not in gone},
        )
