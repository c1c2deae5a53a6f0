"""What is learnt of costs, and what follows from it."""

from dataclasses import replace

import pytest

from graphdb.planning.costs import KINDS, LearntCosts, Way, Work, cheaper, milliseconds

LARGE = Work("join", 4_000_000, 2_000_000, 1000)
LIMITED = Work("join", 200_000_000, 30, 10)
SMALL = Work("list", 5, 5, 5)


def chosen(costs: LearntCosts, work: Work, text: str = "q") -> Way:
    return cheaper(work, costs.factors(text))[0]


def test_the_columns_are_for_much_and_a_reader_for_the_first_few_of_much() -> None:
    costs = LearntCosts()
    assert [chosen(costs, work) for work in (SMALL, LARGE)] == [Way.COLUMNS, Way.COLUMNS]
    assert chosen(costs, LIMITED) is Way.READER


def test_a_query_that_took_the_columns_long_goes_to_a_reader_until_that_takes_longer() -> None:
    costs = LearntCosts()
    costs.note(Way.COLUMNS, "q", LARGE, 30_000, is_whole=False)
    assert chosen(costs, LARGE) is Way.READER
    assert chosen(costs, LARGE, "another") is Way.COLUMNS
    costs.note(Way.READER, "q", LARGE, 60_000, is_whole=False)
    assert chosen(costs, LARGE) is Way.COLUMNS


def test_what_was_learnt_of_the_other_way_is_forgotten_with_time() -> None:
    """A chance of the machine does not decide for ever."""
    costs = LearntCosts()
    work = replace(LARGE, steps=100_000)
    costs.note(Way.COLUMNS, "q", work, 100_000)
    answers = 0
    while chosen(costs, work) is Way.READER:
        costs.note(Way.READER, "q", work, milliseconds(Way.READER, work))
        answers += 1
    assert 0 < answers < 100


def test_estimates_come_near_to_what_answers_take() -> None:
    costs = LearntCosts()
    for number in range(50):
        costs.note(Way.COLUMNS, f"q{number}", LARGE, 900)
    assert 600 < costs.estimated_ms(Way.COLUMNS, "new", LARGE) < 1200
    assert costs.took_ms(Way.COLUMNS, "q49") == 900
    assert costs.took_ms(Way.READER, "q49") is None


def test_short_answers_teach_nothing() -> None:
    costs = LearntCosts()
    costs.note(Way.READER, "q", SMALL, 3.0)
    assert costs.took_ms(Way.READER, "q") is None
    assert costs.factors("q") == (1.0,) * 2 * len(KINDS)


def test_queries_that_are_remembered_are_bounded() -> None:
    costs = LearntCosts()
    for number in range(5_000):
        costs.note(Way.COLUMNS, f"q{number}", LARGE, 900)
    costs.note(Way.COLUMNS, "q" * 100_000, LARGE, 900)
    assert len(costs._texts) <= 1024
    assert costs.took_ms(Way.COLUMNS, "q" * 100_000) is None


@pytest.mark.parametrize("least", [0.0, 1e6, 5.9e10])
def test_what_could_be_answered_is_not_refused(least: float) -> None:
    assert LearntCosts().refusal(replace(LARGE, least=least), 30) is None


def test_what_takes_far_longer_than_its_time_is_refused_with_what_to_change() -> None:
    refusal = LearntCosts().refusal(replace(LARGE, least=1e12), 30)
    assert refusal is not None
    assert "1e+12 solutions" in refusal
    assert "add LIMIT" in refusal


def test_a_faster_machine_refuses_less() -> None:
    costs, work = LearntCosts(), replace(LARGE, least=1e11)
    assert costs.refusal(work, 30) is not None
    costs.note(Way.READER, "q", replace(LARGE, least=1e9), 1_000)
    assert costs.refusal(work, 30) is None
