"""The list of security requirements: each says where it is tested, or why it is not."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in (ROOT / "docs/asvs.md").read_text().splitlines()
    if re.match(r"\| \d", line)
]
NUMBERS = re.compile(r"\d+\.\d+\.\d+")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_requirement_says_where_it_is_tested(row: list[str]) -> None:
    numbers, _, where = row
    assert NUMBERS.findall(numbers)
    assert NUMBERS.sub("", numbers).replace(" to ", "").strip(" ,") == ""
    if where.startswith(("not applicable: ", "not met")):
        return
    files = re.findall(r"`([^`]+)`", where)
    assert where == ", ".join(f"`{file}`" for file in files)
    for file in files:
        assert re.fullmatch(r"tests/[\w/]+/test_\w+\.py", file)
        assert "def test_" in (ROOT / file).read_text()


def test_no_requirement_stands_twice() -> None:
    numbers = [number for row in ROWS for number in NUMBERS.findall(row[0])]
    assert len(set(numbers)) == len(numbers) > 60
