"""Short ways to say what the tests of the catalogue do."""

from collections.abc import Mapping
from typing import Any

from graphdb.search.catalog.catalog import Catalog
from graphdb.search.catalog.catalog_commands import (
    AliasAction,
    Command,
    CreateIndex,
    DocumentWrite,
    UpdateAliases,
    WriteDocuments,
    WriteResult,
)
from graphdb.search.segments.operations import Action, Operation

__all__ = ["Commands", "put"]


class Commands:
    """A catalogue and its log index. uuids are the names of the indexes."""

    def __init__(self, *names: str) -> None:
        self.catalog = Catalog()
        self.log_index = 0
        for name in names:
            self.create(name)

    def __call__(self, command: Command) -> Any:
        """Its outcome's value. Raises its error."""
        self.log_index += 1
        return self.catalog.apply(command, self.log_index, 1_000 + self.log_index).get()

    def create(self, name: str, body: Mapping[str, Any] | None = None) -> Any:
        return self(CreateIndex(name, name, body or {}))

    def alias(self, index: str, alias: str, **options: Any) -> None:
        self(UpdateAliases((AliasAction("add", index, alias, options),)))

    def write(self, *writes: DocumentWrite, refresh: bool = False) -> list[WriteResult]:
        results: list[WriteResult] = self(WriteDocuments(writes, refresh))
        return results

    def resolved(self, *arguments: Any) -> list[str]:
        return [found.index.name for found in self.catalog.resolve(*arguments)]


def put(index: str, doc_id: str, body: bytes = b"{}", **members: Any) -> DocumentWrite:
    require_alias = members.pop("require_alias", False)
    return DocumentWrite(index, Operation(Action.INDEX, doc_id, body, **members), require_alias)
