"""Scores are written with the digits that the engine's floats have."""

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from graphdb.text.literal_search import score_texts
from graphdb.text.score_digits import DIGITS_MAX, write_digits


@numba.njit
def _written(scores: Any, out: Any) -> Any:
    bits, ends = scores.view(np.int32), np.empty(len(scores), np.int64)
    for place in range(len(scores)):
        ends[place] = write_digits(out[place], 0, scores[place], bits[place])
    return ends


def written(scores: NDArray[np.float32]) -> list[str | None]:
    out = np.zeros((len(scores), DIGITS_MAX), np.uint8)
    ends = _written(scores, out).tolist()
    rows = [row.tobytes() for row in out]
    return [None if end < 0 else row[:end].decode() for end, row in zip(ends, rows, strict=True)]


def test_each_has_the_fewest_digits_that_tell_it_from_others() -> None:
    chance = np.random.default_rng(5)
    powers = np.float32(2) ** np.arange(-9, 20, dtype=np.float32)
    few = np.arange(1, 20_000, dtype=np.float32) / np.float32(16)
    beside = [np.nextafter(each, np.float32(to)) for each in (powers[1:], few) for to in (0, np.inf)]
    random = np.exp(chance.uniform(np.log(1e-3), np.log(9.9e5), 100_000)).astype(np.float32)
    rounded = np.round(chance.uniform(0.002, 99, 20_000), 3).astype(np.float32)
    scores = np.concatenate([powers, few, *beside, random[random >= 1e-3], rounded]).astype(np.float32)
    wanted = [text.split('"')[1] for text in score_texts(scores)]
    assert written(scores) == wanted


def test_those_that_are_very_small_or_large_are_left_out() -> None:
    scores = np.array([0, 9e-4, 1e-30, 1e6, 3e38, np.inf, np.nan, -1], np.float32)
    assert written(scores) == [None] * len(scores)
