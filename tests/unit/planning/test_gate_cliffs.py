"""The engine's cliffs, and how far before them the gate stands.

A query a few kilobytes long can overflow the engine's stack, which kills the process, or keep it planning for
minutes. Each family of `tests.support.hostile_queries` is grown up to the last query that the default limits
admit, and that is given to the engine in a process of its own.
"""

import subprocess
import time

import pytest

from graphdb.config.limits import GateLimits
from graphdb.errors import LimitExceeded, QuerySyntaxError, RequestError
from graphdb.planning.gate import check, read_query
from tests.support.engine_probe import probe
from tests.support.hostile_queries import FAMILIES

pytestmark = pytest.mark.slow

LIMITS = GateLimits()
# What a thread has where nothing else is said. The stack that a query needs grows with its size, so one that
# does with a quarter of it is a factor of four before the cliff.
THREAD_STACK = 8 << 20
MARGIN = 4
# Processor time. On a quiet machine planning stays under 0.5 s and a refusal under 0.05 s; these bounds tell
# a cliff from a machine that is busy with something else.
PLANNED_S = 5
REFUSED_S = 0.5


def refusal(text: str) -> RequestError | None:
    try:
        check(read_query(text, None, LIMITS), LIMITS)
    except (LimitExceeded, QuerySyntaxError) as error:
        return error
    return None


def last_admitted(name: str) -> int:
    """The largest size of a family that passes the gate, to within a twentieth."""
    family = FAMILIES[name]
    passes, refused = 1, 8
    while refusal(family(refused)) is None:
        passes, refused = refused, 2 * refused
    while refused - passes > max(1, passes // 20):
        middle = (passes + refused) // 2
        if refusal(family(middle)) is None:
            passes = middle
        else:
            refused = middle
    return passes


@pytest.fixture(scope="module")
def admitted() -> dict[str, int]:
    """The last admitted size of each family."""
    return {name: last_admitted(name) for name in FAMILIES}


def test_the_engine_survives_what_the_gate_admits(admitted: dict[str, int]) -> None:
    texts = [FAMILIES[name](size) for name, size in admitted.items()]
    seconds, code = probe(texts, THREAD_STACK // MARGIN, timeout_s=120)
    names = list(admitted)
    assert code == 0, f"{names[len(seconds)]} of size {admitted[names[len(seconds)]]} kills the engine"
    slow = {name: taken for name, taken in zip(names, seconds, strict=True) if taken > PLANNED_S}
    assert slow == {}


@pytest.mark.parametrize("times", [2, 10, 100])
def test_the_gate_is_quick_to_refuse(admitted: dict[str, int], times: int) -> None:
    slow = {}
    for name, size in admitted.items():
        text = FAMILIES[name](times * size + 1)
        if len(text) > 10_000_000:
            continue  # larger than any body
        taken = min(_seconds_to_refuse(text) for _ in range(3))
        if taken > REFUSED_S:
            slow[name] = taken
    assert slow == {}


def _seconds_to_refuse(text: str) -> float:
    began = time.thread_time()
    error = refusal(text)
    taken = time.thread_time() - began
    # Brackets have a limit of the lexer's own, which is not to be configured.
    assert isinstance(error, LimitExceeded) or "nested deeper than 200 levels" in str(error)
    return taken


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("nested groups", 5_000),
        ("nested sub-selects", 2_500),
        ("nested EXISTS", 2_000),
        ("BIND", 5_000),
        ("MINUS", 5_000),
        ("UNION", 10_000),
        ("&&", 20_000),
        ("||", 20_000),
        ("+", 20_000),
        ("signed numbers", 16_000),
        ("nested STR", 2_000),
        ("nested IF, branch", 2_000),
        ("nested TRIPLE", 2_000),
        ("computed columns", 5_000),
        ("DESCRIBE of IRIs", 5_000),
    ],
)
def test_these_overflow_the_stack(name: str, size: int) -> None:
    """Should one survive, the engine has become better: move the limit, or take the case out."""
    assert refusal(FAMILIES[name](size)) is not None
    _, code = probe([FAMILIES[name](size)], THREAD_STACK, timeout_s=60)
    assert code < 0, "the engine survives"


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("a star of triples", 200),
        ("OPTIONALs of one subject", 250),
        ("UNIONs joined", 120),
        ("GRAPH blocks of one name", 200),
        ("nested +", 40),
    ],
)
def test_these_plan_for_long(name: str, size: int) -> None:
    """As above."""
    assert refusal(FAMILIES[name](size)) is not None
    with pytest.raises(subprocess.TimeoutExpired):
        probe([FAMILIES[name](size)], THREAD_STACK, timeout_s=1.5)
