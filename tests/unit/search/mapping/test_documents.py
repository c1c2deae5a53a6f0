from typing import Any

import pytest

from graphdb.search.errors import SearchError
from graphdb.search.fields import ParsedDocument, TextTokens
from graphdb.search.mapping import Mapping, MappingLimits
from tests.unit.search.mapping.support import SPACES

DAY = 1_577_836_800_000  # 2020-01-01


def parsed(properties: dict[str, Any], source: dict[str, Any], **root: Any) -> ParsedDocument:
    document, _ = Mapping.of({"properties": properties, **root}, SPACES).parse(source, "1")
    return document


def dynamic(source: dict[str, Any], **root: Any) -> dict[str, Any]:
    _, mapping = Mapping.of(root, SPACES).parse(source)
    properties: dict[str, Any] = mapping.as_json().get("properties", {})
    return properties


INTS: dict[str, tuple[dict[str, Any], Any, list[int]]] = {
    "string and fraction coerced": ({"type": "long"}, ["5", 2.9, "-3.7", ""], [5, 2, -3]),
    "null value": ({"type": "short", "null_value": 7}, [None, 1], [7, 1]),
    "arrays in arrays": ({"type": "byte"}, [[1, [2]], 3], [1, 2, 3]),
    "boolean": ({"type": "boolean"}, [True, "false", "", "true"], [1, 0, 0, 1]),
    "dates": ({"type": "date"}, ["2020-01-01", DAY, "2020-01-01T01:00:00+01:00"], [DAY] * 3),
    "date format": ({"type": "date", "format": "dd.MM.yyyy||epoch_second"}, ["01.01.2020", 1], [DAY, 1000]),
}


@pytest.mark.parametrize(("definition", "value", "expected"), INTS.values(), ids=INTS)
def test_integers(definition: dict[str, Any], value: Any, expected: list[int]) -> None:
    assert parsed({"f": definition}, {"f": value}).ints == {"f": expected}


def test_floats_keep_the_precision_of_their_type() -> None:
    properties = {
        "d": {"type": "double"},
        "f": {"type": "float"},
        "h": {"type": "half_float"},
        "s": {"type": "scaled_float", "scaling_factor": 10},
    }
    assert parsed(properties, dict.fromkeys("dfhs", 0.16)).floats == {
        "d": [0.16],
        "f": [0.1599999964237213],
        "h": [0.1600341796875],
        "s": [0.2],
    }


def test_text_values_stand_a_gap_apart_and_multi_fields_get_the_same() -> None:
    field = {"type": "text", "fields": {"k": {"type": "keyword", "normalizer": "lower", "ignore_above": 3}}}
    document = parsed({"t": field}, {"t": ["A b", 5, "C"]})
    assert document.texts == {"t": TextTokens(["a", "b", "5", "c"], [0, 1, 102, 203], 4)}
    assert document.terms == {"t.k": ["a b", "5", "c"]}
    ignored = parsed({"t": field}, {"t": "long text"})
    assert (ignored.terms, ignored.ignored) == ({}, ["t.k"])


def test_nested_objects_are_documents_within() -> None:
    properties = {
        "n": {
            "type": "nested",
            "include_in_parent": True,
            "properties": {"a": {"type": "long"}, "m": {"type": "nested"}, "t": {"type": "text"}},
        }
    }
    document = parsed(properties, {"n": [{"a": 1, "m": {"b": 5}, "t": "x"}, {"a": 2, "t": "y"}]})
    assert [(path, child.ints) for path, child in document.children] == [
        ("n", {"n.a": [1]}),
        ("n", {"n.a": [2]}),
    ]
    assert [path for path, _ in document.children[0][1].children] == ["n.m"]
    assert document.ints == {"n.a": [1, 2]}
    assert document.texts["n.t"] == TextTokens(["x", "y"], [0, 101], 2)
    assert document.children[0][1].texts["n.t"] == TextTokens(["x"], [0], 1)


def test_copies_reach_their_target_and_no_further() -> None:
    properties = {
        "a": {"type": "keyword", "copy_to": ["all", "o.new"]},
        "all": {"type": "text", "copy_to": "never"},
    }
    document, mapping = Mapping.of({"properties": properties}, SPACES).parse({"a": "X y"})
    assert document.texts["all"].terms == ["x", "y"]
    assert document.terms == {"a": ["X y"], "o.new.keyword": ["X y"]}
    assert mapping.field("never") is None


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("9007199254740993.7", 2**53 + 1),
        (" -9007199254740993.7e0 ", -(2**53) - 1),
        ("922337203685477580.7e1", 2**63 - 1),
        ("0.9007199254740993e16d", 2**53 + 1),
        ("1e-999999999", 0),
        (".9f", 0),
    ],
)
def test_decimals_are_cut_without_rounding(text: str, whole: int) -> None:
    document = parsed({"n": {"type": "long"}}, {"n": text})
    assert document.ints == {"n": [whole]}


POINTS: dict[str, Any] = {
    "object": {"lat": 12.5, "lon": "-7"},
    "text": "12.5, -7",
    "array": [-7, 12.5],
    "well-known text": "POINT (-7 12.5)",
    "GeoJSON": {"type": "Point", "coordinates": [-7, 12.5]},
    "array of points": [[-7, 12.5]],
}


@pytest.mark.parametrize("value", POINTS.values(), ids=POINTS)
def test_points(value: Any) -> None:
    assert parsed({"p": {"type": "geo_point"}}, {"p": value}).points == {"p": [(12.5, -7.0)]}


def test_geohash_is_the_middle_of_its_cell() -> None:
    ((latitude, longitude),) = parsed({"p": {"type": "geo_point"}}, {"p": "u4pruydqqvj"}).points["p"]
    assert (round(latitude, 5), round(longitude, 5)) == (57.64911, 10.40744)


def test_flattened_leaves() -> None:
    document = parsed({"f": {"type": "flattened"}}, {"f": {"a": {"b": [1, "x"]}, "c": True}})
    assert document.terms == {"f": ["1", "x", "true"], "f.a.b": ["1", "x"], "f.c": ["true"]}


def test_disabled_objects_and_dynamic_false_are_left_alone() -> None:
    properties = {"e": {"enabled": False}, "o": {"dynamic": "true", "properties": {}}}
    source = {"e": 5, "x": 1, "o": {"y": 1}}
    document, mapping = Mapping.of({"dynamic": "false", "properties": properties}, SPACES).parse(source)
    assert document.ints == {"o.y": [1]}
    assert mapping.field("x") is None


def test_vectors_take_their_dimensions_from_the_first_document() -> None:
    mapping = Mapping.of({"properties": {"v": {"type": "dense_vector"}}}, SPACES)
    document, mapping = mapping.parse({"v": [1, 0.5]})
    assert document.vectors["v"].tolist() == [1.0, 0.5]
    with pytest.raises(SearchError) as caught:
        mapping.parse({"v": [1]}, "7")
    assert caught.value.cause is not None
    assert caught.value.cause.reason == (
        "The [dense_vector] field [v] in doc [document with id '7'] has a different number of dimensions [1] "
        "than defined in the mapping [2]"
    )


BAD: dict[str, tuple[dict[str, Any], Any, str, str]] = {
    "long": ({"type": "long"}, "abc", "illegal_argument_exception", 'For input string: "abc"'),
    "double": ({"type": "double"}, "abc", "number_format_exception", 'For input string: "abc"'),
    "range": ({"type": "byte"}, 128, "illegal_argument_exception", "Value [128] is out of range for a byte"),
    "no coercion": ({"type": "integer", "coerce": False}, 1.5, "illegal_argument_exception",
                    "Value [1.5] has a decimal part"),
    "finite": ({"type": "half_float"}, 1e9, "illegal_argument_exception",
               "[half_float] supports only finite values, but got [1000000000.0]"),
    "boolean": ({"type": "boolean"}, "yes", "illegal_argument_exception",
                "Failed to parse value [yes] as only [true] or [false] are allowed."),
    "date": ({"type": "date"}, "2020-02-30", "illegal_argument_exception",
             "failed to parse date field [2020-02-30] with format [strict_date_optional_time||epoch_millis]"),
    "ip": ({"type": "ip"}, "1.2.3", "illegal_argument_exception", "'1.2.3' is not an IP string literal."),
    "point": ({"type": "geo_point"}, "91,0", "illegal_argument_exception",
              "illegal latitude value [91.0] for f"),
    "zero vector": ({"type": "dense_vector", "dims": 2}, [0, 0], "illegal_argument_exception",
                    "The [cosine] similarity does not support vectors with zero magnitude. "
                    "Preview of invalid vector: [0.0, 0.0]"),
}  # fmt: skip


@pytest.mark.parametrize(("definition", "value", "kind", "reason"), BAD.values(), ids=BAD)
def test_values_that_do_not_fit(definition: dict[str, Any], value: Any, kind: str, reason: str) -> None:
    with pytest.raises(SearchError) as caught:
        parsed({"f": definition}, {"f": value})
    preview = "[0, 0]" if isinstance(value, list) else str(value)
    assert (caught.value.kind, caught.value.reason) == (
        "document_parsing_exception",
        f"failed to parse field [f] of type [{definition['type']}] in document with id '1'. "
        f"Preview of field's value: '{preview}'",
    )
    assert caught.value.cause is not None
    assert (caught.value.cause.kind, caught.value.cause.reason) == (kind, reason)
    if "ignore_malformed" in definition or definition["type"] in ("dense_vector",):
        return
    lenient = parsed({"f": definition | {"ignore_malformed": True}}, {"f": value})
    assert lenient == ParsedDocument(ignored=["f"])


OBJECTIONS: dict[str, tuple[dict[str, Any], str]] = {
    "value for object": ({"o": 5}, "object mapping for [o] tried to parse field [o] as object, but found a "
                         "concrete value"),
    "object for value": ({"k": {"a": [1, None]}},
                         "failed to parse field [k] of type [keyword] in document with id '1'. "
                         "Preview of field's value: '{a=[1, null]}'"),
    "metadata": ({"_id": 1}, "Field [_id] is a metadata field and cannot be added inside a document. Use the "
                 "index API request parameters."),
    "empty name": ({"": 1}, "field name cannot be an empty string"),
    "dot at the end": ({"a.": 1},
                       "field name starting or ending with a [.] makes object resolution ambiguous: [a.]"),
}  # fmt: skip


@pytest.mark.parametrize(("source", "reason"), OBJECTIONS.values(), ids=OBJECTIONS)
def test_documents_that_do_not_fit(source: dict[str, Any], reason: str) -> None:
    with pytest.raises(SearchError) as caught:
        parsed({"o": {"properties": {}}, "k": {"type": "keyword"}}, source)
    assert (caught.value.kind, caught.value.reason) == ("document_parsing_exception", reason)


def test_strict() -> None:
    with pytest.raises(SearchError) as caught:
        parsed({"o": {"properties": {}}}, {"o": {"x": 1}}, dynamic="strict")
    assert caught.value.kind == "strict_dynamic_mapping_exception"
    assert (
        caught.value.reason == "mapping set to strict, dynamic introduction of [x] within [o] is not allowed"
    )


def test_nested_objects_are_counted() -> None:
    limits = MappingLimits(nested_objects=2)
    mapping = Mapping.of({"properties": {"n": {"type": "nested"}}}, SPACES, limits)
    mapping.parse({"n": [{}, {}]})
    with pytest.raises(SearchError, match=r"exceeded the allowed limit of \[2\]"):
        mapping.parse({"n": [{}, {}, {}]})


def test_dynamic_fields_by_their_json() -> None:
    string = {"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": 256}}}
    source = {
        "s": "x", "l": [None, 1], "f": 1.5, "b": False, "d": "2020-01-01", "e": "2015/09/02", "n": "12",
        "o": {"p": {}}, "q.r": 1, "null": None, "none": [], "v": [0.5] * 128, "w": [0.5] * 127,
    }  # fmt: skip
    assert dynamic(source) == {
        "s": string,
        "l": {"type": "long"},
        "f": {"type": "float"},
        "b": {"type": "boolean"},
        "d": {"type": "date"},
        "e": {"type": "date", "format": "yyyy/MM/dd HH:mm:ss||yyyy/MM/dd||epoch_millis"},
        "n": string,
        "o": {"properties": {"p": {"type": "object"}}},
        "q": {"properties": {"r": {"type": "long"}}},
        "v": {
            "type": "dense_vector",
            "dims": 128,
            "index": True,
            "similarity": "cosine",
            "index_options": {"type": "int8_hnsw", "m": 16, "ef_construction": 100},
        },
        "w": {"type": "float"},
    }


def test_detection_can_be_turned() -> None:
    found = dynamic({"d": "2020-01-01", "n": "1", "f": "1.5"}, date_detection=False, numeric_detection=True)
    assert {name: definition["type"] for name, definition in found.items()} == {
        "d": "text",
        "f": "float",
        "n": "long",
    }
    assert dynamic({"d": "01/2020"}, dynamic_date_formats=["MM/yyyy"])["d"] == {
        "type": "date",
        "format": "MM/yyyy",
    }


def test_dynamic_templates() -> None:
    templates = [
        {"ids": {"match": ["*_id", "id"], "unmatch": "no_*", "mapping": {"type": "keyword"}}},
        {"paths": {"path_match": "user.*", "match_mapping_type": "string",
                   "mapping": {"copy_to": "{name}_all"}}},
        {"counts": {"match": r"^n_\d+$", "match_pattern": "regex",
                    "mapping": {"type": "{dynamic_type}", "index": False}}},
        {"late": {"match": "r_*", "runtime": {}}},
    ]  # fmt: skip
    source = {"a_id": 5, "no_id": 5, "user": {"name": "x"}, "n_1": 2.5, "r_1": "x"}
    assert dynamic(source, dynamic_templates=templates, date_detection=False) == {
        "a_id": {"type": "keyword"},
        "no_id": {"type": "long"},
        "user": {"properties": {"name": {"type": "text", "copy_to": ["name_all"]}}},
        "name_all": {"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": 256}}},
        "n_1": {"type": "float", "index": False},
    }


@pytest.mark.parametrize("pattern", ["(a+)+$", "(ab?c)?+", "(a|a)*b", "a*a*a*a*a*b", "("])
def test_regular_expressions_that_would_not_end_are_refused(pattern: str) -> None:
    template = {"t": {"match": pattern, "match_pattern": "regex", "mapping": {}}}
    with pytest.raises(SearchError, match="of type \\[regex\\] is"):
        Mapping.of({"dynamic_templates": [template]}, SPACES)


def test_the_same_mapping_where_nothing_is_new() -> None:
    _, mapping = Mapping.of({}, SPACES).parse({"a": {"b": [1, "2"]}})
    assert mapping.parse({"a.b": 5, "c": None})[1] is mapping
