"""Many documents that have only simple values, read field by field: one pass for a field in place of one
call for each of its values.

A `TakeAll` is made once for a field. It finds what the `Take` of the same field (`simple_values.py`) would,
and tells which values that would leave to the walk.
"""

import struct
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from graphdb.search.document_texts import LongNumbers
from graphdb.search.fields import Column
from graphdb.search.mapping.nodes import FieldNode, ObjectNode, TakeAll, Taken, TakeRows
from graphdb.search.mapping.readers import INTEGER_RANGES
from graphdb.search.mapping.simple_values import (
    NUMBERS,
    UNIT_TOLERANCE,
    VECTOR_LENGTH_MAX,
    VECTOR_LENGTH_MIN,
    has_simple_values,
    is_float_vector,
    length_max_of,
    stored_all_of,
)

__all__ = ["read_together", "take_all_of", "take_rows_of"]

_Values = Sequence[Any]


def read_together(
    root: ObjectNode, sources: Sequence[Mapping[str, Any]], numbers: Sequence[LongNumbers | None]
) -> tuple[list[Column], set[int]]:
    """The columns, by place among the sources; and the places of those that are to be read one by one. Where
    there are any, the columns are of no use. numbers: a member that each source lacks.
    """
    takes = root.takes_all
    columns: list[Column] = []
    refused: set[int] = set()
    names: set[str] = set().union(*sources)
    unknown = names - takes.keys()
    if unknown:
        refused.update(place for place, source in enumerate(sources) if not unknown.isdisjoint(source))
    for name in names - unknown:
        docs: Sequence[int] = range(len(sources))
        try:
            values = [source[name] for source in sources]
        except KeyError:
            docs = [doc for doc in docs if name in sources[doc]]
            values = [sources[doc][name] for doc in docs]
        found, odd = takes[name](docs, values)
        columns += found
        refused.update(docs[place] for place in odd)
    apart: dict[str, list[int]] = {}
    for place, one in enumerate(numbers):
        if one is not None:
            apart.setdefault(one.name, []).append(place)
    for name, docs in apart.items():
        take_rows = root.takes_rows.get(name)
        if take_rows is None or name in names:
            refused.update(docs)
            continue
        found, odd = take_rows(docs, [one.raw for place in docs if (one := numbers[place]) is not None])
        columns += found
        refused.update(docs[place] for place in odd)
    return columns, refused


def take_all_of(node: FieldNode) -> TakeAll | None:
    """None where there is no such function for the field."""
    fields = [node, *node.fields]
    if node.spec.type == "dense_vector":
        take_rows = take_rows_of(node)
        return None if take_rows is None else _take_vectors(take_rows, node.spec.options["dims"])
    if node.copy_to or not all(map(has_simple_values, fields)):
        return None
    takes = [_take_texts(one) if one.tokens is not None else _take_values(one) for one in fields]
    if len(takes) == 1:
        return takes[0] if node.tokens is not None else _with_arrays(takes[0])

    def take(docs: Sequence[int], values: _Values) -> Taken:
        taken = [one(docs, values) for one in takes]
        odd: set[int] = set().union(*(places for _, places in taken))
        return [column for columns, _ in taken for column in columns], odd

    return take


def _take_texts(node: FieldNode) -> TakeAll:
    path = node.spec.path

    def take(docs: Sequence[int], values: _Values) -> Taken:
        try:
            if "".join(values).isascii():
                return [Column("uncut", path, docs, values)], ()
        except TypeError:  # some are no texts
            pass
        return [], [
            place for place, value in enumerate(values) if type(value) is not str or not value.isascii()
        ]

    return take


def _take_values(node: FieldNode) -> TakeAll:
    """One value each."""
    path, storage, are_stored = node.spec.path, node.column or "", _are_stored(node)
    all_of = stored_all_of(node)

    def take(docs: Sequence[int], values: _Values) -> Taken:
        if not are_stored(values):
            values = all_of(values)
            if None in values:
                return [], [place for place, value in enumerate(values) if value is None]
        return [Column(storage, path, docs, values)], ()

    return take


def _with_arrays(take: TakeAll) -> TakeAll:
    """Arrays of values, too; each has one at least."""

    def take_arrays(docs: Sequence[int], values: _Values) -> Taken:
        if list not in set(map(type, values)):
            return take(docs, values)
        arrays = [value if type(value) is list else [value] for value in values]
        counts = list(map(len, arrays))
        columns, odd = take(docs, list(chain.from_iterable(arrays)))
        if odd or 0 in counts:
            empty = (place for place, count in enumerate(counts) if not count)
            return [], {*empty, *np.searchsorted(np.cumsum(counts), list(odd), side="right").tolist()}
        return [one._replace(counts=counts) for one in columns], ()

    return take_arrays


def _are_stored(node: FieldNode) -> Callable[[_Values], bool]:
    """Whether all of these values are stored as they are; False where that is not certain at once."""
    kind = node.spec.type
    if (length_max := length_max_of(node)) is not None:
        return lambda values: set(map(type, values)) == {str} and max(map(len, values)) <= length_max
    if kind in INTEGER_RANGES and node.ignore_above is None:
        low, high = INTEGER_RANGES[kind]
        return lambda values: set(map(type, values)) == {int} and low <= min(values) and max(values) <= high
    return lambda values: False


def take_rows_of(node: FieldNode) -> TakeRows | None:
    """None where there is no such function for the field."""
    if node.spec.type != "dense_vector" or not is_float_vector(node):
        return None
    path, dims = node.spec.path, node.spec.options["dims"]
    is_unit = node.spec.options["similarity"] == "dot_product"

    def take(docs: Sequence[int], rows: Sequence[bytes]) -> Taken:
        odd = [place for place, row in enumerate(rows) if len(row) != 8 * dims]
        if odd:
            return [], odd
        vectors = np.frombuffer(b"".join(rows)).reshape(-1, dims)
        with np.errstate(over="ignore", invalid="ignore"):
            squares = np.einsum("ij,ij->i", vectors, vectors)
            fits = (squares >= VECTOR_LENGTH_MIN**2) & (squares <= VECTOR_LENGTH_MAX**2)
            if is_unit:
                fits &= np.abs(squares - 1) <= UNIT_TOLERANCE
            if not fits.all():
                return [], np.flatnonzero(~fits).tolist()
            return [Column("vectors", path, docs, vectors.astype(np.float32))], ()

    return take


def _take_vectors(take_rows: TakeRows, dims: int) -> TakeAll:
    pack = struct.Struct(f"{dims}d").pack

    def take(docs: Sequence[int], values: _Values) -> Taken:
        odd = [place for place, value in enumerate(values) if type(value) is not list or len(value) != dims]
        if odd:
            return [], odd
        if not NUMBERS.issuperset(map(type, chain.from_iterable(values))):
            are_numbers = (NUMBERS.issuperset(map(type, value)) for value in values)
            return [], [place for place, is_right in enumerate(are_numbers) if not is_right]
        try:
            return take_rows(docs, [pack(*value) for value in values])
        except struct.error:  # an integer of more than 1,024 bits
            return [], range(len(values))

    return take
