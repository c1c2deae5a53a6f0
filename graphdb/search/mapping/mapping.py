"""The mapping of an index, and how one is merged into another."""

from collections.abc import Mapping as JsonObject
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Any

from graphdb.search.document_texts import LongNumbers
from graphdb.search.errors import SearchError, illegal_argument, mapper_parsing
from graphdb.search.fields import Column, FieldSpec, ParsedDocument
from graphdb.search.mapping.compiled import Analyzers, Compiled, compiled
from graphdb.search.mapping.document import read_document
from graphdb.search.mapping.documents_together import read_together
from graphdb.search.mapping.dynamic import count_new, dynamic_update, leave_out, unparsable_document
from graphdb.search.mapping.dynamic_templates import check_runtime_templates
from graphdb.search.mapping.flat_objects import flattened
from graphdb.search.mapping.lookup import METADATA
from graphdb.search.mapping.mapping_definition import Definition, MappingLimits, normalised, unparsable
from graphdb.search.mapping.nodes import FieldNode
from graphdb.search.mapping.percolators import read_stored_query
from graphdb.search.mapping.runtime_fields import Lookup, checked_runtime, runtime_fields
from graphdb.search.mapping.shown_mapping import shown_node, shown_root
from graphdb.search.mapping.types import FIELD_TYPES, OBJECT_TYPES, Parameter
from graphdb.search.mapping.vectors import shown_vector
from graphdb.search.mapping.wildcards import wildcard_match
from graphdb.search.protection import ALLOW_SIDS

__all__ = ["Mapping", "merged_definitions"]

# Two mappings in normal form into one, or the error that says why not.
#
# An update that names a field replaces all its parameters: those that it leaves out go back to their
# default, and where that default cannot be set any more, it is a conflict. Errors:
# illegal_argument_exception.


def merged_definitions(existing: Definition, update: Definition, whole_templates: bool = False) -> Definition:
    """The root of both; neither is changed. whole_templates: see `Mapping.merged`."""
    update = flattened(update, existing)
    _check_source(existing.get("_source", {}), update.get("_source"))
    _check_subobjects(existing, update, "_doc")
    root = existing | {name: value for name, value in update.items() if name != "properties"}
    if "dynamic_templates" in existing and "dynamic_templates" in update and not whole_templates:
        root["dynamic_templates"] = _templates(existing["dynamic_templates"], update["dynamic_templates"])
    if "runtime" in existing or "runtime" in update:
        both = existing.get("runtime", {}) | update.get("runtime", {})
        root["runtime"] = {name: given for name, given in sorted(both.items()) if given is not None}
        if not root["runtime"]:
            del root["runtime"]
    root["properties"] = _properties(existing["properties"], update["properties"], "")
    return root


def _check_source(existing: Definition, update: Definition | None) -> None:
    """What `_source` keeps of documents cannot change."""
    conflicts = [
        f"Cannot update parameter [{name}] from [{_patterns(existing, name)}] to [{_patterns(update, name)}]"
        for name in ("includes", "excludes")
        if update is not None and _patterns(existing, name) != _patterns(update, name)
    ]
    if conflicts:
        raise illegal_argument(
            "Mapper for [_source] conflicts with existing mapper:\n\t" + "\n\t".join(conflicts)
        )


def _patterns(options: Definition, name: str) -> str:
    listed = options.get(name) or []
    return f"[{', '.join(map(str, listed if isinstance(listed, list) else [listed]))}]"


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


def _check_subobjects(existing: Definition, update: Definition, path: str) -> None:
    there = existing.get("subobjects", True)
    if update.get("subobjects", there) is not there:
        reason = f"the [subobjects] parameter can't be updated for the object mapping [{path}]"
        raise SearchError("mapper_exception", reason, 500)


def _object(existing: Definition, update: Definition, path: str) -> Definition:
    if existing["type"] != update["type"]:
        kinds = ("a nested", "a non-nested") if existing["type"] == "nested" else ("a non-nested", "a nested")
        raise illegal_argument(f"can't merge {kinds[0]} mapping [{path}] with {kinds[1]} mapping")
    if existing.get("enabled", True) and not update.get("enabled", True):
        raise illegal_argument(f"the [enabled] parameter can't be updated for the object mapping [{path}]")
    _check_subobjects(existing, update, path)
    for name in ("include_in_parent", "include_in_root"):
        if update.get(name, existing.get(name)) != existing.get(name):
            raise illegal_argument(f"the [{name}] parameter can't be updated on a nested object mapping")
    properties = _properties(existing["properties"], update["properties"], f"{path}.")
    return existing | update | {"properties": properties}


def _field(existing: Definition, update: Definition, path: str) -> Definition:
    before, after = shown_node(existing), shown_node(update)  # what is shown may be put again
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
    if name == "analyzer" and {old, new} <= {None, "default"}:
        return True
    return parameter.updatable or old == new or (name in ("dims", "value") and old is None)


def _shown(name: str, value: Any) -> str:
    if value is None:
        return "default" if name == "analyzer" else "null"
    return str(value).lower() if isinstance(value, bool) else str(value)


# The mapping of one index: its fields, and how documents become what segments store.

_MATCHED_MAX = 1_000
_DYNAMIC_ROUNDS_MAX = 3
"""A document's new fields are known after one round; the dimensions of a vector that a template has made, and
copies to new fields, take another.
"""


def _source_options(definition: Definition, limits: MappingLimits) -> dict[str, Any]:
    options = dict(definition.get("_source", {}))
    if options.get("mode", None if "enabled" in options else limits.source_mode) == "disabled":
        options["enabled"] = False
    return options


_ADDED: Definition = {"type": "text"}
"""What is shown of a field that the type of another one adds (`_2gram`): it has no definition."""


class Mapping:
    """Immutable: what would change it answers another. Make one with `of`."""

    def __init__(self, definition: Definition, analyzers: Analyzers, limits: MappingLimits) -> None:
        """definition is in normal form."""
        self._definition, self._analyzers, self._limits = definition, analyzers, limits
        self._compiled: Compiled = compiled(definition, analyzers, limits)
        self.runtime = runtime_fields(definition.get("runtime", {}))
        self._matched: dict[str, tuple[FieldSpec, ...]] = {}  # by pattern: each hit asks for the same ones
        self._source_options = _source_options(definition, limits)

    @classmethod
    def of(
        cls, body: JsonObject[str, Any], analyzers: Analyzers, limits: MappingLimits | None = None
    ) -> "Mapping":
        """From the `mappings` of an index.

        Errors: mapper_parsing_exception, illegal_argument_exception (limits).
        """
        return cls.stored(_read_new(body), analyzers, limits)

    @classmethod
    def stored(
        cls, body: JsonObject[str, Any], analyzers: Analyzers, limits: MappingLimits | None = None
    ) -> "Mapping":
        """The same of an index that there is: an earlier version may have taken what is refused now, and what
        that does no harm to has to be opened.
        """
        return cls(_read(body), analyzers, limits or MappingLimits())._checked()

    def merged(self, body: JsonObject[str, Any], whole_templates: bool = False) -> "Mapping":
        """With an update (PUT _mapping) put in. whole_templates: its dynamic templates are all that count.

        Errors: as of `of`, illegal_argument_exception.
        """
        return self._with(_read(_read_new(body)), whole_templates)

    def analyzed(self, analyzers: Analyzers, limits: MappingLimits) -> "Mapping":
        """The same with other analyzers and limits. Errors: mapper_parsing_exception for one that is gone."""
        return Mapping(self._definition, analyzers, limits)._checked()

    def limited(self, limits: MappingLimits) -> "Mapping":
        """The same under other limits. Errors: illegal_argument_exception where it is past them already."""
        return Mapping(self._definition, self._analyzers, limits)

    def field(self, path: str) -> FieldSpec | None:
        """A field or an object; of an alias what it stands for; a flattened field's key is a field, too, and
        so are those that every index has.
        """
        if (runtime := self.runtime.get(path)) is not None:
            return runtime.spec
        specs = self._compiled.specs
        spec = specs.get(self._compiled.aliases.get(path, path)) or METADATA.get(path)
        return spec if spec is not None or "." not in path else self._flattened_key(path)

    def match(self, pattern: str) -> list[FieldSpec]:
        """The fields (no objects) whose names, or an alias of which, fit a pattern with `*`; each once."""
        found = self._matched.get(pattern)
        if found is None:
            specs = [self.field(name) for name in self.names(pattern)]
            found = tuple({spec.path: spec for spec in specs if spec is not None}.values())
            if len(self._matched) < _MATCHED_MAX:
                self._matched[pattern] = found
        return list(found)

    def names(self, pattern: str) -> list[str]:
        """The names of fields and aliases (no objects) that fit a pattern with `*`, sorted."""
        if "*" not in pattern:
            spec = self.field(pattern)
            return [] if spec is None or spec.type in OBJECT_TYPES else [pattern]
        fields = (path for path, spec in self._compiled.specs.items() if spec.type not in OBJECT_TYPES)
        names = {*fields, *self._compiled.aliases, *self.runtime}
        return sorted(name for name in names if wildcard_match(pattern, name))

    def with_runtime(self, section: Any) -> "Mapping":
        """With the runtime fields of a request, which come before those of the same names.

        Errors: mapper_parsing_exception, script_exception.
        """
        fields = runtime_fields(checked_runtime(section))
        made = copy(self)
        made.runtime, made._matched = self.runtime | fields, {}
        return made

    def parse(
        self,
        source: JsonObject[str, Any],
        doc_id: str | None = None,
        templates: JsonObject[str, str] | None = None,
    ) -> tuple[ParsedDocument, "Mapping"]:
        """The document, and the mapping with the fields that it has added, else this one. templates: names of
        dynamic templates that new fields are to get, by their paths.

        Errors: document_parsing_exception (with doc_id in its text), strict_dynamic_mapping_exception,
        illegal_argument_exception (limits).
        """
        mapping = self
        for _ in range(_DYNAMIC_ROUNDS_MAX):
            parsed, has_unknown = read_document(
                mapping._compiled, source, doc_id, self._limits, mapping._read_query
            )
            if not has_unknown:
                break
            update = dynamic_update(mapping._definition, source, self._limits, templates or {})
            if self._limits.ignores_beyond:
                room = self._limits.total_fields - mapping._compiled.size
                left_out = leave_out(update, mapping._definition, room)
                parsed.ignored += [path for path in left_out if path not in parsed.ignored]
            if not (update["properties"] or update.get("runtime")):
                break
            mapping._check_room(update)
            mapping = mapping._with(update)
        return parsed, mapping

    def _check_room(self, update: Definition) -> None:
        """Errors: document_parsing_exception where a document adds too many fields."""
        added, limit = count_new(update, self._definition), self._limits.total_fields
        if self._compiled.size + added > limit:
            raise unparsable_document(
                self._limits.exceeded("total fields", limit, f" while adding new fields [{added}]")
            )

    def parse_together(
        self, sources: Sequence[JsonObject[str, Any]], numbers: Sequence[LongNumbers | None]
    ) -> tuple[list[Column], set[int]]:
        """`parse` of documents that add no field and of which none is refused, field by field; and the places
        of those that are to be given to `parse` instead: where there are any, the columns are of no use.
        numbers: a member that each source lacks.
        """
        return read_together(self._compiled.root, sources, numbers)

    def _read_query(self, value: Any) -> tuple[str, list[str]]:
        return read_stored_query(value, self, self._analyzers)

    def shown(self) -> dict[str, Any]:
        """As `GET _mapping` shows it."""
        return shown_root(self._definition)

    def as_json(self) -> dict[str, Any]:
        """As it is stored, and `of` and `stored` read it: what was given and is not a default."""
        shown = {
            name: value for name, value in self._definition.items() if name not in ("type", "properties")
        }
        if self._definition["properties"]:
            shown["properties"] = _stored_properties(self._definition["properties"])
        return shown

    def field_mappings(self, pattern: str) -> dict[str, Any]:
        """As `GET _mapping/field/{pattern}` shows: `{"a.b": {"full_name": "a.b", "mapping": {"b": ...}}}`."""
        found = {}
        for path in sorted(self._compiled.nodes):
            name, definition = self._compiled.named.get(path, (path.rpartition(".")[2], _ADDED))
            if definition["type"] not in OBJECT_TYPES and wildcard_match(pattern, path):
                found[path] = {"full_name": path, "mapping": {name: shown_node(definition)}}
        return found

    @property
    def routing_required(self) -> bool:
        """Whether every document needs a routing value."""
        return self._definition.get("_routing", {}).get("required") in (True, "true")

    @property
    def source_options(self) -> dict[str, Any]:
        """What `_source` says: enabled, includes, excludes; empty where all of a document is kept."""
        return self._source_options

    @property
    def lookups(self) -> dict[str, Lookup]:
        """The runtime fields of this type, by name."""
        return {name: field.lookup for name, field in self.runtime.items() if field.lookup is not None}

    def _with(self, update: Definition, whole_templates: bool = False) -> "Mapping":
        definition = merged_definitions(self._definition, update, whole_templates)
        if definition == self._definition:
            return self
        return Mapping(definition, self._analyzers, self._limits)._checked()

    def _checked(self) -> "Mapping":
        """No field is called as the list of who sees a document; every copy_to reaches its target."""
        if ALLOW_SIDS in self._definition["properties"]:
            raise mapper_parsing(f"Field [{ALLOW_SIDS}] is a metadata field and cannot be mapped")
        nodes = self._compiled.nodes
        for path, spec in self._compiled.specs.items():
            node = nodes.get(path)
            for target in node.copy_to if isinstance(node, FieldNode) else ():
                found = self._compiled.specs.get(target)
                if found is not None and found.type in OBJECT_TYPES:
                    raise mapper_parsing(f"Cannot copy to field [{target}] since it is mapped as an object")
                if found is not None and not _reaches(spec.nested, found.nested):
                    raise _illegal_copy(spec.nested, found.nested)
        return self

    def _flattened_key(self, path: str) -> FieldSpec | None:
        parts = path.split(".")
        for end in range(len(parts) - 1, 0, -1):
            spec = self._compiled.specs.get(".".join(parts[:end]))
            if spec is not None:
                is_keyed = spec.type == "flattened" or (
                    spec.type == "rank_features" and end == len(parts) - 1
                )
                return replace(spec, path=path) if is_keyed else None
        return None


def _illegal_copy(nested: str | None, target_nested: str | None) -> SearchError:
    """A copy into nested objects that the field is not in."""
    return illegal_argument(
        "Illegal combination of [copy_to] and [nested] mappings: [copy_to] may only copy data to the current "
        "nested document or any of its parents, however one [copy_to] directive is trying to copy data from "
        f"nested object [{nested}] to [{target_nested}]"
    )


def _reaches(nested: str | None, target_nested: str | None) -> bool:
    return target_nested is None or nested == target_nested or (nested or "").startswith(f"{target_nested}.")


def _read_new(body: JsonObject[str, Any]) -> JsonObject[str, Any]:
    """The body itself, which has nothing that is refused in what is new. Errors: SearchError."""
    try:
        check_runtime_templates(body.get("dynamic_templates"))
    except SearchError as error:
        raise unparsable(error) from None
    return body


def _read(body: JsonObject[str, Any]) -> Definition:
    try:
        return normalised(body)
    except SearchError as error:
        raise unparsable(error) from None


def _stored_properties(properties: Definition) -> dict[str, Any]:
    return {name: _stored_node(node) for name, node in properties.items()}


def _stored_node(node: Definition) -> dict[str, Any]:
    """An object with members does not say that it is one."""
    if node["type"] not in OBJECT_TYPES:
        shown = shown_vector(node) if node["type"] == "dense_vector" else dict(node)
        if "fields" in node:
            shown["fields"] = _stored_properties(node["fields"])
        return shown
    shown = {name: value for name, value in node.items() if name != "properties"}
    if node["properties"]:
        shown["properties"] = _stored_properties(node["properties"])
        if node["type"] == "object":
            del shown["type"]
    return shown
