"""`_cat` listings of templates."""

from collections.abc import Iterator, Mapping
from typing import Any

from graphdb.search.mapping.wildcards import wildcard_match
from serve.search.administration.cat_table import Column, Row
from serve.search.administration.cat_view import CatView, Listing

__all__ = ["listings"]


def listings() -> list[Listing]:
    return [
        Listing("templates", _TEMPLATES, _templates, "name"),
        Listing("component_templates", _COMPONENTS, _components, "name"),
    ]


_TEMPLATES = (
    Column("name", ("n",), "template name"),
    Column("index_patterns", ("t",), "template index patterns"),
    Column("order", ("o", "p"), "template application order/priority number"),
    Column("version", ("v",), "version"),
    Column("composed_of", ("c",), "component templates comprising index template"),
)
_COMPONENTS = (
    Column("name", ("n",), "component template name"),
    Column("version", ("v",), "component template version"),
    Column("alias_count", ("a",), "number of aliases in template", right=True),
    Column("mapping_count", ("m",), "number of mappings in template", right=True),
    Column("settings_count", ("s",), "number of settings in template", right=True),
    Column("metadata_count", ("me",), "number of metadata in template", right=True),
    Column("included_in", ("i",), "included in"),
)


def _templates(view: CatView) -> Iterator[Row]:
    for name, template in _named(view.node.catalog.templates, view.names):
        yield {
            "name": name,
            "index_patterns": f"[{', '.join(template['index_patterns'])}]",
            "order": template.get("priority", 0),
            "version": template.get("version"),
            "composed_of": f"[{', '.join(template.get('composed_of', []))}]",
        }


def _components(view: CatView) -> Iterator[Row]:
    templates = view.node.catalog.templates
    for name, component in _named(view.node.catalog.components, view.names):
        contents = component["template"]
        users = [user for user, template in templates.items() if name in template.get("composed_of", [])]
        yield {
            "name": name,
            "version": component.get("version"),
            "alias_count": len(contents.get("aliases", {})),
            "mapping_count": len(contents.get("mappings", {}).get("properties", {})),
            "settings_count": len(contents.get("settings", {}).get("index", {})),
            "metadata_count": len(component.get("_meta", {})),
            "included_in": f"[{', '.join(sorted(users))}]",
        }


def _named(templates: Mapping[str, Any], pattern: str | None) -> list[tuple[str, Any]]:
    return [(name, one) for name, one in sorted(templates.items()) if wildcard_match(pattern or "*", name)]
