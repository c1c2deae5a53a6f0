"""A mapping that needs no analysis: what the tests of segments and shards feed them with."""

from collections.abc import Sequence
from typing import Any

from graphdb.search.document_texts import LongNumbers
from graphdb.search.errors import SearchError
from graphdb.search.fields import Column, ParsedDocument, TextTokens

__all__ = ["WordsMapping", "tokens"]


def tokens(*words: str) -> TextTokens:
    return TextTokens(list(words), list(range(len(words))), len(words))


class WordsMapping:
    """Strings are text and whole terms, numbers are ints, objects are nested; `fields` is what it has seen.
    A float does not fit.
    """

    def __init__(self, fields: frozenset[str] = frozenset()) -> None:
        self.fields = fields

    def parse(
        self, source: dict[str, Any], doc_id: str, templates: Any = None, /
    ) -> "tuple[ParsedDocument, WordsMapping]":
        seen = self.fields | set(source)
        return self._parsed(source, ""), self if seen == self.fields else WordsMapping(seen)

    def parse_together(
        self, sources: Sequence[dict[str, Any]], numbers: Sequence[LongNumbers | None], /
    ) -> tuple[Sequence[Column], set[int]]:
        """Of documents that have numbers only."""
        columns = []
        refused = {place for place, one in enumerate(numbers) if one is not None}
        for name in {name for source in sources for name in source}:
            docs = [doc for doc, source in enumerate(sources) if name in source]
            values = [sources[doc][name] for doc in docs]
            refused |= {
                doc
                for doc, value in zip(docs, values, strict=True)
                if not isinstance(value, int) or name not in self.fields
            }
            columns.append(Column("ints", name, docs, values))
        return columns, refused

    def as_json(self) -> dict[str, Any]:
        return {"fields": sorted(self.fields)}

    def _parsed(self, source: dict[str, Any], prefix: str) -> ParsedDocument:
        parsed = ParsedDocument()
        for name, value in source.items():
            path = prefix + name
            if isinstance(value, float):
                raise SearchError("document_parsing_exception", f"failed to parse field [{path}]")
            if isinstance(value, str):
                parsed.column("texts")[path] = tokens(*value.split())
                parsed.column("terms")[path + ".keyword"] = [value]
            elif isinstance(value, int):
                parsed.column("ints")[path] = [value]
            elif isinstance(value, dict):
                parsed.children.append((path, self._parsed(value, path + ".")))
        return parsed
