"""A mapping compiled for reading documents: a node for each field."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import hypot
from struct import Struct
from typing import Any, Protocol, TypeAlias

import numpy as np

from graphdb.search.errors import SearchError, illegal_argument, mapper_parsing
from graphdb.search.fields import NO_VALUES, FieldSpec, ParsedDocument, Storage, shingled
from graphdb.search.mapping.field_readers import TERM_BYTES_MAX, reader_of
from graphdb.search.mapping.instants import MS_NANOS
from graphdb.search.mapping.mapping_definition import Definition, MappingLimits, unparsable
from graphdb.search.mapping.readers import INTEGER_RANGES, Read, text_of
from graphdb.search.mapping.types import FIELD_TYPES, OBJECT_TYPES, FieldType
from graphdb.search.mapping.versions import version_term
from graphdb.search.mapping.weighted_features import FEATURES_TYPES
from graphdb.search.similarity import Similarity

__all__ = [
    "AliasNode",
    "Analyzer",
    "Analyzers",
    "Compiled",
    "FieldNode",
    "Node",
    "ObjectNode",
    "Take",
    "Tokens",
    "compiled",
    "take_of",
]

# The tree that documents are read with: objects, their fields, and aliases, which take no values.

Tokens: TypeAlias = Callable[[str], tuple[list[str], list[int]]]

Take: TypeAlias = Callable[[Any, ParsedDocument], bool]
"""Stores a value in a document, or does nothing and answers False (`simple_values.py`)."""


@dataclass(slots=True)
class FieldNode:
    """column: the member of ParsedDocument that takes the values, None where they are checked only."""

    spec: FieldSpec
    column: str | None
    read: Read
    split: Callable[[int], tuple[int, int]] | None = None  # a value as (ints, exact), see `ParsedDocument`
    tokens: Tokens | None = None  # of text, and of a completion
    is_plain: bool = False  # see `Analyzer`
    gap: int = 0  # positions between two values of text
    ignore_above: int | None = None
    fields: tuple["FieldNode", ...] = ()
    copy_to: tuple[str, ...] = ()


@dataclass(slots=True)
class AliasNode:
    path: str
    target: str


@dataclass(slots=True)
class ObjectNode:
    """dynamic is what holds here, inherited or not."""

    path: str  # empty at the root
    dynamic: str
    enabled: bool = True
    is_nested: bool = False
    nested: str | None = None  # path of the innermost nested object, this one too
    in_parent: bool = False
    in_root: bool = False
    children: dict[str, "Node"] = field(default_factory=dict)
    takes: dict[str, Take] = field(default_factory=dict)  # of those children that have one


Node: TypeAlias = FieldNode | AliasNode | ObjectNode


# What most members of documents are, one simple value of a field: stored without a walk.
#
# A `Take` is made once for a field, of what its type and its multi-fields need. It does what the walk in
# `document.py` would, or nothing: objects, null, copies, and what is refused or left out is the walk's. So are
# arrays, but for vectors and those of a field without multi-fields that is no text.

_WALKED = FEATURES_TYPES | frozenset(
    {"completion", "dense_vector", "geo_point", "flattened", "geo_shape", "join", "percolator"}
)
_SIMPLE = frozenset({str, int, float, bool})


def take_of(node: FieldNode) -> Take | None:
    """None where all of the field's values are the walk's."""
    fields = [node, *node.fields]
    if node.spec.type == "dense_vector":
        return _take_vector(node)
    if node.copy_to or not all(map(_has_simple_values, fields)):
        return None
    if node.fields:
        return _take_several(fields)
    return _take_value(node) if node.tokens is None else _take_text(node.spec.path)


def _has_simple_values(node: FieldNode) -> bool:
    if node.column is None or node.split is not None or node.spec.type in _WALKED:
        return False
    return node.is_plain or node.tokens is None


def _take_text(path: str) -> Take:
    def take(value: Any, out: ParsedDocument) -> bool:
        if not _is_uncut(value, path, out):
            return False
        if out.uncut is NO_VALUES:
            out.uncut = {path: value}
        else:
            out.uncut[path] = value
        return True

    return take


def _is_uncut(value: Any, path: str, out: ParsedDocument) -> bool:
    return type(value) is str and value.isascii() and path not in out.uncut and path not in out.texts


def _take_value(node: FieldNode) -> Take:
    path, column, stored_of = node.spec.path, node.column or "", _stored_of(node)

    def take(value: Any, out: ParsedDocument) -> bool:
        if type(value) is list:
            stored = list(map(stored_of, value))
            if None in stored or not stored:
                return False
        else:
            one = stored_of(value)
            if one is None:
                return False
            stored = [one]
        values = getattr(out, column)
        if values is NO_VALUES:
            setattr(out, column, {path: stored})
        elif path in values:
            values[path] += stored
        else:
            values[path] = stored
        return True

    return take


# A vector is taken whose length says all that is to be checked: within these bounds no element is infinite as a
# float32, and they are not all zero.
_LENGTH_MIN, _LENGTH_MAX = 1e-30, 1e30
_UNIT_TOLERANCE = 9e-4  # of the squared length: less than what is allowed, so that rounding does not matter
_NUMBERS = frozenset({int, float})


def _take_vector(node: FieldNode) -> Take | None:
    path, options = node.spec.path, node.spec.options
    dims: int | None = options["dims"]
    if dims is None or options["element_type"] != "float" or node.copy_to:
        return None
    is_unit, packed = options["similarity"] == "dot_product", Struct(f"{dims}f").pack

    def take(value: Any, out: ParsedDocument) -> bool:
        if type(value) is not list or len(value) != dims or not _NUMBERS.issuperset(map(type, value)):
            return False
        try:
            length = hypot(*value)
        except OverflowError:  # an integer of more than 1,024 bits
            return False
        if not _LENGTH_MIN <= length <= _LENGTH_MAX or path in out.vectors:
            return False
        if is_unit and abs(length * length - 1) > _UNIT_TOLERANCE:
            return False
        out.column("vectors")[path] = np.frombuffer(packed(*value), np.float32)
        return True

    return take


def _stored_of(node: FieldNode) -> Callable[[Any], Any]:
    """What a field that is no text stores for a value, None where the walk is to tell. Quick for values that
    are stored as they are.
    """
    kind, stored_of = node.spec.type, _any_stored_of(node)
    if kind == "keyword" and node.spec.options.get("normalize") is None:
        length_max = min(TERM_BYTES_MAX // 4, TERM_BYTES_MAX if node.ignore_above is None else node.ignore_above)
        return lambda value: value if type(value) is str and len(value) <= length_max else stored_of(value)
    if kind in INTEGER_RANGES and node.ignore_above is None:
        low, high = INTEGER_RANGES[kind]
        return lambda value: value if type(value) is int and low <= value <= high else stored_of(value)
    return stored_of


def _any_stored_of(node: FieldNode) -> Callable[[Any], Any]:
    read, length_max = node.read, node.ignore_above

    def stored_of(value: Any) -> Any:
        kind = type(value)
        if kind not in _SIMPLE or (length_max is not None and (kind is not str or len(value) > length_max)):
            return None
        try:
            return read(value)
        except SearchError:
            return None

    return stored_of


def _take_several(fields: Sequence[FieldNode]) -> Take:
    """All of them store the value, or none does."""
    texts = [node.spec.path for node in fields if node.tokens is not None]
    others = [(node.spec.path, node.column or "", _stored_of(node)) for node in fields if node.tokens is None]

    def take(value: Any, out: ParsedDocument) -> bool:
        stored = [stored_of(value) for _, _, stored_of in others]
        if None in stored or not all(_is_uncut(value, path, out) for path in texts):
            return False
        for path in texts:
            out.column("uncut")[path] = value
        for (path, column, _), one in zip(others, stored, strict=True):
            out.column(column).setdefault(path, []).append(one)
        return True

    return take


# The mapping as documents are read with it: a tree of nodes, and every field's FieldSpec by path.


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
    def similarity(self, name: str | None, /) -> Similarity: ...


@dataclass(slots=True)
class Compiled:
    """specs has objects too (Storage.NONE), but no aliases; nodes are all of them by path."""

    root: ObjectNode
    specs: dict[str, FieldSpec]
    nodes: dict[str, Node]
    aliases: dict[str, str]


def compiled(root: Definition, analyzers: Analyzers, limits: MappingLimits) -> Compiled:
    """Errors: mapper_parsing_exception, illegal_argument_exception (unknown analyzers, limits)."""
    build = _Build(analyzers, limits)
    top = ObjectNode("", root.get("dynamic", "true"))
    build.children(top, root["properties"], 1)
    build.check()
    return Compiled(top, build.specs, build.nodes, build.aliases)


class _Build:
    def __init__(self, analyzers: Analyzers, limits: MappingLimits) -> None:
        self.specs: dict[str, FieldSpec] = {}
        self.nodes: dict[str, Node] = {}
        self.aliases: dict[str, str] = {}
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
        if len(self.nodes) > limits.total_fields:
            raise limits.exceeded("total fields", limits.total_fields)
        nested = sum(isinstance(node, ObjectNode) and node.is_nested for node in self.nodes.values())
        if nested > limits.nested_fields:
            raise limits.exceeded("nested fields", limits.nested_fields)
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

    def children(self, parent: ObjectNode, properties: dict[str, Definition], depth: int) -> None:
        for name, definition in properties.items():
            path = f"{parent.path}.{name}" if parent.path else name
            self._check_name(name, path, depth)
            if definition["type"] in OBJECT_TYPES:
                node: Node = self._object(definition, path, parent, depth)
            elif definition["type"] == "alias":
                node = AliasNode(path, definition["path"])
                self.aliases[path] = definition["path"]
            else:
                node = self._field(definition, path, parent.nested)
                if (take := take_of(node)) is not None:
                    parent.takes[name] = take
            parent.children[name] = self.nodes[path] = node

    def _check_name(self, name: str, path: str, depth: int) -> None:
        limits = self._limits
        if depth > limits.depth:
            raise limits.exceeded("mapping depth", limits.depth, f" due to object field [{path[:200]}]")
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
        )
        self.specs[path] = FieldSpec(
            path, definition["type"], Storage.NONE, indexed=False, doc_values=False, nested=node.nested
        )
        self.children(node, definition["properties"], depth + 1)
        return node

    def _field(self, definition: Definition, path: str, nested: str | None) -> FieldNode:
        spec = self._spec(definition, path, nested)
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
            node.is_plain = analyzer.is_plain
        subs = []
        for name, given in definition.get("fields", {}).items():
            sub = self._field(given, f"{path}.{name}", nested)
            self.nodes[sub.spec.path] = sub
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
            field = self._field(definition, f"{spec.path}.{name}", nested)
            self.nodes[field.spec.path] = field
            fields.append(field)
        return fields

    def _spec(self, definition: Definition, path: str, nested: str | None) -> FieldSpec:
        kind = FIELD_TYPES[definition["type"]]
        options = {
            name: definition.get(name, parameter.default) for name, parameter in kind.parameters.items()
        }
        if kind.name == "dense_vector" and options["index"] and options["similarity"] is None:
            options["similarity"] = "cosine"
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
            return self._default, self._default_search
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

    def _similarity(self, name: str | None, path: str) -> Similarity:
        try:
            return self._analyzers.similarity(name)
        except SearchError:
            missing = mapper_parsing(
                f"Unknown Similarity type [{name}] for field [{path.rpartition('.')[2]}]"
            )
            raise unparsable(missing) from None


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
