"""What the fields of a segment take, by what their arrays are for."""

from collections import Counter
from collections.abc import Collection

from graphdb.search.segments.array_segment import ArraySegment
from graphdb.search.segments.sections import Key

__all__ = ["USES", "field_sizes"]

USES = (
    "inverted_index",
    "stored_fields",
    "doc_values",
    "points",
    "norms",
    "term_vectors",
    "knn_vectors",
)
"""As Elasticsearch calls them. Queries for numbers read their column; it counts as `points` where the field
has it for nothing else. No `term_vectors` are kept: the terms of a document are made from its source.
"""

_METADATA = {
    "ids": ("_id", "stored_fields"),
    "id": ("_id", "inverted_index"),
    "sources": ("_source", "stored_fields"),
    "seq": ("_seq_no", "doc_values"),
    "versions": ("_version", "doc_values"),
    "nested": ("_nested_path", "inverted_index"),
    "parents": ("_nested_path", "doc_values"),
}
"""By the first word of a part's name, of the parts that belong to no field."""

_COLUMNS = frozenset({"ints", "floats", "exact", "points"})


def field_sizes(segment: ArraySegment, only_searched: Collection[str]) -> dict[str, Counter[str]]:
    """Bytes by field, and by USES. All arrays of the segment are counted but the name of its order.
    only_searched: the fields that cannot be sorted or aggregated.
    """
    sizes: dict[str, Counter[str]] = {}
    for key, array in segment.sections.items():
        found = _field_of(key)
        if found is not None:
            field, use = found
            if use == "doc_values" and field in only_searched:
                use = "points"
            sizes.setdefault(field, Counter())[use] += array.nbytes
    return sizes


def _field_of(key: Key) -> tuple[str, str] | None:
    storage, path, part = key
    if not path:
        return _METADATA.get(part.partition("_")[0])
    return path, _use_of(storage, part)


def _use_of(storage: str, part: str) -> str:
    if storage == "vectors":
        return "knn_vectors"
    if storage == "text":
        return "norms" if part in ("norms", "empty") else "inverted_index"
    is_column = storage in _COLUMNS or part.startswith("ordinal")
    return "doc_values" if is_column else "inverted_index"
