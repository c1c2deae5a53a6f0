"""The fuzzers of `tests/fuzz`, for long: random texts and requests, and what must hold for each of them."""

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.service import PROJECT, work_dir

__all__ = ["PROGRAMS", "FuzzLine", "run"]

# Each target runs in a process of its own, for a finding may be the death of it.
PROGRAMS = {
    "coverage": "tests.fuzz.run_coverage",
    "parser": "tests.fuzz.run",
    "app": "tests.fuzz.run",
    "live": "tests.fuzz.run",
    "service": "tests.fuzz.run",
}
START_AND_STOP_S = 120
SHOWN_CHARACTERS = 2000


@dataclass(frozen=True, slots=True)
class FuzzLine:
    """What came of one target: how many cases had which outcome, and the findings, made small."""

    target: str
    seconds: float
    outcomes: dict[str, int]
    findings: tuple[dict[str, str], ...]  # what, shown_by, reproduce

    @property
    def passes(self) -> bool:
        return not self.findings

    def as_dict(self) -> dict[str, Any]:
        return {
            "target": self.target,
            "seconds": self.seconds,
            "outcomes": self.outcomes,
            "findings": list(self.findings),
            "passes": self.passes,
        }

    def cells(self) -> dict[str, str]:
        return {
            "target": self.target,
            "seconds": f"{self.seconds:.0f}",
            "cases": f"{sum(self.outcomes.values()):,}",
            "outcomes": ", ".join(f"{name}: {count:,}" for name, count in self.outcomes.items()),
            "findings": str(len(self.findings)),
        }

    def notes(self) -> Sequence[str]:
        return [
            f"\n{self.target}: {each['what'][:SHOWN_CHARACTERS]}"
            f"\n  shown by  {each['shown_by'][:SHOWN_CHARACTERS]}"
            f"\n  again by  {each['reproduce']}"
            for each in self.findings
        ]


def run(seconds: float, seed: int, cases: int | None, target: str | None) -> list[FuzzLine]:
    """Run one target, or all of them one after the other, each for its part of the time."""
    chosen = [target] if target else list(PROGRAMS)
    with work_dir() as directory:
        return [_run_one(name, directory / name, seconds / len(chosen), seed, cases) for name in chosen]


def _run_one(target: str, work: Path, seconds: float, seed: int, cases: int | None) -> FuzzLine:
    work.mkdir()
    command = [sys.executable, "-m", PROGRAMS[target], target, "--work", str(work)]
    command += ["--seconds", str(seconds), "--seed", str(seed), *(["--cases", str(cases)] if cases else [])]
    began = time.monotonic()
    try:
        done = subprocess.run(
            command, cwd=PROJECT, capture_output=True, timeout=seconds + START_AND_STOP_S, check=False
        )
        end = f"exit code {done.returncode}: {done.stderr.decode(errors='replace')[-500:]}"
        is_well = done.returncode == 0
    except subprocess.TimeoutExpired:
        end, is_well = "it does not end", False
    line = _report(target, work, time.monotonic() - began)
    if is_well:
        return line
    died = {"what": f"the process failed, {end}", "shown_by": _traced(work), "reproduce": " ".join(command)}
    return FuzzLine(line.target, line.seconds, line.outcomes, (*line.findings, died))


def _report(target: str, work: Path, seconds: float) -> FuzzLine:
    report = work / "report.json"
    record = json.loads(report.read_text()) if report.exists() else {"outcomes": {}, "findings": []}
    return FuzzLine(target, seconds, record["outcomes"], tuple(record["findings"]))


def _traced(work: Path) -> str:
    """The case that was on."""
    trace = work / "trace"
    return repr(trace.read_bytes()) if trace.exists() else "nothing yet"
