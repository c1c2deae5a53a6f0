"""How many of the documents that it has shown a process that searches keeps expanded."""

import os

from graphdb.search.segments.sources import keep_documents

__all__ = ["keep_documents_by_memory"]

_SHARE = 192  # of the machine's memory, which several such processes share
_BYTES_MIN, _BYTES_MAX = 32 << 20, 128 << 20


def keep_documents_by_memory() -> None:
    """More on a machine with more memory, from 6 to 24 GB. They take memory only once they are shown."""
    memory_bytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    keep_documents(min(max(memory_bytes // _SHARE, _BYTES_MIN), _BYTES_MAX))
