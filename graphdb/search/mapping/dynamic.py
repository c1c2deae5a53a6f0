"""Dynamic mapping: what a document's unknown fields add to the mapping.

A document is walked beside the mapping's normal form; what is not there yet gets a definition by the dynamic
templates, or by the kind of its JSON value. The result is merged like any other update.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from graphdb.search.errors import SearchError, illegal_argument
from graphdb.search.mapping.dates import DEFAULT_FORMAT, date_format
from graphdb.search.mapping.dynamic_templates import RUNTIME_TYPES, named_template, template_mapping
from graphdb.search.mapping.flat_objects import is_flat, no_nested
from graphdb.search.mapping.mapping_definition import Definition, MappingLimits, normalised
from graphdb.search.mapping.readers import parse_number, text_of
from graphdb.search.mapping.runtime_fields import checked_runtime, runtime_paths
from graphdb.search.mapping.types import OBJECT_TYPES, READS_OBJECTS
from graphdb.search.mapping.vectors import DIMS_MAX
from graphdb.search.mapping.wildcards import flat
from graphdb.search.protection import ALLOW_SIDS

__all__ = ["DEFAULT_DATE_FORMATS", "count_new", "dynamic_update", "leave_out", "unparsable_document"]

DEFAULT_DATE_FORMATS = (DEFAULT_FORMAT, "yyyy/MM/dd HH:mm:ss||yyyy/MM/dd||epoch_millis")
_VECTOR_DIMS_MIN = 128
"""Arrays of at least so many fractions are taken for a vector, as Elasticsearch does since 8.11."""

_IGNORE_ABOVE = 256


def dynamic_update(
    root: Definition, source: Mapping[str, Any], limits: MappingLimits, named: Mapping[str, str]
) -> Definition:
    """The root of an update in normal form; its properties are empty where nothing is new, and it has runtime
    fields only if there are new ones. named: the names of dynamic templates by the paths of fields.

    Errors: strict_dynamic_mapping_exception, document_parsing_exception (bad names),
    illegal_argument_exception (limits).
    """
    walk = _Walk(root, limits, named)
    walk.members(root, walk.update, source, "", root.get("dynamic", "true"), 1)
    return walk.update


def count_new(update: Definition, root: Definition) -> int:
    """The fields, objects and multi-fields of an update that are not there yet."""
    count = len(update.get("runtime", {}).keys() - root.get("runtime", {}).keys())
    for name, node in update["properties"].items():
        there = root["properties"].get(name)
        count += 0 if there is not None else 1 + len(node.get("fields", ()))
        if "properties" in node:
            count += count_new(node, there or {"properties": {}})
    return count


def unparsable_document(error: SearchError) -> SearchError:
    """Of a document that the mapping has no room for."""
    return SearchError("document_parsing_exception", f"failed to parse: {error.reason}", cause=error)


def leave_out(update: Definition, root: Definition, room: int) -> list[str]:
    """Take the new fields out of an update that there is no room for; their paths. An object that is there
    already takes none.
    """
    left_out: list[str] = []
    room = _leave_out(update, root, room, "", left_out)
    runtime = update.get("runtime", {})
    for path in list(runtime)[max(room, 0) :]:
        del runtime[path]
        left_out.append(path)
    return left_out


def _leave_out(update: Definition, known: Definition, room: int, path: str, left_out: list[str]) -> int:
    """The room that is left."""
    for name, node in list(update["properties"].items()):
        there, full = known["properties"].get(name), f"{path}{name}"
        takes = 0 if there is not None else 1 + len(node.get("fields", ()))
        if takes > room:
            del update["properties"][name]
            left_out.append(full)
            continue
        room -= takes
        if "properties" in node:
            room = _leave_out(node, there or {"properties": {}}, room, f"{full}.", left_out)
    return room


class _Walk:
    """update grows beside root; of an object it may hold only the new members."""

    def __init__(self, root: Definition, limits: MappingLimits, named: Mapping[str, str]) -> None:
        self.update: Definition = {"type": "object", "properties": {}}
        self._root, self._limits, self._named = root, limits, named
        self._copying = False  # copies are not copied on
        self._templates = root.get("dynamic_templates", [])
        self._runtime = runtime_paths(root.get("runtime", {}))

    def members(
        self,
        known: Definition,
        new: Definition,
        value: Mapping[str, Any],
        path: str,
        dynamic: str,
        depth: int,
    ) -> None:
        """The members of one object; known and new are its definitions in the mapping and in the update."""
        for name, member in value.items():
            if name == ALLOW_SIDS and not path:
                continue
            if is_flat(known):
                self._flat(known, new, name, member, path, dynamic, depth)
                continue
            head, dot, rest = name.partition(".")
            if not head.strip() or (dot and not rest):
                raise SearchError("document_parsing_exception", _bad_name(name))
            if dynamic == "strict":
                self._check_known(known, head, path)
            for item in self._items(member) if not dot else [{rest: member}]:
                self._member(known, new, head, item, path, dynamic, depth)

    def _flat(
        self, known: Definition, new: Definition, name: str, value: Any, path: str, dynamic: str, depth: int
    ) -> None:
        """A member of an object that has no objects: those in it are more of its own fields."""
        if not name.strip():
            raise SearchError("document_parsing_exception", _bad_name(name))
        if dynamic == "strict":
            self._check_known(known, name, path)
        for item in self._items(value):
            definition = known["properties"].get(name) or new["properties"].get(name)
            if not isinstance(item, dict) or (definition and definition["type"] in READS_OBJECTS):
                self._member(known, new, name, item, path, dynamic, depth)
                continue
            template = template_mapping(self._templates, name, f"{path}{name}", "object")
            if definition is None and template is not None and template.get("type") == "nested":
                raise SearchError("document_parsing_exception", no_nested(name, path.rstrip(".") or "_doc"))
            for inner, member in item.items():
                self._flat(known, new, f"{name}.{inner}", member, path, dynamic, depth)

    def _check_known(self, known: Definition, name: str, path: str) -> None:
        """What is in the mapping, or a runtime field."""
        if name not in known["properties"] and f"{path}{name}" not in self._runtime:
            raise _strict(name, path.rstrip("."))

    def _items(self, value: Any) -> list[Any]:
        """An array without objects is one item: it may be a vector."""
        of_scalars = isinstance(value, list) and not any(isinstance(item, dict | list) for item in value)
        return [value] if of_scalars else [item for item in flat(value) if item is not None]

    def _member(
        self, known: Definition, new: Definition, name: str, value: Any, path: str, dynamic: str, depth: int
    ) -> None:
        full = f"{path}{name}"
        old = known["properties"].get(name)
        fresh = new["properties"].get(name)
        definition = fresh if old is None else old
        if definition is None:
            if dynamic == "runtime" and isinstance(value, dict):
                self._below_runtime(new, name, value, full, depth)
                return
            if dynamic not in ("true", "runtime") or (full in self._runtime and not isinstance(value, dict)):
                return
            fresh = definition = self._new(name, full, value, depth, dynamic)
            if fresh is None:
                return
            new["properties"][name] = fresh
        if definition["type"] not in OBJECT_TYPES:
            self._field(definition, new, name, value)
        elif isinstance(value, dict) and definition.get("enabled", True):
            if fresh is None:
                fresh = new["properties"][name] = {"type": definition["type"], "properties": {}}
            self.members(
                old or fresh, fresh, value, f"{full}.", definition.get("dynamic", dynamic), depth + 1
            )

    def _below_runtime(
        self, new: Definition, name: str, value: Mapping[str, Any], full: str, depth: int
    ) -> None:
        """An object is in the mapping only if a template makes one of its fields an indexed one."""
        holder: Definition = {"type": "object", "properties": {}}
        self.members(holder, holder, value, f"{full}.", "runtime", depth + 1)
        if holder["properties"]:
            new["properties"][name] = holder

    def _field(self, definition: Definition, new: Definition, name: str, value: Any) -> None:
        """What a field that is known may still need: its dimensions, its constant, the targets of copy_to."""
        if definition["type"] == "dense_vector" and "dims" not in definition:
            dims = _dimensions(value) * (8 if definition.get("element_type") == "bit" else 1)
            if dims:
                new["properties"][name] = definition | {"dims": dims}
        if definition["type"] == "constant_keyword" and "value" not in definition:
            first = next((item for item in flat(value) if item is not None), None)
            if first is not None:
                new["properties"][name] = definition | {"value": text_of(first)}
        if not self._copying:
            self._copying = True
            self._copies(definition.get("copy_to", ()), value)
            self._copying = False

    def _copies(self, targets: Iterable[str], value: Any) -> None:
        for target in targets:
            nested: Any = value
            for part in reversed(target.split(".")):
                nested = {part: nested}
            self.members(self._root, self.update, nested, "", self._root.get("dynamic", "true"), 1)

    def _new(self, name: str, path: str, value: Any, depth: int, dynamic: str) -> Definition | None:
        """The definition of a new field; None where nothing can be derived, or nothing is to be indexed: then
        the update may have a runtime field.
        """
        if len(name.encode("utf-16-le")) // 2 > self._limits.field_name_length:
            raise illegal_argument(
                f"Field name [{name[:200]}] is longer than the limit of [{self._limits.field_name_length}] "
                "characters"
            )
        if depth > self._limits.depth:
            raise unparsable_document(
                self._limits.exceeded(
                    "mapping depth",
                    self._limits.depth,
                    f" due to object field [{path.rpartition('.')[0][:200]}]",
                )
            )
        first = next((item for item in flat(value) if item is not None), None)
        if first is None:
            return None
        match_type, default = self._guess(first)
        wanted = self._named.get(path)
        if wanted is None:
            found = template_mapping(self._templates, name, path, match_type)
        else:
            found = named_template(self._templates, wanted, name, path, match_type)
        if found is None and dynamic == "runtime":
            found = {"runtime": {"type": RUNTIME_TYPES[match_type]}}
        if found is not None and "runtime" in found:
            self.update.setdefault("runtime", {}).update(checked_runtime({path: found["runtime"]}))
            return None
        if found is not None:
            return _single(name, found)
        if match_type == "double" and _is_vector(value):
            return {"type": "dense_vector", "dims": len(value)}
        return default

    def _guess(self, value: Any) -> tuple[str, Definition]:
        """What dynamic templates call a JSON value, and the definition that it gets without one."""
        if isinstance(value, dict):
            return "object", {"type": "object", "properties": {}}
        if isinstance(value, bool):
            return "boolean", {"type": "boolean"}
        if isinstance(value, int):
            return "long", {"type": "long"}
        if isinstance(value, float):
            return "double", {"type": "float"}
        return self._guess_text(str(value))

    def _guess_text(self, text: str) -> tuple[str, Definition]:
        number = parse_number(text)
        if number is not None and self._root.get("numeric_detection", False):
            return ("long", {"type": "long"}) if isinstance(number, int) else ("double", {"type": "float"})
        # A number is too likely to be no date, though `epoch_millis` would read it.
        if number is None and self._root.get("date_detection", True):
            for source in self._root.get("dynamic_date_formats", DEFAULT_DATE_FORMATS):
                if date_format(source).reads(text):
                    return "date", {"type": "date"} | ({"format": source} if source != DEFAULT_FORMAT else {})
        keyword = {"type": "keyword", "ignore_above": _IGNORE_ABOVE}
        return "string", {"type": "text", "fields": {"keyword": keyword}}


def _single(name: str, mapping: Definition) -> Definition:
    """A template's mapping of one field in normal form."""
    body = {"properties": {name: mapping}} | ({"subobjects": False} if "." in name else {})
    definition: Definition = normalised(body)["properties"][name]
    return definition


def _dimensions(value: Any) -> int:
    """Those of a vector of numbers, or of bytes in hexadecimal digits."""
    if isinstance(value, list):
        return len(value)
    return len(value) // 2 if isinstance(value, str) else 0


def _is_vector(value: Any) -> bool:
    return (
        isinstance(value, list)
        and _VECTOR_DIMS_MIN <= len(value) <= DIMS_MAX
        and all(type(item) is float for item in value)
    )


def _strict(name: str, parent: str) -> SearchError:
    return SearchError(
        "strict_dynamic_mapping_exception",
        f"mapping set to strict, dynamic introduction of [{name}] within [{parent or '_doc'}] is not allowed",
    )


def _bad_name(name: str) -> str:
    if not name:
        return "field name cannot be an empty string"
    if not name.strip():
        return "field name cannot contain only whitespace"
    return f"field name starting or ending with a [.] makes object resolution ambiguous: [{name[:200]}]"
