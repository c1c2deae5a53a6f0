"""The compiled loops against the same said plainly in Python."""

from heapq import heappop, heappush

import numpy as np
import pytest

from graphdb.search.leaf_reader import Bools, Floats, Ints
from graphdb.search.vectors.row_set import RowSet
from graphdb.search.vectors.walk import scan, walk

ROWS, DIMS, WIDTH = 300, 5, 6
EVERY = np.zeros(0, np.uint64)


class World:
    """Random rows and random neighbours, a third of the rows on a level above."""

    def __init__(self, seed: int) -> None:
        random = np.random.default_rng(seed)
        self.rows = random.standard_normal((ROWS, DIMS)).astype(np.float32)
        self.query = random.standard_normal(DIMS).astype(np.float32)
        self.allowed = random.random(ROWS) < random.choice([0.1, 0.5, 0.9])
        self.links = random.integers(0, ROWS, (ROWS, WIDTH)).astype(np.int32)
        self.links[random.random(ROWS) < 0.5, WIDTH - 2 :] = -1
        above = np.arange(0, ROWS, 3)
        self.upper_at = np.full(ROWS, -1, np.int32)
        self.upper_at[above] = np.arange(len(above))
        self.upper = random.choice(above, (len(above), 3)).astype(np.int32)

    def distances(self, weights: Floats | None) -> Floats:
        if weights is None:
            return -(self.rows @ self.query)
        distances: Floats = (np.square(self.rows - self.query) * weights).sum(axis=1)
        return distances

    def walked(self, distances: Floats, effort: int, allowed: Bools, met_max: int, hidden: int) -> set[int]:
        nearest = 0
        while (
            best := min([nearest, *self.upper[self.upper_at[nearest]]], key=lambda r: distances[r])
        ) != nearest:
            nearest = int(best)
        seen, met, found = {nearest, hidden}, 1, [nearest] if allowed[nearest] else []
        ahead: list[tuple[float, int]] = [(distances[nearest], nearest)]
        while ahead and met < met_max:
            distance, here = heappop(ahead)
            if len(found) == effort and distance > distances[found[-1]]:
                break
            for row in self.links[here].tolist():
                if row < 0:
                    break
                if row in seen:
                    continue
                seen.add(row)
                met += 1
                if len(found) < effort or distances[row] < distances[found[-1]]:
                    heappush(ahead, (distances[row], row))
                    found = sorted([*found, row] if allowed[row] else found, key=lambda r: distances[r])[
                        :effort
                    ]
        return set(found)


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("measure", ["distance", "product"])
def test_the_walk_finds_what_its_description_finds(seed: int, measure: str) -> None:
    world = World(seed)
    weights = np.linspace(0.5, 2, DIMS).astype(np.float32) if measure == "distance" else None
    distances = world.distances(weights)
    for effort, met_max, filtered, hidden in (
        (1, 300, True, -1),
        (8, 300, True, -1),
        (8, 300, False, -1),
        (300, 300, True, -1),
        (8, 60, True, -1),
        (8, 300, False, int(np.argmin(distances))),
    ):
        allowed = world.allowed if filtered else np.ones(ROWS, np.bool_)
        found: Ints = walk(
            world.rows,
            world.links,
            world.upper_at,
            world.upper,
            0,
            1,
            world.query,
            weights,
            None,
            None,
            RowSet.of(allowed).bits if filtered else EVERY,
            effort,
            met_max,
            hidden,
        )
        assert len(set(found.tolist())) == len(found)
        assert set(found.tolist()) == world.walked(distances, effort, allowed, met_max, hidden)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("count", [1, 7, 300])
def test_a_scan_finds_the_nearest_of_all(seed: int, count: int) -> None:
    world = World(seed)
    for weights in (None, np.ones(DIMS, np.float32)):
        found: Ints = scan(world.rows, world.query, weights, None, None, RowSet.of(world.allowed).bits, count)
        distances = np.where(world.allowed, world.distances(weights), np.inf)
        expected = np.argsort(distances)[: min(count, int(world.allowed.sum()))]
        assert set(found.tolist()) == set(expected.tolist())
        assert len(found) == len(expected)


def test_both_read_codes() -> None:
    """Bytes are compared as the numbers that they are."""
    random = np.random.default_rng(0)
    codes = random.integers(-127, 128, (200, 70)).astype(np.int8)
    query = random.standard_normal(70).astype(np.float32)
    found: Ints = scan(codes, query, None, None, None, RowSet.every(200).bits, 10)
    assert set(found.tolist()) == set(np.argsort(-(codes @ query))[:10].tolist())


def test_words_are_compared_by_their_bits() -> None:
    random = np.random.default_rng(0)
    codes = random.integers(0, 2**64, (300, 3), np.uint64, endpoint=False)
    words, one = random.integers(0, 2**64, 3, np.uint64, endpoint=False), np.ones(1, np.float32)
    differ = np.bitwise_count(codes ^ words).sum(axis=1)
    found: Ints = scan(codes, one, None, words, None, RowSet.every(300).bits, 10)
    assert len(set(found.tolist())) == 10
    assert sorted(differ[found]) == sorted(differ)[:10]
