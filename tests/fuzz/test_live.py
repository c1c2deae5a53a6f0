"""Random messages to `/ws` over memory, on a real port of this process, from fixed seeds."""

from tests.support.fuzzing.campaign import run_campaign
from tests.support.fuzzing.live_target import live_target

CASES = 1500


def test_random_messages() -> None:
    with live_target() as target:
        report = run_campaign(target, seconds=60, seed=0, cases=CASES)
    assert report.findings == []
    assert {"subscribed", "result", "syntax", "invalid", "not_found"} <= set(report.outcomes)
    assert report.outcomes["subscribed"] > CASES / 20
