"""`python -m tests.fuzz.run TARGET --work DIRECTORY`: one campaign, and its report as JSON.

A process of its own, for a finding may be its death: then the trace holds the case that was on.
"""

import json

from tests.fuzz.arguments import read_arguments
from tests.support.fuzzing.campaign import run_campaign
from tests.support.fuzzing.targets import TARGETS

__all__ = ["main"]


def main() -> None:
    """Run. The exit code is 0 whatever was found: the report says that."""
    told = read_arguments("tests.fuzz.run", TARGETS)
    with TARGETS[told.target]() as target:
        report = run_campaign(
            target, seconds=told.seconds, seed=told.seed, cases=told.cases, trace=told.trace
        )
        told.report.write_text(json.dumps(report.as_dict()))


if __name__ == "__main__":
    main()
