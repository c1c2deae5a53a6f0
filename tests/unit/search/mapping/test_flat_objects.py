"""`subobjects: false`: objects whose fields have dots in their names."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graphdb.search.errors import SearchError
from graphdb.search.fields import ParsedDocument
from graphdb.search.mapping import Mapping
from tests.unit.search.mapping.support import SPACES

LONG, KEYWORD = {"type": "long"}, {"type": "keyword"}
TIMES = {"subobjects": False, "properties": {"time": LONG, "time.max": LONG}}


def of(body: dict[str, Any]) -> Mapping:
    return Mapping.of(body, SPACES)


def read(mapping: Mapping, source: dict[str, Any]) -> tuple[ParsedDocument, Mapping]:
    return mapping.parse(source, "1")


def test_fields_side_by_side_and_shown_as_given() -> None:
    mapping = of({"properties": {"metrics": TIMES}})
    assert mapping.as_json() == {"properties": {"metrics": TIMES}}
    assert Mapping.of(mapping.as_json(), SPACES).as_json() == mapping.as_json()
    assert mapping.names("*") == ["metrics.time", "metrics.time.max"]
    assert mapping.field_mappings("metrics.time.max") == {
        "metrics.time.max": {"full_name": "metrics.time.max", "mapping": {"time.max": LONG}}
    }
    assert mapping.field("metrics.time.max").multi_of is None  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "source",
    [
        {"metrics.time": 1, "metrics.time.max": 3},
        {"metrics": {"time": 1, "time.max": 3}},
        {"metrics": [{"time": 1}, {"time": {"max": 3}}]},
        {"metrics": {"time": [1, {"max": 3}]}},
        {"metrics": {"time": 1}, "metrics.time": {"max": 3}},
    ],
)
@pytest.mark.parametrize("at_root", [True, False])
def test_a_document_may_have_them_flat_or_as_objects(source: dict[str, Any], at_root: bool) -> None:
    root = {"subobjects": False, "properties": {"metrics.time": LONG, "metrics.time.max": LONG}}
    document, _ = read(of(root if at_root else {"properties": {"metrics": TIMES}}), source)
    assert document.ints == {"metrics.time": [1], "metrics.time.max": [3]}


def test_new_fields_are_leaves() -> None:
    _, mapping = read(of({"properties": {"m": {"subobjects": False}}}), {"m": {"a": {"b": 1}, "a.c": True}})
    fields = {"a.b": LONG, "a.c": {"type": "boolean"}}
    assert mapping.as_json() == {"properties": {"m": {"subobjects": False, "properties": fields}}}
    _, mapping = read(mapping, {"m": {"a": 5}})
    assert mapping.field("m.a") is not None


def test_templates_see_the_whole_name() -> None:
    templates = [
        {"max": {"path_match": "metrics.*.max", "mapping": {"type": "double"}}},
        {"last": {"match": "c", "mapping": KEYWORD}},
        {"whole": {"match": "b.d", "mapping": KEYWORD}},
        {"flat": {"match": "flat", "mapping": {"type": "object", "subobjects": False}}},
    ]
    mapping = of({"subobjects": False, "dynamic_templates": templates})
    _, mapping = read(mapping, {"metrics": {"cpu": {"max": 1}}, "b": {"c": 1, "d": "x"}})
    assert mapping.as_json()["properties"] == {
        "b.c": LONG,
        "b.d": KEYWORD,
        "metrics.cpu.max": {"type": "double"},
    }
    _, mapping = read(of({"dynamic_templates": templates}), {"o": {"flat": {"a": 1, "a.b": 2}}})
    assert mapping.as_json()["properties"]["o"]["properties"]["flat"] == {
        "subobjects": False,
        "properties": {"a": LONG, "a.b": LONG},
    }


def test_objects_are_taken_apart() -> None:
    given: dict[str, Any] = {"a": {"properties": {"b": {"type": "nested", "properties": {"c": KEYWORD}}}}}
    assert of({"subobjects": False, "properties": given}).as_json() == {
        "subobjects": False,
        "properties": {"a.b.c": KEYWORD},
    }
    merged = of({"subobjects": False}).merged({"properties": given})
    assert merged.as_json()["properties"] == {"a.b.c": KEYWORD}


FLATTENING = (
    "Object mapper [a] was found in a context where subobjects is set to false. Auto-flattening [a] failed "
    "because the value of "
)
NO_NESTED = "Tried to add nested object [{}] to object [_doc] which does not support subobjects"


@pytest.mark.parametrize(
    ("member", "reason"),
    [
        (
            {"type": "nested"},
            NO_NESTED.format("a"),
        ),
        ({"enabled": False}, FLATTENING + "[enabled] is [false]"),
        ({"subobjects": True}, FLATTENING + "[subobjects] is [true]"),
        (
            {"dynamic": "strict"},
            FLATTENING + "[dynamic] (STRICT) is not compatible with the value from its parent context (TRUE)",
        ),
    ],
)
def test_objects_that_cannot_be_taken_apart(member: dict[str, Any], reason: str) -> None:
    with pytest.raises(SearchError) as caught:
        of({"subobjects": False, "properties": {"a": member}})
    assert caught.value.reason == f"Failed to parse mapping: {reason}"


@pytest.mark.parametrize(
    ("there", "update", "kind", "reason"),
    [
        (
            {"subobjects": False},
            {"subobjects": True},
            "mapper_exception",
            "the [subobjects] parameter can't be updated for the object mapping [_doc]",
        ),
        (
            {"properties": {"m": {"properties": {"a": LONG}}}},
            {"properties": {"m": {"subobjects": False}}},
            "mapper_exception",
            "the [subobjects] parameter can't be updated for the object mapping [m]",
        ),
        (
            {"subobjects": False, "properties": {"m": LONG}},
            {"properties": {"m": {"properties": {"a": LONG}}}},
            "illegal_argument_exception",
            "can't merge a non object mapping [m] with an object mapping",
        ),
        (
            {"properties": {"metrics": TIMES}},
            {"properties": {"metrics": {"properties": {"time": {"type": "long", "fields": {"max": LONG}}}}}},
            "mapper_parsing_exception",
            "Field [metrics.time.max] is defined more than once",
        ),
    ],
)
def test_updates_that_cannot_be(
    there: dict[str, Any], update: dict[str, Any], kind: str, reason: str
) -> None:
    with pytest.raises(SearchError) as caught:
        of(there).merged(update)
    assert (caught.value.kind, caught.value.reason) == (kind, reason)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"subobjects": "auto"}, "unknown subobjects value: auto"),
        (
            {"properties": {"n": {"type": "nested", "subobjects": False}}},
            "Nested type [n] does not support [subobjects] parameter",
        ),
    ],
)
def test_where_it_may_not_be(body: dict[str, Any], reason: str) -> None:
    with pytest.raises(SearchError) as caught:
        of(body)
    assert caught.value.reason == f"Failed to parse mapping: {reason}"


@pytest.mark.parametrize("source", [{"a": {"b": 1}}, {"z": None}, {"z": []}, {"a.c": 1}])
def test_strict_refuses_objects_and_nulls(source: dict[str, Any]) -> None:
    mapping = of({"subobjects": False, "dynamic": "strict", "properties": {"a.b": LONG}})
    with pytest.raises(SearchError) as caught:
        read(mapping, source)
    assert caught.value.kind == "strict_dynamic_mapping_exception"


def test_nested_by_a_template_is_refused() -> None:
    templates = [{"n": {"match": "n", "match_mapping_type": "object", "mapping": {"type": "nested"}}}]
    with pytest.raises(SearchError) as caught:
        read(of({"subobjects": False, "dynamic_templates": templates}), {"n": {"a": 1}})
    assert caught.value.reason == NO_NESTED.format("n")


def test_fields_that_read_objects_get_them() -> None:
    fields = {"f": {"type": "flattened"}, "g": {"type": "geo_point"}, "g.x": KEYWORD}
    mapping = of({"subobjects": False, "properties": fields})
    document, _ = read(mapping, {"f": {"x": "in"}, "g.x": "beside", "g": {"lat": 1, "lon": 2}})
    assert document.terms == {"f": ["in"], "f.x": ["in"], "g.x": ["beside"]}
    assert document.points == {"g": [(1.0, 2.0)]}


NAMES = st.sampled_from("abc")
OBJECTS = st.recursive(
    st.integers(0, 9) | st.lists(st.integers(0, 9), max_size=2),
    lambda inner: st.dictionaries(st.lists(NAMES, min_size=1, max_size=2).map(".".join), inner, max_size=3),
    max_leaves=8,
)


def leaves(value: Any, path: str, found: dict[str, list[int]]) -> None:
    if isinstance(value, dict):
        for name, member in value.items():
            leaves(member, f"{path}.{name}" if path else name, found)
    else:
        found.setdefault(path, []).extend(value if isinstance(value, list) else [value])


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(NAMES, OBJECTS, max_size=3))
def test_a_document_is_its_leaves(source: dict[str, Any]) -> None:
    """Whatever objects it has them in; the mapping is the same too."""
    found: dict[str, list[int]] = {}
    leaves(source, "", found)
    found = {path: values for path, values in found.items() if values}
    document, mapping = read(of({"subobjects": False}), source)
    assert document.ints == found
    assert mapping.as_json().get("properties", {}) == {path: LONG for path in sorted(found)}
    again, same = read(mapping, source)
    assert (again.ints, same) == (found, mapping)
