"""The targets of campaigns by name: the parser alone, the application over memory, a running service."""

import dataclasses
import logging
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from pathlib import Path
from random import Random

import httpx

from graphdb.config import Settings
from serve.graph_app import build_app
from tests.support.fuzzing.campaign import Target
from tests.support.fuzzing.findings import BrokenPromise
from tests.support.fuzzing.live_target import live_target
from tests.support.fuzzing.requests import Request, random_request
from tests.support.fuzzing.sender import check_request
from tests.support.fuzzing.text_target import TextTarget
from tests.support.http_server import serving
from tests.support.memory_backend import MemoryBackend
from tests.support.service import Service

__all__ = ["TARGETS", "HttpTarget", "app_target", "service_target"]

QUERY_TIMEOUT_S = 1.5
ANSWER_S = QUERY_TIMEOUT_S + 5  # much later than any answer should be, for the machine may be busy
# Comes and goes by design: evaluators are replaced, the store is read once for the column view, Ray keeps
# idle workers for a while, which have no name of their own at first.
FLEETING = ("actors.readers.evaluator", "actors.columns.dumping", "ray::IDLE", "default_worker.py")
DATA = """
PREFIX : <http://e/>
INSERT DATA {
  :a :p :b, 1, 'x'@en . :b :q :a, 2.5 . _:x :p :a ~ :r {| :q "2020-01-01" |} . GRAPH :g { :a :p :a }
}
"""


class HttpTarget:
    """Something that answers HTTP; with a service, its processes are looked after too."""

    batch = 200

    def __init__(self, name: str, port: int, service: Service | None = None) -> None:
        self.name, self._port, self._service = name, port, service
        self._http = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30, trust_env=False)
        self._numbers = count(1)
        self._pids = self._lasting_pids()
        self.check_alive()

    def case(self, random: Random) -> Request:
        return random_request(random)

    def check(self, case: Request) -> str:
        return check_request("127.0.0.1", self._port, case, ANSWER_S)

    def check_alive(self) -> None:
        """No process has died, a change is made, a point query finds it."""
        gone = self._pids - self._lasting_pids()
        if gone:
            raise BrokenPromise(f"died: processes {sorted(gone)} are gone")
        number = next(self._numbers)
        point = f"INSERT DATA {{ <urn:fuzz:point> <urn:fuzz:p> {number} }} ;"
        self._post("/update", "sparql-update", f"DELETE WHERE {{ <urn:fuzz:point> ?p ?o }} ; {point} {DATA}")
        answer = self._post("/sparql", "sparql-query", "SELECT ?o { <urn:fuzz:point> <urn:fuzz:p> ?o }")
        values = [row["o"]["value"] for row in answer.json()["results"]["bindings"]]
        if values != [str(number)]:
            raise BrokenPromise(f"wrong: a point query finds {values} and not {number}")

    def wire(self, case: Request) -> bytes:
        return case.wire

    def with_wire(self, case: Request, wire: bytes) -> Request:
        return dataclasses.replace(case, wire=wire, is_framed=False)

    def close(self) -> None:
        self._http.close()

    def _post(self, path: str, kind: str, text: str) -> httpx.Response:
        try:
            answer = self._http.post(path, content=text, headers={"Content-Type": f"application/{kind}"})
        except httpx.HTTPError as error:
            raise BrokenPromise(f"gone: {path} does not answer: {error!r}") from error
        if answer.status_code != 200:
            raise BrokenPromise(f"wrong: {path} answers {answer.status_code} {answer.text}")
        return answer

    def _lasting_pids(self) -> set[int]:
        if self._service is None:
            return set()
        fleeting = {pid for name in FLEETING for pid in self._service.pids(name)}
        return set(self._service.pids()) - fleeting


@contextmanager
def text_target() -> Iterator[TextTarget]:
    """The parser, in this process."""
    yield TextTarget("parser")


@contextmanager
def app_target() -> Iterator[HttpTarget]:
    """The application over memory, served by a thread of this process."""
    with tempfile.TemporaryDirectory() as directory, _quiet("serve"):
        server = {
            "query_timeout_seconds": QUERY_TIMEOUT_S,
            "max_body_bytes": 1_000_000,
            "data_dir": directory,
        }
        settings = Settings.model_validate({"server": server, "holonic": {"enabled": True}})
        with serving(build_app(MemoryBackend(), settings)) as url:
            target = HttpTarget("app", int(url.rpartition(":")[2]))
            try:
                yield target
            finally:
                target.close()


@contextmanager
def _quiet(logger_name: str) -> Iterator[None]:
    """Without the warnings that the requests deserve."""
    logger = logging.getLogger(logger_name)
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


@contextmanager
def service_target() -> Iterator[HttpTarget]:
    """A service of its own."""
    with tempfile.TemporaryDirectory() as directory:
        config = Path(directory) / "fuzz.toml"
        config.write_text(f"[server]\nquery_timeout_seconds = {QUERY_TIMEOUT_S}\nmax_body_bytes = 1000000\n")
        service = Service(Path(directory) / "data", "--config", str(config))
        try:
            target = HttpTarget("service", service.start().port, service)
            try:
                yield target
            finally:
                target.close()
        finally:
            service.close()


TARGETS: dict[str, Callable[[], AbstractContextManager[Target]]] = {
    "parser": text_target,
    "app": app_target,
    "live": live_target,
    "service": service_target,
}
