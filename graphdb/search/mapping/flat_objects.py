"""Objects with `subobjects: false`: all that is in them is a leaf of theirs, whose name may have dots.

So `time` and `time.max` can both be fields. In a definition the members of such an object are fields only;
the objects that are given in it are taken apart. Documents may have them as objects, or with dots.

Source: Elasticsearch's reference, "subobjects"; the errors as Elasticsearch 8.19 words them.
"""

from collections.abc import Iterator
from typing import Any

from graphdb.search.errors import illegal_argument
from graphdb.search.mapping.types import OBJECT_TYPES

__all__ = ["flattened", "has_objects", "is_flat", "no_nested"]

_Definition = dict[str, Any]


def is_flat(definition: _Definition) -> bool:
    """Whether an object has no objects in it."""
    return definition.get("subobjects", True) is False


def flattened(update: _Definition, existing: _Definition, dynamic: str = "true") -> _Definition:
    """update, an object in normal form, with leaves where it, or what is there already, has no objects.

    dynamic is what holds around it. Errors: illegal_argument_exception for an object that cannot be taken
    apart.
    """
    dynamic = str(update.get("dynamic", existing.get("dynamic", dynamic)))
    flat = is_flat(update) or is_flat(existing)
    properties: _Definition = {}
    for name, node in update["properties"].items():
        if node["type"] not in OBJECT_TYPES:
            properties[name] = node
        elif flat:
            if name in existing.get("properties", {}):
                raise illegal_argument(f"can't merge a non object mapping [{name}] with an object mapping")
            properties |= dict(_leaves(node, name, name, dynamic))
        else:
            there = existing.get("properties", {}).get(name, {})
            properties[name] = flattened(node, there, dynamic)
    return update | {"properties": dict(sorted(properties.items())) if flat else properties}


def _leaves(node: _Definition, name: str, path: str, dynamic: str) -> Iterator[tuple[str, _Definition]]:
    """Those of an object, each by its path within the object that is flat."""
    if (own := node.get("dynamic", dynamic)) != dynamic:
        raise _refused(
            name,
            f"[dynamic] ({own.upper()}) is not compatible with the value from its parent context "
            f"({dynamic.upper()})",
        )
    if not node.get("enabled", True):
        raise _refused(name, "[enabled] is [false]")
    if node.get("subobjects") is True:
        raise _refused(name, "[subobjects] is [true]")
    for inner, member in node["properties"].items():
        if member["type"] in OBJECT_TYPES:
            yield from _leaves(member, inner, f"{path}.{inner}", dynamic)
        else:
            yield f"{path}.{inner}", member


def _refused(name: str, value: str) -> Exception:
    return illegal_argument(
        f"Object mapper [{name}] was found in a context where subobjects is set to false. Auto-flattening "
        f"[{name}] failed because the value of {value}"
    )


def no_nested(name: str, path: str) -> str:
    """Why an object with a path, that has no objects, has no nested ones."""
    return f"Tried to add nested object [{name}] to object [{path}] which does not support subobjects"


def has_objects(value: Any) -> bool:
    """Whether a member of a document is an object, or an array with some in it."""
    if isinstance(value, list):
        return any(map(has_objects, value))
    return isinstance(value, dict)
