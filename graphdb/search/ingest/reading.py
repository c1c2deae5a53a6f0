"""What a processor is once it is read, and what it is read with."""

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

from graphdb.search.ingest.document import IngestDocument
from graphdb.search.scripts.script import Script

__all__ = ["Known", "Reading", "Runnable", "Step"]

Step: TypeAlias = Callable[[IngestDocument], None]
"""Raises Dropped, SearchError."""


class Runnable(Protocol):
    """A processor inside another, or a pipeline."""

    def run(self, document: IngestDocument, trace: Callable[[Any], None] | None = None, /) -> None: ...


class Known(Protocol):
    """The pipelines that there are."""

    def has(self, name: str, /) -> bool: ...
    def pipeline(self, name: str, /) -> Runnable: ...


class Reading(Protocol):
    """What reads a pipeline: for processors inside others, scripts and calls."""

    @property
    def definitions(self) -> Known: ...
    def processor(self, given: Any, /) -> Runnable: ...
    def script(self, body: Any, /) -> Script: ...
