"""A campaign finds what breaks, makes it small, and says how to see it again."""

from random import Random

from tests.support.fuzzing.campaign import Report, run_campaign
from tests.support.fuzzing.findings import BrokenPromise, shrink


class Fragile:
    """Breaks at any text with an x, and dies after the third batch."""

    name = "fragile"
    batch = 10

    def __init__(self) -> None:
        self.looks = 0

    def case(self, random: Random) -> bytes:
        return bytes(random.choices(b"abcdefghijx", k=5))

    def check(self, case: bytes) -> str:
        if b"x" in case:
            raise BrokenPromise("cross: there is an x")
        return "fine"

    def check_alive(self) -> None:
        self.looks += 1
        if self.looks > 3:
            raise BrokenPromise("died: of old age")

    def wire(self, case: bytes) -> bytes:
        return case

    def with_wire(self, case: bytes, wire: bytes) -> bytes:
        return wire


def run(cases: int, seed: int = 0) -> Report:
    return run_campaign(Fragile(), seconds=60, seed=seed, cases=cases)


def test_findings_are_small_and_few_of_a_kind() -> None:
    report = run(cases=100)
    assert [finding.shown_by for finding in report.findings if "cross" in finding.what] == ["b'x'"] * 3
    assert report.outcomes["FOUND cross"] > 3
    assert report.outcomes["fine"] > 0
    assert any(finding.what == "died: of old age" for finding in report.findings)


def test_a_finding_is_seen_again_by_its_seed() -> None:
    found = run(cases=100).findings[0]
    seed = int(found.reproduce.split("--seed ")[1].split()[0])
    assert [again.what for again in run(cases=1, seed=seed).findings] == [found.what]


def test_the_same_seed_draws_the_same_cases() -> None:
    assert run(cases=50) == run(cases=50)


def test_shrinking_keeps_what_is_needed() -> None:
    assert (
        shrink(b"." * 1000 + b"(" + b"." * 1000 + b")", lambda data: b"(" in data and b")" in data) == b"()"
    )
    assert shrink(b"all of it", lambda data: data == b"all of it") == b"all of it"
