"""One index as the catalogue holds it, and the patterns of index names."""

from collections.abc import Mapping as JsonObject
from typing import Any

from graphdb.search.analysis import Analyzers
from graphdb.search.catalog.settings import flag_setting, number_setting, shown_settings, words_setting
from graphdb.search.mapping import Mapping
from graphdb.search.query import QueryContext, Searcher
from graphdb.search.segment import Leaf
from graphdb.search.segments.index_shard import IndexShard

__all__ = ["Index", "has_patterns"]

# Which indexes analyse with regular expressions of their users.
#
# How long such a pattern takes depends on the node, and nodes must not disagree on which documents are
# refused. So their documents are tried before they are logged (`Catalog.prepare`), with a time limit, and
# applied without one.

_PATTERN_PARAMETERS = {"pattern", "patterns", "keywords_pattern"}


def has_patterns(settings: JsonObject[str, Any]) -> bool:
    """Whether any component that the settings define has one."""
    pending: list[Any] = [settings.get("analysis")]
    while pending:
        value = pending.pop()
        if isinstance(value, JsonObject):
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
        settings: JsonObject[str, Any],
        analyzers: Analyzers,
        shard: IndexShard[Mapping],
    ) -> None:
        """settings: in normal form (`graphdb.search.catalog.settings`)."""
        self.name, self.uuid, self.created_ms = name, uuid, created_ms
        self.settings = settings
        self.analyzers = analyzers
        self.shard = shard
        self.aliases: JsonObject[str, JsonObject[str, Any]] = {}  # by name: filter, index_routing, ...
        self.mapping_version = 1  # counts the mapping's changes, the same on every node
        self.cursor = 0  # of an index that follows the graph: the log index that it has followed to
        self.has_patterns = has_patterns(settings)
        self._searcher: tuple[tuple[Leaf, ...], Mapping, Searcher] | None = None

    @property
    def mapping(self) -> Mapping:
        return self.shard.mapping

    @property
    def follows_graph(self) -> bool:
        """Whether its documents are made of the graph."""
        return "graph" in self.settings

    def number(self, setting: str) -> int:
        """The value of an integer setting, by its name under `index`, or its default."""
        return number_setting(self.settings, setting)

    def shown_settings(
        self, pattern: str = "*", flat: bool = False, include_defaults: bool = False
    ) -> dict[str, Any]:
        """As `GET /{index}/_settings` has them for this index."""
        metadata = {"uuid": self.uuid, "creation_date": str(self.created_ms), "provided_name": self.name}
        return shown_settings(self.settings, metadata, pattern, flat, include_defaults)

    def searcher(self) -> Searcher:
        """Over what a search may see now; the same one, with what it keeps, until that changes."""
        leaves, mapping = self.shard.leaves(), self.shard.mapping
        known = self._searcher
        if known is not None and known[0] is leaves and known[1] is mapping:
            return known[2]
        searcher = Searcher(leaves, mapping, self.analyzers, index_name=self.name)
        self._searcher = (leaves, mapping, searcher)
        return searcher

    def _names(self) -> tuple[tuple[str, bool], ...]:
        """What the field `_index` is called by: the index and its aliases, and whether each is hidden."""
        aliases = ((name, bool(options.get("is_hidden"))) for name, options in self.aliases.items())
        return ((self.name, flag_setting(self.settings, "hidden")), *aliases)

    def context(self, now_ms: int) -> QueryContext:
        """For the queries of one request."""
        return QueryContext(
            self.mapping,
            self.analyzers,
            now_ms,
            self.name,
            max_terms_count=self.number("max_terms_count"),
            max_regex_length=self.number("max_regex_length"),
            max_analyzed_offset=self.number("highlight.max_analyzed_offset"),
            default_fields=words_setting(self.settings, "query.default_field"),
            index_names=self._names(),
        )
