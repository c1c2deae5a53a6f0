"""Scrolls and points in time: how long they live, and how many there may be."""

from itertools import count

import pytest

from graphdb.search.contexts import SearchContexts
from graphdb.search.errors import SearchError

DAY_MS = 86_400_000


class Clock:
    now_ms = 1_000

    def __call__(self) -> int:
        return self.now_ms


def opened() -> tuple[SearchContexts, Clock]:
    clock, numbers = Clock(), count(1)
    return SearchContexts(clock, lambda: f"id{next(numbers)}"), clock


def test_a_context_lives_until_its_time_is_over() -> None:
    contexts, clock = opened()
    context_id = contexts.open("state", 500)
    clock.now_ms += 499
    assert contexts.get(context_id).state == "state"
    assert contexts.get(context_id, 300).expires_ms == clock.now_ms + 300
    clock.now_ms += 300
    with pytest.raises(SearchError) as raised:
        contexts.get(context_id)
    assert (raised.value.kind, raised.value.status) == ("search_context_missing_exception", 404)
    assert raised.value.reason == f"No search context found for id [{context_id}]"
    assert len(contexts) == 0


def test_closing_tells_how_many_were_open() -> None:
    contexts, clock = opened()
    ids = [contexts.open(None, 100 + number) for number in range(4)]
    clock.now_ms += 100
    assert contexts.close([*ids[:2], ids[1], "other"]) == 1
    assert contexts.close_all() == 2
    assert len(contexts) == 0


def test_sweeping_lets_go_of_what_has_expired() -> None:
    contexts, clock = opened()
    contexts.open(None, 100)
    contexts.open(None, 200)
    clock.now_ms += 150
    assert contexts.sweep() == 1
    assert len(contexts) == 1


def test_there_are_no_more_than_500() -> None:
    contexts, clock = opened()
    for _ in range(500):
        contexts.open(None, 100)
    with pytest.raises(SearchError, match=r"Must be less than or equal to: \[500\]") as raised:
        contexts.open(None, 100)
    assert (raised.value.kind, raised.value.status) == ("too_many_scroll_contexts_exception", 429)
    clock.now_ms += 100
    contexts.open(None, 100)
    assert len(contexts) == 1


@pytest.mark.parametrize(("keep_alive_ms", "shown"), [(DAY_MS + 1, "1d"), (int(2.5 * DAY_MS), "2.5d")])
def test_no_context_lives_longer_than_a_day(keep_alive_ms: int, shown: str) -> None:
    contexts, _ = opened()
    context_id = contexts.open(None, DAY_MS)
    for ask in (contexts.open, contexts.get):
        with pytest.raises(SearchError) as raised:
            ask(context_id, keep_alive_ms)
        assert raised.value.reason == (
            f"Keep alive for request ({shown}) is too large. It must be less than (1d). This limit can be "
            "set by changing the [search.max_keep_alive] cluster level setting."
        )


def test_contexts_are_counted_by_index_and_owner() -> None:
    contexts, clock = opened()
    contexts.open(None, 100, "ada", ("a", "b"))
    contexts.open(None, 300, "ben", ("b",))
    contexts.open(None, 300)
    assert [contexts.count_on([name]) for name in ("a", "b", "c")] == [1, 2, 0]
    assert contexts.count_on(("a", "b")) == 3  # as indexes count them, one by one
    assert contexts.count_on(("a", "b"), "ben") == 1
    clock.now_ms += 100
    assert contexts.count_on(("a", "b")) == 1
