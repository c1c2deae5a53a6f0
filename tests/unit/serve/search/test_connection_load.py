"""When a busy port lends its connections, and how many."""

from typing import Any, cast

from serve.port.lending import Borrowable, Lender
from serve.search.searching.connection_load import ConnectionLoad


class _Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class _Lender:
    """Takes all."""

    def __init__(self) -> None:
        self.lent: list[Borrowable] = []

    def __len__(self) -> int:
        return len(self.lent)

    def lend(self, connection: Borrowable) -> bool:
        self.lent.append(connection)
        return True


def _work(load: ConnectionLoad, clock: _Clock, connections: int, busy: float, seconds: float) -> int:
    """Searches of so many connections in turn, which take this part of the time; how many were lent."""
    lender = _Lender()
    of_all: list[Any] = [object() for _ in range(connections)]
    end, number = clock.now + seconds, 0
    while clock.now < end:
        connection = of_all[number % connections]
        number += 1
        if connection in lender.lent:
            continue
        load.note(0.001 * busy)
        if load.is_high():
            load.offer(connection, lambda: cast(Lender, lender))
        clock.now += 0.001
    assert len(set(lender.lent)) == len(lender.lent)
    return len(lender.lent)


def test_half_of_the_connections_of_a_busy_port_are_lent() -> None:
    for connections, lent in ((1, 0), (2, 1), (3, 1), (8, 4), (64, 32)):
        clock = _Clock()
        assert _work(ConnectionLoad(clock), clock, connections, 0.6, 3.0) == lent


def test_a_port_that_is_not_busy_keeps_them() -> None:
    clock = _Clock()
    load = ConnectionLoad(clock)
    assert _work(load, clock, 8, 0.2, 3.0) == 0
    assert _work(load, clock, 8, 0.6, 1.0) > 0
    clock.now += 3
    assert not load.is_high()


def test_nothing_is_lent_where_nobody_borrows() -> None:
    clock = _Clock()
    load = ConnectionLoad(clock)
    connections: list[Any] = [object(), object()]
    asked = 0

    def nobody() -> Lender | None:
        nonlocal asked
        asked += 1
        return None

    for number in range(2_000):
        load.note(0.0009)
        clock.now += 0.001
        if load.is_high():
            load.offer(connections[number % 2], nobody)
    assert asked > 1_000
