"""Aliases of data streams.

An alias of a data stream is an alias of all the indexes behind it. Its options have `stream`, the name of
the data stream. Documents that are sent to the alias go to one data stream at most: the one of which the
caller has said so. A rollover gives the aliases to the new index.

Source: `DataStreamAlias` of Elasticsearch 8.
"""

from collections.abc import Mapping, MutableMapping
from dataclasses import replace
from typing import Any, TypeAlias

from graphdb.search.catalog.state import AliasOptions, CatalogState
from graphdb.search.errors import SearchError, illegal_argument, index_not_found

__all__ = [
    "Aliases",
    "check_one_kind",
    "check_stream_options",
    "put_stream_alias",
    "remove_stream_alias",
    "shown_stream_aliases",
    "stream_members",
    "with_aliases_of_stream",
]

Aliases: TypeAlias = MutableMapping[str, dict[str, AliasOptions]]
"""By the uuid of an index, and by alias."""

_REFUSED = ("index_routing", "search_routing", "is_hidden")


def stream_members(state: CatalogState, stream: str) -> Mapping[str, AliasOptions]:
    """The indexes behind a data stream, by uuid. Errors: index_not_found_exception."""
    if stream not in state.data_streams:
        raise index_not_found(stream)
    return state.by_alias.get(stream, {})


def check_stream_options(options: AliasOptions) -> None:
    """Errors: illegal_argument_exception for what only an alias of indexes may have."""
    for name in _REFUSED:
        if name in options:
            raise illegal_argument(f"aliases that point to data streams don't support {name}")


def put_stream_alias(
    aliases: Aliases, members: Mapping[str, AliasOptions], stream: str, alias: str, options: AliasOptions
) -> None:
    """Put an alias on a data stream, or change it: what the options do not say stays. members: of the data
    stream.
    """
    before = [
        entry
        for uuid in members
        if (entry := aliases.get(uuid, {}).get(alias)) is not None and entry.get("stream") == stream
    ]
    is_written = options.get("is_write_index", any(entry["is_write_index"] for entry in before))
    if options.get("is_write_index"):
        _write_nowhere(aliases, alias)
    query = options.get("filter", before[0].get("filter") if before else None)
    kept: dict[str, Any] = {"stream": stream} if query is None else {"stream": stream, "filter": query}
    for uuid, member in members.items():
        writes = bool(is_written and member.get("is_write_index"))
        aliases.setdefault(uuid, {})[alias] = {**kept, "is_write_index": writes}


def _write_nowhere(aliases: Aliases, alias: str) -> None:
    for by_name in aliases.values():
        entry = by_name.get(alias)
        if entry is not None and entry.get("stream") is not None:
            by_name[alias] = {**entry, "is_write_index": False}


def remove_stream_alias(
    aliases: Aliases, members: Mapping[str, AliasOptions], stream: str, alias: str
) -> bool:
    """Take an alias off a data stream; whether it was there."""
    found = False
    for uuid in members:
        entry = aliases.get(uuid, {}).get(alias)
        if entry is not None and entry.get("stream") == stream:
            del aliases[uuid][alias]
            found = True
    return found


def with_aliases_of_stream(state: CatalogState, stream: str, old: str, new: str) -> CatalogState:
    """After a rollover, with the aliases of the data stream on the new index. old, new: uuids."""
    theirs = {
        alias: options
        for alias, options in state.aliases.get(old, {}).items()
        if options.get("stream") == stream
    }
    if not theirs:
        return state
    left = {alias: {**options, "is_write_index": False} for alias, options in theirs.items()}
    return replace(
        state,
        aliases={
            **state.aliases,
            old: {**state.aliases.get(old, {}), **left},
            new: {**state.aliases.get(new, {}), **theirs},
        },
    )


def shown_stream_aliases(state: CatalogState, stream: str) -> dict[str, dict[str, Any]]:
    """By alias, ascending, as clients are shown it: its filter, and whether it writes to this data stream."""
    shown: dict[str, dict[str, Any]] = {}
    for uuid in stream_members(state, stream):
        for alias, options in state.aliases.get(uuid, {}).items():
            if options.get("stream") != stream:
                continue
            one = shown.setdefault(alias, {})
            if options["is_write_index"]:
                one["is_write_index"] = True
            if "filter" in options:
                one["filter"] = options["filter"]
    return dict(sorted(shown.items()))


def check_one_kind(state: CatalogState, alias: str) -> None:
    """Errors: illegal_argument_exception for an alias of data streams and of other indexes."""
    kinds = {"stream" in options for options in state.by_alias.get(alias, {}).values()}
    if len(kinds) > 1:
        raise SearchError(
            "illegal_argument_exception",
            f"data stream alias and indices alias have the same name ({alias})",
        )
