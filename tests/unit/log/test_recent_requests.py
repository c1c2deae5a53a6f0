"""What is remembered of the requests in the log: against a naive twin, and as bytes."""

import tracemalloc
from random import Random

import pytest

from graphdb.errors import CorruptionError
from graphdb.log.recent_requests import RecentRequests, Remembered
from graphdb.log.request_ids import fresh, is_keyed, key_part, keyed


def some_id(random: Random) -> bytes:
    if random.randrange(3) == 0:
        return keyed(str(random.randrange(10_000)), "POST", b"/", ())
    return fresh(random.randbytes(16))


class Twin:
    """The same, as two lists."""

    def __init__(self, through: int, kept: int) -> None:
        self.kept = kept
        self.told: dict[bool, list[Remembered]] = {True: [], False: []}
        self.since = {True: through + 1, False: through + 1}

    def remember(self, request_id: bytes, log_index: int, affected_triples: int) -> None:
        told = self.told[is_keyed(request_id)]
        told.append(Remembered(request_id, log_index, affected_triples))
        if len(told) > self.kept:
            self.since[is_keyed(request_id)] = told.pop(0).log_index + 1

    def find(self, request_id: bytes) -> Remembered | None:
        for remembered in reversed(self.told[is_keyed(request_id)]):
            if key_part(remembered.request_id) == key_part(request_id):
                return remembered
        return None


@pytest.mark.parametrize("seed", range(30))
def test_against_a_naive_twin(seed: int) -> None:
    random = Random(seed)
    kept, index = random.choice([1, 2, 7, 64]), random.choice([0, 100])
    requests, twin, ids = RecentRequests(index, kept=kept), Twin(index, kept), [some_id(random)]
    for _ in range(300):
        index += 1
        match random.randrange(10):
            case 0:
                requests.pass_over(index)
            case 1:
                requests = RecentRequests.from_bytes(requests.to_bytes(), kept=kept)
                requests.remember(some_id(random), random.randint(0, index - 1), 1)  # seen before
                index -= 1
            case _:
                ids.append(some_id(random))
                requests.remember(ids[-1], index, index % 17)
                twin.remember(ids[-1], index, index % 17)
        for request_id in (*random.choices(ids, k=3), ids[-1], some_id(random)):
            assert requests.find(request_id) == twin.find(request_id)
            assert requests.complete_since(request_id) == twin.since[is_keyed(request_id)]
        assert requests.through == index


def test_other_requests_under_a_key_are_told() -> None:
    requests = RecentRequests()
    one, other = (keyed("k", "POST", b"/", (text,)) for text in (b"1", b"2"))
    requests.remember(one, 1, 5)
    assert requests.find(other) == Remembered(one, 1, 5)


def test_bytes_say_what_was_there() -> None:
    random = Random(1)
    requests = RecentRequests(41, kept=3)
    for index in range(42, 60):
        requests.remember(some_id(random), index, index)
    data = requests.to_bytes()
    assert len(data) == 48 + 6 * 32
    assert RecentRequests.from_bytes(data, kept=3).to_bytes() == data
    fewer = RecentRequests.from_bytes(data, kept=2)
    assert len(fewer.to_bytes()) == 48 + 4 * 32
    for request_id in (bytes(16), keyed("", "", b"", ())):
        assert fewer.complete_since(request_id) > requests.complete_since(request_id)


def test_damage_is_seen() -> None:
    random = Random(2)
    requests = RecentRequests()
    for index in range(1, 9):
        requests.remember(some_id(random), index, index)
    data = requests.to_bytes()
    for place in range(len(data)):
        damaged = bytearray(data)
        damaged[place] ^= 1 << random.randrange(8)
        with pytest.raises(CorruptionError):
            RecentRequests.from_bytes(bytes(damaged))
        with pytest.raises(CorruptionError):
            RecentRequests.from_bytes(data[:place])
    with pytest.raises(CorruptionError):
        RecentRequests.from_bytes(data + bytes(32))


def test_memory_is_bounded() -> None:
    """200,000 of each kind, of which the last 100,000 are kept."""
    random = Random(3)
    tracemalloc.start()
    try:
        requests = RecentRequests()
        for index in range(1, 400_001, 2):
            requests.remember(fresh(random.randbytes(16)), index, 1)
            requests.remember(keyed(str(index), "POST", b"/", ()), index + 1, 1)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 12 << 20
    assert requests.complete_since(bytes(16)) == 200_000
    assert requests.complete_since(keyed("", "", b"", ())) == 200_001
