"""The floor of the search benchmarks: tantivy in process, with the same fields, analysed alike."""

from collections.abc import Sequence
from pathlib import Path

import tantivy

from benchmarks.cranfield import FIELDS, Document

__all__ = ["build", "top"]


def build(directory: Path, given: Sequence[tuple[str, Document]]) -> tantivy.Index:
    """An index on disk that holds these documents, committed; with tantivy's own threads."""
    directory.mkdir()
    schema = tantivy.SchemaBuilder()
    schema.add_text_field("id", stored=True, tokenizer_name="raw")
    for name in FIELDS:
        schema.add_text_field(name, stored=True)
    index = tantivy.Index(schema.build(), path=str(directory))
    writer = index.writer()
    for doc_id, fields in given:
        writer.add_document(tantivy.Document(id=doc_id, **fields))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    return index


def top(index: tantivy.Index, query: str, size: int) -> list[dict[str, list[str]]]:
    """The stored fields of the best by BM25, any word of the query sufficing; nothing is counted."""
    searcher = index.searcher()
    found = searcher.search(index.parse_query(query, ["text"]), size, count=False)
    return [searcher.doc(address).to_dict() for _, address in found.hits]
