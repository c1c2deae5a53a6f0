"""What simulations of the writer have in common: a writer that cuts even small writes, and their quads."""

from pyoxigraph import BlankNode, NamedNode, Quad

from actors.shard.shard_writer import WriterConfig
from graphdb.model import LogEntry

__all__ = ["CONFIG", "at", "quad"]

CONFIG = WriterConfig(
    part_bytes_max=400,
    log_wait_s=0.02,
    log_poll_s=0.0,
    retry_s=0.001,
    inline_requests_max=2,
    inline_quads_max=8,
)


def at(entry: LogEntry, index: int) -> LogEntry:
    """The entry with that index."""
    return LogEntry(index, entry.raft_term, entry.kind, entry.request_id, entry.timestamp_ms, entry.payload)


def quad(name: str, graph: int) -> Quad:
    """Of a subject by name, a blank node where that begins with b, in a graph by number."""
    subject = BlankNode(name) if name.startswith("b") else NamedNode(f"urn:{name}")
    return Quad(subject, NamedNode("urn:p"), NamedNode("urn:o"), NamedNode(f"urn:g{graph}"))
