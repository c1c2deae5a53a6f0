"""One JSON document through a compiled mapping: its values by path, and its nested objects."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from graphdb.search.errors import SearchError, illegal_argument
from graphdb.search.fields import DOC_COUNT, ParsedDocument, TextTokens
from graphdb.search.mapping.compiled import Compiled
from graphdb.search.mapping.completions import completion_terms
from graphdb.search.mapping.flat_objects import has_objects
from graphdb.search.mapping.joins import join_of, parent_path
from graphdb.search.mapping.mapping_definition import MappingLimits
from graphdb.search.mapping.nodes import AliasNode, FieldNode, Node, ObjectNode
from graphdb.search.mapping.percolators import terms_path
from graphdb.search.mapping.readers import points_of, text_of
from graphdb.search.mapping.shapes import shape_of, shape_term
from graphdb.search.mapping.types import READS_OBJECTS
from graphdb.search.mapping.vectors import vector_of
from graphdb.search.mapping.weighted_features import FEATURES_TYPES, feature_tokens, features_of
from graphdb.search.mapping.wildcards import flat
from graphdb.search.protection import ALLOW_SIDS, listed_sids

__all__ = ["METADATA_FIELDS", "read_document"]

_METADATA = "_id _index _source _routing _field_names _ignored _seq_no _version _nested_path"
METADATA_FIELDS = frozenset(_METADATA.split(" "))
_ReadQuery = Callable[[Any], tuple[str, list[str]]]
_PREVIEW_LENGTH_MAX = 1000
_PREVIEW_DEPTH_MAX = 20


def read_document(
    mapping: Compiled,
    source: Mapping[str, Any],
    doc_id: str | None,
    limits: MappingLimits,
    read_query: _ReadQuery,
) -> tuple[ParsedDocument, bool]:
    """The document, and whether it has fields that dynamic mapping should see first: then it is incomplete.
    read_query reads what a field of type percolator has, see `read_stored_query`.

    Errors: document_parsing_exception.
    """
    document, takes = ParsedDocument(), mapping.root.takes
    reading = None
    for name, member in source.items():
        take = takes.get(name)
        if take is not None and take(member, document):
            continue
        if name == ALLOW_SIDS:  # no mapping has it
            document.column("terms")[ALLOW_SIDS] = listed_sids(member)
            continue
        if name == DOC_COUNT:  # nor this
            if member is not None:
                document.column("ints")[DOC_COUNT] = [_doc_count(member)]
            continue
        if reading is None:
            _check_names(source)
            reading = _Reading(mapping, document, doc_id, limits, source, read_query)
        reading.member(mapping.root, name, member, document)
    return document, reading is not None and reading.has_unknown


def _check_names(source: Mapping[str, Any]) -> None:
    for name in METADATA_FIELDS.intersection(source):
        raise _document_error(
            f"Field [{name}] is a metadata field and cannot be added inside a document. Use the index API "
            "request parameters."
        )


def _doc_count(value: Any) -> int:
    """For how many documents this one stands."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 2**31:
        raise _document_error(
            f"[{DOC_COUNT}] field must be a positive integer below 2^31, and is [{str(value)[:100]}]"
        )
    return value


class _Reading:
    """The walk. scopes: the document that fields of each nested path go to at this moment, by path."""

    def __init__(
        self,
        mapping: Compiled,
        root: ParsedDocument,
        doc_id: str | None,
        limits: MappingLimits,
        source: Mapping[str, Any],
        read_query: _ReadQuery,
    ) -> None:
        self.root, self._source, self._read_query = root, source, read_query
        self.has_unknown = False
        self._mapping, self._limits, self._doc_id = mapping, limits, doc_id
        self._scopes: dict[str | None, ParsedDocument] = {None: self.root}
        self._nested_objects = 0

    @property
    def _name(self) -> str:
        """For errors."""
        return "document" if self._doc_id is None else f"document with id '{self._doc_id}'"

    def members(self, node: ObjectNode, value: Mapping[str, Any], out: ParsedDocument) -> None:
        for name, member in value.items():
            take = node.takes.get(name)
            if take is None or not take(member, out):
                self.member(node, name, member, out)

    def member(self, node: ObjectNode, name: str, value: Any, out: ParsedDocument) -> None:
        """One that is no simple value."""
        child = node.children.get(name)
        if node.is_flat:
            self._flat(node, child, name, value, out)
        elif child is not None:
            self._child(child, name, value, out)
        elif "." in name:
            head, _, rest = name.partition(".")
            self.members(_only(node, head), {head: {rest: value}}, out)
        else:
            self._unknown(node, name, value)

    def _unknown(self, node: ObjectNode, name: str, value: Any) -> None:
        """`strict` refuses nulls too. With `runtime` objects stay unknown: only what is in them counts."""
        if node.dynamic == "false" or self.has_unknown:
            return
        path = f"{node.path}.{name}" if node.path else name
        if node.dynamic == "runtime":
            self.has_unknown = self._has_new(path, value)
        elif path not in self._mapping.runtime or isinstance(value, dict):
            self.has_unknown = node.dynamic == "strict" or (value is not None and value != [])

    def _has_new(self, path: str, value: Any) -> bool:
        if isinstance(value, dict):
            return any(self._has_new(f"{path}.{name}", member) for name, member in value.items())
        if isinstance(value, list):
            return any(self._has_new(path, item) for item in flat(value))
        return value is not None and path not in self._mapping.runtime

    def _flat(self, node: ObjectNode, child: Node | None, name: str, value: Any, out: ParsedDocument) -> None:
        """A member of an object that has no objects: those in it are more of its own fields."""
        reads = isinstance(child, FieldNode) and child.spec.type in READS_OBJECTS
        if reads or not has_objects(value):
            if child is not None:
                self._child(child, name, value, out)
            else:
                self._unknown(node, name, value)
            return
        for item in flat(value):
            if not isinstance(item, dict):
                self._flat(node, child, name, item, out)
                continue
            self.has_unknown |= child is None and node.dynamic == "strict"
            for inner, member in item.items():
                self.member(node, f"{name}.{inner}", member, out)

    def _child(self, node: Node, name: str, value: Any, out: ParsedDocument) -> None:
        if isinstance(node, FieldNode):
            self._field_and_copies(node, value, out)
        elif isinstance(node, ObjectNode):
            if node.enabled:
                self._objects(node, name, value, out)
        else:
            raise self._alias_error(node)

    def _objects(self, node: ObjectNode, name: str, value: Any, out: ParsedDocument) -> None:
        for item in flat(value):
            if item is None:
                continue
            if not isinstance(item, dict):
                raise _document_error(
                    f"object mapping for [{node.path}] tried to parse field [{name}] as object, but found a "
                    "concrete value"
                )
            if node.is_nested:
                self._nested(node, item, out)
            else:
                self.members(node, item, out)

    def _nested(self, node: ObjectNode, value: Mapping[str, Any], out: ParsedDocument) -> None:
        self._nested_objects += 1
        limit = self._limits.nested_objects
        if self._nested_objects > limit:
            raise _document_error(
                f"The number of nested documents has exceeded the allowed limit of [{limit}]. This limit can "
                "be set by changing the [index.mapping.nested_objects.limit] index level setting."
            )
        child = ParsedDocument()
        out.children.append((node.path, child))
        self._scopes[node.path] = child
        self.members(node, value, child)
        if node.in_parent:
            self._absorb(child, out)
        if node.in_root and not (node.in_parent and out is self.root):
            self._absorb(child, self.root)

    def _absorb(self, child: ParsedDocument, out: ParsedDocument) -> None:
        """include_in_parent and include_in_root: the fields once more, outside."""
        for path in [*child.texts, *child.uncut]:
            node = self._mapping.nodes[path]
            assert isinstance(node, FieldNode)
            if node.spec.type in FEATURES_TYPES:
                out.column("texts").setdefault(path, child.texts[path])
                continue
            tokens = _tokens(child, node)
            assert tokens is not None
            first = tokens.positions[0] if tokens.positions else 0
            shifted = [position - first for position in tokens.positions]
            _append(out, node, TextTokens(list(tokens.terms), shifted, tokens.length))
        for column in ("terms", "ints", "exact", "floats", "points"):
            for path, values in getattr(child, column).items():
                out.column(column).setdefault(path, []).extend(values)

    def _field_and_copies(self, node: FieldNode, value: Any, out: ParsedDocument) -> None:
        self._field(node, value, out)
        for path in node.copy_to if value is not None else ():
            target = self._mapping.nodes.get(path)
            scope = self._scopes.get(target.spec.nested) if isinstance(target, FieldNode) else None
            if isinstance(target, FieldNode) and scope is not None:
                self._field(target, value, scope)
            elif isinstance(target, AliasNode):
                raise _document_error(f"Cannot copy to a field alias [{path}].")
            elif target is None:
                self.has_unknown |= (
                    self._mapping.root.dynamic != "false" and path not in self._mapping.runtime
                )

    def _field(self, node: FieldNode, value: Any, out: ParsedDocument) -> None:
        type_name = node.spec.type
        if type_name == "dense_vector":
            self._vector(node, value, out)
        elif type_name == "geo_point":
            self._points(node, value, out)
        elif type_name == "flattened":
            self._flattened(node, value, out)
        elif type_name == "join":
            self._join(node, value, out)
        elif type_name == "percolator":
            self._stored_query(node, value, out)
        elif type_name == "geo_shape":
            self._shapes(node, value, out)
        elif type_name in FEATURES_TYPES:
            self._features(node, value, out)
        elif type_name == "completion":
            self._completion(node, value, out)
        elif type(value) is list:
            for item in flat(value):
                self._value(node, item, out)
        else:
            self._value(node, value, out)

    def _value(self, node: FieldNode, value: Any, out: ParsedDocument) -> None:
        """One value of one field and of its multi-fields."""
        given = node.spec.options.get("null_value") if value is None else value
        if given is not None:
            try:
                self._store(node, given, out)
            except SearchError as error:
                self._malformed(node, given, error, out)
        for sub in node.fields:
            self._field(sub, value, out)

    def _store(self, node: FieldNode, value: Any, out: ParsedDocument) -> None:
        path = node.spec.path
        if (
            node.ignore_above is not None
            and len(value if isinstance(value, str) else text_of(value)) > node.ignore_above
        ):
            out.ignored.append(path)
            return
        stored = node.read(value)
        if node.spec.type == "constant_keyword":
            self.has_unknown |= node.spec.options["value"] is None
        if stored is None or node.column is None:
            return
        if node.split is not None:
            near, exact = node.split(stored)
            out.column("ints").setdefault(path, []).append(near)
            out.column("exact").setdefault(path, []).append(exact)
        elif node.tokens is None:
            out.column(node.column).setdefault(path, []).append(stored)
        elif node.is_plain and stored.isascii() and path not in out.texts and path not in out.uncut:
            out.column("uncut")[path] = stored
        else:
            terms, positions = node.tokens(stored)
            length = _length(positions) if node.has_lengths else 0
            _append(out, node, TextTokens(terms, positions, length))

    def _malformed(self, node: FieldNode, value: Any, error: SearchError, out: ParsedDocument) -> None:
        """Left out where the field says so, else the document's end."""
        if node.spec.options.get("ignore_malformed"):
            if node.spec.path not in out.ignored:
                out.ignored.append(node.spec.path)
            return
        raise self._field_error(node, value, error)

    def _points(self, node: FieldNode, value: Any, out: ParsedDocument) -> None:
        given = node.spec.options["null_value"] if value is None else value
        if given is not None:
            try:
                points = points_of(given, node.spec.path, node.spec.options["ignore_z_value"])
            except SearchError as error:
                self._malformed(node, given, error, out)
            else:
                if points and node.column is not None:
                    out.column("points").setdefault(node.spec.path, []).extend(points)
        for sub in node.fields:
            if sub.spec.type == "geo_point":
                self._field(sub, value, out)

    def _vector(self, node: FieldNode, value: Any, out: ParsedDocument) -> None:
        if value is None:
            return
        path, options = node.spec.path, node.spec.options
        if options["dims"] is None:
            self.has_unknown = True
            return
        try:
            if path in out.vectors:
                raise illegal_argument(
                    f"Field [{path}] of type [dense_vector] can't be used in multivalued fields"
                )
            out.column("vectors")[path] = vector_of(
                value, path, options["dims"], options["similarity"], options["element_type"], self._name
            )
        except SearchError as error:
            raise self._field_error(node, value, error) from None

    def _join(self, node: FieldNode, value: Any, out: ParsedDocument) -> None:
        if value is None:
            return
        path = node.spec.path
        try:
            if path in out.terms:
                raise illegal_argument(f"join field [{path}] takes one value")
            name, parent = join_of(value, path, node.spec.options["relations"])
        except SearchError as error:
            raise self._field_error(node, value, error) from None
        out.column("terms")[path] = [name]
        if parent is not None:
            out.column("terms")[parent_path(path)] = [parent]

    def _stored_query(self, node: FieldNode, value: Any, out: ParsedDocument) -> None:
        if value is None:
            return
        path = node.spec.path
        try:
            if path in out.terms:
                raise illegal_argument("a document can only contain one percolator query")
            query, required = self._read_query(value)
        except SearchError as error:
            raise self._field_error(node, value, error) from None
        terms = out.column("terms")
        terms[path] = [query]
        if required:
            terms[terms_path(path)] = required

    def _shapes(self, node: FieldNode, value: Any, out: ParsedDocument) -> None:
        """All shapes of a document are one term."""
        given = [item for item in flat(value) if item is not None] if isinstance(value, list) else [value]
        if value is None or not given:
            return
        path, ignore_z = node.spec.path, node.spec.options["ignore_z_value"]
        try:
            if path in out.terms:
                raise illegal_argument(f"[geo_shape] field [{path}] takes its shapes as one array")
            shapes = [shape_of(item, ignore_z) for item in given]
        except SearchError as error:
            self._malformed(node, value, error, out)
        else:
            if node.column is not None:
                out.column("terms")[path] = [shape_term(shapes)]
        for sub in node.fields:
            if sub.spec.type == "geo_shape":
                self._field(sub, value, out)

    def _features(self, node: FieldNode, value: Any, out: ParsedDocument) -> None:
        if value is None:
            return
        path, positive = node.spec.path, node.spec.options.get("positive_score_impact", True)
        try:
            if path in out.texts:
                raise illegal_argument(f"[{node.spec.type}] field [{path}] takes one value in a document")
            if features := features_of(value, node.spec.type, positive):
                out.column("texts")[path] = feature_tokens(features)
        except SearchError as error:
            raise self._field_error(node, value, error) from None

    def _completion(self, node: FieldNode, value: Any, out: ParsedDocument) -> None:
        if value is None:
            return
        path = node.spec.path
        assert node.tokens is not None
        try:
            terms = completion_terms(value, path, node.spec.options, node.tokens, self._source)
        except SearchError as error:
            raise self._field_error(node, value, error) from None
        out.column("terms").setdefault(path, []).extend(terms)
        for sub in node.fields:
            self._field(sub, value, out)

    def _flattened(self, node: FieldNode, value: Any, out: ParsedDocument) -> None:
        """The leaves as keywords: all under the field, and each under the field and its key."""
        for item in flat(value):
            if item is None:
                continue
            try:
                if not isinstance(item, dict):
                    raise illegal_argument("Failed to parse object: expecting token of type [START_OBJECT]")
                self._leaves(node, item, node.spec.path, out, 1)
            except SearchError as error:
                raise self._field_error(node, value, error) from None

    def _leaves(
        self, node: FieldNode, value: Mapping[str, Any], path: str, out: ParsedDocument, depth: int
    ) -> None:
        options = node.spec.options
        if depth > options["depth_limit"]:
            raise illegal_argument(
                f"The provided [flattened] field [{node.spec.path}] exceeds the maximum depth limit of "
                f"[{options['depth_limit']}]."
            )
        for key, member in value.items():
            for item in flat(member):
                leaf = options["null_value"] if item is None else item
                if isinstance(leaf, dict):
                    self._leaves(node, leaf, f"{path}.{key}", out, depth + 1)
                elif leaf is not None and len(text := text_of(leaf)) <= options["ignore_above"]:
                    terms = out.column("terms")
                    terms.setdefault(node.spec.path, []).append(text)
                    terms.setdefault(f"{path}.{key}", []).append(text)

    def _field_error(self, node: FieldNode, value: Any, cause: SearchError) -> SearchError:
        return _document_error(
            f"failed to parse field [{node.spec.path}] of type [{node.spec.type}] in {self._name}. "
            f"Preview of field's value: '{_preview(value)}'",
            cause,
        )

    def _alias_error(self, node: AliasNode) -> SearchError:
        cause = illegal_argument(f"Cannot write to a field alias [{node.path}].")
        return _document_error(f"failed to parse field [{node.path}] of type [alias] in {self._name}", cause)


def _only(node: ObjectNode, name: str) -> ObjectNode:
    """The object with a single member: what `name.rest` may reach."""
    child = node.children.get(name)
    children = {} if child is None else {name: child}
    return ObjectNode(node.path, node.dynamic, nested=node.nested, children=children)


def _tokens(out: ParsedDocument, node: FieldNode) -> TextTokens | None:
    """Those that a field has so far."""
    uncut = out.uncut.get(node.spec.path)
    if uncut is None:
        return out.texts.get(node.spec.path)
    assert node.tokens is not None
    terms, positions = node.tokens(uncut)
    return TextTokens(terms, positions, len(positions))


def _append(out: ParsedDocument, node: FieldNode, tokens: TextTokens) -> None:
    """Add one value's tokens after those that are there."""
    path, there = node.spec.path, _tokens(out, node)
    if node.once:
        tokens = _first(tokens, set() if there is None else set(there.terms))
    if there is None:
        out.column("texts")[path] = tokens
        return
    if path in out.uncut:
        del out.column("uncut")[path]
        out.column("texts")[path] = there
    start = (there.positions[-1] if there.positions else -1) + node.gap + 1
    there.terms.extend(tokens.terms)
    there.positions.extend([start + position for position in tokens.positions])
    there.length += tokens.length


def _first(tokens: TextTokens, known: set[str]) -> TextTokens:
    """Each term where it stands first, without those that are known. As in Lucene, so many are the length."""
    firsts: dict[str, int] = {}
    for term, position in zip(tokens.terms, tokens.positions, strict=True):
        if term not in known:
            firsts.setdefault(term, position)
    return TextTokens(list(firsts), list(firsts.values()), len(firsts) if tokens.length else 0)


def _length(positions: list[int]) -> int:
    """Tokens that do not stand on the position of the one before; positions ascend."""
    return len(set(positions))


def _preview(value: Any) -> str:
    """How Java shows what JSON holds, `{a=1, b=[x, y]}`; no more than its beginning is ever made."""
    text = ""
    for piece in _preview_pieces(value, 0):
        text += piece
        if len(text) > _PREVIEW_LENGTH_MAX:
            return text[:_PREVIEW_LENGTH_MAX]
    return text


def _preview_pieces(value: Any, depth: int) -> Iterator[str]:
    if depth > _PREVIEW_DEPTH_MAX:
        yield "..."
    elif isinstance(value, dict):
        yield "{"
        for number, (key, item) in enumerate(value.items()):
            yield f"{', ' if number else ''}{key}="
            yield from _preview_pieces(item, depth + 1)
        yield "}"
    elif isinstance(value, list):
        yield "["
        for number, item in enumerate(value):
            yield ", " if number else ""
            yield from _preview_pieces(item, depth + 1)
        yield "]"
    else:
        yield "null" if value is None else text_of(value)


def _document_error(reason: str, cause: SearchError | None = None) -> SearchError:
    return SearchError("document_parsing_exception", reason, 400, None, cause)
