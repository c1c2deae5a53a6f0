"""Random requests to a real service: no 500, no dropped connection, no dead process, right answers after."""

import pytest

from tests.support.fuzzing.campaign import run_campaign
from tests.support.fuzzing.targets import service_target

pytestmark = [pytest.mark.ray, pytest.mark.slow]

CASES = 1500


def test_random_requests_to_a_service() -> None:
    with service_target() as target:
        report = run_campaign(target, seconds=90, seed=0, cases=CASES)
        target.check_alive()
    assert report.findings == []
    assert report.outcomes.total() >= CASES / 4
    assert {"200", "204", "400", "404", "405", "406", "415"} < set(report.outcomes)
