"""Compiled code is kept, and is never run after what it was made of has changed."""

import subprocess
import sys
from pathlib import Path

_CALLED = """
from graphdb.search.compiled import compiled
FACTOR = {factor}
@compiled()
def raised(value):
    return value + {summand}
"""
_CALLING = """
from called import FACTOR, raised
from graphdb.search.compiled import compiled
@compiled()
def answer(value):
    return FACTOR * raised(value)
print(answer(1), sum(answer.stats.cache_hits.values()))
"""


def _run(directory: Path, *, factor: int, summand: int) -> list[int]:
    """What a new process answers, and whether from kept code."""
    (directory / "called.py").write_text(_CALLED.format(factor=factor, summand=summand))
    (directory / "calling.py").write_text(_CALLING)
    # -B: bytecode is told apart by size and whole seconds.
    command = [
        sys.executable,
        "-B",
        "-c",
        f"import sys; sys.path.insert(0, {str(directory)!r}); import calling",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [int(word) for word in done.stdout.split()]


def test_kept_code_is_used_until_another_module_changes(tmp_path: Path) -> None:
    assert _run(tmp_path, factor=10, summand=100) == [1010, 0]
    assert _run(tmp_path, factor=10, summand=100) == [1010, 1]
    assert _run(tmp_path, factor=10, summand=200) == [2010, 0]
    assert _run(tmp_path, factor=30, summand=200) == [6030, 0]
