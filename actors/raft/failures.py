"""Errors on their way between nodes."""

from actors.error_codec import decode_error, encode_error
from actors.raft.raft_pb2 import Failure
from graphdb.errors import CorruptionError, GraphDBError, OutcomeUnknown

__all__ = ["decode_failure", "encode_failure", "error_of_peer"]


def encode_failure(error: GraphDBError) -> Failure:
    """Damage on the node that was asked is none on the node that asks: there the outcome is not known."""
    if isinstance(error, CorruptionError):
        error = OutcomeUnknown("the node that was asked has failed")
    return Failure(error=encode_error(error, OutcomeUnknown))


def decode_failure(failure: Failure) -> GraphDBError:
    """As `error_of_peer`."""
    return error_of_peer(failure.error)


def error_of_peer(data: bytes) -> GraphDBError:
    """What an error (`actors.error_codec`) of another node means here: damage there is an outcome unknown
    here, and so is what another version sent and this one does not know.
    """
    try:
        error = decode_error(data)
    except ValueError:
        return OutcomeUnknown(f"an answer that cannot be understood: {data[:100]!r}")
    return OutcomeUnknown(str(error)) if isinstance(error, CorruptionError) else error
