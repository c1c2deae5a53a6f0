"""Two mappings in normal form into one, or the error that says why not.

An update that names a field replaces all its parameters: those that it leaves out go back to their default,
and where that default cannot be set any more, it is a conflict. Errors: illegal_argument_exception.
"""

from typing import Any

from graphdb.search.errors import illegal_argument
from graphdb.search.mapping.definition import Definition
from graphdb.search.mapping.types import FIELD_TYPES, OBJECT_TYPES, Parameter
from graphdb.search.mapping.vectors import shown_vector

__all__ = ["merged_definitions"]


def merged_definitions(existing: Definition, update: Definition) -> Definition:
    """The root of both; neither is changed."""
    root = existing | {name: value for name, value in update.items() if name != "properties"}
    if "dynamic_templates" in existing and "dynamic_templates" in update:
        root["dynamic_templates"] = _templates(existing["dynamic_templates"], update["dynamic_templates"])
    root["properties"] = _properties(existing["properties"], update["properties"], "")
    return root


def _templates(existing: list[Definition], update: list[Definition]) -> list[Definition]:
    """By name: the new one stands in the place of the old, others follow."""
    by_name = {next(iter(entry)): entry for entry in existing}
    by_name.update({next(iter(entry)): entry for entry in update})
    return list(by_name.values())


def _properties(existing: Definition, update: Definition, path: str) -> Definition:
    properties = dict(existing)
    for name, node in update.items():
        there = existing.get(name)
        properties[name] = node if there is None else _node(there, node, f"{path}{name}")
    return dict(sorted(properties.items()))


def _node(existing: Definition, update: Definition, path: str) -> Definition:
    is_object, becomes_object = existing["type"] in OBJECT_TYPES, update["type"] in OBJECT_TYPES
    if is_object != becomes_object:
        raise illegal_argument(f"can't merge a non object mapping [{path}] with an object mapping")
    if is_object:
        return _object(existing, update, path)
    if existing["type"] == "alias" and update["type"] != "alias":
        raise illegal_argument(
            f"Cannot merge a field alias mapping [{path}] with a mapping that is not for a field alias."
        )
    if existing["type"] != update["type"]:
        raise illegal_argument(
            f"mapper [{path}] cannot be changed from type [{existing['type']}] to [{update['type']}]"
        )
    return update if update["type"] == "alias" else _field(existing, update, path)


def _object(existing: Definition, update: Definition, path: str) -> Definition:
    if existing["type"] != update["type"]:
        kinds = ("a nested", "a non-nested") if existing["type"] == "nested" else ("a non-nested", "a nested")
        raise illegal_argument(f"can't merge {kinds[0]} mapping [{path}] with {kinds[1]} mapping")
    if existing.get("enabled", True) and not update.get("enabled", True):
        raise illegal_argument(f"the [enabled] parameter can't be updated for the object mapping [{path}]")
    for name in ("include_in_parent", "include_in_root"):
        if update.get(name, existing.get(name)) != existing.get(name):
            raise illegal_argument(f"the [{name}] parameter can't be updated on a nested object mapping")
    properties = _properties(existing["properties"], update["properties"], f"{path}.")
    return existing | update | {"properties": properties}


def _field(existing: Definition, update: Definition, path: str) -> Definition:
    # A vector's field may say its defaults, as it is shown.
    said = shown_vector if existing["type"] == "dense_vector" else dict[str, Any]
    before, after = said(existing), said(update)
    conflicts = [
        f"Cannot update parameter [{name}] from [{_shown(name, old)}] to [{_shown(name, new)}]"
        for name, parameter in FIELD_TYPES[existing["type"]].parameters.items()
        if not _may_become(
            name,
            parameter,
            old := before.get(name, parameter.default),
            new := after.get(name, parameter.default),
        )
    ]
    if conflicts:
        raise illegal_argument(
            f"Mapper for [{path}] conflicts with existing mapper:\n\t" + "\n\t".join(conflicts)
        )
    fields = _properties(existing.get("fields", {}), update.get("fields", {}), f"{path}.")
    return update | {"fields": fields} if fields else update


def _may_become(name: str, parameter: Parameter, old: Any, new: Any) -> bool:
    return parameter.updatable or old == new or (name == "dims" and old is None)


def _shown(name: str, value: Any) -> str:
    if value is None:
        return "default" if name == "analyzer" else "null"
    return str(value).lower() if isinstance(value, bool) else str(value)
