"""Aliases: made, shown, removed, one at a time or many at once."""

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from graphdb.config import Settings
from graphdb.search.catalog.aliases import aliases_missing
from graphdb.search.catalog.catalog_commands import AliasAction, UpdateAliases
from graphdb.search.catalog.data_streams import check_deletion
from graphdb.search.catalog.index_names import ResolveOptions
from graphdb.search.catalog.state import Index
from graphdb.search.catalog.stream_aliases import shown_stream_aliases
from graphdb.search.errors import SearchError, illegal_argument
from graphdb.search.mapping.wildcards import wildcard_match
from serve.search.administration.indices import CHOICE, chosen_indexes
from serve.search.backend import SearchBackend
from serve.search.frame.answer import Answer, error_json
from serve.search.frame.exchange import Body, Endpoint, Exchange, endpoint

__all__ = ["routes"]

_GET = CHOICE + " local master_timeout"
_CHANGE = "master_timeout timeout"
_ACTIONS_MAX = 10_000
_ADD = frozenset(
    {
        "filter",
        "routing",
        "index_routing",
        "search_routing",
        "is_write_index",
        "is_hidden",
    }
)
_KNOWN = {"add": _ADD, "remove": frozenset({"must_exist"}), "remove_index": frozenset[str]()}
_NAMES = frozenset({"index", "indices", "alias", "aliases"})


def routes(_node: SearchBackend, _settings: Settings) -> list[Endpoint]:
    one = ["/{index}/_alias/{name}", "/{index}/_aliases/{name}"]
    anywhere = ["/_alias/{name}", "/_aliases/{name}"]
    of_body = ["/_alias", "/{index}/_alias", "/{index}/_aliases"]
    named = ["/_alias/{name}", "/{index}/_alias/{name}", "/{index}/_alias"]
    return [
        *endpoint("PUT POST", [*one, *anywhere], _put, _CHANGE, Body.JSON),
        *endpoint("PUT", of_body, _put, _CHANGE, Body.JSON),
        *endpoint("DELETE", one, _delete, _CHANGE),
        *endpoint("GET", ["/_alias", "/_aliases"], _get, _GET),
        *endpoint("GET HEAD", named, _get, _GET),
        *endpoint("POST", "/_aliases", _update, _CHANGE, Body.JSON),
    ]


async def _put(exchange: Exchange) -> dict[str, Any]:
    """What the body names counts before what the path does."""
    body = await exchange.json() or {}
    options = {name: value for name, value in body.items() if name not in _NAMES}
    names = body.get("index") or exchange.get("index")
    if not names:
        raise illegal_argument("[indices] can't be empty")
    alias = body.get("alias") or exchange.get("name")
    if not alias:
        raise illegal_argument("[alias] can't be empty string")
    entry = {"indices": names, "alias": alias, **options}
    return await _perform(exchange, [{"add": entry}])


async def _delete(exchange: Exchange) -> dict[str, Any]:
    entry = {"indices": exchange["index"], "aliases": exchange["name"].split(",")}
    return await _perform(exchange, [{"remove": entry}])


async def _update(exchange: Exchange) -> dict[str, Any]:
    body = await exchange.json()
    if body is None:
        raise SearchError("parse_exception", "request body is required")
    unknown = sorted(body.keys() - {"actions"})
    if unknown:
        raise SearchError("x_content_parse_exception", f"[aliases] unknown field [{unknown[0][:100]}]")
    given = body.get("actions")
    if not given and not isinstance(given, dict):
        raise illegal_argument("No action specified")
    if not isinstance(given, list):
        raise SearchError("x_content_parse_exception", "[aliases] failed to parse field [actions]")
    return await _perform(exchange, given)


async def _perform(exchange: Exchange, given: Sequence[Any]) -> dict[str, Any]:
    """given: actions as clients write them. Patterns are many times many names, so not on the event loop."""
    asked = await asyncio.to_thread(_all_asked, exchange, given)
    await exchange.node.perform(UpdateAliases(tuple(action for one in asked for action in one.actions)))
    if all(one.missing is None for one in asked):
        return {"acknowledged": True, "errors": False}
    return {"acknowledged": True, "errors": True, "action_results": [one.result() for one in asked]}


@dataclass(frozen=True, slots=True)
class _Asked:
    """One action as a client writes it: what it changes on each index, with each alias. missing: it removes
    what is nowhere.
    """

    kind: str
    indexes: Sequence[str]
    aliases: Sequence[str]
    actions: Sequence[AliasAction]
    missing: SearchError | None = None

    def result(self) -> dict[str, Any]:
        """Its part of `action_results`."""
        action = {"type": self.kind, "indices": self.indexes, "aliases": self.aliases}
        if self.missing is None:
            return {"action": action, "status": 200}
        return {"action": action, "status": 404, "error": error_json(self.missing)}


def _all_asked(exchange: Exchange, given: Sequence[Any]) -> list[_Asked]:
    """Errors: aliases_not_found_exception where nothing that is to be removed is there."""
    asked, left = [], _ACTIONS_MAX
    for action in given:
        entry = _entry(action)
        asked.append(_asked(exchange, *entry, left))
        left -= len(asked[-1].actions)
    missing = [one.missing for one in asked if one.missing is not None]
    if missing and len(missing) == len(asked):
        raise missing[0]
    return asked


def _entry(given: Any) -> tuple[str, Mapping[str, Any], list[str], list[str]]:
    """Of one action: its kind, what it says, its indexes and its aliases.

    Errors: x_content_parse_exception.
    """
    try:
        return _read_entry(given)
    except SearchError as error:
        reason = "[aliases] failed to parse field [actions]"
        raise SearchError("x_content_parse_exception", reason, cause=error) from None


def _read_entry(given: Any) -> tuple[str, Mapping[str, Any], list[str], list[str]]:
    if not isinstance(given, Mapping) or len(given) != 1:
        raise _unread("an action is an object with one member: [add], [remove] or [remove_index]")
    kind, entry = next(iter(given.items()))
    if kind not in _KNOWN or not isinstance(entry, Mapping):
        raise _unread(f"[alias_action] unknown field [{kind[:100]}]")
    unknown = sorted(entry.keys() - _NAMES - _KNOWN[kind])
    if unknown:
        raise _unread(f"[{kind}] unknown field [{unknown[0][:100]}]")
    for name in ("is_write_index", "is_hidden", "must_exist"):
        if entry.get(name) not in (None, True, False, "true", "false"):
            raise _unread(f"[{kind}] failed to parse field [{name}]")
    places = _words(entry, "index", "indices")
    return kind, entry, places, [] if kind == "remove_index" else _words(entry, "alias", "aliases")


def _asked(
    exchange: Exchange,
    kind: str,
    entry: Mapping[str, Any],
    places: Sequence[str],
    names: Sequence[str],
    most: int,
) -> _Asked:
    """Changes at most so much."""
    options = {name: value for name, value in entry.items() if name not in _NAMES}
    streams = [] if kind == "remove_index" else _streams(exchange, places)
    if streams:
        changes = _changes_of_streams(exchange, kind, streams, names, options)
    else:
        indexes = _indexes(exchange, places)
        _check_backing(exchange, kind, indexes)
        changes = _changes(kind, indexes, names, options)
    actions = list(islice(changes, most + 1))
    if len(actions) > most:
        raise illegal_argument(f"more than [{_ACTIONS_MAX}] changes of aliases in one request")
    if kind != "remove" or actions:
        return _Asked(kind, places, names, actions)
    missing = aliases_missing(",".join(names))
    if options.get("must_exist") is True:
        raise missing
    return _Asked(kind, places, names, actions, missing)


def _changes(
    kind: str, indexes: Sequence[Index], names: Sequence[str], options: Mapping[str, Any]
) -> Iterator[AliasAction]:
    """A pattern removes what fits it."""
    for index in indexes:
        if kind == "remove_index":
            yield AliasAction(kind, index.uuid)
        elif kind == "add":
            yield from (AliasAction(kind, index.uuid, name, options) for name in names)
        else:
            fitting = (alias for alias in sorted(index.aliases) if _fits_any(alias, names))
            yield from (AliasAction(kind, index.uuid, alias) for alias in fitting)


def _changes_of_streams(
    exchange: Exchange, kind: str, streams: Sequence[str], names: Sequence[str], options: Mapping[str, Any]
) -> Iterator[AliasAction]:
    for stream in streams:
        if kind == "add":
            yield from (AliasAction("add_to_stream", stream, name, options) for name in names)
        else:
            there = shown_stream_aliases(exchange.node.catalog.state, stream)
            fitting = (alias for alias in there if _fits_any(alias, names))
            yield from (AliasAction("remove_from_stream", stream, alias) for alias in fitting)


def _streams(exchange: Exchange, names: Sequence[str]) -> list[str]:
    """The data streams that names and patterns mean. Errors: illegal_argument_exception where they mean
    indexes, too.
    """
    streams = exchange.node.catalog.data_streams
    meant = [one for one in streams if any(name == "_all" or wildcard_match(name, one) for name in names)]
    others = [name for name in names if name not in streams]
    if meant and others:
        options = ResolveOptions.of("open", aliases=False, allow_no_indices=True)
        if exchange.node.catalog.resolve(others, options, exchange.node.now_ms()):
            raise illegal_argument(
                f"expressions [{','.join(names)[:200]}] that match with both data streams and regular "
                "indices are disallowed"
            )
    return meant


def _check_backing(exchange: Exchange, kind: str, indexes: Sequence[Index]) -> None:
    """Errors: illegal_argument_exception for what is not to be done with an index of a data stream."""
    state = exchange.node.catalog.state
    if kind == "remove_index":
        check_deletion(state, [index.uuid for index in indexes])
    for index in indexes if kind == "add" else ():
        stream = state.stream_of(index.uuid)
        if stream is not None:
            raise illegal_argument(
                f"The provided expressions [{index.name}] match a backing index belonging to data stream "
                f"[{stream}]. Data stream backing indices don't support aliases."
            )


def _fits_any(alias: str, names: Sequence[str]) -> bool:
    return any(name == "_all" or wildcard_match(name, alias) for name in names)


def _indexes(exchange: Exchange, names: Sequence[str]) -> list[Index]:
    """By their own names: an alias of an alias cannot be."""
    options = ResolveOptions.of("all", allow_no_indices=False, aliases=False, closed=True)
    found = exchange.node.catalog.resolve(names, options, exchange.node.now_ms())
    return [one.index for one in found]


def _words(entry: Mapping[str, Any], one: str, many: str) -> list[str]:
    if one in entry and many in entry:
        raise _unread(f"[{one}] and [{many}] cannot both be set")
    value = entry.get(many, entry.get(one))
    if value is None:
        raise illegal_argument(f"One of [{one}] or [{many}] is required")
    words = value.split(",") if isinstance(value, str) else value
    if not isinstance(words, list) or not words or not all(isinstance(word, str) and word for word in words):
        raise _unread(f"[{one}] or [{many}] must be a name or a list of names")
    return words


async def _get(exchange: Exchange) -> Answer:
    """With names: only indexes that have one of them, and 404 for an unknown name."""
    indexes = chosen_indexes(exchange, states="all")
    names = exchange.get("name")
    of_streams = _of_streams(exchange)
    if names is None:
        of_indexes = {index.name: {"aliases": dict(index.aliases)} for index in indexes}
        return Answer(of_indexes | {name: {"aliases": found} for name, found in of_streams.items()})
    patterns = [name for name in names.split(",") if name]
    shown = {}
    for name, aliases in {**{index.name: index.aliases for index in indexes}, **of_streams}.items():
        fitting = {alias: options for alias, options in aliases.items() if _fits(alias, patterns)}
        if fitting:
            shown[name] = {"aliases": fitting}
    returned = {alias for one in shown.values() for alias in one["aliases"]}
    missing = sorted(set(_missing(patterns, returned)))
    if not missing:
        return Answer(shown)
    text = f"alias{'es' if len(missing) > 1 else ''} [{','.join(missing)}] missing"
    return Answer({"error": text, "status": 404, **shown}, 404)


def _of_streams(exchange: Exchange) -> dict[str, Mapping[str, Any]]:
    """The aliases of the data streams that the request means and that have some, by data stream."""
    catalog = exchange.node.catalog
    wanted = (exchange.get("index") or "_all").split(",")
    found = {
        name: shown_stream_aliases(catalog.state, name)
        for name in catalog.data_streams
        if any(one == "_all" or wildcard_match(one, name) for one in wanted)
    }
    return {name: aliases for name, aliases in found.items() if aliases}


def _first_wildcard(patterns: Sequence[str]) -> int:
    """Only behind a pattern with a wildcard does `-` exclude."""
    return next((number for number, one in enumerate(patterns) if "*" in one), len(patterns))


def _fits(alias: str, patterns: Sequence[str]) -> bool:
    """The last matching pattern counts: `-name` excludes a name that an earlier pattern matched."""
    fits = False
    for number, pattern in enumerate(patterns):
        if number and pattern.startswith("-") and wildcard_match(pattern[1:], alias):
            fits = False
        elif pattern == "_all" or wildcard_match(pattern, alias):
            fits = True
    return fits


def _missing(patterns: Sequence[str], returned: Collection[str]) -> Iterator[str]:
    """The plain names that were not found and that nothing behind them excludes."""
    first = _first_wildcard(patterns)
    for number, name in enumerate(patterns):
        if name == "_all" or "*" in name or (number > first and name.startswith("-")) or name in returned:
            continue
        behind = patterns[max(number + 1, first) :]
        if not any(one.startswith("-") and wildcard_match(one[1:], name) for one in behind):
            yield name


def _unread(reason: str) -> SearchError:
    return SearchError("x_content_parse_exception", reason)
