"""When searches wait for their turn, and who makes them then."""

import asyncio

import pytest

from serve.search.searching.waiting_searches import SearchLoad, WaitingSearch, WaitingSearches

pytestmark = pytest.mark.anyio


class _Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def _work(load: SearchLoad, clock: _Clock, taken_s: float, seconds: float, askers: int) -> bool:
    """Search without a pause; whether searches wait at the end."""
    end, number = clock.now + seconds, 0
    while clock.now < end:
        if load.is_high():
            load.note_asker(number % askers)
        load.note(taken_s)
        clock.now += taken_s / 0.9
        number += 1
    return load.is_high()


def test_long_searches_wait_at_a_port_that_they_keep_busy() -> None:
    for taken_s, waits in ((0.0001, False), (0.002, True)):
        clock = _Clock()
        load = SearchLoad(clock)
        assert not load.is_high()
        assert _work(load, clock, taken_s, 1.0, askers=4) is waits
        clock.now += 2.6
        assert not load.is_high()


def test_what_is_made_elsewhere_counts_as_work() -> None:
    clock = _Clock()
    load = SearchLoad(clock)
    assert _work(load, clock, 0.001, 1.0, askers=4)
    for _ in range(10_000):
        assert load.is_high()
        load.note_asker(int(clock.now * 1e4) % 7)
        load.note_handed_on()
        clock.now += 0.0005


def test_one_client_that_waits_for_each_answer_is_not_made_to_wait() -> None:
    clock = _Clock()
    load = SearchLoad(clock)
    waited = [_work(load, clock, 0.001, 0.05, askers=1) for _ in range(200)]
    assert 0 < sum(waited) < 50


class _Search(WaitingSearch):
    """Notes who makes it. room: how many a process takes."""

    made: "list[str]"
    room = 0

    def hand_on(self, most: int) -> bool:
        if _Search.room < 1:
            return False
        _Search.room -= 1
        self.made.append(f"elsewhere {most}")
        return True

    def search(self) -> None:
        self.made.append("here")


async def test_the_port_makes_one_at_a_time_and_hands_on_what_it_can(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SearchLoad, "is_shared", True)
    made: list[str] = []
    monkeypatch.setattr(_Search, "made", made, raising=False)
    monkeypatch.setattr(_Search, "room", 2)
    waiting = WaitingSearches(SearchLoad(_Clock()))
    for number in range(6):
        search = _Search()
        search.disconnected = number == 3
        waiting.add(search)
    assert made == []
    await asyncio.sleep(0)
    assert made == ["elsewhere 2", "elsewhere 2", "here"]
    for _ in range(3):
        await asyncio.sleep(0)
    assert made[3:] == ["here", "here"]
    monkeypatch.setattr(_Search, "room", 1)
    waiting.add(_Search())
    await asyncio.sleep(0)
    assert made[5:] == ["elsewhere 1"]
