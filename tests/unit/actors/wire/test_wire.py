"""One way between processes: calls, streams, how they end, and what is too large or makes no sense."""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.wire import messages as wire_messages
from actors.wire.blocking import BlockingStream
from actors.wire.client import WireClient
from actors.wire.connection import stream_over
from actors.wire.messages import Done, Frame, Messages, Piece, expect
from actors.wire.server import Call, WireServer
from graphdb.errors import (
    LimitExceeded,
    LogUnavailable,
    OutcomeUnknown,
    QueryTimeout,
    UnavailableError,
)
from tests.support.readers import answering
from tests.support.timing import HANG_S
from tests.support.travelling import travelled

pytestmark = pytest.mark.anyio


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    number: int = 0


@dataclass(frozen=True, slots=True)
class Reply:
    texts: tuple[str, ...]
    of: Question | None = None


MESSAGES = Messages(Question, Reply)
LARGE = b"x" * 65_536


class Asked:
    """A server that hands its calls to a test."""

    def __init__(self, directory: Path) -> None:
        self.calls: asyncio.Queue[Call] = asyncio.Queue()
        self.server = WireServer(
            MESSAGES,
            "the oracle",
            str(directory / "oracle.sock"),
            self.calls.put_nowait,
            otherwise=LogUnavailable,
        )
        self.client = WireClient(MESSAGES, "the oracle does", answering(self.server.path))

    async def next(self) -> Call:
        async with asyncio.timeout(HANG_S):
            return await self.calls.get()


@pytest.fixture
async def asked(tmp_path: Path) -> AsyncIterator[Asked]:
    asked = Asked(tmp_path)
    await asked.server.start()
    yield asked
    asked.client.close()
    await asked.server.close()


def ask(asked: Asked, text: str, timeout_s: float | None = 5) -> "asyncio.Task[Reply]":
    return asyncio.create_task(asked.client.ask(Question(text), Reply, timeout_s))


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(HANG_S):
        while not holds():  # noqa: ASYNC110 nobody tells
            await asyncio.sleep(0.005)


# bytes


@given(st.text(st.characters(codec="utf-8")), st.integers(-(2**63), 2**63 - 1), st.binary())
def test_messages_round_trip(text: str, number: int, data: bytes) -> None:
    question = Question(text, number)
    for message in (question, Reply((text, ""), question), Reply(()), Piece(data), Done()):
        assert travelled(MESSAGES, message) == message


@given(st.lists(st.binary(max_size=40)), st.data())
def test_frames_are_cut_wherever_the_bytes_are(bodies: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(MESSAGES.encode(Piece(body), number) for number, body in enumerate(bodies))
    reader, frames = MESSAGES.reader(), []
    while stream:
        count = data.draw(st.integers(1, len(stream)))
        reader.room()[:count] = stream[:count]
        frames += reader.received(count)
        stream = stream[count:]
    assert [(frame.number, frame.body) for frame in frames] == list(enumerate(bodies))


@pytest.mark.parametrize("size", [0, 1, 98_294, 98_295, 98_296, 98_304, 200_000, 1_000_000])
def test_messages_of_all_sizes_go_one_after_another(size: int) -> None:
    """The reader's own room has 96 kB."""
    stream = b"".join(MESSAGES.encode(Piece(bytes([n]) * size), n) for n in range(3))
    reader, frames = MESSAGES.reader(), []
    while stream:
        room = reader.room()
        count = min(len(room), len(stream), 65_536)
        room[:count] = stream[:count]
        frames += reader.received(count)
        stream = stream[count:]
    assert frames == [Frame(1, n, bytes([n]) * size) for n in range(3)]


def test_a_message_that_is_too_large_is_refused_at_both_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = MESSAGES.encode(Piece(b"x" * 1001))
    monkeypatch.setattr(wire_messages, "MESSAGE_BYTES_MAX", 1000)
    for message in (Piece(b"x" * 1001), Question("x" * 1001)):
        with pytest.raises(LimitExceeded):
            MESSAGES.encode(message)
    reader = MESSAGES.reader()
    reader.room()[:10] = stream[:10]
    with pytest.raises(ValueError, match="1010 bytes"):
        reader.received(10)


@given(st.integers(0, 255), st.binary())
def test_garbage_is_told_apart(code: int, body: bytes) -> None:
    try:
        message = MESSAGES.decode(Frame(code, 0, body))
    except ValueError:
        return
    assert isinstance(message, Piece | Done | Question | Reply)


def test_a_protocol_that_is_extended_keeps_its_codes() -> None:
    more = MESSAGES.extended(Frame)
    assert more.kinds[:2] == MESSAGES.kinds
    assert more.encode(Question("a")) == MESSAGES.encode(Question("a"))


def test_what_is_expected() -> None:
    assert expect(Done, Done()) == Done()
    with pytest.raises(UnavailableError, match="Piece was answered where Done"):
        expect(Done, Piece(b""))


# calls


async def test_answers_find_their_requests_in_any_order(asked: Asked) -> None:
    tasks = [ask(asked, str(number)) for number in range(3)]
    calls = [await asked.next() for _ in tasks]
    assert len(asked.server.connections) == 1
    for number in (2, 0, 1):
        calls[number].answer(Reply((str(number),), calls[number].request))
    assert await asyncio.gather(*tasks) == [
        Reply((str(number),), Question(str(number))) for number in range(3)
    ]


async def test_errors_are_raised_at_the_client(asked: Asked) -> None:
    for error, told in [
        (QueryTimeout("late"), QueryTimeout("late")),
        (KeyError("x"), LogUnavailable("a part of the service failed: KeyError('x')")),
    ]:
        asking = ask(asked, "?")
        (await asked.next()).fail(error)
        with pytest.raises(type(told)) as met:
            await asking
        assert met.value.args == told.args


async def test_an_answer_that_does_not_come_in_time(asked: Asked) -> None:
    asking = ask(asked, "?", 0.05)
    call = await asked.next()
    with pytest.raises(OutcomeUnknown, match=r"the oracle has not answered for 0\.05 s"):
        await asking
    call.answer(Reply(("late",)))  # nobody waits for it
    again = ask(asked, "?")
    (await asked.next()).answer(Reply(("now",)))
    assert await again == Reply(("now",))


async def test_one_that_waits_for_ever_waits(asked: Asked) -> None:
    asking = ask(asked, "?", None)
    await asked.next()
    assert not (await asyncio.wait([asking], timeout=0.1))[0]
    asking.cancel()


async def test_a_server_that_closes_leaves_outcomes_unknown_and_is_found_again(asked: Asked) -> None:
    asking = ask(asked, "?")
    await asked.next()
    await asked.server.close()
    with pytest.raises(OutcomeUnknown, match="the connection to the oracle was lost"):
        await asking
    with pytest.raises(UnavailableError, match="the oracle does not answer: No such file"):
        await ask(asked, "?")
    await asked.server.start()
    again = ask(asked, "?")
    (await asked.next()).answer(Reply(()))
    assert await again == Reply(())


async def test_a_future_is_answered_and_given_up_with_its_client(asked: Asked) -> None:
    asking = ask(asked, "?")
    done: Future[int] = Future()
    (await asked.next()).answer_with(done, lambda number: Reply((str(number),)))
    done.set_result(3)
    assert await asking == Reply(("3",))
    asking = ask(asked, "?")
    left: Future[int] = Future()
    (await asked.next()).answer_with(left, lambda number: Reply(()))
    asked.client.close()
    with pytest.raises(OutcomeUnknown):
        await asking
    await until(left.cancelled)


async def test_a_task_that_fails_answers_with_its_error(asked: Asked) -> None:
    async def work() -> None:
        raise QueryTimeout("late")

    asking = ask(asked, "?")
    (await asked.next()).run(work())
    with pytest.raises(QueryTimeout):
        await asking


async def test_a_request_that_is_not_of_its_kind_is_refused_and_the_connection_stays(asked: Asked) -> None:
    reader, writer = await asyncio.open_unix_connection(asked.server.path)
    writer.write(struct.pack("<IBI", 1, 3, 5) + b"\xc1" + MESSAGES.encode(Question("?"), 6))
    code, number = struct.unpack("<4xBI", await reader.readexactly(9))
    assert (code, number) == (0, 5)
    assert (await asked.next()).request == Question("?")
    writer.close()


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (struct.pack("<IBI", 0xFFFFFFFF, 2, 1), "a frame of 4294967304 bytes"),
        (b"GET / HTTP/1.1\r\n", "a frame of 542393671 bytes with the code 47"),
        (struct.pack("<IBI", 0, 5, 1), "a frame of 0 bytes with the code 5"),
        (MESSAGES.encode_failure(QueryTimeout("late"), 1), "with the code 0"),
    ],
    ids=["endless", "http", "unknown code", "failure"],
)
async def test_a_client_that_sends_what_makes_no_sense_is_left(
    asked: Asked, caplog: pytest.LogCaptureFixture, data: bytes, told: str
) -> None:
    reader, writer = await asyncio.open_unix_connection(asked.server.path)
    writer.write(data)
    async with asyncio.timeout(HANG_S):
        assert await reader.read() == b""
    [line] = caplog.messages
    assert line.startswith(
        "a connection between processes is ended: the other end sends what makes no sense: "
    )
    assert line.endswith(told)
    writer.close()


async def test_a_client_that_dies_in_the_midst_of_a_frame_is_forgotten(
    asked: Asked, caplog: pytest.LogCaptureFixture
) -> None:
    data = MESSAGES.encode(Question("x" * 1000), 2)
    for cut in (3, 9, 500, len(data) - 1):
        _, writer = await asyncio.open_unix_connection(asked.server.path)
        writer.write(MESSAGES.encode(Question("whole"), 1) + data[:cut])
        call = await asked.next()
        writer.transport.abort()
        await until(lambda: not asked.server.connections)
        assert call.is_over
    assert asked.calls.empty()
    assert not caplog.messages


@pytest.mark.parametrize("cut", [3, 9, 500])
async def test_a_server_that_dies_in_the_midst_of_a_frame_leaves_the_outcome_unknown(
    tmp_path: Path, cut: int
) -> None:
    async def die(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(9)
        writer.write(MESSAGES.encode(Reply(("x" * 1000,)), 1)[:cut])
        await writer.drain()
        writer.close()

    path = str(tmp_path / "oracle.sock")
    async with await asyncio.start_unix_server(die, path):
        client = WireClient(MESSAGES, "the oracle does", answering(path))
        with pytest.raises(OutcomeUnknown, match="the connection to the oracle was lost"):
            await client.ask(Question("?"), Reply, 5)
        with pytest.raises(UnavailableError, match="the oracle does not answer"):
            await client.call(Question("?"), Reply, 5)
        client.close()


async def test_an_answer_that_makes_no_sense_ends_the_connection_of_its_client(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def babble(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK")
        writer.close()

    path = str(tmp_path / "oracle.sock")
    async with await asyncio.start_unix_server(babble, path):
        client = WireClient(MESSAGES, "the oracle does", answering(path))
        with pytest.raises(OutcomeUnknown, match="the connection to the oracle was lost"):
            await client.ask(Question("?"), Reply, 5)
        assert "with the code 47" in caplog.text
        client.close()


async def test_many_calls_at_once_on_one_connection(asked: Asked) -> None:
    tasks = [ask(asked, str(number)) for number in range(200)]
    calls = [await asked.next() for _ in tasks]
    assert len(asked.server.connections) == 1
    for call in sorted(calls, key=lambda call: hash(call.request)):
        if int(call.request.text) % 10:
            call.answer(Reply((call.request.text,)))
        else:
            call.fail(QueryTimeout(call.request.text))
    for number, answer in enumerate(await asyncio.gather(*tasks, return_exceptions=True)):
        if number % 10:
            assert answer == Reply((str(number),))
        else:
            assert isinstance(answer, QueryTimeout)
            assert answer.args == QueryTimeout(str(number)).args


# calls with a connection of their own


async def test_a_call_has_its_own_connection_and_cancels_with_it(asked: Asked) -> None:
    calling = asyncio.create_task(asked.client.call(Question("?"), Reply, None))
    ended = asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    (await asked.next()).run(work())
    await asyncio.sleep(0)
    calling.cancel()
    async with asyncio.timeout(HANG_S):
        await ended.wait()
    assert asked.client._channel is None


async def test_a_call_that_nobody_answers(asked: Asked) -> None:
    with pytest.raises(UnavailableError, match="the oracle does not answer"):
        await asked.client.call(Question("?"), Reply, 0.05)
    calling = asyncio.create_task(asked.client.call(Question("?"), Reply, 5))
    await asked.next()
    await asked.next()
    await asked.server.close()
    with pytest.raises(UnavailableError, match="the oracle does not answer"):
        await calling
    await asked.server.start()


async def test_a_stream_and_a_client_that_goes_on(asked: Asked) -> None:
    stream = await asked.client.open()
    stream.send(Question("first"))
    call = await asked.next()
    await call.send(Reply(("go on",)))
    assert await stream.read() == Reply(("go on",))
    hearing = asyncio.create_task(call.receive())
    stream.send(Question("second"))
    assert await hearing == Question("second")
    await call.send(Piece(b"a"), Piece(b"b"))
    call.answer(Piece(b"c"), Done())
    assert [await stream.read() for _ in range(4)] == [Piece(b"a"), Piece(b"b"), Piece(b"c"), Done()]
    stream.close()
    stream.close()
    assert await stream.read() is None
    stream.send(Question("nobody hears"))


async def test_a_stream_that_is_not_read_makes_its_sender_wait(asked: Asked) -> None:
    stream = await asked.client.open()
    stream.send(Question("?"))
    call = await asked.next()
    sent = 0

    async def work() -> None:
        nonlocal sent
        for _ in range(100):
            await call.send(Piece(LARGE))
            sent += 1
        call.answer(Done())

    call.run(work())
    async with asyncio.timeout(HANG_S):
        while sent < 2:  # noqa: ASYNC110 a sender that gets on has no event
            await asyncio.sleep(0.01)
    await asyncio.sleep(0.3)
    assert sent < 30
    got = 0
    while isinstance(message := await stream.read(), Piece):
        got += len(message.data)
    assert (message, got) == (Done(), 100 * len(LARGE))
    stream.close()


async def test_a_sender_can_stop_waiting(asked: Asked) -> None:
    stream = await asked.client.open()
    stream.send(Question("?"))
    call = await asked.next()

    async def work() -> None:
        for _ in range(100):
            await call.send(Piece(LARGE))
        ended.set()

    ended = asyncio.Event()
    call.run(work())
    await asyncio.sleep(0.1)
    assert not ended.is_set()
    call.wait_no_more()
    async with asyncio.timeout(HANG_S):
        await ended.wait()
    stream.close()


async def test_what_there_is_to_do_when_a_client_goes(asked: Asked) -> None:
    stream = await asked.client.open()
    stream.send(Question("?"))
    call = await asked.next()
    gone = asyncio.Event()
    call.on_gone = gone.set
    stream.close()
    async with asyncio.timeout(HANG_S):
        await gone.wait()
    assert call.is_over
    call.answer(Done())  # nobody is there
    await call.send(Done())


async def test_a_stream_ends_in_the_midst_where_the_server_goes(asked: Asked) -> None:
    stream = await asked.client.open()
    stream.send(Question("?"))
    await (await asked.next()).send(Piece(b"a"))
    await until(lambda: bool(stream._frames))
    await asked.server.close()
    assert await stream.read() == Piece(b"a")
    assert await stream.read() is None
    stream.close()
    await asked.server.start()


async def test_where_the_process_is_is_asked_again_after_it_was_away(tmp_path: Path) -> None:
    paths = [str(tmp_path / "nobody.sock"), str(tmp_path / "oracle.sock")]

    async def endpoint() -> str:
        return paths.pop(0)

    asked = Asked(tmp_path)
    client = WireClient(MESSAGES, "the oracles do", endpoint, away=LogUnavailable)
    await asked.server.start()
    with pytest.raises(LogUnavailable, match="the oracles do not answer: No such file"):
        await client.open()
    (await client.open()).close()
    (await client.open()).close()
    assert paths == []
    await asyncio.sleep(0.05)
    await asked.server.close()


# a child process's end


async def test_the_end_without_an_event_loop() -> None:
    ours, theirs = socket.socketpair()
    stream = await stream_over(MESSAGES, ours)
    other = BlockingStream(MESSAGES, theirs)
    stream.send(Question("a"))
    stream.send(Question("b" * 200_000))
    assert await asyncio.to_thread(other.read) == Question("a")
    assert await asyncio.to_thread(other.read) == Question("b" * 200_000)
    other.send(Piece(b"x"))
    other.fail(QueryTimeout("late"))
    assert await stream.read() == Piece(b"x")
    with pytest.raises(QueryTimeout):
        await stream.read()
    stream.close()
    assert await asyncio.to_thread(other.read) is None
    theirs.close()


@pytest.mark.parametrize("unread", [b"", b"x"], ids=["all read", "something unread"])
def test_the_end_without_an_event_loop_whose_other_end_dies_in_the_midst_of_a_frame(unread: bytes) -> None:
    ours, theirs = socket.socketpair()
    stream = BlockingStream(MESSAGES, theirs)
    ours.sendall(MESSAGES.encode(Question("a")) + MESSAGES.encode(Question("b"))[:-1])
    theirs.sendall(unread)  # for which the kernel resets the connection
    ours.close()
    assert stream.read() == Question("a")
    assert stream.read() is None
    theirs.close()


async def test_an_adopted_pair(asked: Asked) -> None:
    async def nowhere() -> str:
        raise LogUnavailable("it is gone")

    ours, theirs = socket.socketpair()
    connection = await asked.server.adopt(ours)
    client = WireClient(MESSAGES, "the oracle does", nowhere)
    await client.adopt(theirs)
    asking = asyncio.create_task(client.ask(Question("?"), Reply, 5))
    (await asked.next()).answer(Reply(()))
    assert await asking == Reply(())
    connection.close()
    async with asyncio.timeout(HANG_S):
        await client.until_gone()
        await connection.ended()
    with pytest.raises(LogUnavailable):
        await client.ask(Question("?"), Reply, 5)


# connections that are kept


async def test_a_connection_is_used_for_one_call_after_another(asked: Asked) -> None:
    stream = await asked.client.open()
    for number in range(3):
        stream.send(Question(str(number)))
        call = await asked.next()
        call.wait_no_more()
        call.answer(Piece(b"x"), Reply((str(number),)))
        assert [await stream.read(), await stream.read()] == [Piece(b"x"), Reply((str(number),))]
        asked.client.keep(stream)
        assert asked.client.kept() is stream
    assert asked.client.kept() is None
    assert len(asked.server.connections) == 1


async def test_a_call_waits_for_a_slow_reader_though_one_before_did_not(asked: Asked) -> None:
    stream = await asked.client.open()
    stream.send(Question("first"))
    call = await asked.next()
    call.wait_no_more()
    call.answer(Done())
    assert await stream.read() == Done()
    stream.send(Question("second"))
    call = await asked.next()
    sent = 0

    async def send_all() -> None:
        nonlocal sent
        for _ in range(400):
            await call.send(Piece(LARGE))
            sent += 1
        call.answer(Done())

    sending = asyncio.create_task(send_all())
    await asyncio.sleep(0.2)
    assert sent < 400
    while await stream.read() != Done():
        pass
    await sending
    stream.close()


async def test_a_kept_connection_that_has_ended_is_not_used(asked: Asked) -> None:
    stream = await asked.client.open()
    stream.send(Question(""))
    (await asked.next()).answer(Done())
    assert await stream.read() == Done()
    asked.client.keep(stream)
    (connection,) = asked.server.connections
    connection.close()
    await until(lambda: stream.is_gone)
    assert asked.client.kept() is None
