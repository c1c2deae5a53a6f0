"""Aliases: what one may say of an index, and which sets of them are allowed."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from graphdb.search.catalog.catalog_commands import AliasAction, RollOver
from graphdb.search.catalog.index_names import check_alias_name
from graphdb.search.catalog.state import AliasOptions, CatalogState, Index
from graphdb.search.catalog.stream_aliases import (
    Aliases,
    check_one_kind,
    check_stream_options,
    put_stream_alias,
    remove_stream_alias,
    stream_members,
)
from graphdb.search.errors import SearchError, illegal_argument, parsing
from graphdb.search.query import parse_query

__all__ = [
    "alias_options",
    "aliases_missing",
    "check_aliases",
    "document_routing",
    "read_aliases",
    "with_alias_actions",
    "with_rollover",
]

_ALIASES_MAX = 10_000  # of one index
_FLAGS = ("is_write_index", "is_hidden")
_ROUTINGS = ("routing", "index_routing", "search_routing")


def alias_options(alias: str, given: object) -> dict[str, Any]:
    """The form in which an alias is kept and shown. Errors: illegal_argument_exception, parsing_exception."""
    if not isinstance(given, Mapping):
        raise illegal_argument("No alias is specified")
    options: dict[str, Any] = {}
    for name, value in given.items():
        if value is None or name == "must_exist":
            continue
        if name == "filter":
            options["filter"] = _filter(alias, value)
        elif name in _ROUTINGS:
            _put_routing(options, name, value)
        elif name in _FLAGS:
            options[name] = _flag(name, value)
        else:
            raise illegal_argument(f"Unknown field [{name}] in alias [{alias}]")
    return options


def _filter(alias: str, value: Any) -> Any:
    if not isinstance(value, Mapping):
        raise parsing(f"Expected an object for the filter of alias [{alias}]")
    return value


def _put_routing(options: dict[str, Any], name: str, value: Any) -> None:
    if isinstance(value, Mapping | list | bool):
        raise illegal_argument(f"[{name}] must be a text")
    for target in ("index_routing", "search_routing") if name == "routing" else (name,):
        if name != "routing" or target not in options:
            options[target] = str(value)


def _flag(name: str, value: Any) -> bool:
    if value not in (True, False, "true", "false"):
        raise illegal_argument(f"Failed to parse value [{value}] as only [true] or [false] are allowed.")
    return value in (True, "true")


def document_routing(alias: str, options: AliasOptions, routing: str | None) -> str | None:
    """The routing of a document that a request names by an alias. routing: what the request says itself.

    Errors: illegal_argument_exception where both say something, or the alias names several.
    """
    given = options.get("index_routing")
    if given is None:
        return routing
    if routing is not None and routing != given:
        raise illegal_argument(
            f"Alias [{alias}] has index routing associated with it [{given}], and was provided with "
            f"routing value [{routing}], rejecting operation"
        )
    if "," in given:
        raise illegal_argument(
            f"index/alias [{alias}] provided with routing value [{given}] that resolved to several routing "
            "values, rejecting operation"
        )
    return str(given)


def read_aliases(body: object, index: Index) -> dict[str, AliasOptions]:
    """The aliases of an index that is made. Errors: as of `alias_options`, invalid_alias_name_exception."""
    if not isinstance(body, Mapping):
        raise parsing("Expected an object for [aliases]")
    aliases: dict[str, AliasOptions] = {}
    for alias, given in body.items():
        check_alias_name(alias)
        aliases[alias] = alias_options(alias, given)
        check_filter(alias, aliases[alias], index)
    return aliases


# What `now` is where a filter is checked, as the log knows no clock; each search reads it anew. So late that
# the dates some years before can be had in nanoseconds since 1970.
_CHECKED_AT_MS = 1_600_000_000_000


def check_filter(alias: str, options: AliasOptions, index: Index) -> None:
    """A filter must be a query of the index. Errors: illegal_argument_exception."""
    if "filter" in options:
        try:
            parse_query(options["filter"], index.context(_CHECKED_AT_MS))
        except SearchError as error:
            raise illegal_argument(f"failed to parse filter for alias [{alias}]", error) from None


def with_alias_actions(state: CatalogState, actions: Iterable[AliasAction]) -> CatalogState:
    """The state after all of them. Errors: any one's; then nothing is to be changed."""
    actions = list(actions)
    removed = [action.uuid for action in actions if action.kind == "remove_index"]
    state.indexes(removed)
    for action in actions:
        if action.alias in state.data_streams:
            raise illegal_argument(f"[{action.alias}] is a data stream, not an alias")
    changed = state.without(removed)
    aliases = {uuid: dict(by_name) for uuid, by_name in changed.aliases.items()}
    for action in actions:
        if action.kind in ("add_to_stream", "remove_from_stream"):
            _act_on_stream(aliases, changed, action)
        elif action.kind != "remove_index":
            _act(aliases, changed.index(action.uuid), action)
    after = replace(changed, aliases=aliases)
    check_aliases(after, {action.alias for action in actions})
    return after


def _act_on_stream(aliases: Aliases, state: CatalogState, action: AliasAction) -> None:
    members = stream_members(state, action.uuid)
    if action.kind == "remove_from_stream":
        is_there = remove_stream_alias(aliases, members, action.uuid, action.alias)
        if not is_there and action.options.get("must_exist"):
            raise aliases_missing(action.alias)
        return
    check_alias_name(action.alias)
    options = alias_options(action.alias, action.options)
    check_stream_options(options)
    for uuid in members:
        check_filter(action.alias, options, state.index(uuid))
    put_stream_alias(aliases, members, action.uuid, action.alias, options)


def _act(aliases: Aliases, index: Index, action: AliasAction) -> None:
    there = aliases.setdefault(index.uuid, {})
    if action.kind == "add":
        check_alias_name(action.alias)
        options = alias_options(action.alias, action.options)
        check_filter(action.alias, options, index)
        there[action.alias] = options
    elif action.kind == "remove":
        if there.pop(action.alias, None) is None and action.options.get("must_exist"):
            raise aliases_missing(action.alias)
    else:
        raise illegal_argument(f"Unsupported action [{action.kind}]")


def with_rollover(state: CatalogState, command: RollOver, new: str) -> CatalogState:
    """The alias of a rollover over to the new index. One that says which index is written to keeps the old
    one; another is moved. Errors: illegal_argument_exception where it is not as it was any more.
    """
    old, members = state.index(command.old_uuid), state.by_alias.get(command.alias, {})
    options = members.get(old.uuid)
    if options is not None and "stream" in options:
        raise illegal_argument(
            "Aliases to data streams cannot be rolled over. Please rollover the data stream itself."
        )
    others = [uuid for uuid in members if uuid != old.uuid]
    is_written = options is not None and (bool(options.get("is_write_index")) or not others)
    if options is None or not is_written:
        raise illegal_argument(f"[{old.name}] is not what is written to by alias [{command.alias}] any more")
    hidden = {"is_hidden": True} if options.get("is_hidden") else {}
    if "is_write_index" in options:
        actions = [
            AliasAction("add", old.uuid, command.alias, {**options, "is_write_index": False}),
            AliasAction("add", new, command.alias, {**hidden, "is_write_index": True}),
        ]
    else:
        actions = [
            AliasAction("remove", old.uuid, command.alias),
            AliasAction("add", new, command.alias, hidden),
        ]
    return with_alias_actions(state, actions)


def aliases_missing(names: str) -> SearchError:
    """Aliases that are not there."""
    metadata = {"resource.type": "aliases", "resource.id": names}
    return SearchError("aliases_not_found_exception", f"aliases [{names}] missing", 404, metadata)


def check_aliases(state: CatalogState, names: Iterable[str]) -> None:
    """No index has the name of an alias, and no alias two write indexes.

    Errors: invalid_alias_name_exception, illegal_state_exception.
    """
    for alias in sorted(names):
        if alias in state.data_streams or (alias in state.by_alias and alias in state.by_name):
            reason = "an index or data stream exists with the same name as the alias"
            index = state.by_name.get(alias)
            metadata = {"index": alias, "index_uuid": "_na_" if index is None else index.uuid}
            raise SearchError(
                "invalid_alias_name_exception", f"Invalid alias name [{alias}]: {reason}", 400, metadata
            )
        check_one_kind(state, alias)
        writing = [
            state.by_uuid[uuid].name
            for uuid, options in state.by_alias.get(alias, {}).items()
            if options.get("is_write_index")
        ]
        if len(writing) > 1:
            listed = ",".join(sorted(writing))
            reason = f"alias [{alias}] has more than one write index [{listed}]"
            raise SearchError("illegal_state_exception", reason)
    if any(len(aliases) > _ALIASES_MAX for aliases in state.aliases.values()):
        raise illegal_argument(f"an index cannot have more than [{_ALIASES_MAX}] aliases")
