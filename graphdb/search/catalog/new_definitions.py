"""What is refused of definitions that come new, beside what no log entry may say.

A log, a disk and a snapshot may have definitions that an earlier version took, and these stay as they are.
So what is checked here is checked where a request is read, and after the command has been found possible.

Source: what Elasticsearch 8.19 refuses.
"""

from collections.abc import Callable, Mapping
from typing import Any

from graphdb.search.catalog.catalog_commands import (
    Command,
    CreateIndex,
    PutComponentTemplate,
    PutIndexTemplate,
    PutLegacyTemplate,
    PutMapping,
    PutSettings,
)
from graphdb.search.catalog.data_streams import TIMESTAMP
from graphdb.search.catalog.index_names import FORBIDDEN, check_alias_name
from graphdb.search.catalog.index_settings import STATIC_PREFIXES, analyzers_of, read_settings
from graphdb.search.catalog.index_templates import contents
from graphdb.search.catalog.setting_values import check_new_values
from graphdb.search.catalog.state import CatalogState
from graphdb.search.catalog.synonym_sets import with_sets
from graphdb.search.errors import SearchError, illegal_argument
from graphdb.search.mapping.new_mappings import check_new_mapping

__all__ = ["check_definition"]

_TIMESTAMP_TYPES = ("date", "date_nanos")


def check_definition(state: CatalogState, command: Command) -> None:
    """Of a command that could be applied as it is. Commands that define nothing have nothing to check.

    Errors: illegal_argument_exception, mapper_parsing_exception, invalid_index_template_exception,
    invalid_alias_name_exception, parse_exception, x_content_parse_exception.
    """
    check = _CHECKS.get(type(command))
    if check is not None:
        check(state, command)


def _check_index(state: CatalogState, command: CreateIndex) -> None:
    for member, value in command.body.items():
        if value is None:
            raise SearchError("parse_exception", f"key [{member}] must be an object")
    _check_settings(command.body.get("settings") or {}, state)
    check_new_mapping(command.body.get("mappings") or {})
    _check_aliases(command.body.get("aliases") or {})


def _check_mapping(_state: CatalogState, command: PutMapping) -> None:
    check_new_mapping(command.body)


def _check_update(state: CatalogState, command: PutSettings) -> None:
    given = command.settings
    settings = read_settings(given["settings"] if given.keys() == {"settings"} else given)
    check_new_values(settings)
    indexes = state.indexes(command.uuids)
    static = [name for name in settings if name.startswith(STATIC_PREFIXES)]
    opened = [] if command.reopen else [index for index in indexes if not index.is_closed]
    if static and opened:
        names = ", ".join(f"index.{name}" for name in static)
        where = ", ".join(f"[{index.name}/{index.uuid}]" for index in opened)
        raise illegal_argument(f"Can't update non dynamic settings [[{names}]] for open indices [{where}]")
    for index in indexes if "analysis" in settings else ():
        _check_components({**index.settings, **settings}, state)


def _check_settings(given: Mapping[str, Any], state: CatalogState) -> None:
    settings = read_settings(given)
    check_new_values(settings)
    _check_components({name: value for name, value in settings.items() if value is not None}, state)


def _check_components(settings: Mapping[str, Any], state: CatalogState) -> None:
    analyzers_of(with_sets(settings, state)).components.check_all()


def _check_aliases(aliases: Mapping[str, Any]) -> None:
    for name, options in aliases.items():
        given = options.get("index_routing") or options.get("routing") or ""
        if "," in str(given):
            raise illegal_argument(f"alias [{name}] has several index routing values associated with it")


# Templates.


def _check_index_template(state: CatalogState, command: PutIndexTemplate) -> None:
    body = command.body
    _check_patterns(command.name, body["index_patterns"])
    _check_members("index_template", body)
    template = _checked_contents("index_template", body)
    made = contents(state, {"composed_of": body.get("composed_of") or [], "template": template})
    try:
        check_new_mapping(made.mappings)
    except SearchError as error:
        raise _invalid_composition(command.name, error) from None
    kind = (made.mappings.get("properties") or {}).get(TIMESTAMP, {}).get("type", "date")
    if body.get("data_stream") is not None and kind not in _TIMESTAMP_TYPES:
        listed = ",".join(_TIMESTAMP_TYPES)
        reason = f"data stream timestamp field [{TIMESTAMP}] is of type [{kind}], but [{listed}] is expected"
        cause = illegal_argument(f"invalid composite mappings for [{command.name}]", illegal_argument(reason))
        raise _invalid_composition(command.name, cause)


def _check_component(_state: CatalogState, command: PutComponentTemplate) -> None:
    _check_members("component_template", command.body)
    template = _checked_contents("component_template", command.body)
    check_new_mapping(template.get("mappings") or {})


def _check_legacy(_state: CatalogState, command: PutLegacyTemplate) -> None:
    _check_patterns(command.name, command.body["index_patterns"])
    check_new_mapping(command.body.get("mappings") or {})


def _invalid_composition(name: str, cause: SearchError) -> SearchError:
    return illegal_argument(f"composable template [{name}] template after composition is invalid", cause)


def _check_patterns(name: str, given: Any) -> None:
    problems = []
    for pattern in [given] if isinstance(given, str) else given:
        if " " in pattern:
            problems.append(f"index_patterns [{pattern[:200]}] must not contain a space")
        if "," in pattern:
            problems.append(f"index_pattern [{pattern[:200]}] must not contain a ','")
        if "#" in pattern:
            problems.append(f"index_pattern [{pattern[:200]}] must not contain a '#'")
        if ":" in pattern:
            problems.append(f"index_pattern [{pattern[:200]}] must not contain a ':'")
        if any(char in pattern for char in FORBIDDEN if char != "*"):
            listed = ",".join(f"'{char}'" for char in FORBIDDEN)
            problems.append(
                f"index_pattern [{pattern[:200]}] must not contain the following characters [{listed}]"
            )
    if problems:
        listed = "".join(f"{number}: {one};" for number, one in enumerate(problems, 1))
        reason = f"index_template [{name}] invalid, cause [Validation Failed: {listed}]"
        raise SearchError("invalid_index_template_exception", reason)


def _check_members(kind: str, body: Mapping[str, Any]) -> None:
    for name, is_right in (
        ("version", _is_whole),
        ("_meta", lambda value: isinstance(value, Mapping)),
        ("allow_auto_create", _is_flag),
        ("deprecated", _is_flag),
    ):
        if body.get(name) is not None and not is_right(body[name]):
            raise _unread(kind, name)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool) or value in ("true", "false")


def _checked_contents(kind: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
    """The member `template`."""
    template: Mapping[str, Any] = body.get("template") or {}
    for name in ("settings", "mappings", "lifecycle"):
        if name in template and template[name] is None:
            raise _unread(kind, "template", _unread("template", name))
    lifecycle = template.get("lifecycle") or {}
    if "downsampling" in lifecycle and lifecycle["downsampling"] is not None:
        reason = "[downsampling] of the lifecycle of a data stream is not supported"
        raise _unread(kind, "template", illegal_argument(reason))
    check_new_values(read_settings(template.get("settings") or {}))
    for name in template.get("aliases") or {}:
        check_alias_name(name)
    _check_aliases(template.get("aliases") or {})
    return template


def _unread(kind: str, name: str, cause: SearchError | None = None) -> SearchError:
    return SearchError(
        "x_content_parse_exception", f"[{kind}] failed to parse field [{name}]", 400, None, cause
    )


_CHECKS: Mapping[type[Any], Callable[[CatalogState, Any], None]] = {
    CreateIndex: _check_index,
    PutMapping: _check_mapping,
    PutSettings: _check_update,
    PutIndexTemplate: _check_index_template,
    PutComponentTemplate: _check_component,
    PutLegacyTemplate: _check_legacy,
}
