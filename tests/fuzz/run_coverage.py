"""`python -m tests.fuzz.run_coverage coverage --work DIRECTORY`: the parser, led by the code that is reached.

atheris takes the process over and does not give it back, so the report is written again and again.
"""

import json
import sys
from pathlib import Path
from random import Random
from resource import RUSAGE_SELF, getrusage

import atheris  # type: ignore[import-untyped]

from tests.fuzz.arguments import Arguments, read_arguments

with atheris.instrument_imports(include=["graphdb.sparql"]):
    from tests.support.fuzzing.campaign import Report
    from tests.support.fuzzing.findings import BrokenPromise
    from tests.support.fuzzing.mutations import mutated
    from tests.support.fuzzing.seeds import SHORT, text_seeds
    from tests.support.fuzzing.text_target import TextTarget
    from tests.support.fuzzing.texts import random_text

__all__ = ["main"]

DECISION_MS_MAX = 2000  # what notes the code that is reached makes everything several times slower
HANG_S = 20
MEMORY_MB_MAX = 2048
CASES_BETWEEN_REPORTS = 200
AGAIN = "`check_text` of tests/support/fuzzing/parser_oracle.py with these bytes"


class _Fuzzer:
    """What atheris calls: with an input to try, and with one to change."""

    def __init__(self, told: Arguments) -> None:
        self._told, self._target = told, TextTarget(told.target, DECISION_MS_MAX)
        self._report = Report(told.target)
        self._write_report()

    def try_one(self, data: bytes) -> None:
        self._told.trace.write_bytes(data)
        try:
            self._report.outcomes[self._target.check(data)] += 1
        except BrokenPromise as broken:
            self._report.note(self._target, data, broken, AGAIN)
            self._write_report()
        if self._report.outcomes.total() % CASES_BETWEEN_REPORTS == 0:
            self._write_report()

    def change(self, data: bytes, size_max: int, seed: int) -> bytes:
        """Bits and bytes by libFuzzer; words and parts, or something new, by us."""
        random = Random(seed)
        choice = random.random()
        if choice < 0.4:
            return bytes(atheris.Mutate(data, size_max))
        changed = mutated(random, data, text_seeds()) if choice < 0.9 else random_text(random)
        return changed[:size_max]

    def _write_report(self) -> None:
        self._told.report.write_text(json.dumps(self._report.as_dict()))


def main() -> None:
    """Run until the time is up; the exit code is libFuzzer's."""
    told = read_arguments("tests.fuzz.run_coverage", ["coverage"])
    corpus = _write_corpus(told.work / "corpus")
    fuzzer = _Fuzzer(told)
    # libFuzzer looks at the highest that was ever reached, and a process begins with what its parent takes.
    peak_mb = getrusage(RUSAGE_SELF).ru_maxrss // 1024
    limits = [f"-max_len={SHORT}", f"-timeout={HANG_S}", f"-rss_limit_mb={peak_mb + MEMORY_MB_MAX}"]
    ends = [
        f"-max_total_time={max(1, int(told.seconds))}",
        f"-runs={-1 if told.cases is None else told.cases}",
    ]
    rest = [f"-seed={told.seed + 1}", f"-artifact_prefix={told.work}/", "-verbosity=0"]  # a seed of 0: any
    atheris.Setup(
        [sys.argv[0], *limits, *ends, *rest, str(corpus)], fuzzer.try_one, custom_mutator=fuzzer.change
    )
    atheris.Fuzz()


def _write_corpus(directory: Path) -> Path:
    directory.mkdir()
    for number, seed in enumerate(text_seeds()):
        (directory / f"{number:05}").write_bytes(seed)
    return directory


if __name__ == "__main__":
    main()
