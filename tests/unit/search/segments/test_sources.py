"""Stored documents, read with and without the blocks that were read before."""

import random
from itertools import pairwise

import numpy as np
import pytest

from graphdb.search.segments import sources
from graphdb.search.segments.sources import SourceBlocks, merged_sources, source_sections


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


@pytest.mark.parametrize("seed", range(30))
def test_a_block_ends_when_it_is_full_and_a_long_document_is_alone(seed: int) -> None:
    chance = random.Random(seed)
    sizes = chance.choices((0, 1, 100, 1_000, 3_067, 3_068, 3_071, 3_072, 9_000), k=chance.randrange(60))
    raws = [bytes([65 + place % 7]) * size for place, size in enumerate(sizes)]
    expected, opened = [0], 0
    for place, size in enumerate(sizes):
        if size >= sources._BLOCK_BYTES and opened:
            expected, opened = [*expected, place], 0
        opened += size + sources._ROOT_BYTES
        if opened >= sources._BLOCK_BYTES:
            expected, opened = [*expected, place + 1], 0
    expected += [len(sizes)] if opened else []
    sections = source_sections(raws)
    assert sections["", "", "sources_roots"].tolist() == expected
    assert sections["", "", "sources_lengths"].tolist() == sizes
    found = SourceBlocks(sections, "a test")
    assert [*found.raws(0, len(raws))] == raws
    every = np.arange(len(raws), dtype=np.int32)
    merged = merged_sources([(found, every), (found, every[::2])])
    again = SourceBlocks(merged, "a test")
    assert [*again.raws(0, len(again))] == raws + raws[::2]
    roots = merged["", "", "sources_roots"].tolist()
    assert all(
        stop - start == 1 or max(map(len, (raws + raws[::2])[start:stop])) < sources._BLOCK_BYTES
        for start, stop in pairwise(roots)
    )
