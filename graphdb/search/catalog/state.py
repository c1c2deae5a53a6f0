"""`CatalogState`: all that a catalogue knows at one moment. Never changed: a command makes another one."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from graphdb.search.catalog.index import Index
from graphdb.search.errors import index_not_found

__all__ = ["AliasOptions", "CatalogState", "KnownNode"]

AliasOptions: TypeAlias = Mapping[str, Any]
"""filter, index_routing, search_routing, is_write_index, is_hidden: those that were given."""


@dataclass(frozen=True, slots=True)
class KnownNode:
    """A node as it has introduced itself: address is host:port of its search port, for clients."""

    name: str
    address: str


@dataclass(frozen=True)
class CatalogState:
    """aliases: by index uuid and alias. templates and components: by name, each in the form that is shown.

    cluster_uuid: None before the first node has introduced itself. nodes: by node id, those that ever have.
    cluster_settings: by `persistent` and `transient`, then by dotted name; what was set.
    """

    by_uuid: Mapping[str, Index] = field(default_factory=dict)
    aliases: Mapping[str, Mapping[str, AliasOptions]] = field(default_factory=dict)
    templates: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    components: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    cluster_uuid: str | None = None
    nodes: Mapping[int, KnownNode] = field(default_factory=dict)
    cluster_settings: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    by_name: Mapping[str, Index] = field(init=False)
    by_alias: Mapping[str, Mapping[str, AliasOptions]] = field(init=False)  # by alias and uuid

    def __post_init__(self) -> None:
        by_alias: dict[str, dict[str, AliasOptions]] = {}
        for uuid, aliases in self.aliases.items():
            for alias, options in aliases.items():
                by_alias.setdefault(alias, {})[uuid] = options
        object.__setattr__(self, "by_name", {index.name: index for index in self.by_uuid.values()})
        object.__setattr__(self, "by_alias", by_alias)

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
