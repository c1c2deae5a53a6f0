"""Stored documents, read with and without the blocks that were read before."""

import random

import pytest

from graphdb.search.segments import sources
from graphdb.search.segments.sources import SourceBlocks, source_sections


@pytest.mark.parametrize("bytes_max", [0, 20_000, 1 << 20])
def test_documents_are_read_the_same_whatever_is_kept(
    bytes_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = sources._Kept(bytes_max)
    monkeypatch.setattr(sources, "_KEPT", kept)
    chance = random.Random(1)
    written = [
        [f"{segment} {number} ".encode() * chance.choice((0, 1, 40, 400, 3_000)) for number in range(60)]
        for segment in range(3)
    ]
    opened = [SourceBlocks(source_sections(raws), "a test") for raws in written]
    for _ in range(600):
        segment, number = chance.randrange(3), chance.randrange(60)
        assert opened[segment].raw(number) == written[segment][number]
        parts = [
            [len(raw) + sources._ENTRY_BYTES for raw in part.values()] for part in (kept._young, kept._old)
        ]
        young, old = map(sum, parts)
        assert young == kept._bytes
        assert young + old <= bytes_max
    assert bool(kept._young) == bool(bytes_max)
