"""What the programs of this folder are told, and the files that they leave in their work directory."""

import argparse
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Arguments", "read_arguments"]


@dataclass(frozen=True, slots=True)
class Arguments:
    """report is written at the end at the latest; trace holds the bytes of the case that is on."""

    target: str
    work: Path
    seconds: float
    seed: int
    cases: int | None

    @property
    def report(self) -> Path:
        return self.work / "report.json"

    @property
    def trace(self) -> Path:
        return self.work / "trace"


def read_arguments(program: str, targets: Iterable[str]) -> Arguments:
    """From the command line."""
    parser = argparse.ArgumentParser(prog=f"python -m {program}")
    parser.add_argument("target", choices=list(targets))
    parser.add_argument("--work", type=Path, required=True, help="an empty directory")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cases", type=int, help="no more than so many")
    return Arguments(**vars(parser.parse_args()))
