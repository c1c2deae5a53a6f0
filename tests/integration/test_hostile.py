"""Some queries of `python -m benchmarks hostile`: each ends in time, and leaves nothing behind."""

import threading
from collections.abc import Iterator

import httpx
import pytest

from benchmarks.hostile import BACK_S, GRACE_S, SETTINGS, TIMEOUT_S, attack_once
from benchmarks.hostile_queries import ATTACKS, POINT_QUERY, Attack, hostile_data
from benchmarks.process_usage import usage, wait_until_back
from benchmarks.service import BenchmarkError, RunningService, running_service
from tests.support.timing import HANG_S, quick_enough

pytestmark = [pytest.mark.ray, pytest.mark.slow]

SCALE = 0.1
BUSY_MACHINE_S = 2.0  # what a test allows beside the grace that the service is meant to keep
NAMES = (
    "a cross product, counted",
    "GROUP BY of millions of groups",
    "a closure both ways",
    "CONCAT that doubles",
    "nested too deep",
    "a stream that is not read",
    "a client that leaves",
    "64 at once",
    "SERVICE to a host not allowed",
    "an update whose WHERE has no end",
    "a compressed body of a gigabyte",
)
BY_NAME = {attack.name: attack for attack in ATTACKS}


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    directory = tmp_path_factory.mktemp("hostile")
    try:
        data = hostile_data(directory, SCALE)
    except BenchmarkError as error:
        pytest.skip(str(error))
    with running_service(directory, load=data, environment=SETTINGS) as service:
        yield service


class PointQueries:
    """A client that asks the same point query over and over, as long as the block lasts."""

    def __init__(self, service: RunningService) -> None:
        self._url = f"{service.url}/sparql"
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._ask)
        self.answers: list[object] = []

    def __enter__(self) -> "PointQueries":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _ask(self) -> None:
        with httpx.Client(trust_env=False, timeout=HANG_S) as http:
            while not self._over.wait(0.01):
                answer = http.post(self._url, data={"query": POINT_QUERY})
                is_right = answer.is_success and "here" in answer.text
                self.answers.append(True if is_right else answer.text)


@pytest.mark.parametrize("name", NAMES)
def test_attack(target: RunningService, name: str) -> None:
    attack: Attack = BY_NAME[name]
    before = usage(target.data_dir)
    for took in quick_enough(TIMEOUT_S + GRACE_S + BUSY_MACHINE_S):
        with PointQueries(target) as points:
            statuses, took.seconds = attack_once(target.host, target.port, attack)
    back_s, after = wait_until_back(target.data_dir, before, BACK_S)
    assert set(statuses) <= attack.statuses, statuses
    assert back_s is not None, f"{before} and then {after}"
    assert set(points.answers) <= {True}
