"""Templates: what an index gets, by its name, unless the request that makes it says otherwise.

Composable ones, of which one counts; and those of the old kind: where no composable one fits, all of them
that fit are laid over one another.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from graphdb.search.catalog.aliases import alias_options
from graphdb.search.catalog.catalog_commands import PutComponentTemplate, PutIndexTemplate, PutLegacyTemplate
from graphdb.search.catalog.index_names import check_template_name
from graphdb.search.catalog.index_settings import check_new_settings, nested_settings, read_settings
from graphdb.search.catalog.state import CatalogState
from graphdb.search.catalog.stream_retention import checked_stream_lifecycle
from graphdb.search.errors import SearchError, illegal_argument
from graphdb.search.mapping.wildcards import wildcard_match

__all__ = [
    "Contents",
    "component_missing",
    "component_template",
    "contents",
    "index_template",
    "index_template_missing",
    "legacy_contents",
    "legacy_template",
    "lifecycle_of",
    "overlap",
    "settings_of_new",
    "template_for",
    "without_components",
    "without_legacy_templates",
    "without_templates",
]

_TEMPLATES_MAX = 1000
_PATTERNS_MAX = 1000
_COMPONENT_MEMBERS = {"template", "version", "_meta", "deprecated"}
_LEGACY_MEMBERS = {"aliases", "index_patterns", "mappings", "order", "settings", "version"}
_INDEX_MEMBERS = _COMPONENT_MEMBERS | {
    "allow_auto_create",
    "composed_of",
    "data_stream",
    "ignore_missing_component_templates",
    "index_patterns",
    "priority",
}


@dataclass(frozen=True, slots=True)
class Contents:
    """What an index is made of: settings and aliases in normal form, mappings as they are given."""

    settings: Mapping[str, Any] = field(default_factory=dict)
    mappings: Mapping[str, Any] = field(default_factory=dict)
    aliases: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> "Contents":
        """Errors: illegal_argument_exception, validation_exception, mapper_parsing_exception."""
        settings = read_settings(body.get("settings") or {})
        check_new_settings(settings)
        mappings, aliases = body.get("mappings") or {}, body.get("aliases") or {}
        if not isinstance(mappings, Mapping) or not isinstance(aliases, Mapping):
            raise SearchError("parse_exception", "[mappings] and [aliases] must be objects")
        return cls(settings, mappings, {name: alias_options(name, one) for name, one in aliases.items()})

    def with_over(self, upper: "Contents") -> "Contents":
        """What the upper one says counts."""
        return Contents(
            {**self.settings, **upper.settings},
            _merged_mappings(self.mappings, upper.mappings),
            {**self.aliases, **upper.aliases},
        )


def _merged_mappings(lower: Mapping[str, Any], upper: Mapping[str, Any]) -> dict[str, Any]:
    """Objects are merged; a field that both have is the upper one's, with all that it says."""
    merged = {**lower, **upper}
    if isinstance(lower.get("properties"), Mapping) and isinstance(upper.get("properties"), Mapping):
        properties = dict(lower["properties"])
        for name, node in upper["properties"].items():
            there = properties.get(name)
            both = isinstance(there, Mapping) and isinstance(node, Mapping)
            is_object = both and "properties" in node and "properties" in (there or {})
            properties[name] = _merged_mappings(there or {}, node) if is_object else node
        merged["properties"] = properties
    first, second = lower.get("dynamic_templates"), upper.get("dynamic_templates")
    if isinstance(first, list) and isinstance(second, list):
        names = [next(iter(one), None) for one in second if isinstance(one, Mapping)]
        kept = [one for one in first if isinstance(one, Mapping) and next(iter(one), None) not in names]
        merged["dynamic_templates"] = [*kept, *second]
    return merged


def index_template(state: CatalogState, command: PutIndexTemplate) -> CatalogState:
    """With the template put in. Errors: invalid_index_template_exception, illegal_argument_exception,
    x_content_parse_exception.
    """
    _check(command, state.templates, "index_template", _INDEX_MEMBERS)
    body = dict(command.body)
    body["index_patterns"] = _patterns(command.name, body.get("index_patterns"))
    body["composed_of"] = _texts(body.get("composed_of") or [], "composed_of")
    _priority(body)
    _check_stream_options(body.get("data_stream", {}))
    try:
        body.update(_shown_template(body))
    except SearchError as error:
        raise (
            _invalid(command.name, error.reason) if error.kind == "illegal_argument_exception" else error
        ) from None
    tolerated = set(_texts(body.get("ignore_missing_component_templates") or [], "ignore_missing"))
    missing = [name for name in body["composed_of"] if name not in state.components and name not in tolerated]
    if missing:
        listed = f"specifies component templates {_listed(missing)} that do not exist"
        reason = f"index_template [{command.name}] invalid, cause [index template [{command.name}] {listed}]"
        raise SearchError("invalid_index_template_exception", reason)
    if "data_stream" not in body and (body.get("template") or {}).get("lifecycle") is not None:
        raise illegal_argument(
            f"index template [{command.name}] specifies lifecycle configuration that can only be used in "
            "combination with a data stream"
        )
    _check_overlap(state, command.name, body)
    return replace(state, templates={**state.templates, command.name: body})


def component_template(state: CatalogState, command: PutComponentTemplate) -> CatalogState:
    """With the template put in. Errors: as of `index_template`."""
    _check(command, state.components, "component_template", _COMPONENT_MEMBERS)
    if not isinstance(command.body.get("template"), Mapping):
        raise SearchError("illegal_argument_exception", "Required [template]")
    body = {**command.body, **_shown_template(command.body, "component_template")}
    return replace(state, components={**state.components, command.name: body})


def _check(
    command: PutIndexTemplate | PutComponentTemplate,
    there: Mapping[str, Any],
    kind: str,
    members: Iterable[str],
) -> None:
    check_template_name(command.name)
    if command.create and command.name in there:
        what = "index template" if kind == "index_template" else "component template"
        raise illegal_argument(f"{what} [{command.name}] already exists")
    if len(there) >= _TEMPLATES_MAX and command.name not in there:
        raise illegal_argument(f"there cannot be more than [{_TEMPLATES_MAX}] templates")
    for name in command.body:
        if name not in members:
            raise SearchError("x_content_parse_exception", f"[{kind}] unknown field [{name}]")


def _shown_template(body: Mapping[str, Any], kind: str = "index_template") -> dict[str, Any]:
    """The member `template` with its settings and aliases in the form that is shown."""
    template = body.get("template")
    if template is None:
        return {}
    if not isinstance(template, Mapping):
        raise SearchError("x_content_parse_exception", "[template] must be an object")
    for name in template:
        if name not in ("settings", "mappings", "aliases", "lifecycle"):
            cause = SearchError("x_content_parse_exception", f"[template] unknown field [{name}]")
            reason = f"[{kind}] failed to parse field [template]"
            raise SearchError("x_content_parse_exception", reason, 400, None, cause)
    read = Contents.of(template)
    shown = dict(template)
    if "settings" in shown:
        shown["settings"] = nested_settings(read.settings)
    if "aliases" in shown:
        shown["aliases"] = read.aliases
    if template.get("lifecycle") is not None:
        shown["lifecycle"] = checked_stream_lifecycle(template["lifecycle"])
    return {"template": shown}


def _patterns(name: str, given: Any) -> list[str]:
    if given is None:
        raise illegal_argument("Required [index_patterns]")
    patterns = [given] if isinstance(given, str) else given
    if patterns == []:
        raise illegal_argument("There must be at least one pattern, zero given")
    if not isinstance(patterns, list) or not all(isinstance(one, str) and one for one in patterns):
        raise _invalid(name, "index patterns are missing")
    if len(patterns) > _PATTERNS_MAX or sum(map(len, patterns)) > 100_000:
        raise _invalid(name, "there are too many index patterns")
    for pattern in patterns:
        if pattern.startswith("_"):
            raise _invalid(name, f"index_pattern [{pattern[:200]}] must not start with '_'")
    return patterns


def _texts(given: Any, name: str) -> list[str]:
    if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
        raise SearchError("x_content_parse_exception", f"[{name}] must be a list of texts")
    return given


def _priority(template: Mapping[str, Any]) -> int:
    value = template.get("priority")
    if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        raise SearchError("x_content_parse_exception", "[index_template] failed to parse field [priority]")
    if value is not None and value < 0:
        reason = "Validation Failed: 1: index template priority must be >= 0;"
        raise SearchError("action_request_validation_exception", reason)
    return value or 0


def _check_stream_options(given: Any) -> None:
    """Of the data streams that a template makes. Errors: x_content_parse_exception."""
    if not isinstance(given, Mapping):
        raise SearchError("x_content_parse_exception", "[data_stream] must be an object")
    for name, value in given.items():
        if name not in ("hidden", "allow_custom_routing", "failure_store") or not isinstance(value, bool):
            raise SearchError("x_content_parse_exception", f"[data_stream] failed to parse [{name[:100]}]")


def _check_overlap(state: CatalogState, name: str, body: Mapping[str, Any]) -> None:
    """Two templates of the same priority may not be for the same name."""
    for other, template in sorted(state.templates.items()):
        if other == name or _priority(template) != _priority(body):
            continue
        if any(overlap(a, b) for a in body["index_patterns"] for b in template["index_patterns"]):
            raise illegal_argument(
                f"index template [{name}] has index patterns {_listed(body['index_patterns'])} matching "
                f"patterns from existing templates [{other}] with patterns ({other} => "
                f"{_listed(template['index_patterns'])}) that have the same priority [{_priority(body)}], "
                "multiple index templates may not match during index creation, please use a different "
                "priority"
            )


def overlap(first: str, second: str) -> bool:
    """Whether a name may fit both patterns, as far as their beginnings and ends tell."""
    if "*" not in first or "*" not in second:
        return wildcard_match(first, second) or wildcard_match(second, first)
    heads = first.partition("*")[0], second.partition("*")[0]
    tails = first.rpartition("*")[2], second.rpartition("*")[2]
    return (heads[0].startswith(heads[1]) or heads[1].startswith(heads[0])) and (
        tails[0].endswith(tails[1]) or tails[1].endswith(tails[0])
    )


def template_for(state: CatalogState, name: str) -> str | None:
    """The template that an index of this name gets: the one of the highest priority that fits."""
    fitting = [
        (-_priority(template), key)
        for key, template in state.templates.items()
        if any(wildcard_match(pattern, name) for pattern in template["index_patterns"])
    ]
    return min(fitting)[1] if fitting else None


def contents(state: CatalogState, template: Mapping[str, Any]) -> Contents:
    """A template composed: its components in their order, then what it says itself."""
    made = Contents()
    for name in template["composed_of"]:
        component = state.components.get(name)
        if component is not None:
            made = made.with_over(Contents.of(component["template"]))
    return made.with_over(Contents.of(template.get("template") or {}))


def lifecycle_of(state: CatalogState, name: str) -> dict[str, Any] | None:
    """Of the data streams that the template makes: what it says counts, then what its last component says."""
    template = state.templates[name]
    parts = [state.components.get(one, {}).get("template") for one in template["composed_of"]]
    every = [(part or {}).get("lifecycle") for part in [*parts, template.get("template")]]
    given = [one for one in every if one is not None]
    return {key: value for one in given for key, value in one.items()} if given else None


def index_template_missing(names: str) -> SearchError:
    """One that is to be deleted and is not there, of the old kind too; a pattern likewise."""
    return SearchError("index_template_missing_exception", f"index_template [{names}] missing", 404)


def component_missing(names: str) -> SearchError:
    """The same of a component template."""
    return SearchError("resource_not_found_exception", names, 404)


def without_templates(state: CatalogState, names: Iterable[str]) -> CatalogState:
    """Errors: index_template_missing_exception."""
    gone = set(names)
    missing = sorted(gone - state.templates.keys())
    if missing:
        raise index_template_missing(",".join(missing))
    used = sorted(name for name, stream in state.data_streams.items() if stream["template"] in gone)
    if used:
        raise illegal_argument(
            f"unable to remove composable templates {_listed(sorted(gone))} as they are in use by a data "
            f"streams {_listed(used)}"
        )
    return replace(
        state, templates={name: body for name, body in state.templates.items() if name not in gone}
    )


def without_components(state: CatalogState, names: Iterable[str]) -> CatalogState:
    """Errors: resource_not_found_exception, illegal_argument_exception (still in use)."""
    gone = set(names)
    missing = sorted(gone - state.components.keys())
    if missing:
        raise component_missing(",".join(missing))
    users = sorted(name for name, body in state.templates.items() if gone & set(body["composed_of"]))
    if users:
        used = sorted(gone & {name for user in users for name in state.templates[user]["composed_of"]})
        raise illegal_argument(
            f"component templates {_listed(used)} cannot be removed as they are still in use by index "
            f"templates {_listed(users)}"
        )
    return replace(
        state, components={name: body for name, body in state.components.items() if name not in gone}
    )


def legacy_template(state: CatalogState, command: PutLegacyTemplate) -> CatalogState:
    """With the template put in. Errors: as of `index_template`; action_request_validation_exception."""
    there = state.legacy_templates
    check_template_name(command.name)
    if command.create and command.name in there:
        raise illegal_argument(f"index_template [{command.name}] already exists")
    if len(there) >= _TEMPLATES_MAX and command.name not in there:
        raise illegal_argument(f"there cannot be more than [{_TEMPLATES_MAX}] templates")
    for name in command.body:
        if name not in _LEGACY_MEMBERS:
            raise SearchError("parse_exception", f"unknown key [{name}] in the template ")
    if not command.body.get("index_patterns"):
        reason = "Validation Failed: 1: index patterns are missing;"
        raise SearchError("action_request_validation_exception", reason)
    order, version = command.body.get("order"), command.body.get("version")
    for key, value in (("order", order), ("version", version)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
            raise illegal_argument(f"[{key}] of a template must be an integer")
    read = Contents.of(command.body)
    body = {
        "order": order or 0,
        **({} if version is None else {"version": version}),
        "index_patterns": _patterns(command.name, command.body["index_patterns"]),
        "settings": nested_settings(read.settings),
        "mappings": read.mappings,
        "aliases": read.aliases,
    }
    return replace(state, legacy_templates={**there, command.name: body})


def legacy_contents(state: CatalogState, name: str) -> Contents:
    """Of all templates of the old kind for an index of this name, the one of the highest order on top."""
    fitting = sorted(
        (template["order"], key)
        for key, template in state.legacy_templates.items()
        if any(wildcard_match(pattern, name) for pattern in template["index_patterns"])
    )
    made = Contents()
    for _, key in fitting:
        made = made.with_over(Contents.of(state.legacy_templates[key]))
    return made


def settings_of_new(state: CatalogState, name: str) -> Mapping[str, Any]:
    """In normal form, of an index that a document would make. Errors: as of `Contents.of`."""
    fitting = template_for(state, name)
    made = legacy_contents(state, name) if fitting is None else contents(state, state.templates[fitting])
    return made.settings


def without_legacy_templates(state: CatalogState, names: Iterable[str]) -> CatalogState:
    """Errors: index_template_missing_exception."""
    gone = set(names)
    missing = sorted(gone - state.legacy_templates.keys())
    if missing:
        raise index_template_missing(",".join(missing))
    kept = {name: body for name, body in state.legacy_templates.items() if name not in gone}
    return replace(state, legacy_templates=kept)


def _listed(names: Iterable[str]) -> str:
    return f"[{', '.join(names)}]"


def _invalid(name: str, cause: str) -> SearchError:
    reason = f"index_template [{name}] invalid, cause [Validation Failed: 1: {cause};]"
    return SearchError("invalid_index_template_exception", reason)
