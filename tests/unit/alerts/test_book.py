"""The book of alerts: what commands do, when they fit, and that it survives being written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphdb.alerts.book import HISTORY_MAX, PENDING_MAX, AlertBook
from graphdb.alerts.commands import (
    Command,
    Create,
    Delete,
    Fire,
    Note,
    Pause,
    Resume,
    Settle,
    decode_command,
    encode_command,
)
from graphdb.errors import AlreadyExists, CorruptionError, LimitExceeded, NotFound, RequestError
from tests.support.alerts import NOON_MS, definition


class Log:
    """Commands as entries, each planned and applied as by a node that leads."""

    def __init__(self) -> None:
        self.book = AlertBook()
        self.payloads: list[bytes] = []

    def __call__(self, command: Command) -> None:
        self.payloads.append(self.book.plan(command, 1_000))
        self.book.apply(len(self.payloads), self.payloads[-1])


def fire(tick: int, alert: str = "a") -> Fire:
    return Fire(alert, f"d{tick}", NOON_MS + tick, tick, 7, tick, "{}")


def settle(tick: int, error: str | None = None) -> Settle:
    return Settle("a", f"d{tick}", NOON_MS + tick + 1, 2, 500 if error else 200, error)


def note(tick: int, error: str | None = None, *, is_holding: bool = False) -> Note:
    return Note("a", NOON_MS + tick, tick, None, is_holding, error)


@pytest.fixture
def log() -> Log:
    log = Log()
    log(Create("a", definition("first"), NOON_MS))
    return log


def test_names_and_ids_are_taken_once(log: Log) -> None:
    for command in (Create("b", definition("first"), 0), Create("a", definition("other"), 0)):
        with pytest.raises(AlreadyExists):
            log(command)
    log(Create("b", definition("a"), 0))
    assert log.book.find("a").definition.name == "first", "an id comes before a name"
    assert log.book.find("first").id == "a"
    with pytest.raises(LimitExceeded, match=r"alerts\.max_alerts"):
        log.book.plan(Create("c", definition("third"), 0), 2)
    log(Delete("first"))
    assert [alert.id for alert in log.book.alerts.values()] == ["b"]
    for gone in (
        Delete("first"),
        Pause("first"),
        Resume("x"),
        fire(1, "x"),
        Settle("x", "d", 0, 1, 200, None),
    ):
        with pytest.raises(NotFound):
            log(gone)


def test_firing_and_delivery(log: Log) -> None:
    log(fire(1))
    alert = log.book.find("a")
    assert (alert.fire_count, alert.fired_at_ms, alert.value) == (1, NOON_MS + 1, 1)
    assert [delivery.body for delivery in alert.pending] == ["{}"]
    log(settle(1))
    alert = log.book.find("a")
    (delivery,) = alert.deliveries
    assert (delivery.status, delivery.attempts, delivery.body, alert.status) == ("delivered", 2, "", "active")
    with pytest.raises(NotFound):
        log(settle(1))
    log(fire(2))
    log(settle(2, "no answer"))
    assert (log.book.find("a").status, log.book.find("a").error) == ("error", "no answer")
    log(fire(3))
    log(settle(3))
    assert log.book.find("a").status == "active"


def test_one_evaluation_is_told_once(log: Log) -> None:
    log(fire(1))
    for again in (fire(1), note(1)):
        with pytest.raises(AlreadyExists):
            log(again)
    log(Pause("a"))
    with pytest.raises(NotFound):
        log(fire(2))
    log(settle(1))  # what has fired is told, though
    log(Resume("first"))
    log(fire(2))


def test_errors_come_and_go(log: Log) -> None:
    log(note(1, "no such function"))
    assert (log.book.find("a").status, log.book.find("a").error) == ("error", "no such function")
    log(Pause("a"))
    assert log.book.find("a").status == "paused"
    log(Resume("a"))
    assert (log.book.find("a").status, log.book.find("a").error) == ("active", None)
    log(note(2, "again"))
    log(note(3, is_holding=True))
    assert (log.book.find("a").status, log.book.find("a").is_holding) == ("active", True)


def test_what_a_webhook_does_not_take_is_bounded_and_what_is_pending_is_kept(log: Log) -> None:
    for tick in range(1, 2 * HISTORY_MAX):
        log(fire(tick))
    alert = log.book.find("a")
    assert [delivery.id for delivery in alert.pending] == [f"d{tick}" for tick in range(1, PENDING_MAX + 1)]
    assert (len(alert.deliveries), alert.fire_count) == (HISTORY_MAX, 2 * HISTORY_MAX - 1)
    assert alert.deliveries[-1].status == "failed"
    assert alert.status == "error"


def test_an_entry_that_does_not_fit_any_more_is_nothing(log: Log) -> None:
    log.book.apply(10, encode_command(Delete("nobody")))
    assert [*log.book.alerts] == ["a"]
    log.book.apply(10, encode_command(Delete("a")))  # it was taken
    assert [*log.book.alerts] == ["a"]
    with pytest.raises(CorruptionError):
        log.book.apply(11, b'{"do":"dance"}')


def test_damage_is_found(log: Log) -> None:
    data = log.book.to_bytes()
    for damaged in (b"", data[:-1], data[:5] + b"x" + data[6:], b"XXXX" + data[4:], data[:-3] + b"???"):
        with pytest.raises(CorruptionError):
            AlertBook.from_bytes(damaged)


COMMANDS: st.SearchStrategy[Command] = st.one_of(
    st.builds(Create, st.sampled_from("abc"), st.sampled_from("xyz").map(definition), st.just(NOON_MS)),
    st.builds(Delete, st.sampled_from("abcxyz")),
    st.builds(Pause, st.sampled_from("abcxyz")),
    st.builds(Resume, st.sampled_from("abcxyz")),
    st.builds(
        Fire,
        st.sampled_from("abc"),
        st.sampled_from("1234567"),
        st.integers(0, 9),
        st.integers(0, 9),
        st.just(3),
        st.one_of(st.none(), st.integers(-9, 9), st.floats(-1, 1)),
        st.just("{}"),
    ),
    st.builds(
        Note,
        st.sampled_from("abc"),
        st.integers(0, 9),
        st.integers(0, 9),
        st.none(),
        st.booleans(),
        st.one_of(st.none(), st.just("an error")),
    ),
    st.builds(
        Settle,
        st.sampled_from("abc"),
        st.sampled_from("1234567"),
        st.integers(0, 9),
        st.integers(1, 9),
        st.one_of(st.none(), st.just(200)),
        st.one_of(st.none(), st.just("an error")),
    ),
)


@given(st.lists(COMMANDS, max_size=40), st.data())
def test_the_same_entries_make_the_same_alerts_wherever_one_begins_to_replay(
    commands: list[Command], data: st.DataObject
) -> None:
    log = Log()
    kept = [log.book.to_bytes()]
    for command in commands:
        assert decode_command(encode_command(command)) == command
        try:
            log(command)
        except RequestError:
            continue
        kept.append(log.book.to_bytes())
    through = data.draw(st.integers(0, len(log.payloads)))
    begin = data.draw(st.integers(0, through))  # entries that the kept state has already may come again
    book = AlertBook.from_bytes(kept[through])
    for index, payload in enumerate(log.payloads[begin:], begin + 1):
        book.apply(index, payload)
    assert book.to_bytes() == kept[-1]
    assert {alert.id: alert for alert in book.alerts.values()} == dict(log.book.alerts)
