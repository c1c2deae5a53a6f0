"""`SegmentBuilder`: documents in, a segment out."""

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import repeat
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from graphdb.search.fields import NO_VALUES, Column, ParsedDocument
from graphdb.search.leaf_reader import Ints
from graphdb.search.segments.array_segment import ArraySegment
from graphdb.search.segments.field_builders import (
    FieldBuilder,
    NumberBuilder,
    PointBuilder,
    TermsBuilder,
    TextBuilder,
    VectorBuilder,
)
from graphdb.search.segments.operations import Current
from graphdb.search.segments.sections import (
    IGNORED,
    ROUTING,
    Hashes,
    Key,
    encode,
    freeze,
    hash_id,
    id_sections,
    packed,
)
from graphdb.search.segments.sources import source_sections

__all__ = ["SegmentBuilder"]

B = TypeVar("B", bound=FieldBuilder)


class _ByPath(dict[str, B]):
    """The builders of the fields of one storage, each made when it is first asked for."""

    def __init__(self, make: Callable[[], B]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, path: str) -> B:
        builder = self[path] = self._make()
        return builder


class SegmentBuilder:
    """Gathers documents until they become a segment. What ParsedDocument promises is not checked again."""

    def __init__(self) -> None:
        self.size = 0  # documents so far, nested ones too; the last one added is the one before
        self.roots = array("i")  # the numbers of those that are not nested
        self._ids: list[bytes] = []
        self._hashes = array("Q")
        self._sources: list[bytes] = []
        self._seq_nos, self._versions = array("q"), array("q")
        self._routings: dict[int, str] = {}  # by number, of those that have one
        self._parents: dict[int, int] = {}  # of nested documents
        self._nested_path: dict[int, int] = {}
        self._nested_paths: dict[str, int] = {}
        self._exact = _ByPath(partial(NumberBuilder, "exact"))
        self._floats = _ByPath(partial(NumberBuilder, "floats"))
        self._ints = _ByPath(partial(NumberBuilder, "ints"))
        self._points = _ByPath(PointBuilder)
        self._terms = _ByPath(TermsBuilder)
        self._texts = _ByPath(TextBuilder)
        self._vectors = _ByPath(VectorBuilder)
        self._by_column: Mapping[str, _ByPath[Any]] = {  # what can be added together
            "uncut": self._texts,
            "terms": self._terms,
            "ints": self._ints,
            "exact": self._exact,
            "floats": self._floats,
            "vectors": self._vectors,
        }

    def add(
        self,
        doc_id: str,
        source: bytes,
        seq_no: int,
        version: int,
        parsed: ParsedDocument,
        routing: str | None = None,
        id_hash: int | None = None,
    ) -> None:
        """id_hash: `hash_id`, where the caller knows it."""
        raw = encode(doc_id)
        self._ids.append(raw)
        self._hashes.append(hash_id(raw) if id_hash is None else id_hash)
        self._sources.append(source)
        before = self.size
        root = self._add(parsed) if parsed.children else self._add_one(parsed)
        if self.size - before == 1:
            self._seq_nos.append(seq_no)
            self._versions.append(version)
        else:
            self._seq_nos.extend([seq_no] * (self.size - before))
            self._versions.extend([version] * (self.size - before))
        self.roots.append(root)
        if (parsed.ignored or parsed.children) and (ignored := _ignored(parsed)):
            self._terms[IGNORED].add(root, ignored)
        if routing is not None:
            self._routings[root] = routing
            self._terms[ROUTING].add(root, [routing])

    def add_together(
        self,
        ids: Sequence[bytes],
        hashes: Hashes,
        sources: Sequence[bytes],
        seq_no: int,
        columns: Iterable[Column],
    ) -> None:
        """Documents without routing, each in its first version, with what their fields have; ids as `encode`
        makes them. seq_no: of the first one, those of the others follow.
        """
        first, count = self.size, len(ids)
        self.size += count
        self._ids.extend(ids)
        self._hashes.frombytes(hashes.tobytes())
        self._sources.extend(sources)
        self._seq_nos.extend(range(seq_no, seq_no + count))
        self._versions.extend(repeat(1, count))
        for storage, path, docs, values, counts in columns:
            here = range(first, self.size) if len(docs) == count else [first + doc for doc in docs]
            self._by_column[storage][path].add_all(here, values, counts)
        self.roots.extend(range(first, self.size))

    def stored(self, number: int) -> Current:
        """What was given with a document; number counts those that are not nested."""
        doc = self.roots[number]
        version, seq_no = self._versions[doc], self._seq_nos[doc]
        return Current(True, version, seq_no, self._sources[number], self._routings.get(doc))

    def build(self, name: str) -> ArraySegment:
        """All that was added. The builder is not to be used any more."""
        sections: dict[Key, NDArray[Any]] = {
            ("", "", "seq_nos"): np.array(self._seq_nos, np.int64),
            ("", "", "versions"): np.array(self._versions, np.int64),
        }
        sections |= packed("", "", "ids", self._ids) | source_sections(self._sources)
        hashes: Hashes = np.array(self._hashes, np.uint64)
        sections |= id_sections(hashes)
        if self._nested_paths:
            sections |= self._nested_sections()
        for fields in self._storages():
            for path in sorted(fields):
                sections |= fields[path].sections(path, self.size)
        return ArraySegment(name, freeze(sections))

    def _storages(self) -> "Iterator[Mapping[str, FieldBuilder]]":
        """All fields, in the order of the names of their storages."""
        numbers = (self._exact, self._floats, self._ints)
        yield from (*numbers, self._points, self._terms, self._texts, self._vectors)

    def _add(self, parsed: ParsedDocument) -> int:
        """Give a document the next number, and return it."""
        children = []
        for path, child in parsed.children:
            doc = self._add(child)
            self._nested_path[doc] = self._nested_paths.setdefault(path, len(self._nested_paths))
            children.append(doc)
        doc = self._add_one(parsed)
        self._parents.update(dict.fromkeys(children, doc))
        return doc

    def _add_one(self, parsed: ParsedDocument) -> int:
        doc = self.size
        self.size += 1
        for path, text in parsed.uncut.items():
            self._texts[path].add_uncut(doc, text)
        # One after the other: a loop would make its pairs for each document.
        if parsed.texts is not NO_VALUES:
            _give(self._texts, doc, parsed.texts)
        if parsed.terms is not NO_VALUES:
            _give(self._terms, doc, parsed.terms)
        if parsed.ints is not NO_VALUES:
            _give(self._ints, doc, parsed.ints)
        if parsed.exact is not NO_VALUES:
            _give(self._exact, doc, parsed.exact)
        if parsed.floats is not NO_VALUES:
            _give(self._floats, doc, parsed.floats)
        if parsed.points is not NO_VALUES:
            _give(self._points, doc, parsed.points)
        if parsed.vectors is not NO_VALUES:
            _give(self._vectors, doc, parsed.vectors)
        return doc

    def _nested_sections(self) -> dict[Key, NDArray[Any]]:
        """Paths are numbered in their own order, so that the same documents give the same arrays."""
        paths = sorted(self._nested_paths)
        places = np.array([paths.index(path) for path in self._nested_paths] + [-1], np.int32)
        return packed("", "", "nested_paths", [encode(path) for path in paths]) | {
            ("", "", "parents"): self._by_document(self._parents),
            ("", "", "nested_path"): places[self._by_document(self._nested_path)],
        }

    def _by_document(self, nested: Mapping[int, int]) -> Ints:
        """A number for each document, -1 for those that are not nested."""
        numbers = np.full(self.size, -1, np.int32)
        numbers[list(nested)] = list(nested.values())
        return numbers


def _give(fields: "_ByPath[Any]", doc: int, values: Mapping[str, Any]) -> None:
    for path, value in values.items():
        fields[path].add(doc, value)


def _ignored(parsed: ParsedDocument) -> list[str]:
    """The paths left out in a document and in all that is in it."""
    if not parsed.children:
        return parsed.ignored
    return parsed.ignored + [path for _, child in parsed.children for path in _ignored(child)]
