"""Live queries of a real service that is killed meanwhile: who resumes hears every change, once, in order."""

import itertools
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from websockets.exceptions import WebSocketException

from tests.support.client_threads import ClientThreads
from tests.support.live_socket import live_client
from tests.support.service import Service
from tests.support.timing import HANG_S

pytestmark = [pytest.mark.ray, pytest.mark.slow]

WRITE = "DELETE WHERE {{ <urn:c> <urn:n> ?n }} ; INSERT DATA {{ <urn:c> a <urn:Counter> ; <urn:n> {number} }}"


class Writer(ClientThreads):
    """Counts; remembers what was acknowledged: log index and number."""

    def __init__(self, service: Service, pause_s: float = 0) -> None:
        super().__init__([self._run])
        self._service, self._pause_s = service, pause_s
        self.acknowledged: dict[int, int] = {}

    def _run(self) -> None:
        with httpx.Client(base_url=self._service.url, timeout=HANG_S, trust_env=False) as client:
            for number in itertools.count():
                if self._ended.is_set():
                    return
                try:
                    answer = client.post("/update", data={"update": WRITE.format(number=number)})
                except httpx.TransportError:
                    time.sleep(0.05)
                    continue
                if answer.status_code == 200:
                    self.acknowledged[answer.json()["snapshot_index"]] = number
                self._ended.wait(self._pause_s)


class Listener(ClientThreads):
    """Hears of the counter; goes on, on a new connection, behind what it has heard last."""

    def __init__(self, service: Service, since: int, statement: str = "LIVE SELECT n FROM Counter") -> None:
        super().__init__([self._run])
        self._service, self._since, self._statement = service, since, statement
        self.heard: list[tuple[int, int]] = []
        self.connections = 0

    def _run(self) -> None:
        while not self._ended.is_set():
            since = self.heard[-1][0] if self.heard else self._since
            try:
                with live_client(self._service.url, f"?since={since}", open_timeout=5) as live:
                    if "error" in live.ask("query", self._statement):
                        continue
                    self.connections += 1
                    while not self._ended.is_set():
                        told = live.told(1)[0]
                        if "error" in told:
                            break
                        if told["action"] != "DELETE":
                            self.heard.append((told["index"], told["result"]["n"]))
            except (OSError, WebSocketException):
                time.sleep(0.1)


@pytest.fixture(scope="module")
def mortal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    service = Service(tmp_path_factory.mktemp("live") / "data").start()
    try:
        yield service
    finally:
        service.close()


def wait_for_more(service: Service, listener: Listener) -> None:
    before = len(listener.heard)
    service.wait_until(lambda: len(listener.heard) > before + 20, 60)


def test_a_client_that_resumes_loses_nothing_and_hears_nothing_twice(mortal: Service) -> None:
    since = mortal.update("INSERT DATA { <urn:x> <urn:y> 1 }")["snapshot_index"]
    with Listener(mortal, since) as listener:
        with Writer(mortal) as writer:
            for victim in ("GraphPort", ""):
                wait_for_more(mortal, listener)
                mortal.kill(victim)
                if not victim:
                    mortal.start()
                mortal.wait_ready()
            wait_for_more(mortal, listener)
        last = max(writer.acknowledged)
        mortal.wait_until(lambda: listener.heard[-1][0] >= last, 60)
    assert listener.connections >= 3
    check_all_heard(listener, writer)


def test_so_does_one_whose_query_is_evaluated_anew(mortal: Service) -> None:
    since = mortal.update(WRITE.format(number=0))["snapshot_index"]
    newest = "LIVE SELECT ?n WHERE { <urn:c> <urn:n> ?n } ORDER BY DESC(?n) LIMIT 1"
    with Listener(mortal, since, newest) as listener:
        with Writer(mortal, pause_s=0.1) as writer:
            for victim in ("GraphPort", "readers.evaluator"):
                wait_for_more(mortal, listener)
                mortal.kill(victim)
                mortal.wait_ready()
            wait_for_more(mortal, listener)
        last = max(writer.acknowledged)
        mortal.wait_until(lambda: listener.heard[-1][0] >= last, 60)
    del writer.acknowledged[min(writer.acknowledged)]  # a number that was there is no change
    check_all_heard(listener, writer)


def check_all_heard(listener: Listener, writer: Writer) -> None:
    indexes = [index for index, _ in listener.heard]
    assert indexes == sorted(set(indexes))
    heard = dict(listener.heard)
    assert {index: heard.get(index) for index in writer.acknowledged} == writer.acknowledged


def test_the_stream_of_changes_resumes_after_a_kill(mortal: Service, tmp_path: Path) -> None:
    first = mortal.update("INSERT DATA { <urn:a> <urn:p> 1 }")["snapshot_index"]
    mortal.kill("GraphPort")
    mortal.wait_ready()
    second = mortal.update("INSERT DATA { <urn:a> <urn:p> 2 }")["snapshot_index"]
    answer = httpx.get(f"{mortal.url}/changes?since={first - 1}&follow=false", trust_env=False)
    told = [line for line in answer.text.splitlines() if '"added"' in line]
    assert len(told) == 2
    assert f'"index":{first},' in told[0]
    assert f'"index":{second},' in told[1]
