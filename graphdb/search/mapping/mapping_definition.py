"""A mapping's JSON in its normal form, and how large it may grow.

In normal form it is checked, names with dots are expanded, and what only says a default is left out.

A field is `{"type": t, parameter: value ..., "fields": {...}}`, an object `{"type": "object" or "nested",
"properties": {...}, ...}`; everything else in this package reads this form.

Errors: mapper_parsing_exception, illegal_argument_exception.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from graphdb.search.errors import SearchError, illegal_argument, mapper_parsing
from graphdb.search.mapping.dates import date_format
from graphdb.search.mapping.dynamic_templates import checked_templates
from graphdb.search.mapping.flat_objects import flattened, is_flat, no_nested
from graphdb.search.mapping.runtime_fields import checked_runtime
from graphdb.search.mapping.types import FIELD_TYPES, INT_MAX, OBJECT_TYPES, SOURCE_KEEPS, FieldType, boolean
from graphdb.search.mapping.vectors import checked_vector

__all__ = [
    "SOURCE_MODES",
    "Definition",
    "MappingLimits",
    "normalised",
    "unparsable",
]

SOURCE_MODES = ("disabled", "stored", "synthetic")
"""What `_source` may say of how documents are kept, as may the setting `index.mapping.source.mode`."""

# How large a mapping may grow.


@dataclass(frozen=True, slots=True)
class MappingLimits:
    """The index settings `index.mapping.*`, with Elasticsearch's defaults."""

    total_fields: int = 1000  # fields, multi-fields, aliases and objects together
    depth: int = 20  # objects within objects; a field at the top is at depth 1
    nested_fields: int = 50  # paths of type nested
    nested_objects: int = 10_000  # nested objects in one document
    dimension_fields: int = 32_768  # with `time_series_dimension`
    field_name_length: int = 2**31 - 1  # UTF-16 units in the last part of a path, as Java counts
    ignores_malformed: bool = False  # by fields that do not say it themselves
    coerces: bool = True  # likewise
    ignore_above: int = INT_MAX  # of fields that do not say it themselves
    source_mode: str = "stored"  # of `_source` that does not say it itself: stored, synthetic, disabled
    ignores_beyond: bool = False  # new fields that total_fields has no room for: they are left out

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> "MappingLimits":
        """From settings.index.mapping (`{"total_fields": {"limit": 2000}, "ignore_malformed": "true"}`)."""
        given: dict[str, Any] = {
            "ignores_malformed": settings.get("ignore_malformed") in ("true", True),
            "coerces": settings.get("coerce") not in ("false", False),
        }
        if settings.get("ignore_above") is not None:
            given["ignore_above"] = _limit("ignore_above", settings["ignore_above"])
        if settings.get("source_mode") is not None:
            given["source_mode"] = mode = str(settings["source_mode"]).lower()
            if mode not in SOURCE_MODES:
                known = ", ".join(SOURCE_MODES)
                raise illegal_argument(
                    f"[index.mapping.source.mode] must be one of [{known}], got [{mode[:100]}]"
                )
        total = settings.get("total_fields")
        if isinstance(total, dict):
            given["ignores_beyond"] = total.get("ignore_dynamic_beyond_limit") in ("true", True)
        for name in cls.__dataclass_fields__:
            limit = settings.get(name, {}).get("limit") if isinstance(settings.get(name), dict) else None
            if limit is not None:
                given[name] = _limit(name, limit)
        return cls(**given)

    def exceeded(self, what: str, limit: int, because: str = "") -> SearchError:
        """The error of a limit that has been passed; what is the limit's name in words."""
        return illegal_argument(f"Limit of {what} [{limit}] has been exceeded{because}")


def _limit(name: str, value: Any) -> int:
    try:
        number = int(str(value)[:20])
    except ValueError:
        number = -1
    if number < 0:
        raise illegal_argument(
            f"Failed to parse value [{str(value)[:100]}] for setting [index.mapping.{name}.limit]"
        )
    return number


# The normal form.

Definition = dict[str, Any]

DEPTH_MAX = 100
"""Objects within objects that are read at all; the limit of the mapping is checked later."""

_OBJECT_PARAMETERS = {"type", "properties", "dynamic", "enabled", "subobjects"}
_KEEPS = {"synthetic_source_keep", "store_array_source"}
_NESTED_PARAMETERS = _OBJECT_PARAMETERS | {"include_in_parent", "include_in_root"}


def normalised(body: Mapping[str, Any]) -> Definition:
    """The root of a mapping."""
    root: Definition = {"type": "object"}
    if body.get("subobjects") is not None:
        root["subobjects"] = _subobjects(body["subobjects"])
    root["properties"] = _properties(body.get("properties") or {}, flat_in="_doc" if is_flat(root) else None)
    for name, value in body.items():
        if name in root:
            continue
        read = _ROOT.get(name)
        if read is None:
            raise mapper_parsing(
                f"Root mapping definition has unsupported parameters:  [{name[:100]} : {str(value)[:100]}]"
            )
        if value is not None and (kept := read(value)) is not None:
            root[name] = kept
    return flattened(root, {})


def unparsable(error: SearchError) -> SearchError:
    """The error of a request whose mapping cannot be read."""
    return mapper_parsing(f"Failed to parse mapping: {error.reason}", error)


def _properties(
    value: Any, path: str = "", depth: int = 1, flat_in: str | None = None
) -> dict[str, Definition]:
    """Sorted by name, as Elasticsearch shows them. flat_in: the path of the object that they are in, if names
    with dots are names of its own fields.
    """
    if depth > DEPTH_MAX:
        raise mapper_parsing(
            f"Limit of mapping depth [{DEPTH_MAX}] has been exceeded due to object field [{path[:200]}]"
        )
    if value == []:
        return {}
    if not isinstance(value, dict):
        raise mapper_parsing("Expected map for property [properties] on field but got something else")
    properties: dict[str, Definition] = {}
    for name, given in value.items():
        parts = _parts(name) if flat_in is None or not name.strip() else [name]
        full = f"{path}{name}"
        if not isinstance(given, dict):
            raise mapper_parsing(
                f"Expected map for property [fields] on field [{full}] but got [{str(given)[:100]}]"
            )
        node = _node(given, full, depth + len(parts))
        if flat_in is not None and node["type"] == "nested":
            raise mapper_parsing(no_nested(name, flat_in))
        _put(properties, parts, node, full)
    return dict(sorted(properties.items()))


def _parts(name: str) -> list[str]:
    parts = name.rstrip(".").split(".")  # as Java splits
    if not all(parts) or not name.strip():
        raise illegal_argument("field name cannot be an empty string")
    if len(parts) > DEPTH_MAX or not all(part.strip() for part in parts):
        raise mapper_parsing(f"field name cannot contain only whitespace: [{name[:200]}]")
    return parts


def _put(properties: dict[str, Definition], parts: list[str], node: Definition, full: str) -> None:
    """`a.b` stands for b in the object a, which may be there already."""
    *parents, last = parts
    for parent in parents:
        above = properties.setdefault(parent, {"type": "object", "properties": {}})
        if above["type"] not in OBJECT_TYPES:
            raise mapper_parsing(f"can't merge a non object mapping [{parent}] with an object mapping")
        properties = above["properties"]
    there = properties.get(last)
    if there is not None and there["type"] in OBJECT_TYPES and node["type"] in OBJECT_TYPES:
        properties[last] = there | node | {"properties": there["properties"] | node["properties"]}
    elif there is not None:
        raise mapper_parsing(f"Field [{full}] is defined more than once")
    else:
        properties[last] = node


_ABSENT = {
    "semantic_text": "no model runs here: store vectors of your own in a [dense_vector] or [sparse_vector]",
}
"""Types of Elasticsearch that are not there, with what helps instead."""


def _node(given: Mapping[str, Any], path: str, depth: int, multi: bool = False) -> Definition:
    type_name = given.get("type")
    if type_name is None:
        if not set(given) & (_NESTED_PARAMETERS - {"type"}):
            raise mapper_parsing(f"No type specified for field [{path.rpartition('.')[2]}]")
        type_name = "object"
    if type_name in OBJECT_TYPES:
        return _object(given, str(type_name), path, depth)
    if type_name == "alias":
        return _alias(given, path)
    kind = FIELD_TYPES.get(type_name) if isinstance(type_name, str) else None
    if kind is None:
        if isinstance(type_name, str) and type_name in _ABSENT:
            absent = f"The mapper type [{type_name}] declared on field [{path}] does not exist"
            raise mapper_parsing(f"{absent}: {_ABSENT[type_name]}")
        raise mapper_parsing(
            f"The mapper type [{str(type_name)[:100]}] declared on field [{path}] does not exist. It might "
            "have been created within a future version or requires a plugin to be installed. Check the "
            "documentation."
        )
    return _field(given, kind, path, multi)


def _object(given: Mapping[str, Any], type_name: str, path: str, depth: int) -> Definition:
    allowed = _NESTED_PARAMETERS if type_name == "nested" else _OBJECT_PARAMETERS
    for name in given:
        if name not in allowed | _KEEPS:
            raise mapper_parsing(
                f"Mapping definition for [{path.rpartition('.')[2]}] has unsupported parameters:  "
                f"[{name[:100]} : {str(given[name])[:100]}]"
            )
    node: Definition = {"type": type_name}
    if given.get("dynamic") is not None:
        node["dynamic"] = _dynamic(given["dynamic"])
    if "enabled" in given and not boolean(given["enabled"]):
        node["enabled"] = False
    if given.get("subobjects") is not None:
        if type_name == "nested":
            raise mapper_parsing(
                f"Nested type [{path.rpartition('.')[2]}] does not support [subobjects] parameter"
            )
        node["subobjects"] = _subobjects(given["subobjects"])
    for name in ("include_in_parent", "include_in_root"):
        if name in given and boolean(given[name]):
            node[name] = True
    if (keep := _source_keep(given)) is not None:
        node["synthetic_source_keep"] = keep
    flat_in = path if is_flat(node) else None
    node["properties"] = _properties(given.get("properties") or {}, f"{path}.", depth, flat_in)
    return node


def _source_keep(given: Mapping[str, Any]) -> str | None:
    """What synthetic source keeps of an object; `store_array_source` is its older name for arrays."""
    keep = given.get("synthetic_source_keep")
    if keep is None:
        return "arrays" if boolean(given.get("store_array_source", False)) else None
    if keep not in SOURCE_KEEPS:
        raise illegal_argument(
            f"Unknown synthetic_source_keep value [{str(keep)[:100]}], accepted values are "
            f"[{','.join(SOURCE_KEEPS)}]"
        )
    return str(keep)


def _alias(given: Mapping[str, Any], path: str) -> Definition:
    if not isinstance(given.get("path"), str):
        raise mapper_parsing(f"The [path] property must be specified for field [{path}].")
    if unknown := set(given) - {"type", "path"}:
        raise mapper_parsing(f"unknown parameter [{min(unknown)[:100]}] on mapper [{path}] of type [alias]")
    return {"type": "alias", "path": given["path"]}


def _field(given: Mapping[str, Any], kind: FieldType, path: str, multi: bool) -> Definition:
    name = path.rpartition(".")[2]
    node: Definition = {"type": kind.name}
    for parameter, value in given.items():
        if parameter == "type":
            continue
        if parameter == "fields":
            node["fields"] = _multi_fields(value, kind, path, multi)
        elif parameter == "copy_to":
            node["copy_to"] = _copy_to(value, path, multi)
        else:
            _set(node, kind, name, parameter, value)
    for parameter in kind.required:
        if parameter not in node:
            raise mapper_parsing(f"Field [{parameter}] is required")
    if kind.name == "dense_vector":
        try:
            checked_vector(node)
        except SearchError as error:
            raise mapper_parsing(error.reason, error) from None
    if not node.get("fields", True):
        del node["fields"]
    return node


def _set(node: Definition, kind: FieldType, name: str, parameter: str, value: Any) -> None:
    """Check one parameter, and keep it unless it is the default."""
    known = kind.parameters.get(parameter)
    if known is None:
        raise mapper_parsing(
            f"unknown parameter [{parameter[:100]}] on mapper [{name}] of type [{kind.name}]"
        )
    if value is None:
        if known.default is not None:
            raise mapper_parsing(
                f"[{parameter}] on mapper [{name}] of type [{kind.name}] must not have a [null] value"
            )
        return
    try:
        checked = known.check(value)
    except SearchError as error:
        reason = f"Failed to parse parameter [{parameter}] on mapper [{name}]: {error.reason}"
        raise mapper_parsing(reason, error) from None
    if checked != known.default or parameter in ("ignore_malformed", "coerce"):  # an index may differ
        node[parameter] = checked


def _multi_fields(value: Any, kind: FieldType, path: str, multi: bool) -> dict[str, Definition]:
    if multi:
        raise mapper_parsing(f"Multi field [{path}] may not have [fields] of its own")
    if value in ([], None):
        return {}
    if not isinstance(value, dict):
        raise mapper_parsing(
            f"expected map for property [fields] on field [{path}] but got [{str(value)[:100]}]"
        )
    if kind.name == "dense_vector":
        raise mapper_parsing("Field [fields] is not allowed for a field of type [dense_vector]")
    for name in value:
        if "." in name:
            raise mapper_parsing(
                f"Field name [{name[:100]}] which is a multi field of [{path}] cannot contain '.'"
            )
    return {name: _multi_field(given, f"{path}.{name}") for name, given in sorted(value.items())}


def _multi_field(given: Any, path: str) -> Definition:
    name = path.rpartition(".")[2]
    if not isinstance(given, dict) or not name.strip():
        raise mapper_parsing(f"illegal field [{path}], only fields can be specified inside fields")
    if "type" not in given:
        raise mapper_parsing(f"no type specified for property [{name}]")
    if given["type"] in (*OBJECT_TYPES, "alias", "dense_vector"):
        raise mapper_parsing(f"Type [{given['type']}] cannot be used in multi field")
    return _node(given, path, 1, multi=True)


def _copy_to(value: Any, path: str, multi: bool) -> list[str]:
    if multi:
        raise mapper_parsing(
            f"copy_to in multi fields is not allowed. Found the copy_to in field [{path}] which is within a "
            "multi field."
        )
    targets = value if isinstance(value, list) else [value]
    if not all(isinstance(target, str | int) and target for target in targets):
        raise mapper_parsing(f"[copy_to] of field [{path}] must be a field name, or an array of them")
    targets = [str(target) for target in targets]
    if any("*" in target for target in targets):
        raise mapper_parsing(f"[copy_to] of field [{path}] must not have a wildcard")
    return list(targets)


def _dynamic(value: Any) -> str:
    text = str(value).lower() if isinstance(value, bool) else value
    if text not in ("true", "false", "strict", "runtime"):
        raise mapper_parsing(f"Could not convert [dynamic] to a value: [{str(value)[:100]}]")
    return str(text)


def _subobjects(value: Any) -> bool:
    try:
        return boolean(value)
    except SearchError:
        raise SearchError("parse_exception", f"unknown subobjects value: {str(value)[:100]}") from None


def _formats(value: Any) -> list[str]:
    formats = value if isinstance(value, list) else [value]
    try:
        return [date_format(str(name)).source for name in formats if name != "none"]
    except SearchError as error:
        raise mapper_parsing(error.reason, error) from None


def _flag(value: Any) -> bool:
    try:
        return boolean(value)
    except SearchError as error:
        raise mapper_parsing(error.reason, error) from None


def _members(what: str, *allowed: str) -> Any:
    def read(value: Any) -> Definition:
        if not isinstance(value, dict):
            raise mapper_parsing(f"[{what}] must be an object")
        if unknown := set(value) - set(allowed):
            raise mapper_parsing(f"unknown parameter [{min(unknown)[:100]}] on metadata field [{what}]")
        return dict(value)

    return read


def _nothing(what: str, *flags: str) -> Any:
    """Of a field of Elasticsearch's own, which a mapping may only say to be as it is here."""

    def read(value: Any) -> None:
        if not isinstance(value, dict):
            raise illegal_argument(f"[{what}] config must be an object")
        for name, flag in value.items():
            if name not in flags or boolean(flag):
                raise mapper_parsing(f"unknown parameter [{name[:100]}] on metadata field [{what}]")

    return read


def _meta(value: Any) -> Definition:
    if not isinstance(value, dict):
        raise illegal_argument("[_meta] must be an object")
    return value


_ROOT: dict[str, Any] = {
    "dynamic": _dynamic,
    "dynamic_templates": checked_templates,
    "date_detection": _flag,
    "numeric_detection": _flag,
    "dynamic_date_formats": _formats,
    "_source": _members("_source", "enabled", "includes", "excludes", "mode"),
    "_routing": _members("_routing", "required"),
    "_field_names": _nothing("_field_names"),
    "_data_stream_timestamp": _nothing("_data_stream_timestamp", "enabled"),
    "_meta": _meta,
    "runtime": checked_runtime,
}
