"""The YAML tests of Elasticsearch's clients against the running service: those that pass over memory."""

from collections.abc import Iterator

import httpx
import pytest

from tests.conformance.elasticsearch_runner import StepFailed, run_case
from tests.conformance.test_elasticsearch_clients import CASES, DIFFERENCES, lacks
from tests.support.service import Service
from tests.support.timing import HANG_S

pytestmark = [
    pytest.mark.ray,
    pytest.mark.slow,
    pytest.mark.skipif(not CASES, reason="the YAML tests of the clients are not at ../shared/suites"),
]


READY_S = 60.0


def _is_ready(service: Service) -> bool:
    return httpx.get(f"{service.search_url}/_cat/indices", trust_env=False).status_code == 200


@pytest.fixture
def searching(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    running = Service(tmp_path_factory.mktemp("search") / "data", search=True)
    try:
        running.start().wait_until(lambda: _is_ready(running), READY_S)
        yield running
    finally:
        running.close()


def test_what_passes_over_memory_passes_here(searching: Service) -> None:
    """One after the other on one node, as the suite is meant to run; each cleans up behind itself."""
    failed = {}
    with httpx.Client(base_url=searching.search_url, timeout=HANG_S, trust_env=False) as client:
        alone = {"settings": {"number_of_replicas": 0}}  # a case waits for health to be green
        client.put("/here-before", json=alone).raise_for_status()
        for name, case in CASES.items():
            if name in DIFFERENCES or lacks(name):
                continue
            try:
                run_case(case, client)
            except StepFailed as error:
                failed[name] = str(error)
    assert failed == {}
