"""`children` and `parent`: from documents in buckets to those that a `join` field relates to them.

What is related is found by the ids of parents in all segments and shards, so it may be anywhere. The memory
is in proportion to the parents, as for `has_child`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from graphdb.search.aggregations.aggregation import Aggregation, Definition, Rows, Scope, SingleBucket
from graphdb.search.aggregations.columns import spread
from graphdb.search.deadline import checkpoint
from graphdb.search.errors import parsing
from graphdb.search.leaf_reader import Bools, Leaf, Longs, Segment
from graphdb.search.mapping.joins import children_of, join_field, parent_path

__all__ = ["Related", "parse_related"]

Parent = tuple[str, str]
"""The name of an index, and the id of a document there."""

_STEP = 1_024  # ids between two looks at the deadline


@dataclass(frozen=True, slots=True)
class _Side:
    """A leaf of an index that has the relation. path: of its join field; parent: the name of the parents."""

    number: int
    leaf: Leaf
    index: str
    path: str
    parent: str


@dataclass(frozen=True)
class Related(SingleBucket):
    """The children with one name of the documents in a bucket; with up, the parents of such children.

    A document is once in a bucket. Where no index has the relation, buckets are empty, as in Elasticsearch.
    """

    child: str
    up: bool

    @property
    def typed(self) -> str:
        return "parent" if self.up else "children"

    def narrowed(self, scope: Scope, rows: Rows) -> Rows:
        numbers, starts, owners = _of_all_shards(scope, *self._parents(scope, rows))
        docs, places = self._documents(scope, numbers)
        shown = np.zeros(scope.columns.size, np.bool_)
        shown[scope.shown()] = True
        docs, places = docs[shown[docs]], places[shown[docs]]
        members, positions = spread(starts, places)
        # Document first, so that the documents stay in the order of their leaves.
        both = np.unique(docs[members] * rows.count + owners[positions])
        return Rows(both // max(rows.count, 1), both % max(rows.count, 1), rows.count)

    def _sides(self, scope: Scope) -> Iterator[_Side]:
        own = scope.searcher.own
        for number, leaf in enumerate(scope.columns.leaves):
            checkpoint()
            index = own.part(leaf)[2]
            spec = join_field(index.mapping.match("*"))
            if spec is None:
                continue
            for parent, names in children_of(spec.options["relations"]).items():
                if self.child in names:
                    yield _Side(number, leaf, index.index_name, spec.path, parent)

    def _parents(self, scope: Scope, rows: Rows) -> tuple[list[Parent], Longs, Longs]:
        """(parents, numbers of them, owners): which parents the documents in each bucket are or have."""
        parts = {number: part for _, number, part in scope.columns.parts(rows.docs)}
        known: dict[Parent, int] = {}
        pairs = [np.zeros(0, np.int64)]
        for side in self._sides(scope):
            part, segment = parts.get(side.number), side.leaf.segment
            if part is None:
                continue
            docs, owners = rows.docs[part] - side.leaf.base, rows.owners[part]
            kept = _named(segment, side.path, self.child if self.up else side.parent)[docs]
            docs, owners = docs[kept], owners[kept]
            ids, inverse, which = _parents_above(segment, side.path, docs) if self.up else _own(segment, docs)
            found = [known.setdefault((side.index, doc_id), len(known)) for doc_id in ids]
            pairs.append(np.array(found, np.int64)[inverse] * rows.count + owners[which])
        both = np.unique(np.concatenate(pairs))
        return [*known], both // max(rows.count, 1), both % max(rows.count, 1)

    def _documents(self, scope: Scope, numbers: dict[Parent, int]) -> tuple[Longs, Longs]:
        """(documents, numbers): the children of these parents, or they themselves, deleted ones too."""
        docs, places = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for side in self._sides(scope):
            segment = side.leaf.segment
            named = _named(segment, side.path, side.parent if self.up else self.child)
            index = segment.terms(parent_path(side.path))
            for step, ((name, doc_id), number) in enumerate(numbers.items()):
                if not step % _STEP:
                    checkpoint()
                if name != side.index:
                    continue
                if self.up:
                    doc = segment.find(doc_id)
                    found = np.array([doc] if doc >= 0 else [], np.int64)
                else:
                    term = -1 if index is None else index.dictionary.find(doc_id)
                    if index is None or term < 0:
                        continue
                    found = np.asarray(index.postings(term), np.int64)
                found = found[named[found]]
                docs.append(found + side.leaf.base)
                places.append(np.full(len(found), number, np.int64))
        return np.concatenate(docs), np.concatenate(places)


def _of_all_shards(
    scope: Scope, parents: list[Parent], numbers: Longs, owners: Longs
) -> tuple[dict[Parent, int], Longs, Longs]:
    """(parents by number, starts, owners): parent n is in the buckets owners[starts[n]:starts[n + 1]]."""
    known: dict[Parent, int] = {}
    parts = scope.gathered("parents", (parents, numbers, owners))
    renumbered = [
        np.array([known.setdefault(parent, len(known)) for parent in own], np.int64)[places]
        for own, places, _ in parts
    ]
    every, of_each = np.concatenate(renumbered), np.concatenate([part[2] for part in parts])
    order = np.argsort(every, kind="stable")
    return known, np.searchsorted(every[order], np.arange(len(known) + 1)), of_each[order]


def _named(segment: Segment, path: str, name: str) -> Bools:
    """Which documents have this name in the join field."""
    mask, index = np.zeros(segment.size, np.bool_), segment.terms(path)
    number = -1 if index is None else index.dictionary.find(name)
    if index is not None and number >= 0:
        mask[index.postings(number)] = True
    return mask


Ids = tuple[Sequence[str], Longs, Longs]
"""(ids, inverse, which): the document at place which[i] of a list gives ids[inverse[i]]."""


def _own(segment: Segment, docs: Longs) -> Ids:
    used, inverse = np.unique(docs, return_inverse=True)
    return [segment.doc_id(doc) for doc in used.tolist()], inverse, np.arange(len(docs))


def _parents_above(segment: Segment, path: str, docs: Longs) -> Ids:
    index = segment.terms(parent_path(path))
    if index is None:
        return [], np.zeros(0, np.int64), np.zeros(0, np.int64)
    which, positions = spread(index.ordinals.starts, docs)
    used, inverse = np.unique(index.ordinals.terms[positions], return_inverse=True)
    return [index.dictionary.term(number) for number in used.tolist()], inverse, which


def parse_related(definition: Definition) -> Aggregation:
    """`children` and `parent`. Errors: parsing_exception without `type`."""
    child = definition.options.text("type")
    if child is None:
        raise parsing(f"Missing [child_type] field for {definition.kind} aggregation [{definition.name}]")
    definition.options.done()
    return Related(definition.common, child, up=definition.kind == "parent")
