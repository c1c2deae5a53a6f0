"""`_analyze`."""

import tracemalloc
from typing import Any

import pytest

from graphdb.search.analysis import Analyzers, analyze
from graphdb.search.errors import SearchError
from graphdb.search.fields import FieldSpec, Storage


def test_the_whole_answer() -> None:
    assert analyze({"analyzer": "whitespace", "text": "a 😀 b"}, None) == {
        "tokens": [
            {"token": "a", "start_offset": 0, "end_offset": 1, "type": "word", "position": 0},
            {"token": "😀", "start_offset": 2, "end_offset": 4, "type": "word", "position": 1},
            {"token": "b", "start_offset": 5, "end_offset": 6, "type": "word", "position": 2},
        ]
    }


def test_several_texts() -> None:
    tokens = analyze({"analyzer": "stop", "text": ["fox the", "dog"]}, None)["tokens"]
    assert [(t["token"], t["start_offset"], t["position"]) for t in tokens] == [
        ("fox", 0, 0),
        ("dog", 8, 102),
    ]


def test_defaults() -> None:
    assert [t["token"] for t in analyze({"text": "A b"}, None)["tokens"]] == ["a", "b"]
    assert [t["token"] for t in analyze({"filter": ["lowercase"], "text": "A b"}, None)["tokens"]] == ["a b"]
    tokens = analyze({"normalizer": "lowercase", "text": "A b"}, Analyzers.of({}))["tokens"]
    assert [t["token"] for t in tokens] == ["a b"]


class Fields:
    """A mapping of three fields."""

    def field(self, path: str) -> FieldSpec | None:
        return {
            "body": FieldSpec("body", "text", Storage.TEXT, analyzer="english"),
            "tag": FieldSpec("tag", "keyword", Storage.TERMS, options={"normalizer": "lowercase"}),
            "size": FieldSpec("size", "long", Storage.INTS),
        }.get(path)


@pytest.mark.parametrize(
    ("path", "expected"),
    [("body", ["fox", "run"]), ("tag", ["foxes running"]), ("nope", ["foxes", "running"])],
)
def test_by_field(path: str, expected: list[str]) -> None:
    tokens = analyze({"field": path, "text": "Foxes running"}, Analyzers.of({}), Fields())["tokens"]
    assert [token["token"] for token in tokens] == expected


ERRORS: list[tuple[dict[str, Any], bool, str]] = [
    ({"analyzer": "x", "text": "a"}, False, "failed to find global analyzer [x]"),
    ({"analyzer": "x", "text": "a"}, True, "failed to find analyzer [x]"),
    ({"tokenizer": "x", "text": "a"}, False, "failed to find global tokenizer under [x]"),
    ({"tokenizer": "standard", "filter": ["x"], "text": "a"}, True, "failed to find filter under [x]"),
    ({"char_filter": ["x"], "text": "a"}, False, "failed to find global char_filter under [x]"),
    ({"normalizer": "x", "text": "a"}, True, "failed to find normalizer under [x]"),
    ({"analyzer": "standard"}, False, "Validation Failed: 1: text is missing;"),
    ({"size": 1, "text": "a"}, False, "[analyze_request] unknown field [size]"),
    (
        {"field": "size", "text": "a"},
        True,
        "Can't process field [size], Analysis requests are only supported on",
    ),
    (
        {"analyzer": "keyword", "text": [{}]},
        False,
        "[analyze_request] text doesn't support values of type: START_OBJECT",
    ),
    (
        {"analyzer": "standard", "text": "a " * 10_001},
        False,
        "The number of tokens produced by calling _analyze",
    ),
]


@pytest.mark.parametrize(("body", "of_index", "reason"), ERRORS, ids=[reason[:50] for _, _, reason in ERRORS])
def test_errors(body: dict[str, Any], of_index: bool, reason: str) -> None:
    with pytest.raises(SearchError) as caught:
        analyze(body, Analyzers.of({}) if of_index else None, Fields() if of_index else None)
    assert caught.value.reason.startswith(reason)


@pytest.mark.parametrize("text", ["a b " * 2_000_000, ["a b " * 200_000, "a b " * 200_000]])
@pytest.mark.parametrize("explain", [False, True])
def test_a_text_is_refused_before_its_tokens_fill_the_memory(text: str | list[str], explain: bool) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(SearchError, match="at most \\[1000000\\]"):
            analyze({"analyzer": "standard", "text": text, "explain": explain}, None)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_more_tokens_allow_longer_texts() -> None:
    text = "a" * 1_000_001
    assert len(analyze({"tokenizer": "keyword", "text": text}, None, tokens_max=20_000)["tokens"]) == 1
