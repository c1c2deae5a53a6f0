"""Where a node's part in Raft lies below its data directory, and how its incarnations are told apart."""

import secrets
from pathlib import Path

__all__ = ["fresh_incarnation", "raft_directory"]


def raft_directory(data_dir: Path) -> Path:
    """Term, vote, members, snapshots; made where the node first takes part in a cluster."""
    return data_dir / "raft"


def fresh_incarnation() -> int:
    """The incarnation of a directory that is being made (`graphdb.raft.membership.PeerId`)."""
    return 1 + secrets.randbits(62)
