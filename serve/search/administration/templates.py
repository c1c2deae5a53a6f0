"""Templates: what indexes get when they are made, by their names."""

from collections.abc import Callable, Mapping, Sequence
from secrets import token_hex
from typing import Any

from graphdb.config import Settings
from graphdb.search.catalog.catalog_commands import (
    DeleteComponentTemplates,
    DeleteIndexTemplates,
    DeleteLegacyTemplates,
    PutComponentTemplate,
    PutIndexTemplate,
    PutLegacyTemplate,
)
from graphdb.search.catalog.index_settings import flat_settings, nested_settings, read_settings
from graphdb.search.catalog.index_templates import (
    component_missing,
    contents,
    index_template,
    index_template_missing,
    overlap,
    template_for,
)
from graphdb.search.catalog.state import CatalogState
from graphdb.search.errors import SearchError, illegal_argument
from graphdb.search.mapping.wildcards import wildcard_match
from serve.search.administration.indices import perform_definition
from serve.search.backend import SearchBackend
from serve.search.frame.answer import Answer
from serve.search.frame.exchange import Body, Endpoint, Exchange, endpoint

__all__ = ["routes"]

_GET = "flat_settings include_defaults local master_timeout settings_filter"
_PUT = "cause create master_timeout timeout"
_DELETE = "master_timeout timeout"
_SIMULATE = "cause create include_defaults master_timeout"


def routes(_node: SearchBackend, _settings: Settings) -> list[Endpoint]:
    index, component, legacy = "/_index_template", "/_component_template", "/_template"
    return [
        *endpoint("GET", index, _index_templates, _GET),
        *endpoint("GET HEAD", f"{index}/{{name}}", _index_templates, _GET),
        *endpoint("PUT POST", f"{index}/{{name}}", _put_index_template, _PUT, Body.JSON),
        *endpoint("DELETE", f"{index}/{{name}}", _delete_index_templates, _DELETE),
        *endpoint("POST", f"{index}/_simulate_index/{{name}}", _simulate_index, _SIMULATE, Body.JSON),
        *endpoint("POST", f"{index}/_simulate", _simulate, _SIMULATE, Body.JSON),
        *endpoint("POST", f"{index}/_simulate/{{name}}", _simulate, _SIMULATE, Body.JSON),
        *endpoint("GET", component, _components, _GET),
        *endpoint("GET HEAD", f"{component}/{{name}}", _components, _GET),
        *endpoint("PUT POST", f"{component}/{{name}}", _put_component, _PUT, Body.JSON),
        *endpoint("DELETE", f"{component}/{{name}}", _delete_components, _DELETE),
        *endpoint("GET", legacy, _legacy_templates, _GET),
        *endpoint("GET HEAD", f"{legacy}/{{name}}", _legacy_templates, _GET),
        *endpoint("PUT POST", f"{legacy}/{{name}}", _put_legacy_template, _PUT + " order", Body.JSON),
        *endpoint("DELETE", f"{legacy}/{{name}}", _delete_legacy_templates, _DELETE),
    ]


async def _index_templates(exchange: Exchange) -> Answer:
    return _listed(exchange, exchange.node.catalog.templates, "index_template")


async def _components(exchange: Exchange) -> Answer:
    return _listed(exchange, exchange.node.catalog.components, "component_template")


def _listed(exchange: Exchange, templates: Mapping[str, Any], kind: str) -> Answer:
    """By name or pattern; 404 where nothing fits. Errors: resource_not_found_exception for a name that is
    not there.
    """
    name = exchange.get("name")
    if name is not None and "*" not in name and name not in templates:
        reason = f"{kind.replace('_', ' ')} matching [{name}] not found"
        raise SearchError("resource_not_found_exception", reason, 404)
    is_flat = exchange.parameters.boolean("flat_settings", False)
    found = [one for one in sorted(templates) if wildcard_match(name or "*", one)]
    shown = [{"name": one, kind: _shown(templates[one], is_flat)} for one in found]
    return Answer({f"{kind}s": shown}, 404 if name is not None and not found else 200)


_ORDER = ("index_patterns", "template", "composed_of", "priority", "version", "_meta", "data_stream")
_STREAM = {"hidden": False, "allow_custom_routing": False}


def _shown(template: Mapping[str, Any], is_flat: bool) -> Mapping[str, Any]:
    """In Elasticsearch's order, with what holds of data streams where it is not said."""
    shown = {name: template[name] for name in _ORDER if name in template} | dict(template)
    if isinstance(shown.get("data_stream"), Mapping):
        shown["data_stream"] = _STREAM | {
            name: value for name, value in shown["data_stream"].items() if name in _STREAM
        }
    made = {name: one for name, one in (template.get("template") or {}).items() if name != "mappings" or one}
    if "template" in shown:
        shown["template"] = {**made, "settings": _flat(made)} if is_flat and "settings" in made else made
    return shown


async def _legacy_templates(exchange: Exchange) -> Answer:
    """By names and patterns between commas; 404 where some are given and nothing fits."""
    patterns = (exchange.get("name") or "*").split(",")
    is_flat = exchange.parameters.boolean("flat_settings", False)
    shown = {}
    for name, template in sorted(exchange.node.catalog.legacy_templates.items()):
        if any(wildcard_match(pattern, name) for pattern in patterns):
            shown[name] = {**template, "settings": _flat(template)} if is_flat else template
    is_missing = not shown and exchange.get("name") is not None
    return Answer(shown, 404 if is_missing else 200)


def _flat(template: Mapping[str, Any]) -> dict[str, Any]:
    return flat_settings(read_settings(template["settings"]))


async def _put_index_template(exchange: Exchange) -> dict[str, Any]:
    body, create = await _template(exchange)
    await perform_definition(exchange, PutIndexTemplate(exchange["name"], body, create))
    return {"acknowledged": True}


async def _put_component(exchange: Exchange) -> dict[str, Any]:
    body, create = await _template(exchange)
    await perform_definition(exchange, PutComponentTemplate(exchange["name"], body, create))
    return {"acknowledged": True}


async def _put_legacy_template(exchange: Exchange) -> dict[str, Any]:
    """`order` may be a parameter too."""
    body, create = await _template(exchange)
    if exchange.parameters.text("order") is not None:
        body = {**body, "order": exchange.parameters.integer("order", 0)}
    await perform_definition(exchange, PutLegacyTemplate(exchange["name"], body, create))
    return {"acknowledged": True}


async def _delete_legacy_templates(exchange: Exchange) -> dict[str, Any]:
    names = _names(exchange, exchange.node.catalog.legacy_templates, index_template_missing)
    await exchange.node.perform(DeleteLegacyTemplates(names))
    return {"acknowledged": True}


async def _delete_index_templates(exchange: Exchange) -> dict[str, Any]:
    names = _names(exchange, exchange.node.catalog.templates, index_template_missing)
    await exchange.node.perform(DeleteIndexTemplates(names))
    return {"acknowledged": True}


async def _delete_components(exchange: Exchange) -> dict[str, Any]:
    names = _names(exchange, exchange.node.catalog.components, component_missing)
    await exchange.node.perform(DeleteComponentTemplates(names))
    return {"acknowledged": True}


# What would be made, without anything being made.


async def _simulate_index(exchange: Exchange) -> dict[str, Any]:
    """What an index of this name would get; with a body, if that were a template too. One without patterns is
    for no index.
    """
    body, state = await exchange.json(), exchange.node.catalog.state
    if body is not None and "index_patterns" in body:
        name = f"simulate_index_template_{token_hex(11)}"
        state = index_template(state, PutIndexTemplate(name, body))
    fitting = template_for(state, exchange["name"])
    if fitting is None:
        return {}
    return _simulated(state, fitting, [exchange["name"]])


async def _simulate(exchange: Exchange) -> dict[str, Any]:
    """What a template that is there makes, or the one of the body, which may stand in its place."""
    body, state, name = await exchange.json(), exchange.node.catalog.state, exchange.get("name")
    if body is not None:
        state = index_template(state, PutIndexTemplate(name or _SIMULATED, body))
    elif name is None:
        reason = "either index name or index template body must be specified for simulation"
        raise SearchError("action_request_validation_exception", f"Validation Failed: 1: {reason};")
    elif name not in state.templates:
        raise illegal_argument(f"unable to simulate template [{name}] that does not exist")
    name = name or _SIMULATED
    return _simulated(state, name, state.templates[name]["index_patterns"])


_SIMULATED = "simulate_template"


def _simulated(state: CatalogState, name: str, patterns: Sequence[str]) -> dict[str, Any]:
    """overlapping: other templates for such names, of the old kind or of lower priority."""
    made = contents(state, state.templates[name])
    settings = {key: value for key, value in made.settings.items() if value is not None}
    composable = ((other, one) for other, one in sorted(state.templates.items()) if other != name)
    others = [
        {"name": other, "index_patterns": template["index_patterns"]}
        for other, template in [*sorted(state.legacy_templates.items()), *composable]
        if any(overlap(one, two) for one in patterns for two in template["index_patterns"])
    ]
    shown = {
        "settings": nested_settings(settings),
        "mappings": made.mappings,
        "aliases": made.aliases,
    }
    return {"template": shown, "overlapping": others}


async def _template(exchange: Exchange) -> tuple[dict[str, Any], bool]:
    body = await exchange.json()
    if body is None:
        raise SearchError("parse_exception", "request body is required")
    return _read(body), exchange.parameters.boolean("create", False)


def _read(body: dict[str, Any]) -> dict[str, Any]:
    """With numbers that are texts as numbers, and mappings without the name of the one type."""
    read = {name: _whole(value) if name in ("priority", "order") else value for name, value in body.items()}
    for within in (read, read.get("template")):
        mappings = within.get("mappings") if isinstance(within, Mapping) else None
        if isinstance(mappings, Mapping) and mappings.keys() == {"_doc"}:
            changed = {**(within or {}), "mappings": mappings["_doc"]}
            read = changed if within is read else {**read, "template": changed}
    return read


def _whole(value: Any) -> Any:
    if isinstance(value, str) and value.lstrip("-").isdigit():
        return int(value[:20])
    return int(value) if isinstance(value, float) else value


def _names(
    exchange: Exchange, templates: Mapping[str, Any], missing: Callable[[str], SearchError]
) -> tuple[str, ...]:
    """Patterns become the names that fit. Raises what missing makes of one that fits none, but for `*`."""
    names: dict[str, None] = {}
    for part in exchange["name"].split(","):
        names |= dict.fromkeys(
            [part] if "*" not in part else [name for name in sorted(templates) if wildcard_match(part, name)]
        )
    if not names and exchange["name"] != "*":
        raise missing(exchange["name"])
    return tuple(names)
