"""`filter_path` against a naive twin that lists every path."""

import re
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graphdb.search.errors import SearchError
from serve.search.frame.answer import filter_of
from tests.support.timing import quick_enough

ANSWER = {
    "took": 3,
    "hits": {
        "total": {"value": 2},
        "hits": [{"_id": "1", "_source": {"a": 1, "b.c": 2}}, {"_id": "2", "_source": {"a": 3}}],
    },
}


def filtered(value: Any, *patterns: str) -> Any:
    chosen = filter_of(patterns)
    return value if chosen is None else chosen.applied(value)


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        (["took"], {"took": 3}),
        (["hits.hits._id"], {"hits": {"hits": [{"_id": "1"}, {"_id": "2"}]}}),
        (["hits.*.value"], {"hits": {"total": {"value": 2}}}),
        (["**._id"], {"hits": {"hits": [{"_id": "1"}, {"_id": "2"}]}}),
        (["**.total", "took"], {"took": 3, "hits": {"total": {"value": 2}}}),
        (["hits.hits._source.b\\.c"], {"hits": {"hits": [{"_source": {"b.c": 2}}]}}),
        (["-hits"], {"took": 3}),
        (["hits.hits", "-**._source"], {"hits": {"hits": [{"_id": "1"}, {"_id": "2"}]}}),
        (["t*k"], {"took": 3}),
        (["nothing", "took.below"], {}),
        ([], ANSWER),
    ],
)
def test_patterns(patterns: list[str], expected: Any) -> None:
    assert filtered(ANSWER, *patterns) == expected


NAMES = st.sampled_from(["a", "b", "ab", "abc"])
VALUES = st.recursive(
    st.integers(0, 3),
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3) | st.dictionaries(NAMES, inner, min_size=1, max_size=3)
    ),
    max_leaves=12,
)
PATTERNS = st.lists(st.sampled_from(["a", "b", "a*", "*", "**", "*c"]), min_size=1, max_size=4).map(".".join)


def leaves(value: Any, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], Any]]:
    if isinstance(value, dict):
        return [leaf for name, item in value.items() for leaf in leaves(item, (*path, name))]
    if isinstance(value, list):
        return [leaf for item in value for leaf in leaves(item, path)]
    return [(path, value)]


def meets(path: tuple[str, ...], pattern: str) -> bool:
    """Whether the pattern ends at some part of the path: then all below it is meant."""
    parts = []
    for segment in pattern.split("."):
        parts.append("(?:[^.]+[.])*" if segment == "**" else segment.replace("*", "[^.]*") + "[.]")
    if pattern.split(".")[-1] == "**":
        parts[-1] = "(?:[^.]+[.])+"
    expression = re.compile("".join(parts))
    return any(expression.fullmatch(".".join(path[:end]) + ".") for end in range(1, len(path) + 1))


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(
    st.dictionaries(NAMES, VALUES, max_size=3), st.lists(PATTERNS, max_size=3), st.lists(PATTERNS, max_size=2)
)
def test_the_leaves_that_stay(value: dict[str, Any], includes: list[str], excludes: list[str]) -> None:
    left = filtered(value, *includes, *(f"-{pattern}" for pattern in excludes))
    expected = [
        (path, leaf)
        for path, leaf in leaves(value)
        if (not includes or any(meets(path, pattern) for pattern in includes))
        and not any(meets(path, pattern) for pattern in excludes)
    ]
    assert leaves(left) == expected


def test_depth_and_number_are_bounded() -> None:
    deep: Any = 1
    for _ in range(5_000):
        deep = [deep]
    with pytest.raises(SearchError):
        filtered({"a": deep}, "b", "a.c")
    with pytest.raises(SearchError):
        filter_of(["a"] * 1_001)
    slow = ".".join(["**"] * 20) + ".z"
    assert filtered({"a": {"a": {"a": {"a": {"a": {"b": 1}}}}}}, slow) == {}


@pytest.mark.parametrize("pattern", ["**." * 5_000 + "x", "*.**." * 2_000 + "x", "**.a.**." * 2_000 + "x"])
def test_patterns_that_stand_for_everything_are_no_work(pattern: str) -> None:
    for took in quick_enough(2.0):
        with took:
            assert filtered({"a": {"b": [{"a": number} for number in range(100)]}}, pattern) == {}


def test_names_times_patterns_are_bounded() -> None:
    patterns = [f"**.{number}*x" for number in range(1_000)]
    with pytest.raises(SearchError, match="too many patterns"):
        filtered({f"name{number}": 1 for number in range(10_000)}, *patterns)
    assert filtered([{"a": 1}] * 100_000, *patterns) == {}, "the same names are looked at once"
