"""Taking a resource or a graph out of the past: what goes (`PurgeScope`), and files of the history that are
written anew without it.

Indexes, times and request ids stay. A change that was exact is exact without some quads, on the state without
them: so what is left leads from one purged state to the other.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from pyoxigraph import NamedNode, Quad, QuerySolutions, Triple

from graphdb.history.archive import COMPRESSED, RAW, ArchiveName, CompressedFile, EntryFile, RawFile, compress
from graphdb.history.asked import AskedChanges
from graphdb.log.file_system import RealFileSystem, sync_path
from graphdb.log.payloads import change_sections, decode_cleared, decode_close, encode_close, with_sections
from graphdb.model import ChangeSet, EntryKind, LogEntry, node_of_text
from graphdb.rdf.quad_lines import parse_lines
from graphdb.sparql.dataset import Dataset
from graphdb.store.quad_store import QuadStore
from graphdb.transactions.read_pattern import terms_of_triple

__all__ = ["PurgeScope", "PurgedUpTo", "ScopeKind", "deletion", "purge_file", "purged", "quads_in_scope"]

ScopeKind: TypeAlias = Literal["resource", "graph"]
_QUADS_PER_PART = 10_000
_TRIPLE_TERMS = "?s ?p ?o FILTER(isTRIPLE(?o))"


@dataclass(frozen=True)
class PurgeScope:
    """A resource: all statements in which it stands, as `AskedChanges` has it. A graph: its statements, and
    that it was there.
    """

    kind: ScopeKind
    iri: str

    @cached_property
    def asked(self) -> AskedChanges:
        """The same as what is asked of changes."""
        name = NamedNode(self.iri)
        return AskedChanges(resource=name) if self.kind == "resource" else AskedChanges(graph=name)


class PurgedUpTo(NamedTuple):
    """What has gone from all states up to a log index. It may be there again behind that."""

    scope: PurgeScope
    log_index: int


# the past


def purged(entry: LogEntry, purges: Sequence[PurgedUpTo]) -> LogEntry:
    """An entry that changes quads, or a part of such, without what was purged; the same object where it had
    nothing of that. An author whose name has the IRI of a purged resource has none. Raises CorruptionError.
    """
    for scope, log_index in purges:
        if entry.log_index <= log_index:
            entry = _without(entry, scope)
    return entry


def _without(entry: LogEntry, scope: PurgeScope) -> LogEntry:
    if scope.kind == "resource" and scope.iri in entry.author.name:
        entry = entry._replace(author=entry.author._replace(name=""))
    if scope.asked.needle not in entry.payload:
        return entry
    if entry.kind in (EntryKind.CHANGES, EntryKind.PART):
        sections = change_sections(entry.payload)
        kept = [_kept_quads(lines, scope.asked) for lines in sections[:2]]
        kept += [_kept_graphs(lines, scope.asked) for lines in sections[2:]]
        return entry if kept == sections else entry._replace(payload=with_sections(entry.payload, kept))
    if entry.kind is EntryKind.CLOSE_CLEARED:
        name, cleared = NamedNode(scope.iri), decode_cleared(entry.payload)
        graphs = tuple(graph for graph in cleared if graph != name)
        kind = EntryKind.CLOSE_CLEARED if graphs else EntryKind.CLOSE
        return entry._replace(kind=kind, payload=encode_close(decode_close(entry.payload), graphs))
    return entry


def _kept_quads(lines: bytes, asked: AskedChanges) -> bytes:
    return _kept_lines(lines, asked.needle, lambda line: not asked.takes(next(parse_lines(line))))


def _kept_graphs(lines: bytes, asked: AskedChanges) -> bytes:
    return _kept_lines(
        lines, asked.needle, lambda line: not asked.takes_graph(node_of_text(line[:-1].decode()))
    )


def _kept_lines(lines: bytes, needle: bytes, is_kept: Callable[[bytes], bool]) -> bytes:
    """Only lines with the needle are looked at."""
    if needle not in lines:
        return lines
    return b"".join(
        line
        for line in (text + b"\n" for text in lines.split(b"\n")[:-1])
        if needle not in line or is_kept(line)
    )


def purge_file(
    directory: Path, name: ArchiveName, purges: Sequence[PurgedUpTo], pause: Callable[[], None]
) -> bool:
    """Have a file of the history without what was purged, durably; whether it was written anew.

    It is compressed then, and a raw one always is, for that has entries of other kinds, too. A crash leaves
    what was there, or both, or what is to be. pause is called between blocks. Raises OSError,
    CorruptionError.
    """
    path = directory / str(name)
    target = path.with_suffix(COMPRESSED)
    source = RawFile(path) if name.suffix == RAW else CompressedFile(path)
    with closing(source):
        concerned = [purge for purge in purges if name.first_index <= purge.log_index]
        if name.suffix == COMPRESSED and not _has(source, name, concerned, pause):
            return False
        compress(source, name.last_index, target, pause, lambda entry: purged(entry, concerned))
    RealFileSystem().sync_directory(str(directory))
    if path != target:
        path.unlink()
        sync_path(directory)
    return True


def _has(file: EntryFile, name: ArchiveName, purges: Sequence[PurgedUpTo], pause: Callable[[], None]) -> bool:
    """Whether a file may have something of what was purged, as its bytes tell."""
    needles = [purge.scope.iri.encode() for purge in purges]
    for block in file.blocks(name.last_index) if needles else ():
        data = file.read(block)
        if any(needle in data for needle in needles):
            return True
        pause()
    return False


# the present


def quads_in_scope(state: QuadStore, scope: PurgeScope) -> Iterator[Quad]:
    """What is to go of a state, each quad once. For a resource the engine looks at all quads, for triple
    terms: a second a million.
    """
    name = NamedNode(scope.iri)
    if scope.kind == "graph":
        yield from state.quads_matching(None, None, None, name)
        return
    yield from state.quads_matching(name, None, None, None)
    for quad in state.quads_matching(None, name, None, None):
        if quad.subject != name:
            yield quad
    for quad in state.quads_matching(None, None, name, None):
        if name not in (quad.subject, quad.predicate):
            yield quad
    for quad in state.quads_matching(None, None, None, name):
        if name not in (quad.subject, quad.predicate, quad.object):
            yield quad
    for quad in _with_triple_terms(state):
        assert isinstance(quad.object, Triple)
        elsewhere = name in (quad.subject, quad.predicate, quad.graph_name)
        if not elsewhere and name in terms_of_triple(quad.object):
            yield quad


def _with_triple_terms(state: QuadStore) -> Iterator[Quad]:
    rows = state.query_text(f"SELECT * {{ {_TRIPLE_TERMS} }}", Dataset())
    assert isinstance(rows, QuerySolutions)
    for row in rows:
        quad = Quad(row["s"], row["p"], row["o"])
        if state.contains(quad):  # it may be the union of all graphs that was asked
            yield quad
    rows = state.query_text(f"SELECT * {{ GRAPH ?g {{ {_TRIPLE_TERMS} }} }}", Dataset())
    assert isinstance(rows, QuerySolutions)
    for row in rows:
        yield Quad(row["s"], row["p"], row["o"], row["g"])


def deletion(state: QuadStore, scope: PurgeScope) -> Iterator[ChangeSet]:
    """What takes a scope from a state, in pieces for `QuadStore.apply_many`; none where it has nothing."""
    name = NamedNode(scope.iri)
    dropped = (name,) if state.graph_exists(name) else ()
    part: list[Quad] = []
    for quad in quads_in_scope(state, scope):
        part.append(quad)
        if len(part) == _QUADS_PER_PART:
            yield ChangeSet(tuple(part), dropped_graphs=dropped)
            part, dropped = [], ()
    if part or dropped:
        yield ChangeSet(tuple(part), dropped_graphs=dropped)
