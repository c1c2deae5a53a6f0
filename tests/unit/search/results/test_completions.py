"""The suggester `completion`, and its fields."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphdb.search.errors import SearchError
from graphdb.search.mapping.completions import cell_of, neighbours_of, precision_of
from graphdb.search.protection import ALLOW_SIDS
from graphdb.search.query import Searcher
from graphdb.search.results import SearchOptions, search
from graphdb.search.segments.visible_segment import VisibleLeaves
from tests.unit.search.results.index import Index

PLACES = [
    {"type": "category", "name": "kind"},
    {"type": "geo", "name": "where", "precision": 4},
    {"type": "category", "name": "tag", "path": "tag"},
]
PROPERTIES = {
    "s": {"type": "completion"},
    "joined": {"type": "completion", "preserve_separators": False},
    "stopped": {"type": "completion", "analyzer": "stop"},
    "short": {"type": "completion", "max_input_length": 4},
    "p": {"type": "completion", "contexts": PLACES},
    "t": {"type": "text", "fields": {"s": {"type": "completion"}}},
    "tag": {"type": "keyword"},
}
DOCUMENTS: list[dict[str, Any]] = [
    {"s": {"input": ["Nevermind", "Nirvana"], "weight": 34}, "t": "Smells like"},
    {"s": [{"input": "Nirvana", "weight": 10}, {"input": "Never Mind the Bollocks", "weight": 40}]},
    {"s": "Nova", "stopped": "the good book", "joined": "foo bar", "short": "abcdefgh"},
    {"s": {"input": "Foo Fighters", "weight": "2"}, "joined": "foobaz"},
    {"p": {"input": "Timmy's", "contexts": {"kind": ["cafe", "food"], "where": {"lat": 52.37, "lon": 4.89}}}},
    {"p": {"input": "Tim Tam", "weight": 7, "contexts": {"kind": "bar"}}, "tag": "open"},
]


@pytest.fixture(scope="module")
def index() -> Index:
    return Index(PROPERTIES, DOCUMENTS)


def answer(index: Index, part: dict[str, Any], **body: Any) -> list[dict[str, Any]]:
    entries = index.search({"size": 0, "suggest": {"x": part}, **body})["suggest"]["x"]
    assert len(entries) == 1
    options: list[dict[str, Any]] = entries[0]["options"]
    return options


def texts(index: Index, prefix: str, path: str = "s", **completion: Any) -> list[str]:
    part = {"prefix": prefix, "completion": {"field": path, **completion}}
    return [option["text"] for option in answer(index, part)]


def test_inputs_by_weight_once_for_each_document(index: Index) -> None:
    part = {"prefix": "n", "completion": {"field": "s"}}
    found = answer(index, part, _source=["t"])
    assert found == [
        {"text": "Never Mind the Bollocks", "_index": "books", "_id": "1", "_score": 40.0, "_source": {}},
        {"text": "Nevermind", "_index": "books", "_id": "0", "_score": 34.0, "_source": {"t": "Smells like"}},
        {"text": "Nova", "_index": "books", "_id": "2", "_score": 1.0, "_source": {}},
    ]
    assert index.hits(fields=["s"], size=1)[0]["fields"] == {"s": [DOCUMENTS[0]["s"]]}
    assert texts(index, "N", size=1) == ["Never Mind the Bollocks"]
    assert texts(index, "nir") == ["Nirvana", "Nirvana"]
    assert texts(index, "nir", skip_duplicates=True) == ["Nirvana"]
    assert texts(index, "never m") == ["Never Mind the Bollocks"]
    assert texts(index, "neverm") == ["Nevermind"]
    assert texts(index, "zz") == []
    assert texts(index, "sm", "t.s") == ["Smells like"]


def test_the_frame_of_an_answer(index: Index) -> None:
    body = {"suggest": {"x": {"text": "fo", "completion": {"field": "s"}}}, "_source": False, "size": 0}
    option = {"text": "Foo Fighters", "_index": "books", "_id": "3", "_score": 2.0}
    entry = {"text": "fo", "offset": 0, "length": 2, "options": [option]}
    typed = index.search(body, SearchOptions(typed_keys=True))["suggest"]
    assert typed == {"completion#x": [entry]}


def test_parameters_of_the_field(index: Index) -> None:
    assert texts(index, "foob", "joined") == ["foo bar", "foobaz"]
    assert texts(index, "foo b", "joined") == ["foo bar", "foobaz"]
    assert texts(index, "good", "stopped") == []  # the stop word has left a hole
    assert texts(index, "the go", "stopped") == ["the good book"]
    assert texts(index, "ab", "short") == ["abcd"]


def test_fuzzy(index: Index) -> None:
    assert texts(index, "nevremi", fuzzy={"fuzziness": 1}) == ["Nevermind"]
    assert texts(index, "nevremi", fuzzy={"fuzziness": 1, "transpositions": False}) == []
    assert texts(index, "xirv", fuzzy={"fuzziness": 1}) == []  # the first character is fixed
    assert texts(index, "xirv", fuzzy={"fuzziness": 1, "prefix_length": 0}) == ["Nirvana", "Nirvana"]
    assert texts(index, "nx", fuzzy=True) == []  # too short
    part = {"prefix": "nirx", "completion": {"field": "s", "fuzzy": {"fuzziness": 1}}}
    assert [option["_score"] for option in answer(index, part)] == [34.0 * 3, 10.0 * 3]


def test_regex(index: Index) -> None:
    def matched(regex: str) -> list[str]:
        return [option["text"] for option in answer(index, {"regex": regex, "completion": {"field": "s"}})]

    assert matched("n[iu]r") == ["Nirvana", "Nirvana"]
    assert matched("(no|fo).") == ["Foo Fighters", "Nova"]
    assert matched("irvana") == []


def test_contexts(index: Index) -> None:
    def found(**contexts: Any) -> list[tuple[str, float]]:
        part = {"prefix": "tim", "completion": {"field": "p", "contexts": contexts}}
        return [(option["text"], option["_score"]) for option in answer(index, part)]

    assert found(kind="cafe") == [("Timmy's", 1.0)]
    assert found(kind=["food", "bar"]) == [("Tim Tam", 7.0), ("Timmy's", 1.0)]
    assert found(kind=[{"context": "cafe", "boost": 9}, "bar"]) == [("Timmy's", 9.0), ("Tim Tam", 7.0)]
    assert found(kind={"context": "ca", "prefix": True}) == [("Timmy's", 1.0)]
    assert found(tag="open") == [("Tim Tam", 7.0)]
    assert found(where={"lat": 52.38, "lon": 4.9}) == [("Timmy's", 1.0)]
    assert found(where=[4.9, 52.38]) == [("Timmy's", 1.0)]
    assert found(where={"lat": 48.8, "lon": 2.3}) == []
    wide = {"context": {"lat": 51, "lon": 4}, "precision": 1, "boost": 2}
    assert found(where=wide) == [("Timmy's", 2.0)]
    part = {"prefix": "tim", "completion": {"field": "p", "contexts": {"kind": "bar"}}}
    assert answer(index, part)[0]["contexts"] == {"kind": ["bar"], "tag": ["open"]}


@pytest.mark.parametrize(
    ("part", "reason"),
    [
        ({"prefix": "x", "completion": {"field": "tag"}}, "is not a completion suggest field"),
        ({"completion": {"field": "s"}}, "'prefix/text' or 'regex' must be defined"),
        ({"prefix": "x", "completion": {"field": "p"}}, "Missing mandatory contexts"),
        (
            {"prefix": "x", "completion": {"field": "p", "contexts": {"kind": []}}},
            "Missing mandatory contexts",
        ),
        ({"prefix": "x", "completion": {"field": "p", "contexts": {"no": 1}}}, "Unknown context name"),
        ({"prefix": "x", "completion": {"field": "s", "contexts": {"no": 1}}}, "no context mappings"),
        ({"prefix": "x", "completion": {"field": "s", "size": 0}}, "size must be positive"),
        ({"prefix": "x" * 1_001, "completion": {"field": "s"}}, "at most"),
        ({"regex": "(", "completion": {"field": "s"}}, "expected"),
        ({"prefix": "x", "completion": {"field": "s", "no": 1}}, "unknown field"),
        ({"text": "x", "term": {"field": "s"}}, "has no terms to suggest"),
        ({"text": "x", "prefix": "x", "term": {"field": "t"}}, "only for the suggester"),
    ],
)
def test_refused(index: Index, part: Any, reason: str) -> None:
    with pytest.raises(SearchError, match=reason):
        index.search({"suggest": {"x": part}})


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"s": ""}, "length > 0"),
        ({"s": 5}, "expected text or object"),
        ({"s": "a\x1fb"}, "is a reserved character"),
        ({"s": {"input": "a", "weight": -1}}, "must be in the interval"),
        ({"s": {"input": "a", "weight": 1.5}}, "weight must be"),
        ({"s": {"input": "a", "weight": "x"}}, "weight must be"),
        ({"s": {"inputs": "a"}}, "unknown field name"),
        ({"s": {"weight": 1}}, "input must be"),
        ({"p": "a"}, "Contexts are mandatory"),
        ({"p": {"input": "a", "contexts": {"no": "x"}}}, "Unknown context name"),
        ({"p": {"input": "a", "contexts": {"kind": {}}}}, "context must be"),
    ],
)
def test_refused_documents(value: Any, reason: str) -> None:
    with pytest.raises(SearchError) as caught:
        Index(PROPERTIES, [value])
    assert caught.value.cause is not None
    assert reason in caught.value.cause.reason


@pytest.mark.parametrize(
    "contexts",
    [
        [{"name": "a"}],
        [{"name": "a", "type": "x"}],
        [{"name": "a", "type": "category"}] * 11,
        [{"name": "a", "type": "category"}] * 2,
        [{"name": "a", "type": "category", "precision": 3}],
        [{"name": "a", "type": "geo", "precision": 13}],
        ["a"],
    ],
)
def test_refused_mappings(contexts: Any) -> None:
    with pytest.raises(SearchError):
        Index({"s": {"type": "completion", "contexts": contexts}}, [])


def test_cells() -> None:
    assert cell_of(57.64911, 10.40744, 11) == "u4pruydqqvj"
    assert len(neighbours_of("u4pr")) == 8
    assert len(neighbours_of(cell_of(90, 0, 3))) == 5
    assert [precision_of(one) for one in (4, "6", "5km", "1m", "5000km")] == [4, 6, 5, 11, 2]


def test_hidden_documents_suggest_nothing() -> None:
    properties = {"s": {"type": "completion"}, "t": {"type": "text"}}
    documents: list[dict[str, Any]] = [
        {"s": {"input": "secret plan", "weight": 9}, "t": "secret plan", ALLOW_SIDS: ["S-1"]},
        {"s": "seen", "t": "seen sheets"},
    ]
    index = Index(properties, documents)
    for sids, inputs, words in (
        (frozenset[str](), ["seen"], []),
        (frozenset({"S-1"}), ["secret plan", "seen"], ["secret plan"]),
    ):
        leaves = VisibleLeaves(sids).of(index.searcher.leaves)
        searcher = Searcher(leaves, index.searcher.mapping, index.searcher.analyzers)
        suggest = {
            "c": {"prefix": "se", "completion": {"field": "s"}},
            "f": {"prefix": "sexr", "completion": {"field": "s", "fuzzy": {"fuzziness": 2}}},
            "p": {"text": "sevret plan", "phrase": {"field": "t", "max_errors": 2, "confidence": 0.1}},
            "w": {"text": "sevret", "term": {"field": "t"}},
        }
        found = search({"size": 0, "suggest": suggest}, searcher, index.context)["suggest"]
        shown = {name: [one["text"] for one in entries[0]["options"]] for name, entries in found.items()}
        assert shown["c"] == inputs
        assert shown["p"][: len(words)] == words
        assert shown["w"] == [word.split()[0] for word in words]
        assert not any(ALLOW_SIDS in option["_source"] for option in found["c"][0]["options"])
        assert any("secret" in text for texts_of in shown.values() for text in texts_of) == bool(words)


# Against a naive twin: every input, every beginning of it, the edits from the definition.

words = st.text("abc ", min_size=1, max_size=6).filter(str.strip)
inputs = st.lists(st.tuples(words, st.integers(0, 5)), max_size=12)


def edits(first: str, second: str) -> int:
    """Optimal string alignment."""
    table = {(-1, -1): 0}
    for i in range(-1, len(first)):
        for j in range(-1, len(second)):
            options = [table[i - 1, j] + 1] if i >= 0 else []
            options += [table[i, j - 1] + 1] if j >= 0 else []
            if i >= 0 and j >= 0:
                options.append(table[i - 1, j - 1] + (first[i] != second[j]))
                if i and j and first[i] == second[j - 1] and first[i - 1] == second[j]:
                    options.append(table[i - 2, j - 2] + 1)
            table[i, j] = min(options, default=0)
    return table[len(first) - 1, len(second) - 1]


def key(text: str) -> str:
    return "\x1f".join(text.split())


def twin(
    documents: list[tuple[str, int]], prefix: str, most: int, skip: bool, size: int
) -> list[tuple[Any, ...]]:
    wanted, rows = key(prefix), []
    for doc, (text, weight) in enumerate(documents):
        begun = [key(text)[:length] for length in range(len(key(text)) + 1)]
        if not most:
            fits = key(text).startswith(wanted)
            boost = 0
        else:
            near = [one for one in begun if one[:1] == wanted[:1] and edits(one[1:], wanted[1:]) <= most]
            fits = bool(near)
            boost = 0
            if near:
                first = near[0]
                boost = next(
                    (at for at in range(min(len(first), len(wanted))) if first[at] != wanted[at]),
                    min(len(first), len(wanted)),
                )
        if fits:
            rows.append((-(weight * boost if weight and boost else weight or boost), text, doc))
    rows.sort()
    if skip:
        rows = [row for at, row in enumerate(rows) if row[1] not in [one[1] for one in rows[:at]]]
    return [(text, str(doc), float(-worth)) for worth, text, doc in rows[:size]]


@settings(max_examples=60, deadline=None)
@given(inputs, words, st.integers(0, 2), st.booleans(), st.integers(1, 5))
def test_as_the_twin(documents: list[tuple[str, int]], prefix: str, most: int, skip: bool, size: int) -> None:
    index = Index({"s": {"type": "completion"}}, [{"s": {"input": a, "weight": b}} for a, b in documents])
    fuzzy = {"fuzzy": {"fuzziness": most, "min_length": 0}} if most else {}
    completion = {"field": "s", "size": size, "skip_duplicates": skip, **fuzzy}
    found = [
        (option["text"], option["_id"], option["_score"])
        for option in answer(index, {"prefix": prefix, "completion": completion})
    ]
    assert found == twin(documents, prefix, most, skip, size)
