"""`SegmentBuilder`: documents in, a segment out."""

from array import array
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.search.fields import ParsedDocument
from graphdb.search.segments.array_segment import ArraySegment
from graphdb.search.segments.field_builders import (
    FieldBuilder,
    NumberBuilder,
    PointBuilder,
    TermsBuilder,
    TextBuilder,
    VectorBuilder,
)
from graphdb.search.segments.sections import (
    IGNORED,
    ROUTING,
    Hashes,
    Key,
    freeze,
    hash_id,
    id_sections,
    packed,
)
from graphdb.search.segments.strings import encode

__all__ = ["SegmentBuilder"]

_BUILDERS: dict[str, Callable[[], FieldBuilder]] = {
    "text": TextBuilder,
    "terms": TermsBuilder,
    "ints": partial(NumberBuilder, "ints"),
    "floats": partial(NumberBuilder, "floats"),
    "points": PointBuilder,
    "vectors": VectorBuilder,
}


class SegmentBuilder:
    """Gathers documents until they become a segment. What ParsedDocument promises is not checked again."""

    def __init__(self) -> None:
        self._ids: list[bytes] = []
        self._hashes = array("Q")
        self._sources: list[bytes] = []
        self._seq_nos, self._versions = array("q"), array("q")
        self._parents, self._nested_path = array("i"), array("i")
        self._nested_paths: dict[str, int] = {}
        self._fields: dict[tuple[str, str], FieldBuilder] = {}

    @property
    def size(self) -> int:
        """Documents so far, nested ones too; the last one added is the one before."""
        return len(self._parents)

    def add(
        self,
        doc_id: str,
        source: bytes,
        seq_no: int,
        version: int,
        parsed: ParsedDocument,
        routing: str | None = None,
    ) -> None:
        raw = encode(doc_id)
        self._ids.append(raw)
        self._hashes.append(hash_id(raw))
        self._sources.append(source)
        before = self.size
        root = self._add(parsed, "")
        self._seq_nos.extend([seq_no] * (self.size - before))
        self._versions.extend([version] * (self.size - before))
        ignored = _ignored(parsed)
        if ignored:
            self._give("terms", root, {IGNORED: ignored})
        if routing is not None:
            self._give("terms", root, {ROUTING: [routing]})

    def build(self, name: str) -> ArraySegment:
        """All that was added. The builder is not to be used any more."""
        size = self.size
        sections: dict[Key, NDArray[Any]] = {
            ("", "", "seq_nos"): np.array(self._seq_nos, np.int64),
            ("", "", "versions"): np.array(self._versions, np.int64),
        }
        sections |= packed("", "", "ids", self._ids) | packed("", "", "sources", self._sources)
        hashes: Hashes = np.array(self._hashes, np.uint64)
        sections |= id_sections(hashes)
        if self._nested_paths:
            sections |= self._nested_sections()
        for key in sorted(self._fields):
            sections |= self._fields[key].sections(key[1], size)
        return ArraySegment(name, freeze(sections))

    def _add(self, parsed: ParsedDocument, nested_path: str) -> int:
        """Give a document its number, behind those in it; returns that number."""
        children = [self._add(child, path) for path, child in parsed.children]
        doc = self.size
        self._parents.append(-1)
        for child in children:
            self._parents[child] = doc
        number = self._nested_paths.setdefault(nested_path, len(self._nested_paths)) if nested_path else -1
        self._nested_path.append(number)
        self._give("text", doc, parsed.texts)
        self._give("text", doc, parsed.uncut)
        self._give("terms", doc, parsed.terms)
        self._give("ints", doc, parsed.ints)
        self._give("floats", doc, parsed.floats)
        self._give("points", doc, parsed.points)
        self._give("vectors", doc, parsed.vectors)
        return doc

    def _give(self, storage: str, doc: int, values: Mapping[str, Any]) -> None:
        for path, value in values.items():
            builder = self._fields.get((storage, path))
            if builder is None:
                builder = self._fields[storage, path] = _BUILDERS[storage]()
            builder.add(doc, value)

    def _nested_sections(self) -> dict[Key, NDArray[Any]]:
        """Paths are numbered in their own order, so that the same documents give the same arrays."""
        paths = sorted(self._nested_paths)
        places = np.array([paths.index(path) for path in self._nested_paths] + [-1], np.int32)
        return packed("", "", "nested_paths", [encode(path) for path in paths]) | {
            ("", "", "parents"): np.array(self._parents, np.int32),
            ("", "", "nested_path"): places[np.array(self._nested_path, np.int32)],
        }


def _ignored(parsed: ParsedDocument) -> list[str]:
    """The paths left out in a document and in all that is in it."""
    return parsed.ignored + [path for _, child in parsed.children for path in _ignored(child)]
