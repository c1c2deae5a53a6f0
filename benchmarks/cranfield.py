"""The Cranfield collection, repeated: as many documents as wanted, and its 225 queries."""

import os
import re
from collections.abc import Iterator, Sequence
from itertools import count, islice
from pathlib import Path
from typing import TypeAlias

import orjson

from benchmarks.service import PROJECT, BenchmarkError

__all__ = ["FIELDS", "MAPPING", "Document", "bulk_bodies", "documents", "judgments", "queries"]

FIELDS = ("title", "author", "bib", "text")
MAPPING = {"properties": {name: {"type": "text"} for name in FIELDS}}
Document: TypeAlias = dict[str, str]
_ELEMENT = re.compile(r"<(title|author|bib|text)>(.*?)</\1>", re.DOTALL)


def documents(wanted: int) -> list[tuple[str, Document]]:
    """(id, fields) of so many documents; ids say which copy of which document it is: `3-17`."""
    originals = [dict(_ELEMENT.findall(one)) for one in _read("cran.all.1400.xml").split("</doc>")[:-1]]
    copies = ((f"{copy}-{number}", fields) for copy in count() for number, fields in enumerate(originals, 1))
    return list(islice(copies, wanted))


def queries() -> list[str]:
    """The questions, in words alone: no engine takes them for a syntax of its own."""
    return [" ".join(re.findall(r"\w+", text)) for _, text in _ELEMENT.findall(_read("cran.qry.xml"))]


def judgments() -> list[frozenset[int]]:
    """The relevant documents of each query, by their numbers from 1."""
    relevant = [set[int]() for _ in queries()]
    for line in _read("cranqrel.trec.txt").splitlines():
        query, _, document, grade = line.split()
        if int(grade) > 0:
            relevant[int(query) - 1].add(int(document))
    return [frozenset(found) for found in relevant]


def bulk_bodies(given: Sequence[tuple[str, Document]], batch: int) -> Iterator[bytes]:
    """Bodies for `_bulk`, with so many documents each."""
    for start in range(0, len(given), batch):
        lines = [
            orjson.dumps({"index": {"_id": doc_id}}) + b"\n" + orjson.dumps(fields) + b"\n"
            for doc_id, fields in given[start : start + batch]
        ]
        yield b"".join(lines)


def _read(name: str) -> str:
    """Raises BenchmarkError where the data is not there."""
    path = Path(os.environ.get("GRAPHDB_SHARED", PROJECT.parent / "shared")) / "data" / "cranfield" / name
    if not path.exists():
        raise BenchmarkError(f"the collection is not there: ../shared/data/cranfield/{name}")
    return path.read_text()
