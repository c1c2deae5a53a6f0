"""`index.sort.*`: the order that an index keeps its documents in, within each segment.

Source: `IndexSortConfig` of Elasticsearch 8, `DocumentMapper.validate` for nested fields.
"""

from graphdb.search.catalog.index_settings import Settings, words_setting
from graphdb.search.errors import illegal_argument
from graphdb.search.fields import Storage
from graphdb.search.index_order import IndexOrder, OrderField, column_of
from graphdb.search.mapping import Mapping as FieldMapping

__all__ = ["checked_order", "order_of"]

_CHOICES = {
    "order": (("asc", "desc"), "Illegal sort order:"),
    "mode": (("min", "max"), "Illegal sort mode: "),
    "missing": (("_last", "_first"), "Illegal missing value:"),
}


def checked_order(settings: Settings, mapping: FieldMapping) -> IndexOrder:
    """That of a new index. Errors: illegal_argument_exception for what an index of this mapping cannot be
    sorted by.
    """
    paths = [path for path in words_setting(settings, "sort.field") if path]
    for name, (choices, problem) in _CHOICES.items():
        values = [value for value in words_setting(settings, f"sort.{name}") if value]
        if values and len(values) != len(paths):
            listed = f"index.sort.field:[{', '.join(paths)}] index.sort.{name}:[{', '.join(values)}]"
            raise illegal_argument(f"{listed}, size mismatch")
        for value in values:
            if value not in choices:
                raise illegal_argument(f"{problem}[{value[:100]}], must be one of [{', '.join(choices)}]")
    for path in paths:
        _check_field(path, mapping)
    return order_of(settings, mapping)


def order_of(settings: Settings, mapping: FieldMapping) -> IndexOrder:
    """That of an index, whose settings have been checked."""
    paths = [path for path in words_setting(settings, "sort.field") if path]
    orders, modes, missing = (
        [value for value in words_setting(settings, f"sort.{name}") if value] for name in _CHOICES
    )
    fields = []
    for number, path in enumerate(paths):
        spec = mapping.field(path)
        column = None if spec is None else column_of(spec)
        if column is None:
            break
        descending = bool(orders) and orders[number] == "desc"
        mode = modes[number] if modes else "max" if descending else "min"
        fields.append(OrderField(path, column, descending, mode, not missing or missing[number] == "_last"))
    return tuple(fields)


def _check_field(path: str, mapping: FieldMapping) -> None:
    spec = mapping.field(path)
    if spec is None:
        raise illegal_argument(f"unknown index sort field:[{path[:200]}]")
    if spec.path != path:
        raise illegal_argument(f"Cannot use alias [{path}] as an index sort field")
    if spec.nested is not None:
        raise illegal_argument(
            f"cannot apply index sort to field [{path}] under nested object [{spec.nested}]"
        )
    if spec.storage is Storage.TEXT or not spec.doc_values:
        raise illegal_argument(f"docvalues not found for index sort field:[{path}] of type [{spec.type}]")
    if spec.storage not in (Storage.INTS, Storage.FLOATS, Storage.TERMS) or spec.type == "half_float":
        raise illegal_argument(f"invalid index sort field:[{path}] of type [{spec.type}]")
