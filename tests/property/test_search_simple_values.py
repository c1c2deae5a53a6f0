"""Documents that are read with what was made for each field, against the walk that knows all values."""

from itertools import accumulate
from typing import Any
from unittest.mock import patch

from hypothesis import example, given, settings
from hypothesis import strategies as st

from graphdb.search.analysis import Analyzers
from graphdb.search.errors import SearchError
from graphdb.search.fields import NO_VALUES, Column, ParsedDocument
from graphdb.search.mapping import Mapping, simple_values
from graphdb.search.mapping import compiled as compiling
from graphdb.search.mapping.nodes import FieldNode
from graphdb.search.mapping.simple_values import stored_all_of, stored_of

ANALYZERS = Analyzers.of({"normalizer": {"low": {"type": "custom", "filter": ["lowercase"]}}})
NUMBERS = ["long", "byte", "unsigned_long", "double", "half_float", "scaled_float"]
KEYWORDS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {"type": st.just("keyword")},
    optional={
        "ignore_above": st.sampled_from([3, 10]),
        "normalizer": st.just("low"),
        "null_value": st.just("none"),
        "copy_to": st.sampled_from(["a", "b"]),
        "doc_values": st.booleans(),
    },
)
TEXTS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {"type": st.just("text")},
    optional={
        "analyzer": st.sampled_from(["standard", "whitespace"]),
        "copy_to": st.sampled_from(["a", "b"]),
    },
)
OTHERS = st.one_of(
    st.sampled_from(["boolean", "flattened"]).map(lambda name: {"type": name}),
    st.sampled_from(["date", "ip", "geo_point"]).map(lambda name: {"type": name, "ignore_malformed": True}),
    st.builds(
        lambda name, lenient: (
            {"type": name, "ignore_malformed": lenient}
            | ({"scaling_factor": 10} if name == "scaled_float" else {})
        ),
        st.sampled_from(NUMBERS),
        st.sampled_from([True, True, False]),
    ),
)
VECTORS = st.builds(
    lambda kind, similarity: {
        "type": "dense_vector",
        "dims": 3,
        "element_type": kind,
        "similarity": similarity,
    },
    st.sampled_from(["float", "float", "byte"]),
    st.sampled_from(["cosine", "dot_product", "l2_norm"]),
)
COMMON = st.sampled_from([{"type": "keyword"}, {"type": "text"}, {"type": "text", "copy_to": ["a"]}])
FIELDS = st.one_of(KEYWORDS, TEXTS, OTHERS, VECTORS, COMMON, COMMON)
MULTI_FIELDS = st.builds(
    lambda field, subs: field | ({"fields": subs} if subs else {}),
    FIELDS,
    st.dictionaries(
        st.sampled_from("xy"), st.one_of(KEYWORDS, TEXTS, OTHERS).map(lambda one: without_copies(one))
    ),
)
OBJECTS = st.builds(
    lambda kind, members, parent: (
        {"type": kind, "properties": members}
        | ({"include_in_parent": True} if parent and kind == "nested" else {})
    ),
    st.sampled_from(["object", "nested"]),
    st.dictionaries(st.sampled_from("ab"), MULTI_FIELDS.map(lambda one: without_copies(one)), max_size=2),
    st.booleans(),
)
MAPPINGS = st.fixed_dictionaries({name: MULTI_FIELDS for name in "abc"}, optional={"d": OBJECTS})
STRINGS = st.sampled_from(
    ["", "ab c", "Aé", "É b", "2020-01-01", "10.0.0.1", "1.5", "7", "true", "x" * 300, "y" * 40_000, "1,2"]
)
SIMPLE = st.one_of(STRINGS, STRINGS, st.integers(-9, 300), st.booleans(), st.floats(-9, 300, width=16))
ELEMENTS = st.sampled_from(
    [0, 0.0, -0.0, 1, 0.6, 0.8, 0.80048, 1e-46, 1e-40, 1e-29, 3e38, 3.5e38, 1e300, 127, -129, 2**70, True]
)
VALUES = st.one_of(
    SIMPLE,
    SIMPLE,
    st.lists(ELEMENTS, min_size=3, max_size=3),
    st.permutations([0.0, 0.6, 0.8]),
    st.lists(STRINGS, max_size=3),
    st.lists(st.integers(-9, 300), max_size=3),
    st.none(),
    st.just(2**65),
    st.lists(st.one_of(st.none(), SIMPLE), max_size=3),
    st.dictionaries(st.sampled_from("abx"), SIMPLE, max_size=2),
)
MEMBERS = st.fixed_dictionaries(
    {"a": VALUES, "b": SIMPLE}, optional={name: VALUES for name in ("c", "d", "e", "a.b", "d.a")}
)
DOCUMENTS = st.builds(
    lambda members, backwards: dict(reversed(members.items())) if backwards else members,
    MEMBERS,
    st.booleans(),
)


def without_copies(definition: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in definition.items() if name != "copy_to"}


def read(mapping: Mapping, source: dict[str, Any]) -> tuple[ParsedDocument, dict[str, Any]] | tuple[str, str]:
    """What a document gives, and the mapping afterwards; or why it does not fit."""
    try:
        parsed, after = mapping.parse(source, "1")
    except SearchError as error:
        return error.kind, f"{error.reason} {error.cause}"
    _list_vectors(parsed)
    return parsed, after.as_json()


def _list_vectors(parsed: ParsedDocument) -> None:
    """Arrays cannot be compared as the other values are."""
    if parsed.vectors:
        parsed.vectors = {path: vector.tolist() for path, vector in parsed.vectors.items()}
    for _, nested in parsed.children:
        _list_vectors(nested)


@settings(deadline=None, max_examples=250)
@given(MAPPINGS, st.lists(DOCUMENTS, min_size=1, max_size=4), st.sampled_from([True, False, False, "strict"]))
@example({"a": {"type": "text"}, "b": {"type": "text", "copy_to": ["a"]}}, [{"b": "x", "a": "y"}], False)
@example({"a": {"type": "keyword"}}, [{"a": None}], False)
@example({"a": {"type": "long"}}, [{"a": []}, {"a": [3, 1]}], False)
@example({"a": {"type": "dense_vector", "dims": 3}}, [{"a": [10**400, 1, 1]}, {"a": [1, 2, True]}], False)
@example(
    {"d": {"type": "nested", "properties": {"a": {"type": "dense_vector", "dims": 3}}}},
    [{"d.a": [0.0, 0.6, 0.8]}],
    True,
)
def test_each_document_gives_what_the_walk_gives(
    properties: dict[str, Any], documents: list[dict[str, Any]], dynamic: bool | str
) -> None:
    body = {"properties": properties, "dynamic": dynamic}
    try:
        quick = Mapping.of(body, ANALYZERS)
    except SearchError:
        return
    for source in documents:
        found = read(quick, source)
        with patch.object(compiling, "take_of", lambda node: None):
            walked = Mapping.of(quick.as_json(), ANALYZERS)
            assert read(walked, source) == found


def split(columns: list[Column], count: int) -> list[ParsedDocument]:
    """What each of the documents has that were read together."""
    parsed = [ParsedDocument() for _ in range(count)]
    for column in columns:
        values = column.values.tolist() if column.storage == "vectors" else column.values
        ends = accumulate([1] * len(column.docs) if column.counts is None else column.counts)
        start = 0
        for doc, end in zip(column.docs, ends, strict=True):
            is_one = column.storage in ("uncut", "vectors")
            of_doc = parsed[doc].column(column.storage)
            assert column.path not in of_doc
            of_doc[column.path] = values[start] if is_one else list(values[start:end])
            start = end
        assert start == len(values)
    return parsed


@settings(deadline=None, max_examples=250)
@given(MAPPINGS, st.lists(DOCUMENTS, min_size=1, max_size=9), st.sampled_from([True, False, "strict"]))
@example({"a": {"type": "long"}}, [{"a": [3, 1]}, {"a": []}, {"a": [2, None, 1]}, {"a": 5}], False)
@example({"a": {"type": "dense_vector", "dims": 3}}, [{"a": [10**400, 1, 1]}, {"a": [1, 2, True]}], False)
@example({"a": {"type": "dense_vector", "dims": 3}}, [{"a": [1, 1, 0.5]}, {"b": 1}, {"a": [1, 2, 1]}], False)
def test_documents_that_are_read_together_give_what_each_gives(
    properties: dict[str, Any], documents: list[dict[str, Any]], dynamic: bool | str
) -> None:
    body = {"properties": properties, "dynamic": dynamic}
    try:
        mapping = Mapping.of(body, ANALYZERS)
    except SearchError:
        return
    columns, refused = mapping.parse_together(documents, [None] * len(documents))
    left = [source for place, source in enumerate(documents) if place not in refused]
    if refused and left:
        columns, refused = mapping.parse_together(left, [None] * len(left))
    if not refused:
        expected = [read(mapping, source) for source in left]
        assert [(one, mapping.as_json()) for one in split(columns, len(left))] == expected


def test_most_fields_need_no_walk() -> None:
    """Else the test above compares the walk with itself."""
    body = {
        "t": {"type": "text"},
        "k": {"type": "keyword", "ignore_above": 5},
        "n": {"type": "long"},
        "d": {"type": "date"},
        "m": {"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": 256}}},
        "v": {"type": "dense_vector", "dims": 2},
    }
    mapping = Mapping.of({"properties": body}, ANALYZERS)
    documents: list[dict[str, Any]] = [{"t": "One", "k": ["abc"], "n": 5, "v": [1, 2]}, {"m": "b"}]
    columns, refused = mapping.parse_together(documents, [None, None])
    assert not refused
    assert len(columns) == 6
    source = {"t": "One two", "k": ["abc", "a"], "n": 5, "d": "1970-01-01", "m": "a B", "v": [1, 0.5]}
    with patch("graphdb.search.mapping.document._Reading", side_effect=AssertionError("a walk")):
        parsed, after = mapping.parse(source)
    assert after is mapping
    assert parsed.vectors.pop("v").tolist() == [1, 0.5]
    parsed.vectors = NO_VALUES
    assert parsed == ParsedDocument(
        uncut={"t": "One two", "m": "a B"},
        terms={"k": ["abc", "a"], "m.keyword": ["a B"]},
        ints={"n": [5], "d": [0]},
    )


@settings(deadline=None, max_examples=50)
@given(
    st.sampled_from(["strict_date_optional_time||epoch_millis", "basic_date", "dd/MM/uuuu"]),
    st.lists(
        st.lists(
            st.one_of(
                st.sampled_from(
                    ["2015-03-31", "20150331", "31/03/2015", "2015", 5, True, None, 1.5, "", "x"]
                ),
                st.sampled_from([[], ["2015-03-31"], {}, "2015-03-31T12:00:00Z", "2015-03-31T12:00"]),
                st.dates().map(str),
            ),
            max_size=12,
        ),
        max_size=5,
    ),
)
def test_days_that_come_again_are_what_they_were(form: str, batches: list[list[Any]]) -> None:
    mapping = Mapping.of({"properties": {"d": {"type": "date", "format": form}}}, ANALYZERS)
    node = mapping._compiled.root.children["d"]
    assert isinstance(node, FieldNode)
    with patch.object(simple_values, "_DAYS_MAX", 3):
        all_of, one_of = stored_all_of(node), stored_of(node)
        for values in [*batches, *batches]:
            assert all_of(values) == list(map(one_of, values))
