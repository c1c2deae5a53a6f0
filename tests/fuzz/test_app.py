"""Random requests to the application over memory, on a real port of this process, from fixed seeds."""

from tests.support.fuzzing.campaign import run_campaign
from tests.support.fuzzing.targets import app_target

CASES = 2000


def test_random_requests() -> None:
    with app_target() as target:
        report = run_campaign(target, seconds=120, seed=0, cases=CASES)
    assert report.findings == []
    assert min(report.outcomes[status] for status in ("200", "400")) > CASES / 20
    assert {"204", "403", "404", "405", "406", "413", "415"} < set(report.outcomes)
