"""`index.sort.*`: the order that an index keeps its documents in, checked.

The order is kept as a setting and changes no answer: a search that names no `sort` orders equal hits as they
were written, and one that names it sorts.

Source: `IndexSortConfig` of Elasticsearch 8.
"""

from graphdb.search.catalog.index_settings import Settings, words_setting
from graphdb.search.errors import illegal_argument
from graphdb.search.fields import Storage
from graphdb.search.mapping import Mapping as FieldMapping

__all__ = ["check_index_sort"]

_CHOICES = {
    "order": (("asc", "desc"), "Illegal sort order:"),
    "mode": (("min", "max"), "Illegal sort mode: "),
    "missing": (("_last", "_first"), "Illegal missing value:"),
}


def check_index_sort(settings: Settings, mapping: FieldMapping) -> None:
    """Errors: illegal_argument_exception for what an index of this mapping cannot be sorted by."""
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


def _check_field(path: str, mapping: FieldMapping) -> None:
    spec = mapping.field(path)
    if spec is None:
        raise illegal_argument(f"unknown index sort field:[{path[:200]}]")
    if spec.storage is Storage.TEXT or not spec.doc_values:
        raise illegal_argument(f"docvalues not found for index sort field:[{path}] of type [{spec.type}]")
    if spec.storage not in (Storage.INTS, Storage.FLOATS, Storage.TERMS) or spec.type == "half_float":
        raise illegal_argument(f"invalid index sort field:[{path}] of type [{spec.type}]")
