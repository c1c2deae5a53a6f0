"""A campaign: case after case of one target until time is up, each drawn from a seed of its own.

Case n of seed S is the first case of seed S + n, so a finding is seen again by its seed alone.
"""

import itertools
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Protocol

from tests.support.fuzzing.findings import BrokenPromise, Finding, shrink

__all__ = ["Report", "Target", "run_campaign"]

FINDINGS_OF_A_KIND = 3  # more of one kind are counted, and not looked into
SHRINK_S = 10.0


class Target(Protocol):
    """What is tried, and how to tell whether it keeps its promises."""

    name: str
    batch: int  # cases after which `check_alive` is called

    def case(self, random: Random) -> Any:
        """A random input."""

    def check(self, case: Any) -> str:
        """Try it; what came of it, in a few words. Raises BrokenPromise."""

    def check_alive(self) -> None:
        """Look at the target as a whole. Raises BrokenPromise."""

    def wire(self, case: Any) -> bytes:
        """The bytes of a case."""

    def with_wire(self, case: Any, wire: bytes) -> Any:
        """The case with other bytes, for making it smaller."""


@dataclass(slots=True)
class Report:
    """How many cases had which outcome, and what was found."""

    target: str
    outcomes: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)

    def note(self, target: "Target", case: Any, broken: BrokenPromise, again: str) -> None:
        """Count a broken promise; the first of a kind are made small and kept."""
        kind = f"FOUND {_kind(broken)}"
        self.outcomes[kind] += 1
        if self.outcomes[kind] <= FINDINGS_OF_A_KIND:
            self.findings.append(Finding(str(broken), repr(_smallest(target, case, broken)), again))

    def as_dict(self) -> dict[str, Any]:
        return {
            "target": self.target,
            "outcomes": dict(self.outcomes.most_common()),
            "findings": [finding.as_dict() for finding in self.findings],
        }


def run_campaign(
    target: Target, *, seconds: float, seed: int, cases: int | None = None, trace: Path | None = None
) -> Report:
    """Try cases until the time, or their number, is up. trace keeps the bytes of the case that is on."""
    report = Report(target.name)
    deadline = time.monotonic() + seconds
    for number in itertools.count() if cases is None else range(cases):
        if time.monotonic() > deadline:
            break
        case = target.case(Random(seed + number))
        if trace is not None:
            trace.write_bytes(target.wire(case))
        broken = _try(target, case, report, is_last_of_batch=(number + 1) % target.batch == 0)
        if broken is not None:
            again = f"python -m benchmarks fuzz --target {target.name} --seed {seed + number} --cases 1"
            report.note(target, case, broken, again)
    return report


def _try(target: Target, case: Any, report: Report, *, is_last_of_batch: bool) -> BrokenPromise | None:
    try:
        report.outcomes[target.check(case)] += 1
        if is_last_of_batch:
            target.check_alive()
    except BrokenPromise as broken:
        return broken
    return None


def _smallest(target: Target, case: Any, broken: BrokenPromise) -> bytes:
    def fails(wire: bytes) -> bool:
        try:
            target.check(target.with_wire(case, wire))
        except BrokenPromise as again:
            return _kind(again) == _kind(broken)
        return False

    wire = target.wire(case)
    # What happens only now and then, or only to the case as it is, cannot be made smaller.
    return shrink(wire, fails, SHRINK_S) if fails(wire) else wire


def _kind(broken: BrokenPromise) -> str:
    return str(broken).partition(":")[0]
