"""What most members of documents are, one simple value of a field: stored without a walk.

A `Take` is made once for a field, of what its type and its multi-fields need. It does what the walk in
`document.py` would, or nothing: objects, null, copies, and what is refused or left out is the walk's. So are
arrays, but for vectors, and for those of a field without multi-fields that is no text.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import hypot
from struct import Struct
from typing import Any

import numpy as np

from graphdb.search.errors import SearchError
from graphdb.search.fields import NO_VALUES, ParsedDocument
from graphdb.search.mapping.field_readers import TERM_BYTES_MAX
from graphdb.search.mapping.nodes import FieldNode, Take
from graphdb.search.mapping.readers import INTEGER_RANGES, Read
from graphdb.search.mapping.weighted_features import FEATURES_TYPES

__all__ = [
    "NUMBERS",
    "UNIT_TOLERANCE",
    "VECTOR_LENGTH_MAX",
    "VECTOR_LENGTH_MIN",
    "has_simple_values",
    "is_float_vector",
    "length_max_of",
    "stored_all_of",
    "stored_of",
    "take_of",
]

_WALKED = FEATURES_TYPES | frozenset(
    {"completion", "dense_vector", "geo_point", "flattened", "geo_shape", "join", "percolator"}
)
_SIMPLE = frozenset({str, int, float, bool})
_DAYS_MAX, _DAY_LENGTH = 4096, 10  # `2015-03-31`


def take_of(node: FieldNode) -> Take | None:
    """None where all of the field's values are the walk's."""
    fields = [node, *node.fields]
    if node.spec.type == "dense_vector":
        return _take_vector(node)
    if node.copy_to or not all(map(has_simple_values, fields)):
        return None
    if node.fields:
        return _take_several(fields)
    return _take_value(node) if node.tokens is None else _take_text(node.spec.path)


def has_simple_values(node: FieldNode) -> bool:
    """Whether a field, without its multi-fields, has values that need no walk."""
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
    path, column, one_of = node.spec.path, node.column or "", stored_of(node)

    def take(value: Any, out: ParsedDocument) -> bool:
        if type(value) is list:
            stored = list(map(one_of, value))
            if None in stored or not stored:
                return False
        else:
            one = one_of(value)
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


# A vector is taken whose length says all that is to be checked: within these bounds no element is infinite as
# a float32, and they are not all zero.
VECTOR_LENGTH_MIN, VECTOR_LENGTH_MAX = 1e-30, 1e30
UNIT_TOLERANCE = 9e-4  # of the squared length: less than what is allowed, so that rounding does not matter
NUMBERS = frozenset({int, float})


def is_float_vector(node: FieldNode) -> bool:
    """Of a dense_vector: whether it only takes vectors of floats, of a known length."""
    options = node.spec.options
    is_known = options["dims"] is not None and options["element_type"] == "float"
    return is_known and not node.copy_to and not node.fields


def _take_vector(node: FieldNode) -> Take | None:
    path, options = node.spec.path, node.spec.options
    dims: int | None = options["dims"]
    if dims is None or not is_float_vector(node):
        return None
    is_unit, packed = options["similarity"] == "dot_product", Struct(f"{dims}f").pack

    def take(value: Any, out: ParsedDocument) -> bool:
        if type(value) is not list or len(value) != dims or not NUMBERS.issuperset(map(type, value)):
            return False
        try:
            length = hypot(*value)
        except OverflowError:  # an integer of more than 1,024 bits
            return False
        if not VECTOR_LENGTH_MIN <= length <= VECTOR_LENGTH_MAX or path in out.vectors:
            return False
        if is_unit and abs(length * length - 1) > UNIT_TOLERANCE:
            return False
        out.column("vectors")[path] = np.frombuffer(packed(*value), np.float32)
        return True

    return take


def length_max_of(node: FieldNode) -> int | None:
    """Of a keyword that is stored as it is given: the characters that it may have for certain."""
    if node.spec.type != "keyword" or node.spec.options.get("normalize") is not None:
        return None
    allowed = TERM_BYTES_MAX if node.ignore_above is None else node.ignore_above
    return min(TERM_BYTES_MAX // 4, allowed)


def stored_of(node: FieldNode) -> Callable[[Any], Any]:
    """What a field that is no text stores for a value, None where the walk is to tell. Quick for values that
    are stored as they are.
    """
    kind, any_stored_of = node.spec.type, _any_stored_of(node)
    if (length_max := length_max_of(node)) is not None:
        return lambda value: (
            value if type(value) is str and len(value) <= length_max else any_stored_of(value)
        )
    if kind in INTEGER_RANGES and node.ignore_above is None:
        low, high = INTEGER_RANGES[kind]
        return lambda value: value if type(value) is int and low <= value <= high else any_stored_of(value)
    return any_stored_of


def stored_all_of(node: FieldNode) -> Callable[[Sequence[Any]], list[Any]]:
    """`stored_of` for many values. Days come again and again: most of them are found with no call of Python
    code.
    """
    one_of = stored_of(node)
    if node.spec.type != "date":
        return lambda values: list(map(one_of, values))
    days: dict[str, Any] = {}

    def all_of(values: Sequence[Any]) -> list[Any]:
        try:
            found = list(map(days.get, values))
        except TypeError:  # of an array or an object
            return list(map(one_of, values))
        if None not in found:
            return found
        for place, value in enumerate(values):
            if found[place] is None:
                one = found[place] = one_of(value)
                if one is not None and type(value) is str and len(value) <= _DAY_LENGTH:
                    if len(days) >= _DAYS_MAX:
                        days.clear()
                    days[value] = one
        return found

    return all_of


def _any_stored_of(node: FieldNode) -> Callable[[Any], Any]:
    length_max = node.ignore_above
    read = _remembering(node.read) if node.spec.type == "date" else node.read

    def any_stored_of(value: Any) -> Any:
        kind = type(value)
        if kind not in _SIMPLE or (length_max is not None and (kind is not str or len(value) > length_max)):
            return None
        try:
            return read(value)
        except SearchError:
            return None

    return any_stored_of


def _remembering(read: Read) -> Read:
    """Days come again and again; a time is not worth the room."""
    days = lru_cache(maxsize=_DAYS_MAX)(read)
    return lambda value: days(value) if type(value) is str and len(value) <= _DAY_LENGTH else read(value)


def _take_several(fields: Sequence[FieldNode]) -> Take:
    """All of them store the value, or none does."""
    texts = [node.spec.path for node in fields if node.tokens is not None]
    others = [(node.spec.path, node.column or "", stored_of(node)) for node in fields if node.tokens is None]

    def take(value: Any, out: ParsedDocument) -> bool:
        stored = [one_of(value) for _, _, one_of in others]
        if None in stored or not all(_is_uncut(value, path, out) for path in texts):
            return False
        for path in texts:
            out.column("uncut")[path] = value
        for (path, column, _), one in zip(others, stored, strict=True):
            out.column(column).setdefault(path, []).append(one)
        return True

    return take
