"""What most members of documents are, one simple value of a field: stored without a walk.

A `Take` is made once for a field, of what its type and its multi-fields need. It does what the walk in
`document.py` would, or nothing: arrays, objects, null, copies, and what is refused or left out is the walk's.
"""

from collections.abc import Callable, Sequence
from typing import Any

from graphdb.search.errors import SearchError
from graphdb.search.fields import NO_VALUES, ParsedDocument
from graphdb.search.mapping.nodes import FieldNode, Take

__all__ = ["take_of"]

_WALKED = frozenset({"dense_vector", "geo_point", "flattened"})
_SIMPLE = frozenset({str, int, float, bool})


def take_of(node: FieldNode) -> Take | None:
    """None where all of the field's values are the walk's."""
    fields = [node, *node.fields]
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
        stored = stored_of(value)
        if stored is None:
            return False
        out.column(column).setdefault(path, []).append(stored)
        return True

    return take


def _stored_of(node: FieldNode) -> Callable[[Any], Any]:
    """What a field that is no text stores for a value, None where the walk is to tell."""
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
