"""How many of the documents that were shown a process keeps."""

import os

import pytest

from actors.search.kept_documents import keep_documents_by_memory
from graphdb.search.segments import sources

GB = 1 << 30


@pytest.mark.parametrize(("memory_gb", "kept_mb"), [(1, 32), (6, 32), (12, 64), (24, 128), (512, 128)])
def test_documents_are_kept_by_the_memory_of_the_machine(
    memory_gb: int, kept_mb: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = sources._Kept(1)
    monkeypatch.setattr(sources, "_KEPT", kept)
    machine = {"SC_PHYS_PAGES": memory_gb * GB // 4096, "SC_PAGE_SIZE": 4096}
    monkeypatch.setattr(os, "sysconf", machine.__getitem__)
    keep_documents_by_memory()
    assert kept.bytes_max == kept_mb << 20


def test_what_was_kept_is_forgotten_as_new_documents_come(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = sources._Kept(64 << 10)
    monkeypatch.setattr(sources, "_KEPT", kept)
    for number in range(60):
        kept.put((1, number), bytes(1_000))
    sources.keep_documents(8 << 10)
    for number in range(60, 80):
        kept.put((1, number), bytes(1_000))
    held = [len(raw) for part in (kept._young, kept._old) for raw in part.values()]
    assert 0 < sum(held) <= 8 << 10
