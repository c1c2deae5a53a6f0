"""A mapping compiled for reading documents: a node for each field."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

from graphdb.search.errors import SearchError, illegal_argument, mapper_parsing
from graphdb.search.fields import FieldSpec, Storage, shingled
from graphdb.search.mapping.documents_together import take_all_of, take_rows_of
from graphdb.search.mapping.field_readers import reader_of
from graphdb.search.mapping.flat_objects import is_flat
from graphdb.search.mapping.instants import MS_NANOS
from graphdb.search.mapping.mapping_definition import Definition, MappingLimits, unparsable
from graphdb.search.mapping.nodes import AliasNode, FieldNode, Node, ObjectNode
from graphdb.search.mapping.readers import Read, text_of
from graphdb.search.mapping.runtime_fields import runtime_paths
from graphdb.search.mapping.simple_values import take_of
from graphdb.search.mapping.types import FIELD_TYPES, INT_MAX, OBJECT_TYPES, FieldType
from graphdb.search.mapping.vectors import similarity_of
from graphdb.search.mapping.versions import version_term
from graphdb.search.mapping.weighted_features import FEATURES_TYPES
from graphdb.search.similarity import AnySimilarity

__all__ = [
    "Analyzer",
    "Analyzers",
    "Compiled",
    "compiled",
]


class Analyzer(Protocol):
    """What is asked of an analyzer here."""

    @property
    def position_gap(self) -> int: ...
    def tokens(self, text: str, /) -> tuple[list[str], list[int]]: ...
    def end(self, text: str, /) -> int:
        """The position after the last token, those that filters dropped at the end included."""

    @property
    def is_plain(self) -> bool:
        """Whether the tokens of an ASCII text are its words in lower case."""


class Normalizer(Protocol):
    def normalize(self, text: str, /) -> str: ...


class Analyzers(Protocol):
    """The index's analyzers and similarities by name. Errors: illegal_argument_exception for a name that is
    not known.
    """

    def analyzer(self, name: str, /) -> Analyzer: ...
    def normalizer(self, name: str, /) -> Normalizer: ...
    def similarity(self, name: str | None, /) -> AnySimilarity: ...


@dataclass(slots=True)
class Compiled:
    """specs has objects too (Storage.NONE), but no aliases; nodes are all of them by path. named are the
    definitions of all, by path, with the names that the objects they are in have for them.
    """

    root: ObjectNode
    specs: dict[str, FieldSpec]
    nodes: dict[str, Node]
    aliases: dict[str, str]
    named: dict[str, tuple[str, Definition]]
    runtime: frozenset[str]  # the paths of runtime fields

    @property
    def size(self) -> int:
        """What the limit of all fields counts."""
        return len(self.nodes) + len(self.runtime)


def compiled(root: Definition, analyzers: Analyzers, limits: MappingLimits) -> Compiled:
    """Errors: mapper_parsing_exception, illegal_argument_exception (unknown analyzers, limits)."""
    build = _Build(analyzers, limits)
    top = ObjectNode("", root.get("dynamic", "true"), is_flat=is_flat(root))
    build.children(top, root["properties"], 1)
    runtime = runtime_paths(root.get("runtime", {}))
    made = Compiled(top, build.specs, build.nodes, build.aliases, build.named, runtime)
    if made.size > limits.total_fields:
        raise limits.exceeded("total fields", limits.total_fields)
    build.check()
    build.note_copies()
    return made


class _Build:
    def __init__(self, analyzers: Analyzers, limits: MappingLimits) -> None:
        self.specs: dict[str, FieldSpec] = {}
        self.nodes: dict[str, Node] = {}
        self.aliases: dict[str, str] = {}
        self.named: dict[str, tuple[str, Definition]] = {}
        self._analyzers, self._limits = analyzers, limits
        self._default = self._first_known("default")
        self._default_search = self._first_known("default_search", "default")

    def _first_known(self, *names: str) -> str:
        """The index's own default analyzer where its settings define one."""
        for name in names:
            try:
                self._analyzers.analyzer(name)
            except SearchError:
                continue
            return name
        return "standard"

    def check(self) -> None:
        """What can be checked only for the whole: limits, and what aliases and copies point at."""
        limits = self._limits
        nested = sum(isinstance(node, ObjectNode) and node.is_nested for node in self.nodes.values())
        if nested > limits.nested_fields:
            raise limits.exceeded("nested fields", limits.nested_fields)
        dimensions = sum(bool(spec.options.get("time_series_dimension")) for spec in self.specs.values())
        if dimensions > limits.dimension_fields:
            raise limits.exceeded("total dimension fields", limits.dimension_fields)
        joins = [path for path, spec in self.specs.items() if spec.type == "join"]
        if len(joins) > 1:
            raise illegal_argument(
                f"Only one [parent-join] field can be defined per index, got [{', '.join(joins)}]"
            )
        for path, target in self.aliases.items():
            if target in self.aliases or self.specs.get(target, _OBJECT_SPEC).type in OBJECT_TYPES:
                raise mapper_parsing(
                    f"Invalid [path] value [{target}] for field alias [{path}]: an alias must refer to an "
                    "existing field in the mappings."
                )

    def note_copies(self) -> None:
        """Tell the fields that are copied to, and their multi-fields, where their values come from."""
        sources: dict[str, list[str]] = {}
        for path, node in self.nodes.items():
            for target in node.copy_to if isinstance(node, FieldNode) else ():
                sources.setdefault(target, []).append(path)
        for path, spec in self.specs.items() if sources else ():
            if spec.value_path in sources:
                self.specs[path] = replace(spec, copied_from=tuple(sources[spec.value_path]))

    def children(self, parent: ObjectNode, properties: dict[str, Definition], depth: int) -> None:
        for name, definition in properties.items():
            path = f"{parent.path}.{name}" if parent.path else name
            self._check_name(name, path, depth)
            if path in self.nodes:
                raise _defined_twice(path)
            self.named[path] = name, definition
            if definition["type"] in OBJECT_TYPES:
                node: Node = self._object(definition, path, parent, depth)
            elif definition["type"] == "alias":
                node = AliasNode(path, definition["path"])
                self.aliases[path] = definition["path"]
            else:
                node = self._field(definition, path, parent.nested)
                if (take := take_of(node)) is not None:
                    parent.takes[name] = take
                if (take_all := take_all_of(node)) is not None:
                    parent.takes_all[name] = take_all
                if (take_rows := take_rows_of(node)) is not None:
                    parent.takes_rows[name] = take_rows
            parent.children[name] = self.nodes[path] = node

    def _check_name(self, name: str, path: str, depth: int) -> None:
        limits = self._limits
        if depth > limits.depth:
            above = path.removesuffix(f".{name}")[:200]
            raise limits.exceeded("mapping depth", limits.depth, f" due to object field [{above}]")
        if len(name.encode("utf-16-le", "surrogatepass")) // 2 > limits.field_name_length:
            raise illegal_argument(
                f"Field name [{name[:200]}] is longer than the limit of [{limits.field_name_length}] "
                "characters"
            )

    def _object(self, definition: Definition, path: str, parent: ObjectNode, depth: int) -> ObjectNode:
        is_nested = definition["type"] == "nested"
        node = ObjectNode(
            path,
            definition.get("dynamic", parent.dynamic),
            definition.get("enabled", True),
            is_nested,
            path if is_nested else parent.nested,
            definition.get("include_in_parent", False),
            definition.get("include_in_root", False),
            is_flat(definition),
        )
        self.specs[path] = FieldSpec(
            path, definition["type"], Storage.NONE, indexed=False, doc_values=False, nested=node.nested
        )
        self.children(node, definition["properties"], depth + 1)
        return node

    def _field(
        self, definition: Definition, path: str, nested: str | None, multi_of: str | None = None
    ) -> FieldNode:
        if path in self.specs:
            raise _defined_twice(path)
        spec = self._spec(definition, path, nested)
        if multi_of is not None:
            spec = replace(spec, multi_of=multi_of)
        self.specs[path] = spec
        node = FieldNode(spec, _column(spec), reader_of(spec.type, path, spec.options))
        node.split = _SPLITS.get(spec.type) if node.column is not None else None
        node.ignore_above = spec.options.get("ignore_above")
        node.copy_to = tuple(definition.get("copy_to", ()))
        _check_null_value(node)
        if spec.type == "completion":
            node.tokens = self._analyzers.analyzer(spec.analyzer).tokens
        if spec.storage is Storage.TEXT:
            analyzer = self._analyzers.analyzer(spec.analyzer)
            gap = spec.options.get("position_increment_gap")
            node.tokens, node.gap = analyzer.tokens, analyzer.position_gap if gap is None else gap
            options = spec.options
            node.has_lengths = bool(options.get("norms", True))
            node.once = options.get("index_options") == "docs"
            node.is_plain = analyzer.is_plain and node.has_lengths and not node.once
        subs = []
        for name, given in definition.get("fields", {}).items():
            self._check_name(name, f"{path}.{name}", 0)
            sub = self._field(given, f"{path}.{name}", nested, path)
            self.nodes[sub.spec.path] = sub
            self.named[sub.spec.path] = name, given
            subs.append(sub)
        if spec.type == "search_as_you_type":
            subs += self._as_you_type(spec, nested)
        node.fields = tuple(subs)
        return node

    def _counts(self, options: dict[str, Any]) -> Read:
        """What reads a token_count: how many tokens a text has, or how many positions they span."""
        self._check_analyzer(options["analyzer"])
        analyzer = self._analyzers.analyzer(options["analyzer"])
        if options["enable_position_increments"]:
            return lambda value: value if type(value) is int else analyzer.end(text_of(value))
        return lambda value: value if type(value) is int else len(set(analyzer.tokens(text_of(value))[1]))

    def _as_you_type(self, spec: FieldSpec, nested: str | None) -> list[FieldNode]:
        """The fields below one of search_as_you_type: shingles of its tokens, and the beginnings of them."""
        largest, similarity = spec.options["max_shingle_size"], spec.options["similarity"]
        analyzers = {
            f"_{size}gram": (shingled(spec.analyzer, size), shingled(spec.search_analyzer, size))
            for size in range(2, largest + 1)
        }
        analyzers["_index_prefix"] = (
            shingled(spec.analyzer, largest, prefixes=True),
            shingled(spec.search_analyzer, largest),
        )
        fields = []
        for name, (analyzer, search_analyzer) in analyzers.items():
            definition: Definition = {
                "type": "text",
                "analyzer": analyzer,
                "search_analyzer": search_analyzer,
            }
            if similarity is not None:
                definition["similarity"] = similarity
            if not spec.indexed:
                definition["index"] = False
            field = self._field(definition, f"{spec.path}.{name}", nested, spec.path)
            self.nodes[field.spec.path] = field
            fields.append(field)
        return fields

    def _spec(self, definition: Definition, path: str, nested: str | None) -> FieldSpec:
        kind = FIELD_TYPES[definition["type"]]
        options = {
            name: definition.get(name, parameter.default) for name, parameter in kind.parameters.items()
        }
        if self._limits.ignores_malformed and "ignore_malformed" in options:
            options["ignore_malformed"] = definition.get("ignore_malformed", True)
        if "ignore_above" not in definition and options.get("ignore_above") == INT_MAX:
            options["ignore_above"] = self._limits.ignore_above
        if not self._limits.coerces and "coerce" in options:
            options["coerce"] = definition.get("coerce", False)
        if kind.name == "dense_vector":
            options["similarity"] = similarity_of(options)
        if kind.name == "token_count":
            options["counts"] = self._counts(options)
        if options.get("normalizer"):
            options["normalize"] = self._normalizer(options["normalizer"], path)
        if kind.name == "version":
            options["normalize"] = version_term
        if kind.storage is Storage.TEXT or kind.storage is Storage.TERMS:
            options["scores_by"] = self._similarity(options.get("similarity"), path)
        analyzer, search_analyzer = self._analyzer_names(definition, kind)
        is_text = kind.storage is Storage.TEXT
        indexed = options.get("index", True) and kind.storage is not Storage.NONE
        return FieldSpec(
            path,
            kind.name,
            kind.storage,
            indexed,
            indexed and options.get("fielddata", False)
            if is_text
            else options.get("doc_values", kind.storage is not Storage.NONE),
            analyzer,
            search_analyzer,
            nested,
            options,
        )

    def _analyzer_names(self, definition: Definition, kind: FieldType) -> tuple[str, str]:
        if kind.storage is not Storage.TEXT and kind.name != "completion":
            return "keyword", "keyword"
        for name in ("analyzer", "search_analyzer", "search_quote_analyzer"):
            if name in definition:
                self._check_analyzer(definition[name])
        if "analyzer" not in definition and kind.name == "completion":
            return "simple", str(definition.get("search_analyzer", "simple"))
        if "analyzer" not in definition:
            return self._default, str(definition.get("search_analyzer", self._default_search))
        analyzer = str(definition["analyzer"])
        return analyzer, str(definition.get("search_analyzer", analyzer))

    def _check_analyzer(self, name: str) -> None:
        try:
            self._analyzers.analyzer(name)
        except SearchError as error:
            raise unparsable(error) from None

    def _normalizer(self, name: str, path: str) -> Callable[[str], str]:
        try:
            return self._analyzers.normalizer(name).normalize
        except SearchError:
            missing = mapper_parsing(f"normalizer [{name}] not found for field [{path.rpartition('.')[2]}]")
            raise unparsable(missing) from None

    def _similarity(self, name: str | None, path: str) -> AnySimilarity:
        try:
            return self._analyzers.similarity(name)
        except SearchError:
            missing = mapper_parsing(
                f"Unknown Similarity type [{name}] for field [{path.rpartition('.')[2]}]"
            )
            raise unparsable(missing) from None


def _defined_twice(path: str) -> SearchError:
    """A field of an object with `subobjects: false`, and a multi-field."""
    return mapper_parsing(f"Field [{path}] is defined more than once")


def _check_null_value(node: FieldNode) -> None:
    """A null_value that is none fails here, and not with the first document that lacks the field."""
    value = node.spec.options.get("null_value")
    try:
        if value is not None:
            node.read(value)
    except SearchError as error:
        raise unparsable(
            mapper_parsing(f"Error parsing [null_value] on field [{node.spec.path}]: {error.reason}", error)
        ) from None


_SPLITS: dict[str, Callable[[int], tuple[int, int]]] = {
    "date_nanos": lambda nanos: (nanos // MS_NANOS, nanos),
    "unsigned_long": lambda number: (min(number, 2**63 - 1), number - 2**63),
}
_OBJECT_SPEC = FieldSpec("", "object", Storage.NONE)


def _column(spec: FieldSpec) -> str | None:
    """Where values go that can be searched or sorted by."""
    if spec.type == "binary":
        return "exact" if spec.doc_values or spec.options["store"] else None
    if spec.storage is Storage.NONE or spec.type == "constant_keyword":
        return None
    if spec.storage is Storage.CODES:
        return "texts" if spec.type in FEATURES_TYPES else "terms"
    if spec.storage is Storage.VECTORS or spec.indexed or spec.doc_values:
        return "texts" if spec.storage is Storage.TEXT else str(spec.storage.value)
    return None
