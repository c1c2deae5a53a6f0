"""What the graph port hears of the search port, which is a process of its own and may be killed."""

import asyncio
import subprocess
import sys
import threading
from pathlib import Path

from serve.deployments.search_note import SearchNote, search_word
from tests.support.timing import HANG_S

TELLER = """
import asyncio, sys
from serve.deployments.search_note import SearchNote

async def tell():
    await SearchNote(sys.argv[1], lambda: sys.argv[2] == "starting", lambda: sys.argv[2] == "healthy").begin()
    print("told", flush=True)
    await asyncio.sleep(60)

asyncio.run(tell())
"""


def tell(directory: Path, word: str) -> "subprocess.Popen[bytes]":
    """A process that tells how it is."""
    command = [sys.executable, "-c", TELLER, str(directory), word]
    teller = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert teller.stdout is not None
    assert teller.stdout.readline() == b"told\n"
    return teller


def kill(teller: "subprocess.Popen[bytes]") -> None:
    teller.kill()
    teller.communicate()


def test_one_that_never_was_there_is_starting(tmp_path: Path) -> None:
    assert search_word(str(tmp_path)) == "starting"


def test_a_killed_one_is_not_well_until_the_next_is(tmp_path: Path) -> None:
    first = tell(tmp_path, "healthy")
    assert search_word(str(tmp_path)) == "healthy"
    kill(first)
    assert search_word(str(tmp_path)) == "degraded"
    second = tell(tmp_path, "starting")  # but the service has started long since
    assert search_word(str(tmp_path)) == "degraded"
    kill(second)
    third = tell(tmp_path, "healthy")
    assert search_word(str(tmp_path)) == "healthy"
    kill(third)


def test_one_that_is_killed_before_it_was_well_is_starting(tmp_path: Path) -> None:
    first = tell(tmp_path, "starting")
    assert search_word(str(tmp_path)) == "starting"
    kill(first)
    assert search_word(str(tmp_path)) == "starting"


def test_one_that_cannot_be_well_does_not_keep_the_node_from_its_start(tmp_path: Path) -> None:
    teller = tell(tmp_path, "error")
    assert search_word(str(tmp_path)) == "degraded"
    kill(teller)


def test_it_follows_how_the_port_is(tmp_path: Path) -> None:
    states = {"opening": True, "well": False}
    seen: list[str] = []

    async def live() -> None:
        note = SearchNote(str(tmp_path), lambda: states["opening"], lambda: states["well"])
        await note.begin()
        for opening, well in ((True, False), (False, True), (True, False), (False, True)):
            states["opening"], states["well"] = opening, well
            note.tell()
            seen.append(search_word(str(tmp_path)))
        states["well"] = False
        async with asyncio.timeout(HANG_S):
            while search_word(str(tmp_path)) != "degraded":  # noqa: ASYNC110 it tells by itself
                await asyncio.sleep(0.05)
        states["well"] = True
        note.tell()
        await note.close()

    asyncio.run(live())
    assert seen == ["starting", "healthy", "degraded", "healthy"]
    assert search_word(str(tmp_path)) == "degraded"  # closed in order: it answers nobody any more


def test_the_next_waits_for_one_that_still_lives(tmp_path: Path) -> None:
    first = tell(tmp_path, "healthy")

    async def follow() -> str:
        note = SearchNote(str(tmp_path), lambda: True, lambda: False)
        beginning = asyncio.create_task(note.begin())
        await asyncio.sleep(0.2)
        assert not beginning.done()
        assert search_word(str(tmp_path)) == "healthy"
        kill(first)
        await beginning
        word = search_word(str(tmp_path))
        await note.close()
        return word

    assert asyncio.run(follow()) == "degraded"


def test_the_next_one_is_never_taken_for_the_one_before(tmp_path: Path) -> None:
    first = tell(tmp_path, "healthy")
    kill(first)
    words, is_over = set[str](), threading.Event()

    def read() -> None:
        while not is_over.is_set():
            words.add(search_word(str(tmp_path)))

    reader = threading.Thread(target=read)
    reader.start()
    second = tell(tmp_path, "degraded")
    is_over.set()
    reader.join()
    kill(second)
    assert words == {"degraded"}
