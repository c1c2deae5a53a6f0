"""`graphdb load --distributed`: documents parsed by all nodes of a Ray cluster, added in one request."""

import os
from collections.abc import Iterator
from pathlib import Path

from serve.cli.client import Client
from serve.cli.console import CommandError, LoadProgress, UsageError, progress, title_of
from serve.cli.node import Document, ParsedDocuments, find_objects, is_remote, parsing_runtime
from serve.cli.sources import find_sources, named_syntax

__all__ = ["load_distributed"]

# While nothing is parsed, a comment is sent now and then: the service ends a request whose body stands still.
_BEAT_S = 5.0
_BEAT = b"#" + b" " * 4094 + b"\n"


def load_distributed(
    endpoint: str | None, profile: str | None, names: list[str], syntax_name: str | None, graph: str | None
) -> tuple[int, int]:
    """Add all documents, or nothing; how many quads were new, and how many documents there were.

    Raises CommandError and GraphDBError.
    """
    documents = _find(names, syntax_name)
    with Client(endpoint, profile) as client:
        if client.health()["role"] == "follower":  # which hands a write on as one message
            raise CommandError("this node follows: load at the node that leads (graphdb cluster status)")
        with parsing_runtime(os.environ.get("RAY_ADDRESS") or None):
            parsed = ParsedDocuments(documents, graph, graph or client.data_iri)
            with progress(title_of(documents), parsed.size_bytes) as shown:
                confirmation = client.load(_body(parsed, shown))
    return int(confirmation["affected_triples"]), len(documents)


def _body(parsed: ParsedDocuments, shown: LoadProgress) -> Iterator[bytes]:
    for part in parsed.lines(_BEAT_S):
        if part is None:
            yield _BEAT
        else:
            shown.read(part.read_bytes)
            shown.stored(part.count)
            yield part.lines


def _find(names: list[str], syntax_name: str | None) -> list[Document]:
    """Raises CommandError and GraphDBError."""
    if "-" in names:
        raise UsageError("standard input is on one machine only: --distributed needs files that all can read")
    syntax = named_syntax(syntax_name) if syntax_name else None
    found = [document for name in names if is_remote(name) for document in find_objects(name, syntax)]
    if local := [name for name in names if not is_remote(name)]:
        sources = find_sources(local, syntax_name)
        found += [Document(str(Path(str(source)).absolute()), source.syntax) for source in sources]
    if not found:
        raise CommandError(f"no RDF files in {', '.join(names)}")
    return found
