"""The mapping of one index: its fields, and how documents become what segments store."""

from collections.abc import Mapping as JsonObject
from dataclasses import replace
from typing import Any

from graphdb.search.errors import SearchError, illegal_argument, mapper_parsing
from graphdb.search.fields import FieldSpec, ParsedDocument
from graphdb.search.mapping.compiled import Analyzers, Compiled, compiled
from graphdb.search.mapping.definition import Definition, normalised, unparsable
from graphdb.search.mapping.document import read_document
from graphdb.search.mapping.dynamic import dynamic_update
from graphdb.search.mapping.limits import MappingLimits
from graphdb.search.mapping.lookup import METADATA
from graphdb.search.mapping.merge import merged_definitions
from graphdb.search.mapping.types import OBJECT_TYPES
from graphdb.search.mapping.vectors import shown_vector
from graphdb.search.mapping.wildcards import wildcard_match
from graphdb.search.protection import ALLOW_SIDS

__all__ = ["Mapping"]

_MATCHED_MAX = 1_000
_DYNAMIC_ROUNDS_MAX = 3
"""A document's new fields are known after one round; the dimensions of a vector that a template has made, and
copies to new fields, take another.
"""


class Mapping:
    """Immutable: what would change it answers another. Make one with `of`."""

    def __init__(self, definition: Definition, analyzers: Analyzers, limits: MappingLimits) -> None:
        """definition is in normal form."""
        self._definition, self._analyzers, self._limits = definition, analyzers, limits
        self._compiled: Compiled = compiled(definition, analyzers, limits)
        self._matched: dict[str, tuple[FieldSpec, ...]] = {}  # by pattern: each hit asks for the same ones

    @classmethod
    def of(
        cls, body: JsonObject[str, Any], analyzers: Analyzers, limits: MappingLimits | None = None
    ) -> "Mapping":
        """From the `mappings` of an index.

        Errors: mapper_parsing_exception, illegal_argument_exception (limits).
        """
        return cls(_read(body), analyzers, limits or MappingLimits())._checked()

    def merged(self, body: JsonObject[str, Any]) -> "Mapping":
        """With an update (PUT _mapping) put in. Errors: as of `of`, illegal_argument_exception."""
        return self._with(_read(body))

    def limited(self, limits: MappingLimits) -> "Mapping":
        """The same under other limits. Errors: illegal_argument_exception where it is past them already."""
        return Mapping(self._definition, self._analyzers, limits)

    def field(self, path: str) -> FieldSpec | None:
        """A field or an object; of an alias what it stands for; a flattened field's key is a field, too, and
        so are those that every index has.
        """
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
        return sorted(name for name in (*fields, *self._compiled.aliases) if wildcard_match(pattern, name))

    def parse(
        self, source: JsonObject[str, Any], doc_id: str | None = None
    ) -> tuple[ParsedDocument, "Mapping"]:
        """The document, and the mapping with the fields that it has added, else this one.

        Errors: document_parsing_exception (with doc_id in its text), strict_dynamic_mapping_exception,
        illegal_argument_exception (limits).
        """
        mapping = self
        for _ in range(_DYNAMIC_ROUNDS_MAX):
            parsed, has_unknown = read_document(mapping._compiled, source, doc_id, self._limits)
            if not has_unknown:
                break
            update = dynamic_update(mapping._definition, source, self._limits)
            if not update["properties"]:
                break
            mapping = mapping._with(update)
        return parsed, mapping

    def as_json(self) -> dict[str, Any]:
        """As `GET _mapping` shows it: what was given and is not a default."""
        shown = {
            name: value for name, value in self._definition.items() if name not in ("type", "properties")
        }
        if self._definition["properties"]:
            shown["properties"] = _shown_properties(self._definition["properties"])
        return shown

    def field_mappings(self, pattern: str) -> dict[str, Any]:
        """As `GET _mapping/field/{pattern}` shows: `{"a.b": {"full_name": "a.b", "mapping": {"b": ...}}}`."""
        found = {}
        for path in sorted(self._compiled.nodes):
            definition = self._definition_at(path)
            if definition["type"] not in OBJECT_TYPES and wildcard_match(pattern, path):
                found[path] = {
                    "full_name": path,
                    "mapping": {path.rpartition(".")[2]: _shown_node(definition)},
                }
        return found

    @property
    def routing_required(self) -> bool:
        """Whether every document needs a routing value."""
        return self._definition.get("_routing", {}).get("required") in (True, "true")

    @property
    def source_options(self) -> dict[str, Any]:
        """What `_source` says: enabled, includes, excludes; empty where all of a document is kept."""
        return dict(self._definition.get("_source", {}))

    def _with(self, update: Definition) -> "Mapping":
        definition = merged_definitions(self._definition, update)
        if definition == self._definition:
            return self
        return Mapping(definition, self._analyzers, self._limits)._checked()

    def _checked(self) -> "Mapping":
        """No field is called as the list of who sees a document; every copy_to reaches its target."""
        if ALLOW_SIDS in self._definition["properties"]:
            raise mapper_parsing(f"Field [{ALLOW_SIDS}] is a metadata field and cannot be mapped")
        nodes = self._compiled.nodes
        for path, spec in self._compiled.specs.items():
            for target in self._definition_at(path).get("copy_to", ()) if path in nodes else ():
                found = self._compiled.specs.get(target)
                if found is not None and found.type in OBJECT_TYPES:
                    raise mapper_parsing(f"Cannot copy to field [{target}] since it is mapped as an object")
                if found is not None and not _reaches(spec.nested, found.nested):
                    raise _illegal_copy(spec.nested, found.nested)
        return self

    def _definition_at(self, path: str) -> Definition:
        """The normal form of a field that there is; multi-fields are members of `fields`."""
        definition = self._definition
        for part in path.split("."):
            inside = "properties" if definition["type"] in OBJECT_TYPES else "fields"
            definition = definition[inside][part]
        return definition

    def _flattened_key(self, path: str) -> FieldSpec | None:
        parts = path.split(".")
        for end in range(len(parts) - 1, 0, -1):
            spec = self._compiled.specs.get(".".join(parts[:end]))
            if spec is not None:
                return replace(spec, path=path) if spec.type == "flattened" else None
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


def _read(body: JsonObject[str, Any]) -> Definition:
    try:
        return normalised(body)
    except SearchError as error:
        raise unparsable(error) from None


def _shown_properties(properties: Definition) -> dict[str, Any]:
    return {name: _shown_node(node) for name, node in properties.items()}


def _shown_node(node: Definition) -> dict[str, Any]:
    """An object with members does not say that it is one."""
    if node["type"] not in OBJECT_TYPES:
        shown = shown_vector(node) if node["type"] == "dense_vector" else dict(node)
        if "fields" in node:
            shown["fields"] = _shown_properties(node["fields"])
        return shown
    shown = {name: value for name, value in node.items() if name != "properties"}
    if node["properties"]:
        shown["properties"] = _shown_properties(node["properties"])
        if node["type"] == "object":
            del shown["type"]
    return shown
