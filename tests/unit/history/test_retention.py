"""Which files of the history may go."""

import pytest

from graphdb.config.service import History
from graphdb.history.archive import COMPRESSED, ArchiveName
from graphdb.history.retention import KeptFile, expired_count

DAY_MS = 86_400_000
# ten files of a hundred entries, one a day, 300 MB each
FILES = [
    KeptFile(ArchiveName(100 * n + 1, 100 * n + 100, COMPRESSED), 300 << 20, n * DAY_MS) for n in range(10)
]


@pytest.mark.parametrize(
    ("keep", "max_gb", "kept_from", "expected"),
    [
        ("forever", 100, None, 0),
        ("forever", 1, None, 7),
        ("off", 100, None, 10),
        ("4d", 100, None, 5),
        ("4d", 100, 301, 3),
        ("4d", 1, 301, 3),
        ("4d", 1, 801, 7),
        ("forever", 1, 301, 3),
        ("forever", 1, 1, 0),
        ("1000", 100, None, 0),
        ("950", 100, None, 0),
        ("900", 100, None, 1),
        ("1", 100, None, 9),
    ],
)
def test_the_oldest_go(keep: str, max_gb: int, kept_from: int | None, expected: int) -> None:
    config = History(keep=keep, max_gb=max_gb)
    assert expired_count(FILES, config, 9 * DAY_MS, 1_000, kept_from) == expected


def test_a_file_without_a_time_is_as_old_as_the_next_one() -> None:
    """It has entries of Raft alone, and may be the oldest one while the history of other nodes is fetched."""
    untimed = [file._replace(last_ms=0) if number in (2, 5, 9) else file for number, file in enumerate(FILES)]
    config = History(keep="4d", max_gb=100)
    assert expired_count(untimed, config, 9 * DAY_MS, 1_000, None) == 5
    assert expired_count(untimed[5:], config, 9 * DAY_MS, 1_000, None) == 0
    assert expired_count(untimed[9:], config, 9 * DAY_MS, 1_000, None) == 0


@pytest.mark.parametrize("keep", ["forever", "off", "90d", "100000", 100_000])
def test_how_long_is_said_in_words_days_or_entries(keep: object) -> None:
    assert History.model_validate({"keep": keep}).keep == str(keep)


@pytest.mark.parametrize("keep", ["", "0", "0d", "-1", "d", "1h", 0, -5, True, None, 1.5])
def test_nothing_else_is_accepted(keep: object) -> None:
    with pytest.raises(ValueError, match="keep"):
        History.model_validate({"keep": keep})
