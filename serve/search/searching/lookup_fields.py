"""Runtime fields of the type `lookup`: what `fields` shows of the documents of another index.

A search is asked for the fields that the lookups begin with, too. When it has its hits, each different value
is looked up once, by a search of its own, of which the first hit counts.

Source: Elasticsearch's reference, "Retrieve fields from related indices".
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from graphdb.search.errors import SearchError
from graphdb.search.mapping.runtime_fields import Lookup, checked_runtime, runtime_fields
from graphdb.search.mapping.wildcards import wildcard_match
from graphdb.search.multi.prepared import Target

__all__ = ["LookupFields"]

Search = Callable[[str, Mapping[str, Any]], Awaitable[Mapping[str, Any]]]
"""The answer to a body, of the indexes of a name."""


class LookupFields:
    """Those that one search asks for, by index."""

    def __init__(
        self, body: Mapping[str, Any], patterns: Sequence[str], found: Mapping[str, Mapping[str, Lookup]]
    ) -> None:
        self._body, self._patterns, self._found = body, patterns, found
        self._fetched: dict[tuple[Lookup, Any], Mapping[str, Any] | None] = {}

    @classmethod
    def of(cls, body: Mapping[str, Any], targets: Sequence[Target]) -> "LookupFields | None":
        """None where a search asks for none. Errors: as of `checked_runtime`."""
        entries = body.get("fields")
        if not isinstance(entries, list) or not entries:
            return None
        names = [entry.get("field") if isinstance(entry, Mapping) else entry for entry in entries]
        patterns = [name for name in names if isinstance(name, str)]
        own = _of_request(body.get("runtime_mappings"))
        found = {}
        for target in targets:
            lookups = {**target.searcher.mapping.lookups, **own}
            wanted = {name: one for name, one in lookups.items() if one is not None and _fits(patterns, name)}
            if wanted:
                found[target.name] = wanted
        return cls(body, patterns, found) if found else None

    @property
    def body(self) -> dict[str, Any]:
        """What is asked in place of the search's own body."""
        return {**self._body, "fields": [*self._body["fields"], *sorted(self._added())]}

    def _added(self) -> set[str]:
        inputs = {lookup.input_field for found in self._found.values() for lookup in found.values()}
        return {name for name in inputs if not _fits(self._patterns, name)}

    async def answered(self, answer: Mapping[str, Any], search: Search) -> dict[str, Any]:
        """The answer to `body` as that to the search's own. Errors: search_phase_execution_exception."""
        hits = answer["hits"]
        shown = [await self._shown(hit, search) for hit in hits["hits"]]
        return {**answer, "hits": {**hits, "hits": shown}}

    async def _shown(self, hit: Mapping[str, Any], search: Search) -> Mapping[str, Any]:
        fields = dict(hit.get("fields", {}))
        for name, lookup in self._found.get(hit["_index"], {}).items():
            values = fields.get(lookup.input_field, ())
            documents = [await self._looked_up(lookup, value, search) for value in values]
            if known := [document for document in documents if document is not None]:
                fields[name] = known
        for name in self._added():
            fields.pop(name, None)
        rest = {name: member for name, member in hit.items() if name != "fields"}
        return {**rest, "fields": fields} if fields else rest

    async def _looked_up(self, lookup: Lookup, value: Any, search: Search) -> Mapping[str, Any] | None:
        key = (lookup, value)
        if key not in self._fetched:
            body = {
                "query": {"term": {lookup.target_field: value}},
                "size": 1,
                "fields": [dict(entry) for entry in lookup.fetch_fields],
                "_source": False,
                "track_total_hits": False,
            }
            try:
                found = (await search(lookup.target_index, body))["hits"]["hits"]
            except SearchError as error:
                raise SearchError(
                    "search_phase_execution_exception",
                    "failed to fetch lookup fields",
                    error.status,
                    cause=error,
                ) from None
            self._fetched[key] = found[0].get("fields") if found else None
        return self._fetched[key]


def _of_request(section: Any) -> dict[str, Lookup | None]:
    """By name; None: another field of this name, which comes before a lookup of the mapping."""
    if not section:
        return {}
    return {name: field.lookup for name, field in runtime_fields(checked_runtime(section)).items()}


def _fits(patterns: Sequence[str], name: str) -> bool:
    return any(wildcard_match(pattern, name) for pattern in patterns)
